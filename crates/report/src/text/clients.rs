//! How the single clients fared, each group by itself: a total hides whom it does not serve.
//!
//! Quantiles of single clients are shown with two digits, which is what is known of them.

use std::fmt::Write;

use measure::experience::PPM;
use measure::notation::{count, counted, decimal, latency, per_second, share};
use measure::{ClientExperience, GroupRecord, Histogram, RunRecord};

use super::figures::or_dash;
use crate::table::{Align, Table};

/// Worst clients that are shown.
const WORST_SHOWN_MAX: usize = 3;

/// The clients of each group; nothing where only one client was simulated.
pub(super) fn section(record: &RunRecord) -> String {
    let mut text = String::new();
    if record.scenario.clients < 2 || record.asks_nothing() {
        return text;
    }
    for group in &record.groups {
        if record.groups.len() > 1 {
            let _ = writeln!(text, "  {}", headline(group));
        }
        if let Some(experience) = &group.experience
            && experience.asked() > 0
        {
            spread(group, experience).write_to(&mut text);
            facts(record, group, experience).write_to(&mut text);
        }
    }
    text
}

/// `slow: 100 clients over dot, 980 of 1,000 queries answered, p50 5.489 ms, p99 5.489 ms`.
fn headline(group: &GroupRecord) -> String {
    let (counts, all) = (&group.total.counts, &group.total.distributions.latency);
    format!(
        "{}: {} over {}, {} of {} queries answered, p50 {}, p99 {}",
        group.name,
        counted(group.clients, "client"),
        group.scenario.transport,
        count(counts.responses),
        count(counts.offered),
        or_dash(all.percentile(0.5)),
        or_dash(all.percentile(0.99)),
    )
}

/// What is worse the greater it is: of the median client, and of those that fared worse.
fn spread(group: &GroupRecord, experience: &ClientExperience) -> Table<5> {
    let right = Align::Right;
    let mut table = Table::new([Align::Left, right, right, right, right]);
    let title = [
        "each client's",
        "median",
        "worst 1 in 10",
        "1 in 100",
        "worst",
    ];
    table.row(title.map(str::to_owned));
    let mut row = |label: &str, over: &Histogram, words: fn(u64) -> String| {
        let figure = |p| over.percentile(p).map_or_else(|| "-".to_owned(), words);
        let figures = [0.5, 0.9, 0.99, 1.0].map(figure);
        let [median, tenth, hundredth, worst] = figures;
        table.row([label.into(), median, tenth, hundredth, worst]);
    };
    let time = |ns| latency(ns as f64);
    row("p50 latency", &experience.latency.p50, roughly);
    row("p90 latency", &experience.latency.p90, roughly);
    row("p99 latency", &experience.latency.p99, roughly);
    row("longest latency", &experience.latency.max, time);
    row("queries unanswered", &experience.unanswered_ppm, |ppm| {
        share(ppm, PPM)
    });
    if experience.unsuccessful_ppm != experience.unanswered_ppm {
        row("or no useful answer", &experience.unsuccessful_ppm, |ppm| {
            share(ppm, PPM)
        });
    }
    if group.scenario.transport.has_connections() {
        row("connections opened", &experience.connections, count);
        row("mean set-up of them", &experience.set_up_mean, time);
    }
    table
}

/// What does not fit in the columns of the spread.
fn facts(record: &RunRecord, group: &GroupRecord, experience: &ClientExperience) -> Table<2> {
    let mut table = Table::new([Align::Left, Align::Left]);
    let mut row = |label: &str, words: String| table.row([label.into(), words]);
    let rate = |p| {
        let qps = experience.rate_qps(p, record.measured_seconds());
        qps.map_or_else(|| "-".to_owned(), per_second)
    };
    let (least, median, most) = (rate(0.0), rate(0.5), rate(1.0));
    row(
        "queries a second",
        format!("least {least}, median {median}, most {most}"),
    );
    if let Some(fairness) = experience.fairness() {
        let alone = 1.0 / experience.clients() as f64;
        let words = format!(
            "{} (1 if all got as many responses, {} if one got all)",
            decimal(fairness, 3),
            decimal(alone, 3)
        );
        row("fairness", words);
    }
    if let Some(warm) = group.warm_latency()
        && !experience.first_after_idle.is_empty()
    {
        let times = |of: &Histogram| {
            let (p50, p99) = (of.percentile(0.5), of.percentile(0.99));
            format!("p50 {}, p99 {}", or_dash(p50), or_dash(p99))
        };
        let first = &experience.first_after_idle;
        let words = format!(
            "{} (each client's first included), {}; others {}",
            counted(first.count(), "response"),
            times(first),
            times(&warm)
        );
        row("after 1 s idle", words);
    }
    let (clients, asked) = (experience.clients(), experience.asked());
    if asked < clients {
        let words = format!("{} of {}", count(clients - asked), count(clients));
        row("never asked", words);
    }
    if experience.answered() < asked {
        let words = format!(
            "{} of {}",
            count(asked - experience.answered()),
            count(asked)
        );
        row("never answered", words);
    }
    row("worst clients", worst(experience));
    table
}

/// `client 12: p99 ~250 ms, 40 of 41 answered; client 3: ..`.
fn worst(experience: &ClientExperience) -> String {
    let shown = experience.worst.iter().take(WORST_SHOWN_MAX);
    let each = shown.map(|client| {
        format!(
            "client {}: p99 {}, {} of {} answered",
            client.client,
            client.p99_ns.map_or_else(|| "-".to_owned(), roughly),
            count(client.responses),
            count(client.queries)
        )
    });
    each.collect::<Vec<String>>().join("; ")
}

/// A client's own quantile with the two digits that are known of it: `~5.2 ms`.
fn roughly(ns: u64) -> String {
    let size = 10_u64.pow(ns.checked_ilog10().unwrap_or(0).saturating_sub(1));
    let rounded = (ns + size / 2) / size * size;
    let units = [
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let fits = |(scale, _): &&(u64, &str)| rounded >= *scale;
    let (scale, unit) = *units.iter().find(fits).unwrap_or(&(1, "ns"));
    let number = rounded as f64 / scale as f64;
    let places = usize::from(number < 10.0 && scale > 1);
    format!("~{} {unit}", decimal(number, places))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn each_group_has_its_own_clients_and_tells_who_got_nothing() {
        let mut record = example::dot();
        let mut silent = record.groups[0].clone();
        silent.name = "silent".into();
        silent.total = measure::Interval::default();
        silent.total.counts.offered = 7;
        let mut experience = ClientExperience::default();
        for queries in [7, 0] {
            let client = measure::ClientFigures {
                queries,
                ..measure::ClientFigures::default()
            };
            experience.record(&client, 2_000_000_000);
        }
        silent.clients = 2;
        silent.experience = Some(experience);
        record.groups.push(silent);
        let mut unknown = record.groups[0].clone();
        unknown.name = "unknown".into();
        unknown.experience = None;
        record.groups.push(unknown);
        let text = section(&record);
        let first = "  clients: 200 clients over dot, 3,000 of 3,020 queries answered, \
                     p50 5.489 ms, p99 5.489 ms\n  each client's ";
        assert!(text.starts_with(first), "{text}");
        let expected = "
  silent: 2 clients over dot, 0 of 7 queries answered, p50 -, p99 -
  each client's        median  worst 1 in 10  1 in 100  worst
  p50 latency               -              -         -      -
  p90 latency               -              -         -      -
  p99 latency               -              -         -      -
  longest latency           -              -         -      -
  queries unanswered    100 %          100 %     100 %  100 %
  connections opened        0              0         0      0
  mean set-up of them       -              -         -      -
  queries a second  least 0.0, median 0.0, most 3.5
  never asked       1 of 2
  never answered    1 of 1
  worst clients     client 0: p99 -, 0 of 7 answered
  unknown: 200 clients over dot, 3,000 of 3,020 queries answered, p50 5.489 ms, p99 5.489 ms
";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn single_client_is_told_by_the_total() {
        let mut record = example::dot();
        record.scenario.clients = 1;
        assert_eq!(section(&record), "");
    }

    #[test]
    fn quantile_of_one_client_has_two_digits_and_its_unit() {
        let cases = [
            (0, "~0 ns"),
            (850, "~850 ns"),
            (1_234, "~1.2 us"),
            (5_185_175, "~5.2 ms"),
            (9_960_000, "~10 ms"),
            (252_000_000, "~250 ms"),
            (999_000_000, "~1.0 s"),
            (43_400_000_000, "~43 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(roughly(ns), text);
        }
    }
}
