//! An existing Prometheus, asked once after the run for what it observed meanwhile: its samples are
//! as old as its own scrapes, which is said, and the step between them is the bound.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use measure::observation::{Observed, Recorder, Scrape, SeriesKind};
use serde_json::Value;

use crate::asked::Asked;
use crate::gap::Gap;
use crate::http::{Client, Url};
use crate::reading::RawSample;
use crate::stream::Allowance;

/// The step unless one is given: the scrape interval that most have.
const STEP: Duration = Duration::from_secs(15);
/// Steps that Prometheus gives at once, at most.
const STEPS_MAX: u64 = 11_000;

/// What is to be asked when the run is over.
pub(crate) struct QueryApi {
    client: Client,
    url: Url,
    queries: Vec<String>,
    step: Duration,
}

/// When the run was, on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The run's epoch by the wall clock.
    pub(crate) epoch: SystemTime,
    /// From and until when, nanoseconds after the epoch.
    pub(crate) from_ns: i64,
    pub(crate) until_ns: i64,
}

/// One step: seconds since 1970, and the values.
type Columns = std::collections::BTreeMap<u64, Vec<Observed>>;

impl QueryApi {
    pub(crate) fn new(client: Client, url: Url, asked: &Asked) -> Result<QueryApi, String> {
        let step = asked.period.unwrap_or(STEP);
        match step < Duration::from_secs(1) {
            true => Err("the step of a query is a second or more".to_owned()),
            false => Ok(QueryApi {
                client,
                url,
                queries: asked.queries.clone(),
                step,
            }),
        }
    }

    /// Asks for everything, and puts it on the run's clock.
    pub(crate) fn ask(&mut self, span: Span, allowance: &Allowance, recorder: &mut Recorder) {
        let text = format!(
            "as observed by the Prometheus that was asked, every {:?}",
            self.step
        );
        recorder.note(span.until_ns, text);
        let mut columns = Columns::new();
        let mut octets = 0;
        for query in self.queries.clone() {
            match self.ask_one(&query, span, allowance, &mut columns) {
                Ok(more) => octets += more,
                Err(gap) => recorder.note(span.until_ns, format!("`{query}`: {gap}")),
            }
        }
        let Ok(epoch) = span.epoch.duration_since(UNIX_EPOCH) else {
            return;
        };
        let bound_ns = self.step.as_nanos() as u64;
        for (at_ms, values) in columns {
            let scrape = Scrape {
                at_ns: (i128::from(at_ms) * 1_000_000 - epoch.as_nanos() as i128) as i64,
                bound_ns,
                // All came in one answer.
                octets: std::mem::take(&mut octets),
                number: 1,
                ..Scrape::default()
            };
            recorder.push(scrape, values);
        }
    }

    fn ask_one(
        &mut self,
        query: &str,
        span: Span,
        allowance: &Allowance,
        columns: &mut Columns,
    ) -> Result<u64, Gap> {
        let wall = |ns: i64| {
            let since = Duration::from_nanos(ns.unsigned_abs());
            let at = if ns < 0 {
                span.epoch - since
            } else {
                span.epoch + since
            };
            at.duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs_f64()
        };
        let (start, end) = (wall(span.from_ns), wall(span.until_ns));
        let step = self
            .step
            .as_secs_f64()
            .max(((end - start) / STEPS_MAX as f64).ceil());
        let parameters = format!(
            "query={}&start={start:.3}&end={end:.3}&step={step}",
            percent_encoded(query)
        );
        let url = self.url.below("/api/v1/query_range").with_query(parameters);
        let body = self.client.get(&url, allowance)?;
        parse(&body, query, columns).map_err(Gap::Malformed)?;
        Ok(body.len() as u64)
    }
}

/// Adds what a matrix has (the query API, version 1).
pub(crate) fn parse(body: &[u8], query: &str, columns: &mut Columns) -> Result<(), String> {
    let answer: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    if answer["status"] != "success" {
        let error = answer["error"].as_str().unwrap_or("no `status`");
        return Err(error.chars().take(200).collect());
    }
    let data = &answer["data"];
    let series = match (data["resultType"].as_str(), data["result"].as_array()) {
        (Some("matrix"), Some(series)) => series,
        _ => return Err("the result is not a matrix".to_owned()),
    };
    for each in series {
        let name = name_of(&each["metric"], query);
        let counts = name.contains("_total") && !query.contains('(');
        for pair in each["values"].as_array().into_iter().flatten() {
            let at = pair[0].as_f64().filter(|at| (0.0..1e11).contains(at));
            let at = at.ok_or("a sample has no instant")?;
            let value = pair[1].as_str().and_then(|text| text.parse().ok());
            let column = columns.entry((at * 1_000.0).round() as u64).or_default();
            column.push(Observed {
                name: name.clone(),
                unit: "1".to_owned(),
                kind: if counts {
                    SeriesKind::Counter
                } else {
                    SeriesKind::Gauge
                },
                value: value.ok_or("a sample has no value")?,
                is_stale: false,
            });
        }
    }
    Ok(())
}

/// The metric with its labels; of an expression without either, the expression.
fn name_of(metric: &Value, query: &str) -> String {
    let labels = metric.as_object().into_iter().flatten();
    let labels = labels.filter_map(|(name, value)| {
        let value = value.as_str().filter(|_| name != "__name__")?;
        Some((name.clone(), value.to_owned()))
    });
    let sample = RawSample {
        name: metric["__name__"].as_str().unwrap_or(query).to_owned(),
        labels: labels.collect(),
        ..RawSample::default()
    };
    sample.full_name()
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for octet in text.bytes() {
        match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                encoded.push(char::from(octet));
            }
            _ => encoded += &format!("%{octet:02X}"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_becomes_columns() {
        let body = br#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{"__name__":"up_total","job":"x"},"values":[[10,"1"],[25.5,"3"]]},
            {"metric":{},"values":[[10,"0.5"]]}]}}"#;
        let mut columns = Columns::new();
        parse(body, "q", &mut columns).unwrap();
        let instants: Vec<u64> = columns.keys().copied().collect();
        assert_eq!(instants, [10_000, 25_500]);
        let names: Vec<&str> = columns[&10_000].iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["up_total{job=\"x\"}", "q"]);
        assert_eq!(columns[&10_000][0].kind, SeriesKind::Counter);
    }

    #[test]
    fn what_is_no_matrix_is_refused() {
        for (body, what) in [
            ("", "EOF"),
            ("{}", "no `status`"),
            (r#"{"status":"error","error":"bad query"}"#, "bad query"),
            (
                r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#,
                "not a matrix",
            ),
            (
                r#"{"status":"success","data":{"resultType":"matrix",
                    "result":[{"metric":{},"values":[["x","1"]]}]}}"#,
                "no instant",
            ),
        ] {
            let error = parse(body.as_bytes(), "q", &mut Columns::new()).unwrap_err();
            assert!(error.contains(what), "{body}: {error}");
        }
        assert_eq!(percent_encoded("a{b=\"c\"}"), "a%7Bb%3D%22c%22%7D");
    }
}
