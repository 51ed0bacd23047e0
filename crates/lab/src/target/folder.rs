//! A folder for one server's files, removed when dropped.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;

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
        fs::write(&path, text).with_context(|| format!("cannot write `{}`", path.display()))?;
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
}
