//! The lines of a names file in another order, the same for the same seed.

use std::fmt;

use crate::random;

/// Keeps these random numbers apart from others that are drawn with the same seed.
const STREAM: u64 = 0x0073_6875_6666_6c65; // "shuffle"

/// Writes the lines of the names file `names` in an order that only `seed` decides.
///
/// Lines of comments come first, in their order; empty lines are left out.
///
/// # Errors
/// `out` failed.
pub fn write_shuffled(names: &str, seed: u64, out: &mut impl fmt::Write) -> fmt::Result {
    let lines = names.lines().map(str::trim).filter(|line| !line.is_empty());
    let (comments, mut questions): (Vec<&str>, Vec<&str>) =
        lines.partition(|line| line.starts_with([';', '#']));
    let mut generator = random::generator(seed, STREAM, 0);
    // Fisher-Yates: every order is equally likely.
    for place in (1..questions.len()).rev() {
        let other = random::below(&mut generator, place as u64 + 1) as usize;
        questions.swap(place, other);
    }
    for line in comments.into_iter().chain(questions) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
