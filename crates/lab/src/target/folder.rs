//! A folder for one server's files, removed when dropped.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;

use crate::files;

/// Names tried before giving up; more than one is needed only after a killed run left its folder.
const NAMES_MAX: u32 = 1_000;

/// What all their names begin with.
pub(super) const PREFIX: &str = "throng-";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A new folder under the system's temporary folder, readable by its owner alone because it
/// holds private keys.
#[derive(Debug)]
pub(crate) struct TempFolder {
    path: PathBuf,
    is_kept: bool,
}

impl TempFolder {
    /// Creates an empty folder whose name contains `label`.
    pub(crate) fn new(label: &str) -> anyhow::Result<TempFolder> {
        let parent = TempFolder::parent();
        for _ in 0..NAMES_MAX {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{PREFIX}{label}-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(TempFolder::at(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("cannot create `{}`", path.display()));
                }
            }
        }
        anyhow::bail!(
            "{NAMES_MAX} folders of earlier runs are left in `{}`",
            parent.display()
        )
    }

    /// One that is there already; it is removed as others are.
    pub(crate) fn at(path: PathBuf) -> TempFolder {
        TempFolder {
            path,
            is_kept: false,
        }
    }

    /// Where such folders are.
    pub(super) fn parent() -> PathBuf {
        std::env::temp_dir()
    }

    /// Refuses a path that servers do not read from their configuration as it is: each has its
    /// rules for quotes, spaces and separators, and some have no quotes.
    ///
    /// # Errors
    /// There is such a character in it; the hint names the cure.
    pub(super) fn check_path(&self) -> anyhow::Result<()> {
        let is_plain = |c: char| c.is_alphanumeric() || "/._-+@:=%".contains(c);
        // What is not UTF-8 becomes U+FFFD, which is not plain.
        let path = self.path.to_string_lossy();
        let other = path.chars().find(|c| !is_plain(*c));
        match other {
            None => Ok(()),
            Some(other) => anyhow::bail!(
                "servers do not take {other:?} in a path of their configuration: their files would \
                 be in {path:?}\nhint: set TMPDIR to a folder whose path has no spaces, quotes and \
                 separators"
            ),
        }
    }

    /// Does not remove it.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Its own name.
    pub(super) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file into the folder and returns its whole path.
    pub(crate) fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.path.join(name);
        let written = files::write_in_place(&path, text);
        written.with_context(|| format!("cannot write `{}`", path.display()))?;
        Ok(path)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        // Nobody is left to tell: a folder that stays behind costs a few kilobytes.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_private_and_removed_with_its_contents_on_drop() {
        use std::os::unix::fs::PermissionsExt;
        let folder = TempFolder::new("folder-test").unwrap();
        folder.write("key", "secret").unwrap();
        let path = folder.path().to_owned();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o700
        );
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn path_with_a_character_special_in_configurations_is_refused() {
        let check = |path: &str| {
            let mut folder = TempFolder::at(path.into());
            // It is not there.
            folder.keep();
            folder.check_path()
        };
        for path in [
            "/tmp/throng-nsd-7-0",
            "/tmp/user@host-1+2=3%:4",
            "/tmp/zürich",
        ] {
            check(path).unwrap();
        }
        for special in [
            " ", "\t", "\n", "'", "\"", "\\", ",", ";", "#", "{", "}", "$", "~",
        ] {
            let refused = check(&format!("/tmp/a{special}b")).unwrap_err().to_string();
            assert!(refused.contains("\nhint: set TMPDIR"), "{refused}");
            assert!(refused.starts_with("servers do not take "), "{refused}");
        }
    }
}
