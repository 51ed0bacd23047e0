//! A copy of some files of the repository, in which a script runs with stand-ins for programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use testing::folder::Folder;

/// A folder of a test. Copies lie in it, each in a folder of its own.
pub(crate) struct Place(Folder);

impl Place {
    pub(crate) fn new(test: &str) -> Place {
        Place(Folder::new(test))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.folder().join(name)
    }

    /// Writes a program that `PATH` finds before any other of its name.
    pub(crate) fn stand_in(&self, name: &str, script: &str) {
        write_program(&self.path("programs").join(name), script);
    }

    /// Copies files of the repository to a folder of this name.
    pub(crate) fn copy(&self, name: &str, files: &[&str]) -> Copy<'_> {
        let copy = Copy {
            place: self,
            folder: self.path(name),
        };
        for file in files {
            let from = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../..")
                .join(file);
            let to = copy.path(file);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
        copy
    }

    /// The lines that stand-ins have written to a file, none if there is no such file.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// One copy.
pub(crate) struct Copy<'a> {
    place: &'a Place,
    folder: PathBuf,
}

impl Copy<'_> {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a program to the copy.
    pub(crate) fn program(&self, name: &str, script: &str) {
        write_program(&self.path(name), script);
    }

    /// A script of the copy, ready to run. `PLACE` is where stand-ins may write; the user's cache
    /// is there too.
    pub(crate) fn script(&self, name: &str) -> Command {
        let script = self.path(name).display().to_string();
        self.command(&["bash", &script])
    }

    /// The same of any command.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let programs = self.place.path("programs");
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", "300"]);
        command.args(words).current_dir(&self.folder);
        command.env("PATH", format!("{}:{path}", programs.display()));
        command.env("PLACE", self.place.path(""));
        command.env("XDG_CACHE_HOME", self.place.path("cache"));
        command.env("TMPDIR", self.place.path(""));
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn write_program(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/usr/bin/env bash\nset -eu\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What a script printed, both streams.
pub(crate) fn printed(output: &Output) -> String {
    let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
    text(&output.stdout) + &text(&output.stderr)
}
