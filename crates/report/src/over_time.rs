//! Charts of one run over time.
//!
//! A long run has more intervals than a chart has room for. Then successive intervals are put
//! together: the line shows what they measured together (percentiles from their merged
//! histograms), and a band from the least to the greatest of them keeps every excursion visible.

use measure::notation::{count, counted, decimal, latency, per_second, percent, rate, seconds};
use measure::{Arrival, Interval, RunRecord, SteadyState};

use self::steps::Rate;
use crate::chart::{Axis, Chart, Form, Mark, Point, Scale, Series, Unit};
use crate::document::{Column, Sheet};
use crate::events;

mod steps;
#[cfg(test)]
mod tests;

/// Points of a line; a drawing is hardly more dots wide.
const POINTS_MAX: usize = 360;
/// Rows of a chart's table.
const ROWS_MAX: usize = 30;
/// An interval shorter than this share of the usual length goes with the one before it: its rates
/// would be those of a few responses.
const STUB: f64 = 0.5;

/// Successive intervals together.
pub(crate) struct Bin<'a> {
    /// Each of them.
    pub(crate) each: &'a [Interval],
    /// All of them.
    pub(crate) together: Interval,
}

/// The intervals of the window in at most `most` bins of as many intervals each.
pub(crate) fn bins(record: &RunRecord, most: usize) -> Vec<Bin<'_>> {
    let within = record.intervals_in_window().count();
    let intervals = &record.intervals[..within.min(record.intervals.len())];
    let each = intervals.len().div_ceil(most.max(1)).max(1);
    let mut starts: Vec<usize> = (0..intervals.len()).step_by(each).collect();
    let usual_ns = record.interval_ns().saturating_mul(each as u64) as f64;
    if let [.., _, last] = starts[..] {
        let length_ns: u64 = intervals[last..].iter().map(Interval::length_ns).sum();
        if (length_ns as f64) < STUB * usual_ns {
            starts.pop();
        }
    }
    let ends = starts.iter().skip(1).copied().chain([intervals.len()]);
    let ranges = starts.iter().copied().zip(ends);
    ranges
        .filter(|(start, end)| start < end)
        .map(|(start, end)| Bin {
            each: &intervals[start..end],
            together: Interval::total(&intervals[start..end]),
        })
        .collect()
}

/// Where a loss is shown.
const BY_DUE: &str = "lost: where the queries were due, not when their loss became known";
/// The same of records without a timeline.
const BY_TIMEOUT: &str = "lost: when it became known, because this record does not say when they \
    were due; after the load it is not shown";

/// A figure of an interval; none where it has none.
type Metric = fn(&Interval) -> Option<f64>;

/// A named figure.
type Named = (&'static str, Metric);

/// Everything that the charts of a run have in common.
pub(crate) struct Timeline<'a> {
    record: &'a RunRecord,
    /// What the ids of its charts begin with: of several runs each has its own.
    prefix: String,
    bins: Vec<Bin<'a>>,
    rows: Vec<Bin<'a>>,
    in_minutes: bool,
    /// When the beginning was over, if it was different.
    settled_ns: Option<u64>,
}

impl<'a> Timeline<'a> {
    pub(crate) fn new(record: &'a RunRecord, prefix: &str) -> Self {
        Timeline {
            record,
            prefix: prefix.to_owned(),
            bins: bins(record, POINTS_MAX),
            rows: bins(record, ROWS_MAX),
            in_minutes: record.measured_ns >= 600_000_000_000,
            settled_ns: SteadyState::in_record(record).and_then(|course| course.settled_ns()),
        }
    }

    /// A chart's place in the document.
    pub(crate) fn id(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// All charts for which there are figures, those of connections left out.
    pub(crate) fn queries(&self) -> Vec<Chart> {
        let all = [
            Some(self.rates()),
            self.offered(),
            self.losses(),
            self.latencies(),
        ];
        let all = all.into_iter().flatten();
        all.filter(Chart::is_worthwhile).collect()
    }

    /// Connections that were open and active, and their outcomes.
    pub(crate) fn connections(&self) -> Vec<Chart> {
        let all = [self.open_connections(), self.changes()];
        let all = all.into_iter().flatten();
        all.filter(Chart::is_worthwhile).collect()
    }

    /// Sent, completed and lost.
    fn rates(&self) -> Chart {
        let names = ("rates", "Queries sent, completed and lost");
        let rates: [Rate; 3] = [
            ("sent", |it| it.sent_qps),
            ("completed", |it| it.responses_qps),
            ("lost", |it| it.lost_qps),
        ];
        let mut chart = match self.stepwise(names, &rates) {
            Some(mut chart) => {
                chart.notes.push(BY_DUE.to_owned());
                chart
            }
            None => {
                let mut chart = self.rates_by_interval(names);
                chart.notes.push(BY_TIMEOUT.to_owned());
                chart
            }
        };
        let counts = &self.record.total.counts;
        chart.description = format!(
            "{} sent, {} completed and {} lost over {}.",
            count(counts.sent),
            count(counts.responses),
            count(counts.lost()),
            seconds(self.record.measured_ns)
        );
        chart.notes.extend(self.after_the_load());
        chart.notes.extend(events::lines(self.record));
        chart
    }

    /// The same of a record without a timeline.
    fn rates_by_interval(&self, names: (&str, &str)) -> Chart {
        let metrics: [Named; 3] = [
            ("sent", |it| Some(it.per_second(it.counts.sent))),
            ("completed", |it| Some(it.per_second(it.counts.responses))),
            ("lost", |it| Some(it.per_second(it.counts.lost()))),
        ];
        let words: fn(f64) -> String = per_second;
        let y = Axis::new("queries a second", Scale::FromZero, Unit::Number);
        self.chart(names, &metrics, y, words)
    }

    /// What came after the window, which the charts do not show.
    fn after_the_load(&self) -> Option<String> {
        let within = self.record.intervals_in_window().count();
        let after = Interval::total(self.record.intervals.get(within..)?);
        let counts = &after.counts;
        (counts.responses + counts.lost() > 0).then(|| {
            format!(
                "after the load ended: {} completed and {} lost of the queries in flight then",
                count(counts.responses),
                count(counts.lost())
            )
        })
    }

    /// What was due and what was answered, where the load does not wait for responses.
    fn offered(&self) -> Option<Chart> {
        if matches!(self.record.scenario.arrival, Arrival::Closed { .. }) {
            return None;
        }
        let metrics: [Named; 2] = [
            ("offered", |it| Some(it.per_second(it.counts.offered))),
            ("achieved", |it| Some(it.per_second(it.counts.responses))),
        ];
        let rates: [Rate; 2] = [
            ("offered", |it| it.due_qps),
            ("achieved", |it| it.responses_qps),
        ];
        let names = ("offered", "Offered and achieved rate");
        let mut chart = self.stepwise(names, &rates).unwrap_or_else(|| {
            let y = Axis::new("queries a second", Scale::FromZero, Unit::Number);
            let words: fn(f64) -> String = per_second;
            self.chart(names, &metrics, y, words)
        });
        chart.description = format!(
            "{} were offered and {} achieved.",
            rate(self.record.offered_qps()),
            rate(self.record.achieved_qps())
        );
        Some(chart)
    }

    /// Losses on a scale of their own, where there are any: next to the rate they would not show.
    fn losses(&self) -> Option<Chart> {
        let counts = &self.record.total.counts;
        if counts.lost() == 0 {
            return None;
        }
        let metrics: [Named; 4] = [
            ("timed out", |it| Some(it.per_second(it.counts.timeouts))),
            ("connection lost", |it| {
                Some(it.per_second(it.counts.connection_losses))
            }),
            ("no DNS message", |it| {
                Some(it.per_second(it.counts.exchange_failures.total()))
            }),
            ("not sent", |it| {
                Some(it.per_second(it.counts.not_sent.total()))
            }),
        ];
        let total = &self.record.total;
        let seen = metrics
            .into_iter()
            .filter(|(_, metric)| metric(total) > Some(0.0));
        let metrics: Vec<Named> = seen.collect();
        let y = Axis::new("lost queries a second", Scale::FromZero, Unit::Number);
        let words: fn(f64) -> String = per_second;
        let lost: [Rate; 1] = [("lost", |it| it.lost_qps)];
        let mut chart = match self.stepwise(("losses", "Lost queries"), &lost) {
            Some(chart) => Chart {
                y,
                notes: vec![BY_DUE.to_owned()],
                ..chart
            },
            None => {
                let names = ("losses", "Lost queries by cause");
                let mut chart = self.chart(names, &metrics, y, words);
                chart.notes.push(BY_TIMEOUT.to_owned());
                chart
            }
        };
        let causes = counts.ends().filter(|(end, _)| end.is_lost);
        let causes: Vec<String> = causes
            .map(|(end, number)| format!("{} {}", count(number), end.words))
            .collect();
        let lost = counted(counts.lost(), "query");
        chart.description = format!("{lost} lost: {}.", causes.join(", "));
        Some(chart)
    }

    /// p50, p95 and p99.
    fn latencies(&self) -> Option<Chart> {
        let metrics: [Named; 3] = [
            ("p50", |it| p(it, 0.5)),
            ("p95", |it| p(it, 0.95)),
            ("p99", |it| p(it, 0.99)),
        ];
        let whole = &self.record.total.distributions.latency;
        let (least, greatest) = (whole.percentile(0.5)?, whole.percentile(0.99)?);
        let (scale, label) = match greatest > 30 * least.max(1) {
            true => (Scale::Log, "latency (log scale)"),
            false => (Scale::FromZero, "latency"),
        };
        let y = Axis::new(label, scale, Unit::Nanoseconds);
        let mut chart = self.chart(
            ("latency", "Latency percentiles over time"),
            &metrics,
            y,
            latency,
        );
        chart.description = format!(
            "Over the whole run p50 was {}, p95 {} and p99 {}.",
            latency(least as f64),
            latency(whole.percentile(0.95)? as f64),
            latency(greatest as f64)
        );
        Some(chart)
    }

    fn open_connections(&self) -> Option<Chart> {
        let total = &self.record.total;
        if total.most_open() == 0 {
            return None;
        }
        let metrics: [Named; 2] = [
            ("open", |it| Some(it.most_open() as f64)),
            ("active", |it| Some(it.connections_active as f64)),
        ];
        let y = Axis::new("connections", Scale::FromZero, Unit::Number);
        let words: fn(f64) -> String = |number| count(number.round() as u64);
        let names = ("connections", "Connections open and active");
        let mut chart = self.chart(names, &metrics, y, words);
        chart.description = format!(
            "At most {} open at once and {} active in an interval, of {}.",
            count(total.most_open()),
            count(total.connections_active),
            counted(self.record.scenario.clients, "client")
        );
        let open = match total.connections_open_max {
            Some(_) => "the most that were usable at one time of an interval",
            None => "usable at the end of an interval",
        };
        chart
            .notes
            .push(format!("open: {open}; active: carried a query in it"));
        Some(chart)
    }

    /// Connections opened, resumed, closed and failed.
    fn changes(&self) -> Option<Chart> {
        let opened: Metric = match self.record.scenario.has_handshakes() {
            true => |it| Some(it.per_second(it.counts.connections.usable(true))),
            false => |it| Some(it.per_second(it.counts.connections.usable(false))),
        };
        let metrics: [Named; 4] = [
            ("opened", opened),
            ("of these resumed", |it| {
                Some(it.per_second(it.counts.connections.handshakes.resumed))
            }),
            ("closed", |it| {
                Some(it.per_second(it.counts.connections.ended()))
            }),
            ("failed", |it| {
                Some(it.per_second(it.counts.connections.failed.total()))
            }),
        ];
        let within = |metric: &Metric| {
            let bins = self.bins.iter();
            bins.filter_map(|bin| metric(&bin.together))
                .any(|rate| rate > 0.0)
        };
        let seen: Vec<Named> = metrics.into_iter().filter(|it| within(&it.1)).collect();
        if seen.is_empty() {
            return None;
        }
        let y = Axis::new("connections a second", Scale::FromZero, Unit::Number);
        let words: fn(f64) -> String = per_second;
        let names = ("changes", "Connections opened and closed");
        let mut chart = self.chart(names, &seen, y, words);
        let connections = &self.record.total.counts.connections;
        chart.description = format!(
            "{} opened, {} of them resumed; {} closed, {} failed.",
            count(self.record.connections_opened()),
            count(connections.handshakes.resumed),
            count(connections.ended()),
            count(connections.failed.total())
        );
        Some(chart)
    }

    /// How busy the generator was; its own limit belongs beside every rate.
    pub(crate) fn generator(&self) -> Option<Chart> {
        let workers = self.record.workers.len().max(1) as f64;
        if self.record.total.cpu_ns == 0 {
            return None;
        }
        let metrics: [Named; 1] = [("CPU of the generator", |it| {
            let length_ns = it.length_ns().max(1);
            Some(100.0 * it.cpu_ns as f64 / length_ns as f64)
        })];
        let y = Axis::new("CPU, % of one core", Scale::FromZero, Unit::Percent);
        let words: fn(f64) -> String = |share| percent(share / 100.0);
        let names = ("cpu", "CPU time of the generator");
        let mut chart = self.chart(names, &metrics, y, words);
        let busiest = self.record.workers.iter().map(|it| it.busy_share());
        chart.description = format!(
            "{} on {}; the busiest used {} of its CPU.",
            counted(self.record.workers.len() as u64, "worker"),
            counted(workers as u64, "core"),
            percent(busiest.fold(0.0, f64::max))
        );
        Some(chart).filter(Chart::is_worthwhile)
    }

    /// A chart of `metrics` with its table.
    fn chart(
        &self,
        (id, title): (&str, &str),
        metrics: &[Named],
        y: Axis,
        words: fn(f64) -> String,
    ) -> Chart {
        let id = self.id(id);
        let series = metrics
            .iter()
            .enumerate()
            .map(|(look, (name, metric))| Series {
                look,
                name: (*name).to_owned(),
                form: Form::Line,
                points: self
                    .bins
                    .iter()
                    .map(|bin| self.point(bin, *metric))
                    .collect(),
            });
        let mut notes = Vec::new();
        let each = self.bins.first().map_or(1, |bin| bin.each.len());
        if each > 1 {
            notes.push(format!(
                "each point is {} together; the band goes from the least to the greatest of them",
                counted(each as u64, "interval")
            ));
        }
        Chart {
            sheet: self.sheet(&id, metrics, words),
            id,
            title: title.to_owned(),
            description: String::new(),
            x: self.time_axis(),
            y,
            series: series.collect(),
            marks: self.marks(),
            notes,
        }
    }

    /// The axis that all charts of the run have; with the server's beside them it is the whole run.
    pub(crate) fn time_axis(&self) -> Axis {
        let unit = if self.in_minutes { "min" } else { "s" };
        let whole = (0.0, self.time(self.record.measured_ns));
        Axis {
            ends: (!self.record.observations.is_empty()).then_some(whole),
            is_time: true,
            ..Axis::new(format!("time, {unit}"), Scale::Even, Unit::Number)
        }
    }

    fn marks(&self) -> Vec<Mark> {
        let resets = self
            .record
            .groups
            .iter()
            .flat_map(|it| &it.scenario.presence.resets);
        let warmup_ns = self.record.phases.warmup_ns;
        let of_reset = |at_ns: u64| Mark {
            x: self.time(at_ns.saturating_sub(warmup_ns)),
            name: "reset".into(),
        };
        let marks = resets.map(|reset| of_reset(reset.after.as_nanos() as u64));
        let settled = self.settled_ns.map(|at_ns| Mark {
            x: self.time(at_ns),
            name: "settled".into(),
        });
        let done = self.record.events.iter().map(|event| Mark {
            x: self.time(event.began_ns),
            name: event.name.clone(),
        });
        marks.chain(settled).chain(done).collect()
    }

    pub(crate) fn time(&self, ns: u64) -> f64 {
        let seconds = ns as f64 / 1e9;
        if self.in_minutes {
            seconds / 60.0
        } else {
            seconds
        }
    }

    /// A bin in the middle of its time.
    fn point(&self, bin: &Bin<'_>, metric: Metric) -> Point {
        let values = bin.each.iter().filter_map(metric);
        let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
            let (low, high) = ends.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        });
        let together = &bin.together;
        Point {
            x: self.time(together.start_ns.midpoint(together.end_ns)),
            x_end: None,
            y: metric(together),
            band: ends.filter(|_| bin.each.len() > 1),
        }
    }

    fn sheet(&self, id: &str, metrics: &[Named], words: fn(f64) -> String) -> Sheet {
        let mut columns = vec![Column::figures("from, s"), Column::figures("to, s")];
        columns.extend(metrics.iter().map(|(name, _)| Column::figures(*name)));
        let mut sheet = Sheet::new(&format!("{id}-figures"), "", columns);
        for bin in &self.rows {
            let time = |ns: u64| decimal(ns as f64 / 1e9, 1);
            let mut row = vec![time(bin.together.start_ns), time(bin.together.end_ns)];
            let values = metrics.iter().map(|(_, metric)| metric(&bin.together));
            row.extend(values.map(|value| value.map_or_else(|| "-".to_owned(), words)));
            sheet.rows.push(row);
        }
        let each = self.rows.first().map_or(1, |bin| bin.each.len());
        if each > 1 {
            sheet.notes.push(format!(
                "each row is {} together; `throng report --format csv` has every one",
                counted(each as u64, "interval")
            ));
        }
        sheet
    }
}

fn p(interval: &Interval, share: f64) -> Option<f64> {
    let latency = &interval.distributions.latency;
    latency.percentile(share).map(|ns| ns as f64)
}
