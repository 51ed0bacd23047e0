//! What a simulated run publishes while it goes on.

use std::time::Duration;

use lab::live::{Live, Phase, Snapshot};
use measure::{Limit, RunRecord};
use responder::ServiceModel;

use crate::sim::{Sim, ns};

/// Twice the load that its server can take.
fn overloaded(live: &Live) -> RunRecord {
    let service = ServiceModel {
        workers: 1,
        query: crate::sim::delay("2ms"),
        ..ServiceModel::default()
    };
    let sim = Sim::seed(3).clients(10).workers(2).rate(1_000.0);
    let sim = sim.duration_ms(12_000).timeout_ms(2_000);
    let sim = sim.plan(|plan| plan.interval = Duration::from_secs(1));
    sim.responder(|it| it.service = Some(service))
        .run_live(live)
}

fn snapshots(live: &Live) -> Vec<std::sync::Arc<Snapshot>> {
    live.after(0, Duration::ZERO).snapshots
}

#[test]
fn a_run_publishes_each_interval_once_from_its_beginning_to_its_end() {
    let live = Live::default();
    let record = overloaded(&live);
    let all = snapshots(&live);
    let phases: Vec<Phase> = all.iter().map(|it| it.shown.phase).collect();
    let expected = [
        vec![Phase::Before],
        vec![Phase::Load; 12],
        vec![Phase::Drain; record.intervals.len() - 12],
        vec![Phase::Ended],
    ];
    assert_eq!(phases, expected.concat());
    let published = all.iter().filter_map(|it| it.shown.interval.as_ref());
    let counts: Vec<_> = published.map(|it| &it.counts).collect();
    let recorded: Vec<_> = record.intervals.iter().map(|it| &it.counts).collect();
    assert_eq!(counts, recorded);
    assert_eq!(all[3].shown.left, Some(Duration::from_secs(9)));
    assert!(
        all.iter()
            .all(|it| it.shown.judged.as_ref().is_none_or(|it| !it.is_provisional))
    );
}

#[test]
fn a_run_is_judged_at_each_checkpoint_as_at_its_end() {
    let live = Live::default();
    live.want_verdicts();
    let record = overloaded(&live);
    let all = snapshots(&live);
    let judged: Vec<_> = all.iter().map(|it| it.shown.judged.as_deref()).collect();
    // The first checkpoint is at the end of the fifth interval: the sixth shows it.
    assert!(judged[..6].iter().all(Option::is_none), "{judged:?}");
    for (at, until_ms) in [(6, 5_000), (10, 5_000), (11, 10_000), (12, 10_000)] {
        let so_far = judged[at].unwrap();
        assert!(so_far.is_provisional);
        assert_eq!(
            (so_far.until_ns, so_far.verdict.limit),
            (ns(until_ms), Limit::Server)
        );
    }
    let last = judged.last().copied().flatten().unwrap();
    assert!(!last.is_provisional);
    assert_eq!(last.verdict, record.verdict);
    // Who watches changes nothing.
    assert_eq!(record.to_json(), overloaded(&Live::default()).to_json());
}
