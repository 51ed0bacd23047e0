//! Server instances that differ from the others.

use super::Figures;
use crate::instances::Instance;
use crate::interval::per;

/// Nearly all of what happens at some instances happens there.
const NEARLY_ALL: f64 = 0.95;
/// What happens at an instance is its own if it is at least this share of what happens most at any,
/// counted by its responses.
const OF_MOST: f64 = 0.3;

/// Some of several server instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SomeInstances {
    /// Their identifiers.
    pub(crate) named: Vec<String>,
    /// How many instances there are.
    pub(crate) all: u64,
}

/// The instances whose responses have nearly all of what `number_of` counts, where others have next
/// to nothing of it; none where it is spread over all of them.
pub(super) fn that_have(
    figures: &Figures<'_>,
    number_of: impl Fn(&Instance) -> u64,
) -> Option<SomeInstances> {
    let instances = figures.record.instances.as_ref()?;
    let known: u64 = instances.each.iter().map(|it| it.responses).sum();
    let each = instances.each.iter();
    let each = each.map(|it| (it, number_of(it)));
    let each: Vec<(&Instance, u64)> = each.collect();
    let share = |it: &Instance, number: u64| per(number as f64, it.responses as f64);
    let most = each.iter().map(|(it, number)| share(it, *number));
    let most = most.fold(0.0, f64::max);
    let has = |(it, number): &(&Instance, u64)| share(it, *number) >= OF_MOST * most;
    let (those, others): (Vec<_>, Vec<_>) = each.into_iter().partition(has);
    let sum = |some: &[(&Instance, u64)]| some.iter().map(|it| it.1).sum::<u64>() as f64;
    let all = sum(&those) + sum(&others);
    // Responses that belong to no instance may be of any.
    let are_known = known as f64 >= NEARLY_ALL * figures.counts.responses as f64;
    let are_some = most > 0.0 && !others.is_empty() && sum(&those) >= NEARLY_ALL * all;
    (are_known && are_some).then(|| SomeInstances {
        all: (those.len() + others.len()) as u64,
        named: those.into_iter().map(|(it, _)| it.nsid.clone()).collect(),
    })
}
