//! Charts: data with axes, and their drawing as SVG.
//!
//! A chart has a table of the same figures, for those who cannot see it and for forms that cannot
//! show it. Series differ in colour, dash and marker, so that none of these has to be seen.

mod scale;
mod svg;
#[cfg(test)]
mod tests;

use crate::document::Sheet;

pub(crate) use scale::{Scale, Unit};
pub(crate) use svg::{draw, file, names_fit, sample};

/// Most series that one chart shows apart: there are as many looks.
pub(crate) const SERIES_MAX: usize = 12;

/// A chart and its table.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// Where links go; no two of a document are alike.
    pub(crate) id: String,
    pub(crate) title: String,
    /// What is to be seen, in a sentence.
    pub(crate) description: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    /// Instants that are marked.
    pub(crate) marks: Vec<Mark>,
    /// The same figures.
    pub(crate) sheet: Sheet,
    pub(crate) notes: Vec<String>,
}

/// An axis with its unit in words.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) scale: Scale,
    pub(crate) unit: Unit,
    /// The values to mark; the axis chooses if there are none.
    pub(crate) ticks: Vec<f64>,
    /// Values that it has to reach, whatever there is to show: charts of one run have one time.
    pub(crate) ends: Option<(f64, f64)>,
    /// It is the axis of the chart before, and this one stands right below that.
    pub(crate) is_shared: bool,
    /// It is the time of a run.
    pub(crate) is_time: bool,
}

impl Axis {
    pub(crate) fn new(label: impl Into<String>, scale: Scale, unit: Unit) -> Self {
        Axis {
            label: label.into(),
            scale,
            unit,
            ticks: Vec::new(),
            ends: None,
            is_shared: false,
            is_time: false,
        }
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A line, with its band if there is one.
    Line,
    /// A line with a marker at each point.
    Marked,
    /// Markers alone.
    Dots,
    /// Bars from zero; a point's `x_end` is their other side.
    Bars,
    /// A thin line to compare with.
    Guide,
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) form: Form,
    /// Which colour, dash and marker it has: one below [`SERIES_MAX`].
    pub(crate) look: usize,
    pub(crate) points: Vec<Point>,
}

/// One point; without `y` the line is interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) x_end: Option<f64>,
    pub(crate) y: Option<f64>,
    /// The least and the greatest of what the point stands for.
    pub(crate) band: Option<(f64, f64)>,
}

impl Point {
    pub(crate) fn new(x: f64, y: f64) -> Self {
        Point {
            x,
            y: Some(y),
            ..Point::default()
        }
    }
}

impl Point {
    /// What is drawn of it: nothing without numbers.
    pub(crate) fn visible(&self) -> Option<(f64, f64)> {
        let both = (self.x, self.y?);
        (both.0.is_finite() && both.1.is_finite()).then_some(both)
    }
}

/// A place on the x axis with its name.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) x: f64,
    pub(crate) name: String,
}

impl Chart {
    /// True if it shows over time that nothing changes by more than a tenth.
    pub(crate) fn is_level(&self) -> bool {
        let is_level = |series: &Series| {
            let values = series.points.iter().filter_map(Point::visible);
            let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |ends, (_, y)| {
                (ends.0.min(y), ends.1.max(y))
            });
            high - low <= 0.1 * high.abs()
        };
        self.x.is_time && self.series.iter().all(is_level)
    }

    /// True if there is something to see: a line needs two points.
    pub(crate) fn is_worthwhile(&self) -> bool {
        let points = |series: &Series| series.points.iter().filter_map(Point::visible).count();
        self.series.iter().any(|series| match series.form {
            Form::Line | Form::Marked | Form::Dots => points(series) > 1,
            Form::Bars => points(series) > 0,
            Form::Guide => false,
        })
    }
}
