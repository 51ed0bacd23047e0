//! Whatever goes wrong together: every query is accounted for, once, and the run ends.

use driver::sim::{Jitter, Link, Outage, Stall};
use load::arrival::{Arrival, Process};
use proptest::prelude::*;
use proto::Transport;
use responder::{Behaviour, ConnectionEnd, Delay, FaultShares};

use crate::sim::{GENERATOR, Sim, TARGET, at_ms, ms};

fn small_share() -> impl Strategy<Value = f64> {
    prop_oneof![3 => Just(0.0), 2 => 0.0..0.15, 1 => 0.0..0.4]
}

/// Never without any delay: work takes no time, and a closed loop would go round for ever at once.
/// Never without delay: work takes no time here, and a closed loop would go round at one instant.
fn links() -> impl Strategy<Value = Link> {
    let jitter = prop_oneof![
        Just(Jitter::None),
        (1..40u64).prop_map(|max| Jitter::Uniform { max: ms(max) }),
        (1..10u64).prop_map(|mean| Jitter::Exponential { mean: ms(mean) }),
    ];
    (
        1..60u64,
        jitter,
        small_share(),
        small_share(),
        small_share(),
        0..400u64,
    )
        .prop_map(
            |(delay, jitter, loss_share, duplicate_share, reorder_share, reorder)| Link {
                delay: ms(delay),
                jitter,
                loss_share,
                duplicate_share,
                reorder_share,
                reorder_delay: ms(reorder),
            },
        )
}

fn connection_ends() -> impl Strategy<Value = ConnectionEnd> {
    prop::sample::select(vec![
        ConnectionEnd::Close,
        ConnectionEnd::Reset,
        ConnectionEnd::HalfClose,
        ConnectionEnd::StopReading,
        ConnectionEnd::TlsAlert,
        ConnectionEnd::GoAway,
    ])
}

fn fault_shares() -> impl Strategy<Value = FaultShares> {
    prop::collection::vec(prop_oneof![2 => Just(0.0), 1 => 0.0..0.09], 11).prop_map(|shares| {
        FaultShares {
            loss: shares[0],
            truncated: shares[1],
            wrong_id: shares[2],
            wrong_question: shares[3],
            garbage: shares[4],
            // 64 KB each: few are enough.
            oversized: shares[5] / 10.0,
            rcodes: vec![(2, shares[6])],
            // DoH and DoQ.
            reset: shares[7],
            http_statuses: vec![(503, shares[8])],
            wrong_qr: shares[9],
            wrong_media_type: shares[10],
        }
    })
}

fn behaviours() -> impl Strategy<Value = Behaviour> {
    let delay = prop_oneof![
        Just(Delay::None),
        (1..150u64).prop_map(|delay| Delay::Constant(ms(delay))),
        (1..60u64).prop_map(|mean| Delay::Exponential { mean: ms(mean) }),
    ];
    let limits = (
        prop::option::of(1..6u32),
        prop::option::of(20..300u64),
        prop::option::of((1..40u64, connection_ends())),
        prop::option::of(50.0..2_000.0),
    );
    let stall = prop::option::of((0..1_000u64, 1..600u64));
    (delay, fault_shares(), small_share(), limits, stall).prop_map(
        |(delay, faults, duplicate_share, limits, stall)| {
            let (tcp_clients_max, idle_ms, end_after, rate_qps_max) = limits;
            let stall_of = |(at, length)| responder::Stall {
                at: ms(at),
                length: ms(length),
                every: None,
            };
            Behaviour {
                delay,
                faults,
                duplicate_share,
                stalls: stall.map(stall_of).into_iter().collect(),
                rate_qps_max,
                rate_queue_max: 50,
                tcp_clients_max,
                idle_timeout: idle_ms.map(ms),
                end_after,
                ..Behaviour::default()
            }
        },
    )
}

fn arrivals() -> impl Strategy<Value = Arrival> {
    let cap = prop::option::of(50.0..3_000.0);
    prop_oneof![
        (1..80u32, cap).prop_map(|(outstanding, rate_qps_max)| Arrival::Closed {
            outstanding,
            rate_qps_max
        }),
        (10.0..1_500.0, any::<bool>(), 1u32..5).prop_map(|(rate_qps, poisson, burst)| {
            Arrival::Open {
                rate_qps,
                process: if poisson {
                    Process::Poisson
                } else {
                    Process::Constant
                },
                burst,
            }
        }),
    ]
}

/// Trouble between the two: an outage, a stall on either side, a dead target.
fn troubles() -> impl Strategy<Value = [Option<(u64, u64)>; 4]> {
    let span = || prop::option::weighted(0.3, (0..1_500u64, 1..700u64));
    [span(), span(), span(), span()]
}

fn scenarios() -> impl Strategy<Value = Sim> {
    let load = (
        prop::sample::select(Transport::ALL.to_vec()),
        arrivals(),
        (1..6u32, 1..4u32),
        prop_oneof![Just(None), (1..600u64).prop_map(Some)],
        (0..400u64, 20..400u64),
    );
    let streams = (prop::option::of(1..30u32), any::<bool>(), 600..100_000usize);
    (
        any::<u64>(),
        load,
        streams,
        links(),
        behaviours(),
        troubles(),
    )
        .prop_map(
            |(seed, load, (per_connection, fallback, window), link, behaviour, troubles)| {
                let (transport, arrival, (clients, workers), queries, (warmup, timeout)) = load;
                let sim = Sim::seed(seed)
                    .over(transport)
                    .clients(clients.max(workers));
                let sim = sim.workers(workers).warmup_ms(warmup).timeout_ms(timeout);
                let mut sim = sim.duration_ms(1_200).behaviour(|it| *it = behaviour);
                sim.plan.arrival = match arrival {
                    Arrival::Closed {
                        outstanding,
                        rate_qps_max,
                    } => Arrival::Closed {
                        outstanding: outstanding.max(workers),
                        rate_qps_max,
                    },
                    open => open,
                };
                if let Some(queries) = queries {
                    sim = sim.queries(queries);
                }
                sim.plan.interval = ms(250);
                match transport.has_connections() {
                    true => sim.plan.connections.queries_max = per_connection,
                    false => sim.plan.tcp_fallback = fallback,
                }
                let world = &mut sim.simulation.world;
                world.link = link;
                world.stream_window_octets = window;
                add_troubles(sim, troubles)
            },
        )
}

fn add_troubles(mut sim: Sim, troubles: [Option<(u64, u64)>; 4]) -> Sim {
    let [outage, at_target, at_generator, dead] = troubles;
    if let Some((start, length)) = outage {
        sim.simulation.world.outages.push(Outage {
            start: at_ms(start),
            length: ms(length),
        });
    }
    for (address, span) in [(TARGET, at_target), (GENERATOR, at_generator)] {
        if let Some((start, length)) = span {
            sim.simulation.world.stalls.push(Stall {
                address,
                start: at_ms(start),
                length: ms(length),
            });
        }
    }
    match dead {
        Some((start, length)) => sim.target_dead(start, length),
        None => sim,
    }
}

/// Connections of HTTP/2 that retire with open streams, in all that trouble.
fn retiring() -> impl Strategy<Value = Sim> {
    let slow = prop::collection::vec((0..100u32, 1..1_500u64), 0..10);
    (scenarios(), 1..12u64, slow).prop_map(|(sim, queries, slow)| {
        let mut sim = sim.over(Transport::Doh2);
        sim.plan.tcp_fallback = false;
        let sim = sim.behaviour(|it| it.end_after = Some((queries, ConnectionEnd::GoAway)));
        slow.into_iter()
            .fold(sim, |sim, (name, delay_ms)| sim.slow_name(name, delay_ms))
    })
}

fn check_accounts(sim: Sim) -> Result<(), TestCaseError> {
    let queries = sim.plan.queries_max;
    let (record, responder) = sim.try_run().map_err(TestCaseError::fail)?;
    let counts = &record.total.counts;
    if let Some(queries) = queries {
        prop_assert!(counts.offered <= queries);
        if record.ended_by == measure::EndedBy::Queries {
            prop_assert_eq!(counts.offered, queries);
        }
    }
    // The target cannot have answered more than it was asked.
    let received = counts.responses + record.warmup.counts.responses;
    prop_assert!(received <= responder.queries.total());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// [`Sim::try_run`] checks the record, and an error of it fails the test.
    #[test]
    fn every_query_is_accounted_for_whatever_goes_wrong(sim in scenarios()) {
        check_accounts(sim)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_query_is_accounted_for_while_connections_retire(sim in retiring()) {
        check_accounts(sim)?;
    }
}
