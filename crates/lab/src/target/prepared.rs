//! Programs that Debian 12 does not have: CoreDNS, and newer releases out of Debian 13.
//!
//! `servers/prepare` builds the one from its Go module and unpacks the others, both into
//! `target/servers` of this repository. Debian 13's programs need newer libraries than the host
//! has, so each is run by the dynamic loader it came with. Nothing of it is installed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

/// What to do when one of them is missing.
const HINT: &str = "hint: run `servers/prepare`, or `./test`, which does";

/// Relative to this crate.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/servers");

/// A command that runs a program of Debian 13, such as `usr/bin/curl` (8.14, with HTTP/3) or
/// `usr/bin/kdig` (3.4), ready for its arguments.
///
/// # Errors
/// It was not unpacked; the message says how to do that.
pub fn debian13(program: &str) -> anyhow::Result<Command> {
    let mut words = debian13_words(program)?.into_iter();
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
    let path = Path::new(FOLDER).join("debian13/servers").join(name);
    anyhow::ensure!(
        path.is_file(),
        "`{name}` of Debian 13 is not unpacked\n{HINT}"
    );
    Ok(path)
}

/// The words with which a command line for such a program begins.
pub(super) fn debian13_words(program: &str) -> anyhow::Result<Vec<OsString>> {
    let root = Path::new(FOLDER).join("debian13");
    let path = root.join(program);
    anyhow::ensure!(
        path.is_file(),
        "`{program}` of Debian 13 is not unpacked\n{HINT}"
    );
    let libraries = entry(&root.join("usr/lib"), |name| name.ends_with("-linux-gnu"))?;
    let loader = entry(&libraries, |name| name.starts_with("ld-linux"))?;
    let mut words: Vec<OsString> = vec![loader.into(), "--argv0".into()];
    let name = path.file_name().unwrap_or(OsStr::new(program));
    words.extend([name.to_owned(), "--library-path".into()]);
    words.extend([libraries.into_os_string(), path.into_os_string()]);
    Ok(words)
}

/// The path of CoreDNS.
pub(super) fn coredns() -> anyhow::Result<PathBuf> {
    let path = Path::new(FOLDER).join("coredns/coredns");
    anyhow::ensure!(path.is_file(), "CoreDNS is not built\n{HINT}");
    Ok(path)
}

/// The one entry of `folder` whose name is as wanted; its name depends on the architecture.
fn entry(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> anyhow::Result<PathBuf> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
    let found = entries
        .flatten()
        .find(|entry| entry.file_name().to_str().is_some_and(&is_wanted));
    let found = found.with_context(|| format!("`{}` is not whole\n{HINT}", folder.display()))?;
    Ok(found.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_that_is_not_there_is_an_error_with_the_cure() {
        let error = debian13("usr/bin/no-such-program").unwrap_err().to_string();
        assert!(error.contains("servers/prepare"), "{error}");
    }
}
