//! The life of connections on the kernel's sockets: both ends count the same ones.

use std::net::Ipv4Addr;
use std::time::Duration;

use lab::run::{Serving, SocketUse, serve};
use measure::counts::Connections;
use proto::Transport;
use proto::doh::Method;
use proto::tls::ServerTlsOptions;
use responder::certificate::{SelfSigned, self_signed};
use responder::{Counters, Delay, ResponderConfig};

use testing::wait;

use crate::bench::{Load, Ran, ms};

/// Every transport with connections that the responder speaks.
const STREAMS: [Transport; 5] = [
    Transport::Tcp,
    Transport::Dot,
    Transport::Doh2,
    Transport::Doq,
    Transport::Doh3,
];

fn over(transport: Transport) -> Load {
    let load = Load::over(transport);
    match transport.is_doh() {
        true => load.doh(Method::Get, "https://localhost/dns-query"),
        false => load,
    }
}

/// Runs it against a responder for its transport alone; checks what holds for every run.
fn run(load: Load, change: impl FnOnce(&mut ResponderConfig)) -> (Ran, Counters) {
    run_until(load, change, |_| false)
}

/// As [`run`], but ends it when `is_seen` says so of all intervals so far.
fn run_until(
    load: Load,
    change: impl FnOnce(&mut ResponderConfig),
    is_seen: impl Fn(&Connections) -> bool,
) -> (Ran, Counters) {
    let transport = load.plan.transport;
    let (target, certificate_pem) = start(transport, change);
    let load = load.ca_pem(&certificate_pem);
    let mut seen = Connections::default();
    let ran = load.run_watched(target.address(transport).unwrap(), |progress, control| {
        seen.add(&progress.interval.counts.connections);
        if is_seen(&seen) {
            control.stop();
        }
    });
    if transport.has_tls() {
        // A client has its end of a handshake before the server has read the last message.
        let connections = ran.record.connections();
        let usable = ran.record.scenario.usable(&connections);
        wait::until("the server's ends of handshakes", || {
            target.counted().handshakes_completed >= usable
        });
    }
    let responder = target.stop();
    assert_both_ends_agree(&ran, &responder);
    (ran, responder)
}

/// A responder, and what its certificate is verified against.
fn start(transport: Transport, change: impl FnOnce(&mut ResponderConfig)) -> (Serving, String) {
    let identity = self_signed(&SelfSigned::default()).unwrap();
    let tls = identity.config(transport, &ServerTlsOptions::default());
    let mut config = ResponderConfig {
        listen: vec![(transport, (Ipv4Addr::LOCALHOST, 0).into())],
        tls: Some(tls.unwrap()),
        ..ResponderConfig::default()
    };
    change(&mut config);
    let target = serve(&config, &[], SocketUse::default()).unwrap();
    (target, identity.certificate_pem)
}

/// Each connection has one end, and those that were usable are those that the responder accepted;
/// it may have accepted some of those that the end of the run cut off.
#[track_caller]
fn assert_both_ends_agree(ran: &Ran, responder: &Counters) {
    let connections = ran.record.connections();
    let usable = ran.record.scenario.usable(&connections);
    let begun = usable + connections.failed.total() + connections.abandoned;
    let ended = connections.closed_by_client + connections.ended_by_target();
    assert_eq!((connections.attempted, usable), (begun, ended));
    assert_eq!(connections.failed.total(), 0, "{connections:?}");
    let accepted = responder.connections_accepted.total();
    let range = usable..=connections.attempted;
    assert!(range.contains(&accepted), "{accepted} of {connections:?}");
    assert_eq!(ran.counts().connection_losses, 0, "{connections:?}");
}

/// A run that ends when something was seen.
fn endless(load: Load) -> Load {
    load.plan(|plan| {
        plan.duration = Some(ms(120_000));
        plan.interval = ms(50);
    })
}

/// Periods of that length that a run had time for.
fn periods(ran: &Ran, length: Duration) -> u64 {
    let phases = &ran.record.phases;
    let all_ns = phases.connect_ns + phases.run_ns + phases.drain_ns;
    1 + all_ns / length.as_nanos() as u64
}

#[test]
fn connections_are_replaced_when_their_time_is_over() {
    const TIME: Duration = Duration::from_millis(200);
    for transport in STREAMS {
        let load = endless(over(transport).clients(3).outstanding(3));
        let load = load.plan(|plan| plan.connections.duration = Some(TIME));
        let (ran, _) = run_until(load, |_| {}, |it| it.closed_by_client_for.duration >= 4);
        let connections = ran.record.connections();
        let by_time = connections.closed_by_client_for.duration;
        let range = 4..=3 * periods(&ran, TIME);
        assert!(range.contains(&by_time), "{transport}: {connections:?}");
        assert_eq!(ran.counts().responses, ran.counts().sent, "{transport}");
    }
}

#[test]
fn idle_connections_are_closed_and_opened_on_demand() {
    for transport in STREAMS {
        let load = endless(over(transport).clients(1).rate(4.0));
        let load = load.plan(|plan| plan.connections.idle_timeout = Some(ms(50)));
        let (ran, responder) = run_until(load, |_| {}, |it| it.closed_by_client_for.idle >= 2);
        let counts = ran.counts();
        assert_eq!(counts.responses, counts.sent, "{transport}: {counts:?}");
        let connections = ran.record.connections();
        // One for each query, unless the host held up one until the next was due.
        let opened = connections.attempted;
        assert!(opened <= counts.sent + 1, "{transport}: {connections:?}");
        assert!(connections.closed_by_client_for.idle >= 2, "{transport}");
        let accepted = responder.connections_accepted.total();
        assert_eq!(accepted, opened, "{transport}");
    }
}

#[test]
fn reconnect_delay_leaves_room_for_so_many_connections() {
    const DELAY: Duration = Duration::from_millis(200);
    for transport in STREAMS {
        let load = over(transport).clients(1).outstanding(1).plan(|plan| {
            plan.connections.queries_max = Some(1);
            plan.connections.reconnect_delay = DELAY;
        });
        let (ran, _) = run_until(endless(load), |_| {}, |it| it.attempted >= 3);
        let opened = ran.record.connections().attempted;
        let range = 3..=periods(&ran, DELAY);
        assert!(range.contains(&opened), "{transport}: {opened}");
        // The last one has no query if the run ended before that was sent.
        let responses = ran.counts().responses;
        assert_eq!(responses, ran.counts().sent, "{transport}");
        assert!((opened - 1..=opened).contains(&responses), "{transport}");
    }
}

#[test]
fn pipelining_depth_bounds_what_is_in_flight() {
    for transport in STREAMS {
        let slow = |config: &mut ResponderConfig| {
            config.behaviour.delay = Delay::Constant(ms(20));
        };
        let pipelined = |load: Load| {
            let load = load.clients(2);
            load.plan(|plan| plan.connections.in_flight_max = Some(4))
        };
        let load = pipelined(over(transport).outstanding(100).queries(200));
        let (ran, _) = run(load, slow);
        ran.assert_all_answered(200);
        assert!(ran.record.mean_in_flight() <= 8.0, "{transport}");
        assert_eq!(ran.counts().waited_for_stream, 0, "{transport}");
        // At most 8 every 20 ms.
        assert!(ran.record.measured_ns >= 24 * 20_000_000, "{transport}");

        let load = pipelined(over(transport).rate(1_000.0).queries(200));
        let (ran, _) = run(load, slow);
        ran.assert_all_answered(200);
        assert!(ran.record.mean_in_flight() <= 8.0, "{transport}");
        // 1,000 a second are due, and 400 a second are answered: all but the first wait.
        let waited = ran.counts().waited_for_stream;
        assert!((100..=192).contains(&waited), "{transport}: {waited}");
    }
}

#[test]
fn connect_rate_staggers_the_start() {
    for transport in STREAMS {
        let load = over(transport).clients(50).outstanding(50).queries(500);
        let load = load.plan(|plan| plan.connections.rate_max = Some(100.0));
        let (ran, responder) = run(load, |_| {});
        ran.assert_all_answered(500);
        assert_eq!(responder.connections_accepted.total(), 50, "{transport}");
        assert!(ran.record.phases.connect_ns >= 490_000_000, "{transport}");
    }
}

#[test]
fn connections_without_queries_are_no_more_than_the_rate_says_and_alike_at_both_ends() {
    for transport in STREAMS {
        for workers in [1, 2] {
            let load = over(transport).clients(300).plan(|plan| {
                plan.connections.queries_max = Some(0);
                plan.connections.rate_max = Some(400.0);
                plan.workers = workers;
            });
            let (ran, responder) = run(load, |_| {});
            let connections = ran.record.connections();
            // 400 on a host that has time for them; how the rate is kept is tried in virtual time.
            let attempted = connections.attempted;
            assert!(
                (1..=400).contains(&attempted),
                "{transport}: {connections:?}"
            );
            let closed = connections.closed_by_client_for.without_query;
            let ended = closed + connections.abandoned;
            assert_eq!(ended, attempted, "{transport}: {connections:?}");
            let handshakes = responder.handshakes_completed;
            match transport.has_tls() {
                true => assert!((closed..=attempted).contains(&handshakes), "{transport}"),
                false => assert_eq!(handshakes, 0, "{transport}"),
            }
            assert_eq!(responder.queries.total(), 0, "{transport}");
        }
    }
}

#[test]
fn fast_open_is_used_or_done_without() {
    for transport in STREAMS.into_iter().filter(|it| it.is_stream()) {
        let load = over(transport).queries(1_000).plan(|plan| {
            plan.connections.queries_max = Some(10);
            plan.connections.tcp_fast_open = true;
        });
        let (ran, responder) = run(load, |_| {});
        ran.assert_all_answered(1_000);
        assert_eq!(responder.queries.total(), 1_000, "{transport}");
        let connections = ran.record.connections();
        assert!(connections.fast_opened <= connections.attempted);
    }
}
