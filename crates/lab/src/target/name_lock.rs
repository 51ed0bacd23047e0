//! Locks the name of a starting server, so that two commands cannot give it to two servers at the
//! same time.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use anyhow::Context;

use super::folder::{PREFIX, TempFolder};

/// The name of a server, locked for this user and the folder that lists the servers. It is the name
/// of an abstract socket (unix(7)): the kernel frees it when the process ends for any reason, and
/// no file can be left behind or belong to another user.
#[derive(Debug)]
pub struct NameLock {
    _socket: UnixDatagram,
}

impl NameLock {
    /// Locks a name; none while another process has it.
    ///
    /// # Errors
    /// The kernel refuses the socket, or the folder for temporary files cannot be read.
    pub fn take(name: &str) -> anyhow::Result<Option<NameLock>> {
        lock(name).with_context(|| format!("cannot lock the name `{name}`"))
    }
}

fn lock(name: &str) -> io::Result<Option<NameLock>> {
    let user = rustix::process::geteuid().as_raw();
    let folder = fs::metadata(TempFolder::parent())?;
    let (device, inode) = (folder.dev(), folder.ino());
    let address = format!("{PREFIX}{user}-{device:x}-{inode:x}-{name}");
    match UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(address)?) {
        Ok(socket) => Ok(Some(NameLock { _socket: socket })),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn name_has_one_owner_at_a_time() {
        let name = format!("lock-test-{}", std::process::id());
        let owners = AtomicU32::new(0);
        let turns = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while turns.load(Ordering::SeqCst) < 200 {
                        if let Some(_locked) = lock(&name).unwrap() {
                            assert_eq!(owners.fetch_add(1, Ordering::SeqCst), 0);
                            turns.fetch_add(1, Ordering::SeqCst);
                            owners.fetch_sub(1, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
        let held = lock(&name).unwrap();
        assert!(held.is_some() && lock(&name).unwrap().is_none());
        assert!(lock(&format!("{name}-other")).unwrap().is_some());
        drop(held);
        assert!(lock(&name).unwrap().is_some());
    }

    #[test]
    fn name_as_long_as_may_be_fits() {
        let name = format!("{:0>64}", std::process::id());
        assert!(lock(&name).unwrap().is_some());
    }
}
