//! `loops` in scenarios: a list that several groups and targets ask so many times together.
//!
//! Each question is asked that many times in all. So one part of them goes on in the list where the
//! part before it stops.

use lab::run::RunRequest;
use load::apportion;
use load::question_source::ListPart;
use measure::notation::counted;
use serde::{Deserialize, Serialize};

use super::groups::Group;
use crate::failure::Failure;

/// The part that clients have in the rounds of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rounds {
    /// The group that states them; none for those of the top.
    of: Option<String>,
    /// Of all who ask the list together, 0 to 1.
    pub(super) share: f64,
}

impl Rounds {
    /// All of those that are stated for the whole run.
    pub(super) fn of_all() -> Rounds {
        Rounds {
            of: None,
            share: 1.0,
        }
    }

    /// All of those that this group states.
    pub(super) fn of_group(name: &str) -> Rounds {
        Rounds {
            of: Some(name.to_owned()),
            share: 1.0,
        }
    }
}

/// Divides the queries of `loops` among those that ask the same list together.
///
/// # Errors
/// There are fewer than there are groups and targets.
pub(crate) fn share_out(groups: &[Group], requests: &mut [RunRequest]) -> Result<(), Failure> {
    let asks_with = |a: usize, b: usize, requests: &[RunRequest]| {
        let list = |it: usize| {
            let request = &requests[it];
            let source = &request.description.questions_source;
            (source.clone(), request.plan.questions.len())
        };
        let has_rounds = groups[b].arguments.loops.is_some();
        has_rounds && groups[a].rounds.of == groups[b].rounds.of && list(a) == list(b)
    };
    let mut is_done = vec![false; groups.len()];
    for index in 0..groups.len() {
        if is_done[index] || groups[index].arguments.loops.is_none() {
            continue;
        }
        let together: Vec<usize> = (index..groups.len())
            .filter(|other| asks_with(index, *other, requests))
            .collect();
        together.iter().for_each(|each| is_done[*each] = true);
        if together.len() > 1 {
            divide(groups, requests, &together)?;
        }
    }
    Ok(())
}

/// Divides the queries of those that ask one list together; each of them has all so far.
fn divide(
    groups: &[Group],
    requests: &mut [RunRequest],
    together: &[usize],
) -> Result<(), Failure> {
    let (first, seed) = (&groups[together[0]], requests[together[0]].plan.seed);
    let all = requests[together[0]].plan.queries_max.unwrap_or(0);
    let weights: Vec<f64> = together.iter().map(|it| groups[*it].rounds.share).collect();
    let shares = apportion::whole_of_one_or_more(all, &weights).ok_or_else(|| {
        let what = format!(
            "loops ask {}, too few for the {} groups and targets that share them",
            counted(all, "query"),
            weights.len()
        );
        first.blame(Failure::usage(
            what,
            "raise loops, or give each group its own",
        ))
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
