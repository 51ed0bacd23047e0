//! Runs against a modelled server: what the record says is what queueing theory and arithmetic say
//! about the model.

use std::time::Duration;

use load::question_source::Order;
use measure::simulation::ModelledServer;
use measure::{Limit, RunRecord};
use proto::Transport;
use responder::{CacheModel, Delay, ServiceModel};

use crate::sim::{Run, Sim, ms, ns};

fn us(microseconds: u64) -> Duration {
    Duration::from_micros(microseconds)
}

fn with(sim: Sim, model: ServiceModel) -> Sim {
    sim.responder(|responder| responder.service = Some(model))
}

fn model(workers: u32, query: &str) -> ServiceModel {
    ServiceModel {
        workers,
        query: crate::sim::delay(query),
        ..ServiceModel::default()
    }
}

fn server(record: &RunRecord) -> &ModelledServer {
    let simulation = record.simulation.as_ref().unwrap();
    simulation.server.as_ref().unwrap()
}

#[track_caller]
fn assert_near(found: f64, expected: f64, tolerance: f64) {
    let error = (found - expected).abs() / expected;
    assert!(
        error < tolerance,
        "{found} instead of {expected}: off by {:.1} %",
        100.0 * error
    );
}

#[test]
fn latency_of_an_m_m_c_server_is_network_and_erlangs_wait_and_service() {
    // 4 workers with 1 ms each, busy for 80 %: Erlang's C is 0.5964, so the mean wait 0.7455 ms.
    for transport in [Transport::Udp, Transport::Tcp] {
        let sim = Sim::seed(4).over(transport).clients(50).poisson(3_200.0);
        let sim = sim.one_way_delay_ms(5).duration_ms(60_000);
        let run = with(sim, model(4, "exponential:1ms")).run();
        let seen = &server(&run.record).seen;
        assert_near(seen.waits.mean_ns().unwrap(), 745_500.0, 0.05);
        assert_near(seen.utilisation, 0.8, 0.01);
        let latency = run.record.total.distributions.latency.mean_ns().unwrap();
        assert_near(latency, 10e6 + 745_500.0 + 1e6, 0.01);
        // The last ones are on their way when the run ends.
        let on_the_way = run.offered() - seen.queries;
        assert!(on_the_way < 40, "{transport}: {on_the_way}");
        assert_eq!(run.record.verdict.limit, Limit::Rate);
    }
}

#[test]
fn latency_of_an_m_d_1_server_is_that_of_pollaczek_and_khinchine() {
    // Busy for 70 %, 1 ms each: a mean wait of 0.7 / (2 * 0.3) ms.
    let sim = Sim::seed(5).udp().clients(20).poisson(700.0);
    let run = with(sim.duration_ms(100_000), model(1, "1ms")).run();
    let latency = run.record.total.distributions.latency.mean_ns().unwrap();
    assert_near(latency, (1.0 + 0.7 / 0.6) * 1e6, 0.03);
}

#[test]
fn load_above_the_capacity_loses_what_exceeds_it() {
    // 2 workers of 1 ms answer 2,000 a second, whatever is offered.
    let sim = Sim::seed(6).udp().clients(20).rate(3_000.0);
    let sim = sim.duration_ms(10_000).timeout_ms(1_000);
    let bounded = ServiceModel {
        datagrams_max: Some(100),
        ..model(2, "1ms")
    };
    let run = with(sim, bounded).run();
    let seen = &server(&run.record).seen;
    // In 10 s 20,000 are served, and those that wait at the end.
    assert_eq!(run.offered(), 30_000);
    assert!(
        (20_000..=20_102).contains(&run.responses()),
        "{}",
        run.responses()
    );
    assert_eq!(run.counts().timeouts, seen.dropped);
    assert_eq!(run.responder.queue_dropped, seen.dropped);
    assert_eq!(seen.waiting_max, 100);
    assert!(seen.utilisation > 0.999, "{}", seen.utilisation);
    let verdict = &run.record.verdict;
    assert_eq!(verdict.limit, Limit::Server);
    let decisive = &verdict.evidence[0];
    assert!(
        decisive.starts_with("the modelled server's 2 workers were busy for 100"),
        "{decisive}"
    );
    let last = verdict.evidence.last().unwrap();
    assert!(
        last.starts_with("SIMULATION: no server was measured"),
        "{last}"
    );
}

#[test]
fn closed_loop_is_served_at_the_capacity_and_nothing_is_lost() {
    let sim = Sim::seed(7).tcp().clients(100).outstanding(500);
    let run = with(sim.duration_ms(5_000), model(4, "1ms")).run();
    assert_near(run.record.achieved_qps(), 4_000.0, 0.01);
    assert_eq!(run.counts().lost(), 0);
    assert_eq!(run.record.verdict.limit, Limit::Server);
    assert_eq!(server(&run.record).seen.waiting_max, 496);
}

/// One connection for every query.
fn short_lived(transport: Transport, model: ServiceModel) -> Run {
    let sim = Sim::seed(8).over(transport).clients(200).rate(100.0);
    let sim = sim.one_way_delay_ms(1).duration_ms(10_000);
    let sim = sim.plan(|plan| plan.connections.queries_max = Some(1));
    with(sim, model).run()
}

#[test]
fn connections_and_handshakes_cost_what_the_model_says() {
    for transport in [
        Transport::Tcp,
        Transport::Dot,
        Transport::Doh2,
        Transport::Doq,
    ] {
        let costly = ServiceModel {
            accept: us(100),
            handshake_full: us(2_000),
            handshake_resumed: us(500),
            ..model(1, "200us")
        };
        let run = short_lived(transport, costly);
        let seen = &server(&run.record).seen;
        let is_tcp = !transport.is_quic();
        let accept_us = if is_tcp { 100.0 } else { 0.0 };
        let handshake_us = if transport.has_tls() { 2_000.0 } else { 0.0 };
        // 100 a second of each, for 10 s; clients reconnect as soon as they are served.
        let expected = 100.0 * (accept_us + handshake_us + 200.0) / 1e6;
        assert_near(seen.utilisation, expected, 0.02);
        assert_eq!(seen.accepted > 0, is_tcp, "{transport}");
        assert_eq!(seen.handshakes > 0, transport.has_tls(), "{transport}");
        assert_eq!(run.counts().lost(), 0, "{transport}");
    }
}

#[test]
fn handshake_takes_the_client_as_much_longer_as_the_server_needs_for_it() {
    for transport in [Transport::Dot, Transport::Doq] {
        let set_up_ns = |model: ServiceModel| {
            let run = short_lived(transport, model);
            let times = run.record.connection_times();
            times.set_up_ns() as f64 / run.record.connections().usable(true) as f64
        };
        let without = set_up_ns(model(8, "1us"));
        let with_cost = set_up_ns(ServiceModel {
            handshake_full: us(3_000),
            ..model(8, "1us")
        });
        // Before the run ten clients at a time share the eight workers.
        assert_near(with_cost - without, 3e6, 0.25);
    }
}

#[test]
fn syns_beyond_the_backlog_are_lost_and_come_again_a_second_later() {
    // Ten clients connect at once.
    let sim = Sim::seed(9)
        .tcp()
        .clients(10)
        .queries(10)
        .timeout_ms(20_000);
    let slow = ServiceModel {
        accept: us(10_000),
        backlog_max: Some(3),
        ..model(1, "1us")
    };
    let run = with(sim.outstanding(10), slow).run();
    let network = &run.record.simulation.as_ref().unwrap().network;
    // Three of ten have room, then three of those that come again after 1 s, three more 2 s later,
    // and the last one after another 4 s.
    assert_eq!(network.syns_dropped, 7 + 4 + 1);
    let set_up = run.record.connection_times().tcp_connect;
    assert_eq!(set_up.max_ns(), Some(ns(7_000)));
    assert_eq!(run.responses(), 10);
}

#[test]
fn clients_of_a_slow_server_are_connected_before_the_run_without_overflowing_its_backlog() {
    // Ten handshakes take longer than an attempt may that is not known to be slow.
    let slow = ServiceModel {
        handshake_full: us(60_000),
        backlog_max: Some(10),
        ..model(1, "1us")
    };
    let sim = Sim::seed(14).over(Transport::Dot).clients(300).rate(300.0);
    let run = with(sim, slow).run();
    let network = &run.record.simulation.as_ref().unwrap().network;
    assert_eq!(network.syns_dropped, 0);
    let connections = run.record.connections();
    assert_eq!(connections.attempted, 300);
    assert_eq!((connections.failed.total(), run.responses()), (0, 300));
    // None of them was connected late.
    let latency = &run.record.total.distributions.latency;
    assert!(latency.max_ns() < Some(ns(60)), "{:?}", latency.max_ns());
}

#[test]
fn connections_beyond_the_limit_on_clients_are_refused() {
    let sim = Sim::seed(10)
        .tcp()
        .clients(30)
        .rate(300.0)
        .duration_ms(3_000);
    let sim = sim.behaviour(|behaviour| behaviour.tcp_clients_max = Some(20));
    let run = with(sim, model(2, "100us")).run();
    assert_eq!(server(&run.record).connections_max, Some(20));
    assert!(run.responder.connections_refused.total() > 0);
    assert_eq!(run.record.verdict.limit, Limit::Server);
}

#[test]
fn hit_ratio_follows_from_the_questions_and_the_ttl() {
    // 100 names in turn at 1,000/s: each comes every 100 ms. An answer of 950 ms serves 9 others.
    let sim = Sim::seed(11).udp().names(100).rate(1_000.0);
    let sim = sim.warmup_ms(2_000).duration_ms(10_000);
    let resolver = ServiceModel {
        cache: Some(CacheModel {
            ttl: ms(950),
            entries_max: None,
            miss: Delay::Constant(ms(30)),
            miss_service: us(50),
        }),
        ..model(1, "10us")
    };
    let run = with(sim, resolver).run();
    let server = server(&run.record);
    let cache = server.cache.as_ref().unwrap();
    assert_near(cache.hit_share(), 0.9, 0.002);
    assert_eq!(cache.hits + cache.misses, 10_000);
    // A miss takes 30 ms, of which no worker is occupied but for 50 us.
    let latency = &run.record.total.distributions.latency;
    assert!(latency.percentile(0.85).unwrap() < ns(1));
    assert!(latency.percentile(0.95).unwrap() >= ns(29));
    assert_near(server.seen.utilisation, 0.010 + 100.0 * 50e-6, 0.01);
}

/// Of each question one in `1 + rate * ttl` is a miss, if it is asked at Poisson instants and the
/// miss takes no time.
fn hits_by_ttl(weights: impl Iterator<Item = f64> + Clone, rate: f64, ttl_s: f64) -> f64 {
    let sum: f64 = weights.clone().sum();
    let asked = weights.map(|weight| (weight / sum, weight / sum * rate * ttl_s));
    asked
        .map(|(share, per_ttl)| share * per_ttl / (1.0 + per_ttl))
        .sum()
}

#[test]
fn hit_ratio_of_zipf_and_uniform_questions_is_the_analytic_one() {
    let ranks = (1..=1_000).map(f64::from);
    let zipf = hits_by_ttl(ranks.clone().map(|rank| rank.powf(-0.9)), 1_000.0, 0.5);
    let uniform = hits_by_ttl(ranks.map(|_| 1.0), 1_000.0, 0.5);
    for (order, expected) in [
        (Order::Zipf { exponent: 0.9 }, zipf),
        (Order::Uniform, uniform),
    ] {
        let sim = Sim::seed(21)
            .udp()
            .clients(10)
            .names(1_000)
            .poisson(1_000.0);
        let sim = sim.warmup_ms(2_000).duration_ms(60_000);
        let sim = sim.plan(|plan| plan.question_source.order = order);
        let resolver = ServiceModel {
            cache: Some(CacheModel {
                ttl: ms(500),
                entries_max: None,
                miss: Delay::None,
                miss_service: Duration::ZERO,
            }),
            ..ServiceModel::default()
        };
        let run = with(sim, resolver).run();
        let cache = server(&run.record).cache.as_ref().unwrap();
        assert_near(cache.hit_share(), expected, 0.015);
    }
}

#[test]
fn same_seed_gives_the_same_record_with_a_model_too() {
    let run = |transport: Transport| {
        let sim = Sim::seed(12).over(transport).clients(20).poisson(500.0);
        let sim = sim.one_way_delay_ms(1).duration_ms(2_000).names(50);
        let everything = ServiceModel {
            accept: us(20),
            handshake_full: us(300),
            handshake_resumed: us(60),
            datagrams_max: Some(10),
            backlog_max: Some(4),
            cache: Some(CacheModel {
                ttl: ms(300),
                entries_max: Some(30),
                miss: crate::sim::delay("exponential:20ms"),
                miss_service: us(30),
            }),
            ..model(2, "exponential:2ms")
        };
        with(sim, everything).run().record.to_json()
    };
    for transport in Transport::ALL {
        assert_eq!(run(transport), run(transport), "{transport}");
    }
}

#[test]
fn responders_own_delay_comes_after_the_modelled_server() {
    let sim = Sim::seed(13).udp().rate(100.0);
    let sim = sim.behaviour(|behaviour| behaviour.delay = Delay::Constant(ms(7)));
    let run = with(sim, model(1, "2ms")).run();
    let latency = &run.record.total.distributions.latency;
    assert_eq!(latency.min_ns(), latency.max_ns());
    assert_near(latency.mean_ns().unwrap(), 9e6, 0.01);
}

#[test]
fn simulation_without_a_model_says_that_it_is_one() {
    let run = Sim::seed(14).udp().rate(100.0).run();
    let simulation = run.record.simulation.as_ref().unwrap();
    assert!(simulation.server.is_none());
    let marking = run.record.verdict.evidence.last().unwrap();
    assert!(
        marking.starts_with("SIMULATION: no server was measured"),
        "{marking}"
    );
}
