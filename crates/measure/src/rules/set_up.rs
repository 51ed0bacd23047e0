//! What the load says of short-lived connections: their set-up, not the queries, took the time.

use super::{Figures, Finding, Stage};
use crate::interval::per;
use crate::limit::Limit;
use crate::notation::{count, decimal, latency};

/// From this share of what is possible on, set-up and queries together account for the clients.
const ACCOUNTED: f64 = 0.9;
/// A rate counts as held from this share on.
const RATE_HELD: f64 = 0.99;

/// Closed loop with places to spare: connections are opened as fast as asked, or places wait while
/// connections are set up.
pub(super) fn judge(figures: &Figures<'_>, usable: u64) -> Option<Finding> {
    rate_held(figures).or_else(|| waiting(figures, usable))
}

/// Connections were opened at the rate asked for.
pub(super) fn rate_held(figures: &Figures<'_>) -> Option<Finding> {
    let asked = figures.record.scenario.connections.rate_max?;
    let attempts = figures.record.attempts_per_second();
    if attempts < RATE_HELD * asked {
        return None;
    }
    let evidence = format!(
        "{} connections were opened a second, as many as --connect-rate allows",
        decimal(attempts, 1)
    );
    let advice = "raise --connect-rate to find the target's limit";
    Some(Finding::concluded(
        Stage::Load,
        Limit::Rate,
        evidence,
        advice,
    ))
}

/// Most clients were setting up a connection at any moment.
fn waiting(figures: &Figures<'_>, usable: u64) -> Option<Finding> {
    let scenario = &figures.record.scenario;
    let setting_up = figures.record.setting_up_mean();
    // Places that one client fills once it is connected.
    let most = scenario.connections.queries_max.unwrap_or(1).max(1);
    let filled = usable.min(scenario.clients.saturating_mul(most.into()));
    let each = per(filled as f64, scenario.clients as f64).max(1.0);
    let mostly = setting_up * each >= figures.in_flight;
    if !mostly || figures.in_flight + setting_up * each < ACCOUNTED * filled as f64 {
        return None;
    }
    let busy_with = format!(
        "{} of {} clients on average were setting up a connection ({} a second)",
        decimal(setting_up, 1),
        count(scenario.clients),
        decimal(figures.record.attempts_per_second(), 1)
    );
    let advice = "let connections carry more queries, or find out what set-up costs the target";
    queued_or_not(figures, &busy_with, advice)
}

/// Whether clients that were `busy_with` connections queued at the target, for which there is
/// `advice`, or are too few.
pub(super) fn queued_or_not(
    figures: &Figures<'_>,
    busy_with: &str,
    advice: &str,
) -> Option<Finding> {
    let steps = figures.record.total.distributions.connections.steps();
    let (step, times) = steps.into_iter().max_by_key(|(_, times)| times.sum_ns())?;
    let (p50, shortest) = (times.percentile(0.5)?, times.min_ns()?);
    let compared = format!("{step} p50 {}", latency(p50 as f64));
    let shortest_text = latency(shortest as f64);
    Some(if p50 >= 2 * shortest {
        let evidence = format!(
            "{busy_with}, and they queued at the target: {compared} against the shortest \
             {shortest_text}"
        );
        Finding::concluded(Stage::Load, Limit::Server, evidence, advice)
    } else {
        let evidence = format!(
            "{busy_with}, but nothing queued: {compared} is near the shortest {shortest_text}"
        );
        let clients = figures.record.scenario.clients;
        let advice = format!("use more clients: --clients {}", 4 * clients);
        Finding::concluded(Stage::Load, Limit::Outstanding, evidence, &advice)
    })
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn handshakes_that_queue_are_the_servers_limit() {
        let record = churn(&[(3 * MS, 1), (95 * MS, 999)]);
        let evidence = "96.9 of 100 clients on average were setting up a connection (1,000.0 a \
                        second), and they queued at the target: TLS handshake p50 95.00 ms";
        let verdict = judged(&record, Limit::Server, evidence, "carry more queries");
        assert!(
            verdict.evidence[0].ends_with("against the shortest 3.000 ms"),
            "{verdict:#?}"
        );
    }

    #[test]
    fn handshakes_that_wait_for_round_trips_alone_are_the_outstanding_limit() {
        let record = churn(&[(94 * MS, 1), (95 * MS, 999)]);
        let evidence =
            "but nothing queued: TLS handshake p50 95.00 ms is near the shortest 94.00 ms";
        judged(&record, Limit::Outstanding, evidence, "--clients 400");
    }

    #[test]
    fn rate_of_connections_that_was_asked_for_is_the_limit() {
        let mut closed = churn(&[(3 * MS, 1_000)]);
        closed.scenario.connections.rate_max = Some(1_000.0);
        let mut open = churn(&[(3 * MS, 1_000)]);
        open.scenario.connections.rate_max = Some(1_000.0);
        open.scenario.arrival = Arrival::Open {
            rate_qps: 1_500.0,
            process: Process::Constant,
            burst: 1,
        };
        change_last(&mut open, |interval| {
            interval.counts.offered += 5_000;
            interval.counts.not_sent.timed_out_waiting += 5_000;
        });
        for record in [closed, open] {
            let evidence =
                "1,000.0 connections were opened a second, as many as --connect-rate allows";
            judged(&record, Limit::Rate, evidence, "raise --connect-rate");
        }
    }
}
