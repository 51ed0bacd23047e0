//! The same runs over every transport on every driver, with the same expectations of each: epoll,
//! io_uring, AF_XDP over a veth pair, the simulator and the null driver.
//!
//! A driver that the machine forbids is named on standard error with its reason, see
//! [`bed::each`].

mod bed;
mod memory;

use measure::DriverKind;
use proto::Transport;
use responder::{ConnectionEnd, Delay};

use crate::bench::{Load, ms};
use bed::{Seen, each};

/// Queries that do not depend on how fast the machine is.
const QUERIES: u64 = 1_000;
const CLIENTS: u32 = 8;

fn load(transport: Transport) -> Load {
    let load = Load::over(transport).clients(CLIENTS);
    load.outstanding(5 * CLIENTS).queries(QUERIES)
}

/// Asserts that every query has one end, and that what was sent is what the target received.
#[track_caller]
fn check_accounts(seen: &Seen, transport: Transport, queries: u64) {
    let (counts, context) = (seen.counts(), &seen.context);
    counts.check_identity().unwrap();
    assert_eq!(counts.offered, queries, "{context}: {counts:?}");
    assert_eq!(counts.sent, queries, "{context}: {counts:?}");
    let received = seen.target.queries.get(transport);
    assert_eq!(received, queries, "{context}: {}", seen.target);
    assert_eq!(counts.unexpected.total(), 0, "{context}: {counts:?}");
    assert_eq!(counts.duplicate, 0, "{context}: {counts:?}");
    // Only a query that has timed out has a late response.
    assert!(counts.late <= counts.timeouts, "{context}: {counts:?}");
}

/// Asserts in addition that every query was answered, and each client had one connection.
#[track_caller]
fn check_answered(seen: &Seen, transport: Transport) {
    check_accounts(seen, transport, QUERIES);
    let (counts, context) = (seen.counts(), &seen.context);
    assert_eq!(counts.responses, QUERIES, "{context}: {counts:?}");
    let sent = seen.target.responses.get(transport);
    assert_eq!(sent, QUERIES, "{context}: {}", seen.target);
    let clients = match transport.has_connections() {
        true => u64::from(CLIENTS),
        false => 0,
    };
    check_connections(seen, transport, clients);
    assert_eq!(seen.connections.closed_by_client, clients, "{context}");
}

/// Asserts that `attempted` connections were attempted, and all became usable and were accepted.
#[track_caller]
fn check_connections(seen: &Seen, transport: Transport, attempted: u64) {
    let (connections, context) = (&seen.connections, &seen.context);
    let usable = connections.usable(transport.has_tls());
    let accepted = seen.target.connections_accepted.get(transport);
    assert_eq!(
        [connections.attempted, usable, accepted],
        [attempted; 3],
        "{context}: {connections:?}\n{}",
        seen.target
    );
    assert_eq!(connections.failed.total(), 0, "{context}: {connections:?}");
    if transport.has_tls() {
        let handshakes = seen.target.handshakes_completed;
        assert_eq!(handshakes, attempted, "{context}: {}", seen.target);
    }
}

#[test]
fn every_query_is_answered_and_both_ends_count_alike() {
    each(|bed, transport| {
        let seen = bed.run(load(transport), |_| {});
        check_answered(&seen, transport);
        assert_eq!(
            seen.counts().rcodes.by_rcode[0],
            QUERIES,
            "{}",
            seen.context
        );
        let Some(record) = &seen.record else { return };
        let network = &record.network;
        let datagrams = [network.datagrams_sent, network.datagrams_received];
        match transport {
            Transport::Udp if bed.kind() != DriverKind::Sim => {
                assert_eq!(datagrams, [QUERIES; 2], "{}", seen.context);
            }
            _ if transport.is_stream() => assert_eq!(datagrams, [0; 2], "{}", seen.context),
            _ => {}
        }
        assert_eq!(network.receive_drops, 0, "{}", seen.context);
    });
}

#[test]
fn no_latency_is_below_the_delay_of_the_responder() {
    const DELAY_NS: u64 = 5_000_000;
    each(|bed, transport| {
        let seen = bed.run(load(transport), |config| {
            config.behaviour.delay = Delay::Constant(ms(5));
        });
        check_answered(&seen, transport);
        let distributions = &seen.total.distributions;
        for times in [&distributions.latency, &distributions.service] {
            assert_eq!(times.count(), QUERIES, "{}", seen.context);
            let min_ns = times.min_ns();
            assert!(min_ns >= Some(DELAY_NS), "{}: {min_ns:?}", seen.context);
        }
    });
}

#[test]
fn rcodes_are_those_that_the_responder_sent() {
    each(|bed, transport| {
        let seen = bed.run(load(transport), |config| {
            config.behaviour.faults.rcodes = vec![(2, 0.25), (5, 0.25)];
        });
        check_answered(&seen, transport);
        for rcode in [0, 2, 5] {
            let (here, there) = (&seen.counts().rcodes.by_rcode, &seen.target.rcodes);
            assert_eq!(here[rcode], there[rcode], "{}: {rcode}", seen.context);
            assert!(here[rcode] > QUERIES / 10, "{}: {here:?}", seen.context);
        }
    });
}

#[test]
fn responses_of_64_kb_arrive_whole() {
    const LONG: u64 = 100;
    each(|bed, transport| {
        let load = Load::over(transport).clients(2).outstanding(2);
        let load = load.queries(LONG).edns_of_64_kb();
        let seen = bed.run(load, |config| config.behaviour.faults.oversized = 1.0);
        check_accounts(&seen, transport, LONG);
        let (counts, context) = (seen.counts(), &seen.context);
        assert_eq!(counts.responses, LONG, "{context}: {counts:?}");
        let octets = match transport {
            Transport::Udp => 65_507,
            _ => 65_535,
        };
        assert_eq!(counts.received_octets, LONG * octets, "{context}");
    });
}

#[test]
fn queries_whose_responses_are_lost_time_out_and_no_others() {
    each(|bed, transport| {
        // All at once, so that all wait at the same time.
        let load = load(transport).outstanding(QUERIES as u32);
        let load = load.plan(|plan| plan.timeout = ms(2_000));
        let seen = bed.run(load, |config| config.behaviour.faults.loss = 0.25);
        check_accounts(&seen, transport, QUERIES);
        let (counts, context) = (seen.counts(), &seen.context);
        let lost = seen.target.lost;
        assert!(lost > QUERIES / 10, "{context}: {}", seen.target);
        let ended = counts.responses + counts.timeouts;
        assert_eq!(ended, QUERIES, "{context}: {counts:?}");
        let answered = seen.target.responses.get(transport);
        assert_eq!(answered + lost, QUERIES, "{context}: {}", seen.target);
        // On a busy host a response takes two seconds too: it is late, or comes after the end.
        let too_late = counts.timeouts.checked_sub(lost);
        assert!(too_late >= Some(counts.late), "{context}: {counts:?}");
        assert!(bed.kind() != DriverKind::Sim || too_late == Some(0));
    });
}

/// A load whose connections the responder ends after ten queries each.
fn seen_with_ends(bed: &bed::Bed, transport: Transport, how: ConnectionEnd) -> Seen {
    let load = load(transport).outstanding(CLIENTS);
    let load = load.plan(|plan| plan.connections.in_flight_max = Some(1));
    let seen = bed.run(load, |config| config.behaviour.end_after = Some((10, how)));
    let (counts, connections) = (seen.counts(), &seen.connections);
    let context = &seen.context;
    counts.check_identity().unwrap();
    assert_eq!(counts.sent, QUERIES, "{context}: {counts:?}");
    assert_eq!(counts.timeouts, 0, "{context}: {counts:?}");
    // Each connection may have lost the query that was sent when it ended.
    let ended = connections.ended_by_target();
    assert!(counts.connection_losses <= ended, "{context}: {counts:?}");
    let least = QUERIES / 11 - u64::from(CLIENTS);
    assert!(ended >= least, "{context}: {connections:?}");
    assert_eq!(connections.failed.total(), 0, "{context}: {connections:?}");
    let accepted = seen.target.connections_accepted.get(transport);
    assert_eq!(connections.attempted, accepted, "{context}");
    seen
}

#[test]
fn connections_that_the_target_closes_are_replaced_and_counted_as_closed() {
    each(|bed, transport| {
        if !transport.has_connections() {
            return;
        }
        let seen = seen_with_ends(bed, transport, ConnectionEnd::Close);
        let (counts, connections) = (seen.counts(), &seen.connections);
        let context = &seen.context;
        // What was sent before an orderly close has arrived.
        let sent = seen.target.responses.get(transport);
        assert_eq!(counts.responses, sent, "{context}: {counts:?}");
        // A query that crosses the end of its connection is answered by a reset.
        let (reset, lost) = (connections.reset_by_target, counts.connection_losses);
        assert!(reset <= lost, "{context}: {counts:?}");
    });
}

#[test]
fn connections_that_the_target_resets_are_replaced_and_counted_as_reset() {
    each(|bed, transport| {
        if !transport.has_connections() {
            return;
        }
        let seen = seen_with_ends(bed, transport, ConnectionEnd::Reset);
        let (connections, context) = (&seen.connections, &seen.context);
        let (reset, ended) = (connections.reset_by_target, connections.ended_by_target());
        assert_eq!(reset, ended, "{context}: {connections:?}");
    });
}

#[test]
fn a_target_where_nobody_listens_is_counted_as_refusing() {
    each(|bed, transport| {
        let load = Load::over(transport).clients(CLIENTS).rate(500.0);
        let load = load.plan(|plan| {
            plan.duration = Some(ms(200));
            plan.timeout = ms(200);
        });
        let Some(seen) = bed.run_alone(load) else {
            return;
        };
        let (counts, context) = (seen.counts(), &seen.context);
        counts.check_identity().unwrap();
        assert_eq!(
            (counts.offered, counts.responses),
            (100, 0),
            "{context}: {counts:?}"
        );
        let refused = match transport.is_stream() {
            true => seen.connections.failed.refused,
            false => counts.port_unreachable,
        };
        assert!(refused > 0, "{context}: {counts:?}");
    });
}

#[test]
fn streams_go_through_io_uring_by_default_and_datagrams_do_not() {
    let taken_for = |transport: Transport| {
        let load = Load::over(transport).clients(40).outstanding(200);
        let (ran, _) = load.queries(3_000).run_against(|_| {});
        ran.assert_all_answered(3_000);
        let reason = ran.record.driver_reason.clone().unwrap();
        (ran.record.driver, reason)
    };
    let (kind, reason) = taken_for(Transport::Udp);
    assert_eq!(kind, DriverKind::Epoll);
    assert!(reason.contains("few streams"), "{reason}");
    let has_uring = bed::has_uring();
    let (kind, reason) = taken_for(Transport::Tcp);
    let expected = match has_uring {
        true => (DriverKind::Uring, "faster with 40 streams"),
        false => (DriverKind::Epoll, "io_uring"),
    };
    assert_eq!(kind, expected.0);
    assert!(reason.contains(expected.1), "{reason}");
}
