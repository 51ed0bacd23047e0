//! A fixed rate of responses in the bins of a timeline: as many in each, while queries are lost.

use crate::interval::per;
use crate::statistics::{mean, median, variance};
use crate::timeline::Bin;

/// Responses scatter this many times less than random losses would leave them: with as many bins
/// as below, chance does that less than once in a thousand times (chi-squared).
const PLATEAU: f64 = 3.0;
/// Bins that are enough to tell.
const PLATEAU_BINS: usize = 50;
/// The same of whole seconds, of which there are fewer.
const PLATEAU_SECONDS: usize = 8;
const PLATEAU_OF_SECONDS: f64 = 10.0;
/// From this share of the windows on, what they have is usual. Of windows with random losses,
/// at most 0.63 were that alike in 7,200 simulated runs.
const USUAL: f64 = 0.75;
/// Deviations of random losses by which such windows may be apart.
const USUAL_APART: f64 = 0.4;
/// The variance that random losses give to a window of them.
const USUAL_VARIANCE: f64 = 2.0;
/// From this share of the queries on, a fixed rate of responses is a limit.
pub(super) const LIMITED_MIN: f64 = 0.02;
/// Servers, threads or paths that take turns are seldom more.
pub(super) const TURNS_MAX: u64 = 16;
/// Of turns, the share differs by no more than this part of the queries.
const TURNS_APART: f64 = 0.000_5;
pub(super) const SECOND_NS: u64 = 1_000_000_000;
/// Responses in a bin that are enough to tell.
pub(super) const PLATEAU_RESPONSES: f64 = 5.0;

pub(super) fn answered_in(bin: &Bin) -> u64 {
    bin.due - bin.lost.min(bin.due)
}

/// Queries answered of how many at most `TURNS_MAX`, where that is the share in these bins. A load
/// without peaks does not distinguish it from a fixed rate.
pub(super) fn turns(bins: &[Bin]) -> Option<(u64, u64)> {
    let due: u64 = bins.iter().map(|bin| bin.due).sum();
    let answered: u64 = bins.iter().map(answered_in).sum();
    let apart = (due as f64 * TURNS_APART).max(1.0);
    let is_share = |part: u64, of: u64| {
        let exact = due as f64 * part as f64 / of as f64;
        (answered as f64 - exact).abs() <= apart
    };
    let mut each = (2..=TURNS_MAX).flat_map(|of| (1..of).map(move |part| (part, of)));
    each.find(|(part, of)| is_share(*part, *of))
}

/// Queries a second that were answered in these bins, if some were lost, and as many were answered
/// in each bin, each tenth of a second or each second.
pub(super) fn plateau_qps(bins: &[Bin], width_ns: u64) -> Option<f64> {
    let (mean, lost) = mean_and_lost(bins)?;
    let is_plateau = windows(width_ns).into_iter().any(|(length, number, less)| {
        let windows = bins.chunks_exact(length);
        let answered = windows.map(|it| it.iter().map(answered_in).sum::<u64>() as f64);
        is_plateau(&answered.collect::<Vec<f64>>(), lost, number, less)
    });
    is_plateau.then(|| mean / (width_ns as f64 / 1e9))
}

/// Windows by their number of bins, with how many of them tell, and how many times less than random
/// losses a limit scatters them. A token bucket that is filled all the time evens out what comes in
/// a tenth of a second; it may also be filled once a second.
pub(super) fn windows(width_ns: u64) -> [(usize, usize, f64); 3] {
    let bins = |ns: u64| (ns / width_ns).max(1) as usize;
    [
        (1, PLATEAU_BINS, PLATEAU),
        (bins(SECOND_NS / 10), PLATEAU_BINS, PLATEAU),
        (bins(SECOND_NS), PLATEAU_SECONDS, PLATEAU_OF_SECONDS),
    ]
}

/// Queries answered in a bin on average, and the share that was lost; none if that hardly matters.
fn mean_and_lost(bins: &[Bin]) -> Option<(f64, f64)> {
    let sum = |of: fn(&Bin) -> u64| bins.iter().map(of).sum::<u64>() as f64;
    let mean = per(sum(answered_in), bins.len() as f64);
    let lost = per(sum(|bin| bin.lost), sum(|bin| bin.due));
    (lost >= LIMITED_MIN).then_some((mean, lost))
}

/// The same, if as many were answered in most of the bins whose queries left on time, and some were
/// lost in all of these: of what a generator sends late, a limit answers another number.
pub(super) fn usual_qps(bins: &[Bin], width_ns: u64) -> Option<f64> {
    let (mean, lost) = mean_and_lost(bins)?;
    // Random losses scatter windows by a whole query only if enough are answered and lost in each.
    let of_scatter = USUAL_VARIANCE / (mean * lost).max(f64::MIN_POSITIVE);
    let of_answers = PLATEAU_RESPONSES / mean.max(f64::MIN_POSITIVE);
    let length = of_scatter.max(of_answers).ceil().max(1.0);
    // A window of more bins than there are is none.
    let length = length.min(bins.len() as f64 + 1.0) as usize;
    let windows = bins.chunks_exact(length);
    let on_time = windows.filter(|bins| bins.iter().all(|bin| bin.sent == bin.due));
    let sums = on_time.map(|bins| {
        let answered: u64 = bins.iter().map(answered_in).sum();
        (answered as f64, bins.iter().any(|bin| bin.lost > 0))
    });
    let sums: Vec<(f64, bool)> = sums.collect();
    let answered: Vec<f64> = sums.iter().map(|(answered, _)| *answered).collect();
    let median = median(&answered).filter(|_| sums.len() >= PLATEAU_BINS)?;
    let scatter = (mean * lost * length as f64).sqrt();
    let apart = (USUAL_APART * scatter).max(0.5);
    let is_usual =
        |(answered, has_lost): &&(f64, bool)| *has_lost && (answered - median).abs() <= apart;
    let usual = sums.iter().filter(is_usual).count();
    let is_fixed = median >= PLATEAU_RESPONSES && per(usual as f64, sums.len() as f64) >= USUAL;
    is_fixed.then(|| median / (length as f64 * width_ns as f64 / 1e9))
}

/// True if as many were answered in each of the windows: random losses would scatter them. Of the
/// queries due, these leave a number whose variance is that of the binomial.
pub(super) fn is_plateau(answered: &[f64], lost: f64, windows_min: usize, less: f64) -> bool {
    let (Some(mean), Some(variance)) = (mean(answered), variance(answered)) else {
        return false;
    };
    let are_enough = answered.len() >= windows_min && mean >= PLATEAU_RESPONSES;
    are_enough && variance < mean * lost / less
}
