//! The same seed and scenario give the same record, to the octet.

use driver::sim::Jitter;
use measure::RunRecord;
use proto::Transport;

use crate::sim::{Run, Sim, ms};

/// A run in which chance has its say everywhere.
fn lively(seed: u64, transport: Transport) -> Run {
    let sim = Sim::seed(seed).over(transport).clients(6).workers(2);
    let sim = sim
        .poisson(500.0)
        .duration_ms(2_000)
        .warmup_ms(500)
        .timeout_ms(300);
    let sim = sim.link(|link| {
        link.delay = ms(2);
        link.jitter = Jitter::Exponential { mean: ms(3) };
        link.loss_share = 0.02;
        link.duplicate_share = 0.05;
        link.reorder_share = 0.05;
        link.reorder_delay = ms(350);
    });
    let sim = sim.behaviour(|behaviour| {
        behaviour.delay = crate::sim::delay("exponential:4ms");
        behaviour.faults.loss = 0.01;
        behaviour.faults.wrong_id = 0.01;
        behaviour.faults.garbage = 0.01;
        behaviour.duplicate_share = 0.02;
    });
    sim.run()
}

/// A description of the first difference, which says more than two records of 50 KB.
fn difference(one: &RunRecord, other: &RunRecord) -> Option<String> {
    let (one, other) = (one.to_json_pretty(), other.to_json_pretty());
    let lines = one.lines().zip(other.lines());
    let differing = lines.enumerate().find(|(_, (a, b))| a != b);
    let found = differing.map(|(number, (a, b))| format!("line {number}:\n{a:.300}\n{b:.300}"));
    found.or((one != other).then(|| "one is longer".to_owned()))
}

#[test]
fn same_seed_gives_the_same_record_to_the_octet_and_another_seed_another() {
    for transport in Transport::ALL {
        let first = lively(7, transport);
        let again = lively(7, transport);
        assert_eq!(
            difference(&first.record, &again.record),
            None,
            "{transport}"
        );
        assert_eq!(
            first.record.to_json(),
            again.record.to_json(),
            "{transport}"
        );
        assert_eq!(first.responder, again.responder, "{transport}");
        let other = lively(8, transport);
        assert_ne!(
            first.record.to_json(),
            other.record.to_json(),
            "{transport}"
        );
        // The scenario is one in which something happens.
        assert!(first.responses() > 700, "{transport}: {:?}", first.counts());
        assert!(first.timeouts() > 0, "{transport}");
    }
}

#[test]
fn impairments_of_the_network_show_over_udp() {
    let counts = lively(7, Transport::Udp).record.total.counts;
    assert!(counts.duplicate > 0 && counts.late > 0, "{counts:?}");
    assert!(counts.unexpected.queries > 0, "{counts:?}");
}
