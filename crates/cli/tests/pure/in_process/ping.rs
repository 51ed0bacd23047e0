//! `throng ping`: what it refuses before it sends anything.

use crate::call::throng;

#[test]
fn a_ping_that_makes_no_sense_is_refused() {
    for (flags, what, cure) in [
        ("a.example", "--server is missing", "throng responder"),
        (
            "a.example --server 127.0.0.1 --server ::1",
            "more than once",
            "throng eval",
        ),
        (
            "a..example --server 127.0.0.1",
            "a..example",
            "1 to 63 bytes",
        ),
        (
            "a.example --server 127.0.0.1 --type AAA",
            "unknown type `AAA`",
            "mnemonics",
        ),
        (
            "a.example --server 127.0.0.1 --outstanding 5",
            "--outstanding cannot be used",
            "ping",
        ),
        (
            "a.example --server 127.0.0.1 --run-format csv",
            "--run-format cannot be used",
            "ping",
        ),
        (
            "a.example --server 127.0.0.1 --interval 0s",
            "--interval",
            "1s",
        ),
        (
            "a.example --server 192.88.99.1 --interval 10ms",
            "public address",
            "--allow-public",
        ),
        (
            "a.example --server 127.0.0.1 --tls-insecure",
            "--tls-insecure has no",
            "dot",
        ),
        (
            "a.example --server 127.0.0.1 --driver sim",
            "--driver sim",
            "throng run",
        ),
    ] {
        throng(&format!("ping {flags}")).refused_with(what, cure);
    }
}
