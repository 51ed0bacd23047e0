//! The memory of a responder with malicious clients.

use driver::Close;
use proto::Transport;
use proto::query::Edns;
use responder::{Delay, FaultShares, ResponderConfig};

use crate::network::{Target, at_ms, framed, id, ms, query, query_with};
use crate::quic::Quic;

/// Default limit of queries and responses that a responder keeps.
const PENDING_OCTETS: usize = 192 << 20;

/// Limit of the process' memory for the same.
const ALLOCATED_OCTETS_MAX: u64 = 512 << 20;

/// Every response is of 64 KB.
fn long_responses(config: &mut ResponderConfig) {
    config.behaviour.faults = FaultShares {
        oversized: 1.0,
        ..FaultShares::default()
    };
}

#[test]
fn clients_over_tcp_that_never_read_leave_room_for_one_that_does() {
    let measured = allocation_counter::measure(|| {
        let mut target = Target::new(long_responses);
        let honest = target.connect(Transport::Tcp);
        let queries = framed(&[query(1, "name.example A"), query(2, "name.example A")]);
        for number in 0..10_000 {
            target.run_until(at_ms(number));
            let deaf = target.connect(Transport::Tcp);
            target.stream(deaf).room = Some(0);
            target.send_bytes(deaf, &queries);
            assert!(target.worker.pending_octets() <= PENDING_OCTETS);
            if number % 50 == 0 {
                let asked = query(number as u16, "name.example A");
                target.send_bytes(honest, &framed(&[asked]));
                let answers = target.messages(honest);
                assert_eq!((answers.len(), id(&answers[0])), (1, number as u16));
            }
        }
        assert_eq!(target.stream(honest).closed, None);
        let counters = target.worker.counters();
        assert!(counters.memory_closed > 5_000, "{counters}");
        assert_eq!(counters.connections_reset.total(), counters.memory_closed);
        let kept = target.worker.connections();
        assert_eq!(kept as u64 + counters.memory_closed, 10_001);
    });
    assert!(measured.bytes_max < ALLOCATED_OCTETS_MAX, "{measured:?}");
}

/// An idle population holds no memory that others need.
#[test]
fn clients_that_never_read_do_not_cost_idle_ones_their_connections() {
    let mut target = Target::new(|config| {
        long_responses(config);
        config.limits.pending_octets_max = 4 << 20;
    });
    let idle: Vec<_> = (0..200).map(|_| target.connect(Transport::Tcp)).collect();
    for number in 0..500 {
        target.run_until(at_ms(100 * number));
        let deaf = target.connect(Transport::Tcp);
        target.stream(deaf).room = Some(0);
        target.send_bytes(deaf, &framed(&[query(1, "name.example A")]));
        assert!(target.worker.pending_octets() <= 4 << 20);
    }
    assert!(target.worker.counters().memory_closed > 100);
    let is_open = |socket: &_| target.stream(*socket).closed.is_none();
    assert!(idle.iter().all(is_open));
}

#[test]
fn idle_connections_have_a_limit_of_their_own() {
    let mut target = Target::new(|config| config.limits.memory_octets_max = 1 << 20);
    for number in 0..10_000 {
        target.run_until(at_ms(number));
        target.connect(Transport::Tcp);
        assert!(target.worker.memory_octets() <= 1 << 20);
    }
    assert!(target.worker.counters().memory_closed > 8_000);
}

#[test]
fn queries_that_are_never_whole_are_counted() {
    let mut target = Target::new(|config| config.limits.memory_octets_max = 1 << 20);
    let mut long = vec![0; 60_000];
    long[..2].copy_from_slice(&[0xff, 0xff]);
    let slow: Vec<_> = (0..100)
        .map(|number| {
            target.run_until(at_ms(number));
            let socket = target.connect(Transport::Tcp);
            target.send_bytes(socket, &long);
            assert!(target.worker.memory_octets() <= 1 << 20);
            socket
        })
        .collect();
    assert_eq!(target.stream(slow[0]).closed, Some(Close::Reset));
    assert_eq!(target.stream(slow[99]).closed, None, "the newest one stays");
    target.worker.close(&mut target.network, Close::Reset);
    assert_eq!(target.worker.memory_octets(), 0);
}

#[test]
fn delayed_responses_have_at_most_half_of_the_memory() {
    let mut target = Target::new(|config| {
        long_responses(config);
        config.behaviour.delay = Delay::Constant(ms(1_000));
        config.limits.pending_octets_max = 4 << 20;
    });
    let edns = || Edns {
        udp_payload_octets: u16::MAX,
        ..Edns::default()
    };
    for number in 0..200 {
        let long = query_with(number, "name.example A", Some(edns()));
        target.send_datagrams(number, &[long]);
        assert!(target.worker.memory_octets() <= 4 << 20);
    }
    let dropped = target.worker.counters().delayed_dropped;
    assert!((165..=175).contains(&dropped), "{dropped}");
    target.run_until(at_ms(2_000));
    assert_eq!(target.worker.memory_octets(), 0);
}

#[test]
fn shares_of_workers_make_up_the_memory() {
    let mut target = Target::sharing(4, |config| {
        long_responses(config);
        config.limits.memory_octets_max = 4 << 20;
    });
    for number in 0..100 {
        target.run_until(at_ms(number));
        let deaf = target.connect(Transport::Tcp);
        target.stream(deaf).room = Some(0);
        target.send_bytes(deaf, &framed(&[query(1, "name.example A")]));
        assert!(target.worker.memory_octets() <= 1 << 20);
    }
}

#[test]
fn clients_over_quic_that_never_read_leave_room_for_one_that_does() {
    for transport in [Transport::Doq, Transport::Doh3] {
        let memory = 16 << 20;
        let mut quic = Quic::new(transport, |config| {
            long_responses(config);
            config.limits.memory_octets_max = memory;
        });
        quic.connect();
        quic.run(ms(100));
        for deaf in 1..150 {
            quic.connect();
            quic.run(ms(100));
            quic.ask(deaf, 0..20).unwrap();
            quic.send(deaf);
            quic.deafen(deaf);
            assert!(quic.target.worker.memory_octets() <= memory);
            quic.ask(0, 1_000..1_001).unwrap();
            quic.run(ms(100));
            assert_eq!((quic.ends.len(), quic.lost.len()), (deaf, 0), "{transport}");
        }
        let counters = quic.counters();
        assert!(counters.memory_closed > 50, "{counters}");
        assert!(counters.unread_dropped > 100, "{counters}");
    }
}

/// Initials of many clients, each from its own address. Those after the first `unvalidated_max` are
/// answered with a Retry and leave no state, so the account after 3,000 equals that after a
/// million.
#[test]
fn spoofed_initials_leave_room_for_honest_clients() {
    for transport in [Transport::Doq, Transport::Doh3] {
        let mut quic = Quic::new(transport, |_| {});
        let (mut held, mut state) = (0, 0);
        for number in 0..3_000 {
            let initial = quic.initial();
            quic.target
                .send_datagrams_to(transport, number + 2_000, &[initial]);
            quic.target.network.sent.clear();
            if number == 2_100 {
                held = quic.target.worker.memory_octets();
                state = quic.target.worker.connections();
            }
        }
        let worker = &quic.target.worker;
        assert_eq!(
            (worker.memory_octets(), worker.connections()),
            (held, state)
        );
        assert_eq!((state, worker.unvalidated()), (2_048, 2_048));
        assert!(held < PENDING_OCTETS, "{held}");
        assert_eq!(quic.counters().quic_retries, 3_000 - 2_048);

        let honest = quic.connect();
        quic.run(ms(100));
        quic.ask(honest, 0..10).unwrap();
        quic.run(ms(100));
        assert_eq!((quic.ends.len(), quic.lost.len()), (10, 0));
        assert_eq!(quic.counters().quic_retries, 3_001 - 2_048);
        quic.run(ms(10_000));
        let worker = &quic.target.worker;
        assert_eq!(
            (worker.unvalidated(), worker.counters().handshakes_late),
            (0, 2_048)
        );
        assert!(worker.memory_octets() < 1 << 20);
    }
}

/// The token of one worker is valid for another one with the same configuration.
#[test]
fn token_of_retry_is_valid_for_all_workers() {
    let mut quic = Quic::new(Transport::Doq, |config| {
        config.limits.quic_unvalidated_max = 1;
    });
    let initial = quic.initial();
    quic.target
        .send_datagrams_to(Transport::Doq, 2_000, &[initial]);
    quic.target.network.sent.clear();
    let client = quic.connect();
    let first = quic.exchange_once();
    assert_eq!((first, quic.counters().quic_retries), (2, 1));
    quic.target = quic.target.sibling();
    quic.run(ms(100));
    assert_eq!((quic.handshakes.len(), quic.lost.len()), (1, 0));
    quic.ask(client, 0..1).unwrap();
    quic.run(ms(100));
    assert_eq!(quic.ends.len(), 1);
}
