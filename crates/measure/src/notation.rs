//! How numbers are written for people: thousands separators, shares, adaptive units.
//!
//! Four significant digits for latencies and bit rates, which is about what a histogram bucket
//! carries; every result names its unit except a bare count.

use std::fmt::Display;
use std::time::Duration;

/// Items that are named of a list in a sentence.
const FEW: usize = 8;

/// A count with thousands separators: `1,234,567`.
pub fn count(value: u64) -> String {
    group(&value.to_string())
}

/// A decimal number with thousands separators: `15,324.6`.
pub fn decimal(value: f64, places: usize) -> String {
    let text = format!("{value:.places$}");
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.as_str()),
    };
    match text.split_once('.') {
        Some((whole, fraction)) => format!("{sign}{}.{fraction}", group(whole)),
        None => format!("{sign}{}", group(text)),
    }
}

/// A figure of any unit: whole numbers, and those of a million and more, without decimals; others
/// with three.
pub fn figure(value: f64) -> String {
    match value.fract() == 0.0 || value.abs() >= 1e6 {
        true => decimal(value, 0),
        false => decimal(value, 3),
    }
}

/// Events a second: `986.3`, from 1,000 on without a fraction: `15,325`.
pub fn per_second(events: f64) -> String {
    let places = if events.abs() < 999.95 { 1 } else { 0 };
    decimal(events, places)
}

/// A rate of queries: `986.3 qps`, `15,325 qps`.
pub fn rate(qps: f64) -> String {
    format!("{} qps", per_second(qps))
}

/// A share of a whole: `54.60 %`, or `-` if there is no whole. Only nothing reads as `0 %`, only
/// everything as `100 %`.
pub fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".into(),
        _ => fraction(part as f64 / whole as f64),
    }
}

/// The same of a fraction from 0 to 1 that was measured.
pub fn fraction(fraction: f64) -> String {
    match 100.0 * fraction {
        0.0 => "0 %".into(),
        100.0 => "100 %".into(),
        percent if percent > 0.0 && percent < 0.005 => "<0.01 %".into(),
        percent if fraction < 1.0 && percent >= 99.995 => ">99.99 %".into(),
        percent => format!("{percent:.2} %"),
    }
}

/// A number set by the user, as typed: `500`, `0.25`, `20,000`; at most three decimals.
pub fn chosen(value: f64) -> String {
    let text = decimal(value, 3);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A fraction set by the user, as typed: `0.1 %`, `99.95 %`; at most three decimals.
pub fn chosen_fraction(fraction: f64) -> String {
    match chosen(100.0 * fraction).as_str() {
        "0" if fraction > 0.0 => "<0.001 %".into(),
        text => format!("{text} %"),
    }
}

/// A fraction from 0 to 1 as percentage with one decimal: `98.5 %`.
pub fn percent(fraction: f64) -> String {
    format!("{:.1} %", 100.0 * fraction)
}

/// A latency in nanoseconds with four significant digits: `850 ns`, `12.34 us`, `6.497 ms`,
/// `1.250 s`.
pub fn latency(ns: f64) -> String {
    if ns < 0.0 {
        // An interval's end.
        return format!("-{}", latency(-ns));
    }
    if ns < 999.5 {
        return format!("{ns:.0} ns");
    }
    let units = [(1e3, "us"), (1e6, "ms"), (1e9, "s")];
    scaled(ns, &units)
}

/// A bit rate: `512.0 bit/s`, `5.885 Mbit/s`.
pub fn bit_rate(bits_per_second: f64) -> String {
    let units = [
        (1.0, "bit/s"),
        (1e3, "kbit/s"),
        (1e6, "Mbit/s"),
        (1e9, "Gbit/s"),
    ];
    scaled(bits_per_second, &units)
}

/// A span of time in seconds with one decimal: `10.0 s`.
pub fn seconds(ns: u64) -> String {
    format!("{} s", decimal(ns as f64 / 1e9, 1))
}

/// A length of time, rounded up: `12 s`, `3 min`, `2 h 5 min`.
pub fn about(time: Duration) -> String {
    let seconds = time.as_nanos().div_ceil(1_000_000_000);
    let minutes = seconds.div_ceil(60);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// Memory: `15.6 GiB`.
pub fn gibibytes(octets: u64) -> String {
    format!("{} GiB", decimal(octets as f64 / (1u64 << 30) as f64, 1))
}

/// A count and its noun: `1 worker`, `2 workers`, `2 queries`.
pub fn counted(value: u64, noun: &str) -> String {
    let number = count(value);
    match (value, noun.strip_suffix('y')) {
        (1, _) => format!("{number} {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}

/// The first of several items, and how many there are beside them: `a, b and 3 more`.
pub fn first_few<T: Display>(items: &[T]) -> String {
    let (first, rest) = items.split_at(items.len().min(FEW));
    let mut text = first
        .iter()
        .map(T::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    if !rest.is_empty() {
        text.push_str(&format!(" and {} more", rest.len()));
    }
    text
}

/// Four significant digits in the largest unit that keeps the number at 1 or above.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let fits = |&&(size, _): &&(f64, &str)| value >= 0.999_95 * size;
    let (size, unit) = *units.iter().rev().find(fits).unwrap_or(&units[0]);
    let number = value / size;
    let places = match number {
        n if n < 9.999_5 => 3,
        n if n < 99.995 => 2,
        _ => 1,
    };
    format!("{} {unit}", decimal(number, places))
}

/// Puts a comma between groups of three digits.
fn group(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up() {
        let times = [0, 119_000, 119_001, 120_001, 7_199_999, 7_500_001];
        let times = times.map(|ms| about(Duration::from_millis(ms)));
        let texts = ["0 s", "119 s", "2 min", "3 min", "2 h 0 min", "2 h 6 min"];
        assert_eq!(times, texts);
    }

    #[test]
    fn thousands_are_separated() {
        let texts = [0, 12, 999, 1_000, 123_456, 36_511_920].map(count);
        assert_eq!(texts, ["0", "12", "999", "1,000", "123,456", "36,511,920"]);
        assert_eq!(decimal(-1_234.56, 1), "-1,234.6");
        let rates = [0.0, 12.34, 999.94, 999.96, 15_324.57].map(rate);
        let texts = [
            "0.0 qps",
            "12.3 qps",
            "999.9 qps",
            "1,000 qps",
            "15,325 qps",
        ];
        assert_eq!(rates, texts);
        assert_eq!(
            [500.0, 0.25, 20_000.0].map(chosen),
            ["500", "0.25", "20,000"]
        );
    }

    #[test]
    fn latency_has_four_significant_digits_and_changes_unit_when_rounding_does() {
        let cases = [
            (0.0, "0 ns"),
            (850.0, "850 ns"),
            (999.6, "1.000 us"),
            (12_340.0, "12.34 us"),
            (999_960.0, "1.000 ms"),
            (6_497_400.0, "6.497 ms"),
            (123_456_789.0, "123.5 ms"),
            (5_000_000_000.0, "5.000 s"),
            (-327_979.0, "-328.0 us"),
        ];
        for (ns, text) in cases {
            assert_eq!(latency(ns), text);
        }
    }

    #[test]
    fn share_tells_almost_nothing_from_nothing() {
        let texts = [
            share(0, 10),
            share(1, 1_000_000),
            share(999_999, 1_000_000),
            share(5, 0),
        ];
        assert_eq!(texts, ["0 %", "<0.01 %", ">99.99 %", "-"]);
        assert_eq!(share(5_460, 10_000), "54.60 %");
        let fractions = [0.0, 0.000_01, 0.487_18, 0.5, 0.999_99, 1.0].map(fraction);
        let texts = ["0 %", "<0.01 %", "48.72 %", "50.00 %", ">99.99 %", "100 %"];
        assert_eq!(fractions, texts);
        let chosen = [0.0, 0.001, 0.9995, 0.05, 1.0, 1e-9].map(chosen_fraction);
        assert_eq!(
            chosen,
            ["0 %", "0.1 %", "99.95 %", "5 %", "100 %", "<0.001 %"]
        );
    }

    #[test]
    fn bit_rate_and_nouns_read_well() {
        assert_eq!(bit_rate(0.0), "0.000 bit/s");
        assert_eq!(bit_rate(5_884_635.0), "5.885 Mbit/s");
        let nouns = [
            counted(1, "worker"),
            counted(2, "worker"),
            counted(0, "query"),
        ];
        assert_eq!(nouns, ["1 worker", "2 workers", "0 queries"]);
        assert_eq!(seconds(600_000_000_000), "600.0 s");
    }
}
