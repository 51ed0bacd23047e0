//! The metrics: their names, what they are, and where each value comes from.
//!
//! Labels have few values, and as many at the end of a run as at its beginning, but for RCODEs,
//! which appear as they come. What identifies a run is in `throng_run_info` alone.

use lab::live::{NewestScrape, Phase, ShownAgent};
use measure::counts::rcode_name;
use measure::observation::SeriesKind;
use measure::{Counts, Histogram, Interval};

use crate::accumulator::{Accumulator, encode};
use crate::buckets::Buckets;
use crate::family::{Family, Kind, Label, ScrapeCounts, Value};
use crate::format::Format;

/// A counter of all queries or connections of a transport, or of a group.
struct Counter {
    name: &'static str,
    help: &'static str,
    count: fn(&Counts) -> u64,
}

/// A counter that is divided by a label.
struct Divided {
    name: &'static str,
    help: &'static str,
    label: &'static str,
    parts: fn(&Counts) -> Vec<(&'static str, u64)>,
}

/// A distribution of times.
struct Times {
    name: &'static str,
    help: &'static str,
    of: fn(&Interval) -> &Histogram,
}

const NS_PER_SECOND: f64 = 1e9;

/// RCODEs that are there before the first response: with them, rates are known from the first
/// scrape on.
const USUAL_RCODES: [u16; 5] = [0, 1, 2, 3, 5];

const COUNTERS: [Counter; 17] = [
    Counter {
        name: "throng_queries_offered",
        help: "Queries that the scenario scheduled.",
        count: |it| it.offered,
    },
    Counter {
        name: "throng_queries_sent",
        help: "Queries handed to the network.",
        count: |it| it.sent,
    },
    Counter {
        name: "throng_queries_timed_out",
        help: "Queries sent that got no response within the timeout.",
        count: |it| it.timeouts,
    },
    Counter {
        name: "throng_queries_connection_lost",
        help: "Queries sent whose connection was lost before the response came.",
        count: |it| it.connection_losses,
    },
    Counter {
        name: "throng_queries_exchange_failed",
        help: "Queries sent that HTTP or a QUIC stream ended without a DNS message.",
        count: |it| it.exchange_failures.total(),
    },
    Counter {
        name: "throng_queries_interrupted",
        help: "Queries sent that were still open when the run was interrupted.",
        count: |it| it.interrupted,
    },
    Counter {
        name: "throng_responses_late",
        help: "Responses to queries that had timed out.",
        count: |it| it.late,
    },
    Counter {
        name: "throng_responses_duplicate",
        help: "Further responses to queries that already had one.",
        count: |it| it.duplicate,
    },
    Counter {
        name: "throng_responses_truncated",
        help: "Responses with the TC bit set.",
        count: |it| it.truncated,
    },
    Counter {
        name: "throng_tcp_fallback_queries",
        help: "Queries sent again over TCP after a truncated response, counted apart.",
        count: |it| it.tcp_fallback.sent,
    },
    Counter {
        name: "throng_tcp_fallback_responses",
        help: "Responses to queries sent again over TCP, counted apart.",
        count: |it| it.tcp_fallback.responses,
    },
    Counter {
        name: "throng_sent_bytes",
        help: "Bytes of DNS messages sent, without transport framing.",
        count: |it| it.sent_octets,
    },
    Counter {
        name: "throng_received_bytes",
        help: "Bytes of DNS messages received as responses, without transport framing.",
        count: |it| it.received_octets,
    },
    Counter {
        name: "throng_connections_attempted",
        help: "Attempts to connect.",
        count: |it| it.connections.attempted,
    },
    Counter {
        name: "throng_connections_usable",
        help: "Connections that became usable, handshakes included.",
        count: |it| it.connections.became_usable,
    },
    Counter {
        name: "throng_connections_failed",
        help: "Attempts to connect that never became usable.",
        count: |it| it.connections.failed.total(),
    },
    Counter {
        name: "throng_connections_ended_by_target",
        help: "Usable connections that the target closed or reset.",
        count: |it| it.connections.ended_by_target(),
    },
];

const DIVIDED: [Divided; 3] = [
    Divided {
        name: "throng_queries_not_sent",
        help: "Queries scheduled but never handed to the network.",
        label: "reason",
        parts: |it| {
            let not_sent = &it.not_sent;
            vec![
                ("timed_out_waiting", not_sent.timed_out_waiting),
                ("no_free_id", not_sent.no_free_id),
                ("send_failed", not_sent.send_failed),
                ("run_ended", not_sent.run_ended),
            ]
        },
    },
    Divided {
        name: "throng_responses",
        help: "Queries that got a response.",
        label: "rcode",
        parts: rcodes,
    },
    Divided {
        name: "throng_messages_unexpected",
        help: "Messages received that match no query.",
        label: "reason",
        parts: |it| {
            let unexpected = &it.unexpected;
            vec![
                ("wrong_id", unexpected.wrong_id),
                ("wrong_question", unexpected.wrong_question),
                ("wrong_source", unexpected.wrong_source),
                ("malformed", unexpected.malformed),
                ("query", unexpected.queries),
            ]
        },
    },
];

const OF_GROUP: [Counter; 4] = [
    Counter {
        name: "throng_group_queries_offered",
        help: "Queries that the scenario scheduled, of each group of clients.",
        count: |it| it.offered,
    },
    Counter {
        name: "throng_group_queries_sent",
        help: "Queries handed to the network, of each group of clients.",
        count: |it| it.sent,
    },
    Counter {
        name: "throng_group_responses",
        help: "Queries that got a response, of each group of clients.",
        count: |it| it.responses,
    },
    Counter {
        name: "throng_group_queries_lost",
        help: "Queries that got no response, whatever the cause, of each group of clients.",
        count: Counts::lost,
    },
];

const TIMES: [Times; 3] = [
    Times {
        name: "throng_latency_seconds",
        help: "Latency of responses from the scheduled send.",
        of: |it| &it.distributions.latency,
    },
    Times {
        name: "throng_service_time_seconds",
        help: "Time from sending a query to its response.",
        of: |it| &it.distributions.service,
    },
    Times {
        name: "throng_send_lateness_seconds",
        help: "How long after its scheduled instant each query was sent.",
        of: |it| &it.distributions.send_lateness,
    },
];

/// Everything that is shown.
pub(crate) fn families(all: &Accumulator, scrapes: ScrapeCounts) -> Vec<Family> {
    let mut families = every_family(all, scrapes);
    families.retain(|family| !family.samples.is_empty());
    families
}

/// Every family that a command can have, with or without samples.
fn every_family(all: &Accumulator, scrapes: ScrapeCounts) -> Vec<Family> {
    let shown = all.sums.newest.as_ref().map(|newest| &newest.shown);
    let observed = shown.iter().flat_map(|it| &it.observations);
    let mut families = run(all);
    families.extend(traffic(all));
    families.extend(generator(all));
    families.extend(groups(all));
    families.extend(agents(shown.map_or(&[], |it| &it.agents)));
    families.extend(observations(observed.map(AsRef::as_ref)));
    families.extend(own(all, scrapes));
    families
}

/// Which run it is, and how far.
fn run(all: &Accumulator) -> Vec<Family> {
    let newest = all.sums.newest.as_deref();
    let place = newest.map(|it| &*it.place);
    let of_run = |name: &'static str, value: String| (name, value);
    let info = vec![
        of_run("command", all.about.command.clone()),
        of_run("run", place.map_or_else(String::new, |it| it.name.clone())),
        of_run("version", all.about.version.clone()),
    ];
    let info = Family::new(
        "throng_run_info",
        "The version of Throng, the command and the name of its current run.",
        Kind::Gauge,
    )
    .with(info, Value::Count(1));
    let current = newest.map_or(Phase::Before, |it| it.shown.phase);
    let mut phases = Family::new(
        "throng_run_phase",
        "1 for the phase of the current run, 0 for the others.",
        Kind::Gauge,
    );
    for (phase, name) in [
        (Phase::Before, "before"),
        (Phase::Load, "load"),
        (Phase::Drain, "drain"),
        (Phase::Ended, "ended"),
    ] {
        let labels = vec![("phase", name.to_owned())];
        phases = phases.with(labels, Value::Count(u64::from(phase == current)));
    }
    let gauge = |name, help, value: Option<Value>| {
        let family = Family::new(name, help, Kind::Gauge);
        match value {
            Some(value) => family.with(Vec::new(), value),
            None => family,
        }
    };
    let left = newest.and_then(|it| it.shown.left);
    vec![
        info,
        phases,
        gauge(
            "throng_run_number",
            "Position of the current run among the runs of the command, from 1.",
            place.map(|it| Value::Count(it.run)),
        ),
        gauge(
            "throng_runs",
            "Number of runs that the command makes, if it is known.",
            place.and_then(|it| it.of).map(Value::Count),
        ),
        gauge(
            "throng_run_left_seconds",
            "Time until the load of the current run ends, if a duration ends it.",
            left.map(|it| Value::Real(it.as_secs_f64())),
        ),
    ]
}

/// What was sent and what came back, by transport.
fn traffic(all: &Accumulator) -> Vec<Family> {
    let totals = || all.sums.totals.iter();
    let labelled = |transport: &str| vec![("transport", transport.to_owned())];
    let counters = COUNTERS.iter().map(|row| {
        totals().fold(
            Family::new(row.name, row.help, Kind::Counter),
            |family, (transport, total)| {
                let count = Value::Count((row.count)(&total.counts));
                family.with(labelled(transport), count)
            },
        )
    });
    let divided = DIVIDED.iter().map(|row| {
        let mut family = Family::new(row.name, row.help, Kind::Counter);
        for (transport, total) in totals() {
            for (part, count) in (row.parts)(&total.counts) {
                let mut labels: Vec<Label> = vec![(row.label, part.to_owned())];
                labels.extend(labelled(transport));
                family = family.with(labels, Value::Count(count));
            }
        }
        family
    });
    let times = TIMES.iter().map(|row| {
        totals().fold(
            Family::new(row.name, row.help, Kind::Histogram),
            |family, (transport, total)| {
                let buckets = Value::Histogram(Box::new(Buckets::new((row.of)(total))));
                family.with(labelled(transport), buckets)
            },
        )
    });
    counters.chain(divided).chain(times).collect()
}

fn rcodes(counts: &Counts) -> Vec<(&'static str, u64)> {
    let mut parts = Vec::new();
    for (rcode, &count) in (0..).zip(&counts.rcodes.by_rcode) {
        if count > 0 || USUAL_RCODES.contains(&rcode) {
            parts.push((rcode_name(rcode), count));
        }
    }
    parts.push((rcode_name(u16::MAX), counts.rcodes.other));
    parts
}

/// What the generator itself does.
fn generator(all: &Accumulator) -> Vec<Family> {
    let mut cpu = Family::new(
        "throng_generator_cpu_seconds",
        "CPU time of the workers.",
        Kind::Counter,
    );
    let mut in_flight = Family::new(
        "throng_queries_in_flight_seconds",
        "Time that queries were in flight, added up: its rate is the mean number in flight.",
        Kind::Counter,
    );
    for (transport, total) in &all.sums.totals {
        let labels = || vec![("transport", (*transport).to_owned())];
        cpu = cpu.with(labels(), Value::Real(total.cpu_ns as f64 / NS_PER_SECOND));
        let seconds = total.in_flight_ns as f64 / NS_PER_SECOND;
        in_flight = in_flight.with(labels(), Value::Real(seconds));
    }
    let mut open = Family::new(
        "throng_queries_open",
        "Queries open at the end of the newest interval.",
        Kind::Gauge,
    );
    let mut connections = Family::new(
        "throng_connections_open",
        "Connections usable at the end of the newest interval.",
        Kind::Gauge,
    );
    if let Some(newest) = &all.sums.newest {
        let interval = newest.shown.interval.as_deref();
        let labels = || vec![("transport", newest.transport_name().to_owned())];
        let count = interval.and_then(|it| it.open).unwrap_or(0);
        open = open.with(labels(), Value::Count(count));
        let count = interval.map_or(0, |it| it.connections_open);
        connections = connections.with(labels(), Value::Count(count));
    }
    vec![cpu, in_flight, open, connections]
}

/// The groups of clients of runs that have several.
fn groups(all: &Accumulator) -> Vec<Family> {
    let labelled = |name: &String| vec![("group", name.clone())];
    let counters = OF_GROUP.iter().map(|row| {
        all.sums.groups.iter().fold(
            Family::new(row.name, row.help, Kind::Counter),
            |family, (name, total)| {
                let count = Value::Count((row.count)(&total.counts));
                family.with(labelled(name), count)
            },
        )
    });
    let latency = all.sums.groups.iter().fold(
        Family::new(
            "throng_group_latency_seconds",
            "Latency of responses from the scheduled send, of each group of clients.",
            Kind::Histogram,
        ),
        |family, (name, total)| {
            let buckets = Buckets::new(&total.distributions.latency);
            family.with(labelled(name), Value::Histogram(Box::new(buckets)))
        },
    );
    counters.chain([latency]).collect()
}

fn agents(agents: &[ShownAgent]) -> Vec<Family> {
    let mut up = Family::new(
        "throng_agent_up",
        "1 while the lead has a connection to the agent, 0 once the agent is lost.",
        Kind::Gauge,
    );
    let mut at_work = Family::new(
        "throng_agent_at_work",
        "1 until the result of the agent has come or the agent is lost.",
        Kind::Gauge,
    );
    for (number, agent) in agents.iter().enumerate() {
        let labels = || {
            let host = agent.host.clone().unwrap_or_default();
            vec![("agent", number.to_string()), ("host", host)]
        };
        up = up.with(labels(), Value::Count(u64::from(!agent.is_lost)));
        at_work = at_work.with(labels(), Value::Count(u64::from(agent.is_at_work)));
    }
    vec![up, at_work]
}

/// What servers and hosts expose, as they expose it: counters may start again from 0. A series
/// that is missing or stale has no sample.
fn observations<'a>(scrapes: impl Iterator<Item = &'a NewestScrape>) -> Vec<Family> {
    let mut up = Family::new(
        "throng_observed_up",
        "1 if the newest scrape of the source succeeded.",
        Kind::Gauge,
    );
    let mut counters = Family::new(
        "throng_observed_counter",
        "Counters of the server and the host, as their source has them.",
        Kind::Counter,
    );
    let mut gauges = Family::new(
        "throng_observed_gauge",
        "Gauges of the server and the host, as their source has them.",
        Kind::Gauge,
    );
    for scrape in scrapes {
        let of_source = || {
            let (profile, source) = (scrape.profile.to_string(), scrape.source.to_string());
            vec![("profile", profile), ("source", source)]
        };
        up = up.with(of_source(), Value::Count(u64::from(!scrape.has_failed)));
        for sample in &scrape.samples {
            let Some(value) = sample.sample.value().map(Value::Real) else {
                continue;
            };
            let mut labels = of_source();
            labels.push(("series", sample.series.name.clone()));
            labels.push(("unit", sample.series.unit.clone()));
            match sample.series.kind {
                SeriesKind::Counter => counters = counters.with(labels, value),
                SeriesKind::Gauge => gauges = gauges.with(labels, value),
            }
        }
    }
    vec![up, counters, gauges]
}

/// What a responder counts, by name.
pub(crate) fn encode_responder(
    counted: Vec<(&'static str, u64)>,
    format: Format,
    scrapes: ScrapeCounts,
) -> Vec<u8> {
    let responder = counted.into_iter().fold(
        Family::new(
            "throng_responder_events",
            "What the responder counts, as in its --counters.",
            Kind::Counter,
        ),
        |family, (event, count)| {
            let labels = vec![("event", event.to_owned())];
            family.with(labels, Value::Count(count))
        },
    );
    let families: Vec<Family> = [responder].into_iter().chain(of_scrapes(scrapes)).collect();
    encode(&families, format)
}

fn counter(name: &'static str, help: &'static str, count: u64) -> Family {
    Family::new(name, help, Kind::Counter).with(Vec::new(), Value::Count(count))
}

/// What becomes of snapshots and scrapes.
fn own(all: &Accumulator, scrapes: ScrapeCounts) -> Vec<Family> {
    let snapshots = [
        counter(
            "throng_snapshots",
            "Snapshots of the command that these metrics include.",
            all.sums.snapshots_read,
        ),
        counter(
            "throng_snapshots_missed",
            "Snapshots that these metrics do not include, because reading them was too slow.",
            all.sums.snapshots_missed,
        ),
        counter(
            "throng_group_intervals_dropped",
            "Intervals of groups of clients beyond the first 64 groups.",
            all.sums.group_intervals_dropped,
        ),
    ];
    snapshots.into_iter().chain(of_scrapes(scrapes)).collect()
}

fn of_scrapes(scrapes: ScrapeCounts) -> [Family; 3] {
    [
        counter(
            "throng_scrapes",
            "Scrapes that were answered with metrics.",
            scrapes.served,
        ),
        counter(
            "throng_scrapes_refused",
            "Connections above the limits, answered with 503 or closed.",
            scrapes.refused,
        ),
        counter(
            "throng_scrapes_timed_out",
            "Connections closed because the scraper was too slow.",
            scrapes.timed_out,
        ),
    ]
}

#[cfg(test)]
mod dashboards;
