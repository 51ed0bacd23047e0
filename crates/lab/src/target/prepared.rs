//! Programs that Debian 12 does not have: CoreDNS, and newer releases out of Debian 13.
//!
//! `servers/prepare` builds the one from its Go module and unpacks the others, into the user's
//! cache (root's is in /var/cache); the environment variable [`SETTING`] names another folder.
//! Debian 13's programs need newer libraries than the host has, so each is run by the dynamic
//! loader it came with. Nothing is installed. Programs that another user could have put there are
//! refused, because root may run them.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::files;

/// Names the folder with the prepared programs, where it is not the one in the user's cache.
pub const SETTING: &str = "THRONG_PREPARED_SERVERS";

/// Root's cache: servers that root starts run as another user, whom root's home is closed to.
const CACHE_OF_ROOT: &str = "/var/cache";

/// A command that runs a program of Debian 13, such as `usr/bin/curl` (8.14, with HTTP/3) or
/// `usr/bin/kdig` (3.4), ready for its arguments.
///
/// # Errors
/// It was not unpacked; the message says how to do that.
pub fn debian13(program: &str) -> anyhow::Result<Command> {
    let mut words = words_in(&folder()?, program, "")?.into_iter();
    let loader = words.next().context("no loader")?;
    let mut command = Command::new(loader);
    command.args(words);
    Ok(command)
}

/// The path of a newer release of a server that the host has too, such as `named` (9.20).
///
/// # Errors
/// It was not unpacked; the message says how to do that.
pub fn debian13_server(name: &str) -> anyhow::Result<PathBuf> {
    program_in(&folder()?, &Path::new("debian13/servers").join(name), "")
}

/// Whether the caller names the folder with prepared programs.
pub(super) fn is_named() -> bool {
    env::var_os(SETTING).is_some_and(|it| !it.is_empty())
}

/// The words with which a command line for such a program begins; `instead` is what users can do
/// where it is missing.
pub(super) fn debian13_words(program: &str, instead: &str) -> anyhow::Result<Vec<OsString>> {
    words_in(&folder()?, program, instead)
}

fn words_in(folder: &Path, program: &str, instead: &str) -> anyhow::Result<Vec<OsString>> {
    let path = program_in(folder, &Path::new("debian13").join(program), instead)?;
    let root = fs::canonicalize(folder.join("debian13"))?;
    let libraries = entry(&root.join("usr/lib"), |name| name.ends_with("-linux-gnu"))?;
    let loader = entry(&libraries, |name| name.starts_with("ld-linux"))?;
    let loader = trusted(&loader)?;
    let mut words: Vec<OsString> = vec![loader.into(), "--argv0".into()];
    let name = Path::new(program).file_name();
    words.push(name.unwrap_or(OsStr::new(program)).to_owned());
    words.extend(["--library-path".into(), libraries.into_os_string()]);
    words.push(path.into_os_string());
    Ok(words)
}

/// The path of CoreDNS.
pub(super) fn coredns() -> anyhow::Result<PathBuf> {
    let instead = "install CoreDNS, which Debian has no package of, as `coredns` on the PATH";
    program_in(&folder()?, Path::new("coredns/coredns"), instead)
}

/// Where the prepared programs are: as set, or in the user's cache.
fn folder() -> anyhow::Result<PathBuf> {
    let is_root = rustix::process::geteuid().is_root();
    folder_by(env::var_os, is_root)
}

fn folder_by(
    variable: impl Fn(&'static str) -> Option<OsString>,
    is_root: bool,
) -> anyhow::Result<PathBuf> {
    let set = |name| variable(name).filter(|it| !it.is_empty());
    if let Some(folder) = set(SETTING) {
        return Ok(folder.into());
    }
    let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| is_root.then(|| CACHE_OF_ROOT.into()));
    let cache = cache.or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")));
    let cache = cache.with_context(|| {
        format!(
            "no folder for prepared servers: HOME is not set\nhint: name the folder in {SETTING}"
        )
    })?;
    Ok(cache.join("throng/servers"))
}

/// The path of a program below `folder`, without links. Where it is missing, the error names what
/// else can be done, `instead`, if there is anything.
fn program_in(folder: &Path, program: &Path, instead: &str) -> anyhow::Result<PathBuf> {
    let path = folder.join(program);
    let comma = if instead.is_empty() { "" } else { ", " };
    anyhow::ensure!(
        path.is_file(),
        "`{}` is not there\nhint: {instead}{comma}run `servers/prepare` in Throng's repository \
         (`./test` does), or name the folder with prepared programs in {SETTING}",
        path.display()
    );
    trusted(&path)
}

/// The path without links, if no other user could have put something else there.
fn trusted(path: &Path) -> anyhow::Result<PathBuf> {
    let real =
        fs::canonicalize(path).with_context(|| format!("`{}` cannot be read", path.display()))?;
    files::check_program(&real).map_err(|error| {
        let cure = files::cure(&error).unwrap_or_default();
        anyhow::anyhow!("`{}` is not run: {error}\nhint: {cure}", path.display())
    })?;
    Ok(real)
}

/// The one entry of `folder` whose name is as wanted; its name depends on the architecture.
fn entry(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> anyhow::Result<PathBuf> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
    let found = entries
        .flatten()
        .find(|entry| entry.file_name().to_str().is_some_and(&is_wanted));
    let found = found.with_context(|| {
        format!(
            "`{}` is not whole\nhint: remove it, and run `servers/prepare`",
            folder.display()
        )
    })?;
    Ok(found.path())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;
    use crate::target::folder::TempFolder;

    /// A folder as `servers/prepare` fills one.
    fn filled() -> (TempFolder, PathBuf) {
        let place = TempFolder::new("servers").unwrap();
        let folder = place.path().join("servers");
        for path in [
            "coredns",
            "debian13/usr/sbin",
            "debian13/usr/lib/x86_64-linux-gnu",
        ] {
            fs::create_dir_all(folder.join(path)).unwrap();
        }
        for path in [
            "coredns/coredns",
            "debian13/usr/sbin/knotd",
            "debian13/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
        ] {
            fs::write(folder.join(path), "").unwrap();
        }
        (place, folder)
    }

    #[test]
    fn program_that_is_not_there_is_an_error_with_the_cure() {
        let (_place, folder) = filled();
        let error = words_in(&folder, "usr/bin/none", "buy one")
            .unwrap_err()
            .to_string();
        for part in [
            "debian13/usr/bin/none",
            "hint: buy one, run `servers/prepare`",
            SETTING,
        ] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn prepared_programs_of_root_are_where_its_servers_can_enter() {
        let folder = |set: &[(&str, &str)], is_root: bool| {
            let value = |name| set.iter().find(|(each, _)| *each == name);
            folder_by(|name| value(name).map(|it| it.1.into()), is_root).ok()
        };
        let home = ("HOME", "/of-user");
        let of_root = folder(&[home], true);
        assert_eq!(of_root, Some("/var/cache/throng/servers".into()));
        let of_user = folder(&[home], false);
        assert_eq!(of_user, Some("/of-user/.cache/throng/servers".into()));
        let set = folder(&[home, ("XDG_CACHE_HOME", "/c")], true);
        assert_eq!(set, Some("/c/throng/servers".into()));
        let named = folder(&[home, (SETTING, "/named")], true);
        assert_eq!(named, Some("/named".into()));
        assert_eq!(folder(&[], false), None);
    }

    #[test]
    fn a_program_is_run_from_where_its_links_lead() {
        let (place, folder) = filled();
        let link = place.path().join("link");
        symlink(&folder, &link).unwrap();
        let words = words_in(&link, "usr/sbin/knotd", "").unwrap();
        let real = fs::canonicalize(&folder).unwrap();
        assert_eq!(words[1..4], ["--argv0", "knotd", "--library-path"]);
        for word in [&words[0], &words[4], &words[5]] {
            assert!(Path::new(word).starts_with(&real), "{words:?}");
        }
    }

    #[test]
    fn what_other_users_can_replace_is_not_run() {
        for open in ["coredns/coredns", "coredns", ""] {
            let (_place, folder) = filled();
            let path = folder.join(open);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
            let error = program_in(&folder, Path::new("coredns/coredns"), "").unwrap_err();
            let error = error.to_string();
            assert!(error.contains("other users can write"), "{open}: {error}");
            assert!(error.contains("chmod"), "{error}");
        }
    }

    #[test]
    fn what_belongs_to_another_user_is_not_run() {
        for foreign in [
            "debian13/usr/sbin/knotd",
            "debian13/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
            "debian13/usr/lib/x86_64-linux-gnu",
            "debian13",
            "",
        ] {
            let (_place, folder) = filled();
            if chown(folder.join(foreign), Some(12_345), None).is_err() {
                // Only root gives files away.
                return;
            }
            let error = words_in(&folder, "usr/sbin/knotd", "")
                .unwrap_err()
                .to_string();
            assert!(error.contains("belongs to user 12345"), "{error}");
            assert!(error.contains("chown"), "{error}");
        }
    }
}
