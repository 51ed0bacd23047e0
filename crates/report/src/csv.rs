//! The run record as CSV (RFC 4180): one row per interval and a last row named `total`.
//!
//! Every column names its unit; [`COLUMNS`] says what each holds. Decimal point, no thousands
//! separators, empty where there is no value (a percentile of no responses). The rates of an
//! interval are over its length, those of the total over the measured window: responses that came
//! in the drain are counted in the total, and not in its rate. Of a record that was merged by force
//! the last row is named `total, merged by force`: its rates never were.

use std::borrow::Cow;

use measure::counts::Connections;
use measure::{
    ClientExperience, ConnectionTimes, Counts, Histogram, Interval, RunRecord, ScenarioRecord,
    SteadyState,
};

/// Name and meaning of every column, in order.
pub const COLUMNS: [(&str, &str); 75] = [
    ("interval", "position from 0, or `total`"),
    (
        "start_s",
        "start, seconds since the start of the measured run",
    ),
    ("end_s", "end, seconds since the same instant"),
    ("offered_queries", "queries scheduled"),
    ("offered_qps", "queries scheduled a second"),
    ("sent_queries", "queries handed to the network"),
    ("sent_qps", "queries handed to the network a second"),
    ("responses", "responses that match a query"),
    ("achieved_qps", "responses a second"),
    (
        "goodput_responses",
        "whole responses with an RCODE of the goodput set",
    ),
    ("timeouts", "queries without response within the time-out"),
    ("connection_losses", "queries lost with their connection"),
    (
        "exchange_failures",
        "queries that HTTP or their stream ended without a DNS message",
    ),
    ("not_sent", "queries scheduled and never sent"),
    ("noerror_responses", "responses with RCODE NOERROR"),
    (
        "nodata_responses",
        "of these, without a record of the type asked for",
    ),
    ("nxdomain_responses", "responses with RCODE NXDOMAIN"),
    ("servfail_responses", "responses with RCODE SERVFAIL"),
    ("refused_responses", "responses with RCODE REFUSED"),
    ("other_responses", "responses with any other RCODE"),
    ("truncated_responses", "responses with the TC bit"),
    ("late_responses", "responses to queries that had timed out"),
    ("duplicate_responses", "further responses to one query"),
    (
        "unexpected_messages",
        "messages received that match no query",
    ),
    ("sent_octets", "octets of queries, without framing"),
    ("received_octets", "octets of responses, without framing"),
    (
        "retransmitted",
        "messages sent beside the first one of each query, by clients that ask again",
    ),
    (
        "responses_attempt_2",
        "responses that came when the query had been sent twice",
    ),
    ("responses_attempt_3", "three times"),
    ("responses_attempt_4_up", "more often"),
    ("failovers", "times that a client went on to another server"),
    ("in_flight_mean_queries", "mean number of queries in flight"),
    ("connections_attempted", "attempts to connect"),
    ("connections_opened", "connections that became usable"),
    ("connections_failed", "attempts that never became usable"),
    (
        "connections_open",
        "usable connections at the end; in the total: the most of any interval",
    ),
    (
        "connections_open_max",
        "the most that were usable at one time, of each worker",
    ),
    (
        "connections_active",
        "connections that carried a query; in the total: the most",
    ),
    ("connections_ended", "usable connections that ended"),
    (
        "handshakes_full",
        "TLS or QUIC handshakes with a certificate",
    ),
    ("handshakes_resumed", "TLS or QUIC handshakes of a session"),
    (
        "early_data_accepted",
        "connections whose early data was accepted",
    ),
    (
        "early_data_rejected",
        "connections whose early data was rejected",
    ),
    (
        "handshake_octets",
        "octets of handshakes, sent and received",
    ),
    ("cpu_s", "CPU time of all workers, seconds"),
    (
        "latency_min_us",
        "shortest latency from the scheduled instant",
    ),
    ("latency_mean_us", "mean latency from the scheduled instant"),
    ("latency_stddev_us", "its standard deviation"),
    ("latency_p50_us", "its median"),
    ("latency_p90_us", "its 90th percentile"),
    ("latency_p95_us", "its 95th percentile"),
    ("latency_p99_us", "its 99th percentile"),
    ("latency_p99_9_us", "its 99.9th percentile"),
    (
        "latency_max_us",
        "longest latency from the scheduled instant",
    ),
    (
        "service_mean_us",
        "mean latency from the instant of sending",
    ),
    ("service_p50_us", "its median"),
    ("service_p99_us", "its 99th percentile"),
    (
        "send_lateness_p99_us",
        "99th percentile of the time by which queries left late",
    ),
    (
        "generator_wait_p50_us",
        "median from the scheduled instant until the query left; with --timestamps",
    ),
    ("generator_wait_p99_us", "its 99th percentile"),
    (
        "network_p50_us",
        "median from there until the response arrived: wire and server",
    ),
    ("network_p99_us", "its 99th percentile"),
    (
        "reader_wait_p50_us",
        "median from there until the response was read",
    ),
    ("reader_wait_p99_us", "its 99th percentile"),
    (
        "stamps_missing",
        "responses of which timestamps do not tell that",
    ),
    ("tcp_connect_p50_us", "median of TCP set-up"),
    (
        "handshake_full_p50_us",
        "median of full TLS or QUIC handshakes",
    ),
    (
        "handshake_resumed_p50_us",
        "median of resumed TLS or QUIC handshakes",
    ),
    (
        "first_query_p50_us",
        "median service time of the first query of each connection",
    ),
    (
        "clients_p50_p99_us",
        "over clients, the 99th percentile of each client's own median; in the total only",
    ),
    (
        "clients_p99_p50_us",
        "over clients, the median of each client's own 99th percentile; in the total only",
    ),
    (
        "clients_p99_p99_us",
        "over clients, the 99th percentile of each client's own 99th percentile; in the total only",
    ),
    (
        "clients_fairness",
        "Jain's index of the responses to each client, up to 1; in the total only",
    ),
    (
        "responder_accepts_failed",
        "times that the responder of a self-test could not accept a connection; in the total only",
    ),
    (
        "part",
        "beginning, sustained or drain; empty where there are too few intervals to tell",
    ),
];

/// Rates and means, which intervals and total take over different times.
struct Rates {
    offered_qps: f64,
    sent_qps: f64,
    achieved_qps: f64,
    in_flight: f64,
}

/// The record as CSV with a header line; lines end in CR LF as RFC 4180 says.
pub fn render(record: &RunRecord) -> String {
    let names: Vec<String> = COLUMNS.iter().map(|(name, _)| name.to_string()).collect();
    let mut csv = String::new();
    push_row(&mut csv, &names);
    let scenario = &record.scenario;
    let course = SteadyState::in_record(record);
    for (index, interval) in record.intervals.iter().enumerate() {
        let rates = Rates {
            offered_qps: interval.per_second(interval.counts.offered),
            sent_qps: interval.per_second(interval.counts.sent),
            achieved_qps: interval.per_second(interval.counts.responses),
            in_flight: interval.mean_in_flight(),
        };
        let mut row = cells(&index.to_string(), interval, &rates, scenario);
        row.extend(client_cells(None));
        row.extend([
            String::new(),
            part(record, course.as_ref(), interval).into(),
        ]);
        push_row(&mut csv, &row);
    }
    let rates = Rates {
        offered_qps: record.offered_qps(),
        sent_qps: record.sent_qps(),
        achieved_qps: record.achieved_qps(),
        in_flight: record.mean_in_flight(),
    };
    let name = match record.merged_by_force.is_empty() {
        true => "total",
        false => "total, merged by force",
    };
    let mut row = cells(name, &record.total, &rates, scenario);
    row.extend(client_cells(record.experience()));
    let responder = record.responder.map(|it| it.accepts_failed.to_string());
    row.extend([responder.unwrap_or_default(), String::new()]);
    push_row(&mut csv, &row);
    csv
}

/// Which part of the run an interval belongs to.
fn part(record: &RunRecord, course: Option<&SteadyState>, interval: &Interval) -> &'static str {
    match course.and_then(|course| course.sustained.as_ref()) {
        _ if interval.start_ns >= record.measured_ns => "drain",
        Some(sustained) if interval.start_ns < sustained.start_ns => "beginning",
        Some(_) => "sustained",
        None => "",
    }
}

/// What clients experienced, where that is known.
fn client_cells(experience: Option<ClientExperience>) -> [String; 4] {
    let Some(experience) = experience else {
        return std::array::from_fn(|_| String::new());
    };
    let (p50, p99) = (&experience.latency.p50, &experience.latency.p99);
    let fairness = experience.fairness();
    [
        percentile_us(p50, 0.99),
        percentile_us(p99, 0.5),
        percentile_us(p99, 0.99),
        fairness.map_or_else(String::new, |index| format!("{index:.6}")),
    ]
}

/// No cell ever holds a comma, a quote or a line break, so none needs quoting.
fn push_row(csv: &mut String, cells: &[String]) {
    csv.push_str(&cells.join(","));
    csv.push_str("\r\n");
}

/// The cells of one row, in the order of [`COLUMNS`].
fn cells(name: &str, interval: &Interval, rates: &Rates, scenario: &ScenarioRecord) -> Vec<String> {
    let counts = &interval.counts;
    let distributions = &interval.distributions;
    let (latency, service) = (&distributions.latency, &distributions.service);
    let mut cells = vec![
        name.to_string(),
        seconds(interval.start_ns),
        seconds(interval.end_ns),
        counts.offered.to_string(),
        format!("{:.3}", rates.offered_qps),
        counts.sent.to_string(),
        format!("{:.3}", rates.sent_qps),
        counts.responses.to_string(),
        format!("{:.3}", rates.achieved_qps),
        counts.goodput(&scenario.goodput_rcodes).to_string(),
    ];
    cells.extend(count_cells(counts));
    cells.extend([
        format!("{:.3}", rates.in_flight),
        counts.connections.attempted.to_string(),
        (counts.connections.usable(scenario.has_handshakes())).to_string(),
        counts.connections.failed.total().to_string(),
        interval.connections_open.to_string(),
        interval.most_open().to_string(),
        interval.connections_active.to_string(),
        counts.connections.ended().to_string(),
    ]);
    cells.extend(handshake_cells(&counts.connections));
    cells.extend([
        seconds(interval.cpu_ns),
        exact_us(latency.min_ns()),
        mean_us(latency.mean_ns()),
        mean_us(latency.stddev_ns()),
    ]);
    cells.extend([0.5, 0.9, 0.95, 0.99, 0.999].map(|p| percentile_us(latency, p)));
    cells.extend([
        exact_us(latency.max_ns()),
        mean_us(service.mean_ns()),
        percentile_us(service, 0.5),
        percentile_us(service, 0.99),
        percentile_us(&distributions.send_lateness, 0.99),
    ]);
    for (_, part) in distributions.path.parts() {
        cells.extend([0.5, 0.99].map(|p| percentile_us(part, p)));
    }
    let stamped = scenario.timestamps.map(|_| counts.stamps);
    let missing = stamped.map(|stamps| (stamps.missing + stamps.implausible).to_string());
    cells.push(missing.unwrap_or_default());
    cells.extend(set_up_cells(&distributions.connections));
    cells
}

fn handshake_cells(connections: &Connections) -> [String; 5] {
    let handshakes = &connections.handshakes;
    [
        handshakes.full + handshakes.full_with_retry,
        handshakes.resumed,
        connections.early_data.accepted,
        connections.early_data.rejected,
        connections.handshake_sent_octets + connections.handshake_received_octets,
    ]
    .map(|number| number.to_string())
}

fn set_up_cells(times: &ConnectionTimes) -> [String; 4] {
    // Handshakes of one run are those of TLS over TCP or those of QUIC.
    let either = |tls: &Histogram, quic: &Histogram| {
        let p50 = tls.percentile(0.5).or_else(|| quic.percentile(0.5));
        exact_us(p50)
    };
    [
        percentile_us(&times.tcp_connect, 0.5),
        either(&times.tls_handshake, &times.quic_handshake),
        either(&times.tls_handshake_resumed, &times.quic_handshake_resumed),
        percentile_us(&times.first_query, 0.5),
    ]
}

fn count_cells(counts: &Counts) -> Vec<String> {
    let rcodes = &counts.rcodes;
    let by_attempt = &counts.stub.responses_by_attempt;
    let at_attempt = |place: usize| by_attempt.get(place).copied().unwrap_or(0);
    let named = [0, 3, 2, 5].map(|rcode| rcodes.by_rcode[rcode]);
    let unnamed = rcodes.total() - named.iter().sum::<u64>();
    let mut numbers = vec![
        counts.timeouts,
        counts.connection_losses,
        counts.exchange_failures.total(),
        counts.not_sent.total(),
    ];
    let [noerror, others @ ..] = named;
    numbers.extend([noerror, counts.nodata]);
    numbers.extend(others);
    numbers.extend([
        unnamed,
        counts.truncated,
        counts.late,
        counts.duplicate,
        counts.unexpected.total(),
        counts.sent_octets,
        counts.received_octets,
        counts.stub.retransmitted,
        at_attempt(1),
        at_attempt(2),
        by_attempt.iter().skip(3).sum(),
        counts.stub.failovers.total(),
    ]);
    numbers.iter().map(u64::to_string).collect()
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn exact_us(ns: Option<u64>) -> String {
    ns.map_or_else(String::new, |ns| {
        format!("{}.{:03}", ns / 1_000, ns % 1_000)
    })
}

fn mean_us(ns: Option<f64>) -> String {
    ns.map_or_else(String::new, |ns| format!("{:.3}", ns / 1e3))
}

fn percentile_us(histogram: &Histogram, p: f64) -> String {
    exact_us(histogram.percentile(p))
}

/// A field, in quotes where it needs them (RFC 4180). Text that a spreadsheet would take for a
/// formula gets an apostrophe before it.
pub fn field(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t']) && text.parse::<f64>().is_err();
    let text = match is_formula {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    };
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn text_is_quoted_where_a_reader_of_csv_or_a_spreadsheet_needs_it() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("=1+1", "'=1+1"),
            ("@SUM(A1,A2)", "\"'@SUM(A1,A2)\""),
            ("-2.5", "-2.5"),
            ("+a", "'+a"),
        ] {
            assert_eq!(field(text), expected);
        }
    }

    #[test]
    fn every_row_has_a_cell_for_every_column() {
        let csv = render(&example::dot());
        let rows: Vec<&str> = csv.split_terminator("\r\n").collect();
        assert_eq!(rows.len(), 1 + 3 + 1);
        for row in rows {
            assert_eq!(row.split(',').count(), COLUMNS.len(), "{row}");
        }
    }

    #[test]
    fn rows_hold_intervals_in_order_and_then_the_total() {
        let mut record = example::dot();
        record.responder = Some(measure::ResponderFacts {
            accepts_failed: 7,
            ..measure::ResponderFacts::default()
        });
        let csv = render(&record);
        let rows: Vec<&str> = csv.split_terminator("\r\n").collect();
        assert!(rows[0].starts_with("interval,start_s,end_s,offered_queries,offered_qps,"));
        let first = "0,0.000000000,1.000000000,1000,1000.000,1000,1000.000,1000,1000.000,900,\
            0,0,0,0,600,0,300,100,0,0,0,0,0,0,40000,56000,0,0,0,0,0,5.050,0,0,0,120,121,0,0,0,0,0,\
            0,0,0.250000000,1000.000,5050.000,1350.000,";
        assert!(rows[1].starts_with(first), "{}", rows[1]);
        let total = "total,0.000000000,3.000000000,3020,1510.000,3012,1506.000,3000,1000.000,2700,\
            5,7,0,8,1800,0,900,300,0,0,2,3,1,4,120480,168000,0,0,0,0,0,";
        assert!(rows[4].starts_with(total), "{}", rows[4]);
        let set_up = ",10.000,,,,,,,,250.000,2500.000,,,5185.175,5472.256,5472.256,1.000000,7,";
        assert!(rows[4].ends_with(set_up), "{}", rows[4]);
    }

    #[test]
    fn interval_without_responses_has_empty_cells_and_no_zero_latency() {
        let mut record = example::dot();
        record.intervals = vec![Interval::default()];
        let csv = render(&record);
        let row = csv.lines().nth(1).expect("has a row");
        assert!(
            row.ends_with("0.000000000,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,"),
            "{row}"
        );
    }

    #[test]
    fn run_without_queries_counts_its_connections() {
        let record = example::without_queries();
        let csv = render(&record);
        let mut rows = csv.lines().map(|row| row.split(',').collect::<Vec<_>>());
        let names = rows.next().expect("has a header");
        let column = |name| {
            names
                .iter()
                .position(|each| *each == name)
                .expect("is there")
        };
        let wanted = [
            ("sent_queries", ["0", "0", "0"]),
            ("connections_attempted", ["500", "500", "1000"]),
            ("connections_opened", ["494", "494", "988"]),
            ("connections_failed", ["6", "6", "12"]),
            ("handshakes_full", ["494", "494", "988"]),
            ("tcp_connect_p50_us", ["250.000"; 3]),
        ];
        let rows: Vec<_> = rows.collect();
        for (name, cells) in wanted {
            let found: Vec<_> = rows.iter().map(|row| row[column(name)]).collect();
            assert_eq!(found, cells, "{name}");
        }
    }
}
