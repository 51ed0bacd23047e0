//! Situations that need the kernel: the verdict on each, and what `throng doctor` says. Those that
//! the simulator can make are in `crates/lab/tests/simulated/verdicts/suite.rs`.

use lab::target::{BindOptions, BindTarget};
use measure::Limit;
use measure::doctor::{Cure, Diagnosis, of_run};
use proto::Transport;
use responder::Delay;

use crate::bench::{Load, Ran, alone, ms};
use crate::servers::zone;

/// The diagnosis on `topic`, after checking the verdict and a part of one cure.
#[track_caller]
fn check(ran: &Ran, limit: Limit, topic: &str, cure: &str) -> Diagnosis {
    let verdict = &ran.record.verdict;
    assert_eq!(verdict.limit, limit, "{verdict:#?}");
    let all = of_run(&ran.record);
    let found = all.iter().find(|it| it.topic == topic);
    let found = found.unwrap_or_else(|| panic!("nothing on {topic}: {all:#?}"));
    let mut cures = found.cures.iter().map(Cure::sentence);
    assert!(cures.any(|it| it.contains(cure)), "{found:#?}");
    found.clone()
}

#[test]
fn a_generator_that_cannot_keep_up_is_the_limit_and_not_the_target() {
    let _alone = alone();
    // More than one core sends, by far, and the responder needs less of its own core.
    let load = Load::over(Transport::Udp).rate(3_000_000.0).plan(|plan| {
        plan.duration = Some(ms(1_100));
        plan.offload = false;
    });
    let (ran, _) = load.run_against(|_| {});
    let verdict = &ran.record.verdict;
    assert_eq!(verdict.limit, Limit::Generator, "{verdict:#?}");
    let all = of_run(&ran.record);
    // Where the host is busy otherwise, the worker waits for its CPU, or is stalled.
    let is_named = ["generator's CPU", "lateness"].contains(&all[0].topic.as_str());
    assert!(is_named && !all[0].cures.is_empty(), "{all:#?}");
    assert_eq!(all[0].seen, verdict.evidence[0]);
    let waiting = all.iter().find(|it| it.topic == "queries not sent");
    assert!(
        waiting.is_some_and(|it| it.seen.contains("still waiting")),
        "{all:#?}"
    );
}

#[test]
fn a_receive_buffer_that_overflows_is_the_limit_and_not_the_target() {
    let _alone = alone();
    // All responses to 400 queries come at once, and the buffer has room for a few.
    let load = Load::over(Transport::Udp)
        .clients(1)
        .outstanding(400)
        .plan(|plan| {
            plan.duration = Some(ms(2_000));
            plan.timeout = ms(200);
            plan.socket_buffer_octets = Some(4_096);
            plan.offload = false;
        });
    let (ran, _) = load.run_against(|config| {
        config.behaviour.delay = Delay::Constant(ms(50));
    });
    assert!(
        ran.record.network.receive_drops > 100,
        "{:?}",
        ran.record.network
    );
    let found = check(&ran, Limit::Network, "receive buffers", "net.core.rmem_max");
    assert_eq!(found.seen, ran.record.verdict.evidence[0]);
}

#[test]
fn bind_with_more_clients_than_it_takes_gets_binds_own_statements() {
    let _alone = alone();
    // BIND's default is 150.
    let target = BindTarget::start(&BindOptions::new(zone())).unwrap();
    let load = Load::over(Transport::Tcp)
        .clients(200)
        .rate(2_000.0)
        .plan(|plan| {
            plan.duration = Some(ms(2_000));
            plan.timeout = ms(500);
        });
    let ran = load.run_at(target.endpoints().do53());
    let found = check(&ran, Limit::Server, "TCP clients", "tcp-clients 1000;");
    assert!(
        found.matters.contains("150 is what BIND allows"),
        "{found:#?}"
    );
}
