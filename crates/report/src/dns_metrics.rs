//! A run in the metrics schema of DNS-OARC (github.com/DNS-OARC/dns-metrics, of 30 May 2024), which
//! kxdpgun writes too: lines of JSON, a header, an object for each interval and their sum.
//!
//! Times are nanoseconds. Latency counts from the instant of sending, as in the other tools that
//! write this; `interrupted` are queries that were sent and ended with their connection or stream,
//! `discarded` those that were never sent. What has no place in the schema is in `additional_info`.

use jiff::Timestamp;
use measure::{ConnectionTimes, Histogram, Interval, RunRecord, Transport, Transports};
use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// The version of the schema, as it writes itself.
const SCHEMA_VERSION: u32 = 20_240_530;

/// The run as lines of JSON.
///
/// # Errors
/// The instant at which the run started is none; names it.
pub fn render(record: &RunRecord) -> Result<String, String> {
    let started_at: Timestamp = record
        .started_at
        .parse()
        .map_err(|_| format!("`started_at` is not an instant: {}", record.started_at))?;
    let phases = &record.phases;
    let start_ns =
        started_at.as_nanosecond() + i128::from(phases.connect_ns) + i128::from(phases.warmup_ns);
    let run_id = format!("{}-{}", record.started_at, record.scenario.seed);
    let mut lines = vec![header(record, &run_id)];
    for interval in &record.intervals {
        lines.push(stats(
            record,
            interval,
            (&run_id, "stats_periodic", start_ns),
        ));
    }
    lines.push(stats(
        record,
        &record.total,
        (&run_id, "stats_sum", start_ns),
    ));
    let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    Ok(lines.concat())
}

fn header(record: &RunRecord, run_id: &str) -> Value {
    let scenario = &record.scenario;
    let parameters = crate::text::scenario_facts(record).into_iter();
    let parameters: Vec<String> = parameters
        .map(|(name, words)| format!("{name}: {words}"))
        .collect();
    json!({
        "runid": run_id,
        "type": "header",
        "schema_version": SCHEMA_VERSION,
        "generator": "throng",
        "generator_version": record.throng_version,
        "generator_params": parameters,
        "time_units_per_sec": 1_000_000_000,
        "stats_interval": record.interval_ns() as f64 / 1e9,
        "timeout": scenario.timeout_ns as f64 / 1e9,
        "additional_info": {
            "target": scenario.target,
            "transport": scenario.transport.to_string(),
            "limit": record.verdict.limit.name(),
            "evidence": record.verdict.evidence,
        },
    })
}

fn stats(record: &RunRecord, interval: &Interval, of: (&str, &str, i128)) -> Value {
    let (run_id, kind, start_ns) = of;
    let counts = &interval.counts;
    let instant = |ns: u64| {
        let ns = start_ns + i128::from(ns);
        i64::try_from(ns).map_or(Value::Null, Value::from)
    };
    let rcodes = counts.rcodes.named();
    let rcodes: Map<String, Value> = rcodes
        .map(|(name, number)| (name.to_owned(), Value::from(number)))
        .collect();
    json!({
        "runid": run_id,
        "type": kind,
        "since": instant(interval.start_ns),
        "until": instant(interval.end_ns),
        "queries": counts.sent,
        "responses": counts.responses,
        "timeouts": counts.timeouts,
        "interrupted":
            counts.connection_losses + counts.exchange_failures.total() + counts.interrupted,
        "unexpected": counts.unexpected.total() + counts.late + counts.duplicate,
        "discarded": counts.not_sent.total(),
        "response_rcodes": rcodes,
        "response_latency": latency(&interval.distributions.service),
        "conn_info": connections(record, interval, kind == "stats_sum"),
    })
}

/// What the schema keeps of a distribution; without values nothing.
fn latency(values: &Histogram) -> Value {
    let buckets = values.buckets();
    let buckets: Vec<[u64; 3]> = buckets
        .map(|(low, high, count)| [low, high, count])
        .collect();
    let (Some(min), Some(max), Some(mean)) = (values.min_ns(), values.max_ns(), values.mean_ns())
    else {
        return json!({});
    };
    json!({
        "avg": mean.round() as u64,
        "min": min,
        "max": max,
        "stddev": values.stddev_ns().unwrap_or(0.0).round() as u64,
        "buckets": buckets,
    })
}

fn connections(record: &RunRecord, interval: &Interval, is_sum: bool) -> Value {
    let counts = &interval.counts.connections;
    let transport = record.scenario.transport;
    let has_handshakes = record.scenario.has_handshakes();
    let kind = match transport {
        Transports::One(Transport::Udp) => "udp",
        _ if transport.is_quic() => "quic_conn",
        _ if has_handshakes => "tls_conn",
        _ => "tcp",
    };
    let mut info = json!({ "type": kind });
    // Datagrams are counted for the run alone.
    if is_sum && transport == Transport::Udp {
        info["packets_sent"] = record.network.datagrams_sent.into();
        info["packets_received"] = record.network.datagrams_received.into();
    }
    if transport.has_connections() {
        info["handshakes"] = counts.usable(has_handshakes).into();
        info["handshakes_failed"] = counts.failed.total().into();
        info["latency"] =
            json!({ "handshake": latency(&set_up(&interval.distributions.connections)) });
    }
    if has_handshakes {
        info["resumption"] = json!({ "established": counts.handshakes.resumed });
    }
    info
}

/// Handshakes of whatever kind, or TCP's where there is nothing above it.
fn set_up(times: &ConnectionTimes) -> Histogram {
    let [tcp, handshakes @ ..] = times.steps();
    let mut all = Histogram::on_demand();
    handshakes.iter().for_each(|(_, values)| all.merge(values));
    match all.is_empty() {
        true => tcp.1.clone(),
        false => all,
    }
}
