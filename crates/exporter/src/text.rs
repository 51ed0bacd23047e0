//! The text formats: Prometheus 0.0.4 and OpenMetrics 1.0.0. Both have classic histograms only.

use std::fmt::Write;

use crate::buckets::{BOUNDS_NS, Buckets};
use crate::family::{Family, Kind, Label, Value};
use crate::format::Format;

const NS_PER_SECOND: f64 = 1e9;

/// All families as text.
pub(crate) fn encode(families: &[Family], format: Format) -> String {
    let mut text = String::new();
    for family in families {
        write_header(&mut text, family, format);
        let name = family.sample_name();
        for sample in &family.samples {
            match &sample.value {
                Value::Histogram(buckets) => {
                    write_histogram(&mut text, family.name, &sample.labels, buckets);
                }
                value => write_sample(&mut text, &name, &sample.labels, None, value),
            }
        }
    }
    if format == Format::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn write_header(text: &mut String, family: &Family, format: Format) {
    let (name, kind) = match (format, family.kind) {
        (Format::OpenMetrics, Kind::Counter) => (family.name.to_owned(), "counter"),
        (_, Kind::Counter) => (family.sample_name(), "counter"),
        (_, Kind::Gauge) => (family.name.to_owned(), "gauge"),
        (_, Kind::Histogram) => (family.name.to_owned(), "histogram"),
    };
    push(text, format_args!("# HELP {name} {}\n", family.help));
    push(text, format_args!("# TYPE {name} {kind}\n"));
    if format == Format::OpenMetrics
        && let Some(unit) = family.unit()
    {
        push(text, format_args!("# UNIT {name} {unit}\n"));
    }
}

fn write_histogram(text: &mut String, name: &str, labels: &[Label], buckets: &Buckets) {
    let bucket = format!("{name}_bucket");
    for (bound, below) in BOUNDS_NS.into_iter().zip(buckets.classic) {
        let bound = format!("{:?}", bound as f64 / NS_PER_SECOND);
        write_sample(text, &bucket, labels, Some(&bound), &Value::Count(below));
    }
    let count = Value::Count(buckets.count);
    write_sample(text, &bucket, labels, Some("+Inf"), &count);
    let sum = Value::Real(buckets.sum_seconds);
    write_sample(text, &format!("{name}_sum"), labels, None, &sum);
    write_sample(text, &format!("{name}_count"), labels, None, &count);
}

fn write_sample(
    text: &mut String,
    name: &str,
    labels: &[Label],
    bound: Option<&str>,
    value: &Value,
) {
    text.push_str(name);
    let labels = labels.iter().map(|(name, value)| (*name, value.as_str()));
    let all = labels.chain(bound.map(|bound| ("le", bound)));
    let mut mark = '{';
    for (name, value) in all {
        push(text, format_args!("{mark}{name}=\"{}\"", escaped(value)));
        mark = ',';
    }
    if mark == ',' {
        text.push('}');
    }
    match value {
        Value::Count(count) => push(text, format_args!(" {count}\n")),
        Value::Real(number) => push(text, format_args!(" {}\n", real(*number))),
        Value::Histogram(_) => unreachable!("histograms are written by their buckets"),
    }
}

fn push(text: &mut String, words: std::fmt::Arguments<'_>) {
    text.write_fmt(words).expect("a String takes all");
}

fn real(number: f64) -> String {
    match number {
        _ if number.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        // The shortest that is read as the same number.
        _ => format!("{number:?}"),
    }
}

/// A label's value between quotation marks.
fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(kind: Kind) -> Family {
        Family::new("throng_x_seconds", "What it is.", kind)
    }

    #[test]
    fn counters_end_in_total_and_open_metrics_has_units_and_an_end() {
        let label = vec![("group", "a\\b\"c\nd".to_owned())];
        let families = [family(Kind::Counter).with(label, Value::Count(3))];
        let sample = "throng_x_seconds_total{group=\"a\\\\b\\\"c\\nd\"} 3\n";
        assert_eq!(
            encode(&families, Format::Text),
            format!(
                "# HELP throng_x_seconds_total What it is.\n\
                 # TYPE throng_x_seconds_total counter\n{sample}"
            )
        );
        assert_eq!(
            encode(&families, Format::OpenMetrics),
            format!(
                "# HELP throng_x_seconds What it is.\n\
                 # TYPE throng_x_seconds counter\n\
                 # UNIT throng_x_seconds seconds\n{sample}# EOF\n"
            )
        );
    }

    #[test]
    fn numbers_that_are_none_are_written_as_prometheus_reads_them() {
        let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, 1e-9];
        let values = values.map(Value::Real);
        let family = values
            .into_iter()
            .fold(family(Kind::Gauge), |family, value| {
                family.with(Vec::new(), value)
            });
        let text = encode(&[family], Format::Text);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        let expected = ["NaN", "+Inf", "-Inf", "1.5", "1e-9"];
        assert_eq!(lines, expected.map(|it| format!("throng_x_seconds {it}")));
    }
}
