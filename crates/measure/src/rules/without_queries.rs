//! Runs that open connections and ask nothing: what limited the rate of connections.
//!
//! Tried in this order: nothing could be opened, or too short (*unknown*); out of descriptors or
//! ports (*generator*); attempts that fail (*server*); the connect rate held (*rate*); a worker out
//! of CPU (*generator*); segments sent again (*network*); all clients always at it, and queueing
//! (*server*) or not (*outstanding*).

use super::figures::list;
use super::{Figures, Finding, Stage, path, processor, resources, set_up, too_little};
use crate::limit::Limit;
use crate::notation::{count, counted, decimal, share};

#[cfg(test)]
mod tests;

/// More failed attempts than this share, and they are what the run shows.
const FAILED_MAX: f64 = 0.001;
/// A rate counts as held from this share on.
const RATE_HELD: f64 = 0.99;
/// From this share on, all clients count as in use.
const ACCOUNTED: f64 = 0.9;

/// The finding on a run without queries; none on any other.
pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    if !figures.record.asks_nothing() {
        return None;
    }
    let finding = nothing_opened(figures)
        .or_else(|| too_little::too_short(figures))
        .or_else(|| resources::found(figures))
        .or_else(|| failures(figures))
        .or_else(|| rate_held(figures))
        .or_else(|| processor::out_of_cpu(figures))
        .or_else(|| path::retransmissions(figures))
        .or_else(|| clients_in_use(figures))
        .unwrap_or_else(|| not_held(figures));
    Some(finding.concluding(Stage::WithoutQueries))
}

fn conclusion(limit: Limit, evidence: String, advice: &str) -> Finding {
    Finding::concluded(Stage::WithoutQueries, limit, evidence, advice)
}

/// What was asked for and not reached, as a sentence.
pub(crate) fn shortfall(figures: &Figures<'_>) -> Option<String> {
    let asked = figures.record.scenario.connections.rate_max?;
    let opened = figures.record.opened_per_second();
    (figures.record.asks_nothing() && opened < RATE_HELD * asked).then(|| {
        format!(
            "{} of the {} connections a second that --connect-rate asks for were opened",
            decimal(opened, 1),
            decimal(asked, 1)
        )
    })
}

/// `70 refused, 30 timed out`.
fn causes(figures: &Figures<'_>) -> String {
    let failed = &figures.counts.connections.failed;
    let causes = failed.by_cause(figures.record.scenario.transport);
    list(
        causes
            .into_iter()
            .map(|(cause, number)| (number, cause))
            .collect(),
    )
}

fn nothing_opened(figures: &Figures<'_>) -> Option<Finding> {
    if figures.record.connections_opened() > 0 {
        return None;
    }
    let evidence = match figures.counts.connections.attempted {
        0 => "the run was over before the first connection".to_owned(),
        attempted => match figures.counts.connections.failed.total() {
            0 => format!(
                "none of {} was over",
                counted(attempted, "connection attempt")
            ),
            failed => format!(
                "no connection could be opened: {} failed: {}",
                counted(failed, "attempt"),
                causes(figures)
            ),
        },
    };
    let scenario = &figures.record.scenario;
    let advice = format!(
        "check that a DNS server listens at {} for {}",
        scenario.target, scenario.transport
    );
    Some(conclusion(Limit::Unknown, evidence, &advice))
}

fn failures(figures: &Figures<'_>) -> Option<Finding> {
    let connections = &figures.counts.connections;
    let (failed, attempted) = (connections.failed.total(), connections.attempted);
    if failed as f64 <= FAILED_MAX * attempted as f64 {
        return None;
    }
    let evidence = format!(
        "{} of {} failed: {}",
        share(failed, attempted),
        counted(attempted, "connection attempt"),
        causes(figures)
    );
    let opened = decimal(0.8 * figures.record.opened_per_second(), 0).replace(',', "");
    let advice = format!("find the rate that it takes: try --connect-rate {opened}");
    Some(conclusion(Limit::Server, evidence, &advice))
}

fn rate_held(figures: &Figures<'_>) -> Option<Finding> {
    let asked = figures.record.scenario.connections.rate_max?;
    let opened = figures.record.opened_per_second();
    if opened < RATE_HELD * asked {
        return None;
    }
    let evidence = format!(
        "{} connections were opened a second, of the {} that --connect-rate asks for",
        decimal(opened, 1),
        decimal(asked, 1)
    );
    let advice = "raise --connect-rate to find the target's limit";
    Some(conclusion(Limit::Rate, evidence, advice))
}

/// Every client sets up one connection after the other, or waits as long as it is told to.
fn clients_in_use(figures: &Figures<'_>) -> Option<Finding> {
    let scenario = &figures.record.scenario;
    let opened = figures.record.opened_per_second();
    let setting_up = figures.record.setting_up_mean();
    let waiting = opened * scenario.connections.reconnect_delay.as_secs_f64();
    let clients = scenario.clients as f64;
    if setting_up + waiting < ACCOUNTED * clients {
        return None;
    }
    let rate = decimal(opened, 1);
    if waiting > setting_up {
        let evidence = format!(
            "{} of {} clients on average waited for --reconnect-delay \
             ({rate} connections a second)",
            decimal(waiting, 1),
            count(scenario.clients)
        );
        let advice = format!("use more clients: --clients {}", 4 * scenario.clients);
        return Some(conclusion(Limit::Outstanding, evidence, &advice));
    }
    let busy_with = format!(
        "{} of {} clients on average were setting up a connection ({rate} a second)",
        decimal(setting_up, 1),
        count(scenario.clients)
    );
    let below = decimal(0.7 * opened, 0).replace(',', "");
    let advice = format!("for its latency below that limit run with --connect-rate {below}");
    set_up::queued_or_not(figures, &busy_with, &advice)
}

fn not_held(figures: &Figures<'_>) -> Finding {
    let evidence = format!(
        "only {} of {} clients on average were setting up a connection ({} a second), with no \
         worker out of CPU and {} failed",
        decimal(figures.record.setting_up_mean(), 1),
        count(figures.record.scenario.clients),
        decimal(figures.record.opened_per_second(), 1),
        counted(figures.counts.connections.failed.total(), "attempt")
    );
    let advice = "run for longer, on an idle host";
    conclusion(Limit::Unknown, evidence, advice)
}
