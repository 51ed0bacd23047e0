//! What the order of the values says: a test of two samples, effect sizes, and the correction for
//! several tests.

use statrs::distribution::{ContinuousCDF, Normal};

use super::{median, sorted};

/// Up to this number of values in both samples together, the distribution of ranks is computed
/// exactly. The number of ways to choose 25 of 50 is below 2^53, so that an `f64` counts them
/// exactly.
const EXACT_MAX: usize = 50;

/// What [`mann_whitney`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// Pairs of a value of the first and one of the second sample in which the first is greater,
    /// pairs of equal ones counted half.
    pub u: f64,
    /// Probability of a `u` at least as far out, to either side, if both samples are of the same
    /// distribution.
    pub p_value: f64,
    /// True if it was counted out, false if approximated by the normal distribution.
    pub exact: bool,
}

/// The rank test of Mann and Whitney (On a Test of Whether One of Two Random Variables Is
/// Stochastically Larger than the Other, 1947), two-sided.
///
/// With up to 50 values in all the p-value is exact, ties included: it is counted over all ways to
/// divide the ranks that there are. With more it is normal, with the correction for ties and for
/// continuity. None if a sample has no values.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<RankTest> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let all: Vec<f64> = first.iter().chain(second).copied().collect();
    let ranks = midranks(&all);
    let number = first.len() as f64;
    let rank_sum: f64 = ranks[..first.len()].iter().sum();
    let exact = all.len() <= EXACT_MAX;
    let p_value = match exact {
        true => exact_p_value(&ranks, first.len()),
        false => normal_p_value(&ranks, first.len()),
    };
    Some(RankTest {
        u: rank_sum - number * (number + 1.0) / 2.0,
        p_value,
        exact,
    })
}

/// The rank of each value, from 1; equal values share the middle of their ranks.
pub fn midranks(values: &[f64]) -> Vec<f64> {
    let sorted = sorted(values);
    let rank = |value: &f64| {
        let below = sorted.partition_point(|other| other.total_cmp(value).is_lt());
        let up_to = sorted.partition_point(|other| other.total_cmp(value).is_le());
        (below + 1 + up_to) as f64 / 2.0
    };
    values.iter().map(rank).collect()
}

/// Counts, of all ways to choose `number` of the ranks, those with a sum as far out as that of the
/// first `number`.
fn exact_p_value(ranks: &[f64], number: usize) -> f64 {
    // Midranks are halves; twice each is whole.
    let doubled: Vec<usize> = ranks.iter().map(|rank| (2.0 * rank) as usize).collect();
    let observed: usize = doubled[..number].iter().sum();
    let most: usize = doubled.iter().sum();
    let mut ways = vec![vec![0.0; most + 1]; number + 1];
    ways[0][0] = 1.0;
    for &rank in &doubled {
        // From many to few, so that each rank is chosen at most once.
        for chosen in (1..=number).rev() {
            for sum in rank..=most {
                let without = ways[chosen - 1][sum - rank];
                ways[chosen][sum] += without;
            }
        }
    }
    let ways = &ways[number];
    let all: f64 = ways.iter().sum();
    let up_to: f64 = ways[..=observed].iter().sum();
    let from: f64 = ways[observed..].iter().sum();
    (2.0 * up_to.min(from) / all).min(1.0)
}

pub(super) fn normal_p_value(ranks: &[f64], number: usize) -> f64 {
    let (all, first) = (ranks.len() as f64, number as f64);
    let second = all - first;
    let sum: f64 = ranks[..number].iter().sum();
    let u = sum - first * (first + 1.0) / 2.0;
    let mean = first * second / 2.0;
    let ties = ties(ranks) / (all * (all - 1.0));
    let deviation = (first * second / 12.0 * (all + 1.0 - ties)).sqrt();
    // All values equal: nothing tells the samples apart.
    if deviation == 0.0 {
        return 1.0;
    }
    let distance = ((u - mean).abs() - 0.5).max(0.0);
    let normal = Normal::standard();
    (2.0 * normal.sf(distance / deviation)).min(1.0)
}

/// The sum over groups of equal ranks of t^3 - t.
fn ties(ranks: &[f64]) -> f64 {
    let sorted = sorted(ranks);
    let groups = sorted.chunk_by(|one, other| one == other);
    let size = |group: &[f64]| group.len() as f64;
    groups.map(|group| size(group).powi(3) - size(group)).sum()
}

/// Cliff's delta: how much likelier a value of `to` is above one of `from` than below it, -1 to 1
/// (Cliff, Dominance Statistics, 1993). 0 without values.
pub fn cliffs_delta(from: &[f64], to: &[f64]) -> f64 {
    let pairs = (from.len() * to.len()) as f64;
    if pairs == 0.0 {
        return 0.0;
    }
    let mut balance = 0.0;
    for one in from {
        for other in to {
            balance += f64::from(u8::from(other > one)) - f64::from(u8::from(other < one));
        }
    }
    balance / pairs
}

/// By how much `to` lies above `from`: the median of all differences (Hodges and Lehmann, Estimates
/// of Location Based on Rank Tests, 1963). None without values in both.
pub fn hodges_lehmann(from: &[f64], to: &[f64]) -> Option<f64> {
    let differences = from
        .iter()
        .flat_map(|one| to.iter().map(move |other| other - one));
    median(&differences.collect::<Vec<f64>>())
}

/// The p-values of several tests, corrected so that the chance of any false alarm among them stays
/// what one test would have (Holm, A Simple Sequentially Rejective Multiple Test Procedure, 1979).
/// In the order in which they came.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let number = p_values.len();
    let mut order: Vec<usize> = (0..number).collect();
    order.sort_by(|&one, &other| p_values[one].total_cmp(&p_values[other]));
    let mut corrected = vec![0.0; number];
    let mut least: f64 = 0.0;
    for (position, &index) in order.iter().enumerate() {
        let factor = (number - position) as f64;
        least = least.max((factor * p_values[index]).min(1.0));
        corrected[index] = least;
    }
    corrected
}
