use std::collections::BTreeMap;

use super::*;
use crate::conforms::offences;
use crate::example::{SECOND, interval, record};
use crate::rules::judge;
use crate::scenario::{HttpMethod, HttpRequest, HttpScheme, Process, TlsFacts, Transport};

fn example() -> RunRecord {
    let mut record = record(vec![
        interval(0, &[(1_500_000, 300)]),
        interval(1, &[(90_000, 700)]),
    ]);
    record.verdict = judge(&record);
    record.scenario.tls = Some(TlsFacts {
        verified: true,
        name: Some("ns1.example".into()),
        version: Some("TLSv1.3".into()),
        alpn: Some("dot".into()),
        ..TlsFacts::default()
    });
    record.scenario.http = Some(HttpRequest {
        method: HttpMethod::Get,
        scheme: HttpScheme::Https,
        authority: "dns.example".into(),
        path: "/dns-query".into(),
        headers: vec!["x-tester: 1".into()],
    });
    record.network.kernel.insert("Udp.NoPorts".into(), 2);
    record.workers[0].send_lateness_p99_ns = Some(10_000);
    record.warnings.push("the target is on this host".into());
    record
}

#[test]
fn record_survives_json_in_both_forms() {
    let mut record = example();
    record.scenario.arrival = Arrival::Open {
        rate_qps: 33_333.333_333_333_336,
        process: Process::Poisson,
        burst: 1,
    };
    assert_eq!(RunRecord::from_json(&record.to_json()), Ok(record.clone()));
    assert_eq!(RunRecord::from_json(&record.to_json_pretty()), Ok(record));
}

#[test]
fn numbers_that_no_run_makes_are_refused_unless_they_were_asked_for() {
    let mut asked = example();
    asked.scenario.seed = u64::MAX;
    asked.scenario.queries_max = Some(u64::MAX);
    asked.groups[0].scenario.seed = u64::MAX;
    assert_eq!(RunRecord::from_json(&asked.to_json()), Ok(asked));
    // Their sum would overflow.
    let mut record = example();
    record.intervals[0].cpu_ns = u64::MAX;
    record.total.cpu_ns = u64::MAX;
    let error = RunRecord::from_json(&record.to_json()).unwrap_err();
    let what = "18446744073709551615 is more than any run counts or times";
    assert!(error.contains(what) && error.contains("line 1"), "{error}");
}

#[test]
fn pretty_json_keeps_arrays_of_numbers_on_one_line() {
    let pretty = example().to_json_pretty();
    assert!(
        pretty.starts_with("{\n  \"schema_version\": \"4\",\n"),
        "{pretty}"
    );
    assert!(
        pretty.contains("    \"goodput_rcodes\": [0,3]\n"),
        "{pretty}"
    );
    assert!(
        pretty.lines().count() < 1_600,
        "{} lines",
        pretty.lines().count()
    );
}

#[test]
fn json_schema_accepts_a_record_and_refuses_an_unknown_field() {
    let schema = RunRecord::json_schema();
    let mut json: serde_json::Value = serde_json::from_str(&example().to_json()).expect("is JSON");
    assert_eq!(offences(&schema, &json), Vec::<String>::new());
    json["total"]["p99"] = 1.into();
    assert_ne!(offences(&schema, &json), Vec::<String>::new());
    assert!(RunRecord::from_json(&json.to_string()).is_err());
}

#[test]
fn json_schema_describes_every_field() {
    fn check(schema: &serde_json::Value, path: &str) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let described = ["description", "$ref", "const", "items", "type"];
            assert!(
                described.iter().any(|key| property.get(key).is_some()),
                "{path}.{name}"
            );
        }
    }
    let schema = RunRecord::json_schema();
    check(&schema, "RunRecord");
    let definitions = schema["$defs"].as_object().expect("has definitions");
    definitions
        .iter()
        .for_each(|(name, definition)| check(definition, name));
    assert!(definitions.contains_key("Histogram") && definitions.contains_key("Rcodes"));
}

#[test]
fn json_that_is_no_usable_record_is_refused_with_the_reason() {
    let check = |json: &str, message: &str| {
        let error = RunRecord::from_json(json).expect_err(message);
        assert!(error.contains(message), "{error}");
    };
    let good = example().to_json();
    check(
        "hello",
        "not a run record: expected value at line 1 column 1",
    );
    check("{}", "not a run record: missing field `schema_version`");
    let newer = good.replace("\"schema_version\":\"4\"", "\"schema_version\":\"7\"");
    check(
        &newer,
        "schema version 7, this binary reads versions 3 and 4",
    );
    check(
        &good.replacen("\"driver\":", "\"diver\":", 1),
        "unknown field `diver`",
    );
    let other_layout = good.replacen("log-linear-128-ns-2^36", "log-linear-64-ns-2^36", 1);
    check(&other_layout, "histogram layout is `log-linear-64-ns-2^36`");
}

#[test]
fn record_that_contradicts_itself_is_refused() {
    let check = |change: fn(&mut RunRecord), message: &str| {
        let mut record = example();
        change(&mut record);
        let error = RunRecord::from_json(&record.to_json()).expect_err(message);
        assert!(
            error.starts_with("run record contradicts itself: "),
            "{error}"
        );
        assert!(error.contains(message), "{error}");
    };
    check(
        |r| r.total.counts.offered = 7,
        "not the sum of its intervals (1000 and 1000)",
    );
    check(
        |r| r.total.distributions.service.record(5),
        "histograms are not the sum",
    );
    check(
        |r| r.responses_in_window = 1_001,
        "1001 responses within the window, but 1000 in total",
    );
    check(
        |r| r.warmup.counts.sent = 1,
        "warm-up: offered 0 is not sent 1 + not_sent 0 = 1",
    );
    check(|r| r.groups.clear(), "not the sum of its groups (0 and 0)");
    check(
        |r| r.groups[0].total.distributions.service.record(5),
        "or differs in another count or histogram",
    );
    check(
        |r| r.scenario.clients = 11,
        "11 clients, but 10 in its groups",
    );
    check(
        |r| r.groups[0].clients = 9,
        "group clients: 9 clients, but figures of 10",
    );
    check(
        |r| {
            r.intervals[0].counts.timeouts = 1;
            r.total.counts.timeouts = 1;
        },
        "sent 1000 is not responses 1000 + timeouts 1",
    );
    check(
        |r| r.intervals[0].open = Some(3),
        "3 queries are open at the end of interval 1, but 0 were offered and have not ended",
    );
    check(
        |r| {
            r.intervals[0].counts.offered -= 1;
            r.intervals[1].counts.offered += 1;
        },
        "by the end of interval 1 more queries have ended than were offered",
    );
}

#[test]
fn hosts_that_nobody_lists_and_kernels_that_are_not_the_whole_are_refused() {
    let mut record = example();
    record.hosts.push(record.hosts[0].clone());
    (record.workers[0].host, record.agents[0].host) = (1, 1);
    let kernel = |drops: u64| BTreeMap::from([("Udp.RcvbufErrors".to_owned(), drops)]);
    record.network.kernel = kernel(7);
    record.network.kernel_of_hosts = vec![kernel(3), kernel(4)];
    assert_eq!(RunRecord::from_json(&record.to_json()), Ok(record.clone()));
    let check = |change: fn(&mut RunRecord), message: &str| {
        let mut record = record.clone();
        change(&mut record);
        let error = RunRecord::from_json(&record.to_json()).expect_err(message);
        assert!(error.contains(message), "{error}");
    };
    check(
        |r| r.workers[0].host = 2,
        "a worker is on the host at position 2, of 2 hosts",
    );
    check(
        |r| r.agents[0].host = 1 << 53,
        "an agent is on the host at position 9007199254740992, of 2 hosts",
    );
    check(
        |r| r.agents.push(r.agents[0].clone()),
        "2 agents, and agent_count is 1",
    );
    check(
        |r| r.network.kernel_of_hosts.push(BTreeMap::new()),
        "the kernels of 3 hosts, of 2 hosts",
    );
    check(
        |r| r.network.kernel.clear(),
        "network.kernel: Udp.RcvbufErrors is 0, and 7 over the kernels of all hosts",
    );
}

/// Records that the version before has written: of a run over UDP and one over DoT, of several
/// groups, of a simulation, and of two hosts.
const OF_THE_VERSION_BEFORE: [&str; 5] = [
    include_str!("../../../../fuzz/records/udp.json"),
    include_str!("../../../../fuzz/records/dot.json"),
    include_str!("../../../../fuzz/records/groups.json"),
    include_str!("../../../../fuzz/records/simulated.json"),
    include_str!("../../../../fuzz/records/merged.json"),
];

fn figures(record: &RunRecord) -> serde_json::Map<String, serde_json::Value> {
    match serde_json::to_value(&record.summary).unwrap() {
        serde_json::Value::Object(figures) => figures,
        other => panic!("{other}"),
    }
}

#[test]
fn records_of_the_version_before_have_the_same_figures_and_verdicts() {
    for text in OF_THE_VERSION_BEFORE {
        let before: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(before["schema_version"], SCHEMA_VERSION_BEFORE);
        let mut record = RunRecord::from_json(text).unwrap();
        assert_eq!(record.schema_version, SCHEMA_VERSION);
        let runs = before["runs"].as_array().map_or(0, Vec::len);
        assert_eq!(record.agents.len(), runs);
        assert!(record.intervals.iter().all(|it| it.open.is_none()));
        let read = record.clone();
        record.conclude();
        assert_eq!(record.total, read.total);
        assert_eq!(record.verdict, read.verdict);
        // Figures that have come since then are there too.
        let (figures, figures_before) = (figures(&record), figures(&read));
        for (name, value) in figures_before {
            assert_eq!(figures.get(&name), Some(&value), "{name}");
        }
        assert_eq!(record.steady_state, read.steady_state);
        let last = record.intervals.last().unwrap();
        assert_eq!(last.open, Some(0));
        assert_eq!(RunRecord::from_json(&record.to_json()), Ok(record));
    }
}

/// A record of two targets, of which the first answered 300 queries and the second 700.
fn of_two_targets() -> RunRecord {
    let mut record = example();
    let totals = [(1_500_000, 300), (90_000, 700)].map(|latency| interval(0, &[latency]));
    let names = ["192.0.2.1:53", "192.0.2.2:53"];
    let targets = names.into_iter().zip(totals).map(|(name, total)| {
        let messages = total.counts.sent;
        TargetRecord::new((name.to_owned(), None), (5, messages), total, &[0])
    });
    record.targets = targets.collect();
    record
}

#[test]
fn targets_that_are_not_the_run_together_are_refused() {
    let record = of_two_targets();
    assert_eq!(RunRecord::from_json(&record.to_json()), Ok(record));
    let check = |change: fn(&mut TargetRecord), message: &str| {
        let mut record = of_two_targets();
        change(&mut record.targets[1]);
        assert_eq!(record.check(), Err(message.to_owned()));
    };
    check(
        |it| it.total.counts.timeouts = 1,
        "target 192.0.2.2:53: sent 700 is not responses 700 + timeouts 1 + connection_losses 0 + \
         exchange_failures 0 + interrupted 0 = 701",
    );
    check(
        |it| {
            it.total.counts.timeouts = 1;
            it.total.counts.sent += 1;
            it.total.counts.offered += 1;
        },
        "1000 queries sent, but 1001 of its targets",
    );
    check(
        |it| it.messages_sent += 1,
        "1000 messages sent, but 1001 of its targets",
    );
    check(
        |it| it.total.counts.nodata = 1,
        "0 responses NODATA, but 1 of its targets",
    );
    check(
        |it| {
            it.total.counts.not_sent.run_ended = 1;
            it.total.counts.offered += 1;
        },
        "0 queries not sent, but 1 of its targets",
    );
    check(
        |it| it.total.counts.rcodes.by_rcode = [0; 24],
        "target 192.0.2.2:53: responses 700 is not rcodes 0 = 0",
    );
    check(
        |it| it.total.distributions.latency.record(5),
        "the latencies are not the sum of those of its targets",
    );
}

#[test]
fn rates_are_of_the_window_and_not_of_the_drain() {
    let mut record = record(vec![
        interval(0, &[(1_500_000, 300)]),
        interval(1, &[(90_000, 700)]),
        interval(2, &[(2 * SECOND, 10)]),
    ]);
    record.measured_ns = 2 * SECOND;
    record.responses_in_window = 1_000;
    record.total.counts.rcodes.by_rcode[0] = 505;
    record.total.counts.rcodes.by_rcode[5] = 505;
    assert_eq!((record.offered_qps(), record.sent_qps()), (505.0, 505.0));
    assert_eq!(
        (record.achieved_qps(), record.goodput_qps()),
        (500.0, 250.0)
    );
    assert_eq!(record.sent_bit_rate(), 505.0 * 40.0 * 8.0);
    assert_eq!(record.received_bit_rate(), 505.0 * 56.0 * 8.0);
    assert_eq!(record.query_octets_mean(), Some(40.0));
    let in_flight = (300.0 * 1.5e6 + 700.0 * 9e4) / 2e9;
    assert!((record.mean_in_flight() - in_flight).abs() < 1e-9);
    assert_eq!(record.lost_share(), 0.0);
    assert!(Transport::Dot.has_tls() && !Transport::Udp.has_connections());
}

#[test]
fn connections_before_the_run_count_as_connections_and_not_in_rates() {
    let mut record = record(vec![
        interval(0, &[(90_000, 700)]),
        interval(1, &[(90_000, 700)]),
    ]);
    record.warmup.counts.connections.handshakes.full = 10;
    record.warmup.distributions.service.record_many(400_000, 10);
    let before = &mut record.warmup.distributions.connections;
    before.first_query.record_many(400_000, 10);
    record.intervals[1].counts.connections.handshakes.resumed = 40;
    record.intervals[1].counts.connections.attempted = 42;
    let during = &mut record.intervals[1].distributions.connections;
    during.quic_handshake_resumed.record_many(1_000_000, 40);
    during.first_query.record_many(90_000, 40);
    record.total = Interval::total(&record.intervals);
    record.groups[0].total = record.total.clone();
    assert_eq!(record.connections().handshakes.total(), 50);
    assert_eq!(record.handshakes_per_second(), 20.0);
    assert_eq!(record.attempts_per_second(), 21.0);
    let times = record.connection_times();
    assert_eq!(times.first_query.count(), 50);
    assert_eq!(times.quic_handshake_resumed.count(), 40);
    let later = record.later_queries();
    assert_eq!((later.count(), later.max_ns()), (1_360, Some(90_111)));
    assert_eq!(RunRecord::from_json(&record.to_json()), Ok(record));
}

/// What the last version without crate settings wrote.
const STORED: [&str; 4] = [
    include_str!("../../../../fuzz/records/udp.json"),
    include_str!("../../../../fuzz/records/dot.json"),
    include_str!("../../../../fuzz/records/simulated.json"),
    include_str!("../../../../fuzz/records/groups.json"),
];

#[test]
fn settings_of_stored_records_are_read_and_written_as_they_were() {
    for text in STORED {
        let stored: serde_json::Value = serde_json::from_str(text).unwrap();
        let record = RunRecord::from_json(text).unwrap();
        let written = serde_json::to_value(&record).unwrap();
        assert_eq!(written["scenario"], stored["scenario"]);
        let groups = stored["groups"].as_array().unwrap();
        for (number, group) in groups.iter().enumerate() {
            assert_eq!(written["groups"][number]["scenario"], group["scenario"]);
        }
        assert_eq!(written["driver"], stored["driver"]);
    }
}

#[test]
fn names_of_records_that_called_agents_processes_are_read() {
    let mut record = example();
    record.agent_count = 2;
    record.degraded = Some(crate::degraded::tests::degraded_after(record.measured_ns));
    let text = record.to_json();
    let before = text.replace(r#""agent_count":2"#, r#""processes":2"#);
    let before = before.replace(r#"[{"agent":2"#, r#"[{"process":2"#);
    assert_ne!(
        before,
        text.replace(r#""agent_count":2"#, r#""processes":2"#)
    );
    assert_eq!(RunRecord::from_json(&before), Ok(record));
}
