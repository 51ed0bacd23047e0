//! What limited a run is known here, and the verdict says so with its evidence.

use measure::Limit;
use proto::Transport;
use responder::Delay;

use crate::sim::{Run, Sim, TARGET, ms};

mod random;
mod suite;

#[track_caller]
fn assert_verdict(run: &Run, limit: Limit, evidence: &str) {
    let verdict = &run.record.verdict;
    assert_eq!(verdict.limit, limit, "{verdict:?}");
    assert!(verdict.evidence[0].contains(evidence), "{verdict:?}");
}

fn scenario(transport: Transport) -> Sim {
    Sim::seed(9)
        .over(transport)
        .clients(10)
        .one_way_delay_ms(1)
        .duration_ms(3_000)
}

#[test]
fn few_places_and_a_fast_target_are_bound_by_outstanding() {
    for transport in Transport::ALL {
        let run = scenario(transport).outstanding(10).run();
        assert_verdict(&run, Limit::Outstanding, "nothing queued");
        let law = run.record.verdict.evidence.join("\n");
        assert!(law.contains("mean latency 2"), "{law}");
    }
}

#[test]
fn slow_target_without_a_queue_is_bound_by_outstanding_too() {
    let sim = scenario(Transport::Udp).outstanding(10);
    let run = sim.behaviour(|it| it.delay = Delay::Constant(ms(50))).run();
    assert_verdict(&run, Limit::Outstanding, "nothing queued");
}

#[test]
fn answered_open_loop_is_bound_by_its_rate() {
    for transport in Transport::ALL {
        let run = scenario(transport).rate(2_000.0).run();
        assert_verdict(&run, Limit::Rate, "answered and sent on time");
    }
}

#[test]
fn rate_cap_of_a_closed_loop_is_named() {
    let run = scenario(Transport::Udp)
        .outstanding_capped(100, 1_000.0)
        .run();
    assert_verdict(&run, Limit::Rate, "rate cap");
}

#[test]
fn closed_loop_at_the_ceiling_of_the_target_is_bound_by_the_server() {
    for transport in Transport::ALL {
        let sim = scenario(transport).outstanding(200);
        let run = sim.behaviour(|it| it.rate_qps_max = Some(2_000.0)).run();
        assert_verdict(&run, Limit::Server, "queued at the target");
        let qps = run.record.achieved_qps();
        assert!((qps - 2_000.0).abs() < 20.0, "{qps}");
    }
}

#[test]
fn open_loop_beyond_the_ceiling_of_the_target_is_bound_by_the_server() {
    for transport in Transport::ALL {
        let sim = scenario(transport).rate(3_000.0);
        let run = sim.behaviour(|it| it.rate_qps_max = Some(2_000.0)).run();
        assert_verdict(&run, Limit::Server, "latency grew");
    }
}

#[test]
fn open_loop_with_losses_is_blamed_on_the_path_that_lost_them() {
    let run = scenario(Transport::Udp)
        .rate(1_000.0)
        .link_towards(TARGET, |link| link.loss_share = 0.05)
        .run();
    assert_verdict(&run, Limit::Network, "got no response");
}

#[test]
fn places_held_by_lost_queries_are_named() {
    let sim = scenario(Transport::Udp).outstanding(20).timeout_ms(1_000);
    let run = sim.behaviour(|it| it.faults.loss = 0.01).run();
    assert_verdict(&run, Limit::Outstanding, "held by lost queries");
}

#[test]
fn cap_on_tcp_clients_is_named_with_its_number() {
    for transport in [Transport::Tcp, Transport::Dot] {
        for is_reset in [true, false] {
            let sim = scenario(transport).clients(40).outstanding(40);
            let run = sim
                .behaviour(|behaviour| {
                    behaviour.tcp_clients_max = Some(25);
                    behaviour.excess_is_reset = is_reset;
                })
                .run();
            assert_verdict(&run, Limit::Server, "serves no more than 25 TCP clients");
        }
    }
}

#[test]
fn stall_of_the_target_is_not_blamed_on_the_generator() {
    let sim = scenario(Transport::Udp).rate(1_000.0).timeout_ms(200);
    let run = sim
        .behaviour(|it| it.stalls = vec![crate::sim::stall("at=1s,for=1s")])
        .run();
    assert_ne!(run.record.verdict.limit, Limit::Generator);
    assert!(run.timeouts() > 700);
}

#[test]
fn connections_that_make_queries_wait_are_not_blamed_on_the_generator() {
    let run = scenario(Transport::Dot)
        .rate(1_000.0)
        .plan(|plan| plan.connections.queries_max = Some(2))
        .run();
    assert_ne!(
        run.record.verdict.limit,
        Limit::Generator,
        "{:?}",
        run.record.verdict
    );
}

#[test]
fn run_without_a_response_tells_nothing_and_says_why() {
    let run = scenario(Transport::Udp)
        .rate(100.0)
        .timeout_ms(500)
        .target_dead(0, 60_000)
        .run();
    assert_verdict(&run, Limit::Unknown, "timed out");
    let run = scenario(Transport::Tcp)
        .rate(100.0)
        .timeout_ms(500)
        .target_dead(0, 60_000)
        .run();
    assert_verdict(&run, Limit::Unknown, "refused");
}

#[test]
fn run_of_less_than_a_second_tells_nothing() {
    let run = scenario(Transport::Udp)
        .rate(1_000.0)
        .duration_ms(900)
        .run();
    assert_verdict(&run, Limit::Unknown, "less than 1 s");
}
