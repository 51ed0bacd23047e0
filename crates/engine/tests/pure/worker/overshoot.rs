//! A rate far above what a worker can offer: its turns stay short, the run ends in time, and every
//! query that was due is counted, in the bin of the timeline in which it was.
//!
//! In the simulator work takes no time, so the worker has a turn each millisecond and no more.

use std::sync::Arc;
use std::time::Duration;

use engine::WorkerSummary;
use load::arrival::{Arrival, Process};
use load::replay::ReplayQuery;
use load::{ClientArrival, Plan, Replay};
use measure::{Counts, Interval};
use proto::{Instant, Transport};

use crate::echo::{self, Bench};

/// The highest rate that can be asked for: a query a nanosecond.
const RATE_QPS: f64 = 1e9;
const WARMUP: Duration = Duration::from_millis(5);
/// Three bins of the timeline.
const DURATION: Duration = Duration::from_millis(30);
const DUE: u64 = 30_000_000;
/// Queries that a turn offers at most, so that it is short; as ARCHITECTURE.md has it, responses
/// allow further ones.
const EACH_TURN_MAX: u64 = 10_000;

fn plan(transport: Transport, clients: u32, arrival: Arrival) -> Plan {
    Plan {
        warmup: WARMUP,
        duration: Some(DURATION),
        interval: Duration::from_millis(7),
        timeout: Duration::from_millis(50),
        ..echo::plan(transport, clients, arrival)
    }
}

fn open(process: Process, burst: u32) -> Arrival {
    Arrival::Open {
        rate_qps: RATE_QPS,
        process,
        burst,
    }
}

/// Runs `plan` against a target that answers, or one that does not; returns the totals of the
/// measured run, and the summary at its end.
fn run(plan: Plan, answers: bool) -> (Counts, WorkerSummary) {
    let duration = plan.duration.unwrap();
    let Bench {
        world,
        mut echo,
        mut driver,
        mut workers,
    } = Bench::open(plan);
    let mut intervals = Vec::new();
    for ms in 0..1_000 {
        world.advance_to(Instant::from_nanos(ms * 1_000_000));
        // Connections are set up in any case.
        if answers || ms < 4 {
            echo.step();
        }
        workers.step(&mut driver);
        intervals.extend(std::iter::from_fn(|| workers.poll_interval()).map(|(_, it)| it));
        if workers.is_finished() {
            let counts = Interval::total(&intervals).counts;
            let (_, summary) = workers.summaries(&mut driver).remove(0);
            // The run ends in time, and is soon drained.
            let timeline = summary.timeline;
            assert_eq!(timeline.run_ended_at, timeline.run_started_at + duration);
            let drained = timeline.drained_at - timeline.run_ended_at;
            assert!(drained < Duration::from_millis(300), "{drained:?}");
            return (counts, summary);
        }
    }
    panic!("the run does not end");
}

/// Checks that nothing is missing, and returns how many queries were due in each bin.
fn check(counts: &Counts, summary: &WorkerSummary) -> Vec<u64> {
    counts.check_identity().unwrap();
    summary.warmup.counts.check_identity().unwrap();
    // Of so short a run the worker does not even come to the end of the warm-up.
    let sent = counts.sent + summary.warmup.counts.sent;
    assert!(sent > 0 && sent < 200 * EACH_TURN_MAX, "{sent}");
    // What was due and is not among the queries that the worker came to counts as not sent.
    assert!(counts.not_sent.run_ended > DUE / 2, "{counts:?}");
    let bins = summary.bins.bins();
    let sum = |column: fn(&measure::timeline::Bin) -> u64| bins.iter().map(column).sum::<u64>();
    assert_eq!(sum(|bin| bin.due), counts.offered);
    assert_eq!(sum(|bin| bin.lost), counts.offered - counts.responses);
    assert!(bins.iter().all(|bin| bin.lost <= bin.due));
    let mut due: Vec<u64> = bins.iter().map(|bin| bin.due).collect();
    // After the end of the run none is due.
    assert!(due.split_off(3).iter().all(|due| *due == 0));
    due
}

#[test]
fn a_billion_queries_a_second_are_all_counted_whoever_asks_them_over_whatever() {
    for (transport, clients, burst) in [
        (Transport::Udp, 1, 1),
        (Transport::Udp, 10, 64),
        (Transport::Udp, 3_000, 1),
        (Transport::Tcp, 50, 1),
    ] {
        let plan = plan(transport, clients, open(Process::Constant, burst));
        let (counts, summary) = run(plan, true);
        let due = check(&counts, &summary);
        // Of bursts that are not due at once with the start of a bin.
        let near = |due: u64, exact: u64| due.abs_diff(exact) < u64::from(burst);
        assert!(due.iter().all(|due| near(*due, DUE / 3)), "{due:?}");
        assert!(near(counts.offered, DUE), "{counts:?}");
        let warmup = summary.warmup.counts.offered;
        assert!(near(warmup, 5_000_000), "{warmup}");
    }
}

#[test]
fn a_billion_queries_a_second_are_all_counted_where_nothing_is_answered() {
    for (transport, clients) in [
        (Transport::Udp, 1),
        (Transport::Udp, 10),
        (Transport::Tcp, 10),
    ] {
        let plan = plan(transport, clients, open(Process::Constant, 1));
        let (counts, summary) = run(plan, false);
        assert_eq!(check(&counts, &summary), [DUE / 3; 3]);
        assert_eq!(counts.offered, DUE);
        let warmup = &summary.warmup.counts;
        let ended = warmup.timeouts + warmup.not_sent.timed_out_waiting;
        assert!(ended > 0 && counts.responses == 0, "{warmup:?}");
    }
}

#[test]
fn arrivals_that_a_worker_does_not_come_to_are_as_many_as_the_rate_says() {
    let each = |clients: u32| RATE_QPS / f64::from(clients);
    let (on_mean, off_mean) = (Duration::from_millis(1), Duration::from_millis(1));
    for (clients, arrival) in [
        (10, open(Process::Poisson, 1)),
        (10, open(Process::Poisson, 100)),
        (
            1,
            Arrival::Clients(ClientArrival::Poisson { rate_qps: each(1) }),
        ),
        (
            100,
            Arrival::Clients(ClientArrival::Constant {
                rate_qps: each(100),
            }),
        ),
        (
            1_000,
            Arrival::Clients(ClientArrival::OnOff {
                rate_qps: 2.0 * each(1_000),
                on_mean,
                off_mean,
                pareto_shape: 2.5,
            }),
        ),
    ] {
        let label = format!("{arrival:?}");
        let (counts, summary) = run(plan(Transport::Udp, clients, arrival), true);
        let due = check(&counts, &summary);
        let near = |due: u64, mean: u64| due.abs_diff(mean) < mean / 10;
        assert!(
            due.iter().all(|due| near(*due, DUE / 3)),
            "{label}: {due:?}"
        );
        assert!(near(counts.offered, DUE), "{label}: {counts:?}");
        // At equal distances but for one of each client, where the warm-up ends.
        if label.contains("Constant {") && clients > 10 {
            let most = u64::from(clients);
            assert!(counts.offered.abs_diff(DUE) <= most, "{label}: {counts:?}");
        }
    }
}

#[test]
fn a_replay_at_a_billion_queries_a_second_is_counted_to_its_end() {
    let query = |number: u32| ReplayQuery {
        at_ns: number.into(),
        client: number % 10,
        question: number % 1_000,
    };
    // One ends within the run, the other does not.
    for (rounds, ends) in [(20_000, true), (100_000, false)] {
        let replay = Replay::new((0..1_000).map(query).collect(), 10, rounds).unwrap();
        let mut plan = plan(Transport::Udp, 10, open(Process::Constant, 1));
        plan.warmup = Duration::ZERO;
        plan.queries_max = Some(replay.queries_total());
        plan.arrival = Arrival::Replay(Arc::new(replay));
        let (counts, summary) = run(plan, true);
        let due = check(&counts, &summary);
        let expected = if ends { 20_000_000 } else { DUE };
        assert!(counts.offered.abs_diff(expected) < 30_000, "{counts:?}");
        assert!(due[0].abs_diff(DUE / 3) < 10_000, "{due:?}");
    }
}

#[test]
fn a_worker_that_is_still_at_the_warm_up_leaves_it_for_the_run() {
    let plan = Plan {
        duration: Some(Duration::from_millis(300)),
        ..plan(Transport::Udp, 10, open(Process::Constant, 1))
    };
    let (counts, summary) = run(plan, true);
    let warmup = &summary.warmup.counts;
    warmup.check_identity().unwrap();
    assert_eq!((warmup.offered, counts.offered), (5_000_000, 300_000_000));
    assert!(warmup.sent > 0 && counts.sent > 0, "{counts:?}");
}
