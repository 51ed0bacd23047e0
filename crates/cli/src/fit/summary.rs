//! What a fitted profile says, for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use capture::{FitNotes, Skipped};
use load::Profile;
use measure::notation;

/// Shares of a mix that are listed; the rest is summed up.
const LISTED_MAX: usize = 6;

/// One line for each reason that something was skipped.
pub(crate) fn skipped(skipped: &Skipped) -> String {
    let mut text = String::new();
    for (reason, count) in skipped.iter() {
        let _ = writeln!(
            text,
            "skipped: {} {}",
            notation::count(count),
            reason.what()
        );
    }
    text
}

/// What happened on the way.
pub(super) fn notes(notes: &FitNotes) -> String {
    let mut text = String::new();
    for (count, what) in [
        (
            notes.without_client,
            "queries of clients beyond the number that is followed",
        ),
        (
            notes.without_name,
            "queries for names beyond the number that is counted",
        ),
        (
            notes.without_connection,
            "queries on connections that cannot be distinguished",
        ),
    ] {
        if count > 0 {
            let _ = writeln!(
                text,
                "not in all figures: {} {what}",
                notation::count(count)
            );
        }
    }
    if notes.reversals > 0 {
        let count = notation::counted(notes.reversals, "query");
        let _ = writeln!(
            text,
            "warning: {count} more than a minute before others seen earlier\n\
             hint: give captures in the order in which they were made"
        );
    }
    text
}

/// The profile in a few lines.
pub(super) fn profile(profile: &Profile) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "{key:<12}{value}");
    };
    let clients = notation::counted(profile.clients, "client");
    let span = notation::latency(profile.span_s * 1e9);
    line(
        "Population",
        format!(
            "{clients}, {} together, seen for {span}",
            notation::rate(profile.rate_qps())
        ),
    );
    line("Rates", rates(profile));
    line("Gaps", gaps(profile));
    line("Bursts", bursts(profile));
    line("QTYPE", mix(&profile.qtypes));
    line("Names", names(profile));
    if let Some(repeats) = &profile.repeats {
        let share = notation::share(repeats.within_ttl, repeats.queries);
        line(
            "Repeats",
            format!("{share} of queries within the TTL of an earlier response"),
        );
    }
    if !profile.rcodes.is_empty() {
        let unanswered = notation::share(profile.unanswered, profile.queries);
        line(
            "RCODE",
            format!("{}; {unanswered} without response", mix(&profile.rcodes)),
        );
    }
    line("Transport", transports(profile));
    text
}

/// Quantiles over clients of their mean rates.
fn rates(profile: &Profile) -> String {
    let mut all: Vec<(f64, u64)> = Vec::new();
    for class in &profile.classes {
        all.extend(Vec::from(class.rates_qps.clone()));
    }
    let all = load::profile::LogHistogram::from(all);
    let at = |share| all.quantile(share).map_or("-".into(), significant);
    let (low, middle, high, most) = (at(0.1), at(0.5), at(0.9), at(1.0));
    format!("p10 {low}, p50 {middle}, p90 {high}, most {most} qps of a client")
}

fn gaps(profile: &Profile) -> String {
    let at = |share| match profile.gaps_s.quantile(share) {
        Some(gap_s) => notation::latency(gap_s * 1e9),
        None => "-".into(),
    };
    format!(
        "p10 {}, p50 {}, p90 {} between queries of a client",
        at(0.1),
        at(0.5),
        at(0.9)
    )
}

/// Lengths of bursts over all classes, and how many gaps are idle.
fn bursts(profile: &Profile) -> String {
    let (mut bursts, mut idle, mut all) = (load::profile::CountHistogram::default(), 0, 0);
    for class in &profile.classes {
        for (low, _, count) in class.bursts.buckets() {
            bursts.record(low, count);
        }
        idle += class.idle_gaps.total();
        all += class.idle_gaps.total() + class.active_gaps.total();
    }
    if idle == 0 {
        return "none: no gap is much longer than the mean".into();
    }
    let at = |share| bursts.quantile(share).map_or("-".into(), notation::count);
    let share = notation::share(idle, all);
    format!(
        "p50 {}, p90 {} queries; {share} of gaps are idle time",
        at(0.5),
        at(0.9)
    )
}

fn names(profile: &Profile) -> String {
    let names = &profile.names;
    let head = names
        .ranks
        .iter()
        .take_while(|(rank, _)| *rank <= 10)
        .last();
    let head = head.map_or(String::new(), |&(rank, share)| {
        let first = match rank {
            1 => "the first gets".to_owned(),
            rank => format!("the first {rank} get"),
        };
        format!("; {first} {} of queries", notation::percent(share))
    });
    let kept = if names.kept.is_empty() {
        "not kept"
    } else {
        "kept"
    };
    let exponent = significant(names.zipf_exponent);
    let distinct = notation::count(names.distinct);
    format!("{distinct} ({kept}), Zipf exponent {exponent}{head}")
}

fn transports(profile: &Profile) -> String {
    let each = profile.queries_per_connection.quantile(0.5);
    let each = each.map_or(String::new(), |queries| {
        format!(
            "; p50 {} on a connection",
            notation::counted(queries, "query")
        )
    });
    format!("{}{each}", mix(&profile.transports))
}

/// The shares of a mix, largest first.
fn mix(counts: &BTreeMap<String, u64>) -> String {
    let total: u64 = counts.values().sum();
    let mut sorted: Vec<(&String, &u64)> = counts.iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let mut parts: Vec<String> = Vec::new();
    for (name, count) in sorted.iter().take(LISTED_MAX) {
        parts.push(format!("{name} {}", notation::share(**count, total)));
    }
    let rest: u64 = sorted
        .iter()
        .skip(LISTED_MAX)
        .map(|(_, count)| **count)
        .sum();
    if rest > 0 {
        let kinds = sorted.len() - LISTED_MAX;
        parts.push(format!("{kinds} others {}", notation::share(rest, total)));
    }
    parts.join(", ")
}

/// Three significant digits.
fn significant(number: f64) -> String {
    if number <= 0.0 {
        return "0".into();
    }
    let places = (2.0 - number.log10().floor()).clamp(0.0, 9.0) as usize;
    notation::decimal(number, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_mixes_end_with_the_rest() {
        for (number, text) in [
            (0.0, "0"),
            (0.001_234, "0.00123"),
            (1.0, "1.00"),
            (12.34, "12.3"),
            (123_456.0, "123,456"),
        ] {
            assert_eq!(significant(number), text);
        }
        let counts = (1..=9).map(|count| (format!("T{count}"), count)).collect();
        let text = mix(&counts);
        assert!(text.starts_with("T9 20.00 %, T8 17.78 %"), "{text}");
        assert!(text.ends_with("T4 8.89 %, 3 others 13.33 %"), "{text}");
    }
}
