//! The network namespace from which a source is queried: this process's, or that of the observed
//! program. A source on loopback there can be reached only from within.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::proc::Root;

/// A network namespace; by default the own one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network(Option<Arc<File>>);

impl Network {
    /// That of a process of this host; none if it is gone, or this user may not see it.
    pub(crate) fn of(root: &Root, pid: u32) -> Option<Network> {
        let other = format!("proc/{pid}/ns/net");
        if root.link(&other)? == Root::this().link("proc/thread-self/ns/net")? {
            return Some(Network::default());
        }
        let file = File::open(root.path(&other)).ok()?;
        Some(Network(Some(Arc::new(file))))
    }

    /// Opens something in it. A socket is of the network namespace in which it was opened, wherever
    /// it is used: a thread of its own moves there, opens it, and ends.
    pub(crate) fn open<T: Send>(
        &self,
        open: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        let Some(namespace) = &self.0 else {
            return open();
        };
        let opened = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(namespace.as_fd(), kind)?;
                open()
            });
            thread.join()
        });
        opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// A connection that was made from there.
    pub(crate) fn connect(&self, to: &SocketAddr, within: Duration) -> io::Result<TcpStream> {
        self.open(|| TcpStream::connect_timeout(to, within))
    }
}
