//! Groups of clients that share a run: how many clients each of them has, and its part of a list
//! that several ask together.

use std::fmt;

use load::apportion;
use load::question_source::ListPart;
use serde::{Deserialize, Serialize};

use crate::run::RunRequest;

/// How many clients a group is to have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wanted {
    /// This many clients.
    Count(u32),
    /// Its part of the population, by a weight above zero.
    Weight(f64),
}

/// Why groups have no clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountsError {
    /// The group at this position has a weight, but no population is stated.
    NoPopulation(usize),
    /// No group has a client.
    None,
    /// This many clients are more than there can be.
    TooMany(u64),
}

/// How many clients each group has: as many as it says, or its part of the population.
///
/// # Errors
/// See [`CountsError`].
pub fn counts(wanted: &[Wanted], population: Option<u32>) -> Result<Vec<u32>, CountsError> {
    let weights = wanted.iter().filter_map(|each| match each {
        Wanted::Weight(weight) => Some(*weight),
        Wanted::Count(_) => None,
    });
    let weights: Vec<f64> = weights.collect();
    let shares = match (weights.is_empty(), population) {
        (false, Some(population)) => apportion::whole(population.into(), &weights),
        _ => Vec::new(),
    };
    let (mut counts, mut shares) = (Vec::new(), shares.into_iter());
    for (position, each) in wanted.iter().enumerate() {
        counts.push(match each {
            Wanted::Count(count) => *count,
            // A share of a u32 is one.
            Wanted::Weight(_) => shares.next().ok_or(CountsError::NoPopulation(position))? as u32,
        });
    }
    match counts.iter().map(|count| u64::from(*count)).sum::<u64>() {
        0 => Err(CountsError::None),
        sum if sum > u64::from(u32::MAX) => Err(CountsError::TooMany(sum)),
        _ => Ok(counts),
    }
}

/// The share of a group in the rounds of a list: several groups may go through the rounds together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rounds {
    /// The group that states them; none for those of the whole run.
    of: Option<String>,
    /// Of all who ask the list together, 0 to 1.
    pub share: f64,
}

/// Rounds ask fewer queries than there are groups and targets that share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewQueries {
    /// Position of the first of them.
    pub first: usize,
    /// How many queries there are.
    pub queries: u64,
    /// Among how many they were to be divided.
    pub parts: usize,
}

impl fmt::Display for TooFewQueries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queries = measure::notation::counted(self.queries, "query");
        let parts = self.parts;
        write!(
            f,
            "loops ask {queries}, too few for the {parts} groups and targets that share them"
        )
    }
}

impl std::error::Error for TooFewQueries {}

impl Rounds {
    /// All of those that are stated for the whole run.
    pub fn of_all() -> Rounds {
        Rounds {
            of: None,
            share: 1.0,
        }
    }

    /// All of those that this group states.
    pub fn of_group(name: &str) -> Rounds {
        Rounds {
            of: Some(name.to_owned()),
            share: 1.0,
        }
    }
}

/// Divides the queries of rounds among the requests that ask the same list together: in total each
/// question is asked once a round, and each request goes on in the list where the one before it
/// stops. A request that asks no rounds has none in `rounds`.
///
/// # Errors
/// There are fewer queries than groups and targets that share them.
pub fn share_rounds(
    rounds: &[Option<&Rounds>],
    requests: &mut [RunRequest],
) -> Result<(), TooFewQueries> {
    let list = |request: &RunRequest| {
        let source = request.description.questions_source.clone();
        (source, request.plan.questions.len())
    };
    let mut is_done = vec![false; rounds.len()];
    for first in 0..rounds.len() {
        let (false, Some(own)) = (is_done[first], rounds[first]) else {
            continue;
        };
        let asked = list(&requests[first]);
        let asks_with = |other: &usize| {
            let is_alike = rounds[*other].is_some_and(|it| it.of == own.of);
            is_alike && list(&requests[*other]) == asked
        };
        let together: Vec<usize> = (first..rounds.len()).filter(asks_with).collect();
        together.iter().for_each(|each| is_done[*each] = true);
        if together.len() > 1 {
            divide(rounds, requests, &together)?;
        }
    }
    Ok(())
}

/// Divides the queries of those that ask one list together; each of them has all so far.
fn divide(
    rounds: &[Option<&Rounds>],
    requests: &mut [RunRequest],
    together: &[usize],
) -> Result<(), TooFewQueries> {
    let first = together[0];
    let seed = requests[first].plan.seed;
    let all = requests[first].plan.queries_max.unwrap_or(0);
    let weights = together.iter().filter_map(|it| Some(rounds[*it]?.share));
    let weights: Vec<f64> = weights.collect();
    let shares = apportion::whole_of_one_or_more(all, &weights).ok_or(TooFewQueries {
        first,
        queries: all,
        parts: weights.len(),
    })?;
    let mut asked = 0;
    for (index, share) in together.iter().zip(shares) {
        let plan = &mut requests[*index].plan;
        plan.queries_max = Some(share);
        plan.question_source.part = Some(ListPart { first: asked, seed });
        asked += share;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_divide_the_population_beside_groups_that_state_their_number() {
        let wanted = [Wanted::Weight(3.0), Wanted::Count(5), Wanted::Weight(7.0)];
        assert_eq!(counts(&wanted, Some(10)), Ok(vec![3, 5, 7]));
        assert_eq!(counts(&wanted, Some(1)), Ok(vec![0, 5, 1]));
        assert_eq!(counts(&wanted[1..2], None), Ok(vec![5]));
    }

    #[test]
    fn groups_without_clients_are_an_error() {
        let weight = Wanted::Weight(1.0);
        let unknown = counts(&[Wanted::Count(1), weight], None);
        assert_eq!(unknown, Err(CountsError::NoPopulation(1)));
        assert_eq!(counts(&[weight], Some(0)), Err(CountsError::None));
        let most = Wanted::Count(u32::MAX);
        let sum = 2 * u64::from(u32::MAX);
        assert_eq!(counts(&[most, most], None), Err(CountsError::TooMany(sum)));
    }
}
