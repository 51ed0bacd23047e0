//! The verdict: what limited a run, with its evidence and what to do about it.
//!
//! It is the first finding of the rules (`crate::rules`) that decides: of the earliest stage, and
//! within a stage in the order of the rules. The pitfalls they answer are ways in which published
//! DNS benchmarks mislead. Beside it stand what was lost, and what other rules found that a reader
//! must know whatever the limit was; in simulations, what the verdict is worth.
//!
//! Closed-loop results always carry Little's law: there, mean latency times rate is the number of
//! places in use, whatever the target's own latency is.

pub use crate::limit::{Limit, Verdict};
use crate::notation::{latency, rate};
use crate::record::RunRecord;
use crate::rules::{self, Figures, Finding};

/// Judges what limited the run that `record` describes; its own `verdict` is not looked at.
pub fn judge(record: &RunRecord) -> Verdict {
    let figures = Figures::of(record);
    let findings = rules::all(&figures);
    let decisive = rules::decisive(&findings);
    let mut verdict = Verdict {
        limit: decisive.and_then(Finding::limit).unwrap_or_default(),
        evidence: decisive
            .map(|it| it.evidence().to_owned())
            .into_iter()
            .collect(),
        advice: decisive.map(Finding::advice).unwrap_or_default(),
    };
    if let Some(of_load) = decisive.and_then(|it| rules::of_load(&findings, it)) {
        verdict.evidence.push(of_load.evidence().to_owned());
        verdict.advice.extend(of_load.advice());
    }
    if let Some(shortfall) = rules::shortfall(&figures) {
        verdict.evidence.push(shortfall);
    }
    add_context(&mut verdict, &figures, &findings);
    if let Some(marking) = rules::marking(&figures) {
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
fn add_context(verdict: &mut Verdict, figures: &Figures<'_>, findings: &[Finding]) {
    if figures.record.asks_nothing() {
        return;
    }
    let context = match figures.counts.responses {
        0 => vec![figures.why_nothing_was_answered()],
        _ => beside(figures, findings),
    };
    for line in context {
        if !verdict.evidence.contains(&line) {
            verdict.evidence.push(line);
        }
    }
}

/// What is said beside the limit of a run with responses.
fn beside(figures: &Figures<'_>, findings: &[Finding]) -> Vec<String> {
    let told = findings.iter().filter(|it| it.is_in_every_verdict());
    let told = told.map(|it| it.evidence().to_owned());
    let lost = rules::losses_said(figures).into_iter();
    lost.chain(told).chain(littles_law(figures)).collect()
}

/// Closed loop: mean latency x rate = places in use, always.
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

#[cfg(test)]
mod tests {
    use crate::facts::WorkerFacts;
    use crate::rules::situations::*;

    #[test]
    fn self_test_says_that_it_measures_this_tool() {
        let mut record = saturated();
        record.self_test = true;
        let verdict = judged(
            &record,
            Limit::Server,
            "queries were in flight",
            "--server HOST",
        );
        let last = verdict.evidence.last().expect("has evidence");
        assert!(
            last.contains("the result measures this tool, not a server"),
            "{last}"
        );
    }

    #[test]
    fn judging_leaves_out_of_account_what_the_record_said_before() {
        let mut record = saturated();
        record.verdict = Verdict {
            limit: Limit::Rate,
            ..Verdict::default()
        };
        record.workers.push(WorkerFacts::default());
        assert_eq!(judge(&record).limit, Limit::Server);
        assert_eq!(
            serde_json::to_string(&Limit::Server).expect("serializes"),
            "\"server\""
        );
    }
}
