//! Behaviours over UDP: when responses leave, and which are lost or corrupted. Every seed is fixed.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hickory_proto::op::Message;
use proto::Transport;
use proto::query::Edns;
use responder::{
    Behaviour, ConfigError, Delay, FaultShares, Limits, ResponderConfig, ResponderWorker, Stall,
    WorkerPlace,
};

use crate::network::{Network, Target, at_ms, client, id, ms, query, query_with};

/// Octets of a query for `name.example A`, and of its response with one A record.
const QUERY_OCTETS: usize = 30;
const RESPONSE_OCTETS: usize = QUERY_OCTETS + 16;

fn target(change: impl FnOnce(&mut Behaviour)) -> Target {
    Target::new(|config| change(&mut config.behaviour))
}

/// Asks `count` queries, IDs from 0, in one batch.
fn ask(target: &mut Target, count: u16) {
    let queries: Vec<_> = (0..count).map(|id| query(id, "name.example A")).collect();
    target.send_datagrams(5, &queries);
}

/// ID and instant of each response so far, in milliseconds.
fn times(target: &Target) -> Vec<(u16, f64)> {
    let time = |(at, _, message): &(proto::Instant, SocketAddr, Vec<u8>)| {
        (id(message), at.as_nanos() as f64 / 1e6)
    };
    target.network.sent.iter().map(time).collect()
}

#[test]
fn a_batch_is_answered_in_one_call_to_its_sender() {
    let mut target = target(|_| {});
    ask(&mut target, 50);
    assert_eq!(
        (target.network.sent.len(), target.network.send_calls),
        (50, 1)
    );
    assert!(
        target
            .network
            .sent
            .iter()
            .all(|(_, to, _)| *to == client(5))
    );
    let ids: Vec<_> = times(&target).iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, (0..50).collect::<Vec<_>>());
    let counters = target.worker.counters();
    assert_eq!(counters.queries.get(Transport::Udp), 50);
    assert_eq!(counters.responses.get(Transport::Udp), 50);
    assert_eq!(counters.octets_received.total(), 50 * QUERY_OCTETS as u64);
    assert_eq!(counters.octets_sent.total(), 50 * RESPONSE_OCTETS as u64);
    assert_eq!(counters.rcodes[0], 50);
    assert_eq!(target.next_turn, proto::Instant::FAR_FUTURE);
}

#[test]
fn datagrams_that_the_driver_does_not_take_are_counted() {
    let mut target = target(|_| {});
    target.network.datagrams_max = Some(3);
    ask(&mut target, 10);
    let counters = target.worker.counters();
    assert_eq!((counters.responses.total(), counters.send_dropped), (3, 7));
    assert_eq!(counters.octets_sent.total(), 3 * RESPONSE_OCTETS as u64);
}

#[test]
fn a_constant_delay_is_exact() {
    let mut target = target(|behaviour| behaviour.delay = Delay::Constant(ms(5)));
    ask(&mut target, 2);
    target.run_until(at_ms(3));
    ask(&mut target, 1);
    assert_eq!(target.next_turn, at_ms(5));
    target.run_until(at_ms(100));
    assert_eq!(times(&target), [(0, 5.0), (1, 5.0), (0, 8.0)]);
    assert_eq!(target.network.send_calls, 2);
    assert!(!target.worker.has_delayed());
}

#[test]
fn random_delays_have_their_distribution_and_repeat_with_their_seed() {
    let delays = |delay: Delay, seed: u64| {
        let mut target = Target::new(|config| {
            config.behaviour.delay = delay;
            config.seed = seed;
        });
        ask(&mut target, 4000);
        target.run_until(at_ms(10_000));
        times(&target)
    };
    let mean =
        |times: &[(u16, f64)]| times.iter().map(|(_, at)| at).sum::<f64>() / times.len() as f64;
    let uniform = Delay::Uniform {
        min: ms(10),
        max: ms(20),
    };
    let times = delays(uniform, 7);
    assert_eq!(times.len(), 4000);
    assert!(times[0].1 >= 10.0 && times[3999].1 <= 20.0);
    assert!((14.8..15.2).contains(&mean(&times)), "{}", mean(&times));
    assert_eq!(times, delays(uniform, 7));
    assert_ne!(times, delays(uniform, 8));
    let exponential = delays(Delay::Exponential { mean: ms(10) }, 7);
    assert!(
        (9.5..10.5).contains(&mean(&exponential)),
        "{}",
        mean(&exponential)
    );
    let longer = exponential.iter().filter(|(_, at)| *at > 10.0).count() as f64 / 4000.0;
    assert!((0.34..0.40).contains(&longer), "{longer}");
}

#[test]
fn everything_is_answered_at_the_end_of_a_stall() {
    let mut target = target(|behaviour| {
        behaviour.stalls = vec![Stall {
            at: ms(100),
            length: ms(50),
            every: None,
        }];
    });
    for at in [0, 99, 100, 120, 149, 150, 151] {
        target.run_until(at_ms(at));
        ask(&mut target, 1);
    }
    target.run_until(at_ms(1000));
    let at: Vec<_> = times(&target).iter().map(|(_, at)| *at).collect();
    assert_eq!(at, [0.0, 99.0, 150.0, 150.0, 150.0, 150.0, 151.0]);
}

#[test]
fn responses_that_are_due_in_a_stall_wait_for_its_end() {
    let mut target = target(|behaviour| {
        behaviour.delay = Delay::Constant(ms(30));
        behaviour.stalls = vec![
            Stall {
                at: ms(100),
                length: ms(50),
                every: Some(ms(200)),
            },
            // Follows on the other without a gap.
            Stall {
                at: ms(150),
                length: ms(10),
                every: None,
            },
        ];
    });
    for at in [60, 80, 130, 280, 349] {
        target.run_until(at_ms(at));
        ask(&mut target, 1);
    }
    target.run_until(at_ms(1000));
    let at: Vec<_> = times(&target).iter().map(|(_, at)| *at).collect();
    assert_eq!(at, [90.0, 160.0, 160.0, 350.0, 379.0]);
}

#[test]
fn stalls_can_be_counted_from_another_start() {
    let mut target = target(|behaviour| {
        behaviour.stalls = vec![Stall {
            at: ms(0),
            length: ms(50),
            every: None,
        }];
    });
    target.worker.set_start(at_ms(20));
    ask(&mut target, 1);
    target.run_until(at_ms(30));
    ask(&mut target, 1);
    target.run_until(at_ms(1000));
    assert_eq!(times(&target), [(0, 0.0), (0, 70.0)]);
}

/// How many of 10,000 responses satisfy `is_hit`, with the given shares.
fn hits(
    change: impl FnOnce(&mut FaultShares),
    is_hit: impl Fn(u16, &[u8]) -> bool,
) -> (usize, Target) {
    let mut target = target(|behaviour| change(&mut behaviour.faults));
    ask(&mut target, 10_000);
    let sent = target.network.sent.iter().enumerate();
    let hits = sent
        .filter(|(index, (_, _, message))| is_hit(*index as u16, message))
        .count();
    (hits, target)
}

#[track_caller]
fn check_share(hits: usize, share: f64) {
    let expected = share * 10_000.0;
    // Four standard deviations of a binomial distribution.
    let slack = 4.0 * (10_000.0 * share * (1.0 - share)).sqrt();
    assert!(
        (hits as f64 - expected).abs() <= slack,
        "{hits}, expected {expected} +- {slack}"
    );
}

#[test]
fn a_share_of_responses_is_lost() {
    let (_, target) = hits(|faults| faults.loss = 0.1, |_, _| true);
    let counters = target.worker.counters();
    check_share(counters.lost as usize, 0.1);
    assert_eq!(counters.lost + counters.responses.total(), 10_000);
    assert_eq!(counters.queries.total(), 10_000);
    assert_eq!(counters.rcodes[0], counters.responses.total());
}

#[test]
fn all_or_no_responses_are_lost_at_the_ends_of_the_scale() {
    let (_, all) = hits(|faults| faults.loss = 1.0, |_, _| true);
    assert_eq!(all.network.sent.len(), 0);
    let (_, none) = hits(|faults| faults.loss = 0.0, |_, _| true);
    assert_eq!(none.network.sent.len(), 10_000);
}

#[test]
fn rcodes_have_their_shares() {
    let shares = |faults: &mut FaultShares| faults.rcodes = vec![(3, 0.1), (2, 0.01)];
    let empty = |rcode: u8| {
        move |_: u16, message: &[u8]| message[3] & 15 == rcode && message[6..12] == [0; 6]
    };
    let (nxdomain, target) = hits(shares, empty(3));
    check_share(nxdomain, 0.1);
    let (servfail, _) = hits(shares, empty(2));
    check_share(servfail, 0.01);
    let counters = target.worker.counters();
    assert_eq!(counters.rcodes[3], nxdomain as u64);
    assert_eq!(counters.rcodes[2], servfail as u64);
    assert_eq!(counters.rcodes[0] as usize, 10_000 - nxdomain - servfail);
}

#[test]
fn a_share_of_responses_has_the_tc_bit_and_no_records() {
    let truncated = |_: u16, message: &[u8]| message[2] & 2 != 0 && message.len() == QUERY_OCTETS;
    check_share(hits(|faults| faults.truncated = 0.2, truncated).0, 0.2);
}

#[test]
fn a_share_of_responses_has_a_wrong_id() {
    let wrong = |index: u16, message: &[u8]| id(message) != index;
    let (count, target) = hits(|faults| faults.wrong_id = 0.05, wrong);
    check_share(count, 0.05);
    assert_eq!(target.worker.counters().spoilt, count as u64);
}

#[test]
fn a_share_of_responses_has_a_wrong_question() {
    let asked = query(0, "name.example A");
    let wrong = |_: u16, message: &[u8]| {
        Message::from_vec(message).unwrap();
        !proto::response::question_matches(&asked, asked.len() - 12, message)
    };
    check_share(hits(|faults| faults.wrong_question = 0.05, wrong).0, 0.05);
    let mut target = target(|behaviour| behaviour.faults.wrong_question = 1.0);
    target.send_datagrams(1, &[query(1, ". A")]);
    assert_eq!(target.network.sent[0].2[12..17], [0, 0, 0, 0, 1]);
}

#[test]
fn a_share_of_responses_is_garbage() {
    let spoilt =
        |index: u16, message: &[u8]| id(message) != index && message.len() == RESPONSE_OCTETS;
    check_share(hits(|faults| faults.garbage = 0.05, spoilt).0, 0.05);
}

#[test]
fn oversized_responses_are_as_long_as_the_client_takes_and_well_formed() {
    let edns = |udp_payload_octets| {
        Some(Edns {
            udp_payload_octets,
            ..Edns::default()
        })
    };
    for (edns, octets) in [
        (edns(65_535), 65_507),
        (edns(4_096), 4_096),
        (edns(1_232), 1_232),
        (edns(100), 512),
        (None, 512),
    ] {
        let mut target = target(|behaviour| behaviour.faults.oversized = 1.0);
        target.send_datagrams(1, &[query_with(1, "a.example A", edns)]);
        let message = &target.network.sent[0].2;
        assert_eq!(message.len(), octets);
        assert_eq!(Message::from_vec(message).unwrap().answers.len(), 1);
    }
}

#[test]
fn a_source_is_sent_no_more_than_its_rate_over_udp() {
    let mut target = Target::new(|config| config.source_rate_max = Some(100));
    ask(&mut target, 250);
    let counters = target.worker.counters();
    assert_eq!(target.network.sent.len(), 100);
    assert_eq!(
        (counters.queries.total(), counters.rate_limited),
        (250, 150)
    );
    target.run_until(at_ms(1_000));
    ask(&mut target, 250);
    assert_eq!(target.network.sent.len(), 200);
}

#[test]
fn a_share_of_responses_is_sent_twice() {
    let mut target = target(|behaviour| behaviour.duplicate_share = 0.1);
    ask(&mut target, 10_000);
    let duplicates = target.network.sent.len() - 10_000;
    check_share(duplicates, 0.1);
    let adjacent = target
        .network
        .sent
        .windows(2)
        .filter(|pair| pair[0].2 == pair[1].2)
        .count();
    assert_eq!(adjacent, duplicates);
    let counters = target.worker.counters();
    assert_eq!(counters.duplicated as usize, duplicates);
    assert_eq!(counters.responses.total() as usize, 10_000 + duplicates);
}

#[test]
fn delayed_duplicates_leave_together() {
    let mut target = target(|behaviour| {
        behaviour.duplicate_share = 1.0;
        behaviour.delay = Delay::Constant(ms(2));
    });
    ask(&mut target, 1);
    target.run_until(at_ms(10));
    assert_eq!(times(&target), [(0, 2.0), (0, 2.0)]);
}

#[test]
fn a_rate_ceiling_queues_in_order_and_drops_beyond_its_queue() {
    let mut target = target(|behaviour| {
        behaviour.rate_qps_max = Some(1000.0);
        behaviour.rate_queue_max = 5;
    });
    ask(&mut target, 10);
    target.run_until(at_ms(20));
    let expected = [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0), (5, 5.0)];
    assert_eq!(times(&target), expected);
    assert_eq!(target.worker.counters().rate_dropped, 4);
    ask(&mut target, 1);
    assert_eq!(times(&target)[6..], [(0, 20.0)]);
}

#[test]
fn a_rate_that_is_no_whole_number_of_nanoseconds_is_met_in_the_long_run() {
    let mut target = target(|behaviour| behaviour.rate_qps_max = Some(3.0));
    ask(&mut target, 3001);
    target.run_until(at_ms(2_000_000));
    let last = times(&target)[3000].1;
    assert!((last - 1_000_000.0).abs() < 0.001, "{last}");
}

#[test]
fn rate_ceiling_without_a_queue_drops_what_exceeds_its_burst() {
    let mut target = target(|behaviour| {
        behaviour.rate_qps_max = Some(1000.0);
        behaviour.rate_burst = Some(ms(4));
    });
    // The first one is in turn, four more are up to 4 ms early, the rest is dropped.
    ask(&mut target, 8);
    let at_once: Vec<_> = (0..5).map(|id| (id, 0.0)).collect();
    assert_eq!(times(&target), at_once);
    assert_eq!(target.worker.counters().rate_dropped, 3);
    // After 2 ms there is room for two.
    target.run_until(at_ms(2));
    ask(&mut target, 3);
    assert_eq!(times(&target).len(), 7);
    assert_eq!(target.worker.counters().rate_dropped, 4);
    assert_eq!(target.next_turn, proto::Instant::FAR_FUTURE);
}

#[test]
fn turns_under_a_rate_ceiling_are_put_off_by_a_stall() {
    let mut target = target(|behaviour| {
        behaviour.rate_qps_max = Some(1000.0);
        behaviour.stalls = vec![Stall {
            at: ms(1),
            length: ms(10),
            every: None,
        }];
    });
    ask(&mut target, 4);
    target.run_until(at_ms(50));
    assert_eq!(times(&target), [(0, 0.0), (1, 11.0), (2, 12.0), (3, 13.0)]);
}

#[test]
fn too_many_delayed_responses_are_dropped_and_counted() {
    let limited = |limits: Limits| {
        let mut target = Target::new(|config| {
            config.behaviour.delay = Delay::Constant(ms(1));
            config.limits = limits;
        });
        for _ in 0..2 {
            ask(&mut target, 10);
            let end = target.network.clock + ms(5);
            target.run_until(end);
        }
        let counters = target.worker.counters();
        (counters.responses.total(), counters.delayed_dropped)
    };
    let by_number = Limits {
        delayed_responses_max: 4,
        ..Limits::default()
    };
    assert_eq!(limited(by_number), (8, 12));
    let by_octets = Limits {
        delayed_octets_max: 3 * RESPONSE_OCTETS,
        ..Limits::default()
    };
    assert_eq!(limited(by_octets), (6, 14));
}

#[test]
fn workers_of_one_responder_draw_different_chances() {
    let lost = |index: u32| {
        let mut config = ResponderConfig::default();
        config.behaviour.faults.loss = 0.5;
        let place = WorkerPlace { index, count: 2 };
        let mut worker = ResponderWorker::new(Arc::new(config), place).unwrap();
        let mut network = Network::default();
        worker.open(&mut network).unwrap();
        let mut target = target(|_| {});
        target.worker = worker;
        target.network = network;
        ask(&mut target, 64);
        times(&target)
    };
    assert_ne!(lost(0), lost(1));
    assert_eq!(lost(1), lost(1));
}

#[test]
fn udp_and_tcp_get_the_same_free_port() {
    let mut network = Network::default();
    network.ports_taken = 3;
    let config = Arc::new(ResponderConfig::default());
    let mut worker = ResponderWorker::new(config, WorkerPlace::ONLY).unwrap();
    worker.open(&mut network).unwrap();
    let udp = worker.address(Transport::Udp).unwrap();
    assert_eq!(worker.address(Transport::Tcp), Some(udp));
    assert_eq!(worker.address(Transport::Dot), None);
    assert_eq!(worker.addresses().len(), 2);
}

#[test]
fn an_address_that_cannot_be_had_is_named() {
    let mut network = Network::default();
    network.ports_taken = 100;
    let config = Arc::new(ResponderConfig {
        listen: vec![(
            Transport::Tcp,
            SocketAddr::from((Ipv4Addr::LOCALHOST, 5353)),
        )],
        ..ResponderConfig::default()
    });
    let mut worker = ResponderWorker::new(config, WorkerPlace::ONLY).unwrap();
    let error = worker.open(&mut network).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(
        error
            .to_string()
            .starts_with("cannot listen for tcp on 127.0.0.1:5353: ")
    );
    assert_eq!(network.ports_taken, 99);
}

#[test]
fn a_configuration_that_contradicts_itself_makes_no_worker() {
    let error =
        |config: ResponderConfig| ResponderWorker::new(Arc::new(config), WorkerPlace::ONLY).err();
    let nowhere = ResponderConfig {
        listen: Vec::new(),
        ..ResponderConfig::default()
    };
    assert_eq!(error(nowhere), Some(ConfigError::ListensNowhere));
    let dot = ResponderConfig {
        listen: vec![(Transport::Dot, client(0))],
        ..ResponderConfig::default()
    };
    assert_eq!(error(dot), Some(ConfigError::NoCertificate(Transport::Dot)));
}

#[test]
fn a_closed_worker_comes_back_on_its_addresses() {
    let mut target = target(|behaviour| behaviour.delay = Delay::Constant(ms(10)));
    ask(&mut target, 3);
    let addresses = target.worker.addresses().to_vec();
    target
        .worker
        .close(&mut target.network, driver::Close::Reset);
    target.run_until(at_ms(20));
    assert_eq!(target.worker.counters().orphaned, 3);
    target
        .worker
        .open_shared(&mut target.network, &addresses)
        .unwrap();
    assert_eq!(target.worker.addresses(), addresses);
}
