//! The lock on the name of a server that starts, so that commands which start servers at the same
//! time do not give two servers the same name.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use anyhow::Context;
use rustix::fs::OFlags;

use super::folder::{PREFIX, TempFolder};

/// Times that a file is opened again because its last owner removed it meanwhile.
const ATTEMPTS_MAX: u32 = 1_000;

/// A locked file for one name of one user. Dropping it removes the file and ends the lock.
#[derive(Debug)]
pub struct NameLock {
    path: PathBuf,
    // Closed after the file was removed: the owner alone may remove it.
    _file: File,
}

impl NameLock {
    /// Locks a name; none while another process has it.
    ///
    /// # Errors
    /// The file cannot be opened or locked, or is that of another user.
    pub fn take(name: &str) -> anyhow::Result<Option<NameLock>> {
        let user = rustix::process::geteuid().as_raw();
        let path = TempFolder::parent().join(format!("{PREFIX}{user}-{name}.lock"));
        let locked = lock(&path, user);
        locked.with_context(|| format!("cannot lock `{}`", path.display()))
    }
}

fn lock(path: &PathBuf, user: u32) -> io::Result<Option<NameLock>> {
    for _ in 0..ATTEMPTS_MAX {
        let mut options = File::options();
        options.write(true).create(true).truncate(false).mode(0o600);
        // The folder may be open to other users.
        let file = options
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(path)?;
        let locked = file.metadata()?;
        if locked.uid() != user {
            return Err(io::Error::other("it is the file of another user"));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The owner may have removed the file between the opening and the lock.
        let is_there = fs::symlink_metadata(path)
            .is_ok_and(|it| (it.dev(), it.ino()) == (locked.dev(), locked.ino()));
        if is_there {
            return Ok(Some(NameLock {
                path: path.clone(),
                _file: file,
            }));
        }
    }
    Err(io::Error::other("other processes remove it repeatedly"))
}

impl Drop for NameLock {
    fn drop(&mut self) {
        // A file that stays is locked and removed by the next server of that name.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn name_has_one_owner_at_a_time_and_leaves_no_file() {
        let folder = TempFolder::new("lock-test").unwrap();
        let user = rustix::process::geteuid().as_raw();
        let path = folder.path().join("name.lock");
        let owners = AtomicU32::new(0);
        let turns = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while turns.load(Ordering::SeqCst) < 200 {
                        if let Some(_locked) = lock(&path, user).unwrap() {
                            assert_eq!(owners.fetch_add(1, Ordering::SeqCst), 0);
                            turns.fetch_add(1, Ordering::SeqCst);
                            owners.fetch_sub(1, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
        assert!(!path.exists());
        let held = lock(&path, user).unwrap();
        assert!(held.is_some() && lock(&path, user).unwrap().is_none());
    }

    #[test]
    fn symbolic_link_and_file_of_another_user_are_refused() {
        let folder = TempFolder::new("lock-test").unwrap();
        let user = rustix::process::geteuid().as_raw();
        let (path, target) = (
            folder.path().join("name.lock"),
            folder.path().join("target"),
        );
        std::os::unix::fs::symlink(&target, &path).unwrap();
        lock(&path, user).unwrap_err();
        assert!(!target.exists());
        let other = folder.write("other.lock", "").unwrap();
        let refused = lock(&other, user + 1).unwrap_err().to_string();
        assert!(refused.contains("another user"), "{refused}");
    }
}
