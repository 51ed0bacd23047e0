//! A comparison as CSV (RFC 4180): one row a run in the order of the transports, and after those of
//! each transport three named `median`, `min` and `max`.

use measure::Comparison;
use measure::comparison::{Contender, Figures};

/// Name and meaning of every column, in order.
pub const COLUMNS: [(&str, &str); 14] = [
    ("transport", "udp, tcp, dot, doh2, doh3 or doq"),
    (
        "run",
        "position among all runs from 1, or `median`, `min`, `max`",
    ),
    (
        "achieved_qps",
        "responses a second; of medians empty where all runs were left out",
    ),
    (
        "achieved_of_first_percent",
        "share of the first transport's median",
    ),
    (
        "servers_per_first",
        "servers for the rate of one over the first transport; of medians only",
    ),
    (
        "lost_percent",
        "share of the offered queries without response",
    ),
    ("latency_mean_us", "mean latency from the scheduled instant"),
    ("latency_p50_us", "its median"),
    ("latency_p95_us", "its 95th percentile"),
    ("latency_p99_us", "its 99th percentile"),
    ("handshakes_per_second", "TLS or QUIC handshakes a second"),
    ("tcp_connect_p50_us", "median of TCP set-up"),
    ("handshake_p50_us", "median of full TLS or QUIC handshakes"),
    ("limit", "what limited the run"),
];

/// The comparison as CSV with a header line; lines end in CR LF as RFC 4180 says.
pub(super) fn render(comparison: &Comparison) -> String {
    let names: Vec<String> = COLUMNS.iter().map(|(name, _)| name.to_string()).collect();
    let mut csv = String::new();
    push_row(&mut csv, &names);
    let first = comparison.transports.first();
    let first = first.filter(|it| !it.median.achieved_is_at_least);
    let first_qps = first.map_or(0.0, |it| it.median.achieved_qps);
    for contender in &comparison.transports {
        for run in &contender.runs {
            let limit = run.limit.name();
            let position = run.position.to_string();
            let cells = cells(contender, &position, &run.figures, first_qps);
            push_row(&mut csv, &[cells, vec![limit.into()]].concat());
        }
        for (name, figures) in [
            ("median", &contender.median),
            ("min", &contender.min),
            ("max", &contender.max),
        ] {
            let mut cells = cells(contender, name, figures, first_qps);
            if name == "median" {
                cells[4] = servers(comparison, contender);
            }
            cells.push(String::new());
            push_row(&mut csv, &cells);
        }
    }
    csv
}

/// No cell ever holds a comma, a quote or a line break, so none needs quoting.
fn push_row(csv: &mut String, cells: &[String]) {
    csv.push_str(&cells.join(","));
    csv.push_str("\r\n");
}

/// All cells but the last.
fn cells(contender: &Contender, run: &str, figures: &Figures, first_qps: f64) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(String::new, |it| format!("{it:.3}"));
    let us = |ns: Option<f64>| number(ns.map(|ns| ns / 1e3));
    let of_first = 100.0 * figures.achieved_qps / first_qps;
    let is_known = !figures.achieved_is_at_least;
    vec![
        contender.transport.to_string(),
        run.into(),
        number(is_known.then_some(figures.achieved_qps)),
        number((is_known && first_qps > 0.0).then_some(of_first)),
        String::new(),
        number(is_known.then_some(100.0 * figures.lost_share)),
        us(figures.latency_mean_ns),
        us(figures.latency_p50_ns),
        us(figures.latency_p95_ns),
        us(figures.latency_p99_ns),
        number(figures.handshakes_per_second),
        us(figures.tcp_connect_p50_ns),
        us(figures.handshake_p50_ns),
    ]
}

/// The provisioning factor from the first transport; empty where there is none.
fn servers(comparison: &Comparison, contender: &Contender) -> String {
    let first = comparison.transports.first().map(|it| it.transport);
    let found = comparison
        .costs
        .iter()
        .find(|cost| Some(cost.from) == first && cost.to == contender.transport);
    let factor = found.and_then(|cost| cost.servers);
    factor.map_or_else(String::new, |factor| format!("{factor:.3}"))
}
