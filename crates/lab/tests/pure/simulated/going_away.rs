//! A target that says GOAWAY while HTTP/2 streams are open: the client opens its next connection at
//! once, and the old one retires when its streams have ended.

use measure::EndedBy;
use proto::Transport;
use proto::tls::Tickets;
use responder::ConnectionEnd;

use crate::sim::{Run, Sim, ms, ns};

/// More names than a run has queries, so that each is asked for once.
const NAMES: u32 = 5_000;
/// TCP, TLS and the query take a round trip each, of 2 ms; a query that the target has not taken
/// was under way for one, and waited for less than one.
const RECONNECTION_MS: u64 = 12;

/// A query a millisecond over DoH, for a second. Each connection ends by GOAWAY after ten.
fn steady() -> Sim {
    let sim = Sim::seed(3).over(Transport::Doh2).names(NAMES);
    let sim = sim.one_way_delay_ms(1).timeout_ms(5_000).rate(1_000.0);
    sim.behaviour(|it| it.end_after = Some((10, ConnectionEnd::GoAway)))
}

/// How many latencies were longer.
fn longer_than(run: &Run, milliseconds: u64) -> u64 {
    let longer = run
        .latency()
        .buckets()
        .filter(|(low, ..)| *low > ns(milliseconds));
    longer.map(|(_, _, count)| count).sum()
}

/// Asserts that queries waited for connections no longer than it takes to open one, but for
/// `slow` of them.
#[track_caller]
fn assert_reconnected_at_once(run: &Run, slow: u64) {
    assert_eq!(longer_than(run, RECONNECTION_MS), slow);
    let connections = run.record.connections();
    assert!(connections.attempted > 20, "{connections:?}");
    assert_eq!(connections.failed.total(), 0);
}

#[test]
fn slow_response_on_an_old_connection_delays_no_query_of_the_next() {
    for clients in [1, 3] {
        let run = steady().clients(clients).slow_name(5, 1_000).run();
        assert_reconnected_at_once(&run, 1);
        assert_eq!((run.offered(), run.responses()), (1_000, 1_000));
        assert_eq!(
            run.latency().max_ns(),
            Some(ns(1_002)),
            "on the old connection"
        );
        assert!(run.counts().retried_unprocessed > 10);
        let open_max = run.record.total.connections_open_max;
        assert_eq!(open_max, Some(u64::from(clients) + 1));
        // All but those that are open at the end.
        let connections = run.record.connections();
        let ended = connections.ended_by_goaway.total();
        assert_eq!(connections.attempted - ended, connections.closed_by_client);
        assert!(connections.closed_by_client <= u64::from(clients));
    }
}

#[test]
fn closed_loop_goes_on_while_a_connection_retires() {
    let sim = steady().outstanding(4).slow_name(5, 1_000);
    let run = sim
        .plan(|plan| plan.connections.in_flight_max = Some(4))
        .run();
    // Each connection takes 4 ms to open, ten queries four at a time take 6 ms, and the others
    // under way are refused for another 2 ms.
    assert!(run.responses() > 800, "{}", run.responses());
    assert_eq!(run.responses(), run.offered());
    assert_reconnected_at_once(&run, 1);
}

#[test]
fn client_over_http3_waits_for_its_open_streams() {
    let run = steady().over(Transport::Doh3).slow_name(5, 400).run();
    assert_eq!((run.offered(), run.responses()), (1_000, 1_000));
    assert_eq!(run.record.total.connections_open_max, Some(1));
}

#[test]
fn query_on_a_retiring_connection_times_out_and_its_connection_is_closed() {
    let run = steady().timeout_ms(300).silent_names([5]).run();
    assert_reconnected_at_once(&run, 0);
    assert_eq!((run.responses(), run.timeouts()), (999, 1));
    assert_eq!(run.counts().connection_losses, 0);
    assert_eq!(run.responder.streams_cancelled, 1);
    // The one that is open at the end.
    assert!(run.record.connections().closed_by_client <= 1);
}

#[test]
fn retiring_connection_that_the_target_ends_loses_its_own_queries_alone() {
    let sim = steady().silent_names([5, 7]);
    let run = sim.behaviour(|it| it.idle_timeout = Some(ms(200))).run();
    assert_reconnected_at_once(&run, 0);
    let lost = run.counts().connection_losses;
    assert_eq!((run.responses(), lost, run.timeouts()), (998, 2, 0));
    let connections = run.record.connections();
    let ended = connections.closed_by_target + connections.reset_by_target;
    assert_eq!((ended, run.responder.connections_idle), (1, 1));
}

#[test]
fn connection_that_is_lost_leaves_the_queries_of_the_retiring_one() {
    // The target answers nothing on the second connection and closes it, because it is idle.
    let sim = steady().rate(100.0).slow_name(5, 900).silent_names(10..20);
    let sim = sim.behaviour(|it| it.idle_timeout = Some(ms(200)));
    let run = sim.run();
    let lost = run.counts().connection_losses;
    assert_eq!((run.responses(), lost, run.timeouts()), (90, 10, 0));
    assert_eq!(
        run.latency().max_ns(),
        Some(ns(902)),
        "on the old connection"
    );
}

#[test]
fn reset_of_a_client_loses_the_queries_of_both_its_connections() {
    let sim = steady().slow_name(5, 900);
    let run = sim
        .plan(|plan| {
            plan.presence.resets = vec![settings::Reset {
                after: ms(500),
                share: 1.0,
            }]
        })
        .run();
    let lost = run.counts().connection_losses;
    assert!((1..6).contains(&lost), "{lost}");
    assert_eq!(run.responses() + lost, 1_000);
    assert_eq!(run.record.connections().closed_by_client_for.reset, 2);
    assert_eq!(
        longer_than(&run, RECONNECTION_MS),
        0,
        "the slow one is lost"
    );
}

/// A run whose first connections have a slow query each.
fn first_are_slow(connections: u32) -> Run {
    // A connection takes ten queries; those that are refused are asked again on the next one.
    let slow = (0..connections).map(|connection| connection * 10 + 5);
    let sim = slow.fold(steady(), |sim, name| sim.slow_name(name, 400));
    sim.run()
}

#[test]
fn several_connections_retire_at_a_time() {
    for connections in [2, 5] {
        let run = first_are_slow(connections);
        assert_reconnected_at_once(&run, u64::from(connections));
        assert_eq!((run.offered(), run.responses()), (1_000, 1_000));
        let open_max = run.record.total.connections_open_max;
        assert_eq!(open_max, Some(u64::from(connections) + 1));
    }
}

#[test]
fn ninth_connection_waits_for_the_first_that_retires() {
    let run = first_are_slow(12);
    assert_eq!((run.offered(), run.responses()), (1_000, 1_000));
    assert_eq!(run.record.total.connections_open_max, Some(9));
    // When the first has ended, at 0.4 s, the ninth retires.
    assert!(longer_than(&run, 100) > 200, "{}", longer_than(&run, 100));
}

#[test]
fn client_with_a_fixed_port_waits_for_its_open_streams() {
    let sim = steady().slow_name(5, 400);
    let run = sim.plan(|plan| plan.local_port = 40_000).run();
    assert_eq!((run.offered(), run.responses()), (1_000, 1_000));
    assert!(longer_than(&run, 300) > 50);
    assert_eq!(run.record.connections().failed.total(), 0);
    assert_eq!(run.record.total.connections_open_max, Some(1));
}

#[test]
fn next_connection_resumes_the_session_of_the_one_that_retires() {
    let run = steady()
        .resuming(Tickets::Stored {
            count: 2,
            sessions_max: 1_000,
        })
        .slow_name(5, 500)
        .run();
    assert_reconnected_at_once(&run, 1);
    let handshakes = run.record.connections().handshakes;
    assert_eq!(handshakes.full, 1, "{handshakes:?}");
    assert_eq!(run.responses(), 1_000);
}

#[test]
fn reconnect_delay_is_kept_by_a_connection_that_retires() {
    let sim = steady().rate(100.0).slow_name(5, 900);
    let sim = sim.plan(|plan| plan.connections.reconnect_delay = ms(300));
    let run = sim.run();
    // The first takes ten queries in 100 ms, the nine others ten each that have waited, a delay
    // and 4 ms to open after each other: the last response comes 2.85 s after the start.
    assert_eq!(run.record.connections().attempted, 10);
    assert_eq!(run.responses(), 100);
    let drain_ns = run.record.phases.drain_ns;
    assert!((ns(1_800)..ns(1_950)).contains(&drain_ns), "{drain_ns}");
}

#[test]
fn interrupted_run_closes_a_connection_that_retires() {
    // Every tenth name is slow: once the first ten are sent, a connection always retires.
    let sim = (0..10).fold(steady().names(100), |sim, tenth| {
        sim.slow_name(tenth * 10 + 5, 30_000)
    });
    let sim = sim.timeout_ms(60_000).rate(100.0).duration_ms(3_600_000);
    let mut usable = 0;
    let record = sim.run_until(move |observation| {
        usable += u32::from(matches!(observation.event, engine::Observed::Usable { .. }));
        usable == 3
    });
    assert_eq!(record.ended_by, EndedBy::Interrupted);
    assert!(record.total.counts.interrupted >= 1);
    assert!(record.total.connections_open_max >= Some(3));
}
