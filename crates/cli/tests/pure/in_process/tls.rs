//! What testers choose of TLS, in whole simulations.

use cli::Call;
use testing::folder::Folder;

use crate::call::{call, simulated, throng};

#[test]
fn versions_suites_and_groups_are_what_is_negotiated() {
    for (flags, version, suite) in [
        (
            "--tls-version 1.2 --tls-ciphers TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            "TLS 1.2",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        ),
        (
            "--tls-version 1.3 --tls-ciphers TLS_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256",
            "TLS 1.3",
            "TLS_CHACHA20_POLY1305_SHA256",
        ),
        (
            "--tls-groups X25519MLKEM768,x25519 --tls-ciphers TLS_AES_128_GCM_SHA256",
            "TLS 1.3",
            "TLS_AES_128_GCM_SHA256",
        ),
    ] {
        let record = simulated(&format!("-t dot --queries 50 {flags}"));
        assert_eq!(record.total.counts.responses, 50, "{flags}");
        let tls = record.scenario.tls.unwrap();
        assert_eq!(tls.version.as_deref(), Some(version), "{flags}");
        assert_eq!(tls.cipher_suite.as_deref(), Some(suite), "{flags}");
    }
}

#[test]
fn queries_at_a_rate_travel_as_early_data_once_their_clients_have_tickets() {
    for transport in ["dot", "doh2", "doq", "doh3"] {
        // Few clients that ask seldom: each query has a connection of its own.
        let flags = "--clients 4 --rate 40 --duration 3s --connection-idle-timeout 10ms";
        let record = simulated(&format!(
            "-t {transport} {flags} --tls-resume always --tls-early-data"
        ));
        assert_eq!(record.total.counts.responses, 120, "{transport}");
        let connections = record.connections();
        let early = connections.early_data;
        // The first query finds the connection that its client opened before the load.
        assert_eq!(early.accepted, 119, "{transport}: {connections:?}");
        assert_eq!(early.accepted, early.tried, "{transport}");
        let resumed = connections.handshakes.resumed;
        assert_eq!(early.tried, resumed, "{transport}: {connections:?}");
    }
}

#[test]
fn stock_records_are_asked_for_and_said_by_the_record() {
    for transport in ["dot", "doh2"] {
        for (flag, is_stock) in [("", false), ("--tls-stock", true)] {
            for version in ["1.2", "1.3"] {
                let flags = format!("-t {transport} --queries 500 --tls-version {version} {flag}");
                let record = simulated(&flags);
                assert_eq!(record.total.counts.responses, 500, "{flags}");
                let tls = record.scenario.tls.unwrap();
                assert_eq!(tls.settings.stock_records, is_stock, "{flags}");
            }
        }
    }
    throng("run -t doq --queries 1 --tls-stock").refused_with("--tls-stock has no effect", "dot");
}

#[test]
fn key_logs_have_a_line_for_each_secret_and_grow_by_runs() {
    let folder = Folder::new("key-log");
    let log = folder.path("keys.txt");
    let run = "-t dot --queries 20 --clients 2 --workers 1";
    simulated(&format!("{run} --tls-keylog {log}"));
    let lines = |log: &str| {
        let text = std::fs::read_to_string(log).unwrap();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(words.len(), 3, "{line}");
            assert_eq!(words[1].len(), 64, "{line}");
        }
        let label = "CLIENT_TRAFFIC_SECRET_0 ";
        text.lines().filter(|line| line.starts_with(label)).count()
    };
    assert!(lines(&log) >= 2, "a connection for each client");
    let before = lines(&log);
    let line = format!("run --driver sim --quiet {run}");
    let finished = call(Call {
        arguments: line.split(' ').map(Into::into).collect(),
        variables: [("SSLKEYLOGFILE".into(), log.clone().into())].into(),
        ..Call::default()
    });
    finished.succeeded();
    assert!(lines(&log) > before);
}
