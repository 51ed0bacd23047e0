//! Source addresses for more clients than one address has ports for.
//!
//! The kernel gives a socket without a port one of its range. Over TCP a port of an address can be
//! used once a target; a UDP socket has it for itself, whatever its target.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;

use load::Plan;

use super::{RunError, RunRequest};

/// The kernel's range, if it does not tell.
const PORTS: (u16, u16) = (32_768, 60_999);

/// Clients that share ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    /// All sockets without connections; those of QUIC are among them.
    Datagrams(bool),
    /// Connections to one target.
    Streams(SocketAddr),
}

impl Sharing {
    /// How many of an address's `ports` are used before another address is, where there is choice.
    /// Some are left to others on this host. Connections take every other port first, and when
    /// these are used up each one has to look at all of them before it takes one of the rest:
    /// that takes a second for every few hundred connections.
    fn ports_usable(self, ports: u64) -> u64 {
        let ports = match self {
            Sharing::Datagrams(_) => ports,
            Sharing::Streams(_) => ports / 2,
        };
        (ports / 8 * 7).max(1)
    }

    fn of(plan: &Plan) -> Self {
        match plan.transport.is_stream() {
            true => Sharing::Streams(plan.target),
            false => Sharing::Datagrams(plan.target.is_ipv4()),
        }
    }
}

/// Gives clients of targets on loopback as many addresses of 127.0.0.0/8 as they need for their
/// ports, from 127.0.0.2 on, unless they were given addresses.
///
/// # Errors
/// There are more clients than ports, and no further addresses: names how many are needed.
pub fn choose_local_addresses(groups: &mut [RunRequest]) -> Result<(), RunError> {
    let all = |plan: &Plan| u64::from(plan.clients);
    choose(groups, port_range(), all)
}

/// As [`choose_local_addresses`], for an agent on another host that has the clients of these
/// threads.
///
/// # Errors
/// It has more clients than ports.
pub fn choose_own_addresses(
    groups: &mut [RunRequest],
    threads: &Range<u32>,
) -> Result<(), RunError> {
    let own = |plan: &Plan| {
        let workers = threads.start..threads.end.min(plan.workers);
        workers.map(|it| u64::from(plan.worker_clients(it))).sum()
    };
    choose(groups, port_range(), own)
}

/// As [`choose_local_addresses`], with the first and the last port that the kernel gives away, and
/// the clients of each plan that have them.
pub(super) fn choose(
    groups: &mut [RunRequest],
    (first, last): (u16, u16),
    clients_of: impl Fn(&Plan) -> u64,
) -> Result<(), RunError> {
    let ports = u64::from(last.saturating_sub(first)) + 1;
    let own = |request: &RunRequest| {
        request.plan.local_addresses.is_empty() && request.plan.local_port == 0
    };
    let mut needs: Vec<(Sharing, u64)> = Vec::new();
    for request in groups.iter().filter(|request| own(request)) {
        let sharing = Sharing::of(&request.plan);
        let clients = clients_of(&request.plan);
        match needs.iter_mut().find(|(other, _)| *other == sharing) {
            Some((_, sum)) => *sum += clients,
            None => needs.push((sharing, clients)),
        }
    }
    for request in groups {
        let plan = &request.plan;
        let usable = Sharing::of(plan).ports_usable(ports);
        let (clients, addresses) = match own(request) {
            true => {
                let sharing = Sharing::of(plan);
                let need = needs.iter().find(|(other, _)| *other == sharing);
                (need.map_or(0, |(_, clients)| *clients), 1)
            }
            false => (clients_of(plan), plan.local_addresses.len() as u64),
        };
        let is_loopback = plan.target.ip().is_loopback() && plan.target.is_ipv4();
        // Some are left to others on this host.
        if own(request) && is_loopback && clients > usable {
            request.plan.local_addresses = loopback(clients.div_ceil(usable));
        } else if plan.local_port == 0 && clients > ports * addresses {
            return Err(too_few(plan, (clients, addresses), ports));
        }
    }
    Ok(())
}

/// The first `count` loopback addresses from 127.0.0.2.
fn loopback(count: u64) -> Vec<IpAddr> {
    let first = Ipv4Addr::new(127, 0, 0, 2).to_bits();
    let numbers = (0..count as u32).map(|index| Ipv4Addr::from_bits(first + index));
    numbers.map(IpAddr::V4).collect()
}

fn too_few(plan: &Plan, (clients, addresses): (u64, u64), ports: u64) -> RunError {
    let needed = clients.div_ceil(ports);
    let what = format!(
        "{clients} clients need {needed} source addresses with {ports} ports each, and have \
         {addresses}"
    );
    let hint = match plan.target.ip().is_loopback() && plan.target.is_ipv6() {
        true => "::1 is the only loopback address of IPv6: use a target on 127.0.0.1, or give the \
                 loopback interface further addresses and name them with --local-address"
            .to_owned(),
        false => format!(
            "give {needed} addresses of this host with --local-address, or widen \
             net.ipv4.ip_local_port_range"
        ),
    };
    RunError::new(what, hint)
}

/// The first and the last port that the kernel gives away.
fn port_range() -> (u16, u16) {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let text = text.unwrap_or_default();
    let mut ports = text.split_whitespace().map(str::parse);
    match (ports.next(), ports.next()) {
        (Some(Ok(first)), Some(Ok(last))) => (first, last),
        _ => PORTS,
    }
}
