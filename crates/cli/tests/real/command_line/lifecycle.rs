//! Runs without queries against servers, and TCP Fast Open in a network of its own.

use std::process::{Command, Stdio};

use measure::RunRecord;
use testing::program::Finished;

use crate::process::{Responder, THRONG, measured, throng};

#[test]
fn a_run_without_queries_shows_connections_as_its_progress() {
    let flags = "run --transport tcp --queries-per-connection 0 --connect-rate 200 \
                 --clients 100 --duration 300ms --interval 100ms --format json";
    let finished = throng(flags);
    let stderr = finished.stderr.clone();
    let record = RunRecord::from_json(&finished.succeeded()).unwrap();
    // An interval in which the generator was not scheduled may have none.
    let progress: Vec<&str> = stderr.lines().collect();
    assert!((1..=3).contains(&progress.len()), "{stderr}");
    let mut attempted_in_all = 0;
    for line in progress {
        let number_after = |word: &str| -> u64 {
            let (_, rest) = line.split_once(word).unwrap();
            rest.split_whitespace().next().unwrap().parse().unwrap()
        };
        attempted_in_all += number_after("attempted ");
        assert!(line.contains(" a second  failed      0"), "{line}");
        let has_opened = number_after("  opened ") > 0;
        assert_eq!(line.contains("  TCP connect p50 "), has_opened, "{line}");
    }
    // Those of the time after the load, if any, are in no line.
    let attempted = record.connections().attempted;
    assert!(attempted > 0 && attempted <= 60, "{stderr}");
    assert!(attempted_in_all <= attempted, "{stderr}");
}

#[test]
fn a_server_that_is_asked_nothing_needs_no_names() {
    let responder = Responder::start("tcp:127.0.0.1:0", "");
    let address = responder.address();
    let flags = "--transport tcp --queries-per-connection 0 --connect-rate 200 --clients 100";
    let record = measured(&format!("--server {address} --duration 500ms {flags}"));
    // A generator that is not scheduled attempts fewer, and is not given more.
    let attempted = record.connections().attempted;
    assert!(attempted > 0 && attempted <= 100, "{attempted}");
    let counters = responder.counters();
    // The look before the run is one more.
    let accepted = counters.get("connections accepted");
    assert!(accepted > 0 && accepted <= attempted + 1, "{}", counters.0);
    assert_eq!(counters.get("queries received"), 0, "{}", counters.0);
}

/// Runs `throng run` in a network of its own, which is gone with the process, where the kernel
/// does as much of TCP Fast Open as `setting` says: 1 for clients, 2 for servers. Needs root.
fn in_a_network_with_fast_open(setting: u8, flags: &str) -> RunRecord {
    let script = format!(
        "ip link set lo up && echo {setting} >/proc/sys/net/ipv4/tcp_fastopen && \
         exec timeout --foreground --signal=KILL 60 {THRONG} run --quiet --format json {flags}"
    );
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", &script]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stdout = Finished::new(&script, output).succeeded();
    RunRecord::from_json(&stdout).unwrap()
}

#[test]
fn fast_open_sends_the_first_query_with_the_syn_once_there_is_a_cookie() {
    for transport in ["tcp", "dot"] {
        let flags = format!(
            "--transport {transport} --clients 1 --outstanding 1 --queries 100 \
             --queries-per-connection 1 --tcp-fast-open"
        );
        let record = in_a_network_with_fast_open(3, &flags);
        let connections = record.connections();
        assert_eq!(record.total.counts.responses, 100, "{transport}");
        assert_eq!(connections.attempted, 100, "{transport}");
        // The first one brings the cookie.
        assert_eq!(connections.fast_opened, 99, "{transport}");
        assert_eq!(record.total.counts.connection_losses, 0, "{transport}");
    }
}

#[test]
fn fast_open_without_the_servers_support_is_an_ordinary_connect() {
    for setting in [0, 1] {
        let flags = "--transport tcp --clients 5 --outstanding 5 --queries 100 \
                     --queries-per-connection 4 --tcp-fast-open";
        let record = in_a_network_with_fast_open(setting, flags);
        assert_eq!(record.total.counts.responses, 100);
        assert_eq!(record.connections().fast_opened, 0);
        assert_eq!(record.connections().failed.total(), 0);
    }
}
