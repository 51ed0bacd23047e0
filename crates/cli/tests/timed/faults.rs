//! Verdicts of faults (`crates/cli/tests/faulty`) that need a quiet host.

use measure::Limit::{Generator, Rate};
use proto::Transport::{Doq, Dot, Udp};

use crate::faulty::fault::{Ends, Fault, Target};
use crate::faulty::table;

const NONE: Fault = Fault::NONE;

/// Something that uses all of a CPU until the row has ended.
const HOG: &str = "taskset -c $CPU timeout 60 sh -c 'while :; do :; done' >/dev/null 2>&1 & \
                   echo $! >$IN/hog";
const END_HOG: &str = "kill $(cat $IN/hog)";

#[test]
fn verdicts_that_a_busy_host_left_open_are_decided() {
    table::decide_open();
}

#[test]
fn runs_that_share_their_cpu_lose_nothing() {
    table::decide("shared CPU", &table::rows_of(SHARED_CPU));
}

/// Runs that share their CPU on purpose, which disturbs what runs beside.
const SHARED_CPU: &[Fault] = &[
    Fault {
        name: "a hog on its CPU",
        over: &[Udp, Dot, Doq],
        before: HOG,
        around: r#"exec taskset -c $CPU "$@""#,
        is_disturbing: true,
        ends: Ends::measured(&[Generator, Rate], ""),
        after: END_HOG,
        ..NONE
    },
    Fault {
        name: "a hog on its CPU, and less priority",
        before: HOG,
        around: r#"exec nice -n 19 taskset -c $CPU "$@""#,
        is_disturbing: true,
        ends: Ends::measured(&[Generator], "its CPU"),
        after: END_HOG,
        ..NONE
    },
    Fault {
        name: "the built-in responder's CPU is the run's",
        over: &[Udp, Dot],
        target: Target::BuiltIn { alone: false },
        around: r#"exec taskset -c $CPU "$@""#,
        is_disturbing: true,
        ends: Ends::measured(&[Generator, Rate], ""),
        ..NONE
    },
];
