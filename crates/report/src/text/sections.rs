//! The sections of the text below the result: latency, RCODEs, oddities, generator, verdict. Each
//! is empty when it has nothing to say.

use std::fmt::Write;

use measure::counts::rcode_name;
use measure::facts::XdpFacts;
use measure::notation::{count, counted, decimal, percent, share};
use measure::scenario::{DriverKind, StampSource};
use measure::{Counts, Histogram, RunRecord, SteadyState, WorkerFacts};

use super::figures::{figures, or_dash};
use crate::events;
use crate::table::{Align, Table};

/// More workers than that are summed up in one line.
const WORKERS_LISTED_MAX: usize = 8;

/// Latency from the scheduled instant and, beside it, service time.
pub(super) fn latencies(record: &RunRecord) -> String {
    let distributions = &record.total.distributions;
    if distributions.latency.is_empty() {
        return String::new();
    }
    let mut table = Table::new([Align::Left, Align::Right, Align::Right]);
    table.row([String::new(), "from scheduled".into(), "service".into()]);
    let both = figures(&distributions.latency)
        .into_iter()
        .zip(figures(&distributions.service));
    for ((name, latency), (_, service)) in both {
        table.row([name.into(), latency, service]);
    }
    table.text()
}

/// The parts of the latency, by timestamps.
pub(super) fn path(record: &RunRecord) -> String {
    if record.scenario.timestamps.is_none() {
        return String::new();
    }
    let mut text = String::new();
    let [generator, network, reader] = record.total.distributions.path.parts();
    if !network.1.is_empty() {
        let mut table = Table::new([Align::Left, Align::Right, Align::Right, Align::Right]);
        table.row(["", generator.0, network.0, reader.0].map(str::to_owned));
        let rows = figures(generator.1)
            .into_iter()
            .zip(figures(network.1))
            .zip(figures(reader.1));
        for (((name, generator), (_, network)), (_, reader)) in rows {
            table.row([name.into(), generator, network, reader]);
        }
        text = table.text();
    }
    for note in path_notes(record) {
        let _ = writeln!(text, "  {note}");
    }
    text
}

/// What a reader of the parts has to know.
pub(crate) fn path_notes(record: &RunRecord) -> Vec<String> {
    let stamps = &record.total.counts.stamps;
    let whose = match record.scenario.timestamps {
        None => return Vec::new(),
        Some(StampSource::Kernel) => "the kernel's timestamps",
        Some(StampSource::Hardware) => "the network card's timestamps",
    };
    let mut notes = vec![format!(
        "by {whose}: from scheduled to sent, from sent to received, from received to read; UDP \
         offload was off for that"
    )];
    if stamps.missing > 0 {
        let responses = counted(stamps.missing, "response");
        notes.push(format!("{responses} not included: timestamps are missing"));
    }
    if stamps.implausible > 0 {
        let responses = counted(stamps.implausible, "response");
        notes.push(format!(
            "{responses} not included: a clock was set meanwhile"
        ));
    }
    notes
}

/// How the run began, what it sustained, and whether that drifted.
pub(super) fn course(record: &RunRecord) -> String {
    let course = SteadyState::in_record(record);
    let sentences = course.map_or_else(Vec::new, |course| course.sentences());
    let lines = sentences.iter().map(|sentence| format!("  {sentence}\n"));
    lines.collect()
}

/// What was done to the target meanwhile.
pub(super) fn operations(record: &RunRecord) -> String {
    let lines = events::lines(record);
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// Responses by RCODE with their share.
pub(super) fn rcodes(record: &RunRecord) -> String {
    let rcodes = &record.total.counts.rcodes;
    let mut table = Table::new([Align::Left, Align::Right, Align::Left, Align::Right]);
    for (name, number) in rcodes.named() {
        let of_all = share(number, rcodes.total());
        table.row([name.into(), count(number), "responses".into(), of_all]);
        let nodata = record.total.counts.nodata;
        if name == rcode_name(0) && nodata > 0 {
            let of_all = share(nodata, rcodes.total());
            table.row(["  NODATA".into(), count(nodata), "of these".into(), of_all]);
        }
    }
    table.text()
}

fn p50_p99_max(histogram: &Histogram) -> String {
    format!(
        "p50 {}, p99 {}, max {}",
        or_dash(histogram.percentile(0.5)),
        or_dash(histogram.percentile(0.99)),
        or_dash(histogram.max_ns())
    )
}

/// Why queries were not sent, if any were not.
pub(super) fn not_sent(counts: &Counts) -> String {
    let not_sent = &counts.not_sent;
    let causes = [
        (
            not_sent.timed_out_waiting,
            "timed out waiting for a connection",
        ),
        (not_sent.no_free_id, "without a free message ID"),
        (not_sent.send_failed, "refused by the kernel"),
        (not_sent.run_ended, "still waiting at the end"),
    ];
    let causes = causes.into_iter().filter(|(number, _)| *number > 0);
    let causes: Vec<String> = causes
        .map(|(number, cause)| format!("{} {cause}", count(number)))
        .collect();
    causes.join(", ")
}

/// What should not happen, where it did: a word or two, how often, and what that is.
pub(crate) fn anomalies(
    record: &RunRecord,
) -> impl Iterator<Item = (&'static str, u64, &'static str)> {
    let rows = odd_messages(record)
        .into_iter()
        .chain(odd_queries(&record.total.counts))
        .chain([not_accepted(record)])
        .chain(frames_dropped(record));
    rows.filter(|row| row.1 > 0)
}

/// What should not happen, where it did.
pub(super) fn oddities(record: &RunRecord) -> String {
    let counts = &record.total.counts;
    let distributions = &record.total.distributions;
    let mut table = Table::new([Align::Left, Align::Right, Align::Left]);
    for (label, number, what) in anomalies(record) {
        table.row([label.into(), count(number), what.into()]);
    }
    let fallback = &counts.tcp_fallback;
    if fallback.sent > 0 {
        let outcome = format!(
            "queries retried over TCP: {} answered, {} timed out, {} connection lost",
            count(fallback.responses),
            count(fallback.timeouts),
            count(fallback.connection_losses)
        );
        table.row(["TCP fallback".into(), count(fallback.sent), outcome]);
    }
    let mut text = table.text();
    if !distributions.tcp_fallback.is_empty() {
        let latency = p50_p99_max(&distributions.tcp_fallback);
        let _ = writeln!(text, "  TCP fallback latency: {latency}");
    }
    text
}

/// Messages that should not have come, or not like that.
fn odd_messages(record: &RunRecord) -> [(&'static str, u64, &'static str); 10] {
    let counts = &record.total.counts;
    let overflow = record.total.distributions.latency.overflow();
    [
        (
            "late",
            counts.late,
            "responses to queries that had timed out",
        ),
        (
            "duplicate",
            counts.duplicate,
            "further responses to one query",
        ),
        ("truncated", counts.truncated, "responses with the TC bit"),
        (
            "wrong ID",
            counts.unexpected.wrong_id,
            "messages that match no query",
        ),
        (
            "wrong question",
            counts.unexpected.wrong_question,
            "messages to another question",
        ),
        (
            "wrong source",
            counts.unexpected.wrong_source,
            "messages from another address",
        ),
        (
            "malformed",
            counts.unexpected.malformed,
            "messages shorter than a header",
        ),
        (
            "queries",
            counts.unexpected.queries,
            "messages that are no responses (QR=0)",
        ),
        (
            "dropped here",
            record.network.receive_drops,
            "datagrams, receive buffer full",
        ),
        ("off the scale", overflow, "responses after 68.7 s or more"),
    ]
}

/// Queries that did not go straight to the target.
fn odd_queries(counts: &Counts) -> [(&'static str, u64, &'static str); 2] {
    [
        (
            "sent again",
            counts.retried_unprocessed,
            "queries that the target had not processed",
        ),
        (
            "kept waiting",
            counts.waited_for_stream,
            "queries whose connection was already carrying its maximum",
        ),
    ]
}

/// Connections that a self-test's own target did not accept at once.
fn not_accepted(record: &RunRecord) -> (&'static str, u64, &'static str) {
    let times = record.responder.map_or(0, |it| it.accepts_failed);
    let what = "times that the built-in responder had no file descriptor for a connection";
    ("not accepted", times, what)
}

/// Frames that AF_XDP never saw, or had handed over already.
fn frames_dropped(record: &RunRecord) -> [(&'static str, u64, &'static str); 2] {
    let of = |count: fn(&XdpFacts) -> u64| record.network.xdp.as_ref().map_or(0, count);
    [
        (
            "dropped before",
            of(XdpFacts::dropped_before_ring),
            "frames to the interface, which had no room for them before AF_XDP saw them",
        ),
        (
            "dropped beyond",
            of(XdpFacts::dropped_by_peer),
            "frames from the interface, on leaving it or at the other end of a veth pair",
        ),
    ]
}

/// How hard this tool worked, and whether it was on time.
pub(super) fn generator(record: &RunRecord) -> String {
    let mut table = Table::new([Align::Left, Align::Left]);
    if record.workers.len() <= WORKERS_LISTED_MAX {
        for (index, worker) in record.workers.iter().enumerate() {
            table.row([
                record.worker_name(index),
                worker_line(worker, record.asks_nothing()),
            ]);
        }
    } else {
        let shares = || record.workers.iter().map(WorkerFacts::busy_share);
        let busy = format!(
            "busy {} to {} of their CPUs",
            percent(shares().fold(f64::INFINITY, f64::min)),
            percent(shares().fold(0.0, f64::max))
        );
        table.row([counted(record.workers.len() as u64, "worker"), busy]);
    }
    let lateness = &record.total.distributions.send_lateness;
    if !lateness.is_empty() {
        table.row(["send lateness".into(), p50_p99_max(lateness)]);
    }
    if let Some(mean) = record.network.offload_burst_mean() {
        let bursts = counted(record.network.offload_bursts, "burst");
        let note = format!(
            "{} datagrams a burst on average ({bursts})",
            decimal(mean, 1)
        );
        table.row(["UDP GSO".into(), note]);
    }
    table.text()
}

fn worker_line(worker: &WorkerFacts, asks_nothing: bool) -> String {
    let cpu = worker
        .cpu
        .map_or_else(|| "its CPU".into(), |cpu| format!("CPU {cpu}"));
    let waited = match worker.cpu_wait_share() {
        share if share >= 0.01 => format!(", waited for it {}", percent(share)),
        _ => String::new(),
    };
    let busy = percent(worker.busy_share());
    let sent = match asks_nothing {
        true => String::new(),
        false => format!(", sent {}", counted(worker.queries, "query")),
    };
    format!("busy {busy} of {cpu}{waited}{sent}")
}

/// The limit, its evidence and what to do about it.
pub(super) fn verdict(record: &RunRecord) -> String {
    let verdict = &record.verdict;
    let in_what = match record.driver {
        DriverKind::Sim => ", in a SIMULATION",
        DriverKind::Epoll | DriverKind::Uring | DriverKind::Xdp => "",
    };
    let mut text = format!("  limit: {}{in_what}\n", verdict.limit.name());
    for evidence in &verdict.evidence {
        let _ = writeln!(text, "  - {evidence}");
    }
    for advice in &verdict.advice {
        let _ = writeln!(text, "  advice: {advice}");
    }
    text
}
