//! Queries without a response, by the question that they asked.

use std::collections::BTreeMap;

use engine::{Outcome, WorkerOutcome};
use load::Plan;
use load::arrival::Arrival;
use load::question_source::Order;
use measure::losses_by_question::{LossesByQuestion, QuestionLosses};
use proto::{name, rr};

use crate::run::RunRequest;

/// Octets of the header of a message (RFC 1035, section 4.1.1).
const HEADER_OCTETS: usize = 12;

/// What all groups lost. None where no group asks several questions, where a worker was left behind
/// with its counts, and of replays.
pub(super) fn by_question(groups: &[RunRequest], outcome: &Outcome) -> Option<LossesByQuestion> {
    if !outcome.left_behind.is_empty() {
        return None;
    }
    let each = groups.iter().enumerate();
    let each = each.filter_map(|(group, request)| {
        let workers: Vec<&WorkerOutcome> = outcome.of_group(group).collect();
        of_group(&request.plan, &workers)
    });
    let mut all = each.reduce(|mut all, other| {
        all.merge(&other);
        all
    })?;
    all.shorten();
    Some(all)
}

fn of_group(plan: &Plan, workers: &[&WorkerOutcome]) -> Option<LossesByQuestion> {
    let counted = workers.iter().map(|it| it.summary.losses.each.len()).max();
    let counted = counted.filter(|counted| *counted > 0)?;
    // What clients asked stays in their capture.
    if matches!(plan.arrival, Arrival::Replay(_)) {
        return None;
    }
    let is_in_turn = is_in_turn(plan);
    // A list may have a question several times, to ask it more often.
    let mut each: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    let (mut unnamed, mut lost_of_others) = (0, 0);
    for position in 0..counted {
        let lost_by = |it: &&WorkerOutcome| it.summary.losses.each.get(position).copied();
        let lost: u64 = workers.iter().filter_map(lost_by).map(u64::from).sum();
        let Some(question) = question(plan, position) else {
            unnamed += 1;
            lost_of_others += lost;
            continue;
        };
        let sent = workers
            .iter()
            .map(|it| sent_for(plan, it, position))
            .sum::<u64>();
        let sums = each.entry(question).or_default();
        *sums = (sums.0 + sent, sums.1 + lost);
    }
    let each = each
        .into_iter()
        .map(|((name, qtype), (sent, lost))| QuestionLosses {
            name,
            qtype,
            sent: is_in_turn.then_some(sent),
            lost,
        });
    let others = (plan.questions.len() - counted) as u64 + unnamed;
    lost_of_others += workers
        .iter()
        .map(|it| it.summary.losses.others)
        .sum::<u64>();
    Some(LossesByQuestion::of(
        each.collect(),
        (others, lost_of_others),
    ))
}

/// Each question is asked as often as each other, to one query.
fn is_in_turn(plan: &Plan) -> bool {
    let source = &plan.question_source;
    let is_ordered = matches!(source.order, Order::InOrder | Order::Shuffled);
    let is_chosen_otherwise =
        source.repeats.is_some() || source.ranked.is_some() || source.generates();
    is_ordered && !is_chosen_otherwise
}

/// Queries that a worker sent for the question at `position`, where questions are asked in turn: a
/// worker begins at its own number and takes steps of the number of workers.
fn sent_for(plan: &Plan, worker: &WorkerOutcome, position: usize) -> u64 {
    let source = &plan.question_source;
    let questions = plan.questions.len() as u64;
    let first = source.part.map_or(0, |part| part.first) + worker.thread as u64;
    let shared = match source.order {
        Order::InOrder => common_divisor(u64::from(plan.workers), questions),
        _ => 1,
    };
    match position as u64 % shared == first % shared {
        true => worker.total.counts.sent * shared / questions,
        false => 0,
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => common_divisor(b, a % b),
    }
}

/// Name and type of the question at `position`; none of a message without one.
fn question(plan: &Plan, position: usize) -> Option<(String, String)> {
    let template = plan.questions.get(position);
    let section = template.message.get(HEADER_OCTETS..)?;
    let octets = name::wire_length(section)?;
    let qname = name::to_text(&section[..octets])?;
    let qtype = section.get(octets..octets + 2)?;
    let qtype = u16::from_be_bytes([qtype[0], qtype[1]]);
    Some((qname, rr::type_to_text(qtype)))
}
