//! The table of situations that tests make, a line for each on standard output: `cargo test --test
//! simulated --test loopback -- situations suite --show-output | grep '^| '`.

use measure::{Limit, Verdict};

/// What was judged, by which advice, and the limit when the advice was followed.
pub(crate) fn print(name: &str, verdict: &Verdict, advice: &str, followed: Option<Limit>) {
    let limit = verdict.limit.name();
    let evidence = verdict.evidence.first().map_or("", String::as_str);
    let followed = followed.map_or("(to be looked at)", Limit::name);
    println!("| {name} | {limit} | {evidence} | {advice} | {followed} |");
}
