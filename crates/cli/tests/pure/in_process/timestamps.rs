//! `--timestamps` where it cannot be had, and conditions on what it measures.

use crate::call::throng;

#[test]
fn condition_on_an_unmeasured_part_of_the_latency_fails() {
    let run = "run --driver sim --quiet --rate 200 --duration 300ms --delay 5ms";
    let unstamped = throng(&format!("{run} --require wire.p99<1m"));
    let why = "wire.p99 was not measured: it takes a run over UDP with --timestamps";
    assert!(unstamped.stderr.contains(why), "{}", unstamped.stderr);
    unstamped.ended_with(3);
}

#[test]
fn timestamps_that_cannot_be_had_are_refused() {
    for (flags, what, cure) in [
        (
            "--transport tcp",
            "--timestamps: tcp has the kernel cut bytes",
            "udp",
        ),
        (
            "--transport dot",
            "--timestamps: dot has the kernel cut bytes",
            "udp",
        ),
        (
            "--transport doq",
            "--timestamps: doq puts several queries",
            "udp",
        ),
        (
            "--transport doh3",
            "--timestamps: doh3 puts several queries",
            "udp",
        ),
        (
            "--driver sim",
            "--timestamps has no effect on a simulation",
            "epoll",
        ),
        (
            "--driver uring",
            "--timestamps has no effect on io_uring",
            "epoll",
        ),
        (
            "--retry 1s",
            "--timestamps: clients that ask again",
            "leave out",
        ),
    ] {
        let (error, hint) = throng(&format!("run --timestamps kernel {flags}")).refused();
        assert!(error.contains(what), "{flags}: {error}");
        assert!(hint.contains(cure), "{flags}: {hint}");
    }
}
