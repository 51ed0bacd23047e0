use proto::query::QueryOptions;

use super::*;
use crate::arrival::Process;

fn plan() -> Plan {
    let questions = crate::names_file::parse_text(b"a.test A", &QueryOptions::default());
    Plan {
        target: "127.0.0.1:53".parse().unwrap(),
        transport: Transport::Udp,
        questions: Arc::new(questions.unwrap()),
        arrival: closed(100),
        clients: 10,
        workers: 2,
        duration: Some(Duration::from_secs(10)),
        warmup: Duration::ZERO,
        queries_max: None,
        timeout: Duration::from_secs(5),
        interval: Duration::from_secs(1),
        seed: 1,
        local_addresses: Vec::new(),
        local_port: 0,
        connections: ConnectionPolicy::default(),
        doh: None,
        tcp_fallback: false,
        socket_buffer_octets: None,
        offload: true,
        tsig: None,
    }
}

fn closed(outstanding: u32) -> Arrival {
    Arrival::Closed {
        outstanding,
        rate_qps_max: None,
    }
}

fn open(rate_qps: f64) -> Arrival {
    Arrival::Open {
        rate_qps,
        process: Process::Constant,
    }
}

/// A plan with one change, and what validation says about it.
fn check(change: impl FnOnce(&mut Plan), expected: &str) {
    let mut plan = plan();
    change(&mut plan);
    let said = match plan.validate() {
        Ok(()) => String::new(),
        Err(error) => {
            assert!(!error.hint.is_empty());
            error.to_string()
        }
    };
    assert_eq!(said, expected);
}

#[test]
fn sound_plans_pass() {
    check(|_| {}, "");
    check(|plan| plan.arrival = open(20_000.0), "");
    check(|plan| plan.tcp_fallback = true, "");
    check(|plan| plan.local_port = u16::MAX - 9, "");
    check(
        |plan| plan.local_addresses = vec!["127.0.0.2".parse().unwrap()],
        "",
    );
    check(
        |plan| {
            plan.transport = Transport::Tcp;
            plan.connections.queries_max = Some(1);
            plan.duration = None;
            plan.queries_max = Some(1);
        },
        "",
    );
}

#[test]
fn settings_of_zero_are_named() {
    check(|plan| plan.clients = 0, "clients: it is zero");
    check(|plan| plan.workers = 0, "workers: it is zero");
    check(|plan| plan.arrival = closed(0), "outstanding: it is zero");
    check(|plan| plan.timeout = Duration::ZERO, "timeout: it is zero");
    check(
        |plan| plan.interval = Duration::ZERO,
        "interval: it is zero",
    );
    check(
        |plan| plan.duration = Some(Duration::ZERO),
        "duration: it is zero",
    );
    check(|plan| plan.queries_max = Some(0), "queries: it is zero");
    check(
        |plan| plan.connections.queries_max = Some(0),
        "queries-per-connection: it is zero",
    );
    check(
        |plan| plan.questions = Arc::default(),
        "names: there is nothing to ask",
    );
    check(
        |plan| plan.target.set_port(0),
        "server: 127.0.0.1:0 has port 0",
    );
}

#[test]
fn rates_that_cannot_be_offered_are_refused() {
    check(
        |plan| plan.arrival = open(0.0),
        "rate: 0 a second cannot be offered",
    );
    check(
        |plan| plan.arrival = open(-1.0),
        "rate: -1 a second cannot be offered",
    );
    check(
        |plan| plan.arrival = open(f64::NAN),
        "rate: NaN a second cannot be offered",
    );
    check(
        |plan| {
            plan.arrival = Arrival::Closed {
                outstanding: 100,
                rate_qps_max: Some(f64::INFINITY),
            };
        },
        "rate: inf a second cannot be offered",
    );
}

#[test]
fn contradictions_between_settings_are_named() {
    check(
        |plan| plan.workers = 11,
        "workers: 11 workers have only 10 clients to simulate",
    );
    check(
        |plan| plan.arrival = closed(1),
        "outstanding: 1 in flight is too few for 2 workers: some would never send",
    );
    check(
        |plan| plan.duration = None,
        "duration: nothing would end the run",
    );
    check(
        |plan| plan.connections.queries_max = Some(10),
        "queries-per-connection: udp has no connections to close",
    );
    check(
        |plan| {
            plan.transport = Transport::Dot;
            plan.tcp_fallback = true;
        },
        "tcp-fallback: dot has no truncated responses to repeat over TCP",
    );
    check(
        |plan| plan.local_addresses = vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()],
        "local-address: ::1 is not of the address family of the target 127.0.0.1",
    );
    check(
        |plan| plan.local_port = u16::MAX - 8,
        "local-port: 10 clients from port 65527 on would need port 65536",
    );
}

#[test]
fn every_client_has_message_ids_for_its_queries_in_flight() {
    check(|plan| plan.arrival = closed(327_680), "");
    check(
        |plan| plan.arrival = closed(327_681),
        "outstanding: 32769 queries in flight fall to one client, which may have 32768 open",
    );
    // Workers have 2 and 1 clients but equal shares of the queries.
    let uneven = |outstanding| {
        move |plan: &mut Plan| {
            plan.clients = 3;
            plan.arrival = closed(outstanding);
        }
    };
    check(uneven(65_537), "");
    check(
        uneven(65_538),
        "outstanding: 32769 queries in flight fall to one client, which may have 32768 open",
    );
}

#[test]
fn the_largest_share_per_client_is_found_among_all_workers() {
    for clients in 1..30 {
        for workers in 1..=clients {
            for outstanding in (workers..90).step_by(7) {
                let plan = Plan {
                    clients,
                    workers,
                    arrival: closed(outstanding),
                    ..plan()
                };
                let per_client = |worker| {
                    let outstanding = plan.worker_outstanding(worker).unwrap();
                    outstanding.div_ceil(plan.worker_clients(worker))
                };
                let all = (0..workers).map(per_client).max();
                let looked_at = [0, clients % workers].into_iter().map(per_client).max();
                assert_eq!(all, looked_at);
            }
        }
    }
}

#[test]
fn queries_longer_than_the_transport_carries_are_refused() {
    let line = format!("a.test A +opt=1:{}", "00".repeat(65_480));
    let questions = crate::names_file::parse_text(line.as_bytes(), &QueryOptions::default());
    let questions = Arc::new(questions.unwrap());
    assert_eq!(questions.message_octets_max(), 65_519);
    let long = |transport| {
        let questions = Arc::clone(&questions);
        move |plan: &mut Plan| {
            plan.transport = transport;
            plan.questions = questions;
        }
    };
    check(long(Transport::Tcp), "");
    check(
        long(Transport::Udp),
        "names: the longest query has 65519 octets, udp carries 65507",
    );
}

#[test]
fn shares_of_the_workers_add_up() {
    let plan = Plan {
        clients: 11,
        workers: 4,
        ..plan()
    };
    let clients: Vec<u32> = (0..4).map(|worker| plan.worker_clients(worker)).collect();
    assert_eq!(clients, [3, 3, 3, 2]);
    let outstanding = (0..4).map(|worker| plan.worker_outstanding(worker).unwrap());
    assert_eq!(outstanding.sum::<u32>(), 100);
    let plan = Plan {
        arrival: open(1.0),
        ..plan
    };
    assert_eq!(plan.worker_outstanding(0), None);
}
