//! What each of several targets was asked, and what it did.

use measure::counts::rcode_name;
use measure::notation::{count, share};
use measure::{Counts, RunRecord, TargetRecord};

use crate::document::{Column, Sheet};
use crate::text::figures::or_dash;

/// A row for each target; none where there is only one.
pub(crate) fn sheet(record: &RunRecord, prefix: &str) -> Sheet {
    let columns = vec![
        Column::words("target"),
        Column::figures("clients"),
        Column::figures("messages sent"),
        Column::figures("responses"),
        Column::figures("of its queries"),
        Column::figures("p50"),
        Column::figures("p99"),
        Column::words("RCODEs"),
        Column::words("lost"),
    ];
    let mut sheet = Sheet::new(&format!("{prefix}targets"), "Targets", columns);
    sheet.rows = record.targets.iter().map(row).collect();
    let messages: u64 = record.targets.iter().map(|it| it.messages_sent).sum();
    if messages > record.total.counts.sent {
        sheet.notes.push(
            "A query sent to several targets counts for the one that answered it, or else for the \
                last one."
                .to_owned(),
        );
    }
    sheet
}

/// `2 targets (ns1.example, ns2.example)`, as the user wrote them.
pub(crate) fn names(record: &RunRecord) -> String {
    let written = |it: &TargetRecord| it.server_name.clone().unwrap_or_else(|| it.target.clone());
    let names: Vec<String> = record.targets.iter().map(written).collect();
    format!(
        "{} targets ({})",
        count(names.len() as u64),
        names.join(", ")
    )
}

fn row(target: &TargetRecord) -> Vec<String> {
    let (counts, all) = (&target.total.counts, &target.total.distributions.latency);
    vec![
        name(target),
        count(target.clients),
        count(target.messages_sent),
        count(counts.responses),
        share(counts.responses, counts.offered),
        or_dash(all.percentile(0.5)),
        or_dash(all.percentile(0.99)),
        rcodes(counts),
        lost(counts),
    ]
}

/// `ns1.example (192.0.2.1:53)`, or the address alone where somebody wrote that.
fn name(target: &TargetRecord) -> String {
    let written = target.server_name.as_ref();
    match written.filter(|name| !target.target.contains(name.trim_matches(['[', ']']))) {
        Some(name) => format!("{name} ({})", target.target),
        None => target.target.clone(),
    }
}

/// `NOERROR 990 (NODATA 5), SERVFAIL 10`.
fn rcodes(counts: &Counts) -> String {
    let named = |(name, number): (&str, u64)| match counts.nodata {
        nodata if nodata > 0 && name == rcode_name(0) => {
            format!("{name} {} (NODATA {})", count(number), count(nodata))
        }
        _ => format!("{name} {}", count(number)),
    };
    or_none(counts.rcodes.named().map(named))
}

/// `3 timed out, 5 not sent`.
fn lost(counts: &Counts) -> String {
    let ends = counts.ends();
    or_none(ends.map(|(end, number)| format!("{} {}", count(number), end.name)))
}

fn or_none(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    match words.is_empty() {
        true => "-".to_owned(),
        false => words.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use measure::Interval;

    use super::*;
    use crate::example;

    /// `responses` responses of 2 ms with an RCODE, and `timeouts` timeouts.
    fn total(responses: u64, rcode: u16, timeouts: u64) -> Interval {
        let mut total = Interval::default();
        total
            .distributions
            .latency
            .record_many(2_000_000, responses);
        let counts = &mut total.counts;
        counts.rcodes.record_many(rcode, responses);
        (counts.responses, counts.timeouts) = (responses, timeouts);
        counts.sent = responses + timeouts;
        counts.offered = counts.sent;
        total
    }

    #[test]
    fn each_target_says_what_it_was_sent_and_what_became_of_it() {
        let mut record = example::dot();
        assert!(sheet(&record, "").rows.is_empty());
        let target = |written: &str, number: u8, messages, mut total: Interval| {
            total.counts.nodata = total.counts.rcodes.by_rcode[0] / 2;
            let address = format!("192.0.2.{number}:53");
            let names = (address, Some(written.to_owned()));
            TargetRecord::new(names, (5, messages), total, &[0])
        };
        record.targets = vec![
            target("192.0.2.1", 1, 1_234, total(0, 0, 0)),
            target("192.0.2.2:53", 2, 1_234, total(1_200, 0, 34)),
            target("ns3.example", 3, 1_000, total(1_000, 2, 0)),
        ];
        let names = "3 targets (192.0.2.1, 192.0.2.2:53, ns3.example)";
        assert_eq!(super::names(&record), names);
        let mut text = String::new();
        crate::plain::columns(&mut text, &sheet(&record, ""));
        let lines = text.lines().map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.join(" ")
        });
        let expected = [
            "target clients messages sent responses of its queries p50 p99 RCODEs lost",
            "192.0.2.1:53 5 1,234 0 - - - - -",
            "192.0.2.2:53 5 1,234 1,200 97.24 % 2.000 ms 2.000 ms NOERROR 1,200 (NODATA 600) \
             34 timed out",
            "ns3.example (192.0.2.3:53) 5 1,000 1,000 100 % 2.000 ms 2.000 ms SERVFAIL 1,000 -",
            "A query sent to several targets counts for the one that answered it, or else for the \
                last one.",
        ];
        assert_eq!(lines.collect::<Vec<String>>(), expected, "{text}");
    }
}
