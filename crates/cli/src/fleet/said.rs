//! What the log of a lead says of it: the version of its program, first of all, and at its end
//! what went wrong.

/// The version of this program.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What is around the version in the first line of the log.
const FIRST: [&str; 2] = ["throng ", " leads"];
/// What begin the lines of a failure.
const ERROR: &str = "error: ";
const HINT: &str = "hint: ";

/// The first line of the log of a lead with this program.
pub(super) fn first_line() -> String {
    format!("{}{VERSION}{}", FIRST[0], FIRST[1])
}

/// The version of a lead whose log begins with that line; none of another program, or of a version
/// that does not say it.
pub(super) fn version(first: &str) -> Option<&str> {
    first.strip_prefix(FIRST[0])?.strip_suffix(FIRST[1])
}

/// The last failure in a log, and what it says to do.
pub(super) fn last_failure(log: &str) -> Option<(&str, Option<&str>)> {
    let lines: Vec<&str> = log.lines().collect();
    let last = lines.iter().rposition(|line| line.starts_with(ERROR))?;
    let hint = lines.get(last + 1).and_then(|line| line.strip_prefix(HINT));
    Some((&lines[last][ERROR.len()..], hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_in_the_first_line() {
        assert_eq!(version(&first_line()), Some(VERSION));
        assert_eq!(version("throng 0.0.9 leads"), Some("0.0.9"));
        for other in [
            "error: unexpected argument '--keep' found",
            "throng leads",
            "",
        ] {
            assert_eq!(version(other), None, "{other}");
        }
    }

    #[test]
    fn last_failure_has_the_hint_that_follows_it() {
        let log = "error: first\nhint: of the first\nnote\nerror: last\nhint: of the last\nend\n";
        assert_eq!(last_failure(log), Some(("last", Some("of the last"))));
        assert_eq!(last_failure("error: alone\nnote\n"), Some(("alone", None)));
        assert_eq!(last_failure("hint: of nothing\n"), None);
    }
}
