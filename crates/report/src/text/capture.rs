//! What a run took from a capture.

use measure::RunRecord;
use measure::notation::{count, counted, seconds};
use measure::scenario::{ClientsBy, ProfileRecord, ReplayRecord};

use crate::table::{Align, Table};

/// Hexadecimal digits of a digest that are shown.
const DIGITS: usize = 12;

/// The profile that clients were drawn from, in a line.
pub(super) fn profile(profile: &ProfileRecord) -> String {
    let factor = match profile.rate_factor {
        1.0 => String::new(),
        factor => format!(", rates times {factor}"),
    };
    let digest = profile.sha256.get(..DIGITS).unwrap_or(&profile.sha256);
    format!(
        "{} (SHA-256 {digest}...), fitted from {} of {}{factor}",
        profile.file,
        counted(profile.queries_seen, "query"),
        counted(profile.clients_seen, "client")
    )
}

/// When queries of a replay were due, in words.
pub(super) fn replayed(replay: &ReplayRecord) -> String {
    let speed = match replay.speed {
        1.0 => "at the speed of the capture".to_owned(),
        speed => format!("{speed} times the speed of the capture"),
    };
    let rounds = match replay.rounds {
        1 => String::new(),
        rounds => format!(", {} times over", count(rounds)),
    };
    format!(
        "replay of {} within {}{rounds}, {speed}",
        counted(replay.queries, "query"),
        seconds(replay.span_ns)
    )
}

/// What was in the captures that were replayed, and what was left out; nothing without a replay.
pub(super) fn section(record: &RunRecord) -> String {
    let Some(replay) = &record.scenario.replay else {
        return String::new();
    };
    let mut table = Table::new([Align::Left, Align::Right, Align::Left]);
    for capture in &replay.captures {
        let words = match &capture.cut_off {
            None => format!("queries, {}", capture.format),
            Some(why) => format!("queries, {}; read up to a fault: {why}", capture.format),
        };
        table.row([capture.file.clone(), count(capture.queries), words]);
    }
    let filters = replay.filters.join("; ");
    let held_back = format!("queries excluded ({filters})");
    for (label, number, words) in [
        ("filtered", replay.filtered, held_back),
        (
            "left out",
            replay.beyond_limit,
            "queries beyond the number asked for".into(),
        ),
    ] {
        if number > 0 {
            table.row([label.into(), count(number), words]);
        }
    }
    for (reason, number) in &replay.skipped {
        table.row(["skipped".into(), count(*number), reason.clone()]);
    }
    let by = match replay.clients_by {
        ClientsBy::Address => "clients, each an address of the capture",
        ClientsBy::AddressAndPort => "clients, each an address and port of the capture",
    };
    table.row([
        "replayed as".into(),
        count(record.scenario.clients),
        by.into(),
    ]);
    table.text()
}
