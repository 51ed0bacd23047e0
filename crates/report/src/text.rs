//! The result as text, for a person who sees it for the first time.
//!
//! Columns are aligned, every number has its unit, nothing depends on colour. What did not happen
//! is left out, except the losses, whose zeroes are the good news. [`interval_line`] is the
//! progress of a run where no terminal can be redrawn, [`connections_line`] that of one without
//! queries.

use std::fmt::Write;

use measure::counts::{ENDS, rcode_name};
use measure::notation::{
    bit_rate, chosen, count, counted, decimal, first_few, latency, rate, seconds, share,
};
use measure::record::EndedBy;
use measure::scenario::DriverKind;
use measure::{
    Arrival, Counts, Interval, Limit, Process, RunRecord, ScenarioRecord, Transport, Verdict,
};

use crate::document::Sheet;
use crate::table::{Align, Table};
use crate::{agents, instances, plain, servers, targets};

mod capture;
mod clients;
mod connections;
pub(crate) mod figures;
pub(crate) mod questions;
pub(crate) mod scripts;
pub(crate) mod sections;
mod simulation;
mod stub;
#[cfg(test)]
mod tests;
mod transport_settings;
mod without_queries;

use figures::{list, or_dash};
pub(crate) use sections::path_notes;
pub use without_queries::connections_line;

/// The whole result, ending in a line break.
pub fn render(record: &RunRecord) -> String {
    let mut text = header(record);
    let sections = [
        ("Result", outcome(record)),
        ("Latency", sections::latencies(record)),
        ("Where the time went", sections::path(record)),
        ("Course", sections::course(record)),
        ("Operations", sections::operations(record)),
        ("Targets", table(&targets::sheet(record, ""))),
        ("Server instances", table(&instances::sheet(record, ""))),
        ("Clients", clients::section(record)),
        ("RCODEs", sections::rcodes(record)),
        ("Attempts", stub::section(record)),
        ("Connections", connections::section(record)),
        ("Scripts", scripts::section(record)),
        ("Capture", capture::section(record)),
        ("Simulated server", simulation::section(record)),
        ("Oddities", sections::oddities(record)),
        ("Server", servers(record)),
        ("Generator", sections::generator(record)),
        ("Agents", table(&agents::sheet(record, "", agents::IN_TEXT))),
        ("Verdict", sections::verdict(record)),
    ];
    for (title, body) in sections {
        if !body.is_empty() {
            let _ = write!(text, "\n{title}\n{body}");
        }
    }
    if !record.warnings.is_empty() {
        text.push('\n');
    }
    for warning in &record.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

/// What was observed of servers.
fn servers(record: &RunRecord) -> String {
    let mut table = Table::new([Align::Left, Align::Left]);
    for (name, words) in servers::facts(record) {
        table.row([name, words]);
    }
    table.text()
}

/// One line on one interval, without a line break: what was sent, answered and lost in it.
///
/// Responses are those that came in the interval, to queries of it or of an earlier one.
pub fn interval_line(interval: &Interval) -> String {
    let counts = &interval.counts;
    let p = |p| or_dash(interval.distributions.latency.percentile(p));
    format!(
        "{:>8}  sent {:>9}  {:>13}  responses {:>9}  {:>13}  lost {:>6}  p50 {:>8}  p99 {:>8}  \
         in flight {:>7}",
        seconds(interval.end_ns),
        count(counts.sent),
        rate(interval.per_second(counts.sent)),
        count(counts.responses),
        rate(interval.per_second(counts.responses)),
        count(counts.lost()),
        p(0.5),
        p(0.99),
        decimal(interval.mean_in_flight(), 1),
    )
}

/// Lateness of sends from which on it is remarked in mid-run, in nanoseconds.
const LATE_NS: u64 = 1_000_000;

/// What the figures of a run mean so far, in a few words: its provisional verdict, where there is
/// one, else what is wrong with no cause named. None if nothing is.
pub fn so_far(counts: &Counts, newest: &Interval, verdict: Option<&Verdict>) -> Option<String> {
    if let Some(verdict) = verdict {
        return Some(match verdict.limit {
            Limit::Unknown => "limit so far: undecided".to_owned(),
            limit => format!("limit so far: {}", limit.name()),
        });
    }
    let lateness = newest.distributions.send_lateness.percentile(0.99);
    if let Some(late) = lateness.filter(|late| *late >= LATE_NS) {
        return Some(format!("sent late: p99 {}", latency(late as f64)));
    }
    let lost = counts.lost();
    (lost > 0).then(|| format!("lost so far: {}", share(lost, counts.offered)))
}

/// What was run against what, and how long, without a line break.
pub(crate) fn what_was_run(record: &RunRecord) -> String {
    let scenario = &record.scenario;
    let target = match (&scenario.server_name, record.self_test) {
        (_, true) => format!("the built-in responder ({})", scenario.target),
        (_, false) if !record.targets.is_empty() => targets::names(record),
        (Some(name), false) => format!("{name} ({})", scenario.target),
        (None, false) => scenario.target.clone(),
    };
    let warmup = match scenario.warmup_ns {
        0 => String::new(),
        ns => format!(" after {} warm-up", seconds(ns)),
    };
    let ended = match record.ended_by {
        EndedBy::Duration | EndedBy::Queries => "",
        EndedBy::TargetGone => ", then the target was gone",
        EndedBy::Aborted => ", then ended by --abort-if",
        EndedBy::Interrupted => ", then interrupted",
        EndedBy::AgentLost => ", then an agent was lost",
        EndedBy::Killed => " until its last checkpoint, then it was killed",
    };
    let kind = match (record.driver, record.self_test) {
        (DriverKind::Sim, _) => "SIMULATION in virtual time, ",
        (DriverKind::Epoll | DriverKind::Uring | DriverKind::Xdp, true) => "self-test, ",
        (DriverKind::Epoll | DriverKind::Uring | DriverKind::Xdp, false) => "",
    };
    format!(
        "throng {}: {kind}{} to {target}, {}{warmup}{ended}",
        record.throng_version,
        scenario.transport,
        seconds(record.measured_ns),
    )
}

/// What was run, in a line, and all that says how.
fn header(record: &RunRecord) -> String {
    let mut text = what_was_run(record);
    text.push('\n');
    let mut table = Table::new([Align::Left, Align::Left]);
    for (name, words) in scenario_facts(record) {
        table.row([name.into(), words]);
    }
    table.write_to(&mut text);
    text
}

/// What was run, by name.
pub(crate) fn scenario_facts(record: &RunRecord) -> Vec<(&'static str, String)> {
    let scenario = &record.scenario;
    let mut workers = format!(
        "{}, {}",
        counted(scenario.clients, "client"),
        counted(scenario.workers, "worker")
    );
    if record.agent_count > record.generators {
        workers.push_str(&format!(" of {} agents", count(record.agent_count)));
    }
    let load = match record.asks_nothing() {
        true => without_queries::load(record),
        false => match (&scenario.script, &scenario.replay) {
            (Some(script), _) => format!("each client as {script} says"),
            (_, Some(replay)) => capture::replayed(replay),
            _ => load(&scenario.arrival),
        },
    };
    let named = named_agents(record);
    let merged = match record.generators {
        several if several > 1 && named.is_empty() => counted(several, "record"),
        _ => String::new(),
    };
    let questions = match record.asks_nothing() {
        true => String::new(),
        false => questions::questions(scenario),
    };
    let profile = scenario.profile.as_ref();
    let profile = profile.map_or_else(String::new, capture::profile);
    let mut facts = vec![
        ("load", format!("{load}; {workers}")),
        ("questions", questions),
        ("profile", profile),
        ("options", options(record)),
        ("HTTP", transport_settings::http(scenario)),
        ("TLS", transport_settings::tls(scenario)),
        ("connections", transport_settings::connections(scenario)),
        ("stub resolver", stub::words(record)),
        ("labels", labels(scenario)),
        ("driver", driver(record)),
        ("started", record.started_at.clone()),
        ("agents", named),
        ("merged", merged),
        ("intervals", intervals(record)),
    ];
    facts.retain(|(_, words)| !words.is_empty());
    facts
}

/// The agents of a run that was led on several hosts, and how well they started together; empty of
/// other runs.
fn named_agents(record: &RunRecord) -> String {
    let names = record
        .agents
        .iter()
        .filter_map(|agent| agent.name.as_deref());
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return String::new();
    }
    let of_all = match record.absent_agents.len() {
        0 => String::new(),
        absent => format!(" of {}", names.len() + absent),
    };
    let mut words = format!("{}{of_all}: {}", names.len(), first_few(&names));
    let clocks = record.agents.iter().filter_map(|agent| agent.clock);
    if let Some(bound_ns) = clocks.map(|clock| clock.start_bound_ns).max() {
        words.push_str(&format!(
            "; their clocks are known to {}",
            latency(bound_ns as f64)
        ));
    }
    words
}

/// How wide intervals are, where the run was so long that they were merged.
fn intervals(record: &RunRecord) -> String {
    match record.intervals_merged {
        1 => String::new(),
        several => format!(
            "of {}: {} of {} each were merged, for the length of the run",
            latency(record.interval_ns() as f64),
            count(several),
            latency(record.scenario.interval_ns as f64)
        ),
    }
}

/// How frames got to the interface and back; the kernel's sockets go without saying.
fn driver(record: &RunRecord) -> String {
    match (record.driver, &record.driver_reason) {
        (DriverKind::Xdp, Some(words)) => words.clone(),
        _ => String::new(),
    }
}

/// What the user said of the run: `cpu=2, logging=off`.
pub(crate) fn labels(scenario: &ScenarioRecord) -> String {
    let each = scenario.labels.iter();
    let words: Vec<String> = each.map(|(key, value)| format!("{key}={value}")).collect();
    words.join(", ")
}

/// When queries were due, in words.
pub(crate) fn load(arrival: &Arrival) -> String {
    match *arrival {
        Arrival::Closed {
            outstanding,
            rate_qps_max,
        } => {
            let cap = rate_qps_max
                .map_or_else(String::new, |qps| format!(", at most {} qps", chosen(qps)));
            format!("closed loop, {} outstanding{cap}", count(outstanding))
        }
        Arrival::Open {
            rate_qps,
            process,
            burst,
        } => {
            let spread = match process {
                Process::Constant => "equally spaced",
                Process::Poisson => "Poisson",
            };
            let bursts = match burst {
                1 => String::new(),
                _ => format!(", in bursts of {} of one client", count(burst.into())),
            };
            format!("open loop, {} qps {spread}{bursts}", chosen(rate_qps))
        }
        Arrival::Clients {
            rate_qps: Some(qps),
        } => format!("each client by itself, {} qps in all", chosen(qps)),
        Arrival::Clients { rate_qps: None } => "each client by itself".to_owned(),
    }
}

/// What else of the scenario changes the meaning of the figures.
fn options(record: &RunRecord) -> String {
    let scenario = &record.scenario;
    let mut options = Vec::new();
    // Records say octets, as they did from the first.
    let edns = scenario.edns.as_ref();
    options.extend(edns.map(|edns| format!("EDNS {}", edns.replace("octets", "bytes"))));
    options.extend(
        scenario
            .tsig_algorithm
            .as_ref()
            .map(|name| format!("TSIG {name}")),
    );
    options.extend(
        scenario
            .edns_padding_octets
            .map(|octets| format!("padding to multiples of {}", counted(octets, "byte"))),
    );
    if scenario.edns_keepalive {
        options.push("EDNS keepalive".into());
    }
    if scenario.tcp_fallback {
        options.push("TCP after truncation".into());
    }
    options.push(format!("timeout {}", latency(scenario.timeout_ns as f64)));
    options.join("; ")
}

/// How the queries ended, or of the connections where there were no queries.
fn outcome(record: &RunRecord) -> String {
    match record.asks_nothing() {
        true => without_queries::result(record),
        false => result(record),
    }
}

/// A table with its notes; nothing if it is empty.
fn table(sheet: &Sheet) -> String {
    let mut text = String::new();
    if !sheet.rows.is_empty() || !sheet.notes.is_empty() {
        plain::columns(&mut text, sheet);
    }
    text
}

/// Offered, sent, answered, lost; then the rates.
fn result(record: &RunRecord) -> String {
    let counts = &record.total.counts;
    let offered = counts.offered;
    let [left, right] = [Align::Left, Align::Right];
    let mut table = Table::new([left, right, left, right, left]);
    let mut row = |label: &str, number: u64, unit: &str, note: String| {
        let share = if label == "offered" {
            String::new()
        } else {
            share(number, offered)
        };
        table.row([label.into(), count(number), unit.into(), share, note]);
    };
    let offered_rate = rate(record.offered_qps());
    let note = match questions::repeated(&record.scenario, counts) {
        Some(repeated) => format!("{offered_rate}, {repeated}"),
        None => offered_rate,
    };
    row("offered", offered, "queries", note);
    let sent = format!("of offered, {}", rate(record.sent_qps()));
    row("sent", counts.sent, "queries", sent);
    row(
        "responses",
        counts.responses,
        "responses",
        "of offered".into(),
    );
    row("lost", counts.lost(), "queries", "of offered".into());
    let transport = record.scenario.transport;
    for end in ENDS.iter().filter(|end| end.is_lost) {
        let number = (end.count)(counts);
        let note = match (end.has_causes, end.was_sent) {
            (true, _) if number == 0 && !transport.has_exchanges() => continue,
            (true, _) => list(counts.exchange_failures.by_cause(transport)),
            (false, true) => String::new(),
            (false, false) => sections::not_sent(counts),
        };
        row(&format!("  {}", end.name), number, "queries", note);
    }
    if counts.interrupted > 0 {
        let note = "of offered; still open at the end".to_owned();
        row("still open", counts.interrupted, "queries", note);
    }
    rates(record, &mut table);
    let mut text = String::new();
    table.write_to(&mut text);
    text
}

/// Rates within the window, sizes, and how many queries were in flight.
fn rates(record: &RunRecord, table: &mut Table<5>) {
    let mut row = |label: &str, figure: String, share: String, note: String| {
        let (number, unit) = figure.split_once(' ').unwrap_or((&figure, ""));
        table.row([label.into(), number.into(), unit.into(), share, note]);
    };
    let none = String::new;
    let window = format!(
        "responses within the {} of load{}",
        seconds(record.measured_ns),
        match record.responses_after_window() {
            0 => String::new(),
            after => format!(
                ", and {} just after the end at normal latency",
                count(after)
            ),
        }
    );
    row("achieved", rate(record.achieved_qps()), none(), window);
    let good = share(record.goodput(), record.total.counts.responses);
    row(
        "goodput",
        rate(record.goodput_qps()),
        good,
        goodput_set(record),
    );
    let query = mean_octets(record.query_octets_mean(), "query");
    let response = mean_octets(record.response_octets_mean(), "response");
    row("DNS sent", bit_rate(record.sent_bit_rate()), none(), query);
    row(
        "DNS received",
        bit_rate(record.received_bit_rate()),
        none(),
        response,
    );
    let wire = [record.sent_wire_rate(), record.received_wire_rate()];
    let notes = [wire_words(record), String::new()];
    let directions = ["on the wire, sent", "on the wire, received"];
    for ((label, bits), note) in directions.into_iter().zip(wire).zip(notes) {
        if let Some(bits) = bits {
            row(label, bit_rate(bits), none(), note);
        }
    }
    let places = record
        .outstanding()
        .map_or_else(none, |n| format!("of {}", count(n)));
    let in_flight = format!("{} queries", decimal(record.mean_in_flight(), 1));
    row("in flight, mean", in_flight, none(), places);
}

fn goodput_set(record: &RunRecord) -> String {
    let truncated = match record.total.counts.truncated_rcodes.is_empty() {
        true => "",
        false => "; truncated ones only where TCP brought the whole one",
    };
    format!("of responses: {}{truncated}", goodput_names(record))
}

/// What is counted on the wire beside DNS messages.
pub(crate) fn wire_words(record: &RunRecord) -> String {
    let wire = &record.total.counts.wire;
    let mut words = match record.scenario.transport.only() {
        Some(Transport::Udp) => "with the headers of UDP and IP".to_owned(),
        Some(Transport::Tcp) => "with the headers of TCP and IP".to_owned(),
        Some(Transport::Dot) => "with TLS, TCP and IP, handshakes too".to_owned(),
        Some(Transport::Doh2) => "with HTTP, TLS, TCP and IP, handshakes too".to_owned(),
        Some(Transport::Doh3) => "with HTTP, QUIC, UDP and IP, handshakes too".to_owned(),
        Some(Transport::Doq) => "with QUIC, UDP and IP, handshakes too".to_owned(),
        None => "with everything that carries them, handshakes too".to_owned(),
    };
    if wire.sent_segments + wire.received_segments > 0 {
        words.push_str("; segments estimated, those without data not included");
    }
    words
}

/// The RCODEs of the goodput set.
pub(crate) fn goodput_names(record: &RunRecord) -> String {
    let rcodes = record.scenario.goodput_rcodes.iter();
    let names: Vec<&str> = rcodes.map(|&rcode| rcode_name(rcode)).collect();
    names.join(", ")
}

fn mean_octets(mean: Option<f64>, what: &str) -> String {
    mean.map_or_else(String::new, |mean| {
        format!("{} bytes a {what}", decimal(mean, 1))
    })
}
