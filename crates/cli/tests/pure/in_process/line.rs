//! `throng line`: what no line can be.

use crate::call::throng;

#[test]
fn flags_that_make_no_line_are_refused_with_a_cure() {
    for (flags, what, cure) in [
        ("--delay 11s", "--delay: 11s is too long", "at most 10s"),
        ("--jitter 1h", "--jitter", "at most 10s"),
        ("--loss 1.5", "1.5", ""),
        ("--loss 0,0,0", "two directions", "--help"),
        ("--rate 0", "0 bits", "such as 10M"),
        ("--rate fast", "not a rate", "--help"),
        ("--queue 5", "--rate", "--help"),
        ("--rate 1M --queue 9000000", "--queue", "at most"),
        ("--between one", "two names", "--help"),
        ("--between same,same", "both ends are `same`", "different"),
        ("--between a/b,c", "`a/b` is not a name", "letters"),
        (
            "--near-addresses 10.98.0.2",
            "10.98.0.2 is not an address",
            "each end",
        ),
        (
            "--duration 1s -- true",
            "cannot be used with",
            "leave out one",
        ),
    ] {
        let (said, hint) = throng(&format!("line {flags}")).refused();
        assert!(said.contains(what), "{flags}: {said}");
        assert!(hint.contains(cure), "{flags}: {hint}");
    }
}
