//! Simulations: the modelled server knows whether it was the limit, and need not be guessed at.

use crate::rules::situations::*;
use crate::simulation::{ModelledServer, ServerActivity, SimulatedNetwork, SimulationRecord};

/// An open loop at a modelled server with two workers, busy for that share of the run.
fn modelled(utilisation: f64) -> RunRecord {
    let mut record = in_time(10_000.0);
    let server = ModelledServer {
        workers: 2,
        service_time: "constant".into(),
        accept_ns: 0,
        handshake_ns: 0,
        resumption_ns: 0,
        queue_max: Some(100),
        backlog_max: Some(10),
        connections_max: None,
        cache: None,
        seen: ServerActivity {
            queries: 100_000,
            utilisation,
            ..ServerActivity::default()
        },
    };
    record.simulation = Some(SimulationRecord {
        network: SimulatedNetwork::default(),
        server: Some(server),
    });
    record
}

fn model(record: &mut RunRecord) -> &mut SimulationRecord {
    record.simulation.as_mut().expect("is simulated")
}

#[test]
fn the_model_knows_what_its_server_lacked() {
    judged(&modelled(0.99), Limit::Server, "99.0 %", "--sim-workers");

    let mut short = modelled(0.5);
    let server = model(&mut short).server.as_mut().expect("is modelled");
    server.seen.dropped = 1_000;
    judged(&short, Limit::Server, "50.0 %", "--sim-queue");

    let mut full = modelled(0.5);
    model(&mut full).network.syns_dropped = 5;
    lose(&mut full, 100);
    judged(&full, Limit::Server, "5 SYNs", "--sim-backlog");
}

#[test]
fn a_load_that_the_model_carried_is_the_limit_and_no_measurement() {
    let verdict = judged(&modelled(0.5), Limit::Rate, "50.0 %", "raise the load");
    let last = verdict.evidence.last().expect("has evidence");
    assert!(last.starts_with("SIMULATION: no server"), "{last}");
}
