//! The user that servers run as. Root starts them as an unprivileged user: a server under test
//! needs no rights on the host.

use std::fs;
use std::process::Command;

use anyhow::Context;
use rustix::process::geteuid;

/// The default user of servers that root starts.
const DEFAULT: &str = "nobody";
/// Its number if the name does not exist: the kernel's overflow UID (/proc/sys/kernel/overflowuid).
const DEFAULT_NUMBER: u32 = 65_534;

/// An unprivileged user for servers that root starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerUser {
    name: String,
    id: u32,
    group: u32,
}

impl ServerUser {
    /// The user with this name or number; none where servers run as the caller does.
    ///
    /// # Errors
    /// There is no such user, or the caller may not start servers as another user.
    pub(super) fn find(named: Option<&str>) -> anyhow::Result<Option<ServerUser>> {
        ServerUser::find_for(geteuid().as_raw(), named)
    }

    fn find_for(caller: u32, named: Option<&str>) -> anyhow::Result<Option<ServerUser>> {
        if named.is_none() && caller != 0 {
            return Ok(None);
        }
        let user = match named {
            Some(name) => look_up(name).with_context(|| {
                format!("there is no user `{name}`\nhint: `getent passwd` lists all users")
            })?,
            None => look_up(DEFAULT).unwrap_or_else(|| ServerUser {
                name: DEFAULT.to_owned(),
                id: DEFAULT_NUMBER,
                group: DEFAULT_NUMBER,
            }),
        };
        anyhow::ensure!(
            caller == 0 || user.id == caller,
            "only root starts servers as another user, `{}`\nhint: leave the user out, or run \
             throng as root",
            user.name
        );
        Ok((user.id != caller).then_some(user))
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The number of its group.
    pub(super) fn group(&self) -> u32 {
        self.group
    }

    /// The command-line prefix that runs a program as this user, without capabilities except the
    /// one for a port below 1024.
    ///
    /// A change of the user clears the parent-death signal, so it is set again here.
    pub(super) fn words(&self, lasts: bool, has_low_port: bool) -> Vec<String> {
        let capabilities = match has_low_port {
            true => "-all,+net_bind_service",
            false => "-all",
        };
        let mut words = vec![
            "setpriv".to_owned(),
            format!("--reuid={}", self.id),
            format!("--regid={}", self.group),
            "--clear-groups".to_owned(),
            format!("--inh-caps={capabilities}"),
            format!("--ambient-caps={capabilities}"),
            format!("--bounding-set={capabilities}"),
            "--no-new-privs".to_owned(),
        ];
        if !lasts {
            words.extend(["--pdeathsig", "KILL"].map(str::to_owned));
        }
        words.push("--".to_owned());
        words
    }

    /// The cure if a server's log reports a missing permission.
    pub(super) fn cure(&self, log: &str) -> Option<String> {
        let log = log.to_lowercase();
        let lacks = ["permission denied", "not permitted", "setpriv: set"];
        let is_it = lacks.iter().any(|words| log.contains(words));
        is_it.then(|| {
            format!(
                "it ran as user `{}`: let that user read and run what it needs, folders above \
                 included, or name another user with --server-user (`user` in an experiment)",
                self.name
            )
        })
    }
}

/// Finds a user by name or number in the system's user database (nsswitch.conf(5)).
fn look_up(name: &str) -> Option<ServerUser> {
    let local = fs::read_to_string("/etc/passwd").unwrap_or_default();
    parse(&local, name).or_else(|| {
        let output = Command::new("getent").args(["passwd", "--", name]).output();
        parse(&String::from_utf8_lossy(&output.ok()?.stdout), name)
    })
}

/// Finds a user in lines of passwd(5).
fn parse(text: &str, name: &str) -> Option<ServerUser> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (own, _, id, group) = (
            fields.next()?,
            fields.next()?,
            fields.next()?,
            fields.next()?,
        );
        let is_it = own == name || id == name;
        Some(ServerUser {
            name: own.to_owned(),
            id: id.parse().ok()?,
            group: group.parse().ok()?,
        })
        .filter(|_| is_it)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_starts_servers_as_an_unprivileged_user_unless_it_names_itself() {
        let user = ServerUser::find_for(0, None).unwrap().unwrap();
        assert_eq!(user.name(), "nobody");
        assert!(user.id != 0 && user.group != 0, "{user:?}");
        assert_eq!(ServerUser::find_for(0, Some("root")).unwrap(), None);
        let by_number = user.id.to_string();
        assert_eq!(
            ServerUser::find_for(0, Some(&by_number)).unwrap(),
            Some(user)
        );
    }

    #[test]
    fn other_callers_start_servers_as_themselves_alone() {
        assert_eq!(ServerUser::find_for(1, None).unwrap(), None);
        let error = ServerUser::find_for(1, Some("root")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("only root") && error.contains("\nhint: "));
        let error = ServerUser::find_for(0, Some("no-such-user")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("`no-such-user`") && error.contains("\nhint: "));
    }

    #[test]
    fn a_server_keeps_one_capability_and_only_for_low_ports() {
        let user = parse("a:x:7:8::/:/bin/sh\nb:x:9:10::/:/bin/sh\n", "b").unwrap();
        let words = user.words(true, false).join(" ");
        assert!(
            words.starts_with("setpriv --reuid=9 --regid=10 "),
            "{words}"
        );
        assert!(words.contains("--bounding-set=-all --no-new-privs --"));
        assert!(!words.contains("pdeathsig"), "{words}");
        let words = user.words(false, true).join(" ");
        assert!(words.contains("--ambient-caps=-all,+net_bind_service "));
        assert!(words.ends_with("--pdeathsig KILL --"), "{words}");
    }

    #[test]
    fn a_log_about_missing_rights_is_explained() {
        let user = parse("a:x:7:8::/:/bin/sh", "7").unwrap();
        let log = "setpriv: failed to execute /opt/named: Permission denied";
        let cure = user.cure(log).unwrap();
        assert!(cure.contains("user `a`") && cure.contains("--server-user"));
        assert_eq!(
            user.cure("setpriv: failed to execute named: No such file"),
            None
        );
        let of_container = "setpriv: setresuid failed: Invalid argument";
        assert!(user.cure(of_container).is_some());
    }
}
