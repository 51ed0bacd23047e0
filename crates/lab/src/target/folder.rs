//! A folder for one server's files, removed when dropped.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;

use super::user::ServerUser;
use crate::files;

/// Names tried before giving up; more than one is needed only after a killed run left its folder.
const NAMES_MAX: u32 = 1_000;

/// Prefix of all their names.
pub(super) const PREFIX: &str = "throng-";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Mode of the folder of another user's server: that user's group may add files, which inherit the
/// group, and the sticky bit prevents it from replacing ours (inode(7)).
const SHARED: u32 = 0o3770;
/// Modes of our files there: readable, and readable and writable for the server.
const READABLE: u32 = 0o640;
const WRITABLE: u32 = 0o660;

/// A new folder under the system's temporary folder. Because it holds private keys, only its owner
/// can read it, and the user of its server if that is another.
#[derive(Debug)]
pub(crate) struct TempFolder {
    path: PathBuf,
    is_kept: bool,
    user: Option<ServerUser>,
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

    /// An existing folder; it is removed like a new one.
    pub(crate) fn at(path: PathBuf) -> TempFolder {
        TempFolder {
            path,
            is_kept: false,
            user: None,
        }
    }

    /// Lets a server of this user read files written from now on, and add files.
    pub(super) fn share(&mut self, user: ServerUser) -> anyhow::Result<()> {
        chown(&self.path, None, Some(user.group()))
            .and_then(|()| fs::set_permissions(&self.path, PermissionsExt::from_mode(SHARED)))
            .with_context(|| {
                format!(
                    "cannot let user `{}` into `{}`\nhint: name another user with --server-user; \
                     root is one",
                    user.name(),
                    self.path.display()
                )
            })?;
        self.user = Some(user);
        Ok(())
    }

    /// The user of its server, if that is another than the caller.
    pub(super) fn user(&self) -> Option<&ServerUser> {
        self.user.as_ref()
    }

    /// Lets the server write to a file of ours: its log.
    pub(super) fn let_server_write(&self, path: &Path) -> std::io::Result<()> {
        self.set_mode(path, WRITABLE)
    }

    /// Sets the mode of a file of ours, which no other user can replace here.
    fn set_mode(&self, path: &Path, mode: u32) -> std::io::Result<()> {
        match self.user {
            Some(_) => fs::set_permissions(path, PermissionsExt::from_mode(mode)),
            None => Ok(()),
        }
    }

    /// The parent of such folders.
    pub(super) fn parent() -> PathBuf {
        std::env::temp_dir()
    }

    /// Refuses a path with characters that are special in servers' configurations: each server has
    /// its rules for quotes, spaces and separators, and some have no quotes.
    ///
    /// # Errors
    /// The path has such a character; the hint names the cure.
    pub(super) fn check_path(&self) -> anyhow::Result<()> {
        let is_plain = |c: char| c.is_alphanumeric() || "/._-+@:=%".contains(c);
        // Invalid UTF-8 becomes U+FFFD, which is refused.
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
        let written =
            files::write_in_place(&path, text).and_then(|()| self.set_mode(&path, READABLE));
        written.with_context(|| format!("cannot write `{}`", path.display()))?;
        Ok(path)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        // An error cannot be reported from `drop`; a folder left behind costs a few kilobytes.
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
    fn a_server_of_another_user_adds_files_and_cannot_replace_ours() {
        if !rustix::process::geteuid().is_root() {
            // Only root has such servers.
            return;
        }
        let mut folder = TempFolder::new("folder-test").unwrap();
        let user = ServerUser::find(None).unwrap().unwrap();
        folder.share(user.clone()).unwrap();
        folder.write("key", "secret").unwrap();
        let run = |script: &str| {
            let words = user.words(true, false);
            let mut command = std::process::Command::new(&words[0]);
            command.args(&words[1..]).args(["sh", "-c", script]);
            command.current_dir(folder.path()).output().unwrap()
        };
        let read = run("cat key && echo own >added");
        assert_eq!(
            (read.status.code(), &*read.stdout),
            (Some(0), &b"secret"[..])
        );
        for script in [
            "echo other >key",
            "rm -f key",
            "mv -f added key",
            "ln -sf / key",
        ] {
            assert!(!run(script).status.success(), "{script}");
        }
        folder.write("key", "another secret").unwrap();
        // Files of the server are never written to.
        let error = format!("{:#}", folder.write("added", "").unwrap_err());
        assert!(error.contains("belongs to user"), "{error}");
        let mode = fs::metadata(folder.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o007, 0, "{mode:o}");
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
