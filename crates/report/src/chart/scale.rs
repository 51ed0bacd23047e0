//! Axes: from values to places, and where ticks go.

use measure::notation;

/// How an axis runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scale {
    /// Evenly, from zero.
    FromZero,
    /// Evenly, over the values that there are.
    Even,
    /// By factors.
    Log,
    /// Shares from 0 to 1 by what is left above them: as far from 90 % to 99 % as to 99.9 %.
    Tail,
    /// Names, one after the other.
    Names(Vec<String>),
}

/// What the values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Number,
    Nanoseconds,
    Percent,
}

/// An axis with its ends.
pub(super) struct Range<'a> {
    scale: &'a Scale,
    unit: Unit,
    low: f64,
    high: f64,
}

/// The shares that a tail axis marks.
const TAIL_TICKS: [(f64, &str); 8] = [
    (0.0, "0 %"),
    (0.5, "50 %"),
    (0.9, "90 %"),
    (0.99, "99 %"),
    (0.999, "99.9 %"),
    (0.9999, "99.99 %"),
    (0.999_99, "99.999 %"),
    (0.999_999, "99.9999 %"),
];

impl<'a> Range<'a> {
    /// The ends that `values` need; ticks of the scale where it may choose them (`is_rounded`).
    pub(super) fn of(
        scale: &'a Scale,
        unit: Unit,
        values: impl Iterator<Item = f64>,
        is_rounded: bool,
    ) -> Self {
        let usable = values.filter(|value| value.is_finite());
        let usable = usable.filter(|value| *value > 0.0 || !matches!(scale, Scale::Log));
        let ends = usable.fold(None, |ends: Option<(f64, f64)>, value| {
            let (low, high) = ends.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        });
        let (low, high) = ends.unwrap_or((1.0, 2.0));
        let (low, high) = match scale {
            Scale::FromZero => (0.0, if high > 0.0 { high } else { 1.0 }),
            Scale::Even | Scale::Log if low == high => (low * 0.9, high * 1.1 + f64::EPSILON),
            Scale::Even | Scale::Log => (low, high),
            Scale::Tail => (0.0, high.min(1.0 - 1e-9)),
            Scale::Names(names) => (-0.5, names.len() as f64 - 0.5),
        };
        let mut range = Range {
            scale,
            unit,
            low,
            high,
        };
        if is_rounded {
            range.round();
        }
        range
    }

    /// Moves the ends to round values.
    fn round(&mut self) {
        match self.scale {
            Scale::FromZero => {
                let step = self.step(5);
                self.high = (self.high / step - 1e-9).ceil() * step;
            }
            Scale::Log => {
                self.low = below(self.low);
                self.high = above(self.high);
            }
            Scale::Even | Scale::Tail | Scale::Names(_) => {}
        }
    }

    /// Where `value` is: 0 at the low end, 1 at the high one.
    pub(super) fn place(&self, value: f64) -> f64 {
        let along = |value: f64| match self.scale {
            Scale::Log => value.max(f64::MIN_POSITIVE).ln(),
            Scale::Tail => -(1.0 - value.min(self.high)).log10(),
            _ => value,
        };
        let (low, high) = (along(self.low), along(self.high));
        if high > low {
            ((along(value) - low) / (high - low)).clamp(0.0, 1.0)
        } else {
            0.5
        }
    }

    /// The values given with their words.
    pub(super) fn ticks_at(&self, values: &[f64]) -> Vec<(f64, String)> {
        let words = |value: &f64| (*value, self.words(*value, 1.0));
        values.iter().map(words).collect()
    }

    /// Marked values with their words, at most about `most`.
    pub(super) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        match self.scale {
            Scale::FromZero | Scale::Even => self.even_ticks(most),
            Scale::Log => self.log_ticks(most),
            Scale::Tail => {
                let within = |tick: &&(f64, &str)| tick.0 <= self.high;
                let ticks = TAIL_TICKS.iter().filter(within);
                ticks
                    .map(|(share, text)| (*share, (*text).into()))
                    .collect()
            }
            Scale::Names(names) => {
                let named = names.iter().enumerate();
                named.map(|(at, name)| (at as f64, name.clone())).collect()
            }
        }
    }

    fn even_ticks(&self, most: usize) -> Vec<(f64, String)> {
        let step = self.step(most);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let values = (first..=last).map(|index| index as f64 * step);
        values
            .map(|value| (value, self.words(value, step)))
            .collect()
    }

    /// The distance of even ticks: 1, 2 or 5 times a power of ten.
    fn step(&self, most: usize) -> f64 {
        let raw = ((self.high - self.low) / most.max(1) as f64).max(f64::MIN_POSITIVE);
        let size = 10_f64.powf(raw.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0];
        let fits = |step: &&f64| **step * size >= raw * 0.999_999;
        steps.iter().find(fits).unwrap_or(&10.0) * size
    }

    fn log_ticks(&self, most: usize) -> Vec<(f64, String)> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let within =
            |value: &f64| *value >= self.low * 0.999_999 && *value <= self.high * 1.000_001;
        let of = |factors: &[f64], every: i32| {
            let chosen = decades
                .clone()
                .filter(|decade| decade.rem_euclid(every) == 0);
            let all = chosen.flat_map(|decade| {
                let size = 10_f64.powi(decade);
                factors.iter().map(move |factor| factor * size)
            });
            all.filter(within).collect::<Vec<f64>>()
        };
        let choices = [
            of(&[1.0, 2.0, 5.0], 1),
            of(&[1.0, 3.0], 1),
            of(&[1.0], 1),
            of(&[1.0], 2),
            of(&[1.0], 3),
        ];
        let fitting = choices.into_iter().find(|ticks| ticks.len() <= most);
        let ticks = fitting.unwrap_or_default().into_iter();
        ticks
            .map(|value| (value, self.words(value, value)))
            .collect()
    }

    fn words(&self, value: f64, step: f64) -> String {
        match self.unit {
            Unit::Number => short(value, step),
            Unit::Percent => format!("{} %", short(value, step)),
            Unit::Nanoseconds => time(value),
        }
    }
}

/// The next of 1, 2, 5 times a power of ten at or below `value`.
fn below(value: f64) -> f64 {
    let size = 10_f64.powf(value.log10().floor());
    let steps = [5.0, 2.0, 1.0];
    let fits = |step: &&f64| **step * size <= value * 1.000_001;
    steps.iter().find(fits).unwrap_or(&1.0) * size
}

/// The next of 1, 2, 5 times a power of ten at or above `value`.
fn above(value: f64) -> f64 {
    let size = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let fits = |step: &&f64| **step * size >= value * 0.999_999;
    steps.iter().find(fits).unwrap_or(&10.0) * size
}

/// A number in few characters: `300k`, `1.5M`, `0.25`.
fn short(value: f64, step: f64) -> String {
    let size = value.abs();
    let (scaled, unit) = match size {
        _ if size >= 999_999.5 => (1e6, "M"),
        _ if size >= 9_999.5 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let places = (-(step / scaled).abs().log10()).ceil().clamp(0.0, 6.0) as usize;
    let number = notation::decimal(value / scaled, places);
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => &number,
    };
    format!("{number}{unit}")
}

/// A time in few characters: `200 us`, `1.5 ms`.
fn time(ns: f64) -> String {
    if ns == 0.0 {
        return "0".into();
    }
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
    let fits = |unit: &&(f64, &str)| ns >= 0.999 * unit.0;
    let (size, unit) = units.iter().find(fits).unwrap_or(&(1.0, "ns"));
    format!("{} {unit}", short(ns / size, 0.01))
}
