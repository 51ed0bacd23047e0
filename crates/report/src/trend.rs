//! A figure of many runs over time, as parts of a page: a chart with a line for each group of runs,
//! and a table of the groups.

use jiff::Timestamp;
use measure::metric::{Metric, Unit as MetricUnit};
use measure::notation::counted;
use measure::statistics::median;

use crate::chart::{self, Axis, Chart, Form, Point, SERIES_MAX, Scale, Series, Unit};
use crate::document::{Column, Sheet};
use crate::html;

/// What stands for the value that a group's runs do not have.
const NO_VALUE: &str = "(none)";

/// The figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// When the run started, RFC 3339.
    pub started: String,
    /// The group that it belongs to.
    pub group: String,
    /// The figure.
    pub value: f64,
}

/// A chart as parts of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrendChart {
    /// What its lines look like.
    pub legend: String,
    /// The drawing, and what it shows in words.
    pub drawing: String,
    /// The groups with their medians.
    pub table: String,
}

/// The readings of one group.
struct Group<'a> {
    name: &'a str,
    readings: Vec<(f64, f64)>,
}

/// A unit of the time axis, with the seconds that it has and the least span that it is for.
const TIME_UNITS: [(&str, f64, f64); 4] = [
    ("days", 86_400.0, 172_800.0),
    ("hours", 3_600.0, 7_200.0),
    ("minutes", 60.0, 120.0),
    ("seconds", 1.0, 0.0),
];

/// Draws `metric` of runs that are grouped by `by`; the earliest reading is the first.
pub fn chart(metric: Metric, by: &str, readings: &[Reading]) -> TrendChart {
    let times: Vec<Option<f64>> = readings.iter().map(seconds_of).collect();
    let known = || times.iter().copied().flatten();
    let (first, last) = known().fold((f64::INFINITY, f64::NEG_INFINITY), |ends, at| {
        (ends.0.min(at), ends.1.max(at))
    });
    let span = last - first;
    let unit = TIME_UNITS.iter().find(|(_, _, least)| span >= *least);
    let (unit, seconds, _) = unit.unwrap_or(&TIME_UNITS[3]);
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (reading, at) in readings.iter().zip(&times) {
        let x = at.map_or(f64::NAN, |at| (at - first) / seconds);
        let known = groups.iter().position(|it| it.name == reading.group);
        let index = known.unwrap_or_else(|| {
            groups.push(Group {
                name: &reading.group,
                readings: Vec::new(),
            });
            groups.len() - 1
        });
        groups[index].readings.push((x, reading.value));
    }
    let start = readings.first().map_or("", |it| it.started.as_str());
    let start = start.get(..16).unwrap_or(start).replace('T', " ");
    let mut x = Axis::new(
        format!("{unit} since {start} UTC"),
        Scale::Even,
        Unit::Number,
    );
    // Runs of one instant, as simulated ones are, have no span.
    x.ends = (span <= 0.0).then_some((0.0, 1.0));
    let chart = outline(metric, by, (x, &groups));
    let (mut legend, mut table) = (String::new(), String::new());
    html::legend(&mut legend, &chart);
    html::rows(&mut table, &chart.sheet, None);
    let mut drawing = match known().count() {
        0 | 1 => String::new(),
        _ => chart::draw(&chart),
    };
    for note in &chart.notes {
        drawing.push_str(&format!("<p class=\"note\">{}</p>\n", html::escape(note)));
    }
    TrendChart {
        legend,
        drawing,
        table,
    }
}

/// None of what is not an instant.
fn seconds_of(reading: &Reading) -> Option<f64> {
    let at: Timestamp = reading.started.parse().ok()?;
    Some(at.as_millisecond() as f64 / 1e3)
}

fn outline(metric: Metric, by: &str, (x, groups): (Axis, &[Group<'_>])) -> Chart {
    let runs: usize = groups.iter().map(|it| it.readings.len()).sum();
    let title = format!("{} over time", metric.name());
    let shown = &groups[groups.len().saturating_sub(SERIES_MAX)..];
    let mut notes = match runs {
        0 => vec!["No run that matches has this metric.".to_owned()],
        1 => vec!["Drawn from the second run on.".to_owned()],
        _ => vec![format!(
            "Each marker is a run; each line is a value of {by}."
        )],
    };
    if shown.len() < groups.len() {
        notes.push(format!(
            "The chart shows the newest {} of {}; the tables have all.",
            shown.len(),
            counted(groups.len() as u64, "group")
        ));
    }
    let series = shown.iter().enumerate().map(|(look, group)| Series {
        name: name_of(group).to_owned(),
        form: Form::Marked,
        look,
        points: points(metric, group),
    });
    Chart {
        id: "trend".to_owned(),
        description: format!(
            "{} of {}, by {by}: {}.",
            metric.name(),
            counted(runs as u64, "run"),
            counted(groups.len() as u64, "group")
        ),
        x,
        y: axis(metric),
        series: series.collect(),
        marks: Vec::new(),
        sheet: sheet(metric, by, (&title, groups)),
        title,
        notes,
    }
}

fn points(metric: Metric, group: &Group<'_>) -> Vec<Point> {
    let share = |value: f64| match metric.unit() {
        MetricUnit::Share => 100.0 * value,
        MetricUnit::Seconds => 1e9 * value,
        _ => value,
    };
    let points = group.readings.iter();
    points.map(|(x, y)| Point::new(*x, share(*y))).collect()
}

fn axis(metric: Metric) -> Axis {
    let (unit, words) = match metric.unit() {
        MetricUnit::Share => (Unit::Percent, String::new()),
        MetricUnit::Nanoseconds | MetricUnit::Seconds => (Unit::Nanoseconds, String::new()),
        MetricUnit::PerSecond => (Unit::Number, " (per second)".to_owned()),
        MetricUnit::Octets => (Unit::Number, " (bytes)".to_owned()),
        MetricUnit::Count | MetricUnit::Times | MetricUnit::Number => (Unit::Number, String::new()),
    };
    Axis::new(format!("{}{words}", metric.name()), Scale::FromZero, unit)
}

fn name_of<'a>(group: &Group<'a>) -> &'a str {
    match group.name {
        "" => NO_VALUE,
        name => name,
    }
}

/// The groups, each with what its runs have.
fn sheet(metric: Metric, by: &str, (title, groups): (&str, &[Group<'_>])) -> Sheet {
    let mut columns = vec![Column::words(by)];
    columns.extend(["runs", "median", "least", "most", "newest"].map(Column::figures));
    let mut sheet = Sheet::new("trend-groups", title, columns);
    for group in groups {
        let values: Vec<f64> = group.readings.iter().map(|(_, value)| *value).collect();
        let least = values.iter().copied().reduce(f64::min);
        let most = values.iter().copied().reduce(f64::max);
        let shown = [median(&values), least, most, values.last().copied()];
        let shown = shown.map(|it| it.map_or_else(|| "-".to_owned(), |it| metric.show(it)));
        let mut row = vec![name_of(group).to_owned(), values.len().to_string()];
        row.extend(shown);
        sheet.rows.push(row);
    }
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(of: &[(&str, &str, f64)]) -> Vec<Reading> {
        let of = of.iter().map(|(started, group, value)| Reading {
            started: (*started).to_owned(),
            group: (*group).to_owned(),
            value: *value,
        });
        of.collect()
    }

    #[test]
    fn groups_are_lines_and_rows_with_their_medians() {
        let readings = readings(&[
            ("2026-02-01T09:00:00Z", "old", 1e6),
            ("2026-02-02T09:00:00Z", "old", 3e6),
            ("2026-02-04T09:00:00Z", "<new>", 9e6),
        ]);
        let trend = chart(Metric::P99, "version", &readings);
        assert!(trend.drawing.contains("<svg class=\"chart\""));
        assert!(trend.drawing.contains("days since 2026-02-01 09:00 UTC"));
        assert!(trend.legend.contains("&lt;new&gt;"), "{}", trend.legend);
        for cell in [">2.000 ms<", ">1.000 ms<", ">9.000 ms<", ">&lt;new&gt;<"] {
            assert!(trend.table.contains(cell), "{cell} {}", trend.table);
        }
        assert!(trend.table.contains("scope=\"col\""));
    }

    #[test]
    fn time_axis_has_the_unit_that_fits_its_span() {
        for (last, unit) in [
            ("2026-02-01T09:00:30Z", "seconds since"),
            ("2026-02-01T09:30:00Z", "minutes since"),
            ("2026-02-01T19:00:00Z", "hours since"),
            ("2026-03-01T09:00:00Z", "days since"),
        ] {
            let both = [("2026-02-01T09:00:00Z", "a", 1.0), (last, "a", 2.0)];
            let drawing = chart(Metric::Qps, "version", &readings(&both)).drawing;
            assert!(drawing.contains(unit), "{unit} {drawing}");
        }
    }

    #[test]
    fn without_two_runs_nothing_is_drawn() {
        let one = [("2026-02-01T09:00:00Z", "", 0.5)];
        for (of, words) in [(&one[..0], "No run"), (&one[..], "second run")] {
            let trend = chart(Metric::Loss, "version", &readings(of));
            assert!(!trend.drawing.contains("<svg"), "{}", trend.drawing);
            assert!(trend.drawing.contains(words), "{}", trend.drawing);
            assert_eq!(trend.table.matches(NO_VALUE).count(), of.len());
        }
    }

    #[test]
    fn more_groups_than_looks_are_the_newest_and_said() {
        let names: Vec<String> = (0..15).map(|it| format!("group-{it}")).collect();
        let each = names.iter().enumerate();
        let each = each.map(|(day, name)| Reading {
            started: format!("2026-02-{:02}T00:00:00Z", day + 1),
            group: name.clone(),
            value: 1.0,
        });
        let trend = chart(Metric::Qps, "version", &each.collect::<Vec<_>>());
        assert!(trend.drawing.contains("newest 12 of 15 groups"));
        assert!(!trend.legend.contains("group-2<") && trend.legend.contains("group-14"));
        assert!(trend.table.contains("group-0"));
    }

    #[test]
    fn start_that_is_no_instant_is_in_the_table_alone() {
        let of = [("yesterday", "a", 1.0), ("2026-02-01T09:00:00Z", "a", 2.0)];
        let trend = chart(Metric::Qps, "version", &readings(&of));
        assert!(!trend.drawing.contains("<svg"));
        assert!(trend.table.contains(">2</td>"), "{}", trend.table);
    }
}
