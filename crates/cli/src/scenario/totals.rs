//! Flags that say how much there is of something in all: what is stated once is offered once, and
//! divided where its clients are divided.

use load::apportion;
use load::arrival::parse_rate;
use settings::number::parse_count;

use super::groups::{Part, value};
use crate::args::Given;
use crate::failure::Failure;

/// Rates of all clients together.
const RATES: [&str; 3] = ["rate", "max-rate", "connect-rate"];
/// Whole numbers of all clients together.
const NUMBERS: [&str; 2] = ["outstanding", "queries"];

/// Times that a list is asked by all clients together; how many queries that is shows when the list
/// is read ([`Rounds`](lab::groups::Rounds)).
pub(super) const ROUNDS: &str = "loops";

/// Flags that say when queries are due: a group that states one of them inherits none.
const ARRIVALS: [&str; 5] = ["rate", "outstanding", "per-client", "profile", "script"];
/// Flags that mean something only beside one of them.
const OF_ARRIVAL: [&str; 7] = [
    "max-rate",
    "shape",
    "arrival",
    "burst",
    "profile-zone",
    "profile-mix",
    "rate-factor",
];

/// True if the flag says how much there is in all.
pub(super) fn is_total(name: &str) -> bool {
    RATES.contains(&name) || NUMBERS.contains(&name) || name == ROUNDS
}

/// True if the flag has no meaning beside `later`, which say when queries are due.
pub(super) fn is_replaced(name: &str, later: &[Given]) -> bool {
    let of_arrival = ARRIVALS.contains(&name) || OF_ARRIVAL.contains(&name);
    of_arrival && states_arrival(later)
}

/// True if the flags say when queries are due.
pub(super) fn states_arrival(flags: &[Given]) -> bool {
    let says = |given: &Given| ARRIVALS.contains(&given.name.as_str());
    flags.iter().any(says)
}

/// Divides a part by weights: its clients, and every total that `is_divided`. Who gets no client
/// gets nothing and is left out; none if all have some.
///
/// # Errors
/// There is too little of something for all of them.
pub(super) fn divide(
    part: &Part,
    weights: &[f64],
    is_divided: impl Fn(&str) -> bool,
) -> Result<Vec<Option<Part>>, Failure> {
    let clients = apportion::whole(part.clients.into(), weights);
    let mut parts: Vec<Option<Part>> = (clients.iter())
        .map(|clients| {
            // A share of a u32 is one.
            let clients = *clients as u32;
            let one = Part {
                clients,
                ..part.clone()
            };
            (clients > 0).then_some(one)
        })
        .collect();
    let (mut there, mut of_those) = (Vec::new(), Vec::new());
    for (one, weight) in parts.iter_mut().zip(weights) {
        if let Some(one) = one {
            there.push(one);
            of_those.push(*weight);
        }
    }
    for given in part.flags.iter().filter(|given| is_divided(&given.name)) {
        share_out(&given.name, &mut there, &of_those)?;
    }
    Ok(parts)
}

/// Divides the total `name`, which all `parts` have from the same place, among them.
///
/// # Errors
/// There is too little of it.
pub(super) fn share_out(
    name: &str,
    parts: &mut [&mut Part],
    weights: &[f64],
) -> Result<(), Failure> {
    let Some(first) = parts.first() else {
        return Ok(());
    };
    let place = first.place.clone();
    let Some(text) = value(&first.flags, name).map(str::to_owned) else {
        return Ok(());
    };
    if name == ROUNDS {
        let shares = apportion::exact(1.0, weights);
        for (part, share) in parts.iter_mut().zip(shares) {
            part.rounds.share *= share;
        }
        return Ok(());
    }
    let texts: Vec<String> = if RATES.contains(&name) {
        // What is no rate is refused where all flags are read.
        let Ok(rate) = parse_rate(&text) else {
            return Ok(());
        };
        let rates = apportion::exact(rate, weights);
        rates.iter().map(f64::to_string).collect()
    } else if NUMBERS.contains(&name) {
        let Some(number) = parse_count(&text) else {
            return Ok(());
        };
        let shares = apportion::whole_of_one_or_more(number, weights).ok_or_else(|| {
            let what = format!(
                "{name} {number} is too little for the {} groups and targets that share it",
                weights.len()
            );
            Failure::usage(what, format!("raise {name}, or give each group its own")).of(&place)
        })?;
        shares.iter().map(u64::to_string).collect()
    } else {
        return Ok(());
    };
    for (part, text) in parts.iter_mut().zip(texts) {
        part.set(name, text);
    }
    Ok(())
}
