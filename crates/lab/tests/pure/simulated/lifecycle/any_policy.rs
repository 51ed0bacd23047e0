//! Whatever a plan asks of connections and whatever the target does to them: each has one end, no
//! client tries more often than its plan lets it, and the run ends in time.

use std::time::Duration;

use load::arrival::{Arrival, Process};
use load::{ConnectionPolicy, Presence, client_arrival};
use measure::RunRecord;
use proptest::prelude::*;
use responder::{Behaviour, ConnectionEnd, Delay};
use settings::Reset;

use super::STREAMS;
use crate::sim::{Sim, ms};

fn times(most_ms: u64) -> impl Strategy<Value = Option<Duration>> {
    prop_oneof![Just(None), (1..most_ms).prop_map(|it| Some(ms(it)))]
}

fn policies() -> impl Strategy<Value = ConnectionPolicy> {
    let queries_max =
        prop_oneof![3 => Just(None), 1 => Just(Some(0)), 3 => (1_u32..9).prop_map(Some)];
    let rate_max = prop_oneof![Just(None), (5.0..500.0).prop_map(Some)];
    let depths = prop_oneof![Just(None), (1_u32..9).prop_map(Some)];
    (
        queries_max,
        times(400),
        times(300),
        times(200),
        depths,
        rate_max,
    )
        .prop_map(
            |(queries_max, duration, idle_timeout, delay, in_flight_max, rate_max)| {
                ConnectionPolicy {
                    queries_max,
                    duration,
                    idle_timeout,
                    reconnect_delay: delay.unwrap_or_default(),
                    in_flight_max,
                    tcp_fast_open: false,
                    stop_sending_allowed: false,
                    rate_max,
                }
            },
        )
}

/// Takes from a policy what would contradict itself or the load.
fn consistent(mut policy: ConnectionPolicy, arrival: &Arrival, clients: u32) -> ConnectionPolicy {
    if policy.asks_nothing() {
        (policy.duration, policy.idle_timeout, policy.in_flight_max) = (None, None, None);
    }
    let most_of_load = match arrival {
        Arrival::Closed { outstanding, .. } => outstanding.div_ceil(clients),
        _ => u32::MAX,
    };
    let most = most_of_load.min(policy.queries_max.unwrap_or(u32::MAX));
    policy.in_flight_max = policy.in_flight_max.map(|depth| depth.min(most));
    policy
}

fn behaviours() -> impl Strategy<Value = Behaviour> {
    let ends = prop_oneof![
        Just(ConnectionEnd::Close),
        Just(ConnectionEnd::Reset),
        Just(ConnectionEnd::HalfClose),
        Just(ConnectionEnd::StopReading),
        Just(ConnectionEnd::TlsAlert),
        Just(ConnectionEnd::GoAway),
    ];
    let end_after = prop_oneof![Just(None), (1_u64..20, ends).prop_map(Some)];
    let clients_max = prop_oneof![3 => Just(None), 1 => (0_u32..4).prop_map(Some)];
    let closes = prop_oneof![Just(false), Just(true)];
    let stalls = prop_oneof![
        2 => Just(Vec::new()),
        1 => (0_u64..900, 1_u64..600).prop_map(|(at, length)| vec![responder::Stall {
            at: ms(at),
            length: ms(length),
            every: None,
        }]),
    ];
    let loss = prop_oneof![Just(0.0), 0.0..1.0];
    (
        end_after,
        clients_max,
        closes,
        times(300),
        times(100),
        stalls,
        loss,
    )
        .prop_map(
            |(end_after, tcp_clients_max, excess_is_reset, idle_timeout, delay, stalls, loss)| {
                let mut behaviour = Behaviour {
                    end_after,
                    tcp_clients_max,
                    excess_is_reset,
                    idle_timeout,
                    delay: delay.map_or(Delay::None, Delay::Constant),
                    stalls,
                    ..Behaviour::default()
                };
                behaviour.faults.loss = loss;
                behaviour
            },
        )
}

/// How clients ask by themselves.
const OF_CLIENTS: [&str; 6] = [
    "constant:20",
    "poisson:50",
    "onoff:100,on=50ms,off=150ms",
    "bursts:5,every=100ms",
    "closed:3,think=exp(30ms)",
    "full:4",
];

/// Clients that come, go and lose their connections.
fn presences() -> impl Strategy<Value = Presence> {
    let joins = prop_oneof![2 => Just(Duration::ZERO), 1 => (1_u64..500).prop_map(ms)];
    let leaves = prop_oneof![2 => Just(None), 1 => (501_u64..1_200).prop_map(|it| Some(ms(it)))];
    let resets = prop_oneof![
        2 => Just(Vec::new()),
        1 => (1_u64..900, 0.0..1.0).prop_map(|(after, share)| vec![Reset {
            after: ms(after),
            share,
        }]),
    ];
    (joins, leaves, resets).prop_map(|(joins_after, leaves_after, resets)| Presence {
        joins_after,
        leaves_after,
        resets,
    })
}

fn arrivals() -> impl Strategy<Value = Arrival> {
    prop_oneof![
        (1_u32..40).prop_map(|outstanding| Arrival::Closed {
            outstanding,
            rate_qps_max: None,
        }),
        (1_u32..10, 1.0..400.0).prop_map(|(outstanding, rate_qps)| Arrival::Closed {
            outstanding,
            rate_qps_max: Some(rate_qps),
        }),
        (1.0..1_000.0).prop_map(|rate_qps| Arrival::Open {
            rate_qps,
            process: Process::Poisson,
            burst: 1,
        }),
        prop::sample::select(&OF_CLIENTS[..])
            .prop_map(|text| Arrival::Clients(client_arrival::parse(text).expect("is one"))),
    ]
}

fn scenarios() -> impl Strategy<Value = Sim> {
    let network = (prop_oneof![2 => Just(0.0), 1 => 0.0..0.3], 1_u64..8);
    let dead = prop_oneof![2 => Just(None), 1 => (0_u64..1_200, 1_u64..900).prop_map(Some)];
    let window = prop_oneof![3 => Just(256 * 1024), 1 => 512_usize..4_096];
    // Share of the connections that resume, and the early data that the target takes of them.
    let early = prop_oneof![0_u32..200, Just(16_384)];
    let resumed = prop_oneof![Just(None), (0.2..=1.0, early).prop_map(Some)];
    let shape = (
        prop::sample::select(&STREAMS[..]),
        1_u32..8,
        any::<u64>(),
        resumed,
    );
    let troubles = (behaviours(), network, dead, window, 20_u64..400);
    let loads = (arrivals(), presences());
    (shape, policies(), loads, troubles).prop_map(
        |((transport, clients, seed, resumed), policy, (mut arrival, presence), troubles)| {
            let (behaviour, (loss, delay), dead, window, timeout) = troubles;
            if policy.asks_nothing() {
                arrival = Arrival::Closed {
                    outstanding: 1,
                    rate_qps_max: None,
                };
            }
            let sim = Sim::seed(seed).over(transport).clients(clients);
            let sim = match resumed {
                Some((share, octets_max)) => sim.resuming_early(share, octets_max),
                None => sim,
            };
            let sim = sim.one_way_delay_ms(delay).timeout_ms(timeout);
            let sim = sim.link(|link| link.loss_share = loss);
            let mut sim = sim.duration_ms(1_500).behaviour(|it| *it = behaviour);
            sim.simulation.world.stream_window_octets = window;
            sim.plan.interval = ms(500);
            sim.plan.connections = consistent(policy, &arrival, clients);
            sim.plan.arrival = arrival;
            sim.plan.presence = presence;
            match dead {
                Some((start, length)) => sim.target_dead(start, length),
                None => sim,
            }
        },
    )
}

/// The most attempts that so much time has room for: each takes a round trip at least, and the
/// reconnect delay; and all together do not exceed the connect rate.
fn attempts_max(sim: &Sim, record: &RunRecord) -> u64 {
    let phases = &record.phases;
    let whole_ns = phases.connect_ns + phases.warmup_ns + phases.run_ns + phases.drain_ns;
    let policy = &sim.plan.connections;
    let each = 2 * sim.simulation.world.link.delay + policy.reconnect_delay;
    let of_clients = u64::from(sim.plan.clients) * (whole_ns / each.as_nanos() as u64 + 1);
    let rate = policy.rate_max.unwrap_or(f64::INFINITY);
    // As a cast, for a rate without end is then the largest number.
    let of_rate = ((whole_ns as f64 / 1e9 * rate) as u64).saturating_add(1);
    of_clients.min(of_rate)
}

fn check_ends_in_time(sim: &Sim, record: &RunRecord) -> Result<(), TestCaseError> {
    let phases = &record.phases;
    let of_ns = |time: Duration| time.as_nanos() as u64;
    // How long a worker may wait, at the start and at the end.
    let turn = ms(45);
    let timeout = sim.plan.timeout;
    prop_assert!(phases.drain_ns <= of_ns(2 * timeout + turn), "{phases:?}");
    prop_assert_eq!(phases.run_ns, of_ns(ms(1_500)));
    let rate = sim.plan.connections.rate_max.unwrap_or(f64::INFINITY);
    let paced = Duration::from_secs_f64(f64::from(sim.plan.clients) / rate);
    prop_assert!(
        phases.connect_ns <= of_ns(paced + timeout + turn),
        "{phases:?}"
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// [`Sim::try_run`] checks the record, and that each connection has one end.
    #[test]
    fn every_connection_has_one_end_and_no_client_tries_too_often(sim in scenarios()) {
        let (record, responder) = sim.clone().try_run().map_err(TestCaseError::fail)?;
        let connections = record.connections();
        let most = attempts_max(&sim, &record);
        prop_assert!(
            connections.attempted <= most,
            "{} attempts of at most {most}",
            connections.attempted
        );
        check_ends_in_time(&sim, &record)?;
        let accepted = &responder.connections_accepted;
        let begun = accepted.total() + responder.connections_refused.total();
        // Only one whose SYN the target never saw, or did not see in time, is not among these.
        prop_assert!(begun <= connections.attempted);
        if sim.simulation.absences.is_empty() {
            // A process that dies has not accepted all that its kernel has established.
            prop_assert!(begun >= connections.established);
        }
        if sim.plan.connections.asks_nothing() {
            prop_assert_eq!(record.total.counts.offered, 0);
        }
        let per_connection = sim.plan.connections.queries_max.map_or(u64::MAX, u64::from);
        let sent_max = connections.attempted.saturating_mul(per_connection);
        prop_assert!(record.total.counts.sent <= sent_max);
    }
}
