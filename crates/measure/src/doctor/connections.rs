//! Ports, TIME-WAIT, conntrack and the listen queue: what connections and flows need.

use super::{Aim, Cure, Diagnosis, HostReading, State};
use crate::notation::{count, counted, decimal, share};

/// The first unprivileged port: the widest range that makes sense.
const PORTS_WIDE: &str = "1024 65535";
/// With fewer ports than that, even moderate numbers of clients need more addresses.
const PORTS_MIN: u64 = 16_384;
/// TIME-WAIT lasts 60 s in Linux, and with tcp_tw_reuse a port is free after one.
const TIME_WAIT_S: f64 = 60.0;
/// From this share of its table on, conntrack is near the end.
const CONNTRACK_FULL: f64 = 0.8;
/// Connections that a server of many clients should let wait.
const QUEUE_MIN: u64 = 1_024;

fn port_range(host: &HostReading) -> Option<(u64, u64)> {
    let range = host.sysctl("net.ipv4.ip_local_port_range")?;
    let (first, last) = range.split_once(' ')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// Ports of an address from which clients send.
pub(super) fn ports(host: &HostReading, aim: Aim) -> Diagnosis {
    const MATTERS: &str = "each UDP client, and each connection to one target, needs a port of its \
        own: a source address can have only as many as it has ports";
    let Some((first, last)) = port_range(host) else {
        let seen = "net.ipv4.ip_local_port_range cannot be read";
        return Diagnosis::new("source ports", State::Unknown, seen, MATTERS);
    };
    let ports = (last + 1).saturating_sub(first);
    let mut seen = format!("{first} to {last}: {} an address", counted(ports, "port"));
    let too_few = match (aim.is_server, aim.clients) {
        (true, _) => false,
        (false, Some(clients)) => clients > ports,
        (false, None) => ports < PORTS_MIN,
    };
    let mut diagnosis = Diagnosis::new("source ports", State::Ok, "", MATTERS);
    if too_few {
        diagnosis.state = State::Warning;
        if let Some(clients) = aim.clients {
            diagnosis.state = State::Problem;
            let addresses = clients.div_ceil(ports.max(1));
            seen.push_str(&format!(
                "; {} need {} addresses",
                counted(clients, "client"),
                count(addresses)
            ));
            let bits = 32 - u64::from(addresses.next_power_of_two().trailing_zeros());
            diagnosis = diagnosis.cure(Cure::throng(format!(
                "--local-address 127.1.0.0/{bits}  (here: on loopback; else a prefix or addresses \
                 of this host)"
            )));
        }
        if ports < 60_000 {
            let cure = Cure::sysctl("net.ipv4.ip_local_port_range", PORTS_WIDE);
            diagnosis = diagnosis.cure(cure);
        }
    }
    diagnosis.seen = seen;
    diagnosis
}

/// How soon a port may be used again after its connection ended.
pub(super) fn time_wait(host: &HostReading, aim: Aim) -> Diagnosis {
    const MATTERS: &str = "the side that closes a TCP connection keeps its port for 60 s: with \
        short-lived connections ports run out";
    let Some(reuse) = host.number("net.ipv4.tcp_tw_reuse") else {
        let seen = "net.ipv4.tcp_tw_reuse cannot be read";
        return Diagnosis::new("TIME-WAIT", State::Unknown, seen, MATTERS);
    };
    let ports = port_range(host).map_or(0, |(first, last)| (last + 1).saturating_sub(first));
    let rate = decimal(ports as f64 / TIME_WAIT_S, 0);
    let held = format!("{rate} new connections a second from an address to one target at most");
    let mut seen = match reuse {
        0 => format!("tcp_tw_reuse is 0: {held}"),
        1 => "tcp_tw_reuse is 1: ports are free again after a second".to_owned(),
        _ => format!("tcp_tw_reuse is 2, which is for loopback alone; elsewhere {held}"),
    };
    let buckets = host.number("net.ipv4.tcp_max_tw_buckets");
    if let Some(buckets) = buckets {
        seen.push_str(&format!("; tcp_max_tw_buckets {}", count(buckets)));
    }
    let mut diagnosis = Diagnosis::new("TIME-WAIT", State::Ok, seen, MATTERS);
    if reuse == 0 && !aim.is_server {
        diagnosis.state = State::Warning;
    }
    if reuse != 1 && !aim.is_server {
        diagnosis = diagnosis.cure(Cure::sysctl("net.ipv4.tcp_tw_reuse", 1));
    }
    if buckets.is_some_and(|buckets| aim.is_server && Some(buckets) < aim.clients) {
        diagnosis.state = State::Warning;
        let wanted = aim.clients.unwrap_or(0) * 2;
        diagnosis = diagnosis.cure(Cure::sysctl("net.ipv4.tcp_max_tw_buckets", wanted));
    }
    diagnosis
}

/// Whether the firewall follows every flow, and has room for them.
pub(super) fn conntrack(host: &HostReading, aim: Aim) -> Diagnosis {
    const MATTERS: &str = "a firewall that tracks flows spends CPU time on each packet, and drops \
        new flows once its table is full";
    let Some(most) = host.number("net.netfilter.nf_conntrack_max") else {
        let seen = "not loaded: flows are not tracked here";
        return Diagnosis::new("conntrack", State::Ok, seen, MATTERS);
    };
    let entries = host.conntrack_entries.unwrap_or(0);
    let mut seen = format!(
        "{} of {} entries in use ({})",
        count(entries),
        count(most),
        share(entries, most)
    );
    let needed = entries + aim.clients.unwrap_or(0);
    let refused = host.losses(&["Conntrack.Dropped", "Conntrack.InsertFailed"]);
    seen.push_str(&refused.words("new flow", " refused"));
    let mut state = match refused.go_on() {
        true => State::Warning,
        false => State::Ok,
    };
    if needed as f64 > CONNTRACK_FULL * most as f64 {
        state = State::Problem;
        if let Some(clients) = aim.clients {
            seen.push_str(&format!("; {} more are planned", count(clients)));
        }
    }
    let diagnosis = Diagnosis::new("conntrack", state, seen, MATTERS);
    if state == State::Ok && entries == 0 {
        return diagnosis;
    }
    let larger = (2 * needed).max(2 * most).next_power_of_two();
    let room = Cure::sysctl("net.netfilter.nf_conntrack_max", larger);
    let both = match aim.is_server {
        true => [
            Cure::untracked("PREROUTING", "dport"),
            Cure::untracked("OUTPUT", "sport"),
        ],
        false => [
            Cure::untracked("OUTPUT", "dport"),
            Cure::untracked("PREROUTING", "sport"),
        ],
    };
    let room = (state != State::Ok).then_some(room);
    diagnosis.cures(room).cures(both)
}

/// Connections that may wait until a server on this host accepts them.
pub(super) fn listen_queue(host: &HostReading, aim: Aim) -> Diagnosis {
    const MATTERS: &str = "connections wait here until the server accepts them; beyond it SYNs are \
                           dropped, and sent again after a second";
    let accept = host.number("net.core.somaxconn");
    let Some((accept, syn)) = accept.zip(host.number("net.ipv4.tcp_max_syn_backlog")) else {
        let seen = "net.core.somaxconn cannot be read";
        return Diagnosis::new("listen queue", State::Unknown, seen, MATTERS);
    };
    let mut seen = format!("somaxconn {}, SYN backlog {}", count(accept), count(syn));
    let overflows = host.losses(&["TcpExt.ListenOverflows"]);
    seen.push_str(&overflows.words("overflow", ""));
    let wanted = aim.clients.unwrap_or(0).clamp(QUEUE_MIN, 65_535);
    if !aim.is_server || (accept.min(syn) >= wanted && !overflows.go_on()) {
        return Diagnosis::new("listen queue", State::Ok, seen, MATTERS);
    }
    let wanted = wanted.next_power_of_two().clamp(4_096, 65_535);
    let mut cures = Vec::new();
    if accept < wanted {
        cures.push(Cure::sysctl("net.core.somaxconn", wanted));
    }
    if syn < wanted {
        cures.push(Cure::sysctl("net.ipv4.tcp_max_syn_backlog", wanted));
    }
    cures.push(Cure::named(format!("tcp-listen-queue {wanted};")));
    Diagnosis::new("listen queue", State::Warning, seen, MATTERS).cures(cures)
}
