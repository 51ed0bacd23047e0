//! The one instant type of the data path.
//!
//! An [`Instant`] counts nanoseconds since the epoch of the driver that produced it (the start of
//! the run, or zero of virtual time). Instants of different drivers in one run share that epoch.

use std::ops::{Add, Sub};
use std::time::Duration;

use settings::number::parse_number;

/// Nanoseconds since the driver's epoch; monotonic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The epoch itself.
    pub const ZERO: Instant = Instant(0);
    /// Later than any instant that a run reaches (584 years).
    pub const FAR_FUTURE: Instant = Instant(u64::MAX);

    /// The instant `ns` nanoseconds after the epoch.
    pub const fn from_nanos(ns: u64) -> Self {
        Instant(ns)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Nanoseconds from `earlier` to here; zero if `earlier` is later.
    pub const fn nanos_since(self, earlier: Instant) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The time from `earlier` to here; zero if `earlier` is later.
    pub const fn duration_since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Instant(self.0.saturating_add(ns))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}

/// Longer durations than this are typing errors, and would overflow sums.
const DURATION_S_MAX: f64 = 1e9;

/// Reads a duration such as `5ms`, `1.5s`, `200us`, `2m`, `1m30s`, `24h`; 0 needs no unit. None for
/// anything else, and for more than 30 years.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut smallest_s, mut total) = (text, f64::INFINITY, Duration::ZERO);
    while !rest.is_empty() {
        let (number, after) = split_where(rest, |c| !is_of_number(c));
        let (unit, next) = split_where(after, is_of_number);
        let unit_s = unit_seconds(unit)?;
        // Each unit once, the largest first: `30s1m` is more likely a typing error.
        if unit_s >= smallest_s {
            return None;
        }
        let seconds = parse_number(number)? * unit_s;
        if seconds > DURATION_S_MAX {
            return None;
        }
        // Rounded to whole nanoseconds: 0.001 s times 5 has none to spare in binary.
        total += Duration::from_nanos((seconds * 1e9).round() as u64);
        (rest, smallest_s) = (next, unit_s);
    }
    let is_duration = !text.is_empty() && total.as_secs_f64() <= DURATION_S_MAX;
    is_duration.then_some(total)
}

/// As [`parse_duration`]; a number without a unit is in seconds.
pub fn parse_duration_or_seconds(text: &str) -> Option<Duration> {
    let seconds = parse_number(text).filter(|seconds| *seconds <= DURATION_S_MAX);
    let bare = seconds.map(|seconds| Duration::from_nanos((seconds * 1e9).round() as u64));
    bare.or_else(|| parse_duration(text))
}

fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || ".,_".contains(c)
}

fn split_where(text: &str, is_end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

/// The seconds of a unit.
fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "\u{b5}s" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}
