//! Habits that are accepted, and what they mean.

use measure::scenario::Arrival;
use settings::Transport;

use crate::call::simulated;

/// What a run was asked for: transport, clients, workers, nanoseconds, queries, and queries a
/// second.
#[derive(Debug, PartialEq)]
struct Asked {
    transport: String,
    clients: u64,
    workers: u64,
    duration_ns: Option<u64>,
    queries: Option<u64>,
    rate_qps: Option<f64>,
}

fn asked(flags: &str) -> Asked {
    let scenario = simulated(flags).scenario;
    Asked {
        transport: scenario.transport.to_string(),
        clients: scenario.clients,
        workers: scenario.workers,
        duration_ns: scenario.duration_ns,
        queries: scenario.queries_max,
        rate_qps: match scenario.arrival {
            Arrival::Open { rate_qps, .. } => Some(rate_qps),
            _ => None,
        },
    }
}

#[test]
fn numbers_and_times_have_one_form_everywhere() {
    for (habit, plain) in [
        ("--rate 1e3 -l 1", "--rate 1000 -l 1s"),
        ("--rate 1,000 -l 1s", "--rate 1000 -l 1s"),
        ("--rate 1_000 -l 1s", "--rate 1000 -l 1s"),
        ("--rate 0.5k -l 0.5", "--rate 500 -l 500ms"),
        ("--rate 10 -l 1m30s", "--rate 10 -l 90s"),
        ("--rate 10 -l 1h", "--rate 10 -l 3600s"),
        ("-c 1k --queries 1e3", "-c 1000 --queries 1000"),
        ("-c 1,000 --queries 1K", "-c 1000 --queries 1000"),
        ("--loops 1.0", "--loops 1"),
    ] {
        assert_eq!(asked(habit), asked(plain), "{habit}");
    }
}

#[test]
fn transports_are_read_by_the_names_of_other_programs() {
    for (habit, transport) in [
        ("-t UDP", Transport::Udp),
        ("-t TCP", Transport::Tcp),
        ("-t tls", Transport::Dot),
        ("-t DoT", Transport::Dot),
        ("-t doh", Transport::Doh2),
        ("-t https", Transport::Doh2),
        ("-t h2", Transport::Doh2),
        ("-t h3", Transport::Doh3),
        ("-t quic", Transport::Doq),
        ("-m tcp", Transport::Tcp),
        ("-P dot", Transport::Dot),
    ] {
        let asked = asked(&format!("{habit} --queries 10"));
        assert_eq!(asked.transport, transport.name(), "{habit}");
    }
}

#[test]
fn letters_of_other_programs_mean_the_same_where_they_are_free() {
    for (habit, plain) in [
        ("-T 2 --queries 10", "--workers 2 --queries 10"),
        ("-D --queries 10", "--dnssec --queries 10"),
        ("-l 1 -r 10", "--duration 1s --rate 10"),
    ] {
        assert_eq!(asked(habit), asked(plain), "{habit}");
    }
    let record = simulated("-D --queries 10 -m TLS");
    assert_eq!(record.scenario.transport, Transport::Dot);
}
