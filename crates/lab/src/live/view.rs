//! What servers of live snapshots have in common.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

/// Behind the workers, and whatever else runs.
const NICE: i32 = 10;

/// Gives the calling thread, which serves or draws snapshots, a lower priority than workers have.
pub fn yield_to_workers() {
    // In Linux it is that of the thread. Without it, views cost workers a little more.
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// The address cannot be listened on, or the system gives no further thread.
#[derive(Debug)]
pub struct ListenError {
    what: &'static str,
    address: SocketAddr,
    error: io::Error,
}

impl ListenError {
    /// Of what cannot be served, such as `metrics`.
    pub fn new(what: &'static str, address: SocketAddr, error: io::Error) -> ListenError {
        ListenError {
            what,
            address,
            error,
        }
    }

    /// What helps.
    pub fn cure(&self) -> &'static str {
        match self.error.kind() {
            ErrorKind::AddrInUse => "give another port; 0 has the system choose a free one",
            ErrorKind::AddrNotAvailable => "give an address of this host, such as 127.0.0.1",
            ErrorKind::PermissionDenied => "give a port from 1024 up",
            _ => "check the address and the limits of this user (ulimit -a)",
        }
    }
}

impl Display for ListenError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ListenError {
            what,
            address,
            error,
        } = self;
        write!(f, "cannot serve {what} at {address}: {error}")
    }
}

impl Error for ListenError {}
