//! Flags about the life of connections, and runs without queries.

use measure::RunRecord;

use crate::call::{simulated, throng};

/// What a simulated run over TCP counts: connections attempted, and responses.
fn check(flags: &str, connections: u64, responses: u64) -> RunRecord {
    let record = simulated(&format!("--transport tcp {flags}"));
    let counted = (
        record.connections().attempted,
        record.total.counts.responses,
    );
    assert_eq!(counted, (connections, responses), "{flags}");
    record
}

#[test]
fn each_flag_shapes_the_life_of_connections() {
    let one = "--clients 1 --outstanding 1";
    check(
        &format!("{one} --queries 100 --queries-per-connection 10"),
        10,
        100,
    );
    let flags = "--clients 3 --outstanding 3 --duration 10s --connection-duration 1s";
    let record = simulated(&format!("--transport tcp {flags}"));
    assert_eq!(record.connections().closed_by_client_for.duration, 27);
    let flags = "--clients 1 --rate 0.5 --duration 10s --connection-idle-timeout 1s";
    let record = check(flags, 5, 5);
    assert_eq!(record.connections().closed_by_client_for.idle, 5);
    let flags = "--duration 10s --queries-per-connection 1 --reconnect-delay 500ms";
    check(&format!("{one} {flags}"), 20, 20);
    let flags = "--clients 2 --outstanding 20 --queries 100 --pipeline 2";
    let record = check(flags, 2, 100);
    assert_eq!(record.mean_in_flight(), 4.0);
    let flags = "--clients 50 --outstanding 50 --queries 50 --connect-rate 100";
    let record = check(flags, 50, 50);
    assert_eq!(record.phases.connect_ns, 493_000_000);
}

#[test]
fn a_run_without_queries_reads_as_expected() {
    let flags = "run --driver sim --transport tcp --queries-per-connection 0 --connect-rate 500 \
                 --duration 5s --details";
    let text = throng(flags).succeeded();
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "throng {version}: SIMULATION in virtual time, tcp to the built-in responder \
         (192.0.2.53:53), 5.0 s
  load         500 connections a second, no queries; 10 clients, 1 worker
  options      timeout 5.000 s
  connections  opened and closed without a query; at most 500 opened a second
  started      2026-01-01T00:00:00Z

Result
  asked              500  a second
  attempted        2,500  connections         500.0 a second
  opened           2,500  connections  100 %  of attempted
  failed               0  connections    0 %
  achieved         499.8  a second            opened within the 5.0 s of load
  in set-up, mean    1.0  connections         of 10 clients

Connections
  attempted     2,500
  established   2,500
  failed            0
  closed by us  2,500  2,500 without a query
               times       p50       p99       max
  TCP connect  2,500  2.000 ms  2.000 ms  2.000 ms

Generator
  worker 0  busy 0.0 % of its CPU

Verdict
  limit: rate, in a SIMULATION
  - 499.8 connections were opened a second, of the 500 that --connect-rate asks for
  - SIMULATION: no server was measured, and the simulated one needed no time
  advice: raise --connect-rate to find the target's limit
"
    );
    assert_eq!(text, expected);
}

#[test]
fn a_run_that_opened_no_connection_is_exit_code_1() {
    let flags = "run --driver sim --transport tcp --queries-per-connection 0 --timeout 100ms \
                 --duration 2s --sim-loss 1";
    let text = throng(flags).ended_with(1);
    assert!(
        text.contains("\n  why        no connection could be opened: "),
        "{text}"
    );
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let without_query = "--queries-per-connection 0 --duration 1s";
    for (flags, error) in [
        ("--connect-rate 5", "udp has no connections"),
        (
            "--transport tcp --pipeline 11",
            "no client has more than 10 in flight",
        ),
        (
            "--transport tcp --pipeline 4 --queries-per-connection 3",
            "a connection that carries 3 in all never has 4 in flight",
        ),
        (
            &format!("--transport tcp {without_query} --tcp-fast-open"),
            "is never sent without a query",
        ),
        (
            &format!("--transport tcp {without_query} --pipeline 2"),
            "are closed as soon as they are usable",
        ),
        (
            &format!("--transport tcp {without_query} --rate 100"),
            "have no rate of queries",
        ),
        (
            "--transport doq --tcp-fast-open",
            "doq has no TCP connections",
        ),
        (
            "--transport tcp --connection-duration 0s",
            "connection-duration: must not be zero",
        ),
    ] {
        let (said, _) = throng(&format!("run --driver sim {flags}")).refused();
        assert!(said.contains(error), "{flags}\nno `{error}` in `{said}`");
    }
}
