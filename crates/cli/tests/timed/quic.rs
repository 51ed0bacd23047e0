//! Runs over QUIC, one after the other, against the same target.

use anyhow::ensure;
use proto::Transport;

use crate::bench::{Load, Responder, ms};
use crate::situations::on_quiet_host;

/// A target keeps the connection IDs of a connection for some time after its end (RFC 9000,
/// section 10.2): a run that began with those of the run before would find its first Initials
/// dropped, and learn so after its timeout, for QUIC repeats one after a second.
#[test]
fn run_after_run_with_the_same_seed_finds_no_connection_of_the_one_before() {
    for transport in Transport::ALL.into_iter().filter(|it| it.is_quic()) {
        let target = Responder::start(|_| {});
        let load = Load::over(transport).clients(20).outstanding(20);
        let load = load.queries(100).ca_pem(&target.certificate_pem);
        let load = load.plan(|plan| plan.timeout = ms(900));
        let run = || {
            // The target is threads of this process.
            let load = load.clone().target_process(std::process::id());
            load.run_at(target.address(transport))
        };
        for _ in 0..4 {
            on_quiet_host(run, |ran| {
                let counts = ran.counts();
                ensure!(counts.responses == 100, "{transport}: {counts:?}");
                let connections = ran.record.connections();
                ensure!(connections.attempted == 20, "{transport}: {connections:?}");
                Ok(())
            });
        }
    }
}
