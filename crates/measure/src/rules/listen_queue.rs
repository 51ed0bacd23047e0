//! Connections that waited too long for the target to accept them.

use crate::doctor::{Cure, Diagnosis, State};
use crate::notation::{counted, latency};

use super::{Figures, Finding};

/// A SYN that was dropped is sent again after that long (RFC 6298, section 2).
const SYN_AGAIN_NS: u64 = 1_000_000_000;

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let record = figures.record;
    let transport = record.scenario.transport;
    if !transport.has_connections() || transport.is_quic() {
        return None;
    }
    let overflows = match figures.target_is_local() {
        true => record.network.kernel_counter("TcpExt.ListenOverflows"),
        false => 0,
    };
    let dropped = record.simulation.as_ref().map(|it| it.network.syns_dropped);
    let dropped = dropped.unwrap_or(0).max(overflows);
    let timed_out = record.connections().failed.timed_out;
    let times = record.connection_times().tcp_connect;
    let (shortest, longest) = (times.min_ns().unwrap_or(0), times.max_ns().unwrap_or(0));
    let is_again = longest >= SYN_AGAIN_NS && shortest < SYN_AGAIN_NS / 4;
    let evidence = [
        (dropped > 0).then(|| {
            let syns = counted(dropped, "SYN");
            format!("{syns} found the target's listen queue full")
        }),
        (timed_out > 0).then(|| format!("{} timed out", counted(timed_out, "connection attempt"))),
        is_again.then(|| {
            format!(
                "some connections took {}, as when a SYN is sent again, and others {}",
                latency(longest as f64),
                latency(shortest as f64)
            )
        }),
    ];
    let evidence: Vec<String> = evidence.into_iter().flatten().collect();
    if evidence.is_empty() {
        return None;
    }
    let seen = evidence.join("; ");
    let matters = "connections wait in the listen queue until the server accepts them; it has \
                   room for 10 in BIND's default, and a SYN beyond it is sent again after a second";
    let diagnosis = Diagnosis::new("listen queue", State::Warning, seen, matters);
    Some(Finding::met(match record.simulation {
        Some(_) => diagnosis.cure(Cure::throng("--sim-backlog 4096")),
        None => diagnosis
            .cure(Cure::named("tcp-listen-queue 4096;"))
            .cure(Cure::server_sysctl("net.core.somaxconn", 4_096))
            .cure(Cure::server_sysctl("net.ipv4.tcp_max_syn_backlog", 8_192)),
    }))
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn a_listen_queue_that_overflows_is_seen_in_three_ways() {
        let mut record = saturated();
        record.scenario.transport = Transport::Tcp.into();
        change_last(&mut record, |it| it.counts.connections.failed.timed_out = 3);
        let queue = "tcp-listen-queue 4096;";
        told(&record, "listen queue").warning("3 connection attempts timed out", queue);
        change_last(&mut record, |interval| {
            let times = &mut interval.distributions.connections.tcp_connect;
            times.record_many(200_000, 10);
            times.record(1_030 * MS);
        });
        told(&record, "listen queue").warning("as when a SYN is sent again", "somaxconn=4096");
        record.scenario.target = "127.0.0.1:53".into();
        let overflows = ("TcpExt.ListenOverflows".to_owned(), 12);
        record.network.kernel.extend([overflows]);
        told(&record, "listen queue").warning("12 SYNs found", "tcp_max_syn_backlog=8192");
    }
}
