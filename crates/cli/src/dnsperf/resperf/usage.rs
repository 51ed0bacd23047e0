//! The options of resperf 2.14 as tables, and the help made from them.

use super::super::options::named;
use super::super::usage::{ShortOption, help_of, long_help_of, of_dnsperf, switch, takes};

/// All of them, in the order and with the words of resperf's help.
pub(super) const SHORT_OPTIONS: [ShortOption; 28] = [
    of_dnsperf(b'f'),
    of_dnsperf(b'm').with_letter(b'M'),
    of_dnsperf(b's'),
    of_dnsperf(b'p'),
    of_dnsperf(b'a'),
    of_dnsperf(b'x'),
    of_dnsperf(b'd'),
    of_dnsperf(b't').with_default("45"),
    of_dnsperf(b'b'),
    of_dnsperf(b'e'),
    of_dnsperf(b'E'),
    of_dnsperf(b'D'),
    of_dnsperf(b'y').with_help("the TSIG algorithm, name and secret"),
    takes(
        b'i',
        "plot_interval",
        "the time interval between plot data points, in seconds",
    )
    .with_default("0.5"),
    takes(b'm', "max_qps", "the maximum number of queries per second").with_default("100000"),
    takes(b'P', "plotfile", "the name of the plot data file").with_default("resperf.gnuplot"),
    takes(b'r', "ramp_time", "the ramp-up time in seconds").with_default("60"),
    takes(
        b'c',
        "constant_traffic_time",
        "how long to send constant traffic, in seconds",
    )
    .with_default("0"),
    takes(
        b'L',
        "max_query_loss",
        "the maximum acceptable query loss, in percent",
    )
    .with_default("100"),
    of_dnsperf(b'c').with_letter(b'C').with_default("1"),
    takes(
        b'q',
        "num_outstanding",
        "the maximum number of queries outstanding",
    )
    .with_default("65536"),
    switch(b'v', "verbose: report additional information to stdout"),
    of_dnsperf(b'W'),
    // Spelled so there.
    switch(b'R', "reopen datafile on end, allow for infinit use of it"),
    takes(
        b'F',
        "fall_behind",
        "the maximum number of queries that is allowed to fall behind, zero to disable",
    )
    .with_default("1000"),
    of_dnsperf(b'h'),
    of_dnsperf(b'H'),
    of_dnsperf(b'O'),
];

/// The help of `-h`.
pub(super) fn help() -> String {
    help_of("resperf", &SHORT_OPTIONS)
}

/// The long options, in the order of resperf's help; the last is our own.
pub(super) const LONG_OPTIONS: [&str; 6] = [
    "num-queries-per-conn",
    "suppress",
    "tls-sni",
    "doh-method",
    "doh-uri",
    "allow-public",
];

/// The help of `-H`.
pub(super) fn long_help() -> String {
    let options: Vec<_> = LONG_OPTIONS.iter().filter_map(|name| named(name)).collect();
    long_help_of("resperf", &options).replace("see man-page", "see dnsperf(1) man-page")
}
