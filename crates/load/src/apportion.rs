//! Divides a total by weights: clients, slots and queries as whole numbers, rates as fractions.
//!
//! Top-level totals are divided among groups and targets; the shares add up to the total exactly,
//! whatever the weights are.

#[cfg(test)]
mod tests;

/// Divides `total` by largest remainder: the shares add up to it exactly, and each is the whole
/// number below or above the exact share. Of equal remainders the first come first.
///
/// # Panics
/// If no weight is above zero, or one is negative or not finite.
pub fn whole(total: u64, weights: &[f64]) -> Vec<u64> {
    let exact = exact(total as f64, weights);
    let mut shares: Vec<u64> = exact.iter().map(|share| share.floor() as u64).collect();
    let mut by_remainder: Vec<usize> = (0..weights.len()).collect();
    let remainder = |index: &usize| exact[*index] - exact[*index].floor();
    by_remainder.sort_by(|a, b| remainder(b).total_cmp(&remainder(a)));
    let placed: u64 = shares.iter().sum();
    let mut left = total.saturating_sub(placed);
    // Weights of zero get nothing.
    let wanted = by_remainder.iter().filter(|index| weights[**index] > 0.0);
    for index in wanted.cycle() {
        if left == 0 {
            break;
        }
        shares[*index] += 1;
        left -= 1;
    }
    // Rounding of a product may reach the next whole number from below.
    let mut over = shares.iter().sum::<u64>().saturating_sub(total);
    for index in by_remainder.iter().rev() {
        let taken = over.min(shares[*index]);
        shares[*index] -= taken;
        over -= taken;
    }
    shares
}

/// As [`whole`], but each share is at least 1; none if `total` is less than the number of weights.
///
/// # Panics
/// As [`whole`].
pub fn whole_of_one_or_more(total: u64, weights: &[f64]) -> Option<Vec<u64>> {
    if total < weights.len() as u64 {
        return None;
    }
    let mut shares = whole(total, weights);
    while let Some(empty) = shares.iter().position(|share| *share == 0) {
        let largest = (0..shares.len()).max_by_key(|index| shares[*index])?;
        shares[largest] -= 1;
        shares[empty] = 1;
    }
    Some(shares)
}

/// Divides a rate: each share is exact but for the rounding of its last binary digit.
///
/// # Panics
/// As [`whole`].
pub fn exact(total: f64, weights: &[f64]) -> Vec<f64> {
    let all: f64 = weights.iter().sum();
    let are_weights = weights
        .iter()
        .all(|weight| weight.is_finite() && *weight >= 0.0);
    assert!(are_weights && all > 0.0, "weights are above zero");
    let share = |weight: &f64| total * (weight / all);
    weights.iter().map(share).collect()
}
