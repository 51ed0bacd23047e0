//! How a load changes over time: a factor on every client's rate.

use std::fmt;
use std::time::Duration;

use proto::Instant;
use proto::time::parse_duration;

use crate::plan_error::PlanError;

#[cfg(test)]
mod tests;

/// A factor over time, piecewise linear; constant before its first point and after its last.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Seconds since the start of the run, and the factor from there on; in order. Two points at
    /// one time make a step.
    points: Vec<(f64, f64)>,
    /// Period in seconds, if it is periodic.
    period_s: Option<f64>,
    /// The start of the run.
    start: Instant,
    /// As it was written.
    text: String,
}

/// Pieces that approximate one period of a sine, with an error of at most 0.9 %.
const SINE_PIECES: u32 = 24;
/// Most points of a shape.
const POINTS_MAX: usize = 10_000;

impl Shape {
    /// Reads a shape: `steps:0s=1,30s=4,60s=1`, `linear:0s=0,60s=1`, or `diurnal:24h=0.2..1`,
    /// which goes up and down between two factors once in that time.
    ///
    /// # Errors
    /// The part that cannot be parsed, with an example.
    pub fn parse(text: &str) -> Result<Shape, PlanError> {
        let (kind, points) = text.split_once(':').unwrap_or((text, ""));
        let mut shape = match kind {
            "steps" => Shape::of_steps(&parse_points(points)?),
            "linear" => Shape::of(parse_points(points)?, None),
            "diurnal" => diurnal(points)?,
            _ => return Err(wrong(format!("`{kind}` is not a shape"))),
        };
        text.clone_into(&mut shape.text);
        shape.validate().map(|()| shape)
    }

    fn of(points: Vec<(f64, f64)>, period_s: Option<f64>) -> Self {
        Shape {
            points,
            period_s,
            start: Instant::ZERO,
            text: String::new(),
        }
    }

    fn of_steps(points: &[(f64, f64)]) -> Self {
        let mut stepped: Vec<(f64, f64)> = Vec::with_capacity(2 * points.len());
        for &(at_s, factor) in points {
            if let Some(&(_, before)) = stepped.last() {
                stepped.push((at_s, before));
            }
            stepped.push((at_s, factor));
        }
        Shape::of(stepped, None)
    }

    fn validate(&self) -> Result<(), PlanError> {
        let points = &self.points;
        if points.is_empty() || points.len() > POINTS_MAX {
            return Err(wrong(format!("{} points", points.len())));
        }
        if !points.is_sorted_by(|a, b| a.0 <= b.0) {
            return Err(wrong("its times are not in order".into()));
        }
        let factors = points.iter().map(|point| point.1);
        if factors.clone().any(|factor| !(0.0..=1e6).contains(&factor)) {
            return Err(wrong("a factor is not within 0 to 1000000".into()));
        }
        if factors.clone().all(|factor| factor == 0.0) {
            return Err(wrong("its factor must not always be zero".into()));
        }
        Ok(())
    }

    /// The same shape for a run that starts at `start`.
    pub fn starting_at(&self, start: Instant) -> Self {
        Shape {
            start,
            ..self.clone()
        }
    }

    /// The factor `at_s` seconds after the start.
    pub fn factor(&self, at_s: f64) -> f64 {
        let at_s = self.period_s.map_or(at_s, |period| at_s % period);
        let after = self.points.partition_point(|point| point.0 <= at_s);
        match (after.checked_sub(1), self.points.get(after)) {
            (None, Some(first)) => first.1,
            (Some(before), None) => self.points[before].1,
            (Some(before), Some(&(next_s, next))) => {
                let (before_s, factor) = self.points[before];
                factor + (next - factor) * (at_s - before_s) / (next_s - before_s)
            }
            (None, None) => 1.0,
        }
    }

    /// The moment at which the factor, added up from `from` on, reaches `work_s` seconds at factor
    /// 1; far in the future if it never does.
    pub fn advance(&self, from: Instant, work_s: f64) -> Instant {
        let from_s = from.nanos_since(self.start) as f64 / 1e9;
        let (mut at_s, mut left) = (from_s, work_s);
        // A period's work is never zero, and each turn passes a piece of it.
        for _ in 0..4 * POINTS_MAX {
            let (base_s, within_s) = match self.period_s {
                Some(period) => ((at_s / period).floor() * period, at_s % period),
                None => (0.0, at_s),
            };
            let next = self.points.partition_point(|point| point.0 <= within_s);
            let piece_end_s = match self.points.get(next) {
                Some(point) => point.0,
                None => self.period_s.unwrap_or(f64::INFINITY),
            };
            let begin = self.factor(within_s);
            let end = match next {
                // Not the factor after a step, but the one that leads up to it.
                1.. => self.points.get(next).map_or(begin, |point| point.1),
                0 => begin,
            };
            let length_s = piece_end_s - within_s;
            if let Some(passed_s) = within_piece(begin, end, length_s, left) {
                return self.instant(base_s + within_s + passed_s);
            }
            if length_s.is_infinite() {
                return Instant::FAR_FUTURE;
            }
            left -= (begin + end) / 2.0 * length_s;
            // Always advances, in spite of rounding.
            at_s = (base_s + piece_end_s).max(at_s + 1e-9);
        }
        Instant::FAR_FUTURE
    }

    fn instant(&self, at_s: f64) -> Instant {
        let ns = (at_s * 1e9) as u64;
        Instant::from_nanos(self.start.as_nanos().saturating_add(ns))
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How far into a piece that leads from one factor to another the `work` is done, if it is.
fn within_piece(begin: f64, end: f64, length_s: f64, work: f64) -> Option<f64> {
    if length_s.is_infinite() {
        return (begin > 0.0).then(|| work / begin);
    }
    if work > (begin + end) / 2.0 * length_s || length_s <= 0.0 {
        return None;
    }
    // work = begin t + slope t^2 / 2, solved in the form that does not cancel.
    let slope = (end - begin) / length_s;
    let root = (begin * begin + 2.0 * slope * work).max(0.0).sqrt();
    let sum = begin + root;
    Some(if sum > 0.0 {
        (2.0 * work / sum).min(length_s)
    } else {
        length_s
    })
}

fn parse_points(text: &str) -> Result<Vec<(f64, f64)>, PlanError> {
    let point = |text: &str| {
        let (at, factor) = text.split_once('=')?;
        let at_s = parse_duration(at.trim())?.as_secs_f64();
        Some((at_s, factor.trim().parse().ok()?))
    };
    let each = text.split(',');
    each.map(|text| point(text).ok_or_else(|| wrong(format!("`{text}` is not a point"))))
        .collect()
}

fn diurnal(text: &str) -> Result<Shape, PlanError> {
    let parts = text.split_once('=').and_then(|(period, factors)| {
        let (low, high) = factors.split_once("..")?;
        let period = parse_duration(period.trim())?;
        Some((period, low.trim().parse().ok()?, high.trim().parse().ok()?))
    });
    let Some((period, low, high)): Option<(Duration, f64, f64)> = parts else {
        return Err(wrong(format!("`{text}` is not PERIOD=LOW..HIGH")));
    };
    if period.is_zero() {
        return Err(wrong("its period must not be zero".into()));
    }
    let period_s = period.as_secs_f64();
    let point = |piece: u32| {
        let part = f64::from(piece) / f64::from(SINE_PIECES);
        let height = (1.0 - (part * std::f64::consts::TAU).cos()) / 2.0;
        (part * period_s, low + (high - low) * height)
    };
    let points = (0..=SINE_PIECES).map(point).collect();
    Ok(Shape::of(points, Some(period_s)))
}

fn wrong(what: String) -> PlanError {
    let hint = "write steps:0s=1,30s=4 or linear:0s=0,60s=1 or diurnal:24h=0.2..1";
    PlanError::new("shape", what, hint)
}
