use proto::query::QueryOptions;

use settings::StampSource;

use super::*;
use crate::arrival::Process;

pub(crate) fn plan() -> Plan {
    let questions = crate::names_file::parse_text(b"a.test A", &QueryOptions::default());
    Plan {
        arrival: closed(100),
        clients: 10,
        workers: 2,
        duration: Some(Duration::from_secs(10)),
        ..Plan::new(
            "127.0.0.1:53".parse().unwrap(),
            Transport::Udp,
            Arc::new(questions.unwrap()),
        )
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
        burst: 1,
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
    check(|plan| plan.clients = 0, "clients: must not be zero");
    check(|plan| plan.workers = 0, "workers: must not be zero");
    for (burst, error) in [
        (1, ""),
        (10_000, ""),
        (0, "burst: 0 queries cannot be due together"),
        (10_001, "burst: 10001 queries cannot be due together"),
    ] {
        let (rate_qps, process) = (1.0, Process::Constant);
        let arrival = Arrival::Open {
            rate_qps,
            process,
            burst,
        };
        check(|plan| plan.arrival = arrival, error);
    }
    check(
        |plan| plan.arrival = closed(0),
        "outstanding: must not be zero",
    );
    check(
        |plan| plan.timeout = Duration::ZERO,
        "timeout: must not be zero",
    );
    check(
        |plan| plan.interval = Duration::ZERO,
        "interval: must not be zero",
    );
    check(
        |plan| plan.interval = Duration::from_micros(999),
        "interval: it is less than 1ms",
    );
    check(
        |plan| plan.duration = Some(Duration::ZERO),
        "duration: must not be zero",
    );
    check(
        |plan| plan.queries_max = Some(0),
        "queries: must not be zero",
    );
    check(
        |plan| plan.questions = Arc::default(),
        "names: there are no questions",
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
        "queries-per-connection: udp has no connections",
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
    check(|plan| plan.arrival = closed(614_400), "");
    check(
        |plan| plan.arrival = closed(614_401),
        "outstanding: 61441 queries in flight fall to one client, which may have 61440 open",
    );
    // Workers have 2 and 1 clients but equal shares of the queries.
    let uneven = |outstanding| {
        move |plan: &mut Plan| {
            plan.clients = 3;
            plan.arrival = closed(outstanding);
        }
    };
    check(uneven(122_881), "");
    check(
        uneven(122_882),
        "outstanding: 61441 queries in flight fall to one client, which may have 61440 open",
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
        "names: the longest query has 65519 bytes, udp carries 65507",
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

/// A plan over TCP with one change of its connections, and what validation says about it.
fn check_connections(change: impl FnOnce(&mut ConnectionPolicy), expected: &str) {
    check(
        |plan| {
            plan.transport = Transport::Tcp;
            change(&mut plan.connections);
        },
        expected,
    );
}

#[test]
fn sound_connection_policies_pass() {
    let second = Duration::from_secs(1);
    check_connections(|it| it.queries_max = Some(0), "");
    check_connections(|it| it.duration = Some(second), "");
    check_connections(|it| it.idle_timeout = Some(second), "");
    check_connections(|it| it.reconnect_delay = second, "");
    check_connections(|it| it.in_flight_max = Some(10), "");
    check_connections(|it| it.tcp_fast_open = true, "");
    check_connections(
        |it| it.stop_sending_allowed = true,
        "doq-allow-stop-sending: tcp has no such rule",
    );
    check_connections(|it| it.rate_max = Some(0.5), "");
}

#[test]
fn policies_of_connections_need_a_transport_that_has_them() {
    let second = Duration::from_secs(1);
    type Change = fn(&mut ConnectionPolicy, Duration);
    let policies: [(&str, Change); 8] = [
        ("queries-per-connection", |it, _| it.queries_max = Some(1)),
        ("doq-allow-stop-sending", |it, _| {
            it.stop_sending_allowed = true
        }),
        ("connection-duration", |it, time| it.duration = Some(time)),
        ("connection-idle-timeout", |it, time| {
            it.idle_timeout = Some(time)
        }),
        ("reconnect-delay", |it, time| it.reconnect_delay = time),
        ("pipeline", |it, _| it.in_flight_max = Some(1)),
        ("tcp-fast-open", |it, _| it.tcp_fast_open = true),
        ("connect-rate", |it, _| it.rate_max = Some(1.0)),
    ];
    for (name, set) in policies {
        let expected = format!("{name}: udp has no connections");
        check(|plan| set(&mut plan.connections, second), &expected);
    }
}

#[test]
fn tcp_fast_open_needs_tcp() {
    check(
        |plan| {
            plan.transport = Transport::Doq;
            plan.connections.tcp_fast_open = true;
        },
        "tcp-fast-open: doq has no TCP connections",
    );
}

#[test]
fn connection_times_and_rates_of_zero_are_refused() {
    check_connections(
        |it| it.duration = Some(Duration::ZERO),
        "connection-duration: must not be zero",
    );
    check_connections(
        |it| it.idle_timeout = Some(Duration::ZERO),
        "connection-idle-timeout: must not be zero",
    );
    check_connections(
        |it| it.rate_max = Some(0.0),
        "connect-rate: 0 a second cannot be offered",
    );
    check_connections(
        |it| it.in_flight_max = Some(0),
        "pipeline: a connection can have 1 to 61440 in flight",
    );
}

#[test]
fn pipelining_depth_that_is_never_reached_is_refused() {
    let expected = "pipeline: no client has more than 10 in flight, so that 11 are never reached";
    check_connections(|it| it.in_flight_max = Some(11), expected);
    check(
        |plan| {
            plan.transport = Transport::Tcp;
            plan.arrival = open(1_000.0);
            plan.connections.in_flight_max = Some(1_000);
        },
        "",
    );
    check_connections(
        |it| {
            it.queries_max = Some(3);
            it.in_flight_max = Some(4);
        },
        "pipeline: a connection that carries 3 in all never has 4 in flight",
    );
}

#[test]
fn connections_without_queries_take_nothing_that_only_queries_have() {
    let without_query = |change: fn(&mut Plan), expected: &str| {
        check(
            |plan| {
                plan.transport = Transport::Tcp;
                plan.connections.queries_max = Some(0);
                change(plan);
            },
            expected,
        );
    };
    without_query(|plan| plan.connections.rate_max = Some(500.0), "");
    without_query(
        |plan| plan.connections.reconnect_delay = Duration::from_secs(1),
        "",
    );
    let until = "connections without queries are opened and closed until the duration is over";
    without_query(
        |plan| plan.queries_max = Some(5),
        &format!("queries: {until}"),
    );
    without_query(
        |plan| plan.arrival = open(5.0),
        "rate: connections that carry no queries have no rate of queries",
    );
    let closed_at_once = "connections without queries are closed as soon as they are usable";
    without_query(
        |plan| plan.connections.in_flight_max = Some(1),
        &format!("pipeline: {closed_at_once}"),
    );
    without_query(
        |plan| plan.connections.idle_timeout = Some(Duration::from_secs(1)),
        &format!("connection-idle-timeout: {closed_at_once}"),
    );
    without_query(
        |plan| plan.connections.duration = Some(Duration::from_secs(1)),
        &format!("connection-duration: {closed_at_once}"),
    );
    without_query(
        |plan| plan.connections.tcp_fast_open = true,
        "tcp-fast-open: a SYN that waits for the first bytes is never sent without a query",
    );
    let over_dot = |plan: &mut Plan| {
        plan.transport = Transport::Dot;
        plan.connections.tcp_fast_open = true;
    };
    without_query(over_dot, "");
}

#[test]
fn timestamps_are_for_datagrams_that_leave_one_by_one() {
    let mut stamped = plan();
    stamped.sockets.timestamps = Some(StampSource::Kernel);
    let fault = |plan: &Plan| plan.validate().unwrap_err().to_string();
    assert!(fault(&stamped).starts_with("timestamps: datagrams that leave in one burst"));
    stamped.sockets.offload = false;
    assert_eq!(stamped.validate(), Ok(()));
    stamped.transport = Transport::Tcp;
    assert!(fault(&stamped).starts_with("timestamps: tcp has the kernel cut bytes into"));
    stamped.transport = Transport::Doq;
    assert!(fault(&stamped).starts_with("timestamps: doq puts several queries into"));
}
