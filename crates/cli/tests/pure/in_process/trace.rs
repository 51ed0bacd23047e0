//! `throng trace`: what it refuses before it sends anything.

use crate::call::throng;

#[test]
fn a_trace_that_makes_no_sense_is_refused() {
    for (flags, what, cure) in [
        ("", "goes to one server", "--server HOST"),
        ("--server 127.0.0.1 --type A,MX", "one question", "one type"),
        (
            "--server 127.0.0.1 --transport tcp",
            "--transport cannot be used",
            "trace",
        ),
        (
            "--server 127.0.0.1 --first-hop 9 --max-hops 3",
            "--first-hop",
            "smaller",
        ),
        ("--server 127.0.0.1 --timeout 0s", "--timeout", "1s"),
    ] {
        throng(&format!("trace a.example {flags}")).refused_with(what, cure);
    }
}
