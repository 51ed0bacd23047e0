//! Experiments: which runs there are of what is varied, in which order they are made, and how their
//! files are called.
//!
//! Cells and levels are positions here: what they are of is the caller's.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// In which order the runs of cells are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each repetition has all cells, in an order of its own; the same seed gives the same orders.
    Random {
        /// Seed of all orders.
        seed: u64,
    },
    /// As they are listed, in every repetition.
    Listed,
    /// As they are listed, and every other time back again, so that what drifts on the host meets
    /// all alike: A B, B A, A B.
    ThereAndBack,
}

/// One run of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Position of the cell among all.
    pub cell: usize,
    /// Which run of its cell, from 1.
    pub repetition: u32,
}

/// There are more combinations than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany {
    /// How many, as far as that can be counted.
    pub number: usize,
}

/// Every combination of one level of each axis, as positions. `levels` has the number of levels of
/// each axis. The last axis changes first. Without axes there is one combination, the empty one.
///
/// # Errors
/// There are more than `number_max`.
pub fn combinations(levels: &[usize], number_max: usize) -> Result<Vec<Vec<usize>>, TooMany> {
    let number = levels.iter().copied().fold(1, usize::saturating_mul);
    if number > number_max {
        return Err(TooMany { number });
    }
    let mut all = vec![Vec::new()];
    for levels in levels {
        let mut with_it = Vec::with_capacity(all.len() * levels);
        for combination in &all {
            with_it.extend((0..*levels).map(|level| {
                let mut longer: Vec<usize> = combination.clone();
                longer.push(level);
                longer
            }));
        }
        all = with_it;
    }
    Ok(all)
}

/// All runs of `cells` cells, one repetition after the other.
pub fn turns(cells: usize, repetitions: u32, order: Order) -> Vec<Turn> {
    let seed = match order {
        Order::Random { seed } => seed,
        Order::Listed | Order::ThereAndBack => 0,
    };
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut turns = Vec::new();
    for repetition in 1..=repetitions {
        let mut positions: Vec<usize> = (0..cells).collect();
        match order {
            Order::Random { .. } => shuffle(&mut positions, &mut generator),
            Order::ThereAndBack if repetition % 2 == 0 => positions.reverse(),
            Order::ThereAndBack | Order::Listed => {}
        }
        turns.extend(positions.into_iter().map(|cell| Turn { cell, repetition }));
    }
    turns
}

/// Fisher and Yates; the bias of a remainder of 64 bits is below 2^-40.
fn shuffle(order: &mut [usize], generator: &mut Xoshiro256PlusPlus) {
    for last in (1..order.len()).rev() {
        let other = generator.next_u64() % (last as u64 + 1);
        order.swap(last, other as usize);
    }
}

/// The name of a run's files: what is varied with its value in this run, and the repetition. Two
/// runs that differ in either have different names.
pub fn file_name(levels: &[(String, String)], repetition: u32) -> String {
    let each = levels.iter();
    let mut words: Vec<String> = each
        .map(|(name, value)| format!("{}={}", in_file_name(name), in_file_name(value)))
        .collect();
    words.push(format!("r{repetition}"));
    words.join(",")
}

/// `text` in a file's name: whatever else has a meaning there is `%` and the octet in hexadecimal.
fn in_file_name(text: &str) -> String {
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"._+-".contains(&octet);
    let octets = text.bytes().map(|octet| match is_plain(octet) {
        true => char::from(octet).to_string(),
        false => format!("%{octet:02X}"),
    });
    octets.collect()
}

/// The values of a range, `1..100+10` by addition or `1..24000*2` by multiplication; the last one
/// is always among them. Of more than `number_max` the rest is left out. None if it is not a range.
pub fn range(text: &str, number_max: usize) -> Option<Vec<String>> {
    let (first, rest) = text.split_once("..")?;
    let at = rest.find(['+', '*'])?;
    let (last, step) = rest.split_at(at);
    let (first, last): (f64, f64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let by: f64 = step[1..].trim().parse().ok()?;
    let is_sum = step.starts_with('+');
    let grows = match is_sum {
        true => by > 0.0,
        false => by > 1.0 && first > 0.0,
    };
    if !grows || last < first {
        return None;
    }
    let mut values = Vec::new();
    let mut next = first;
    while next < last && values.len() <= number_max {
        values.push(next);
        next = if is_sum { next + by } else { next * by };
    }
    values.push(last);
    let whole = first.fract() == 0.0 && by.fract() == 0.0 && last.fract() == 0.0;
    let text = |value: f64| match whole {
        true => format!("{value:.0}"),
        false => value.to_string(),
    };
    Some(values.into_iter().map(text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cells of each repetition.
    fn cells(number: usize, repetitions: u32, order: Order) -> Vec<Vec<usize>> {
        let turns = turns(number, repetitions, order);
        let of = |repetition| {
            let turns = turns.iter().filter(|it| it.repetition == repetition);
            turns.map(|it| it.cell).collect()
        };
        (1..=repetitions).map(of).collect()
    }

    #[test]
    fn the_last_axis_changes_first_and_nothing_varied_is_one_cell() {
        let all = combinations(&[2, 3], 6).unwrap();
        assert_eq!(all, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
        assert_eq!(combinations(&[], 1).unwrap(), [[0; 0]]);
        assert_eq!(combinations(&[2, 3], 5), Err(TooMany { number: 6 }));
        let endless = combinations(&[usize::MAX, 3], 5).unwrap_err();
        assert_eq!(endless.number, usize::MAX);
    }

    #[test]
    fn there_and_back_meets_what_drifts_alike() {
        let order = Order::ThereAndBack;
        assert_eq!(cells(2, 3, order), [[0, 1], [1, 0], [0, 1]]);
        assert_eq!(cells(3, 2, Order::Listed), [[0, 1, 2], [0, 1, 2]]);
    }

    #[test]
    fn a_random_order_has_every_cell_in_each_repetition_and_is_repeated_by_its_seed() {
        let all = cells(8, 20, Order::Random { seed: 7 });
        for order in &all {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..8).collect::<Vec<_>>());
        }
        assert!(all.iter().any(|order| *order != all[0]));
        assert_eq!(cells(8, 20, Order::Random { seed: 7 }), all);
        assert_ne!(cells(8, 20, Order::Random { seed: 8 }), all);
    }

    #[test]
    fn different_runs_have_different_files() {
        let levels = |name: &str, value: &str| [(name.to_owned(), value.to_owned())];
        assert_eq!(file_name(&levels("rate", "10k"), 1), "rate=10k,r1");
        assert_eq!(
            file_name(&levels("a/b", "c,d=1"), 12),
            "a%2Fb=c%2Cd%3D1,r12"
        );
        assert_eq!(file_name(&[], 3), "r3");
    }

    #[test]
    fn ranges_add_or_multiply_and_end_with_their_last_value() {
        let values = |text: &str| range(text, 100).unwrap().join(" ");
        assert_eq!(values("1..100*10"), "1 10 100");
        assert_eq!(values("1..24+10"), "1 11 21 24");
        assert_eq!(values("0.5..2+0.5"), "0.5 1 1.5 2");
        assert_eq!(values("5..5+1"), "5");
        for wrong in ["5..1+1", "1..5*1", "0..5*2", "1..5", "1..5+0", "a..5+1"] {
            assert_eq!(range(wrong, 100), None, "{wrong}");
        }
        assert!(range("1..9999+1", 100).unwrap().len() > 100);
    }
}
