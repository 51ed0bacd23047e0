//! Three significant digits for every figure of a text, so that a figure has one precision wherever
//! it stands.
//!
//! Texts of a record (evidence, advice) have more digits. They are rounded as texts: who reads the
//! short result compares figures that were rounded the same way. Counts stay whole.

use measure::notation::{self, decimal};

/// Units of latency, in nanoseconds.
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
/// What may follow a unit within a sentence.
const PUNCTUATION: [char; 5] = [',', ';', ')', ':', '.'];
/// Shares from here on keep their digits: what they lack is the figure.
const NEARLY_ALL: f64 = 99.5;

/// The text with each of its figures in three significant digits, or in fewer if it had fewer.
pub(crate) fn round_figures(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let mut rounded: Vec<String> = Vec::new();
    let mut words = words.iter().copied().peekable();
    let mut is_argument = false;
    while let Some(word) = words.next() {
        let unit = words
            .peek()
            .map_or("", |it| it.trim_end_matches(PUNCTUATION));
        let time = TIMES.iter().find(|(name, _)| *name == unit);
        let figure = Figure::parse(word).filter(|_| !is_argument);
        is_argument = word.starts_with("--");
        match (figure, time) {
            (Some(figure), Some((name, ns))) if figure.places > 0 => {
                let after = words.next().map_or("", |it| &it[name.len()..]);
                rounded.push(format!("{}{}{after}", figure.before, figure.time(*ns)));
            }
            (Some(figure), _) if figure.places > 0 || unit == "qps" => {
                let number = match unit {
                    "%" => figure.percent(),
                    _ => figure.rounded(),
                };
                rounded.push(format!("{}{number}{}", figure.before, figure.after));
            }
            _ => rounded.push(word.to_owned()),
        }
    }
    rounded.join(" ")
}

/// A number within a text.
struct Figure<'a> {
    before: &'a str,
    value: f64,
    /// Digits behind the point.
    places: usize,
    after: &'a str,
}

impl<'a> Figure<'a> {
    /// None of a word that is no number, or says that it is a bound: `<0.01`.
    fn parse(word: &'a str) -> Option<Self> {
        let number = word.trim_start_matches(['(', '~']);
        let before = &word[..word.len() - number.len()];
        let bare = number.trim_end_matches(PUNCTUATION);
        let is_digit = |it: char| it.is_ascii_digit() || it == ',' || it == '.';
        if !bare.starts_with(|it: char| it.is_ascii_digit()) || !bare.chars().all(is_digit) {
            return None;
        }
        let places = bare.split_once('.').map_or(0, |(_, places)| places.len());
        Some(Figure {
            before,
            value: bare.replace(',', "").parse().ok()?,
            places,
            after: &number[bare.len()..],
        })
    }

    /// Digits that the number has before its point; of those below 1, fewer than none.
    fn magnitude(value: f64) -> i32 {
        match value > 0.0 {
            true => value.log10().floor() as i32 + 1,
            false => 1,
        }
    }

    fn rounded(&self) -> String {
        if self.value == 0.0 {
            return "0".to_owned();
        }
        let step = 10_f64.powi(Self::magnitude(self.value) - 3);
        let value = (self.value / step).round() * step;
        let places = usize::try_from(3 - Self::magnitude(value)).unwrap_or(0);
        decimal(value, places.min(self.places))
    }

    fn percent(&self) -> String {
        match self.value {
            nearly if (NEARLY_ALL..100.0).contains(&nearly) => decimal(nearly, self.places),
            _ => self.rounded(),
        }
    }

    /// With its unit, which changes where rounding does.
    fn time(&self, unit_ns: f64) -> String {
        let rounded = self.rounded();
        let value = rounded.replace(',', "").parse::<f64>();
        let ns = value.unwrap_or(self.value) * unit_ns;
        let text = match self.value < 1_000.0 {
            true => notation::latency(ns),
            false => return format!("{rounded} s"),
        };
        let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
        match Figure::parse(number) {
            Some(figure) if rounded.starts_with("1,000") => format!("{} {unit}", figure.rounded()),
            _ => format!("{rounded} {}", Self::unit(unit_ns)),
        }
    }

    fn unit(ns: f64) -> &'static str {
        let known = TIMES.iter().find(|(_, of)| *of == ns);
        known.map_or("", |(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_counts_stay_whole() {
        let cases = [
            ("60 of 2,060 queries got no response (2.91 %)", None),
            (
                "10.00 % of the responses were SERVFAIL (4,000)",
                Some("10.0 % of"),
            ),
            (
                "100.00 % of the queries offered at 20,000.0 qps",
                Some("100 % of"),
            ),
            (
                "at 23,914.3 qps, 1,839,534 qps",
                Some("at 23,900 qps, 1,840,000 qps"),
            ),
            ("(p99 10.00 us late)", Some("(p99 10.0 us late)")),
            (
                "lost 0.00 %, <0.01 %, >99.99 %, 99.97 %",
                Some("lost 0 %, <0.01 %, >99.99 %, 99.97"),
            ),
            (
                "mean latency 5.054 ms, 999.6 us, 600.0 s",
                Some("mean latency 5.05 ms, 1.00 ms, 600 s"),
            ),
            ("give throng --rate 1234.5 qps", None),
            ("BIND 9.18.33 at 192.0.2.1:53", None),
            ("~5.2 ms of 3.0 s, 0.66 %", None),
        ];
        for (text, expected) in cases {
            let rounded = round_figures(text);
            assert!(
                rounded.starts_with(expected.unwrap_or(text)),
                "{text}: {rounded}"
            );
        }
    }
}
