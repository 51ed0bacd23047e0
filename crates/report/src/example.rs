//! Run records for tests: a clean UDP self-test and a DoT run in which everything went wrong.

use std::time::Duration;

use measure::observation::{ObservationMode, Observed, Recorder, Scrape, SeriesKind, ServerFacts};
use measure::{
    Arrival, ClientExperience, ClientFigures, Counts, EndedBy, GroupRecord, HostFacts, HttpMethod,
    HttpRequest, HttpScheme, Interval, Phases, Process, RunRecord, ScenarioRecord, TlsFacts,
    TlsSettings, Transport, WorkerFacts, judge,
};
use testing::example::{self, SECOND};

/// A second in which `number` queries were answered, a tenth in 1 ms, the rest in 5.5 ms.
fn interval(index: u64, number: u64) -> Interval {
    let mut interval = Interval {
        start_ns: index * SECOND,
        end_ns: (index + 1) * SECOND,
        counts: Counts {
            offered: number,
            sent: number,
            responses: number,
            sent_octets: 40 * number,
            received_octets: 56 * number,
            ..Counts::default()
        },
        cpu_ns: SECOND / 4,
        ..Interval::default()
    };
    for (latency_ns, times) in [(1_000_000, number / 10), (5_500_000, number - number / 10)] {
        interval
            .distributions
            .latency
            .record_many(latency_ns, times);
        interval
            .distributions
            .service
            .record_many(latency_ns - 10_000, times);
    }
    interval
        .distributions
        .send_lateness
        .record_many(10_000, number);
    interval.in_flight_ns = interval.distributions.latency.sum_ns();
    interval.counts.rcodes.by_rcode[0] = number * 6 / 10;
    interval.counts.rcodes.by_rcode[3] = number * 3 / 10;
    interval.counts.rcodes.by_rcode[2] = number - number * 9 / 10;
    interval
}

fn record(scenario: ScenarioRecord, intervals: Vec<Interval>) -> RunRecord {
    let plain = example::record_without_experience(intervals);
    let group = GroupRecord {
        clients: scenario.clients,
        scenario: scenario.clone(),
        experience: Some(experience(scenario.clients, &plain.total)),
        ..plain.groups[0].clone()
    };
    let worker = WorkerFacts {
        cpu: Some(1),
        cpu_ns: SECOND / 2,
        wall_ns: 2 * SECOND,
        ..plain.workers[0].clone()
    };
    let mut record = RunRecord {
        scenario,
        agents: Vec::new(),
        hosts: vec![HostFacts::default()],
        phases: Phases::default(),
        measured_ns: 2 * SECOND,
        workers: vec![worker],
        groups: vec![group],
        ..plain
    };
    let in_window = record
        .intervals_in_window()
        .map(|interval| interval.counts.responses);
    record.responses_in_window = in_window.sum();
    record.verdict = judge(&record);
    record
}

/// Clients that got responses in turn, the first of which lost whatever was lost.
fn experience(clients: u64, total: &Interval) -> ClientExperience {
    let mut each = vec![ClientFigures::default(); clients as usize];
    let buckets = total.distributions.latency.buckets();
    let latencies = buckets.flat_map(|(low, _, count)| std::iter::repeat_n(low, count as usize));
    for (place, latency_ns) in latencies.enumerate() {
        let client = &mut each[place % clients as usize];
        client.respond(latency_ns, 0);
        client.queries += 1;
    }
    each[0].queries += total.counts.lost();
    let mut experience = ClientExperience::default();
    for (number, mut client) in (0_u32..).zip(each) {
        client.connections = 1 + number % 2;
        client.set_up_ns = u64::from(client.connections) * 2_750_000;
        experience.record(&client, 2_000_000_000);
    }
    experience
        .first_after_idle
        .record_many(5_500_000, total.counts.responses / 100);
    experience
}

fn scenario(transport: Transport, arrival: Arrival) -> ScenarioRecord {
    ScenarioRecord {
        target: "192.0.2.1:853".into(),
        transport: transport.into(),
        arrival,
        clients: 200,
        cpus: vec![1],
        edns: None,
        ..example::scenario(2 * SECOND)
    }
}

/// Open loop over UDP against the built-in responder; nothing lost.
pub(crate) fn udp_self_test() -> RunRecord {
    let arrival = Arrival::Open {
        rate_qps: 20_000.0,
        process: Process::Poisson,
        burst: 1,
    };
    let mut scenario = scenario(Transport::Udp, arrival);
    scenario.target = "127.0.0.1:5300".into();
    scenario.server_name = None;
    scenario.warmup_ns = SECOND;
    scenario.clients = 10;
    let mut record = record(scenario, vec![interval(0, 20_000), interval(1, 20_000)]);
    record.self_test = true;
    record.network.offload_bursts = 4_000;
    record.network.datagrams_offloaded = 38_000;
    record.verdict = judge(&record);
    record
}

/// Closed loop over DoT with losses of every kind, a cap of 120 connections and a drain.
pub(crate) fn dot() -> RunRecord {
    let arrival = Arrival::Closed {
        outstanding: 10,
        rate_qps_max: None,
    };
    let mut scenario = scenario(Transport::Dot, arrival);
    scenario.edns = Some("1232 octets, DO".into());
    scenario.tsig_algorithm = Some("hmac-sha256".into());
    scenario.tls = Some(TlsFacts {
        verified: false,
        name: Some("ns1.example".into()),
        version: Some("TLSv1.3".into()),
        ..TlsFacts::default()
    });
    let mut intervals: Vec<Interval> = (0..3).map(|index| interval(index, 1_000)).collect();
    for interval in &mut intervals {
        interval.connections_open = 120;
        interval.connections_open_max = Some(121);
    }
    go_wrong(&mut intervals[1]);
    let mut record = record(scenario, intervals);
    record.ended_by = EndedBy::Interrupted;
    record.network.receive_drops = 2;
    record
        .warnings
        .push("the target is on this host: both compete for its CPUs".into());
    record
}

/// As [`dot`], with a server that told of itself until it was closed.
pub(crate) fn observed() -> RunRecord {
    let mut record = dot();
    let mut recorder = Recorder::new("process=named", "process", ObservationMode::During, SECOND);
    *recorder.facts() = ServerFacts {
        product: Some("BIND".into()),
        version: Some("9.18.33".into()),
        identity: Some("ns1".into()),
        binary: Some("/usr/sbin/named".into()),
        binary_sha256: Some("0123456789abcdef".into()),
        configuration: Some("/etc/bind/named.conf".into()),
        configuration_sha256: Some("fedcba9876543210".into()),
        threads: Some(6),
        cpus: Some("0-1".into()),
        quota_cpus: Some(1.5),
        ..ServerFacts::default()
    };
    let counter = |name: &str, value: f64| Observed {
        name: name.into(),
        unit: "any".into(),
        kind: SeriesKind::Counter,
        value,
        is_stale: false,
    };
    for second in 0..5_u32 {
        let at_ns = i64::from(second) * SECOND as i64 - 1_000_000;
        let passed = f64::from(second);
        let values = vec![
            counter("cpu.user", 0.5 * passed),
            counter("cpu.system", 0.25 * passed),
            counter("queries", 900.0 * passed),
            counter("cache.hits", 600.0 * passed),
            counter("cache.misses", 200.0 * passed),
            counter("udp.drops", 3.0 * passed),
        ];
        recorder.push(Scrape::between(at_ns, at_ns + 1_000_000), values);
    }
    let closed_ns = 5 * SECOND as i64;
    recorder.fail(Scrape::between(closed_ns, closed_ns), "it is closed");
    record.observations = vec![recorder.finish()];
    record.conclude();
    record
}

/// Open loop over DoH/2 with short-lived connections, resumption, early data and a target that
/// turns some queries away.
pub(crate) fn doh2() -> RunRecord {
    let arrival = Arrival::Open {
        rate_qps: 1_000.0,
        process: Process::Constant,
        burst: 1,
    };
    let mut scenario = scenario(Transport::Doh2, arrival);
    scenario.clients = 50;
    scenario.edns = Some("1232 octets".into());
    scenario.edns_padding_octets = Some(128);
    scenario.connections.queries_max = Some(10);
    scenario.connections.idle_timeout = Some(Duration::from_secs(2));
    scenario.http = Some(HttpRequest {
        method: HttpMethod::Get,
        scheme: HttpScheme::Https,
        authority: "dns.example".into(),
        path: "/dns-query".into(),
        headers: vec!["x-tester: 1".into()],
    });
    scenario.tls = Some(TlsFacts {
        verified: true,
        name: Some("dns.example".into()),
        settings: TlsSettings {
            resume_share: 0.9,
            early_data: true,
            ..TlsSettings::default()
        },
        version: Some("TLSv1.3".into()),
        cipher_suite: Some("TLS_AES_128_GCM_SHA256".into()),
        group: Some("X25519MLKEM768".into()),
        alpn: Some("h2".into()),
    });
    let mut intervals: Vec<Interval> = (0..2).map(|index| interval(index, 1_000)).collect();
    intervals.iter_mut().for_each(reconnect);
    let mut record = record(scenario, intervals);
    record.warmup.counts.connections.attempted = 50;
    record.warmup.counts.connections.established = 50;
    record.warmup.counts.connections.handshakes.full_with_retry = 50;
    record
}

/// 500 connections a second over DoT that are asked nothing, some of them refused.
pub(crate) fn without_queries() -> RunRecord {
    let arrival = Arrival::Closed {
        outstanding: 100,
        rate_qps_max: None,
    };
    let mut scenario = scenario(Transport::Dot, arrival);
    scenario.clients = 10;
    scenario.connections.queries_max = Some(0);
    scenario.connections.rate_max = Some(500.0);
    scenario.tls = Some(TlsFacts {
        verified: true,
        version: Some("TLSv1.3".into()),
        ..TlsFacts::default()
    });
    let mut intervals: Vec<Interval> = (0..2).map(|index| interval(index, 0)).collect();
    for interval in &mut intervals {
        let connections = &mut interval.counts.connections;
        connections.attempted = 500;
        connections.established = 495;
        connections.failed.refused = 4;
        connections.failed.timed_out = 1;
        connections.failed.tls_certificate = 1;
        connections.handshakes.full = 494;
        connections.handshake_sent_octets = 400_000;
        connections.handshake_received_octets = 600_000;
        connections.closed_by_client = 494;
        connections.closed_by_client_for.without_query = 494;
        let times = &mut interval.distributions.connections;
        times.tcp_connect.record_many(250_000, 495);
        times.tls_handshake.record_many(2_500_000, 494);
    }
    record(scenario, intervals)
}

/// Closed loop with all 100 places in use for a second, one query in a thousand unhindered.
pub(crate) fn full(transport: Transport, responses: u64) -> RunRecord {
    let arrival = Arrival::Closed {
        outstanding: 100,
        rate_qps_max: None,
    };
    let mut scenario = scenario(transport, arrival);
    scenario.clients = 10;
    let mut interval = Interval {
        end_ns: SECOND,
        ..Interval::default()
    };
    let counts = &mut interval.counts;
    counts.offered = responses;
    counts.sent = responses;
    counts.responses = responses;
    counts.rcodes.by_rcode[0] = responses;
    let quick = responses / 1_000;
    for (latency_ns, times) in [
        (20_000, quick),
        (100 * SECOND / responses, responses - quick),
    ] {
        let distributions = &mut interval.distributions;
        distributions.latency.record_many(latency_ns, times);
        distributions.service.record_many(latency_ns, times);
    }
    interval.in_flight_ns = interval.distributions.latency.sum_ns();
    let times = &mut interval.distributions.connections;
    if transport.has_connections() {
        times.tcp_connect.record_many(30_000, 10);
    }
    if transport.has_tls() {
        times.tls_handshake.record_many(800_000, 10);
    }
    let mut record = record(scenario, vec![interval]);
    record.measured_ns = SECOND;
    record.verdict = judge(&record);
    record
}

/// A second in which each of 100 connections carried ten queries, and 30 more were turned away.
fn reconnect(interval: &mut Interval) {
    let counts = &mut interval.counts;
    counts.offered += 30;
    counts.sent += 30;
    counts.sent_octets += 1_200;
    counts.exchange_failures.http_status.record_many(429, 25);
    counts.exchange_failures.http_status.record_many(502, 3);
    counts.exchange_failures.stream_reset.record_many(0xb, 2);
    counts.retried_unprocessed = 4;
    counts.waited_for_stream = 6;
    let connections = &mut counts.connections;
    connections.attempted = 102;
    connections.established = 101;
    connections.failed.timed_out = 1;
    connections.failed.tls_alpn = 1;
    connections.handshakes.full = 10;
    connections.handshakes.resumed = 90;
    connections.early_data.tried = 90;
    connections.early_data.accepted = 85;
    connections.early_data.rejected = 5;
    connections.early_data.queries = 120;
    connections.handshake_sent_octets = 60_000;
    connections.handshake_received_octets = 140_000;
    connections.closed_by_client = 97;
    connections.closed_by_client_for.idle = 7;
    connections.ended_by_goaway.record_many(0, 3);
    interval.connections_open = 50;
    interval.connections_open_max = Some(50);
    let times = &mut interval.distributions.connections;
    times.tcp_connect.record_many(250_000, 101);
    times.tls_handshake.record_many(2_500_000, 10);
    times.tls_handshake_resumed.record_many(900_000, 90);
    times.first_query.record_many(5_490_000, 100);
    times.set_up_and_first_query.record_many(6_700_000, 100);
}

fn go_wrong(interval: &mut Interval) {
    let counts = &mut interval.counts;
    counts.offered += 20;
    counts.sent += 12;
    counts.sent_octets += 480;
    counts.timeouts = 5;
    interval.in_flight_ns += 4 * u128::from(SECOND);
    counts.connection_losses = 7;
    counts.not_sent.timed_out_waiting = 6;
    counts.not_sent.run_ended = 2;
    counts.truncated = 2;
    counts.late = 3;
    counts.duplicate = 1;
    counts.unexpected.wrong_question = 4;
    let connections = &mut counts.connections;
    connections.attempted = 300;
    connections.established = 210;
    connections.handshakes.full = 205;
    connections.failed.refused = 90;
    (0..5).for_each(|_| connections.failed.tls_alert.record("handshake_failure"));
    connections.reset_by_target = 85;
    connections.closed_by_client = 120;
    let times = &mut interval.distributions.connections;
    times.tcp_connect.record_many(250_000, 210);
    times.tls_handshake.record_many(2_500_000, 205);
}
