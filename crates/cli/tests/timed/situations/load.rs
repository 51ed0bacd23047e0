//! Load that is too much, too little, or not the cause.

use std::net::UdpSocket;

use anyhow::ensure;
use measure::Limit;
use measure::doctor::of_runs;
use proto::Transport;
use responder::{Delay, ResponderConfig};
use testing::quiet::Quiet;
use testing::timed::{self, Attempt};

use super::{Expected, on_quiet_host, together};
use crate::bench::{Load, Ran, Responder, ms, own_address};

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
    // More than one core sends, by far, and the responder needs less of its own core.
    let run = |rate_qps: f64| {
        let load = Load::over(Transport::Udp).rate(rate_qps).plan(|plan| {
            plan.duration = Some(ms(1_100));
            plan.sockets.offload = false;
        });
        load.run_against(|_| {}).0
    };
    let judge = |ran: &Ran| {
        let verdict = &ran.record.verdict;
        ensure!(verdict.limit == Limit::Generator, "{verdict:#?}");
        let all = measure::doctor::of_run(&ran.record);
        // Where the responder takes the generator's CPU, the worker waits for it, or is stalled.
        let is_named = ["generator's CPU", "lateness", "outage"].contains(&all[0].topic.as_str());
        ensure!(is_named && !all[0].cures.is_empty(), "{all:#?}");
        ensure!(all[0].seen == verdict.evidence[0], "{all:#?}");
        let waiting = all.iter().find(|it| it.topic == "queries not sent");
        let is_waiting = waiting.is_some_and(|it| it.seen.contains("still waiting"));
        ensure!(is_waiting, "{all:#?}");
        Ok(())
    };
    on_quiet_host(|| run(3_000_000.0), judge);
}

#[test]
fn a_receive_buffer_that_overflows_is_the_limit_until_it_is_larger() {
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
    let lossy = |config: &mut ResponderConfig| config.behaviour.faults.loss = 0.3;
    let load = |rate_qps: f64| at(rate_qps).plan(|plan| plan.duration = Some(ms(2_000)));
    let expected = Expected {
        name: "three in ten lost at any rate",
        limit: Limit::Unknown,
        evidence: "nothing shows that the load is the cause",
        topic: "losses without a queue",
        cure: "run at a tenth of the rate to find out: --rate 300;",
    };
    expected.check_alone(|| load(3_000.0).run_against(lossy).0);
    // The advice followed: the two runs together show that the path loses. Only runs at one target
    // are compared.
    timed::on_quiet_host(Quiet::VERDICT, || {
        let target = Responder::start(lossy);
        let address = target.address(Transport::Udp);
        let both = [3_000.0, 300.0].map(|rate_qps| load(rate_qps).run_at(address));
        let (_, target_waited) = target.serving.stop_and_tell();
        let [fast, slow] = both.map(|ran| Ran {
            target_waited,
            ..ran
        });
        let found = of_runs(&[&fast.record, &slow.record]);
        let path = found.iter().find(|it| it.topic == "path");
        let is_named = path.is_some_and(|it| it.seen.contains("does not depend on the rate"));
        Attempt {
            disturbance: fast.disturbance().or(slow.disturbance()),
            outcome: is_named.then_some(()).ok_or_else(|| format!("{found:#?}")),
        }
    });
}

#[test]
fn message_ids_that_are_used_up_are_the_limit_until_there_are_more_clients() {
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

#[test]
fn a_target_where_nothing_listens_has_no_known_limit() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let target = Responder::start_at(own_address(), |_| {});
        let address = target.address(transport);
        target.serving.stop();
        let run = || {
            let load = Load::over(transport).rate(1_000.0);
            load.plan(|plan| plan.timeout = ms(300)).run_at(address)
        };
        on_quiet_host(run, |ran| {
            let verdict = &ran.record.verdict;
            ensure!(verdict.limit == Limit::Unknown, "{transport}: {verdict:#?}");
            Ok(())
        });
    }
}
