//! Latencies are exact: network and target add up to the nanosecond, and nothing else does.

use proto::Transport;
use responder::Delay;

use crate::sim::{Run, Sim, ms, ns};

fn assert_all_latencies(run: &Run, expected_ns: u64) {
    for histogram in [run.latency(), run.service()] {
        let bounds = (histogram.min_ns(), histogram.max_ns());
        assert_eq!(bounds, (Some(expected_ns), Some(expected_ns)));
        assert_eq!(histogram.mean_ns(), Some(expected_ns as f64));
    }
    assert_eq!(run.responses(), run.offered());
    assert!(run.responses() > 0);
}

fn constant_delay(transport: Transport) -> Sim {
    let sim = Sim::seed(1).over(transport).clients(3);
    sim.behaviour(|behaviour| behaviour.delay = Delay::Constant(ms(5)))
}

#[test]
fn constant_delay_of_the_target_is_every_latency() {
    for transport in Transport::ALL {
        assert_all_latencies(&constant_delay(transport).rate(1_000.0).run(), ns(5));
        assert_all_latencies(&constant_delay(transport).outstanding(9).run(), ns(5));
    }
}

#[test]
fn one_way_delay_counts_twice() {
    for transport in Transport::ALL {
        let sim = constant_delay(transport).one_way_delay_ms(7);
        assert_all_latencies(&sim.clone().rate(1_000.0).run(), ns(2 * 7 + 5));
        let run = sim.outstanding(9).run();
        assert_all_latencies(&run, ns(2 * 7 + 5));
        let times = run.record.connection_times();
        let (connect, handshake) = (times.tcp_connect, times.tls_handshake);
        if transport.is_stream() {
            assert_eq!((connect.count(), connect.max_ns()), (3, Some(ns(14))));
        }
        if transport == Transport::Dot {
            assert_eq!((handshake.count(), handshake.max_ns()), (3, Some(ns(14))));
        }
    }
}

#[test]
fn closed_loop_without_delays_in_the_target_obeys_littles_law() {
    let sim = Sim::seed(1).one_way_delay_ms(5).clients(4).outstanding(20);
    let run = sim.warmup_ms(100).run();
    // 20 places of 10 ms each for 1 s.
    assert_eq!(run.offered(), 20 * 100);
    assert_eq!(run.record.mean_in_flight(), 20.0);
    assert_eq!(run.record.achieved_qps(), 2_000.0);
}

#[test]
fn single_query_is_a_whole_run() {
    let run = Sim::seed(7).one_way_delay_ms(3).ask(1, "www.example. A");
    assert_eq!((run.offered(), run.sent(), run.responses()), (1, 1, 1));
    assert_all_latencies(&run, ns(6));
    assert_eq!(run.record.measured_ns, ns(6));
    assert_eq!(run.record.responses_in_window, 1);
}
