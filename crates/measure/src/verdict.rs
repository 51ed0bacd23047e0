//! The verdict: what limited a run, with its evidence and what to do about it.
//!
//! Rules are tried in this order; the first that applies decides. The pitfalls they answer are
//! ways in which published DNS benchmarks mislead.
//!
//! 1. *Cannot tell*: nothing was answered, less than a second was measured, or a few queries. Where
//!    all that was answered came after its time-out, that is the target's latency (*server*).
//! 2. Most responses are *no use*: whatever the rate was, it is that of refusals or errors.
//! 3. Connections that this tool closed for a broken rule, where that lost the queries
//!    (*generator*). *Outage*: for a while nothing came back, or this tool was not let run; the
//!    rate outside of it is what was sustained. *Clients without any answer*, where this tool
//!    cannot be the reason (*server*).
//! 4. *Generator*: out of descriptors or ports (short-lived connections); a worker out of CPU, or
//!    waiting for it because something else runs there (generator-bound results read as server
//!    limits; generator beside the server); queries left late; queries not sent. Lateness decides
//!    only if it can explain what was lost.
//! 5. *Network*: this host's own drop counters explain the losses.
//! 6. What was not the load that was asked for: message IDs used up (*generator*), handshakes that
//!    failed, other clients that got no answer at all, queries ended by HTTP or
//!    stream errors (limits on the rate of one client), connections that ended with queries on
//!    them (*server*).
//! 7. Closed loop: places held by lost queries, places all in use while nothing queues (both
//!    *outstanding*); all in use and queueing (*server*). Where a connection may carry only so many
//!    queries at once, those are all the places there are. With places to spare: a rate cap held,
//!    of queries or of connections (*rate*); connections that take long to set up (*server* if they
//!    queue there, else *outstanding*).
//! 8. Open loop: a rate cap of connections held (*rate*); growing latency, or losses with a sign
//!    that the load made them (*server*), without one (*unknown*); everything answered on time
//!    (*rate*).
//!
//! Runs that only open and close connections have rules of their own.
//!
//! In simulations the modelled server says after rule 5 whether it was the limit, the modelled
//! network after it what it lost, and every verdict ends with what it is worth.
//!
//! Closed-loop results always carry Little's law: there, mean latency times rate is the number of
//! places in use, whatever the target's own latency is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::doctor::{Cure, Diagnosis};
use crate::notation::{latency, rate};
use crate::record::RunRecord;

mod figures;
pub(crate) mod findings;
mod generator;
mod load;
mod rules;
mod set_up;
mod simulated;
mod target;
#[cfg(test)]
mod tests;
mod without_queries;

use figures::Figures;
use rules::{answers, ended, enough, late, losses, message_ids, outage, violations};

/// What limited a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The limit.
    pub limit: Limit,
    /// Why, one sentence each, the decisive one first.
    pub evidence: Vec<String>,
    /// What to do next, one short sentence each.
    pub advice: Vec<String>,
}

/// The thing that kept the rate from being higher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The target.
    Server,
    /// This tool or the host it ran on.
    Generator,
    /// Drops on the way, as far as this host can see them.
    Network,
    /// The number of queries allowed in flight.
    Outstanding,
    /// The rate that was asked for.
    Rate,
    /// The figures do not tell.
    #[default]
    Unknown,
}

impl Limit {
    /// The name as in the record.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Server => "server",
            Limit::Generator => "generator",
            Limit::Network => "network",
            Limit::Outstanding => "outstanding",
            Limit::Rate => "rate",
            Limit::Unknown => "unknown",
        }
    }

    /// What the limit means for the figures of a run, as a sentence without full stop.
    pub fn meaning(self) -> &'static str {
        match self {
            Limit::Server => "The figures are those of the target",
            Limit::Generator => "The figures are those of this tool or its host, not of the target",
            Limit::Network => "Queries or responses were dropped on the way",
            Limit::Outstanding => {
                "No more queries were allowed in flight; the target may be able to do more"
            }
            Limit::Rate => "The target kept up with the load asked for; its own limit is higher",
            Limit::Unknown => {
                "The record does not tell what set the rate; it is no limit of the target"
            }
        }
    }
}

/// What one rule found.
struct Finding {
    limit: Limit,
    evidence: String,
    advice: Vec<String>,
    /// What doctor says of it; none where it has a diagnosis of its own.
    diagnosis: Option<Diagnosis>,
}

/// A verdict names the first of the cures; doctor has all of them.
const ADVICE_MAX: usize = 3;

impl Finding {
    fn new(limit: Limit, evidence: String, advice: &str) -> Self {
        let advice = (!advice.is_empty()).then(|| advice.to_string());
        Finding {
            limit,
            evidence,
            advice: Vec::from_iter(advice),
            diagnosis: None,
        }
    }

    /// One whose evidence and advice are those of a diagnosis.
    fn diagnosed(limit: Limit, diagnosis: Diagnosis) -> Self {
        let cures = diagnosis.cures.iter().take(ADVICE_MAX);
        Finding {
            limit,
            evidence: diagnosis.seen.clone(),
            advice: cures.map(Cure::sentence).collect(),
            diagnosis: Some(diagnosis),
        }
    }
}

/// Judges what limited the run that `record` describes; its own `verdict` is not looked at.
pub fn judge(record: &RunRecord) -> Verdict {
    let figures = Figures::of(record);
    let finding = without_queries::judge(&figures)
        .or_else(|| cannot_tell(&figures))
        .or_else(|| answers::judge(&figures))
        .or_else(|| violations::judge(&figures))
        .or_else(|| outage::judge(&figures))
        .or_else(|| rules::beyond_this_tool(&figures))
        .or_else(|| generator::judge(&figures))
        .or_else(|| target::network(&figures))
        .or_else(|| simulated::judge(&figures))
        .or_else(|| simulated::network(&figures))
        .or_else(|| rules::decide(&figures))
        .or_else(|| target::exchanges(&figures))
        .or_else(|| ended::judge(&figures))
        .unwrap_or_else(|| load::judge(&figures));
    let mut verdict = Verdict {
        limit: finding.limit,
        evidence: vec![finding.evidence],
        advice: finding.advice,
    };
    if let Some(shortfall) = without_queries::shortfall(&figures) {
        verdict.evidence.push(shortfall);
    }
    add_context(&mut verdict, &figures);
    if let Some(marking) = simulated::marking(&figures) {
        verdict.evidence.push(marking);
        return verdict;
    }
    if record.self_test {
        verdict.evidence.push(
            "the target is the responder built into this tool: the result measures this tool, \
             not a server"
                .into(),
        );
        verdict
            .advice
            .push("measure your own server: --server HOST".into());
    }
    verdict
}

/// Adds what a reader must know whatever the limit was.
fn add_context(verdict: &mut Verdict, figures: &Figures<'_>) {
    if figures.record.asks_nothing() {
        return;
    }
    let nothing = (figures.counts.responses == 0).then(|| figures.why_nothing_was_answered());
    let context = match nothing {
        Some(why) => vec![Some(why)],
        None => beside(figures),
    };
    for line in context.into_iter().flatten() {
        if !verdict.evidence.contains(&line) {
            verdict.evidence.push(line);
        }
    }
}

/// What is said beside the limit of a run with responses.
fn beside(figures: &Figures<'_>) -> Vec<Option<String>> {
    vec![
        losses::said(figures),
        late::found(figures).map(|found| found.evidence),
        outage::found(figures).map(|found| found.evidence),
        rules::unserved::found(figures).map(|found| found.evidence),
        rules::handshakes::found(figures).map(|found| found.evidence),
        rules::violations::found(figures).map(|found| found.evidence),
        ended::found(figures).map(|found| found.evidence),
        target::ended_exchanges(figures),
        load::waited_for_streams(figures),
        rules::held::found(figures).map(|found| found.evidence),
        target::receive_drops_of_local_target(figures),
        target::dropped_beyond(figures),
        littles_law(figures),
    ]
}

/// Rule 1: figures that no conclusion may be drawn from.
fn cannot_tell(figures: &Figures<'_>) -> Option<Finding> {
    let counts = figures.counts;
    if counts.responses == 0 {
        if let Some(finding) = message_ids::judge(figures).or_else(|| late::judge(figures)) {
            return Some(finding);
        }
        let evidence = figures.why_nothing_was_answered();
        let advice = format!(
            "check that a DNS server answers at {} over {}",
            figures.record.scenario.target, figures.record.scenario.transport
        );
        return Some(Finding::new(Limit::Unknown, evidence, &advice));
    }
    too_short(figures).or_else(|| enough::judge(figures))
}

fn too_short(figures: &Figures<'_>) -> Option<Finding> {
    if figures.window_s >= 1.0 {
        return None;
    }
    let evidence = format!(
        "only {} were measured: less than 1 s says little about a limit",
        latency(figures.record.measured_ns as f64)
    );
    let advice = "run for longer: --duration 10s";
    Some(Finding::new(Limit::Unknown, evidence, advice))
}

/// Closed loop: mean latency x rate = places in use, always (P1).
fn littles_law(figures: &Figures<'_>) -> Option<String> {
    let places = figures.outstanding?;
    let mean_ns = figures.mean_latency_ns?;
    let answered = figures.answered_in_flight();
    let product = format!(
        "mean latency {} x {} = {} in flight of {}",
        latency(mean_ns),
        rate(figures.achieved_qps),
        crate::notation::decimal(answered, 1),
        crate::notation::count(places),
    );
    let in_use = answered + figures.held_by_lost();
    Some(if in_use >= 0.9 * places as f64 {
        format!(
            "{product}: latency was set by --outstanding, not by the target (run with --rate \
             for honest latency)"
        )
    } else {
        product
    })
}
