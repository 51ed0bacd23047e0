//! What several runs show together, and what they do not: the first that a reader has to know.

use measure::Limit;
use measure::notation::{count, counted};

use crate::collection::{Cell, Collection};
use crate::document::Conclusion;

/// What a limit lets a reader conclude of a scenario, and what it does not.
const MEANINGS: [(Limit, &str, &str); 7] = [
    (Limit::Server, "what the target can take", ""),
    (
        Limit::Rate,
        "how the target does at the given rate",
        "its highest rate, which is above the given one",
    ),
    (
        Limit::Outstanding,
        "",
        "its highest rate: no more queries were allowed in flight",
    ),
    (
        Limit::Generator,
        "",
        "anything of the target beyond that rate: the generator or its host was the limit",
    ),
    (
        Limit::Policy,
        "what a rule or a limit admits",
        "what the target can take: a rule or a limit was met",
    ),
    (
        Limit::Network,
        "",
        "what the target can take: drops on the path were the limit",
    ),
    (Limit::Unknown, "", "what limited the rate"),
];

/// Both, as far as there is anything to say.
pub(super) fn of(collection: &Collection) -> Vec<Conclusion> {
    let (mut shown, mut open) = (Vec::new(), Vec::new());
    for (limit, can, cannot) in MEANINGS {
        let cells = collection.cells.iter();
        let cells = cells.filter(|cell| limit_of(collection, cell) == limit);
        let which = which(collection, &cells.collect::<Vec<_>>());
        let Some(which) = which else { continue };
        for (words, list) in [(can, &mut shown), (cannot, &mut open)] {
            if !words.is_empty() {
                list.push(format!("{words} ({which})"));
            }
        }
    }
    let records = || collection.runs.iter().map(|it| &it.record);
    if records().any(|it| it.simulation.is_some()) {
        open.push("anything of a real server: some runs are simulations".to_owned());
    } else if records().any(|it| it.self_test) {
        open.push("anything of a server: the target was the built-in responder".to_owned());
    }
    let is_compared = collection.cells.len() > 1;
    if is_compared && collection.cells.iter().any(|cell| cell.runs.len() == 1) {
        open.push("small differences: one run of a scenario shows no spread".to_owned());
    }
    let all = [("Can be concluded", shown), ("Cannot be concluded", open)];
    let all = all.into_iter().filter(|(_, list)| !list.is_empty());
    let all = all.map(|(heading, sentences)| Conclusion { heading, sentences });
    all.collect()
}

/// The limit that most runs of a scenario had, of those that count if there are any.
fn limit_of(collection: &Collection, cell: &Cell) -> Limit {
    let counted: Vec<Limit> = collection
        .counted(cell)
        .map(|it| it.verdict.limit)
        .collect();
    let limits = match counted.is_empty() {
        true => collection
            .records(cell)
            .map(|it| it.verdict.limit)
            .collect(),
        false => counted,
    };
    let times = |limit: Limit| limits.iter().filter(|it| **it == limit).count();
    let limits = MEANINGS.iter().map(|(limit, _, _)| *limit);
    limits
        .max_by_key(|limit| times(*limit))
        .unwrap_or(Limit::Unknown)
}

/// `2 of 5 scenarios`, or `all scenarios`; none of none.
fn which(collection: &Collection, cells: &[&Cell]) -> Option<String> {
    let all = collection.cells.len();
    match cells {
        [] => None,
        [_] if all == 1 => Some("all runs".to_owned()),
        [only] => Some(collection.name(only)),
        _ if cells.len() == all => Some("all scenarios".to_owned()),
        _ => {
            let all = counted(all as u64, "scenario");
            Some(format!("{} of {all}", count(cells.len() as u64)))
        }
    }
}
