//! Whether this host can reach the network towards a target: by a route over an interface that is
//! up and has a carrier.
//!
//! Sockets do not report this: TCP retransmits, and a link without carrier drops datagrams after
//! the send has succeeded. So a thread reads the kernel's tables whenever the kernel reports a
//! change of interfaces, addresses or routes. It notices configuration changes at once, and the
//! loss of a carrier within a second.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use proto::Instant;

use crate::clock::Clock;
use crate::netlink::{Changes, Netlink, wait_for};

/// Pause between two reads: on some hosts routes change all the time.
const PAUSE: Duration = Duration::from_millis(10);
/// Outages kept of each target; later ones of a flapping link are dropped.
const CUTS_MAX: usize = 1_000;

/// Remote address and local address; the kernel chooses the latter if there is none.
pub type Way = (SocketAddr, Option<IpAddr>);

/// Watches the routes to some targets until it is dropped.
#[derive(Debug)]
pub struct Watch {
    /// Closed to end it.
    end: UnixStream,
    thread: JoinHandle<Vec<Vec<Range<Instant>>>>,
}

impl Watch {
    /// Watches the routes to targets in the network namespace of the calling thread; instants are
    /// those of `clock`. None if the kernel does not allow it.
    pub fn start(clock: Clock, targets: &[Vec<Way>]) -> Option<Watch> {
        let changes = Changes::of_ways().ok()?;
        let netlink = Netlink::open().ok()?;
        let (end, ended) = UnixStream::pair().ok()?;
        let targets = targets.iter().map(|ways| Target::new(&netlink, ways));
        let targets: Vec<Target> = targets.collect();
        let name = Builder::new().name("ways".into());
        let thread = name.spawn(move || watch(clock, targets, &netlink, (&changes, &ended)));
        let thread = thread.ok()?;
        Some(Watch { end, thread })
    }

    /// Outages of each target.
    pub fn end(self) -> Vec<Vec<Range<Instant>>> {
        drop(self.end);
        self.thread.join().unwrap_or_default()
    }
}

fn watch(
    clock: Clock,
    mut targets: Vec<Target>,
    netlink: &Netlink,
    (changes, ended): (&Changes, &UnixStream),
) -> Vec<Vec<Range<Instant>>> {
    while changes.wait_unless(ended.as_fd()) {
        let now = clock.now();
        for target in &mut targets {
            target.look(netlink, now);
        }
        wait_for([ended.as_fd()], Some(PAUSE));
    }
    let now = clock.now();
    targets.into_iter().map(|target| target.end(now)).collect()
}

/// Outages of one target.
struct Target {
    /// Those that there were in the beginning, each with its own address.
    ways: Vec<(SocketAddr, IpAddr)>,
    cut_off_since: Option<Instant>,
    cuts: Vec<Range<Instant>>,
}

impl Target {
    fn new(netlink: &Netlink, ways: &[Way]) -> Target {
        let with_address = |way: &Way| Some((way.0, own_address(*way).ok()?));
        let ways = ways.iter().filter_map(with_address);
        Target {
            ways: ways.filter(|way| leads(netlink, *way)).collect(),
            cut_off_since: None,
            cuts: Vec::new(),
        }
    }

    fn look(&mut self, netlink: &Netlink, now: Instant) {
        let is_cut_off = !self.ways.is_empty() && !self.ways.iter().any(|way| leads(netlink, *way));
        match (self.cut_off_since, is_cut_off) {
            (None, true) if self.cuts.len() < CUTS_MAX => self.cut_off_since = Some(now),
            (Some(since), false) => {
                self.cuts.push(since..now);
                self.cut_off_since = None;
            }
            _ => {}
        }
    }

    fn end(mut self, now: Instant) -> Vec<Range<Instant>> {
        self.cuts.extend(self.cut_off_since.map(|since| since..now));
        self.cuts
    }
}

/// The address from which the kernel sends to a peer. Sends nothing.
fn own_address((to, from): Way) -> io::Result<IpAddr> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => [0; 4].into(),
        SocketAddr::V6(_) => [0_u16; 8].into(),
    };
    let socket = UdpSocket::bind((from.unwrap_or(any), 0))?;
    socket.connect(to)?;
    Ok(socket.local_addr()?.ip())
}

/// True if the kernel has a route, over an interface that runs.
fn leads(netlink: &Netlink, (to, from): (SocketAddr, IpAddr)) -> bool {
    let scope = match to {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(to) => to.scope_id(),
    };
    let route = netlink.route(to.ip(), from, scope);
    let link = route.and_then(|route| netlink.link(route.interface));
    link.is_ok_and(|link| link.is_running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_leads_to_itself_and_is_never_cut_off() {
        let local = "127.0.0.1:53".parse().unwrap();
        let nowhere = "127.0.0.1:53".parse().unwrap();
        let targets = [
            vec![(local, None)],
            vec![(nowhere, Some([192, 0, 2, 1].into()))],
            vec![],
        ];
        let watch = Watch::start(Clock::start(), &targets).unwrap();
        // A target without a route at the start is not watched.
        assert_eq!(watch.end(), [vec![], vec![], vec![]]);
        let netlink = Netlink::open().unwrap();
        assert!(leads(&netlink, (local, [127, 0, 0, 1].into())));
        assert!(!leads(&netlink, (local, [192, 0, 2, 1].into())));
    }
}
