//! What was dropped, where this host, or the model of a network, could see it.

use super::{Figures, look_at_path};
use crate::doctor::{Cure, Diagnosis, State};
use crate::facts::XdpFacts;
use crate::notation::counted;
use crate::verdict::{simulated, target};

/// Four times the receive buffer that this tool asks for unless told otherwise.
pub(in crate::verdict) const BUFFER_OCTETS: u64 = 16 << 20;

pub(super) fn all(figures: &Figures<'_>) -> Vec<Diagnosis> {
    let found = [
        receive_buffers(figures),
        buffers_of_target(figures),
        beyond_interface(figures),
        send_buffers(figures),
        backlog(figures),
        conntrack(figures),
        path(figures),
    ];
    found.into_iter().flatten().collect()
}

/// This tool's own receive buffers (SO_RXQ_OVFL), or the queues of the interface that AF_XDP reads.
fn receive_buffers(figures: &Figures<'_>) -> Option<Diagnosis> {
    let network = &figures.record.network;
    let before_ring = network.xdp.as_ref().map(XdpFacts::dropped_before_ring);
    // An interface drops what is of no use to anyone too: that matters if something is missing.
    let before_ring = before_ring.filter(|_| figures.unanswered() > 0);
    let drops = network.receive_drops + before_ring.unwrap_or(0);
    let decisive = target::receive_drops(figures).map(|finding| finding.evidence);
    if drops == 0 && decisive.is_none() {
        return None;
    }
    let state = match &decisive {
        Some(_) => State::Problem,
        None => State::Warning,
    };
    let seen = decisive.unwrap_or_else(|| target::dropped_here(figures, drops));
    let matters = "responses that came, and were dropped here, count as lost by the target";
    if network.xdp.is_some() {
        let diagnosis = Diagnosis::new("receive queues", state, seen, matters);
        return Some(diagnosis.cure(Cure::words(target::QUEUES_ADVICE)));
    }
    let workers = figures.record.scenario.workers + 1;
    Some(
        Diagnosis::new("receive buffers", state, seen, matters)
            .cure(Cure::sysctl("net.core.rmem_max", BUFFER_OCTETS))
            .cure(Cure::throng(format!("--socket-buffer {BUFFER_OCTETS}")))
            .cure(Cure::throng(format!("--workers {workers}"))),
    )
}

/// Receive buffers of a target on the same host.
fn buffers_of_target(figures: &Figures<'_>) -> Option<Diagnosis> {
    let seen = target::receive_drops_of_local_target(figures)?;
    let matters = "queries that its sockets had no room for are lost: it reads too slowly, or in \
                   bursts";
    Some(
        Diagnosis::new(
            "receive buffers of the target",
            State::Warning,
            seen,
            matters,
        )
        .cure(Cure::server_sysctl("net.core.rmem_default", BUFFER_OCTETS))
        .cure(Cure::server_sysctl("net.core.rmem_max", BUFFER_OCTETS))
        .cure(Cure::words(
            "let each of its threads have a socket of its own (BIND: reuseport yes; and \
                 named -n THREADS; Unbound: so-reuseport: yes and num-threads)",
        )),
    )
}

/// What AF_XDP had handed over, and what nobody had room for after that.
fn beyond_interface(figures: &Figures<'_>) -> Option<Diagnosis> {
    let seen = target::dropped_beyond(figures)?;
    let matters = "no server saw these queries: the host at the other end had no time to read them";
    Some(
        Diagnosis::new("queues beyond the interface", State::Warning, seen, matters)
            .cure(Cure::words(
                "ask for fewer queries at a time: lower --rate or --outstanding",
            ))
            .cure(Cure::words("give the target a core of its own")),
    )
}

fn send_buffers(figures: &Figures<'_>) -> Option<Diagnosis> {
    let finding = target::send_drops(figures)?;
    let matters = "queries that never left count as lost by the target";
    Some(
        Diagnosis::new("send buffers", State::Problem, finding.evidence, matters)
            .cure(Cure::sysctl("net.core.wmem_max", BUFFER_OCTETS))
            .cures(finding.advice.into_iter().map(Cure::words)),
    )
}

/// Packets dropped between interface and sockets.
fn backlog(figures: &Figures<'_>) -> Option<Diagnosis> {
    let dropped = figures.record.network.kernel_counter("Softnet.Dropped");
    if dropped == 0 {
        return None;
    }
    let state = match figures.unanswered() > 0 {
        true => State::Problem,
        false => State::Warning,
    };
    let seen = format!(
        "the backlog of this host's CPUs was full and dropped {}",
        counted(dropped, "packet")
    );
    let matters = "they were dropped before any socket saw them, and look like the target's loss";
    let cure = larger(figures, "net.core.netdev_max_backlog", 16_384);
    Some(Diagnosis::new("packet backlog", state, seen, matters).cure(cure))
}

/// Sets a kernel parameter to four times what it was during the run, at least to `least`.
fn larger(figures: &Figures<'_>, name: &str, least: u64) -> Cure {
    let hosts = figures.record.hosts.iter();
    let values = hosts.filter_map(|host| host.sysctls.get(name)?.parse::<u64>().ok());
    Cure::sysctl(name, (4 * values.max().unwrap_or(0)).max(least))
}

/// Flows that the firewall of this host refused.
fn conntrack(figures: &Figures<'_>) -> Option<Diagnosis> {
    let network = &figures.record.network;
    let counter = |name| network.kernel_counter(name);
    let refused = counter("Conntrack.Dropped") + counter("Conntrack.InsertFailed");
    if refused == 0 {
        return None;
    }
    let seen = format!(
        "conntrack of this host refused {}: its table was full, or two flows met in it",
        counted(refused, "new flow")
    );
    let matters = "the first packet of a refused flow is dropped: a query without response, or a \
                   connection that takes a second longer";
    Some(
        Diagnosis::new("conntrack", State::Problem, seen, matters)
            .cure(larger(figures, "net.netfilter.nf_conntrack_max", 1 << 20))
            .cure(Cure::untracked("OUTPUT", "dport"))
            .cure(Cure::untracked("PREROUTING", "sport")),
    )
}

/// A path that is known to lose.
fn path(figures: &Figures<'_>) -> Option<Diagnosis> {
    let finding = target::retransmissions(figures).or_else(|| simulated::network(figures))?;
    let matters = "what the path loses is no loss of the target's; over TCP it shows as latency";
    let diagnosis = Diagnosis::new("path", State::Problem, finding.evidence, matters);
    Some(match figures.record.simulation {
        Some(_) => diagnosis.cures(finding.advice.into_iter().map(Cure::words)),
        None => diagnosis.cure(look_at_path("tcp", figures.record)),
    })
}
