//! Text expositions of metrics: Prometheus 0.0.4 and OpenMetrics 1.0.
//!
//! Strict: one malformed line makes the whole malformed, because an exposition that was cut off or
//! garbled in one place is not to be believed in the others. Exemplars are read over, and so are
//! comments. Histograms and summaries are samples as any other.

use measure::observation::SeriesKind;

use crate::reading::{RawSample, Reading};

/// Most labels of a sample; more are an error.
const LABELS_MAX: usize = 64;

/// Reads the samples whose names `is_wanted`; the others are checked as far as their names.
///
/// # Errors
/// What is wrong, with the line.
pub fn parse(text: &str, is_wanted: impl Fn(&str) -> bool) -> Result<Reading, String> {
    let mut reading = Reading::default();
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line is cut off".to_owned());
    }
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_matches([' ', '\t', '\r']);
        if let Some(comment) = line.strip_prefix('#') {
            kind(comment, &mut reading);
            continue;
        }
        if line.is_empty() {
            continue;
        }
        match sample(line, &is_wanted) {
            Ok(Some(sample)) => reading.samples.push(sample),
            Ok(None) => {}
            Err(what) => return Err(format!("line {}: {what}", index + 1)),
        }
    }
    Ok(reading)
}

/// `# TYPE name counter`.
fn kind(comment: &str, reading: &mut Reading) {
    let mut words = comment.split_ascii_whitespace();
    let (Some("TYPE"), Some(name), Some(kind)) = (words.next(), words.next(), words.next()) else {
        return;
    };
    let mut say = |name: String, kind| {
        reading.kinds.insert(name, kind);
    };
    match kind {
        "counter" => {
            // OpenMetrics names the family, its sample has `_total` behind it.
            say(format!("{name}_total"), SeriesKind::Counter);
            say(name.to_owned(), SeriesKind::Counter);
        }
        "histogram" | "summary" => {
            for part in ["_bucket", "_count", "_sum"] {
                say(format!("{name}{part}"), SeriesKind::Counter);
            }
        }
        _ => say(name.to_owned(), SeriesKind::Gauge),
    }
}

/// One line that is neither empty nor a comment.
fn sample(line: &str, is_wanted: impl Fn(&str) -> bool) -> Result<Option<RawSample>, String> {
    let name_octets = line.find(|c: char| !is_of_name(c)).unwrap_or(line.len());
    let (name, rest) = line.split_at(name_octets);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("it does not begin with a name".to_owned());
    }
    if !is_wanted(name) {
        return Ok(None);
    }
    let mut labels = Vec::new();
    let rest = rest.trim_start_matches([' ', '\t']);
    let rest = match rest.strip_prefix('{') {
        Some(rest) => read_labels(rest, &mut labels)?,
        None => rest,
    };
    // What is behind `#` is an exemplar (OpenMetrics, section 3.3).
    let rest = rest.split('#').next().unwrap_or_default();
    let mut words = rest.split_ascii_whitespace();
    let value = words.next().ok_or("there is no value")?;
    let value = number(value).ok_or_else(|| format!("`{}` is not a number", shown(value)))?;
    let taken_s = words.next().map(instant).transpose()?;
    match words.next() {
        Some(_) => Err("there is more than a value and an instant".to_owned()),
        None => Ok(Some(RawSample {
            name: name.to_owned(),
            labels,
            value,
            taken_s,
        })),
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// Labels from behind the opening brace; returns what is behind the closing one.
fn read_labels<'a>(
    mut rest: &'a str,
    labels: &mut Vec<(String, String)>,
) -> Result<&'a str, String> {
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if let Some(behind) = rest.strip_prefix('}') {
            return Ok(behind);
        }
        let (name, behind) = rest.split_once('=').ok_or("its labels do not end")?;
        let name = name.trim_matches([' ', '\t']);
        if name.is_empty() || !name.chars().all(is_of_name) {
            return Err(format!("`{}` is not the name of a label", shown(name)));
        }
        let behind = behind.trim_start_matches([' ', '\t']);
        let behind = behind.strip_prefix('"').ok_or("a label has no quotes")?;
        let (value, behind) = quoted(behind)?;
        if labels.len() == LABELS_MAX {
            return Err(format!("it has more than {LABELS_MAX} labels"));
        }
        labels.push((name.to_owned(), value));
        rest = behind;
    }
}

/// A value from behind its opening quotes, and what is behind the closing ones.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, c @ ('\\' | '"'))) => value.push(c),
                Some((_, c)) => value.extend(['\\', c]),
                None => break,
            },
            c => value.push(c),
        }
    }
    Err("a label's value does not end".to_owned())
}

/// A number as Go writes it.
fn number(word: &str) -> Option<f64> {
    // Rust reads more names of infinity than there are in expositions; they mean the same.
    word.parse().ok()
}

/// An instant: milliseconds in the text of Prometheus, seconds with a fraction in OpenMetrics.
fn instant(word: &str) -> Result<f64, String> {
    let number = number(word).filter(|number| number.is_finite());
    let number = number.ok_or_else(|| format!("`{}` is not an instant", shown(word)))?;
    // Milliseconds since 1970 are beyond this from April 1970 on, seconds until the year 2286.
    const SECONDS_MAX: f64 = 1e10;
    Ok(match number.abs() < SECONDS_MAX {
        true => number,
        false => number / 1_000.0,
    })
}

/// So much of what is wrong as fits into a line.
fn shown(word: &str) -> String {
    word.chars()
        .take(40)
        .collect::<String>()
        .escape_debug()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str) -> Result<Reading, String> {
        parse(text, |_| true)
    }

    #[test]
    fn samples_have_names_labels_values_and_instants() {
        let text = "# HELP a_total counts \\n things\n# TYPE a_total counter\n\
            a_total{x=\"1\",y=\"a\\\\b\\\"c\\nd\",} 1.5e3 1395066363000\n\
            \n  b +Inf\nc{} NaN\r\nd{le=\"0.1\"} 3 # {trace=\"x\"} 0.5 1.0\n# EOF\n";
        let reading = all(text).unwrap();
        let [a, b, c, d] = reading.samples.as_slice() else {
            panic!("{reading:?}");
        };
        assert_eq!(
            (a.label("x"), a.label("y")),
            (Some("1"), Some("a\\b\"c\nd"))
        );
        assert_eq!((a.value, a.taken_s), (1_500.0, Some(1_395_066_363.0)));
        assert_eq!(a.full_name(), "a_total{x=\"1\",y=\"a\\\\b\\\"c\\nd\"}");
        assert_eq!((b.value, d.value), (f64::INFINITY, 3.0));
        assert!(c.value.is_nan());
        assert_eq!(reading.kinds["a_total"], SeriesKind::Counter);
    }

    #[test]
    fn families_of_openmetrics_and_parts_of_histograms_are_counters() {
        let reading = all("# TYPE q counter\n# TYPE h histogram\n# TYPE g gauge\n").unwrap();
        for name in ["q_total", "h_bucket", "h_count", "h_sum"] {
            assert_eq!(reading.kinds[name], SeriesKind::Counter, "{name}");
        }
        assert_eq!(reading.kinds["g"], SeriesKind::Gauge);
    }

    #[test]
    fn what_is_malformed_is_refused_with_its_line() {
        for (text, what) in [
            ("a 1\nb\n", "line 2: there is no value"),
            ("a 1\nb 2", "the last line is cut off"),
            ("9a 1\n", "line 1: it does not begin with a name"),
            ("<html>\n", "line 1: it does not begin with a name"),
            ("a{x=1} 1\n", "line 1: a label has no quotes"),
            ("a{x=\"1} 1\n", "line 1: a label's value does not end"),
            ("a{x} 1\n", "line 1: its labels do not end"),
            (
                "a{\"x\"=\"1\"} 1\n",
                "line 1: `\\\"x\\\"` is not the name of a label",
            ),
            ("a one\n", "line 1: `one` is not a number"),
            ("a 1 now\n", "line 1: `now` is not an instant"),
            (
                "a 1 2 3\n",
                "line 1: there is more than a value and an instant",
            ),
        ] {
            assert_eq!(all(text), Err(what.to_owned()), "{text:?}");
        }
        let labels = (0..=LABELS_MAX)
            .map(|it| format!("l{it}=\"\","))
            .collect::<String>();
        let error = all(&format!("a{{{labels}}} 1\n")).unwrap_err();
        assert!(error.contains("more than 64 labels"), "{error}");
    }

    #[test]
    fn names_that_are_not_wanted_cost_nothing() {
        let reading = parse("a 1\nb{ 2\n", |name| name == "a").unwrap();
        assert_eq!(reading.samples, [RawSample::plain("a", 1.0)]);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[ab{}=\",\\\\# 0-9.\n\t\u{e9}]{0,200}") {
            let _ = all(&text);
        }

        #[test]
        fn what_is_written_is_read_again(
            name in "[a-z_:][a-z0-9_:]{0,8}",
            labels in proptest::collection::vec(("[a-z]{1,5}", "\\PC{0,8}|[\\\\\"\n]{0,4}"), 0..4),
            value in proptest::num::f64::NORMAL | proptest::num::f64::ZERO,
        ) {
            let labels = labels.into_iter().map(|(name, value)| (name, value.replace('\r', "")));
            let sample = RawSample { name, labels: labels.collect(), value, taken_s: None };
            let text = format!("{} {value:?}\n", sample.full_name());
            prop_assert_eq!(all(&text).unwrap().samples, vec![sample]);
        }
    }
}
