//! How conditions are written: `metric operator number unit`, `metric[part] operator number unit`,
//! `slower` or `metric slower`.

use super::{Better, Bound, ConditionError, Criterion, Metric, Operator, Unit};

/// Units of a metric with their size in its own.
const TIMES: [(&str, f64); 5] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
];
const RATES: [(&str, f64); 4] = [("", 1.0), ("k", 1e3), ("M", 1e6), ("qps", 1.0)];
const COUNTS: [(&str, f64); 3] = [("", 1.0), ("k", 1e3), ("M", 1e6)];
const RATIOS: [(&str, f64); 1] = [("", 1.0)];
const SECONDS: [(&str, f64); 3] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0)];

/// Reads a condition from left to right.
struct Reader<'a> {
    text: &'a str,
    /// Where the rest begins, in bytes.
    at: usize,
}

/// What a condition says, and the part of the run that it is about.
pub(super) fn criterion(text: &str) -> Result<(Criterion, Option<String>), ConditionError> {
    let mut reader = Reader { text, at: 0 };
    let first = reader.word();
    if first.1 == "slower" {
        return reader.end((Criterion::Slower(None), None));
    }
    let metric = reader.metric(first)?;
    let part = reader.part(metric)?;
    if reader.peek("slower") {
        let (at, _) = reader.word();
        if metric.better() == Better::Neither {
            let what = format!("neither more nor less of {} is slower", metric.name());
            return Err(reader.error(at, &what, "give a number, as in '< -5%'"));
        }
        return reader.end((Criterion::Slower(Some(metric)), part));
    }
    let operator = reader.operator(metric)?;
    let bound = reader.bound(metric)?;
    let criterion = Criterion::Bounded {
        metric,
        operator,
        bound,
    };
    reader.end((criterion, part))
}

/// The time behind the word `for`, which begins at byte `at`, in nanoseconds.
pub(super) fn hold(text: &str, at: usize) -> Result<u64, ConditionError> {
    const HINT: &str = "a time with its unit, as in 'p99 > 50ms for 5s'";
    let mut reader = Reader {
        text,
        at: at + "for".len(),
    };
    let (start, digits) = reader.take(|letter| letter.is_ascii_digit() || letter == '.');
    let number: Result<f64, _> = digits.parse();
    let Ok(number) = number else {
        return Err(reader.error(start, "no time after `for`", HINT));
    };
    let (unit_at, unit) = reader.take(|letter| !letter.is_whitespace());
    let size = TIMES.iter().find(|(name, _)| *name == unit);
    let Some((_, size)) = size else {
        let what = match unit {
            "" => "no unit after the time".to_owned(),
            unit => format!("unknown unit `{unit}`"),
        };
        return Err(reader.error(unit_at, &what, "times are in ns, us, ms, s or m"));
    };
    // Beyond the range of the type it saturates.
    match (number * size) as u64 {
        0 => {
            let hint = "give a time above 0, or leave `for` out: one interval is enough then";
            Err(reader.error(start, "the time is 0", hint))
        }
        ns => reader.end(ns),
    }
}

impl<'a> Reader<'a> {
    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// The longest row of characters that `belongs`, after blanks, and where it begins.
    fn take(&mut self, belongs: impl Fn(char) -> bool) -> (usize, &'a str) {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let end = rest.find(|letter| !belongs(letter)).unwrap_or(rest.len());
        let start = self.at;
        self.at += end;
        (start, &rest[..end])
    }

    fn word(&mut self) -> (usize, &'a str) {
        self.take(|letter| letter.is_alphanumeric() || letter == '.' || letter == '_')
    }

    fn peek(&mut self, word: &str) -> bool {
        self.skip_blanks();
        self.text[self.at..].trim_end() == word
    }

    fn metric(&self, (start, name): (usize, &str)) -> Result<Metric, ConditionError> {
        Metric::named(name)
            .or_else(|| rcode_share(name))
            .ok_or_else(|| {
                let what = match name {
                    "" => "not a metric".to_owned(),
                    name => format!("unknown metric `{name}`"),
                };
                self.error(start, &what, &format!("metrics are {}", Metric::names()))
            })
    }

    /// The name in brackets behind the metric, if there are any.
    fn part(&mut self, metric: Metric) -> Result<Option<String>, ConditionError> {
        self.skip_blanks();
        let start = self.at;
        let Some(rest) = self.text[start..].strip_prefix('[') else {
            return Ok(None);
        };
        let name = rest.split_once(']').map(|(name, _)| name);
        match name.filter(|name| !name.trim().is_empty()) {
            Some(name) => {
                self.at += name.len() + 2;
                Ok(Some(name.trim().to_owned()))
            }
            None => {
                let hint = format!(
                    "a group of clients or a transport, as in '{}'",
                    example(metric).replacen(' ', "[dot] ", 1)
                );
                Err(self.error(start, "no name in brackets", &hint))
            }
        }
    }

    fn operator(&mut self, metric: Metric) -> Result<Operator, ConditionError> {
        let (start, found) = self.take(|letter| "<>=!".contains(letter));
        match found {
            "<" => Ok(Operator::Less),
            "<=" => Ok(Operator::LessOrEqual),
            ">" => Ok(Operator::Greater),
            ">=" => Ok(Operator::GreaterOrEqual),
            _ => {
                let what = match found {
                    "" => "no comparison after the metric".to_owned(),
                    found => format!("`{found}` is not a comparison"),
                };
                let hint = format!("<, <=, > or >=, as in '{}'", example(metric));
                Err(self.error(start, &what, &hint))
            }
        }
    }

    fn bound(&mut self, metric: Metric) -> Result<Bound, ConditionError> {
        let (start, sign) = self.take(|letter| letter == '+' || letter == '-');
        let digits = self.take(|letter| letter.is_ascii_digit() || letter == '.' || letter == '_');
        let number: Result<f64, _> = digits.1.replace('_', "").parse();
        let (true, Ok(number)) = (sign.len() < 2, number) else {
            let hint = format!("a number with its unit, as in '{}'", example(metric));
            return Err(self.error(start, "no number", &hint));
        };
        let (at, unit) = self.take(|letter| !letter.is_whitespace());
        let number = match sign {
            "-" => -number,
            _ => number,
        };
        let is_change = !sign.is_empty();
        if unit == "%" && (is_change || metric.unit() == Unit::Share) {
            let share = number / 100.0;
            return Ok(match is_change {
                true => Bound::Change(share),
                false => Bound::Value(share),
            });
        }
        let value = number * self.size_of_unit(metric, at, unit)?;
        Ok(match is_change {
            true => Bound::Difference(value),
            false => Bound::Value(value),
        })
    }

    fn size_of_unit(&self, metric: Metric, at: usize, unit: &str) -> Result<f64, ConditionError> {
        let units: &[(&str, f64)] = match metric.unit() {
            Unit::PerSecond => &RATES,
            Unit::Nanoseconds => &TIMES,
            Unit::Seconds => &SECONDS,
            Unit::Times => &RATIOS,
            Unit::Count | Unit::Octets | Unit::Number => &COUNTS,
            Unit::Share => &[],
        };
        let known = units.iter().find(|(name, _)| *name == unit);
        known.map(|(_, size)| *size).ok_or_else(|| {
            let what = match unit {
                "" => "no unit after the number".to_owned(),
                "%" => "% without a sign, for a metric that is not a share".to_owned(),
                unit => format!("unknown unit `{unit}`"),
            };
            let hint = match metric.unit() {
                Unit::PerSecond => "rates are 50000, 50k or 1.5M; changes are +10% or -500",
                Unit::Nanoseconds => "times are in ns, us, ms, s or m; changes are +10% or +1ms",
                Unit::Seconds => "times are in ms, s or m; changes are +10% or +1s",
                Unit::Times => "ratios are 1.1 or 0.5; changes are +10% or -0.2",
                Unit::Count | Unit::Octets | Unit::Number => {
                    "numbers are 100, 50k or 1.5M; changes are +10% or -500"
                }
                Unit::Share => "shares are in %, as 0.01%",
            };
            self.error(at, &what, hint)
        })
    }

    fn end<T>(mut self, read: T) -> Result<T, ConditionError> {
        self.skip_blanks();
        match &self.text[self.at..] {
            "" => Ok(read),
            rest => {
                let what = format!("`{}` after the end of the condition", rest.trim_end());
                let hint = "one condition a flag; give the flag again for the next";
                Err(self.error(self.at, &what, hint))
            }
        }
    }

    fn error(&self, at: usize, what: &str, hint: &str) -> ConditionError {
        let column = self.text[..at].chars().count() + 1;
        ConditionError {
            what: format!("`{}`, column {column}: {what}", self.text),
            hint: hint.to_owned(),
        }
    }
}

/// The share of an RCODE, by its mnemonic in capital or small letters, with or without `rcode.`.
fn rcode_share(name: &str) -> Option<Metric> {
    let name = name.to_ascii_lowercase();
    let mnemonic = name.strip_prefix("rcode.").unwrap_or(&name);
    Metric::named(&format!("rcode.{mnemonic}"))
}

/// A condition on the metric that makes sense.
fn example(metric: Metric) -> String {
    let bound = match metric.unit() {
        Unit::PerSecond => "< 50k",
        Unit::Share => "> 0.1%",
        Unit::Nanoseconds => "> 5ms",
        Unit::Seconds => "> 5s",
        Unit::Times => "> 1.1",
        Unit::Count | Unit::Octets | Unit::Number => "> 100",
    };
    format!("{} {bound}", metric.name())
}
