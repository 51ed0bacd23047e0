//! The options of resperf 2.14 as tables, and the help made from them.

use super::super::usage::{ShortOption, help_of, long_help_of, of_dnsperf, switch, takes};

/// All of them, in the order of resperf's help.
pub(super) const SHORT_OPTIONS: [ShortOption; 28] = [
    of_dnsperf(b'f'),
    of_dnsperf(b'm').with_letter(b'M'),
    of_dnsperf(b's'),
    of_dnsperf(b'p'),
    of_dnsperf(b'a'),
    of_dnsperf(b'x'),
    of_dnsperf(b'd'),
    takes(
        b't',
        "timeout",
        "seconds until a query counts as lost",
        Some("45"),
    ),
    of_dnsperf(b'b'),
    of_dnsperf(b'e'),
    of_dnsperf(b'E'),
    of_dnsperf(b'D'),
    of_dnsperf(b'y'),
    takes(
        b'i',
        "plot_interval",
        "seconds from one point of the plot to the next",
        Some("0.5"),
    ),
    takes(
        b'm',
        "max_qps",
        "rate that the ramp leads to",
        Some("100000"),
    ),
    takes(
        b'P',
        "plotfile",
        "file of the plot data",
        Some("resperf.gnuplot"),
    ),
    takes(b'r', "ramp_time", "seconds of the ramp", Some("60")),
    takes(
        b'c',
        "constant_traffic_time",
        "seconds at the whole rate after the ramp",
        Some("0"),
    ),
    takes(
        b'L',
        "max_query_loss",
        "percentage lost before which the maximum is looked for",
        Some("100"),
    ),
    of_dnsperf(b'c').with_letter(b'C'),
    takes(
        b'q',
        "num_outstanding",
        "queries outstanding at which the ramp ends",
        Some("65536"),
    ),
    switch(b'v', "verbose (nothing is logged per query here)"),
    of_dnsperf(b'W'),
    switch(b'R', "begin the file anew at its end"),
    takes(
        b'F',
        "fall_behind",
        "queries due and not sent at which the ramp ends, 0 for any number",
        Some("1000"),
    ),
    of_dnsperf(b'h'),
    of_dnsperf(b'H'),
    of_dnsperf(b'O'),
];

/// The help of `-h`.
pub(super) fn help() -> String {
    help_of("resperf", &SHORT_OPTIONS)
}

/// The help of `-H`.
pub(super) fn long_help() -> String {
    long_help_of("resperf")
}
