//! Clients that ask again and have several servers: what is refused.

use testing::folder::Folder;

use crate::call::throng;

/// Checks that a run is refused with these parts in its error and its hint.
fn check(flags: &str, error_part: &str, hint_part: &str) {
    throng(&format!("run {flags}")).refused_with(error_part, hint_part);
}

#[test]
fn malformed_retry_schedules_are_refused() {
    check("--retry 3s,3s --timeout 2s", "--timeout", "leave out one");
    for (flags, error) in [
        ("--retry soon", "`soon` is not a time above zero"),
        ("--retry 3s,0s", "`0s` is not a time above zero"),
        (
            "--retry glibc,rotate",
            "`rotate`: write timeout=5 or attempts=2",
        ),
    ] {
        check(flags, error, "run --help");
    }
}

#[test]
fn flags_for_several_servers_are_refused_for_one() {
    let no_effect = "it has no effect on clients with one server";
    for (flags, hint) in [
        ("--server-order rotate", "repeating --server"),
        ("--race-delay --transport tcp", "several servers"),
        ("--failover-rcodes SERVFAIL", "several servers"),
        ("--server-dead-for 30s", "several servers"),
    ] {
        check(flags, no_effect, hint);
    }
}

#[test]
fn contradictory_flags_are_refused() {
    let folder = Folder::new("stub-contradictions");
    let names = folder.write("names.txt", "a.example A\n");
    let two = format!("--server 127.0.0.1:1 --server 127.0.0.1:2 --names {names}");
    for (flags, error, hint) in [
        ("--failover-rcodes OOPS", "unknown RCODE `OOPS`", "SERVFAIL"),
        (
            "--race-delay",
            "udp has no TCP connections",
            "tcp, dot or doh2",
        ),
        (
            "--transport tcp --server-order all",
            "a client over tcp has one connection at a time",
            "--race-delay",
        ),
        (
            "--transport tcp --race-delay 0s",
            "race-delay: must not be zero",
            "RFC 8305",
        ),
        (
            "--server 127.0.0.1:1",
            "127.0.0.1:1 occurs twice",
            "leave out one of them",
        ),
        (
            "--local-port 4000",
            "a client has a socket for each of its servers",
            "let the kernel choose",
        ),
        (
            "--server 192.0.33.8",
            "192.0.33.8 is a public address",
            "--allow-public",
        ),
        (
            "--server 127.0.0.2:1 --transport dot",
            "the certificates of 3 servers, and no one name for them",
            "--tls-name",
        ),
        (
            "--server http://127.0.0.1:3/q --transport doh2",
            "requests to both have one URI",
            "the same scheme and path",
        ),
    ] {
        check(&format!("{two} {flags}"), error, hint);
    }
}
