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
    ClientExperience, ConnectionTimes, Counts, Distributions, Histogram, Interval, RunRecord,
    ScenarioRecord, SteadyState,
};

/// One column: its name, what it holds, and how that is made of a row. So no name can stand above
/// another one's figure.
pub struct Column {
    /// The name, with its unit.
    pub name: &'static str,
    /// What it holds.
    pub meaning: &'static str,
    cell: fn(&Row<'_>) -> String,
}

const fn column(name: &'static str, meaning: &'static str, cell: fn(&Row<'_>) -> String) -> Column {
    Column {
        name,
        meaning,
        cell,
    }
}

/// Every column, in order.
pub const COLUMNS: [Column; 75] = [
    column("interval", "position from 0, or `total`", |it| {
        it.name.to_owned()
    }),
    column(
        "start_s",
        "start, seconds since the start of the measured run",
        |it| seconds(it.interval.start_ns),
    ),
    column("end_s", "end, seconds since the same instant", |it| {
        seconds(it.interval.end_ns)
    }),
    column("offered_queries", "queries scheduled", |it| {
        it.counts().offered.to_string()
    }),
    column("offered_qps", "queries scheduled a second", |it| {
        decimal(it.rates.offered_qps)
    }),
    column("sent_queries", "queries handed to the network", |it| {
        it.counts().sent.to_string()
    }),
    column("sent_qps", "queries handed to the network a second", |it| {
        decimal(it.rates.sent_qps)
    }),
    column("responses", "responses that match a query", |it| {
        it.counts().responses.to_string()
    }),
    column("achieved_qps", "responses a second", |it| {
        decimal(it.rates.achieved_qps)
    }),
    column(
        "goodput_responses",
        "whole responses with an RCODE of the goodput set",
        |it| it.counts().goodput(&it.scenario.goodput_rcodes).to_string(),
    ),
    column(
        "timeouts",
        "queries without response within the time-out",
        |it| it.counts().timeouts.to_string(),
    ),
    column(
        "connection_losses",
        "queries lost with their connection",
        |it| it.counts().connection_losses.to_string(),
    ),
    column(
        "exchange_failures",
        "queries that HTTP or their stream ended without a DNS message",
        |it| it.counts().exchange_failures.total().to_string(),
    ),
    column("not_sent", "queries scheduled and never sent", |it| {
        it.counts().not_sent.total().to_string()
    }),
    column("noerror_responses", "responses with RCODE NOERROR", |it| {
        it.of_rcode(0)
    }),
    column(
        "nodata_responses",
        "of these, without a record of the type asked for",
        |it| it.counts().nodata.to_string(),
    ),
    column(
        "nxdomain_responses",
        "responses with RCODE NXDOMAIN",
        |it| it.of_rcode(3),
    ),
    column(
        "servfail_responses",
        "responses with RCODE SERVFAIL",
        |it| it.of_rcode(2),
    ),
    column("refused_responses", "responses with RCODE REFUSED", |it| {
        it.of_rcode(5)
    }),
    column("other_responses", "responses with any other RCODE", |it| {
        it.of_other_rcodes()
    }),
    column("truncated_responses", "responses with the TC bit", |it| {
        it.counts().truncated.to_string()
    }),
    column(
        "late_responses",
        "responses to queries that had timed out",
        |it| it.counts().late.to_string(),
    ),
    column(
        "duplicate_responses",
        "further responses to one query",
        |it| it.counts().duplicate.to_string(),
    ),
    column(
        "unexpected_messages",
        "messages received that match no query",
        |it| it.counts().unexpected.total().to_string(),
    ),
    column("sent_octets", "octets of queries, without framing", |it| {
        it.counts().sent_octets.to_string()
    }),
    column(
        "received_octets",
        "octets of responses, without framing",
        |it| it.counts().received_octets.to_string(),
    ),
    column(
        "retransmitted",
        "messages sent beside the first one of each query, by clients that ask again",
        |it| it.counts().stub.retransmitted.to_string(),
    ),
    column(
        "responses_attempt_2",
        "responses that came when the query had been sent twice",
        |it| it.at_attempts(1, 1),
    ),
    column("responses_attempt_3", "three times", |it| {
        it.at_attempts(2, 1)
    }),
    column("responses_attempt_4_up", "more often", |it| {
        it.at_attempts(3, usize::MAX)
    }),
    column(
        "failovers",
        "times that a client went on to another server",
        |it| it.counts().stub.failovers.total().to_string(),
    ),
    column(
        "in_flight_mean_queries",
        "mean number of queries in flight",
        |it| decimal(it.rates.in_flight),
    ),
    column("connections_attempted", "attempts to connect", |it| {
        it.connections().attempted.to_string()
    }),
    column(
        "connections_opened",
        "connections that became usable",
        |it| it.scenario.usable(it.connections()).to_string(),
    ),
    column(
        "connections_failed",
        "attempts that never became usable",
        |it| it.connections().failed.total().to_string(),
    ),
    column(
        "connections_open",
        "usable connections at the end; in the total: the most of any interval",
        |it| it.interval.connections_open.to_string(),
    ),
    column(
        "connections_open_max",
        "the most that were usable at one time, of each worker",
        |it| it.interval.most_open().to_string(),
    ),
    column(
        "connections_active",
        "connections that carried a query; in the total: the most",
        |it| it.interval.connections_active.to_string(),
    ),
    column("connections_ended", "usable connections that ended", |it| {
        it.connections().ended().to_string()
    }),
    column(
        "handshakes_full",
        "TLS or QUIC handshakes with a certificate",
        |it| it.connections().handshakes.with_certificate().to_string(),
    ),
    column(
        "handshakes_resumed",
        "TLS or QUIC handshakes of a session",
        |it| it.connections().handshakes.resumed.to_string(),
    ),
    column(
        "early_data_accepted",
        "connections whose early data was accepted",
        |it| it.connections().early_data.accepted.to_string(),
    ),
    column(
        "early_data_rejected",
        "connections whose early data was rejected",
        |it| it.connections().early_data.rejected.to_string(),
    ),
    column(
        "handshake_octets",
        "octets of handshakes, sent and received",
        |it| it.connections().handshake_octets().to_string(),
    ),
    column("cpu_s", "CPU time of all workers, seconds", |it| {
        seconds(it.interval.cpu_ns)
    }),
    column(
        "latency_min_us",
        "shortest latency from the scheduled instant",
        |it| exact_us(it.distributions().latency.min_ns()),
    ),
    column(
        "latency_mean_us",
        "mean latency from the scheduled instant",
        |it| mean_us(it.distributions().latency.mean_ns()),
    ),
    column("latency_stddev_us", "its standard deviation", |it| {
        mean_us(it.distributions().latency.stddev_ns())
    }),
    column("latency_p50_us", "its median", |it| {
        percentile_us(&it.distributions().latency, 0.5)
    }),
    column("latency_p90_us", "its 90th percentile", |it| {
        percentile_us(&it.distributions().latency, 0.9)
    }),
    column("latency_p95_us", "its 95th percentile", |it| {
        percentile_us(&it.distributions().latency, 0.95)
    }),
    column("latency_p99_us", "its 99th percentile", |it| {
        percentile_us(&it.distributions().latency, 0.99)
    }),
    column("latency_p99_9_us", "its 99.9th percentile", |it| {
        percentile_us(&it.distributions().latency, 0.999)
    }),
    column(
        "latency_max_us",
        "longest latency from the scheduled instant",
        |it| exact_us(it.distributions().latency.max_ns()),
    ),
    column(
        "service_mean_us",
        "mean latency from the instant of sending",
        |it| mean_us(it.distributions().service.mean_ns()),
    ),
    column("service_p50_us", "its median", |it| {
        percentile_us(&it.distributions().service, 0.5)
    }),
    column("service_p99_us", "its 99th percentile", |it| {
        percentile_us(&it.distributions().service, 0.99)
    }),
    column(
        "send_lateness_p99_us",
        "99th percentile of the time by which queries left late",
        |it| percentile_us(&it.distributions().send_lateness, 0.99),
    ),
    column(
        "generator_wait_p50_us",
        "median from the scheduled instant until the query left; with --timestamps",
        |it| it.of_path(0, 0.5),
    ),
    column("generator_wait_p99_us", "its 99th percentile", |it| {
        it.of_path(0, 0.99)
    }),
    column(
        "network_p50_us",
        "median from there until the response arrived: wire and server",
        |it| it.of_path(1, 0.5),
    ),
    column("network_p99_us", "its 99th percentile", |it| {
        it.of_path(1, 0.99)
    }),
    column(
        "reader_wait_p50_us",
        "median from there until the response was read",
        |it| it.of_path(2, 0.5),
    ),
    column("reader_wait_p99_us", "its 99th percentile", |it| {
        it.of_path(2, 0.99)
    }),
    column(
        "stamps_missing",
        "responses of which timestamps do not tell that",
        |it| it.stamps_missing(),
    ),
    column("tcp_connect_p50_us", "median of TCP set-up", |it| {
        percentile_us(&it.distributions().connections.tcp_connect, 0.5)
    }),
    column(
        "handshake_full_p50_us",
        "median of full TLS or QUIC handshakes",
        |it| it.set_up_p50(|it| [&it.tls_handshake, &it.quic_handshake]),
    ),
    column(
        "handshake_resumed_p50_us",
        "median of resumed TLS or QUIC handshakes",
        |it| it.set_up_p50(|it| [&it.tls_handshake_resumed, &it.quic_handshake_resumed]),
    ),
    column(
        "first_query_p50_us",
        "median service time of the first query of each connection",
        |it| percentile_us(&it.distributions().connections.first_query, 0.5),
    ),
    column(
        "clients_p50_p99_us",
        "over clients, the 99th percentile of each client's own median; in the total only",
        |it| it.of_clients(|all| percentile_us(&all.latency.p50, 0.99)),
    ),
    column(
        "clients_p99_p50_us",
        "over clients, the median of each client's own 99th percentile; in the total only",
        |it| it.of_clients(|all| percentile_us(&all.latency.p99, 0.5)),
    ),
    column(
        "clients_p99_p99_us",
        "over clients, the 99th percentile of each client's own 99th percentile; in the total only",
        |it| it.of_clients(|all| percentile_us(&all.latency.p99, 0.99)),
    ),
    column(
        "clients_fairness",
        "Jain's index of the responses to each client, up to 1; in the total only",
        |it| it.of_clients(fairness),
    ),
    column(
        "responder_accepts_failed",
        "times that the responder of a self-test could not accept a connection; in the total only",
        |it| it.accepts_failed(),
    ),
    column(
        "part",
        "beginning, sustained or drain; empty where there are too few intervals to tell",
        |it| it.part.to_owned(),
    ),
];

/// Rates and means, which intervals and total take over different times.
struct Rates {
    offered_qps: f64,
    sent_qps: f64,
    achieved_qps: f64,
    in_flight: f64,
}

/// What the cells of a row are made of.
struct Row<'a> {
    name: &'a str,
    interval: &'a Interval,
    scenario: &'a ScenarioRecord,
    rates: Rates,
    part: &'static str,
    /// What is known of the run as a whole only.
    whole: Option<Whole>,
}

struct Whole {
    experience: Option<ClientExperience>,
    accepts_failed: Option<u64>,
}

impl Row<'_> {
    fn counts(&self) -> &Counts {
        &self.interval.counts
    }

    fn connections(&self) -> &Connections {
        &self.interval.counts.connections
    }

    fn distributions(&self) -> &Distributions {
        &self.interval.distributions
    }

    fn of_rcode(&self, rcode: usize) -> String {
        self.counts().rcodes.by_rcode[rcode].to_string()
    }

    fn of_other_rcodes(&self) -> String {
        let rcodes = &self.counts().rcodes;
        let named: u64 = [0, 3, 2, 5]
            .map(|rcode| rcodes.by_rcode[rcode])
            .iter()
            .sum();
        (rcodes.total() - named).to_string()
    }

    /// Responses at that attempt and so many further ones.
    fn at_attempts(&self, first: usize, number: usize) -> String {
        let by_attempt = &self.counts().stub.responses_by_attempt;
        let responses = by_attempt.iter().skip(first).take(number);
        responses.sum::<u64>().to_string()
    }

    fn of_path(&self, part: usize, p: f64) -> String {
        let (_, part) = self.distributions().path.parts()[part];
        percentile_us(part, p)
    }

    fn stamps_missing(&self) -> String {
        let stamped = self.scenario.timestamps.map(|_| self.counts().stamps);
        let missing = stamped.map(|stamps| (stamps.missing + stamps.implausible).to_string());
        missing.unwrap_or_default()
    }

    /// Handshakes of one run are those of TLS over TCP or those of QUIC.
    fn set_up_p50(&self, either: fn(&ConnectionTimes) -> [&Histogram; 2]) -> String {
        let each = either(&self.distributions().connections);
        exact_us(each.into_iter().find_map(|times| times.percentile(0.5)))
    }

    /// What clients experienced, where that is known.
    fn of_clients(&self, of: fn(&ClientExperience) -> String) -> String {
        let whole = self.whole.as_ref();
        let experience = whole.and_then(|whole| whole.experience.as_ref());
        experience.map_or_else(String::new, of)
    }

    fn accepts_failed(&self) -> String {
        let whole = self.whole.as_ref();
        let failed = whole.and_then(|whole| whole.accepts_failed);
        failed.map_or_else(String::new, |failed| failed.to_string())
    }
}

fn fairness(experience: &ClientExperience) -> String {
    let fairness = experience.fairness();
    fairness.map_or_else(String::new, |index| format!("{index:.6}"))
}

/// The record as CSV with a header line; lines end in CR LF as RFC 4180 says.
pub fn render(record: &RunRecord) -> String {
    let mut csv = String::new();
    push_row(
        &mut csv,
        COLUMNS.iter().map(|column| column.name.to_owned()),
    );
    let course = SteadyState::in_record(record);
    for (index, interval) in record.intervals.iter().enumerate() {
        push_cells(
            &mut csv,
            &Row {
                name: &index.to_string(),
                interval,
                scenario: &record.scenario,
                rates: Rates {
                    offered_qps: interval.per_second(interval.counts.offered),
                    sent_qps: interval.per_second(interval.counts.sent),
                    achieved_qps: interval.per_second(interval.counts.responses),
                    in_flight: interval.mean_in_flight(),
                },
                part: part(record, course.as_ref(), interval),
                whole: None,
            },
        );
    }
    let total = Row {
        name: match record.merged_by_force.is_empty() {
            true => "total",
            false => "total, merged by force",
        },
        interval: &record.total,
        scenario: &record.scenario,
        rates: Rates {
            offered_qps: record.offered_qps(),
            sent_qps: record.sent_qps(),
            achieved_qps: record.achieved_qps(),
            in_flight: record.mean_in_flight(),
        },
        part: "",
        whole: Some(Whole {
            experience: record.experience(),
            accepts_failed: record.responder.map(|it| it.accepts_failed),
        }),
    };
    push_cells(&mut csv, &total);
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

fn push_cells(csv: &mut String, row: &Row<'_>) {
    push_row(csv, COLUMNS.iter().map(|column| (column.cell)(row)));
}

fn push_row(csv: &mut String, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.map(|cell| field(&cell)).collect();
    csv.push_str(&cells.join(","));
    csv.push_str("\r\n");
}

fn decimal(value: f64) -> String {
    format!("{value:.3}")
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
    fn names_of_columns_are_apart_and_name_their_unit() {
        let mut names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COLUMNS.len());
        assert!(COLUMNS.iter().all(|column| !column.meaning.is_empty()));
    }

    #[test]
    fn every_row_has_a_cell_for_every_column() {
        let csv = render(&example::dot());
        let rows: Vec<&str> = csv.split_terminator("\r\n").collect();
        assert_eq!(rows.len(), 1 + 3 + 1);
        for row in rows {
            assert_eq!(row.split(',').count(), COLUMNS.len(), "{row}");
        }
        // A name with a comma in it is one cell.
        let mut record = example::dot();
        record.merged_by_force = vec!["the targets differ".to_owned()];
        let csv = render(&record);
        let row = csv.split_terminator("\r\n").last().expect("has rows");
        let rest = row.strip_prefix("\"total, merged by force\",");
        let cells = rest.map(|rest| 1 + rest.split(',').count());
        assert_eq!(cells, Some(COLUMNS.len()), "{row}");
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
