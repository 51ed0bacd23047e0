//! What clients did as stub resolvers do: attempts, servers, failovers, races.

use std::net::SocketAddr;
use std::time::Duration;

use measure::RunRecord;
use measure::counts::StubCounts;
use measure::notation::{count, counted, latency, share};
use measure::scenario::{ServerOrder, StubPolicy};

use super::figures::list;
use crate::table::{Align, Table};

/// How clients asked, for the header; empty if they asked one server once.
pub(super) fn words(record: &RunRecord) -> String {
    let Some(stub) = &record.scenario.stub else {
        return String::new();
    };
    let mut words = match stub.waits.as_slice() {
        [only] => format!("1 attempt of {}", words_of(*only)),
        [first, others @ ..] if others.iter().all(|other| other == first) => {
            format!("{} attempts of {} each", stub.waits.len(), words_of(*first))
        }
        all => {
            let times: Vec<String> = all.iter().copied().map(words_of).collect();
            format!("{} attempts of {}", all.len(), times.join(", "))
        }
    };
    if stub.servers.len() > 1 {
        words.push_str("; ");
        words.push_str(&of_servers(stub));
    }
    words
}

fn words_of(time: Duration) -> String {
    latency(time.as_nanos() as f64)
}

fn of_servers(stub: &StubPolicy) -> String {
    let mut words = match stub.order {
        ServerOrder::First => "servers in their order".to_owned(),
        ServerOrder::Rotate => "each server first in turn".to_owned(),
        ServerOrder::Stay => "the server that answered last first".to_owned(),
        ServerOrder::All => "all servers at once".to_owned(),
    };
    if !stub.failover_rcodes.is_empty() {
        let names = stub.failover_rcodes.iter();
        let names: Vec<_> = names
            .map(|rcode| measure::counts::rcode_name(*rcode))
            .collect();
        words.push_str(&format!(", the next after {}", names.join(", ")));
    }
    if !stub.dead_for.is_zero() {
        let time = words_of(stub.dead_for);
        words.push_str(&format!(", one that did not answer skipped for {time}"));
    }
    if let Some(delay) = stub.race_delay {
        let time = words_of(delay);
        words.push_str(&format!(", connections raced after {time}"));
    }
    words
}

/// What came of it; empty if clients asked one server once.
pub(super) fn section(record: &RunRecord) -> String {
    let stub = &record.total.counts.stub;
    if stub.is_empty() {
        return String::new();
    }
    let mut table = Table::new([Align::Left, Align::Left]);
    let mut row = |label: &str, words: String| table.row([label.into(), words]);
    row("answered", attempts(stub));
    if stub.retransmitted > 0 {
        let words = format!(
            "{} beside {} of queries",
            counted(stub.retransmitted, "message"),
            count(record.total.counts.sent)
        );
        row("sent again", words);
    }
    if stub.not_retransmitted > 0 {
        let words = format!(
            "{}, send buffer full",
            counted(stub.not_retransmitted, "message")
        );
        row("not sent again", words);
    }
    for (label, words) in servers(record, stub) {
        row(&label, words);
    }
    let failovers = &stub.failovers;
    let causes = [
        ("timed out", failovers.timed_out),
        ("port closed", failovers.refused),
        ("after their RCODE", failovers.rcode),
        ("connection failed", failovers.connection),
    ];
    if failovers.total() > 0 {
        let causes = causes.map(|(cause, number)| (cause.to_owned(), number));
        let causes = causes.into_iter().filter(|(_, number)| *number > 0);
        let words = format!("{}: {}", count(failovers.total()), list(causes.collect()));
        row("failovers", words);
    }
    for (label, number, what) in [
        (
            "not accepted",
            stub.responses_not_taken,
            "responses, because of their RCODE",
        ),
        (
            "given up",
            stub.connections_given_up,
            "connections that stopped responding",
        ),
        ("raced", stub.raced, "connection attempts beside another"),
        ("races lost", stub.races_lost, "connection attempts closed"),
    ] {
        if number > 0 {
            row(label, format!("{} {what}", count(number)));
        }
    }
    let mut text = String::new();
    table.write_to(&mut text);
    text
}

/// `990 (99.0 %) at attempt 1, 10 (1.0 %) at attempt 2`.
fn attempts(stub: &StubCounts) -> String {
    let all = stub.responses();
    let each = (1..).zip(&stub.responses_by_attempt);
    let each = each.filter(|(_, number)| **number > 0);
    let words: Vec<String> = each
        .map(|(attempt, &number)| {
            format!(
                "{} ({}) at attempt {attempt}",
                count(number),
                share(number, all)
            )
        })
        .collect();
    match words.is_empty() {
        true => "nothing".to_owned(),
        false => words.join(", "),
    }
}

/// A row for each server of a record that does not tell its targets apart.
fn servers(record: &RunRecord, stub: &StubCounts) -> Vec<(String, String)> {
    let servers = record
        .scenario
        .stub
        .as_ref()
        .map(|it| it.servers.as_slice());
    let servers = servers.filter(|servers| servers.len() > 1 && record.targets.is_empty());
    let servers = servers.unwrap_or(&[]);
    let of = |counts: &[u64], place: usize| counts.get(place).copied().unwrap_or(0);
    let row = |(place, server): (usize, &SocketAddr)| {
        let answered = of(&stub.responses_by_server, place);
        let words = format!(
            "sent {}, answered {} ({} of the responses)",
            count(of(&stub.sent_by_server, place)),
            count(answered),
            share(answered, stub.responses())
        );
        (server.to_string(), words)
    };
    servers.iter().enumerate().map(row).collect()
}
