//! The example of a run record: small, and its figures agree. For tests, which change it where they
//! want another one: those of this crate know it as `crate::example`, all others as
//! `testing::example`.

use measure::record::{Agent, SCHEMA_VERSION};
use measure::{
    Arrival, ClientExperience, ClientFigures, ConnectionPolicy, DriverKind, EndedBy, GroupRecord,
    HostFacts, Interval, NetworkFacts, Phases, QuestionChoice, Questions, RunRecord,
    ScenarioRecord, Transport, Verdict, WorkerFacts,
};

/// A second in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// An interval of one second in which `latencies` were measured: (latency in ns, times).
pub fn interval(index: u64, latencies: &[(u64, u64)]) -> Interval {
    let mut interval = Interval {
        start_ns: index * SECOND,
        end_ns: (index + 1) * SECOND,
        cpu_ns: SECOND / 2,
        ..Interval::default()
    };
    for &(latency_ns, times) in latencies {
        interval
            .distributions
            .latency
            .record_many(latency_ns, times);
        interval
            .distributions
            .service
            .record_many(latency_ns, times);
        interval
            .distributions
            .send_lateness
            .record_many(10_000, times);
        interval.counts.responses += times;
    }
    let responses = interval.counts.responses;
    interval.counts.offered = responses;
    interval.counts.sent = responses;
    interval.counts.rcodes.by_rcode[0] = responses;
    interval.counts.sent_octets = 40 * responses;
    interval.counts.received_octets = 56 * responses;
    interval.in_flight_ns = interval.distributions.latency.sum_ns();
    interval.shrink_to_fit();
    interval
}

/// Ten clients that shared a run: the first got half of all responses, the others what was left.
pub fn group(total: &Interval) -> GroupRecord {
    let mut experience = ClientExperience::default();
    let mut left: Vec<u64> = Vec::new();
    for (low, _, count) in total.distributions.latency.buckets() {
        left.extend(std::iter::repeat_n(low, count as usize));
    }
    let overflow = total.distributions.latency.overflow() as usize;
    left.extend(std::iter::repeat_n(1 << 36, overflow));
    for client in 0..10 {
        let responses = match client {
            9 => left.len(),
            _ => left.len() / 2,
        };
        let mut figures = ClientFigures {
            queries: responses as u64,
            ..ClientFigures::default()
        };
        for latency_ns in left.drain(..responses) {
            figures.respond(latency_ns, 0);
        }
        experience.record(&figures, 2_000_000_000);
    }
    GroupRecord {
        experience: Some(experience),
        ..group_without_experience(total)
    }
}

fn group_without_experience(total: &Interval) -> GroupRecord {
    GroupRecord {
        name: GroupRecord::PLAIN.into(),
        clients: 10,
        scenario: scenario(SECOND),
        total: total.clone(),
        timeline: None,
        experience: None,
        script: None,
    }
}

/// A closed-loop UDP run of `intervals`, each of a second.
pub fn record(intervals: Vec<Interval>) -> RunRecord {
    let record = record_without_experience(intervals);
    RunRecord {
        groups: vec![group(&record.total)],
        ..record
    }
}

/// As [`record`], without what each client got: of millions of responses that takes long.
pub fn record_without_experience(intervals: Vec<Interval>) -> RunRecord {
    let total = Interval::total(&intervals);
    let seconds = intervals.len() as u64;
    RunRecord {
        schema_version: SCHEMA_VERSION.into(),
        throng_version: "0.1.0".into(),
        started_at: "2026-01-28T09:00:00Z".into(),
        generators: 1,
        agent_count: 1,
        scenario: scenario(seconds * SECOND),
        asked: Vec::new(),
        driver: DriverKind::Epoll,
        driver_reason: None,
        self_test: false,
        hosts: vec![HostFacts {
            cores: Some(8),
            ..HostFacts::default()
        }],
        agents: vec![Agent {
            id: "first".into(),
            host: 0,
            began_us: 1_769_590_800_000_000,
            window_us: seconds * SECOND / 1_000,
            clock_error_us: Some(500),
            ..Agent::default()
        }],
        absent_agents: Vec::new(),
        merged_by_force: Vec::new(),
        phases: Phases {
            run_ns: seconds * SECOND,
            ..Phases::default()
        },
        measured_ns: seconds * SECOND,
        responses_in_window: total.counts.responses,
        workers: vec![WorkerFacts {
            cpu_ns: total.cpu_ns,
            wall_ns: seconds * SECOND,
            queries: total.counts.sent,
            ..WorkerFacts::default()
        }],
        targets: Vec::new(),
        groups: vec![group_without_experience(&total)],
        total,
        warmup: Interval::default(),
        intervals,
        intervals_merged: 1,
        outages: None,
        losses_by_question: None,
        instances: None,
        degraded: None,
        timeline: None,
        network: NetworkFacts::default(),
        host_use: None,
        responder: None,
        observations: Vec::new(),
        events: Vec::new(),
        simulation: None,
        ended_by: EndedBy::Duration,
        aborted: None,
        conditions: Vec::new(),
        steady_state: None,
        verdict: Verdict::default(),
        warnings: Vec::new(),
        summary: None,
    }
}

/// Clients with responses, and clients that sent queries without a response.
pub fn serve(record: &mut RunRecord, served: u64, unserved: u64) {
    let mut experience = ClientExperience::default();
    for client in 0..served + unserved {
        let mut figures = ClientFigures {
            queries: 20,
            ..ClientFigures::default()
        };
        if client < served {
            figures.respond_many(1_000_000, 0, 20);
        }
        experience.record(&figures, SECOND);
    }
    record.groups[0].experience = Some(experience);
}

/// The given number of 200 TCP clients is served, and the others are refused or reset.
pub fn cap_tcp_clients(record: &mut RunRecord, served: u64) {
    record.scenario.transport = Transport::Tcp.into();
    record.scenario.clients = 200;
    serve(record, served, 200 - served);
    let last = record.intervals.last_mut().expect("has intervals");
    let connections = &mut last.counts.connections;
    connections.attempted = 800;
    connections.failed.refused = 20;
    connections.reset_by_target = 580;
    record.total = Interval::total(&record.intervals);
}

/// A closed loop of 100 queries over UDP.
pub fn scenario(duration_ns: u64) -> ScenarioRecord {
    ScenarioRecord {
        target: "192.0.2.1:53".into(),
        server_name: Some("ns1.example".into()),
        transport: Transport::Udp.into(),
        questions: Questions {
            source: "names.txt".into(),
            count: 1_000,
            choice: QuestionChoice::default(),
        },
        arrival: Arrival::Closed {
            outstanding: 100,
            rate_qps_max: None,
        },
        per_client: None,
        shape: None,
        presence: Default::default(),
        script: None,
        profile: None,
        replay: None,
        clients: 10,
        workers: 1,
        cpus: vec![0],
        duration_ns: Some(duration_ns),
        warmup_ns: 0,
        timeout_ns: 5 * SECOND,
        interval_ns: SECOND,
        queries_max: None,
        seed: 7,
        local_addresses: Vec::new(),
        local_port: 0,
        connections: ConnectionPolicy::default(),
        http: None,
        socket_buffer_octets: None,
        edns: Some("1232 octets".into()),
        edns_padding_octets: None,
        edns_keepalive: false,
        tcp_fallback: false,
        stub: None,
        offload: true,
        timestamps: None,
        tls: None,
        tsig_algorithm: None,
        goodput_rcodes: vec![0, 3],
        labels: Default::default(),
    }
}
