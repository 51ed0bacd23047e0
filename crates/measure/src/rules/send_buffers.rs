//! Datagrams that the kernel of this host dropped on sending.

use crate::doctor::{Cure, Diagnosis, State};
use crate::limit::Limit;
use crate::notation::counted;
use crate::scenario::Transport;

use super::receive_buffers::BUFFER_OCTETS;
use super::{Figures, Finding, Stage, enough, losses};

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let (counts, transport) = (figures.counts, figures.record.scenario.transport);
    let drops = figures.of_udp("SndbufErrors");
    let lost = figures.unanswered() + counts.not_sent.send_failed;
    let is_much = enough::is_above(lost, counts.offered, losses::LOSS_MAX);
    let explains = drops >= lost.div_ceil(2) && figures.can_be_of_run(drops);
    if figures.target_is_local() || transport != Transport::Udp || !is_much || !explains {
        return None;
    }
    let seen = format!(
        "the kernel of this host dropped {} on sending (Udp.SndbufErrors), and {} got no response",
        counted(drops, "datagram"),
        counted(lost, "query")
    );
    let matters = "queries that never left count as lost by the target";
    let advice = "raise net.core.wmem_max, or lower the rate: the link or its queue is full";
    let diagnosis = Diagnosis::new("send buffers", State::Problem, seen, matters)
        .cure(Cure::sysctl("net.core.wmem_max", BUFFER_OCTETS))
        .cure(Cure::words(advice));
    let found = Finding::met(diagnosis).advising(advice);
    Some(found.limits(Stage::Network, Limit::Network))
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn refused_sends_that_the_kernel_counted_are_the_networks_limit() {
        let mut record = saturated();
        change_last(&mut record, |interval| {
            interval.counts.offered += 1_000;
            interval.counts.not_sent.send_failed += 1_000;
        });
        record
            .network
            .kernel
            .insert("Udp.SndbufErrors".into(), 1_000);
        judged(
            &record,
            Limit::Network,
            "dropped 1,000 datagrams on sending",
            "net.core.wmem_max",
        );
        // More than this run missed are those of others.
        record
            .network
            .kernel
            .insert("Udp.SndbufErrors".into(), 90_000);
        assert_ne!(judge(&record).limit, Limit::Network);
    }
}
