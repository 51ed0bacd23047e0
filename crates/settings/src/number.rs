//! Numbers as they are typed in flags, scenarios and experiments: one form for all of them.

/// Whole numbers up to this are exact in a binary fraction of 64 bits.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Reads a number without a sign: `20000`, `0.5`, `1_000`, `1,000`, `1e6`, `50k`, `1.5M`, `1G`.
/// None for anything else, and for what is too large.
pub fn parse_number(text: &str) -> Option<f64> {
    let last = *text.as_bytes().last()?;
    let (number, shift) = match last {
        b'k' | b'K' => (&text[..text.len() - 1], 3),
        b'M' => (&text[..text.len() - 1], 6),
        b'G' => (&text[..text.len() - 1], 9),
        _ => (text, 0),
    };
    let (digits, exponent) = match number.split_once(['e', 'E']) {
        // A suffix is an exponent already.
        Some(_) if shift > 0 => return None,
        Some((digits, exponent)) => (digits, parse_exponent(exponent)?),
        None => (number, shift),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = without_separators(whole)?;
    let is_number = all_digits(&whole) && all_digits(fraction);
    if !is_number || whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // Read in one step, so that it is rounded once: 1.1k is 1100.
    let value: f64 = format!("{whole}.{fraction}e{exponent}").parse().ok()?;
    value.is_finite().then_some(value)
}

/// Reads a whole number in one of the forms of [`parse_number`].
pub fn parse_count(text: &str) -> Option<u64> {
    if !text.is_empty() && all_digits(text) {
        return text.parse().ok();
    }
    let value = parse_number(text)?;
    (value.fract() == 0.0 && value <= EXACT_MAX).then_some(value as u64)
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|octet| octet.is_ascii_digit())
}

/// The exponent of `1e6`, `1e+6` or `1e-3`.
fn parse_exponent(text: &str) -> Option<i32> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_exponent = (1..=2).contains(&unsigned.len()) && all_digits(unsigned);
    is_exponent.then(|| text.parse().ok()).flatten()
}

/// The digits of `1_000` or `1,000`. A comma separates groups of three, so that `1,5` is refused
/// instead of read as 15.
fn without_separators(text: &str) -> Option<String> {
    let is_fit = match (text.contains(','), text.contains('_')) {
        (true, true) => false,
        (true, false) => {
            let mut groups = text.split(',');
            let first = groups.next().unwrap_or_default();
            (1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3)
        }
        (false, true) => text.split('_').all(|group| !group.is_empty()),
        (false, false) => true,
    };
    is_fit.then(|| text.replace([',', '_'], ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_suffixes_separators_and_exponents() {
        for (text, number) in [
            ("20000", 20_000.0),
            ("0.5", 0.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("1,000", 1_000.0),
            ("1,000,000.5", 1_000_000.5),
            ("1_000", 1_000.0),
            ("10_00", 1_000.0),
            ("1e6", 1e6),
            ("1E6", 1e6),
            ("1.5e+3", 1_500.0),
            ("1e-3", 0.001),
            ("10k", 10_000.0),
            ("10K", 10_000.0),
            ("1.1k", 1_100.0),
            ("1.5M", 1_500_000.0),
            ("1G", 1e9),
            ("1,000k", 1e6),
        ] {
            assert_eq!(parse_number(text), Some(number), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "k",
            ".",
            ",",
            "_",
            "-1",
            "+1",
            "inf",
            "NaN",
            "1.2.3",
            "5 k",
            "5m",
            "5g",
            "5kk",
            "1,5",
            "1,0000",
            ",000",
            "1,",
            "_1",
            "1_",
            "1__0",
            "1,000_000",
            "1.000,5",
            "1e",
            "1e+",
            "1e1.5",
            "1e6k",
            "1e999",
            "0x10",
            "\u{e9}",
            "1\u{a0}000",
            "\u{661}",
        ] {
            assert_eq!(parse_number(text), None, "{text}");
            assert_eq!(parse_count(text), None, "{text}");
        }
    }

    #[test]
    fn counts_are_whole_and_exact() {
        for (text, number) in [
            ("0", 0),
            ("18446744073709551615", u64::MAX),
            ("1.5k", 1_500),
            ("2.0", 2),
            ("1e6", 1_000_000),
        ] {
            assert_eq!(parse_count(text), Some(number), "{text}");
        }
        for text in ["0.5", "1.0005k", "18446744073709551616", "1e30", "1e-3"] {
            assert_eq!(parse_count(text), None, "{text}");
        }
    }
}
