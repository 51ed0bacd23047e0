//! Charts of the record's timeline: what was due when, and whether it was answered.
//!
//! Intervals count a loss when its timeout lands, which may be after the load, and a query when
//! the generator came to it. The timeline has both at the instant in which the query was due.

use measure::timeline::Point as Step;

use super::*;

/// A step shorter than this holds too few queries for a rate.
const STEP_NS_MIN: u64 = 100_000_000;

/// A named rate of a step.
pub(super) type Rate = (&'static str, fn(&Step) -> f64);

/// A step with its ends.
struct Row {
    start_ns: u64,
    end_ns: u64,
    step: Step,
}

impl Timeline<'_> {
    /// The timeline in at most `most` steps; none if the record has none.
    fn steps(&self, most: usize) -> Option<Vec<Row>> {
        let timeline = self.record.timeline.as_ref()?;
        let window_ns = self.record.measured_ns;
        let most = (most as u64).min(window_ns / STEP_NS_MIN).max(1);
        let mut start_ns = 0;
        let steps = timeline.points(window_ns, most as usize).into_iter();
        let rows = steps.map(|step| {
            let end_ns = start_ns + 2 * step.at_ns.saturating_sub(start_ns);
            let row = Row {
                start_ns,
                end_ns,
                step,
            };
            start_ns = end_ns;
            row
        });
        Some(rows.collect())
    }

    /// A chart of rates in steps; none if the record has no timeline.
    pub(super) fn stepwise(&self, (id, title): (&str, &str), rates: &[Rate]) -> Option<Chart> {
        let steps = self.steps(POINTS_MAX)?;
        let y = Axis::new("queries a second", Scale::FromZero, Unit::Number);
        let words: fn(f64) -> String = per_second;
        let mut chart = self.chart((id, title), &[], y, words);
        let series = rates.iter().enumerate().map(|(look, (name, rate))| Series {
            look,
            name: (*name).to_owned(),
            form: Form::Line,
            points: steps
                .iter()
                .map(|it| Point::new(self.time(it.step.at_ns), rate(&it.step)))
                .collect(),
        });
        chart.series = series.collect();
        chart.notes.clear();
        let columns = rates.iter().map(|(name, _)| Column::figures(*name));
        chart.sheet.columns.extend(columns);
        chart.sheet.notes.clear();
        let time = |ns: u64| decimal(ns as f64 / 1e9, 1);
        let rows = self.steps(ROWS_MAX)?;
        let rows = rows.iter().map(|it| {
            let ends = [time(it.start_ns), time(it.end_ns)];
            let values = rates.iter().map(|(_, rate)| words(rate(&it.step)));
            ends.into_iter().chain(values).collect()
        });
        chart.sheet.rows = rows.collect();
        Some(chart)
    }
}
