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

#[test]
fn a_model_that_dropped_little_or_lost_no_query_is_not_the_limit() {
    let mut few = modelled(0.97);
    let server = model(&mut few).server.as_mut().expect("is modelled");
    server.seen.dropped = 100;
    // Clients whose SYN was dropped sent it again.
    model(&mut few).network.syns_dropped = 5;
    judged(&few, Limit::Rate, "97.0 %", "raise the load");
}

/// The limit of a run over a modelled network, in which `lost` queries got no response.
fn lossy(transport: Transport, network: SimulatedNetwork, lost: u64) -> Limit {
    let mut record = in_time(10_000.0);
    record.scenario.transport = transport.into();
    record.simulation = Some(SimulationRecord {
        network,
        server: None,
    });
    lose(&mut record, lost);
    judge(&record).limit
}

#[test]
fn a_modelled_network_is_the_limit_where_its_losses_explain_the_missing_responses() {
    for (datagrams_lost, lost, is_network) in
        [(500, 1_000, true), (499, 1_000, false), (500, 0, false)]
    {
        let network = SimulatedNetwork {
            datagrams_lost,
            ..SimulatedNetwork::default()
        };
        let limit = lossy(Transport::Udp, network, lost);
        assert_eq!(
            limit == Limit::Network,
            is_network,
            "{datagrams_lost}, {lost}"
        );
    }
    for (segments_lost, is_network) in [(1_000, true), (999, false)] {
        let network = SimulatedNetwork {
            segments_lost,
            ..SimulatedNetwork::default()
        };
        let limit = lossy(Transport::Tcp, network, 0);
        assert_eq!(limit == Limit::Network, is_network, "{segments_lost}");
    }
}
