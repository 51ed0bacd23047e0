//! `packaging/release` makes a release of a commit that is one, signed, and publishes nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use testing::folder::Folder;
use testing::program::{Finished, execute};

use crate::copy::{Copy, Place};
use crate::package::{QUICKLY, binary_without_paths, prepared_programs};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const OWNER: &str = "A Tester <tester@example.org>";

/// The home of gpg in a place, with a key. gpg's agent ends with it.
struct Keys(PathBuf);

impl Keys {
    fn new(place: &Place) -> Keys {
        let keys = Keys(place.path("gpg"));
        fs::create_dir(&keys.0).unwrap();
        fs::set_permissions(&keys.0, PermissionsExt::from_mode(0o700)).unwrap();
        let mut command = Command::new("gpg");
        command.args(["--batch", "--pinentry-mode", "loopback", "--passphrase", ""]);
        command.args(["--quick-generate-key", OWNER, "ed25519", "sign", "never"]);
        keys.finished(command).succeeded();
        keys
    }

    /// Runs a command to its end, with these keys.
    fn finished(&self, mut command: Command) -> Finished {
        // The agent is of this folder, too, which waits for its end.
        command.env("GNUPGHOME", &self.0).env("TMPDIR", &self.0);
        let output = command.output().unwrap();
        Finished::new(&format!("{command:?}"), output)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let mut command = Command::new("gpgconf");
        command.args(["--kill", "all"]).env("GNUPGHOME", &self.0);
        let _ = command.status();
    }
}

/// A repository with the files of this one, and nothing else.
fn repository(place: &Place) -> Copy<'_> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let files = execute(&format!("git -C {root} ls-files")).succeeded();
    let is_there = |file: &&str| Path::new(root).join(file).is_file();
    let files: Vec<&str> = files.lines().filter(is_there).collect();
    let copy = place.copy("clone", &files);
    git(&copy, "init --quiet");
    copy
}

fn git(copy: &Copy<'_>, arguments: &str) -> String {
    let user = "-c user.name=tester -c user.email=tester@example.org -c commit.gpgsign=false";
    let folder = copy.path("");
    execute(&format!("git -C {} {user} {arguments}", folder.display())).succeeded()
}

/// Commits the repository with this heading of the version in the change log.
fn commit(copy: &Copy<'_>, heading: &str) {
    let log = fs::read_to_string(copy.path("CHANGELOG.md")).unwrap();
    let of_version = format!("## {VERSION}");
    let is_heading = |line: &str| line.starts_with(&of_version);
    let lines = log.lines();
    let lines = lines.map(|line| if is_heading(line) { heading } else { line });
    let lines: Vec<&str> = lines.collect();
    fs::write(copy.path("CHANGELOG.md"), lines.join("\n") + "\n").unwrap();
    git(copy, "add --all");
    git(copy, "commit --quiet --message=change");
}

/// Notes that all tests have passed on the commit.
fn pass(copy: &Copy<'_>) {
    fs::create_dir_all(copy.path("target")).unwrap();
    fs::write(copy.path("target/passed"), git(copy, "rev-parse HEAD")).unwrap();
}

fn release(copy: &Copy<'_>, keys: &Keys, arguments: &[&str]) -> Finished {
    let mut command = copy.script("packaging/release");
    command.args(arguments).envs([prepared_programs()]);
    command.env(QUICKLY.0, QUICKLY.1);
    command.env_remove("THRONG_MAINTAINER");
    keys.finished(command)
}

#[test]
fn commit_or_key_that_makes_no_release_is_refused_with_the_cure() {
    let place = Place::new("release-refused");
    let keys = Keys::new(&place);
    let copy = repository(&place);
    let refused = |arguments: &[&str], error: &str, hint: &str| {
        release(&copy, &keys, arguments).refused_with(error, hint);
    };
    let of_owner = [VERSION, "--key", "tester@example.org"];
    commit(&copy, &format!("## {VERSION}, not yet released"));
    refused(
        &[VERSION],
        "wrong arguments",
        "packaging/release VERSION --key KEY",
    );
    refused(
        &["99.0.0", "--key", "x"],
        &format!("the version is {VERSION}"),
        "change",
    );
    refused(&of_owner, "CHANGELOG.md: no section", "date");
    commit(&copy, &format!("## {VERSION}, 2026-11-30"));
    refused(&of_owner, "target/passed: not all tests", "./test");
    pass(&copy);
    fs::write(copy.path("new"), "").unwrap();
    refused(&of_owner, "the tree has changes", "git status");
    fs::remove_file(copy.path("new")).unwrap();
    refused(
        &[VERSION, "--key", "other"],
        "no secret key `other`",
        "--list-secret-keys",
    );
    let missing = copy.path("missing").display().to_string();
    let with_binary = [&of_owner[..], &[missing.as_str()]].concat();
    refused(
        &with_binary,
        &format!("no program `{missing}`"),
        "leave it out",
    );
    let with_binary = [&of_owner[..], &["/bin/true"]].concat();
    refused(&with_binary, "true` is not Throng", "leave it out");
    git(&copy, &format!("tag v{VERSION}"));
    refused(&of_owner, &format!("the tag v{VERSION} exists"), "next one");
    assert!(!copy.path("packages").exists());
}

#[test]
fn release_is_packages_and_a_signature_of_their_checksums_and_publishes_nothing() {
    let place = Place::new("release");
    let keys = Keys::new(&place);
    let copy = repository(&place);
    commit(&copy, &format!("## {VERSION}, 2026-11-30"));
    pass(&copy);
    let folder = Folder::new("release-binary");
    let binary = binary_without_paths(&folder);
    let arguments = [VERSION, "--key", OWNER, &binary];
    let printed = release(&copy, &keys, &arguments).succeeded();
    for part in [
        "Nothing is published",
        "git tag --sign",
        "git push origin v",
    ] {
        assert!(printed.contains(part), "{printed}");
    }
    assert_eq!(git(&copy, "tag"), "");
    assert_eq!(git(&copy, "status --porcelain"), "");

    let made = copy.path(&format!("packages/{VERSION}"));
    let in_made = |words: &[&str]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(&made);
        keys.finished(command)
    };
    in_made(&["gpg", "--batch", "--verify", "SHA256SUMS.asc", "SHA256SUMS"]).succeeded();
    let sums = in_made(&["sha256sum", "--check", "SHA256SUMS"]).succeeded();
    assert_eq!(sums.lines().count(), 4, "{sums}");
    let files = fs::read_dir(&made).unwrap().count();
    assert_eq!(files, 4 + 2, "files that are not in SHA256SUMS");
    let field = in_made(&["bash", "-c", "dpkg-deb --field *.deb Maintainer"]);
    assert_eq!(field.succeeded().trim_end(), OWNER);
    // A signature of something else is no signature of this.
    fs::write(made.join("SHA256SUMS"), "").unwrap();
    in_made(&["gpg", "--batch", "--verify", "SHA256SUMS.asc", "SHA256SUMS"]).ended_with(1);
    let again = release(&copy, &keys, &arguments);
    again.refused_with(&format!("`packages/{VERSION}` exists"), "remove it");
}
