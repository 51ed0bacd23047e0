//! Charts of a run that goes on, as parts of a page that is filled again with each snapshot.
//!
//! They have the axes, colours and tables of the charts of a finished run.

use measure::notation::{counted, decimal, latency, per_second};

use crate::chart::{self, Axis, Chart, Form, Point, Scale, Series, Unit};
use crate::document::{Column, Sheet};
use crate::html;

/// From here on the time axis is in minutes.
const MINUTES_FROM_NS: u64 = 600_000_000_000;

/// Most runs that the axis of runs names.
const TICKS_MAX: usize = 6;

/// A figure of successive intervals together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figure {
    /// What they have together; none without values.
    pub value: Option<f64>,
    /// The least and the greatest of them.
    pub band: Option<(f64, f64)>,
}

/// Successive intervals together: a point of each line, or a row of each table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Start in nanoseconds since the start of the run.
    pub start_ns: u64,
    /// End in nanoseconds since the same instant.
    pub end_ns: u64,
    /// Queries sent a second.
    pub sent: Figure,
    /// Responses a second.
    pub responses: Figure,
    /// Queries lost a second.
    pub lost: Figure,
    /// Percentile 50 of the latency in nanoseconds.
    pub p50: Figure,
    /// Percentile 99 of the latency in nanoseconds.
    pub p99: Figure,
}

/// A chart as parts of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveChart {
    /// Its heading.
    pub title: &'static str,
    /// What its lines look like.
    pub legend: String,
    /// The drawing, and what it shows in words.
    pub drawing: String,
    /// Its figures.
    pub table: String,
}

/// A line of a chart.
type Line = (&'static str, fn(&Moment) -> Figure);

/// A chart before there is anything to draw.
struct Outline {
    id: &'static str,
    title: &'static str,
    lines: &'static [Line],
    words: fn(f64) -> String,
}

const RATES: Outline = Outline {
    id: "rates",
    title: "Queries sent, completed and lost",
    lines: &[
        ("sent", |it| it.sent),
        ("completed", |it| it.responses),
        ("lost", |it| it.lost),
    ],
    words: per_second,
};

const LATENCY: Outline = Outline {
    id: "latency",
    title: "Latency percentiles over time",
    lines: &[("p50", |it| it.p50), ("p99", |it| it.p99)],
    words: latency,
};

/// The charts of what was measured so far: lines through points, tables of rows. `prefix` begins
/// the IDs of their elements; `intervals` is how many intervals a point has together.
pub fn charts(
    prefix: &str,
    (points, rows): (&[Moment], &[Moment]),
    intervals: u64,
) -> [LiveChart; 2] {
    let rates = Axis::new("queries a second", Scale::FromZero, Unit::Number);
    let times = latency_axis(points);
    [(RATES, rates), (LATENCY, times)].map(|(outline, y)| {
        let mut chart = outline.chart(y, points, rows);
        chart.id.insert_str(0, prefix);
        outline.draw(&chart, points.len(), intervals)
    })
}

/// A run among those of its command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunPoint {
    /// Its number.
    pub number: u64,
    /// Queries sent a second.
    pub sent_qps: f64,
    /// Responses a second.
    pub responses_qps: f64,
}

/// The rates of the runs of a command beside each other; empty for fewer than two. The page has
/// their table already.
pub fn runs(points: &[RunPoint]) -> String {
    let dots = |look, name: &str, rate: fn(&RunPoint) -> f64| Series {
        name: name.to_owned(),
        form: Form::Dots,
        look,
        points: (points.iter())
            .map(|it| Point::new(it.number as f64, rate(it)))
            .collect(),
    };
    let mut x = Axis::new("run", Scale::Even, Unit::Number);
    x.ticks = (points.iter())
        .step_by(points.len().div_ceil(TICKS_MAX).max(1))
        .map(|it| it.number as f64)
        .collect();
    let title = "Rate of each run";
    let chart = Chart {
        id: "each".to_owned(),
        title: title.to_owned(),
        description: "The table of runs has the same figures.".to_owned(),
        x,
        y: Axis::new("queries a second", Scale::FromZero, Unit::Number),
        series: vec![
            dots(0, "sent", |it| it.sent_qps),
            dots(1, "completed", |it| it.responses_qps),
        ],
        marks: Vec::new(),
        sheet: Sheet::new("each", title, Vec::new()),
        notes: Vec::new(),
    };
    if points.len() < 2 {
        return String::new();
    }
    let mut html = format!("<figcaption><h3>{title}</h3></figcaption>\n");
    html::legend(&mut html, &chart);
    html.push_str(&chart::draw(&chart));
    html
}

/// By factors where the greatest is far above the usual, as in a finished run's chart.
fn latency_axis(points: &[Moment]) -> Axis {
    let greatest = |of: fn(&Moment) -> Figure| {
        let values = points.iter().filter_map(|it| of(it).value);
        values.fold(0.0, f64::max)
    };
    let is_wide = greatest(|it| it.p99) > 30.0 * greatest(|it| it.p50).max(1.0);
    let (scale, label) = match is_wide {
        true => (Scale::Log, "latency (log scale)"),
        false => (Scale::FromZero, "latency"),
    };
    Axis::new(label, scale, Unit::Nanoseconds)
}

impl Outline {
    fn draw(&self, chart: &Chart, points: usize, intervals: u64) -> LiveChart {
        let (mut legend, mut table) = (String::new(), String::new());
        html::legend(&mut legend, chart);
        html::rows(&mut table, &chart.sheet, None);
        let mut drawing = match chart.is_worthwhile() {
            true => chart::draw(chart),
            false => String::new(),
        };
        let note = match points {
            0 | 1 => "Drawn from the second interval on.".to_owned(),
            _ if intervals > 1 => format!(
                "Each point is {} together; the band goes from the least to the greatest of them.",
                counted(intervals, "interval")
            ),
            _ => "Each point is an interval.".to_owned(),
        };
        drawing.push_str(&format!("<p class=\"note\">{note}</p>\n"));
        LiveChart {
            title: self.title,
            legend,
            drawing,
            table,
        }
    }

    fn chart(&self, y: Axis, points: &[Moment], rows: &[Moment]) -> Chart {
        let end_ns = points.last().map_or(0, |it| it.end_ns);
        let (unit, label) = match end_ns >= MINUTES_FROM_NS {
            true => (60e9, "time, min"),
            false => (1e9, "time, s"),
        };
        let time = |ns: u64| ns as f64 / unit;
        let series = self.lines.iter().enumerate();
        let series = series.map(|(look, (name, figure))| Series {
            name: (*name).to_owned(),
            form: Form::Line,
            look,
            points: points
                .iter()
                .map(|it| Point {
                    x: time(it.start_ns.midpoint(it.end_ns)),
                    x_end: None,
                    y: figure(it).value,
                    band: figure(it).band,
                })
                .collect(),
        });
        let mut x = Axis::new(label, Scale::Even, Unit::Number);
        x.ends = (end_ns > 0).then(|| (0.0, time(end_ns)));
        Chart {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            description: self.description(points),
            x,
            y,
            series: series.collect(),
            marks: Vec::new(),
            sheet: self.sheet(rows),
            notes: Vec::new(),
        }
    }

    /// The newest figures, for those who do not see the lines.
    fn description(&self, points: &[Moment]) -> String {
        let Some(newest) = points.last() else {
            return "Nothing was measured yet.".to_owned();
        };
        let figures = self.lines.iter().map(|(name, figure)| {
            let value = figure(newest).value;
            format!("{name} {}", value.map_or("-".to_owned(), self.words))
        });
        let figures: Vec<String> = figures.collect();
        format!("The newest point: {}.", figures.join(", "))
    }

    fn sheet(&self, rows: &[Moment]) -> Sheet {
        let names = self.lines.iter().map(|(name, _)| *name);
        let columns = ["from (s)", "to (s)"].into_iter().chain(names);
        let columns = columns.map(Column::figures).collect();
        let mut sheet = Sheet::new(self.id, self.title, columns);
        let time = |ns: u64| decimal(ns as f64 / 1e9, 1);
        let rows = rows.iter().map(|row| {
            let values = self.lines.iter().map(|(_, figure)| figure(row).value);
            let values = values.map(|it| it.map_or_else(|| "-".to_owned(), self.words));
            let ends = [time(row.start_ns), time(row.end_ns)];
            ends.into_iter().chain(values).collect()
        });
        sheet.rows = rows.collect();
        sheet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64) -> Figure {
        Figure {
            value: Some(value),
            band: None,
        }
    }

    fn moments(count: u64) -> Vec<Moment> {
        let moments = (0..count).map(|at| Moment {
            start_ns: at * 1_000_000_000,
            end_ns: (at + 1) * 1_000_000_000,
            sent: figure(1_000.0),
            responses: figure(990.0 + at as f64),
            lost: figure(1.5),
            p50: figure(1e6),
            p99: figure(2e6),
        });
        moments.collect()
    }

    #[test]
    fn table_has_the_figures_that_the_lines_go_through() {
        let moments = moments(3);
        let [rates, latency] = charts("", (&moments, &moments), 1);
        assert!(rates.drawing.contains("<svg class=\"chart\""));
        for value in ["990.0", "991.0", "992.0", "1.5"] {
            assert!(rates.table.contains(&format!(">{value}<")), "{value}");
        }
        assert!(latency.table.contains(">2.000 ms<"), "{}", latency.table);
        assert_eq!(rates.table.matches("<tr>").count(), 4);
    }

    #[test]
    fn chart_without_two_points_says_so_and_draws_nothing() {
        for count in 0..2 {
            let [rates, latency] = charts("", (&moments(count), &moments(count)), 1);
            assert!(!rates.drawing.contains("<svg"), "{}", rates.drawing);
            assert!(latency.drawing.contains("second interval"));
        }
    }

    #[test]
    fn latency_far_above_the_median_has_an_axis_by_factors() {
        let mut points = moments(3);
        points[1].p99 = figure(1e9);
        let [_, latency] = charts("", (&points, &points), 2);
        assert!(latency.drawing.contains("log scale"));
        assert!(latency.drawing.contains("2 intervals together"));
    }
}
