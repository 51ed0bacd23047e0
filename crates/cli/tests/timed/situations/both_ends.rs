//! Both ends compared while the server is stopped for a while, so that clients send again.

use std::sync::Arc;

use anyhow::{Context, ensure};
use lab::target::{BindOptions, BindTarget};
use load::StubPolicy;
use load::stub::ServerOrder;
use measure::doctor::of_run;
use proto::Transport;

use super::{on_quiet_host, signal};
use crate::bench::{Load, ms};
use crate::target::zone;

#[test]
fn queries_that_clients_sent_again_are_counted_at_both_ends() {
    let target = BindTarget::start(&BindOptions::new(zone())).unwrap();
    let address = target.endpoints().do53();
    let load = Load::over(Transport::Udp).rate(100.0).plan(|plan| {
        plan.duration = Some(ms(1_500));
        plan.interval = ms(100);
        plan.timeout = ms(20_000);
        plan.stub = Some(Arc::new(StubPolicy {
            servers: vec![address],
            order: ServerOrder::First,
            waits: vec![ms(300), ms(19_700)],
            failover_rcodes: Vec::new(),
            dead_for: ms(0),
            race_delay: None,
        }));
    });
    let process = target.process_id();
    let load = load.observe(&["auto"]).target_process(process);
    // What comes while it is stopped waits in its socket, the queries and those sent again.
    let run = || {
        let load = load.clone();
        load.run_watched(address, |progress, _| match progress.index {
            3 => signal(process, "STOP"),
            10 => signal(process, "CONT"),
            _ => {}
        })
    };
    on_quiet_host(run, |ran| {
        let again = ran.counts().stub.retransmitted;
        ensure!(again > 0, "{:?}", ran.counts());
        let all = of_run(&ran.record);
        let found = all.iter().find(|it| it.topic == "queries at both ends");
        let found = found.with_context(|| format!("{all:#?}"))?;
        let counted = 150 + again;
        let expected = format!(
            "BIND counted {counted} of the {counted} queries that were sent to it, {again} of \
             them sent again"
        );
        ensure!(found.seen == expected, "{found:#?}");
        Ok(())
    });
}
