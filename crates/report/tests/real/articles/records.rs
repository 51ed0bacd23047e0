//! Run records with the figures that four articles print, as their authors would have them had they
//! measured with this tool. What the articles do not print is filled in as plainly as possible.

use measure::{
    Arrival, GroupRecord, HostFacts, Interval, Phases, QuestionChoice, Questions, RunRecord,
    ScenarioRecord, Transport, WorkerFacts, judge,
};
use testing::example;

const SECOND: f64 = 1e9;

/// What an article prints of a run.
#[derive(Clone, Debug)]
pub(crate) struct Printed {
    pub(crate) transport: Transport,
    pub(crate) labels: Vec<(&'static str, String)>,
    pub(crate) clients: u64,
    pub(crate) outstanding: u64,
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    pub(crate) seconds: f64,
    /// Responses with NXDOMAIN, in ten thousandths.
    pub(crate) nxdomain: u64,
    pub(crate) latency: Latency,
    pub(crate) intervals: u64,
    /// Position among the runs of the article.
    pub(crate) round: u64,
}

/// Latency in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency {
    pub(crate) min: f64,
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    /// At the start and at the end of the run.
    pub(crate) p99: (f64, f64),
}

impl Latency {
    /// Nearly all of a run at its mean.
    pub(crate) fn flat(mean: f64) -> Self {
        Latency {
            min: mean / 20.0,
            mean,
            p50: mean,
            p95: mean,
            p99: (mean, mean),
        }
    }
}

impl Default for Printed {
    fn default() -> Self {
        Printed {
            transport: Transport::Udp,
            labels: Vec::new(),
            clients: 200,
            outstanding: 1_000,
            sent: 0,
            lost: 0,
            seconds: 120.0,
            nxdomain: 0,
            latency: Latency::flat(1.0),
            intervals: 120,
            round: 0,
        }
    }
}

impl Printed {
    /// The record of the run.
    fn started_at(&self) -> String {
        let (hours, minutes) = (9 + self.round / 60, self.round % 60);
        format!("2026-02-16T{hours:02}:{minutes:02}:00Z")
    }

    pub(crate) fn record(&self) -> RunRecord {
        let intervals: Vec<Interval> = (0..self.intervals).map(|at| self.interval(at)).collect();
        let scenario = self.scenario();
        let measured_ns = (self.seconds * SECOND) as u64;
        let plain = example::record_without_experience(intervals);
        let group = GroupRecord {
            clients: self.clients,
            scenario: scenario.clone(),
            ..plain.groups[0].clone()
        };
        let worker = WorkerFacts {
            cpu_ns: measured_ns / 2,
            wall_ns: measured_ns,
            ..plain.workers[0].clone()
        };
        let mut record = RunRecord {
            started_at: self.started_at(),
            scenario,
            agents: Vec::new(),
            hosts: vec![HostFacts {
                cpu_model: Some("Example CPU".into()),
                cores: Some(8),
                ..HostFacts::default()
            }],
            phases: Phases {
                run_ns: measured_ns,
                ..Phases::default()
            },
            measured_ns,
            workers: vec![worker],
            groups: vec![group],
            ..plain
        };
        record.verdict = judge(&record);
        record.check().expect("figures of one run agree");
        record
    }

    /// The share of `whole` that falls into an interval.
    fn part(&self, whole: u64, at: u64) -> u64 {
        whole * (at + 1) / self.intervals - whole * at / self.intervals
    }

    fn interval(&self, at: u64) -> Interval {
        let edge = |at: u64| (self.seconds * SECOND * at as f64 / self.intervals as f64) as u64;
        let mut interval = Interval {
            start_ns: edge(at),
            end_ns: edge(at + 1),
            ..Interval::default()
        };
        let (sent, lost) = (self.part(self.sent, at), self.part(self.lost, at));
        let responses = sent - lost;
        let counts = &mut interval.counts;
        counts.offered = sent;
        counts.sent = sent;
        counts.responses = responses;
        counts.timeouts = lost;
        counts.sent_octets = 44 * sent;
        counts.received_octets = 60 * responses;
        counts.rcodes.by_rcode[3] = responses * self.nxdomain / 10_000;
        counts.rcodes.by_rcode[0] = responses - counts.rcodes.by_rcode[3];
        for (latency_ns, times) in self.latencies(at, responses) {
            interval
                .distributions
                .latency
                .record_many(latency_ns, times);
            interval
                .distributions
                .service
                .record_many(latency_ns, times);
        }
        let held_ns = u128::from(lost) * 5 * SECOND as u128;
        interval.in_flight_ns = interval.distributions.latency.sum_ns() + held_ns;
        interval.cpu_ns = (interval.end_ns - interval.start_ns) / 2;
        interval.shrink_to_fit();
        interval
    }

    /// Latencies with the percentiles and the mean that are printed: half at the median, the tail
    /// where it is printed, what is between as the mean demands.
    fn latencies(&self, at: u64, responses: u64) -> Vec<(u64, u64)> {
        let Latency {
            min,
            mean,
            p50,
            p95,
            p99,
        } = self.latency;
        let progress = (at as f64 / self.intervals as f64 - 0.1) / 0.6;
        let p99 = p99.0 + (p99.1 - p99.0) * progress.clamp(0.0, 1.0);
        let share = |part: f64| (part * responses as f64) as u64;
        let (quick, tail, long) = (share(0.001), share(0.011), share(0.044));
        let half = share(0.505);
        let rest = responses - quick - tail - long - half;
        let ns = |ms: f64| (ms * 1e6) as u64;
        let known = [(min, quick), (p50, half), (p95, long), (p99, tail)];
        let sum_ms: f64 = known.iter().map(|(ms, times)| ms * *times as f64).sum();
        let between = (mean * responses as f64 - sum_ms) / rest as f64;
        let known = known.map(|(ms, times)| (ns(ms), times));
        known.into_iter().chain([(ns(between), rest)]).collect()
    }

    fn scenario(&self) -> ScenarioRecord {
        let labels = self.labels.iter();
        ScenarioRecord {
            target: "192.0.2.25:53".into(),
            server_name: Some("ns.example".into()),
            transport: self.transport.into(),
            questions: Questions {
                source: "records.txt".into(),
                count: 1_000,
                choice: QuestionChoice::default(),
            },
            arrival: Arrival::Closed {
                outstanding: self.outstanding,
                rate_qps_max: None,
            },
            clients: self.clients,
            cpus: Vec::new(),
            interval_ns: (self.seconds * SECOND) as u64 / self.intervals,
            seed: 1,
            edns: None,
            labels: labels
                .map(|(key, value)| ((*key).to_owned(), value.clone()))
                .collect(),
            ..example::scenario((self.seconds.round() * SECOND) as u64)
        }
    }
}

/// Red Hat's runs of UDP, TCP and DoT, 200 clients and 1,000 outstanding.
pub(crate) fn transports() -> Vec<Printed> {
    let run = |transport, sent, lost, seconds, latency, round| Printed {
        transport,
        sent,
        lost,
        seconds,
        latency,
        round,
        ..Printed::default()
    };
    let latency = |min, mean, p50, p95, p99| Latency {
        min,
        mean,
        p50,
        p95,
        p99,
    };
    vec![
        run(
            Transport::Udp,
            36_526_221,
            14_163,
            120.000646,
            latency(0.209, 1.149, 0.97, 2.2, (7.2, 2.8)),
            0,
        ),
        run(
            Transport::Tcp,
            30_376_311,
            0,
            120.046070,
            latency(0.239, 3.886, 3.0, 9.3, (12.5, 14.2)),
            3,
        ),
        run(
            Transport::Dot,
            22_596_146,
            0,
            120.046531,
            latency(0.25, 5.152, 3.7, 13.7, (19.0, 19.0)),
            6,
        ),
    ]
}

/// Red Hat's runs through CoreDNS over UDP, with UDP and with DoT behind it.
pub(crate) fn through_coredns() -> Vec<Printed> {
    let run = |upstream: &str, latency, round| Printed {
        labels: vec![("upstream", upstream.to_owned())],
        sent: 118_500 * 120,
        latency,
        round,
        ..Printed::default()
    };
    let latency = |p50, p95, p99| Latency {
        min: 0.4,
        mean: p50 + 0.4,
        p50,
        p95,
        p99,
    };
    vec![
        run("pure UDP", latency(2.2, 5.8, (9.29, 9.29)), 0),
        run("hybrid DoT", latency(2.37, 7.0, (9.0, 13.1)), 3),
    ]
}

/// Red Hat's steps of tuning, with the CPU of the server.
pub(crate) fn tuning() -> Vec<Printed> {
    let steps = [
        ("default, 4 clients", 4, 100, 14_194_210, 0, 0.827, 29),
        ("default, 200 clients", 200, 100, 13_699_647, 600, 0.609, 57),
        ("tcp-clients 1000", 200, 100, 18_600_000, 0, 0.62, 72),
        ("1,000 outstanding", 200, 1_000, 19_342_357, 0, 6.155, 84),
        ("no query log", 200, 1_000, 29_093_016, 0, 3.995, 96),
        ("busy polling", 200, 1_000, 30_900_000, 0, 3.85, 99),
    ];
    let each = steps.into_iter().zip(0..);
    each.map(
        |((step, clients, outstanding, sent, lost, mean, cpu), round)| Printed {
            transport: Transport::Tcp,
            labels: vec![("step", step.to_owned()), ("server-cpu", cpu.to_string())],
            clients,
            outstanding,
            sent,
            lost,
            latency: Latency::flat(mean),
            round: 3 * round,
            ..Printed::default()
        },
    )
    .collect()
}

/// The same steps by what was set: clients that BIND takes, its query log, busy polling.
pub(crate) fn settings() -> Vec<Printed> {
    let steps = [
        ("150", "on", "0", 13_699_647, 0.609, 57),
        ("1000", "on", "0", 19_342_357, 6.155, 84),
        ("1000", "off", "0", 29_093_016, 3.995, 96),
        ("1000", "off", "50", 30_900_000, 3.85, 99),
    ];
    let each = steps.into_iter().zip(0..);
    each.map(|((clients, log, poll, sent, mean, cpu), round)| Printed {
        transport: Transport::Tcp,
        labels: vec![
            ("tcp-clients", clients.to_owned()),
            ("querylog", log.to_owned()),
            ("busy_poll", poll.to_owned()),
            ("server-cpu", cpu.to_string()),
        ],
        clients: 200,
        outstanding: 1_000,
        sent,
        latency: Latency::flat(mean),
        round: 3 * round,
        ..Printed::default()
    })
    .collect()
}

/// Northflank's runs by CPU size, ten of each.
pub(crate) fn cpu_sizes() -> Vec<Printed> {
    let sizes = [
        (1, 9_195_050_u64, 213_u64, 15_324.57, 6.497_399),
        (2, 19_428_544, 234, 32_380.13, 3.064_499),
        // Its printed counts fit together only if the mean of those sent is 39,182,222.7.
        (4, 39_182_222, 27, 65_303.55, 1.515_599),
    ];
    let mut runs = Vec::new();
    for (cpu, sent, lost_of_ten, qps, mean) in sizes {
        for repeat in 0..10_u64 {
            // Ten runs whose means are those printed.
            let lost = (lost_of_ten + repeat) / 10;
            let apart = (repeat as f64 - 4.5) * sent as f64 / 400.0;
            let fraction = u64::from(cpu == 4 && repeat < 7);
            let sent_here = (sent as f64 + apart).round() as u64 + fraction;
            runs.push(Printed {
                labels: vec![("cpu", cpu.to_string()), ("repeat", repeat.to_string())],
                clients: 100,
                outstanding: 100,
                sent: sent_here,
                lost,
                seconds: (sent as f64 - lost_of_ten as f64 / 10.0) / qps,
                nxdomain: 4_540,
                latency: Latency::flat(mean),
                intervals: 10,
                round: runs.len() as u64,
                ..Printed::default()
            });
        }
    }
    runs
}

/// Sinodun's servers by clients, UDP and TCP: the shares and the 20 queries a
/// second of each client at 24,000 clients are printed, the course up to there is drawn only.
pub(crate) fn by_clients(servers: &[(&str, f64, f64)]) -> Vec<Printed> {
    let counts = [100_u64, 1_000, 5_000, 10_000, 16_000, 24_000];
    let mut runs = Vec::new();
    for (server, udp_qps, share) in servers {
        for (at, clients) in counts.into_iter().enumerate() {
            let decline = at as f64 / (counts.len() - 1) as f64;
            let tcp_share = 0.9 + (share - 0.9) * decline;
            for (transport, qps) in [
                (Transport::Udp, *udp_qps),
                (Transport::Tcp, udp_qps * tcp_share),
            ] {
                let mut labels = Vec::new();
                if servers.len() > 1 {
                    labels.push(("server", (*server).to_owned()));
                }
                runs.push(Printed {
                    transport,
                    labels,
                    clients,
                    outstanding: 5_000,
                    sent: (qps * 20.0) as u64,
                    seconds: 20.0,
                    latency: Latency::flat(5_000.0 / qps * 1e3),
                    intervals: 4,
                    round: runs.len() as u64,
                    ..Printed::default()
                });
            }
        }
    }
    runs
}
