//! Names whose queries got no response while those for other names did.

use super::Figures;
use super::connections::unserved_clients;
use super::losses::{number_lost, queries_lost};
use super::plateau::TURNS_MAX;
use crate::interval::per;
use crate::losses_by_question::QuestionLosses;
use crate::scenario::{Arrival, Process, QuestionOrder, Transport};

/// Queries for each name that are enough to tell. Of two names that are asked this often, chance
/// loses all queries of one and none of the other less than once in 400 times; of more, less often.
const ASKED_MIN: u64 = 5;
/// The other names together lose no more than this share.
const LOST_OF_OTHERS_MAX: f64 = 0.05;

/// Names whose queries got no response, while the others' did.
pub(crate) struct SilentNames {
    /// How many there are.
    pub(crate) silent: u64,
    /// Names whose losses are known, these included.
    pub(crate) counted: u64,
    /// Names that were asked for.
    pub(crate) questions: u64,
    /// The first of these names, at most 20.
    pub(crate) names: Vec<QuestionLosses>,
    /// What would lose queries for the same names without knowing them; empty where nothing would.
    pub(crate) alike: Vec<LooksAlike>,
    /// The EDNS size, if answers to them may be too large for the path.
    pub(crate) edns_size: Option<u64>,
    are_many: bool,
}

/// The largest EDNS size with which answers are not fragmented on any usual path (DNS flag day
/// 2020).
const EDNS_SIZE_SAFE: u64 = 1_232;

/// The EDNS size of queries over UDP, if it allows answers that a path may drop: fragmented ones,
/// or larger than its MTU.
pub(crate) fn large_edns_size(figures: &Figures<'_>) -> Option<u64> {
    let scenario = &figures.record.scenario;
    let edns = scenario.edns.as_deref().unwrap_or_default();
    let size: u64 = edns.split(' ').next()?.parse().ok()?;
    (scenario.transport == Transport::Udp && size > EDNS_SIZE_SAFE).then_some(size)
}

/// Such names, where something else would look the same: what takes turns as they do, or a path
/// that drops large answers.
pub(crate) struct SilentNamesLookAlike;

pub(super) fn silent_names_look_alike(figures: &Figures<'_>) -> Option<SilentNamesLookAlike> {
    let it = silent_names(figures)?;
    (!it.alike.is_empty() || it.edns_size.is_some()).then_some(SilentNamesLookAlike)
}

/// What looks like losses by name where names are asked in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LooksAlike {
    /// `silent` of `of` back-ends that take turns give no response.
    BackEnds { silent: u64, of: u64 },
    /// A limit on the rate, queries a second.
    RateLimit(u64),
    /// Clients that are turned away, and always ask for the same names.
    Clients,
}

impl SilentNames {
    pub(crate) fn are_many(&self) -> bool {
        self.are_many
    }
}

pub(super) fn silent_names(figures: &Figures<'_>) -> Option<SilentNames> {
    let losses = figures.record.losses_by_question.as_ref()?;
    let asked = losses.asked.as_ref()?;
    let is_divided = asked.silent > 0 && asked.silent < losses.counted;
    let lost_of_others = per(
        losses.lost.saturating_sub(asked.silent_lost) as f64,
        asked.sent.saturating_sub(asked.silent_sent) as f64,
    );
    let lost_with_a_name = losses.lost + losses.lost_of_others;
    let are_most =
        2 * asked.silent_lost >= losses.lost && 2 * lost_with_a_name >= number_lost(figures);
    let is_shown = is_divided
        && asked.sent_least >= ASKED_MIN
        && lost_of_others <= LOST_OF_OTHERS_MAX
        && are_most;
    // A connection that ends takes queries with it whatever their names are.
    let are_of_connections = 2 * figures.counts.connection_losses > number_lost(figures);
    let silent = losses.most.iter().filter(|it| it.is_silent());
    (is_shown && !are_of_connections).then(|| SilentNames {
        silent: asked.silent,
        counted: losses.counted,
        questions: losses.questions,
        names: silent.cloned().collect(),
        alike: looks_alike(figures, (asked.silent, losses.counted)),
        edns_size: large_edns_size(figures),
        are_many: queries_lost(figures).is_some(),
    })
}

/// What treats queries in turn meets the same names each time, if these are asked in turn too.
fn looks_alike(figures: &Figures<'_>, (silent, counted): (u64, u64)) -> Vec<LooksAlike> {
    let scenario = &figures.record.scenario;
    if scenario.questions.choice.order != QuestionOrder::InOrder {
        return Vec::new();
    }
    let mut alike = looks_alike_in_turn(figures, (silent, counted));
    if unserved_clients(figures).is_some() {
        alike.push(LooksAlike::Clients);
    }
    alike
}

/// What would lose all queries of `silent` of `all` names or clients that take turns.
pub(super) fn looks_alike_in_turn(
    figures: &Figures<'_>,
    (silent, all): (u64, u64),
) -> Vec<LooksAlike> {
    let mut alike = Vec::new();
    let shared = common_divisor(silent, all);
    let (silent, of) = (silent / shared, all / shared);
    if of <= TURNS_MAX {
        alike.push(LooksAlike::BackEnds { silent, of });
    }
    if let Some(limit_qps) = rate_limit(figures, (silent, of)) {
        alike.push(LooksAlike::RateLimit(limit_qps));
    }
    alike
}

/// The limit that admits as many evenly spaced queries as there are for the other names. Limits are
/// whole numbers; one that differs by a query over the run meets other names before its end.
fn rate_limit(figures: &Figures<'_>, (silent, of): (u64, u64)) -> Option<u64> {
    let rate_qps = match figures.record.scenario.arrival {
        Arrival::Open {
            process: Process::Poisson,
            ..
        } => None,
        Arrival::Open { rate_qps, .. } => Some(rate_qps),
        Arrival::Closed { rate_qps_max, .. } => rate_qps_max,
        Arrival::Clients { rate_qps } => rate_qps,
    };
    let admitted_qps = rate_qps? * (1.0 - silent as f64 / of as f64);
    let limit_qps = admitted_qps.round();
    let queries_apart = (admitted_qps - limit_qps).abs() * figures.window_s;
    (limit_qps >= 1.0 && queries_apart < 1.0).then_some(limit_qps as u64)
}

fn common_divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => common_divisor(b, a % b),
    }
}
