//! The figures of a run by name, for comparisons and conditions.
//!
//! A metric of an [`Interval`] is that of the events in it, so that it can be computed of any part
//! of a run. Percentiles come from merged histograms, as everywhere.

use crate::histogram::width_at;
use crate::interval::Interval;
use crate::notation;
use crate::record::RunRecord;
use crate::statistics::{Events, Range};

mod scope;
mod summary;
mod table;

use scope::Scope;
pub use table::Metric;

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Events.
    Count,
    /// Bytes.
    Octets,
    /// Events a second.
    PerSecond,
    /// A share of a whole, 0 to 1.
    Share,
    /// Nanoseconds.
    Nanoseconds,
    /// Seconds.
    Seconds,
    /// How many times as much as something else.
    Times,
    /// Any other number.
    Number,
}

/// In what times are written where a key names their unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// As in the run record.
    Nanoseconds,
    /// As in CSV of one run.
    Microseconds,
    /// As in tables of several runs.
    Seconds,
}

/// Which direction of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More.
    Higher,
    /// Less.
    Lower,
    /// Neither: it depends on what is wanted.
    Neither,
}

/// What a metric tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// The target and the way to it.
    Target,
    /// What was asked for.
    Load,
    /// This tool and its host.
    Generator,
}

/// Where a metric is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rank {
    /// Also where there is room for a few: in summaries and lists.
    Main,
    /// Where all are.
    Detail,
}

/// A row of the table of metrics.
struct Row {
    name: &'static str,
    key: &'static str,
    unit: Unit,
    rank: Rank,
    about: About,
    better: Better,
    meaning: &'static str,
    value: fn(&Scope<'_>) -> Option<f64>,
    /// At most one.
    needs: &'static [&'static str],
}

const TABLE_HEAD: &str = "\
# Metrics

Made by `throng schema metrics`. The name is that of conditions (`--fail-if`, `--require`), of
`throng history trend` and of comparisons; the key is that of CSV, with `*` for the unit of a time:
`us` in the CSV of one run, `s` in that of several, `ns` in JSON.

name | key | what it is
---|---|---
";

impl Unit {
    /// Its name.
    pub fn words(self) -> &'static str {
        match self {
            Unit::Count => "count",
            Unit::Octets => "octets",
            Unit::PerSecond => "a second",
            Unit::Share => "0 to 1",
            Unit::Nanoseconds => "nanoseconds",
            Unit::Seconds => "seconds",
            Unit::Times => "times",
            Unit::Number => "number",
        }
    }

    /// Where values can lie.
    pub fn range(self) -> Range {
        match self {
            Unit::Share => Range::Share,
            _ => Range::Positive,
        }
    }

    /// True if values are whole numbers.
    pub fn is_whole(self) -> bool {
        matches!(self, Unit::Count | Unit::Octets)
    }
}

impl TimeUnit {
    fn symbol(self) -> &'static str {
        match self {
            TimeUnit::Nanoseconds => "ns",
            TimeUnit::Microseconds => "us",
            TimeUnit::Seconds => "s",
        }
    }

    fn nanoseconds(self) -> f64 {
        match self {
            TimeUnit::Nanoseconds => 1.0,
            TimeUnit::Microseconds => 1e3,
            TimeUnit::Seconds => 1e9,
        }
    }
}

impl Metric {
    fn row(self) -> &'static Row {
        &table::ROWS[self as usize]
    }

    /// Those of summaries and lists.
    pub fn main() -> impl Iterator<Item = Metric> {
        let all = Metric::ALL.iter().copied();
        all.filter(|metric| metric.row().rank == Rank::Main)
    }

    /// Its name, as in conditions and records.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Its name with its unit, as a key of JSON and CSV, with times in `unit`.
    pub fn key(self, unit: TimeUnit) -> String {
        self.row().key.replace("{}", unit.symbol())
    }

    /// A value of it as it stands under that key.
    pub fn scaled(self, value: f64, unit: TimeUnit) -> f64 {
        match self.unit() {
            Unit::Nanoseconds => value / unit.nanoseconds(),
            _ => value,
        }
    }

    /// What it is.
    pub fn meaning(self) -> &'static str {
        self.row().meaning
    }

    /// The metric of that name.
    pub fn named(name: &str) -> Option<Metric> {
        let mut all = Metric::ALL.iter().copied();
        all.find(|metric| metric.name() == name)
    }

    /// The names of the main ones, as a list for people, and where the others are.
    pub fn names() -> String {
        let main: Vec<&str> = Metric::main().map(Metric::name).collect();
        format!(
            "{}; with --timestamps also generator.p99, wire.p99, reader.p99; `throng schema \
             metrics` lists all {}",
            main.join(", "),
            Metric::ALL.len()
        )
    }

    /// All of them as a table in Markdown.
    pub fn table() -> String {
        let mut text = String::from(TABLE_HEAD);
        for metric in Metric::ALL {
            let needs = metric.needs();
            let needs = needs.map_or_else(String::new, |what| format!(" (takes {what})"));
            text.push_str(&format!(
                "`{}` | `{}` | {}{needs}\n",
                metric.name(),
                metric.row().key.replace("{}", "*"),
                metric.meaning()
            ));
        }
        text
    }

    /// What a run needs for it to be measured, where that is not a matter of course.
    pub(crate) fn needs(self) -> Option<&'static str> {
        self.row().needs.first().copied()
    }

    /// What it is measured in.
    pub fn unit(self) -> Unit {
        self.row().unit
    }

    /// Which direction is better.
    pub fn better(self) -> Better {
        self.row().better
    }

    /// True if more of it is better.
    pub fn is_better_higher(self) -> bool {
        self.better() == Better::Higher
    }

    /// True if it tells of the target, and not of the load or the generator.
    pub fn is_of_target(self) -> bool {
        self.row().about == About::Target
    }

    /// The figure of a whole run; none if it was not measured.
    pub fn of(self, record: &RunRecord) -> Option<f64> {
        (self.row().value)(&Scope::run(record))
    }

    /// True of a percentile, which is the middle of a bucket of its histogram.
    fn is_percentile(self) -> bool {
        ["_p50", "_p9"].iter().any(|it| self.row().key.contains(it))
    }

    /// True if the slowest few of what was measured decide it or move it, so that it differs more
    /// than others between runs of the same thing.
    pub fn is_of_tail(self) -> bool {
        let of_tails = ["_p9", "_max_", "_mean_{}", "_stddev_"];
        self.unit() == Unit::Nanoseconds && of_tails.iter().any(|it| self.row().key.contains(it))
    }

    /// The width of the bucket of its histogram that `value` lies in, as a share of the value; 0
    /// where it comes from none.
    pub fn step(self, value: f64) -> f64 {
        match self.is_percentile() && value >= 1.0 {
            true => width_at(value as u64) as f64 / value,
            false => 0.0,
        }
    }

    /// The events that a share of a whole run counts; none of any other figure.
    pub fn events(self, record: &RunRecord) -> Option<Events> {
        let counts = &record.total.counts;
        let some = match self {
            Metric::Loss => counts.lost(),
            Metric::Answered => counts.responses,
            _ => return None,
        };
        Some(Events {
            some,
            all: counts.offered,
        })
    }

    /// The figure of an interval of a run; none if nothing of it happened there. Losses are a share
    /// of the queries that ended in it.
    pub fn of_part(self, record: &RunRecord, interval: &Interval) -> Option<f64> {
        (self.row().value)(&Scope::part(record, interval))
    }

    /// The same where the scenario is not known, which a few figures need.
    pub fn of_interval(self, interval: &Interval, goodput_rcodes: &[u16]) -> Option<f64> {
        (self.row().value)(&Scope::interval_of(interval, goodput_rcodes))
    }

    /// A value of it for people, with its unit.
    pub fn show(self, value: f64) -> String {
        match self.unit() {
            Unit::Count => notation::decimal(value, 0),
            Unit::Octets => format!("{} bytes", notation::decimal(value, 0)),
            Unit::PerSecond => notation::rate(value),
            Unit::Share => notation::fraction(value),
            Unit::Nanoseconds => notation::latency(value),
            Unit::Seconds => notation::latency(value * 1e9),
            Unit::Times => format!("{} times", notation::decimal(value, 2)),
            Unit::Number => notation::decimal(value, 1),
        }
    }

    /// A change of it for people: of a share in points of percent, of all else in percent of what
    /// it was.
    pub fn show_change(self, change: f64) -> String {
        let (places, unit) = match self.unit() {
            Unit::Share => (2, "points"),
            _ => (1, "%"),
        };
        let number = format!("{:+.places$}", 100.0 * change);
        // No sign where the digits shown are zeroes.
        let digits = number.trim_start_matches(['+', '-']);
        match digits.chars().all(|digit| matches!(digit, '0' | '.')) {
            true => format!("{digits} {unit}"),
            false => format!("{number} {unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::example;

    #[test]
    fn names_are_those_of_the_record_and_lead_back() {
        for &metric in Metric::ALL {
            assert_eq!(Metric::named(metric.name()), Some(metric));
            let json = serde_json::to_string(&metric).expect("serializes");
            assert_eq!(json, format!("\"{}\"", metric.name()));
            assert_eq!(serde_json::from_str::<Metric>(&json).ok(), Some(metric));
        }
        for unknown in ["p98", "wire", "wire.p98", "network.p99", "p99.wire"] {
            assert_eq!(Metric::named(unknown), None);
            let json = format!("\"{unknown}\"");
            assert!(serde_json::from_str::<Metric>(&json).is_err());
        }
    }

    #[test]
    fn figures_of_a_run_and_of_its_parts_agree_where_they_must() {
        let intervals = (0..4).map(|each| {
            let mut interval = example::interval(each, &[(1_000_000, 500)]);
            interval.distributions.path.network.record_many(7_000, 500);
            interval
        });
        let record = example::record(intervals.collect());
        let rcodes = &record.scenario.goodput_rcodes;
        for metric in Metric::ALL {
            let whole = metric.of(&record);
            if let Some(part) = metric.of_part(&record, &record.total) {
                assert_eq!(whole, Some(part), "{metric:?}");
            }
            if let Some(part) = metric.of_interval(&record.total, rcodes) {
                assert_eq!(whole, Some(part), "{metric:?}");
            }
        }
        assert_eq!(Metric::Qps.of(&record), Some(500.0));
        assert_eq!(Metric::Cpu.of(&record), Some(1e6));
        assert_eq!(Metric::Connect.of(&record), None);
        let named = |name| Metric::named(name).expect("is one").of(&record);
        assert_eq!(named("wire.max"), Some(7_000.0));
        assert_eq!(named("wire.mean"), Some(7_000.0));
        assert_eq!(named("reader.p99"), None);
        assert_eq!(Metric::Max.of(&example::record(Vec::new())), None);
    }

    #[test]
    fn drift_compares_the_last_quarter_with_the_first() {
        let latencies_ms = [7, 5, 3, 3, 3, 3, 14, 14];
        let intervals = latencies_ms.iter().enumerate().map(|(each, ms)| {
            let answered = [(ms * 1_000_000, 500 + 100 * each as u64)];
            example::interval(each as u64, &answered)
        });
        let record = example::record(intervals.collect());
        let drift = Metric::DriftQps.of(&record).expect("has quarters");
        assert!((drift - 1_150.0 / 550.0).abs() < 1e-9, "{drift}");
        let drift = Metric::DriftP99.of(&record).expect("has quarters");
        assert!((drift - 2.0).abs() < 0.02, "{drift}");
        assert_eq!(Metric::DriftP99.show(drift), "2.00 times");
        let record = example::record(vec![example::interval(0, &[(1_000_000, 10)])]);
        assert_eq!(Metric::DriftP99.of(&record), None);
    }

    #[test]
    fn connections_set_up_before_the_run_count_for_it_and_not_for_its_parts() {
        let mut record = example::record(vec![example::interval(0, &[(1_000_000, 10)])]);
        let before = &mut record.warmup.counts.connections;
        (before.attempted, before.became_usable) = (5, 4);
        (before.handshakes.full, before.failed.refused) = (4, 1);
        let within = &mut record.total.counts.connections;
        (
            within.attempted,
            within.became_usable,
            within.handshakes.full,
        ) = (2, 2, 2);
        for (name, of_run, of_part) in [
            ("connections_attempted", 7.0, 2.0),
            ("connections_opened", 6.0, 2.0),
            ("connections_failed", 1.0, 0.0),
            ("handshakes_full", 6.0, 2.0),
        ] {
            let metric = Metric::named(name).expect("is one");
            assert_eq!(metric.of(&record), Some(of_run), "{name}");
            let part = metric.of_part(&record, &record.total);
            assert_eq!(part, Some(of_part), "{name}");
        }
    }

    #[test]
    fn names_and_keys_are_apart_and_keys_of_times_say_their_unit() {
        let names = Metric::ALL.iter().map(|it| it.name().to_owned());
        let keys = Metric::ALL.iter().map(|it| it.key(TimeUnit::Microseconds));
        for all in [names.collect::<BTreeSet<_>>(), keys.collect()] {
            assert_eq!(all.len(), Metric::ALL.len());
        }
        for metric in Metric::ALL {
            assert!(!metric.meaning().is_empty(), "{metric:?}");
            let is_time = metric.unit() == Unit::Nanoseconds;
            assert_eq!(metric.row().key.contains("{}"), is_time, "{metric:?}");
            let is_plain = |each: char| each.is_ascii_lowercase() || "0123456789_.".contains(each);
            assert!(metric.name().chars().all(is_plain), "{metric:?}");
        }
    }

    #[test]
    fn values_and_changes_read_with_their_units() {
        assert_eq!(Metric::Timeouts.show(1_200.0), "1,200");
        assert_eq!(Metric::CpuTime.show(1.5), "1.500 s");
        assert_eq!(Metric::Qps.show(15_324.6), "15,325 qps");
        assert_eq!(Metric::P99.show(6_497_400.0), "6.497 ms");
        assert_eq!(Metric::Loss.show(0.000_01), "<0.01 %");
        assert_eq!(Metric::P99.show_change(0.0981), "+9.8 %");
        assert_eq!(Metric::Qps.show_change(-0.0001), "0.0 %");
        assert_eq!(Metric::Loss.show_change(0.0012), "+0.12 points");
    }
}
