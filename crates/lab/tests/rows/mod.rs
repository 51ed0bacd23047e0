//! Tables that tests make, a line for each row on standard output: `cargo test --test simulated
//! --test timed -- situations suite --show-output | grep '^| '`.

use measure::{Limit, Verdict};

/// Of a situation: what was judged, by which advice, and the limit when the advice was followed.
pub(crate) fn print(name: &str, verdict: &Verdict, advice: &str, followed: Option<Limit>) {
    let limit = verdict.limit.name();
    let evidence = verdict.evidence.first().map_or("", String::as_str);
    let followed = followed.map_or("(to be looked at)", Limit::name);
    println!("{}", line(&[name, limit, evidence, advice, followed]));
}

/// The cells as a line.
pub(crate) fn line(cells: &[&str]) -> String {
    format!("| {} |", cells.join(" | "))
}
