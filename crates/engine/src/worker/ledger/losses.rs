//! Queries without a response, by question.
//!
//! Counted where a query ends without a response, and nowhere else: a run that loses nothing pays
//! nothing. The counters are allocated once, before the first query.

use load::Plan;
use load::arrival::Arrival;
use measure::losses_by_question::{EACH_MAX, WorkerLosses};
use proto::pending::Question;

/// The counters of a worker; empty where questions are not told apart.
pub(super) fn counters(plan: &Plan) -> WorkerLosses {
    let (questions, source) = (plan.questions.len(), &plan.question_source);
    // Scripts number their own messages. Generated questions have no number to count by.
    let has_own = source.repeats.is_some() || !source.generates();
    let is_script = matches!(plan.arrival, Arrival::Script(_));
    match questions >= 2 && has_own && !is_script {
        true => WorkerLosses::of(questions.min(EACH_MAX)),
        false => WorkerLosses::default(),
    }
}

/// Counts a query that was sent and got no response.
pub(super) fn count(losses: &mut WorkerLosses, question: Question) {
    match losses.each.get_mut(question.template as usize) {
        Some(lost) if question.is_plain() => *lost = lost.saturating_add(1),
        _ => losses.others = losses.others.saturating_add(1),
    }
}
