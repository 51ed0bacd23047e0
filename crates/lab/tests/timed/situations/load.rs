//! Load that is too much, too little, or not the cause.

use std::net::UdpSocket;

use measure::doctor::of_runs;
use measure::{Limit, RunRecord};
use proto::Transport;
use responder::Delay;

use super::{Expected, together};
use crate::bench::{Load, Ran, Responder, alone, beside, ms};

/// A responder that answers so many queries a second, of which so many may wait.
fn ceiling(load: Load, rate_qps: f64, queue: usize) -> Ran {
    let (ran, _) = load.run_against(|config| {
        config.behaviour.rate_qps_max = Some(rate_qps);
        config.behaviour.rate_queue_max = queue;
    });
    ran
}

fn at(rate_qps: f64) -> Load {
    Load::over(Transport::Udp).rate(rate_qps).plan(|plan| {
        plan.duration = Some(ms(1_500));
        plan.timeout = ms(700);
        plan.interval = ms(100);
    })
}

#[test]
fn a_generator_that_cannot_keep_up_is_the_limit_and_not_the_target() {
    let _alone = alone();
    // More than one core sends, by far, and the responder needs less of its own core.
    let run = |rate_qps: f64| {
        let load = Load::over(Transport::Udp).rate(rate_qps).plan(|plan| {
            plan.duration = Some(ms(1_100));
            plan.sockets.offload = false;
        });
        load.run_against(|_| {}).0
    };
    let ran = run(3_000_000.0);
    let verdict = &ran.record.verdict;
    assert_eq!(verdict.limit, Limit::Generator, "{verdict:#?}");
    let all = measure::doctor::of_run(&ran.record);
    // Where the host is busy otherwise, the worker waits for its CPU, or is stalled.
    let is_named = ["generator's CPU", "lateness", "outage"].contains(&all[0].topic.as_str());
    assert!(is_named && !all[0].cures.is_empty(), "{all:#?}");
    assert_eq!(all[0].seen, verdict.evidence[0]);
    let waiting = all.iter().find(|it| it.topic == "queries not sent");
    assert!(
        waiting.is_some_and(|it| it.seen.contains("still waiting")),
        "{all:#?}"
    );
}

#[test]
fn a_receive_buffer_that_overflows_is_the_limit_until_it_is_larger() {
    let _alone = alone();
    // All responses to 400 queries come at once, and the buffer has room for a few.
    let run = |octets: u32| {
        let load = Load::over(Transport::Udp)
            .clients(1)
            .outstanding(400)
            .plan(|plan| {
                plan.duration = Some(ms(1_500));
                plan.timeout = ms(200);
                plan.sockets.buffer_octets = Some(octets);
                plan.sockets.offload = false;
            });
        let (ran, _) = load.run_against(|config| {
            config.behaviour.delay = Delay::Constant(ms(50));
        });
        ran
    };
    let expected = Expected {
        name: "small receive buffer",
        limit: Limit::Network,
        evidence: "full receive buffers on this host dropped",
        topic: "receive buffers",
        cure: "net.core.rmem_max",
    };
    let then = [Limit::Outstanding, Limit::Server, Limit::Unknown];
    expected.check(|| run(4_096), || run(4 << 20), &then);
}

#[test]
fn a_target_at_its_ceiling_is_the_limit_until_it_is_asked_for_less() {
    let _beside = beside();
    let server = |name, evidence, cure| Expected {
        name,
        limit: Limit::Server,
        evidence,
        topic: "limit: server",
        cure,
    };
    let closed = || {
        let load = Load::over(Transport::Udp).outstanding(200);
        ceiling(
            load.plan(|plan| plan.duration = Some(ms(1_500))),
            2_000.0,
            10_000,
        )
    };
    let below = || ceiling(at(1_400.0), 2_000.0, 10_000);
    let evidence = "while queries queued at the target";
    let growing = || ceiling(at(3_000.0), 2_000.0, 10_000);
    let short = || ceiling(at(3_000.0), 2_000.0, 100);
    let then = [Limit::Rate];
    together(&[
        &|| server("a ceiling, closed loop", evidence, "--rate 1").check(closed, below, &then),
        &|| server("a ceiling, a long queue", "", "--rate 1").check(growing, below, &then),
        &|| server("a ceiling, a short queue", "", "--rate 1").check(short, below, &then),
    ]);
}

#[test]
fn losses_at_any_rate_are_not_blamed_on_the_server() {
    let _beside = beside();
    // One target for all runs: only those at one are compared.
    let target = Responder::start(|config| config.behaviour.faults.loss = 0.3);
    let address = target.address(Transport::Udp);
    let run = |rate_qps: f64| {
        let load = at(rate_qps).plan(|plan| plan.duration = Some(ms(2_000)));
        load.run_at(address)
    };
    let expected = Expected {
        name: "three in ten lost at any rate",
        limit: Limit::Unknown,
        evidence: "nothing shows that the load is the cause",
        topic: "losses without a queue",
        cure: "run at a tenth of the rate to find out: --rate 300;",
    };
    expected.check_alone(|| run(3_000.0));
    // What it says is done: the two runs together tell that the path loses.
    let both = [run(3_000.0).record, run(300.0).record];
    if both.iter().any(super::is_starved) {
        return;
    }
    let found = of_runs(&both.iter().collect::<Vec<&RunRecord>>());
    let path = found.iter().find(|it| it.topic == "path");
    assert!(
        path.is_some_and(|it| it.seen.contains("does not depend on the rate")),
        "{found:#?}"
    );
}

#[test]
fn message_ids_that_are_used_up_are_the_limit_until_there_are_more_clients() {
    let _alone = alone();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let run = |clients: u32| {
        let load = Load::over(Transport::Udp)
            .clients(clients)
            .rate(60_000.0)
            .plan(|plan| {
                plan.duration = Some(ms(2_000));
                plan.timeout = ms(2_500);
            });
        load.run_at(silent.local_addr().unwrap())
    };
    let expected = Expected {
        name: "message IDs",
        limit: Limit::Generator,
        evidence: "the only client had used up its message IDs",
        topic: "message IDs",
        cure: "--clients",
    };
    expected.check(|| run(1), || run(8), &[Limit::Unknown]);
}

#[test]
fn few_queries_at_a_time_are_the_limit_until_there_are_more() {
    let _beside = beside();
    let run = |outstanding: u32| {
        let load = Load::over(Transport::Udp).outstanding(outstanding);
        let load = load.plan(|plan| plan.duration = Some(ms(1_500)));
        let (ran, _) = load.run_against(|config| {
            config.behaviour.delay = Delay::Constant(ms(10));
            config.behaviour.rate_qps_max = Some(1_000.0);
        });
        ran
    };
    let expected = Expected {
        name: "three at a time",
        limit: Limit::Outstanding,
        evidence: "nothing queued",
        topic: "limit: outstanding",
        cure: "--outstanding 12",
    };
    // 12 queries of 10 ms are 1,200 a second: the advice is followed again, beyond doubt.
    expected.check(|| run(3), || run(48), &[Limit::Server]);
}

#[test]
fn an_easy_rate_is_the_limit_and_a_few_queries_are_none() {
    let _beside = beside();
    let run = |rate_qps: f64| ceiling(at(rate_qps), 2_000.0, 10_000);
    let expected = Expected {
        name: "half of the ceiling",
        limit: Limit::Rate,
        evidence: "answered and sent on time",
        topic: "limit: rate",
        cure: "raise --rate",
    };
    expected.check(|| run(1_000.0), || run(4_000.0), &[Limit::Server]);
    let expected = Expected {
        name: "thirty queries",
        limit: Limit::Unknown,
        evidence: "too few to tell: of 30 queries",
        topic: "limit: unknown",
        cure: "ask at least 300 queries: --duration 15s",
    };
    expected.check(|| run(20.0), || run(220.0), &[Limit::Rate]);
}
