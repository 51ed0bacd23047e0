//! Whether a fixed rate of responses follows the time, as a limit on the rate does, or may be a
//! fixed share of the queries: such as that of paths or back-ends in turn, one of which is dead.
//!
//! Where queries are equally spaced, their order is their time, and both look the same, unless the
//! share is one that nothing in turn has.

use super::Figures;
use super::plateau::{SECOND_NS, TURNS_MAX, answered_in, turns, windows};
use crate::interval::per;
use crate::scenario::QuestionOrder;
use crate::statistics::{mean, variance};
use crate::timeline::Bin;

/// A share that is answered in turn would vary the responses by this variance at least: by more
/// than a query more or less.
const VARIED_MIN: f64 = 1.0;
/// Of clients that lose alike, each loses at least this part of what the worst loses.
const ALIKE: u64 = 2;
/// Seconds that are enough to see that each of them begins alike.
const SECONDS_MIN: usize = 5;
/// In this share of the seconds, and of the parts of a second, they are alike.
const SECONDS_ALIKE: f64 = 0.9;
/// Queries in a row that are all answered only by what does not take turns.
const IN_A_ROW: u64 = 3 * TURNS_MAX;

/// Of up to that many in turn, some may lose a few more by chance...
const USUAL_TURNS_MAX: u64 = 8;
/// ... which changes the share by this part of the queries at most, if what is answered varies ten
/// times less than such a loss would make it...
const BY_CHANCE: f64 = 0.005;
const LESS_THAN_CHANCE: f64 = 10.0;
/// ... in windows of so many queries, and in so many of them.
const WINDOW_QUERIES: f64 = 1_000.0;
const WINDOWS_MIN: usize = 4;

/// True if as many were answered while the number of queries varied; or if a share was that nothing
/// in turn answers, or all were answered in one part of each second, neither of which the order of
/// clients or names explains. That all were
/// answered at the beginning of the run shows nothing: a back-end may have died then.
pub(super) fn is_shown(figures: &Figures<'_>, bins: &[Bin]) -> bool {
    let width_ns = figures
        .record
        .timeline
        .as_ref()
        .map_or(1, |it| it.width_ns());
    if windows(width_ns)
        .into_iter()
        .any(|it| varies_less(bins, it))
    {
        return true;
    }
    let second = (SECOND_NS / width_ns).max(1) as usize;
    let is_by_second = || SECOND_NS.is_multiple_of(width_ns) && begins_alike(bins, second);
    (is_no_turn(bins) || is_by_second()) && !may_be_order(figures)
}

/// True if the responses hardly vary, and no number of parts in turn answers such a share.
fn is_no_turn(bins: &[Bin]) -> bool {
    let sum = |bins: &[Bin], of: fn(&Bin) -> u64| bins.iter().map(of).sum::<u64>() as f64;
    let each = per(sum(bins, |bin| bin.due), bins.len() as f64);
    let length = (WINDOW_QUERIES / each.max(1.0)).ceil() as usize;
    // The first window has what a bucket held at the beginning.
    let bins = bins.get(length..).unwrap_or_default();
    let (due, answered) = (sum(bins, |bin| bin.due), sum(bins, answered_in));
    let windows = bins.chunks_exact(length).map(|it| sum(it, answered_in));
    let windows: Vec<f64> = windows.collect();
    let by_chance = BY_CHANCE * each * length as f64;
    let is_even = variance(&windows).is_some_and(|it| it < by_chance / LESS_THAN_CHANCE);
    let share = per(answered, due);
    let mut usual = (2..=USUAL_TURNS_MAX).flat_map(|of| (1..of).map(move |part| (part, of)));
    let is_turn = usual.any(|(part, of)| (share - part as f64 / of as f64).abs() <= BY_CHANCE);
    windows.len() >= WINDOWS_MIN && is_even && !is_turn && turns(bins).is_none()
}

/// True if the responses to windows of this many bins vary less than the same share of the queries
/// in each of them would.
fn varies_less(bins: &[Bin], (length, windows_min, less): (usize, usize, f64)) -> bool {
    let sums = |of: fn(&Bin) -> u64| -> Vec<f64> {
        let windows = bins.chunks_exact(length);
        windows
            .map(|it| it.iter().map(of).sum::<u64>() as f64)
            .collect()
    };
    let (due, answered) = (sums(|bin| bin.due), sums(answered_in));
    let share = per(mean(&answered).unwrap_or(0.0), mean(&due).unwrap_or(0.0));
    let of_share = share * share * variance(&due).unwrap_or(0.0);
    let are_enough = due.len() >= windows_min && of_share >= VARIED_MIN;
    are_enough && variance(&answered).is_some_and(|it| it < of_share / less)
}

/// True if one part of each second, in a row, lost nothing, and the rest of it lost some.
fn begins_alike(bins: &[Bin], second: usize) -> bool {
    let seconds: Vec<&[Bin]> = bins.chunks_exact(second).collect();
    if seconds.len() < SECONDS_MIN {
        return false;
    }
    let whole = |part: usize| {
        let whole = seconds.iter().filter(|it| it[part].lost == 0).count();
        per(whole as f64, seconds.len() as f64)
    };
    let whole: Vec<f64> = (0..second).map(whole).collect();
    let are_clear = whole
        .iter()
        .filter(|it| **it >= SECONDS_ALIKE || **it <= 1.0 - SECONDS_ALIKE);
    let due: u64 = bins.iter().map(|bin| bin.due).sum();
    let each = per(due as f64, bins.len() as f64);
    let is_whole = |part: usize| whole[part % second] >= SECONDS_ALIKE;
    // From where it begins, around the end of the second.
    let begins: Vec<usize> = (0..second)
        .filter(|it| is_whole(*it + 1) && !is_whole(*it))
        .collect();
    let [begin] = begins[..] else {
        return false;
    };
    let length = (1..second).take_while(|it| is_whole(begin + it)).count();
    are_clear.count() as f64 >= SECONDS_ALIKE * second as f64
        && length as f64 * each >= IN_A_ROW as f64
}

/// True if clients or names that lose all of their queries may be what is lost: clients ask in
/// turn, and names in their order.
fn may_be_order(figures: &Figures<'_>) -> bool {
    let record = figures.record;
    let losses = record.losses_by_question.as_ref();
    let are_unknown = losses.is_some_and(|it| it.questions > it.counted);
    let is_in_order = record.scenario.questions.choice.order == QuestionOrder::InOrder;
    let lost = record.experience().map(|it| it.unanswered_ppm);
    let least_and_most = lost.and_then(|it| it.min_ns().zip(it.max_ns()));
    let are_alike = least_and_most.is_some_and(|(least, most)| ALIKE * least >= most);
    !are_alike || is_in_order && are_unknown
}
