//! Receive buffers of a target on the same host, whose drops are in the host's counters.

use crate::doctor::{Cure, Diagnosis, State};
use crate::notation::counted;

use super::receive_buffers::BUFFER_OCTETS;
use super::{Figures, Finding};

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let dropped = dropped_by_local_target(figures);
    // Of one that is observed, its own counters tell.
    if dropped == 0 || !figures.record.programs().is_empty() {
        return None;
    }
    let seen = format!(
        "receive buffers on this host that are not this tool's dropped {}: the target did not \
         read them in time",
        counted(dropped, "datagram")
    );
    let matters = "queries that its sockets had no room for are lost: it reads too slowly, or in \
                   bursts";
    let topic = "receive buffers of the target";
    let diagnosis = Diagnosis::new(topic, State::Warning, seen, matters)
        .cure(Cure::server_sysctl("net.core.rmem_default", BUFFER_OCTETS))
        .cure(Cure::server_sysctl("net.core.rmem_max", BUFFER_OCTETS))
        .cure(Cure::words(
            "give each of its threads a socket of its own (BIND: reuseport yes; and named -n \
             THREADS; Unbound: so-reuseport: yes and num-threads)",
        ));
    Some(Finding::met(diagnosis).beside())
}

/// Datagrams for which the receive buffers of a target on this host, or of one that is observed,
/// had no room, where queries were lost.
pub(super) fn dropped_by_local_target(figures: &Figures<'_>) -> u64 {
    if let Some(program) = figures.record.programs().first() {
        return program.udp_drops;
    }
    let network = &figures.record.network;
    let all = figures.of_udp("RcvbufErrors");
    let of_others = all.saturating_sub(network.receive_drops);
    match figures.target_is_local() && figures.can_be_of_run(of_others) {
        true => of_others,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn receive_drops_of_a_target_on_the_same_host_are_the_targets() {
        let mut record = in_time(10_000.0);
        lose(&mut record, 1_000);
        record.scenario.target = "127.0.0.1:53".into();
        record
            .network
            .kernel
            .insert("Udp.RcvbufErrors".into(), 1_000);
        let verdict = judged(
            &record,
            Limit::Server,
            "0.99 % of the offered queries",
            "--rate 8000",
        );
        let evidence = "dropped 1,000 datagrams: the target did not read them in time";
        let says = |line: &String| line.contains(evidence);
        assert!(verdict.evidence.iter().any(says), "{verdict:#?}");
    }

    #[test]
    fn what_other_sockets_of_the_host_dropped_is_told_from_what_ours_did() {
        let mut record = in_time(10_000.0);
        lose(&mut record, 1_000);
        record.network.receive_drops = 9;
        record.scenario.target = "127.0.0.1:53".into();
        record.network.kernel.insert("Udp.RcvbufErrors".into(), 800);
        told(&record, "receive buffers of the target").warning("791 datagrams", "reuseport yes;");
    }
}
