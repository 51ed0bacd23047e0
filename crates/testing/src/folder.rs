//! The temporary folder of one test, and the check that no process is left in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::program::{END_MAX, command_line, have_ended, pids_in};

/// The temporary folder of one test. Dropping it waits until no process works in it, removes it,
/// and panics if one has not ended after two minutes.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes a folder whose name has that of the test and the ID of this process.
    pub fn new(test: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("throng-{}-{test}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    /// Makes one with these files, each a path in it and a content.
    pub fn with(test: &str, files: &[(&str, &str)]) -> Folder {
        let folder = Folder::new(test);
        for (path, content) in files {
            folder.write(path, content);
        }
        folder
    }

    /// Its path.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it, whether or not there is one.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file in it, and the folders above the file; returns the file's path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Again, because a process that ends may have started another one.
        let until = Instant::now() + END_MAX;
        let mut left = pids_in(&self.0);
        while !left.is_empty() && have_ended(&left, until) {
            left = pids_in(&self.0);
        }
        let left: Vec<String> = left.into_iter().map(command_line).collect();
        let _ = fs::remove_dir_all(&self.0);
        assert!(
            left.is_empty() || std::thread::panicking(),
            "still running: {left:?}"
        );
    }
}
