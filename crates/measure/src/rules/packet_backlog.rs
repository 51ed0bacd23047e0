//! Packets dropped between interface and sockets.

use crate::doctor::{Diagnosis, State};
use crate::notation::counted;

use super::conntrack::larger;
use super::{Figures, Finding};

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
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
    let diagnosis = Diagnosis::new("packet backlog", state, seen, matters);
    Some(Finding::met(diagnosis.cure(cure)))
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn a_full_packet_backlog_is_to_be_longer_than_it_is() {
        let mut record = in_time(10_000.0);
        lose(&mut record, 1_000);
        record.network.kernel.insert("Softnet.Dropped".into(), 50);
        record.hosts[0]
            .sysctls
            .insert("net.core.netdev_max_backlog".into(), "8192".into());
        let larger = "netdev_max_backlog=32768";
        told(&record, "packet backlog").problem("dropped 50 packets", larger);
    }
}
