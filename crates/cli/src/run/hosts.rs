//! Agents on other hosts, which are reached by ssh or a command like it: `--hosts FILE`.

use std::ffi::OsString;
use std::path::Path;

use driver::clock::Clock;
use lab::agents::{AgentCommand, Fleet, GreetingError, Place, greet, own_hello};

use super::{elsewhere, identity};
use crate::agent;
use crate::failure::Failure;
use crate::inputs;
use crate::signals::Interrupt;

/// How hosts are reached, unless told otherwise.
const SSH: &str = "ssh -T";
/// Where the name of a host goes in another command; without it, behind all words.
const NAME: &str = "{}";
/// The program there, unless told otherwise.
const PROGRAM: &str = "throng";
/// As many as a run may have processes.
const HOSTS_MAX: usize = 1_024;

/// Where an agent is to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// As ssh takes it.
    name: String,
    /// The path of the program there.
    program: String,
}

/// The hosts of a run, and how they are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hosts {
    each: Vec<Host>,
    ssh: Vec<String>,
}

impl Hosts {
    /// Those of the file at `path`, which `command` reaches.
    ///
    /// # Errors
    /// The file cannot be read, or has no hosts, or they cannot be reached so.
    pub(super) fn of(path: &Path, command: Option<&str>) -> Result<Hosts, Failure> {
        let each = read(path)?;
        let ssh = shlex::split(command.unwrap_or(SSH)).filter(|words| !words.is_empty());
        let ssh = ssh.ok_or_else(|| {
            Failure::usage(
                "--ssh: not a valid command",
                "write it as for a shell, such as 'ssh -p 2222'",
            )
        })?;
        if ssh[0].starts_with('-') {
            return Err(Failure::usage(
                format!("--ssh: `{}` is an option, not a program", ssh[0]),
                "write the program first, such as 'ssh -p 2222'",
            ));
        }
        Ok(Hosts { each, ssh })
    }

    /// Starts an agent on each, and waits until all have said who they are.
    ///
    /// # Errors
    /// One cannot be started, does not answer, or is another program.
    pub(super) fn start(&self, clock: Clock, interrupt: &Interrupt) -> Result<Fleet, Failure> {
        let own = own_hello(identity::program()?);
        let commands: Vec<_> = self.each.iter().map(|it| it.command(&self.ssh)).collect();
        let greeted = greet(&commands, Some(own), clock, || interrupt.has_come());
        greeted.map_err(|error| match error {
            GreetingError::Unreachable { agent, name, how } => self.unreachable(agent, &name, &how),
            error => elsewhere::not_greeted(error),
        })
    }

    fn unreachable(&self, agent: usize, name: &str, how: &str) -> Failure {
        let host = &self.each[agent];
        Failure::usage(
            format!("{name}: no agent could be started: {how}"),
            format!(
                "`{} --version` has to work; the path of the program there goes behind the host's \
                 name",
                host.words(&self.ssh).join(" ")
            ),
        )
    }
}

impl Host {
    fn command(&self, ssh: &[String]) -> AgentCommand {
        let mut words = self.words(ssh).into_iter().map(OsString::from);
        AgentCommand {
            program: words.next().unwrap_or_default(),
            before: words.chain([agent::NAME.into()]).collect(),
            after: vec![agent::HELLO.into()],
            place: Place::Host(self.name.clone()),
        }
    }

    /// The command that runs the program there, without its arguments.
    fn words(&self, ssh: &[String]) -> Vec<String> {
        let words = ssh.iter().cloned();
        if ssh.iter().any(|word| word.contains(NAME)) {
            let words = words.map(|word| word.replace(NAME, &self.name));
            return words.chain([self.program.clone()]).collect();
        }
        // OpenSSH reads options behind the host's name too, unless `--` has ended them.
        let end = is_openssh(&ssh[0]).then(|| "--".to_owned());
        // The shell of that host splits the line into words.
        let program = shlex::try_quote(&self.program)
            .map_or_else(|_| self.program.clone(), |quoted| quoted.into_owned());
        words
            .chain(end)
            .chain([self.name.clone(), program])
            .collect()
    }
}

/// True of OpenSSH, by its name: other commands may not know `--`.
fn is_openssh(program: &str) -> bool {
    Path::new(program).file_name() == Some("ssh".as_ref())
}

/// One host a line, with the path of the program behind it if that is not found there; `#` begins
/// a comment.
fn read(path: &Path) -> Result<Vec<Host>, Failure> {
    let text = inputs::text(path).map_err(|error| {
        Failure::usage(
            format!("cannot read {}: {error}", path.display()),
            "give --hosts a file with a host in each line",
        )
    })?;
    let wrong = |what: String| {
        Failure::usage(
            format!("{}: {what}", path.display()),
            "write a host in each line, and behind it the path of throng there, if need be",
        )
    };
    let mut hosts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, program) = match words.as_slice() {
            [] => continue,
            [name] => (name, PROGRAM),
            [name, program] => (name, *program),
            _ => return Err(wrong(format!("line {}: more than two words", number + 1))),
        };
        if name.starts_with('-') {
            return Err(wrong(format!(
                "line {}: `{name}` is not a host",
                number + 1
            )));
        }
        if program.starts_with('-') {
            let what = format!("`{program}` is an option, not a program");
            return Err(wrong(format!("line {}: {what}", number + 1)));
        }
        hosts.push(Host {
            name: (*name).to_owned(),
            program: program.to_owned(),
        });
    }
    match hosts.len() {
        0 => Err(wrong("no hosts".to_owned())),
        1..=HOSTS_MAX => Ok(hosts),
        many => Err(wrong(format!("{many} hosts, at most {HOSTS_MAX}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_a_line_is_read_with_comments_and_paths() {
        let path = std::env::temp_dir().join(format!("throng-hosts-{}", std::process::id()));
        let hosts = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let hosts = read(&path);
            std::fs::remove_file(&path).unwrap();
            hosts.map_err(|failure| failure.what().to_owned())
        };
        let read = hosts("# ours\nnode-1\n\nme@node-2  /opt/throng # new\n").unwrap();
        let each: Vec<(&str, &str)> = (read.iter())
            .map(|it| (it.name.as_str(), it.program.as_str()))
            .collect();
        assert_eq!(each, [("node-1", "throng"), ("me@node-2", "/opt/throng")]);
        for (text, told) in [
            ("", "no hosts"),
            ("a b c\n", "line 1: more than two words"),
            (
                "a\n-oProxyCommand=x\n",
                "line 2: `-oProxyCommand=x` is not a host",
            ),
            (
                "a\nh1 -I/x.so\n",
                "line 2: `-I/x.so` is an option, not a program",
            ),
        ] {
            let error = hosts(text).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn a_command_is_one_that_the_other_shell_splits() {
        let host = Host {
            name: "node".to_owned(),
            program: "/opt/a b/throng".to_owned(),
        };
        let command = host.command(&["ssh".to_owned(), "-p".to_owned(), "22".to_owned()]);
        let words = ["-p", "22", "--", "node", "'/opt/a b/throng'", "agent"];
        assert_eq!(command.before, words.map(OsString::from));
        // Another command may take `--` for the host.
        let command = host.command(&["./reach".to_owned()]);
        assert_eq!(command.before[0], "node");
        // A command that says where the name goes takes words as they are.
        let words = "kubectl exec -i pod/{} --".split(' ').map(str::to_owned);
        let command = host.command(&words.collect::<Vec<_>>());
        assert_eq!(command.program, "kubectl");
        let words = ["exec", "-i", "pod/node", "--", "/opt/a b/throng", "agent"];
        assert_eq!(command.before, words.map(OsString::from));
    }

    #[test]
    fn a_command_that_begins_with_an_option_is_refused() {
        let path = std::env::temp_dir().join(format!("throng-ssh-{}", std::process::id()));
        std::fs::write(&path, "node\n").unwrap();
        let refused = Hosts::of(&path, Some("-oProxyCommand=x ssh"));
        let taken = Hosts::of(&path, Some("/usr/bin/ssh -T"));
        std::fs::remove_file(&path).unwrap();
        assert!(taken.is_ok());
        let told = refused.err().unwrap();
        assert!(told.what().contains("is an option"), "{}", told.what());
    }
}
