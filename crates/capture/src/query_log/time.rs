//! Times as logs write them, in nanoseconds since 1970.
//!
//! A time without zone is taken for UTC, one without a year (syslog) for 2000: what counts is the
//! time between two lines.

const NS: u64 = 1_000_000_000;
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The time at the start of `text`, whatever follows it; `None` if there is none.
pub(super) fn read(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let mut words = text.split_ascii_whitespace();
    let first = words.next()?;
    if let Some(epoch) = first.strip_prefix('[') {
        return epoch_ns(epoch.split(']').next()?);
    }
    if let Some(month) = month(first) {
        let day = words.next()?.parse().ok()?;
        return moment_ns((2000, month, day), words.next()?);
    }
    if first
        .bytes()
        .all(|octet| octet.is_ascii_digit() || octet == b'.')
    {
        return epoch_ns(first);
    }
    if let Some((date, clock)) = first.split_once('T') {
        return moment_ns(date_of(date)?, clock);
    }
    moment_ns(date_of(first)?, words.next()?)
}

/// `1795255200` or `1795255200.123456`.
fn epoch_ns(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: u64 = seconds.parse().ok()?;
    seconds.checked_mul(NS)?.checked_add(fraction_ns(fraction)?)
}

/// `2026-11-21`, `2026/11/21` or `21-Nov-2026`.
fn date_of(text: &str) -> Option<(u64, u64, u64)> {
    let mut parts = text.split(['-', '/']);
    let (first, second, third) = (parts.next()?, parts.next()?, parts.next()?);
    let number = |text: &str| text.parse::<u64>().ok();
    match month(second) {
        Some(month) => Some((number(third)?, month, number(first)?)),
        None => Some((number(first)?, number(second)?, number(third)?)),
    }
}

fn month(text: &str) -> Option<u64> {
    let index = MONTHS.iter().position(|month| *month == text)?;
    Some(index as u64 + 1)
}

/// A date and `10:00:00.123+01:00`.
fn moment_ns((year, month, day): (u64, u64, u64), clock: &str) -> Option<u64> {
    let zone_at = clock.find(['Z', '+', '-']).unwrap_or(clock.len());
    let (clock, zone) = clock.split_at(zone_at);
    let clock = clock.trim_end_matches(',');
    let mut parts = clock.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let (seconds, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, ""));
    let seconds: u64 = seconds.parse().ok()?;
    if hours > 24 || minutes > 59 || seconds > 60 {
        return None;
    }
    let days = days_since_1970(year, month, day)?;
    let local = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
    let utc = local.checked_add_signed(-zone_seconds(zone)?)?;
    utc.checked_mul(NS)?.checked_add(fraction_ns(fraction)?)
}

/// `Z`, `+01:00`, `+0100` or nothing.
fn zone_seconds(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first() {
        None | Some(b'Z') => return Some(0),
        Some(b'-') => -1,
        Some(_) => 1,
    };
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    let number: i64 = digits.parse().ok()?;
    match digits.len() {
        4 => Some(sign * (number / 100 * 3_600 + number % 100 * 60)),
        2 => Some(sign * number * 3_600),
        _ => None,
    }
}

/// The digits after the point, of which nine count.
fn fraction_ns(digits: &str) -> Option<u64> {
    if !digits.bytes().all(|octet| octet.is_ascii_digit()) {
        return None;
    }
    let mut ns = 0;
    for place in 0..9 {
        let digit = digits.as_bytes().get(place).map_or(0, |octet| octet - b'0');
        ns = ns * 10 + u64::from(digit);
    }
    Some(ns)
}

/// Days from 1970-01-01 in the Gregorian calendar.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9_999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin with March, so that the leap day is a year's last.
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let days_before_month = (month * 153 + 2) / 5;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + days_before_month + day - 1;
    // The same sum for 1970-01-01.
    Some(days - 719_468)
}
