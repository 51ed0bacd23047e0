//! Rules that the verdict and `throng doctor` share: each gives a limit, its evidence and its cures
//! once. The verdict is the first that decides; doctor shows all that found something.

use super::{Figures, Finding};
use crate::doctor::Diagnosis;

pub(super) mod answers;
pub(super) mod ended;
pub(super) mod enough;
pub(super) mod handshakes;
pub(super) mod held;
pub(super) mod late;
pub(super) mod losses;
pub(super) mod message_ids;
pub(super) mod outage;
pub(super) mod unserved;
pub(super) mod violations;

/// What all of them found, decisive or not.
pub(super) fn all(figures: &Figures<'_>) -> Vec<Diagnosis> {
    let others = [
        outage::found(figures),
        message_ids::found(figures),
        handshakes::found(figures),
        late::found(figures),
        violations::found(figures),
        unserved::found(figures),
        ended::found(figures),
        held::found(figures),
        losses::without_load(figures),
    ];
    let found = answers::found(figures)
        .into_iter()
        .chain(others.into_iter().flatten());
    found.filter_map(|finding| finding.diagnosis).collect()
}

/// The finding on clients without any answer, where a generator that is short of time does not
/// account for it: it decides before anything is said of the generator.
pub(super) fn beyond_this_tool(figures: &Figures<'_>) -> Option<Finding> {
    decide(figures).filter(|_| unserved::is_beyond_this_tool(figures))
}

/// The findings that may decide what limited the run, before anything is concluded from its rate:
/// they say that it was not the load that was asked for, or not of all clients.
pub(super) fn decide(figures: &Figures<'_>) -> Option<Finding> {
    message_ids::judge(figures)
        .or_else(|| handshakes::judge(figures))
        .or_else(|| unserved::found(figures))
}
