//! Buffers, queues and switches of the kernel's network stack.

use super::{Aim, Cure, Diagnosis, HostReading, State};
use crate::notation::count;

/// Default buffer size that throng requests for each datagram socket.
const BUFFER_OCTETS: u64 = 4 << 20;
/// Memory of a small datagram in a receive buffer, by the kernel's account.
const DATAGRAM_OCTETS: u64 = 768;
/// Below that many pages for all UDP sockets together, they may run dry: 64 MiB.
const UDP_PAGES_MIN: u64 = 16_384;
/// Packets that may wait for a CPU, below which bursts are dropped.
const BACKLOG_MIN: u64 = 1_000;
/// Microseconds of busy polling, as in Red Hat's measurements of BIND.
pub(crate) const BUSY_POLL_US: u64 = 50;

/// How much a socket may hold that has not been read yet.
pub(super) fn receive_buffers(host: &HostReading) -> Diagnosis {
    const MATTERS: &str = "responses that come while a worker is busy wait in the receive buffer; \
                           what does not fit is dropped, and looks like the target's loss";
    let dropped = host.losses(&["Udp.RcvbufErrors", "Udp6.RcvbufErrors"]);
    let Some(most) = host.number("net.core.rmem_max") else {
        let seen = "net.core.rmem_max cannot be read";
        return Diagnosis::new("receive buffers", State::Unknown, seen, MATTERS);
    };
    let mut seen = format!(
        "at most {} bytes (rmem_max), and throng asks for {}",
        count(most),
        count(BUFFER_OCTETS)
    );
    seen.push_str(&dropped.words("datagram", " dropped"));
    if most >= BUFFER_OCTETS {
        return Diagnosis::new("receive buffers", State::Ok, seen, MATTERS);
    }
    let held = most / DATAGRAM_OCTETS;
    seen.push_str(&format!(
        "; that holds about {} small responses",
        count(held)
    ));
    Diagnosis::new("receive buffers", State::Warning, seen, MATTERS)
        .cure(Cure::sysctl("net.core.rmem_max", BUFFER_OCTETS))
        .cure(Cure::words(
            "or run throng as root, which is not bound by rmem_max",
        ))
}

/// How much a socket may hold that has not been sent yet.
pub(super) fn send_buffers(host: &HostReading) -> Diagnosis {
    const MATTERS: &str = "queries beyond the send buffer are refused by the kernel and not sent";
    let (Some(default), Some(most)) = (
        host.number("net.core.wmem_default"),
        host.number("net.core.wmem_max"),
    ) else {
        let seen = "net.core.wmem_max cannot be read";
        return Diagnosis::new("send buffers", State::Unknown, seen, MATTERS);
    };
    let mut seen = format!("default {} bytes, at most {}", count(default), count(most));
    let refused = host.losses(&["Udp.SndbufErrors", "Udp6.SndbufErrors"]);
    seen.push_str(&refused.words("datagram", " refused"));
    if !refused.go_on() {
        return Diagnosis::new("send buffers", State::Ok, seen, MATTERS);
    }
    Diagnosis::new("send buffers", State::Warning, seen, MATTERS)
        .cure(Cure::sysctl("net.core.wmem_max", BUFFER_OCTETS.max(most)))
}

/// Memory of all UDP sockets together.
pub(super) fn udp_memory(host: &HostReading) -> Diagnosis {
    const MATTERS: &str = "all UDP sockets of the host share it; beyond it datagrams are dropped \
                           however large each buffer is";
    let pages = host.sysctl("net.ipv4.udp_mem");
    let most = pages.and_then(|pages| pages.split(' ').nth(2)?.parse::<u64>().ok());
    let Some(most) = most else {
        let seen = "net.ipv4.udp_mem cannot be read";
        return Diagnosis::new("UDP memory", State::Unknown, seen, MATTERS);
    };
    let seen = format!("udp_mem: at most {} pages", count(most));
    if most >= UDP_PAGES_MIN {
        return Diagnosis::new("UDP memory", State::Ok, seen, MATTERS);
    }
    let wanted = format!(
        "{} {} {}",
        UDP_PAGES_MIN,
        2 * UDP_PAGES_MIN,
        4 * UDP_PAGES_MIN
    );
    Diagnosis::new("UDP memory", State::Warning, seen, MATTERS)
        .cure(Cure::sysctl("net.ipv4.udp_mem", wanted))
}

/// Packets between the interface and the sockets.
pub(super) fn backlog(host: &HostReading) -> Diagnosis {
    const MATTERS: &str = "packets wait in it for their CPU, all of loopback's too; beyond it they \
                           are dropped before any socket sees them";
    let Some(most) = host.number("net.core.netdev_max_backlog") else {
        let seen = "net.core.netdev_max_backlog cannot be read";
        return Diagnosis::new("packet backlog", State::Unknown, seen, MATTERS);
    };
    let mut seen = format!("netdev_max_backlog {}", count(most));
    let dropped = host.losses(&["Softnet.Dropped"]);
    seen.push_str(&dropped.words("packet", " dropped"));
    let state = match (dropped.go_on(), most < BACKLOG_MIN) {
        (true, _) => State::Problem,
        (false, true) => State::Warning,
        (false, false) => State::Ok,
    };
    let larger = (4 * most).max(16_384);
    let cure = Cure::sysctl("net.core.netdev_max_backlog", larger);
    let is_met = state != State::Ok || dropped.are_there();
    Diagnosis::new("packet backlog", state, seen, MATTERS).cures(is_met.then_some(cure))
}

/// Whether reading spins for packets instead of waiting for an interrupt.
pub(super) fn busy_polling(host: &HostReading, aim: Aim) -> Diagnosis {
    const MATTERS: &str = "with it a server polls for packets on its CPU instead of sleeping: a \
        few percent more queries at the cost of the whole CPU";
    let names = ["net.core.busy_read", "net.core.busy_poll"];
    let [Some(read), Some(poll)] = names.map(|name| host.number(name)) else {
        let seen = "net.core.busy_read cannot be read";
        return Diagnosis::new("busy polling", State::Unknown, seen, MATTERS);
    };
    let seen = match (read, poll) {
        (0, 0) => "off".to_owned(),
        _ => format!("busy_read {read} us, busy_poll {poll} us"),
    };
    let diagnosis = Diagnosis::new("busy polling", State::Ok, seen, MATTERS);
    let is_offered = aim.is_server && (read == 0 || poll == 0);
    let cures = names.map(|name| Cure::sysctl(name, BUSY_POLL_US));
    diagnosis.cures(is_offered.then_some(cures).into_iter().flatten())
}

/// How the kernel's TCP paces.
pub(super) fn congestion_control(host: &HostReading, aim: Aim) -> Diagnosis {
    const MATTERS: &str = "BBR spreads segments over time by timers, which delays small messages \
                           and costs CPU time at both ends";
    let Some(name) = host.sysctl("net.ipv4.tcp_congestion_control") else {
        let seen = "net.ipv4.tcp_congestion_control cannot be read";
        return Diagnosis::new("congestion control", State::Unknown, seen, MATTERS);
    };
    if !name.starts_with("bbr") {
        return Diagnosis::new("congestion control", State::Ok, name, MATTERS);
    }
    let seen = format!("{name}; throng's own connections do not use it, those of servers here do");
    let state = match aim.is_server {
        true => State::Warning,
        false => State::Ok,
    };
    Diagnosis::new("congestion control", state, seen, MATTERS)
        .cure(Cure::sysctl("net.ipv4.tcp_congestion_control", "cubic"))
}

/// Whether the faster driver can be used.
pub(super) fn io_uring(host: &HostReading) -> Diagnosis {
    const MATTERS: &str = "over many connections io_uring needs fewer system calls for each query \
                           than epoll, which is used without it";
    let cure = Cure::sysctl("kernel.io_uring_disabled", 0);
    let by_sysctl = host.number("kernel.io_uring_disabled");
    match (&host.io_uring, by_sysctl) {
        (Some(Ok(())), _) => Diagnosis::new("io_uring", State::Ok, "allowed", MATTERS),
        (Some(Err(reason)), disabled) => {
            let diagnosis = Diagnosis::new("io_uring", State::Warning, reason.clone(), MATTERS);
            diagnosis.cures(disabled.filter(|disabled| *disabled > 0).map(|_| cure))
        }
        (None, Some(0)) => {
            let seen = "kernel.io_uring_disabled is 0; seccomp may still forbid it";
            Diagnosis::new("io_uring", State::Ok, seen, MATTERS)
        }
        (None, Some(disabled)) => {
            let seen = format!("kernel.io_uring_disabled is {disabled}");
            Diagnosis::new("io_uring", State::Warning, seen, MATTERS).cure(cure)
        }
        (None, None) => {
            let seen = "kernel.io_uring_disabled cannot be read";
            Diagnosis::new("io_uring", State::Unknown, seen, MATTERS)
        }
    }
}
