//! Simulations: the modelled server of `--driver sim`, and the preset of a million clients.

use std::path::Path;

use measure::simulation::ModelledServer;
use measure::{Limit, RunRecord};

use crate::call::{simulated, throng};

fn server(record: &RunRecord) -> &ModelledServer {
    let simulation = record.simulation.as_ref().unwrap();
    simulation.server.as_ref().unwrap()
}

/// The preset with a fiftieth of the clients, and a server that needs fifty times as long: what it
/// says about workers is the same.
fn scaled_down(flags: &str) -> RunRecord {
    let preset = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/million-clients.toml");
    let scaled = "--clients 20000 --duration 10s --sim-service-time exponential:1500us \
                  --sim-accept-time 750us --sim-handshake-time 12500us \
                  --sim-resumption-time 4ms --sim-miss-service-time 2ms";
    simulated(&format!("{} {scaled} {flags}", preset.display()))
}

#[test]
fn preset_of_a_million_clients_says_how_many_workers_they_need() {
    let enough = scaled_down("");
    let seen = &server(&enough).seen;
    assert_eq!(enough.scenario.clients, 20_000);
    assert_eq!(enough.total.counts.lost(), 0);
    assert!(
        (0.7..0.9).contains(&seen.utilisation),
        "{}",
        seen.utilisation
    );
    assert_eq!(enough.verdict.limit, Limit::Rate, "{:?}", enough.verdict);
    let too_few = scaled_down("--sim-workers 3");
    let seen = &server(&too_few).seen;
    assert!(seen.utilisation > 0.98, "{}", seen.utilisation);
    assert_eq!(
        too_few.verdict.limit,
        Limit::Server,
        "{:?}",
        too_few.verdict
    );
    let evidence = &too_few.verdict.evidence;
    assert!(
        evidence[0].starts_with("the modelled server's 3 workers"),
        "{evidence:?}"
    );
    let last = evidence.last().unwrap();
    assert!(
        last.starts_with("SIMULATION: no server was measured"),
        "{evidence:?}"
    );
}

#[test]
fn text_says_first_that_it_is_a_simulation_and_then_how_its_server_fared() {
    let model = "--sim-service-time 1ms --sim-workers 2 --sim-queue 10 --sim-cache-ttl 1s";
    let text = throng(&format!(
        "run --driver sim --rate 1000 --duration 2s --quiet {model} --sim-cache-size 500 --details"
    ));
    let text = text.succeeded();
    assert!(
        text.lines()
            .next()
            .unwrap()
            .contains(": SIMULATION in virtual time"),
        "{text}"
    );
    for words in [
        "\nSimulated server\n",
        "2 workers; a query takes 1.000 ms",
        "10 datagrams waiting",
        "utilisation",
        "0.0 % hits of 500 answers",
        "limit: rate, in a SIMULATION",
        "SIMULATION: no server was measured; 2 workers were busy for 50",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn model_is_refused_where_nothing_is_simulated_or_it_says_nothing() {
    for (flags, what) in [
        (
            "--sim-workers 4",
            "--sim-workers has no effect on sockets of the kernel",
        ),
        ("--driver sim --sim-backlog 4", "--sim-accept-time"),
        ("--driver sim --sim-miss-time 4ms", "--sim-cache-ttl"),
        ("--driver sim --sim-workers 0", "must not be zero"),
        ("--driver sim --sim-service-time soon", "`soon`"),
    ] {
        let finished = throng(&format!("run --duration 1s {flags}"));
        assert_eq!(finished.code, Some(2), "{flags}");
        let error = finished.stderr;
        assert!(error.contains(what), "{flags}: {error}");
    }
}
