//! Connections of every transport that has them: attempts, handshakes, failures, ends, and times.

use measure::counts::error_codes::{application_error, quic_transport_error};
use measure::counts::{Codes, Connections};
use measure::notation::{count, counted, decimal, per_second};
use measure::{Histogram, RunRecord};

use super::figures::{list, or_dash};
use crate::table::{Align, Table};

/// Connections, those of the TCP fallback included; empty without any.
pub(super) fn section(record: &RunRecord) -> String {
    let connections = &record.connections();
    if !record.scenario.transport.has_connections() && connections.attempted == 0 {
        return String::new();
    }
    let mut table = Table::new([Align::Left, Align::Right, Align::Left]);
    let rows = begin(record, connections).into_iter();
    for (label, number, note) in rows.chain(end(record, connections)) {
        table.row([label.into(), count(number), note]);
    }
    let mut text = String::new();
    table.write_to(&mut text);
    times(record).write_to(&mut text);
    text
}

type Row = (&'static str, u64, String);

/// From the attempt to a usable connection.
fn begin(record: &RunRecord, connections: &Connections) -> Vec<Row> {
    let transport = record.scenario.transport;
    let none = String::new;
    let mut rows = vec![("attempted", connections.attempted, none())];
    if !transport.is_quic() {
        rows.push(("established", connections.established, none()));
    }
    if record.scenario.connections.tcp_fast_open || connections.fast_opened > 0 {
        let note = "the target accepted the first bytes with the SYN".into();
        rows.push(("fast opened", connections.fast_opened, note));
    }
    if connections.messages_cut > 0 {
        let note = "times that a message's rest came in a later delivery".into();
        rows.push(("messages cut", connections.messages_cut, note));
    }
    let handshakes = connections.handshakes.total();
    if handshakes > 0 || record.scenario.has_handshakes() {
        let label = match transport.is_quic() {
            true => "QUIC handshakes",
            false => "TLS handshakes",
        };
        rows.push((label, handshakes, handshake_kinds(record, connections)));
    }
    if connections.tickets_missed > 0 {
        let note = "closed because no session ticket came in time".into();
        rows.push(("tickets missed", connections.tickets_missed, note));
    }
    rows.extend(early_data(record, connections));
    let octets = connections.handshake_octets();
    if octets > 0 {
        let note = format!(
            "{} sent, {} received{}",
            count(connections.handshake_sent_octets),
            count(connections.handshake_received_octets),
            match handshakes {
                0 => String::new(),
                _ => format!("; {} each", decimal(octets as f64 / handshakes as f64, 0)),
            }
        );
        rows.push(("handshake bytes", octets, note));
    }
    let failed = connections.failed.by_cause(transport);
    rows.push(("failed", connections.failed.total(), list(failed)));
    if connections.abandoned > 0 {
        let note = "in progress when the run ended".into();
        rows.push(("abandoned", connections.abandoned, note));
    }
    if !record.asks_nothing() {
        let mut note = format!("of {}", counted(record.scenario.clients, "client"));
        let total = &record.total;
        if total.connections_open_max.is_none() {
            note.push_str(", at the end of an interval");
        }
        rows.push(("open at once, most", total.most_open(), note));
    }
    rows
}

/// What became of 0-RTT, where it was asked for.
fn early_data(record: &RunRecord, connections: &Connections) -> Option<Row> {
    let early = &connections.early_data;
    let resumed = connections.handshakes.resumed;
    let tls = record.scenario.tls.as_ref();
    let is_asked_for = tls.is_some_and(|tls| tls.settings.early_data);
    if early.tried == 0 && !(is_asked_for && resumed > 0) {
        return None;
    }
    let queries = counted(early.queries, "query");
    let note = match (early.tried, early.accepted + early.rejected) {
        (0, _) => format!(
            "none could be sent in {}: the tickets of the target allow none",
            counted(resumed, "resumed session")
        ),
        (_, 0) => format!("connections could have sent it; {queries} in it"),
        _ => {
            let outcome = [
                ("accepted".to_owned(), early.accepted),
                ("rejected".to_owned(), early.rejected),
            ];
            format!(
                "connections tried it: {}; {queries} in it",
                list_of(outcome)
            )
        }
    };
    Some(("early data (0-RTT)", early.tried, note))
}

/// `190 full, 10 resumed; 95.0 a second`.
fn handshake_kinds(record: &RunRecord, connections: &Connections) -> String {
    let kinds = &connections.handshakes;
    let mut note = list_of([
        ("full".to_owned(), kinds.full),
        (
            "full after HelloRetryRequest".to_owned(),
            kinds.full_with_retry,
        ),
        ("resumed".to_owned(), kinds.resumed),
    ]);
    let rate = record.handshakes_per_second();
    if rate > 0.0 {
        note.push_str(&format!("; {} a second of load", per_second(rate)));
    }
    note
}

/// What became of usable connections; what did not happen is left out.
fn end(record: &RunRecord, connections: &Connections) -> Vec<Row> {
    let transport = record.scenario.transport;
    let own = &connections.closed_by_client_for;
    let reasons = list_of([
        ("when idle".to_owned(), own.idle),
        ("after --connection-duration".to_owned(), own.duration),
        ("without a query".to_owned(), own.without_query),
        (
            "because no more streams were allowed".to_owned(),
            own.no_streams,
        ),
        ("reset by the scenario".to_owned(), own.reset),
    ]);
    let application = |codes: &Codes| named(codes, |code| application_error(transport, code));
    let violations = connections.closed_for_violation.named();
    let violations = violations.map(|(rule, number)| (rule.to_owned(), number));
    let none = String::new;
    let mut rows = vec![
        ("closed by us", connections.closed_by_client, reasons),
        (
            "closed by us for a protocol violation",
            connections.closed_for_violation.total(),
            list(violations.collect()),
        ),
        ("closed by the target", connections.closed_by_target, none()),
        ("reset by the target", connections.reset_by_target, none()),
        ("ended by TLS", connections.ended_by_tls, none()),
        (
            "ended by GOAWAY",
            connections.ended_by_goaway.total(),
            application(&connections.ended_by_goaway),
        ),
        (
            "HTTP protocol error",
            connections.ended_by_http,
            "made by the target".into(),
        ),
        (
            "closed with a code",
            connections.quic_application.total(),
            application(&connections.quic_application),
        ),
        (
            "QUIC error",
            connections.quic_transport.total(),
            named(&connections.quic_transport, quic_transport_error),
        ),
        (
            "QUIC idle timeout",
            connections.quic_idle_timeouts,
            "nothing heard from the target".into(),
        ),
        (
            "QUIC streams used up",
            connections.quic_stream_limits_met,
            "times, until the target allowed more".into(),
        ),
    ];
    rows.retain(|(_, number, _)| *number > 0);
    rows
}

/// Counts with what they count, without those that are zero.
fn list_of<const N: usize>(counts: [(String, u64); N]) -> String {
    list(
        counts
            .into_iter()
            .filter(|(_, number)| *number > 0)
            .collect(),
    )
}

/// Codes by their names, with their counts.
fn named(codes: &Codes, words: impl Fn(u64) -> String) -> String {
    let each = codes.named().map(|(code, number)| {
        let code = code.map_or_else(|| "another code".to_owned(), &words);
        (code, number)
    });
    list(each.collect())
}

/// How long set-up took, and first queries against later ones; no row without values.
fn times(record: &RunRecord) -> Table<5> {
    let times = record.connection_times();
    let later = match times.first_query.is_empty() {
        true => Histogram::on_demand(),
        false => record.later_queries(),
    };
    let rows = [
        ("TCP connect", &times.tcp_connect),
        ("full TLS handshake", &times.tls_handshake),
        ("resumed TLS handshake", &times.tls_handshake_resumed),
        ("full QUIC handshake", &times.quic_handshake),
        ("resumed QUIC handshake", &times.quic_handshake_resumed),
        ("first query, service", &times.first_query),
        ("later queries, service", &later),
        ("set-up and first query", &times.set_up_and_first_query),
    ];
    let right = Align::Right;
    let mut table = Table::new([Align::Left, right, right, right, right]);
    let measured = rows.into_iter().filter(|(_, times)| !times.is_empty());
    for (index, (step, times)) in measured.enumerate() {
        if index == 0 {
            table.row(["", "times", "p50", "p99", "max"].map(str::to_owned));
        }
        table.row([
            step.into(),
            count(times.count()),
            or_dash(times.percentile(0.5)),
            or_dash(times.percentile(0.99)),
            or_dash(times.max_ns()),
        ]);
    }
    table
}
