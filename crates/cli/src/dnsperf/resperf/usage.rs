//! The options of resperf 2.14 as tables, and the help made from them.

use super::super::usage::{ShortOption, help_of, long_help_of, switch, takes};

/// All of them, in the order of resperf's help.
pub(super) const SHORT_OPTIONS: [ShortOption; 28] = [
    takes(
        b'f',
        "family",
        "address family: inet, inet6 or any",
        Some("any"),
    ),
    takes(b'M', "mode", "transport: udp, tcp, dot or doh", Some("udp")),
    takes(
        b's',
        "server_addr",
        "name or address of the server under test",
        Some("127.0.0.1"),
    ),
    takes(
        b'p',
        "port",
        "port of the server",
        Some("53 for udp and tcp, 853 for dot, 443 for doh"),
    ),
    takes(b'a', "local_addr", "source address of the queries", None),
    takes(
        b'x',
        "local_port",
        "first source port, 0 for any",
        Some("0"),
    ),
    takes(b'd', "datafile", "file of the questions", Some("stdin")),
    takes(
        b't',
        "timeout",
        "seconds until a query counts as lost",
        Some("45"),
    ),
    takes(
        b'b',
        "buffer_size",
        "socket send and receive buffers in kilobytes",
        None,
    ),
    switch(b'e', "send EDNS"),
    takes(
        b'E',
        "code:value",
        "send this EDNS option, value in hex (implies -e)",
        None,
    ),
    switch(b'D', "set the DO bit (implies -e)"),
    takes(
        b'y',
        "[alg:]name:secret",
        "sign with this TSIG key, secret in base64",
        None,
    ),
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
    takes(
        b'C',
        "clients",
        "clients, each with its own socket or connection",
        Some("1"),
    ),
    takes(
        b'q',
        "num_outstanding",
        "queries outstanding at which the ramp ends",
        Some("65536"),
    ),
    switch(b'v', "verbose (nothing is logged per query here)"),
    switch(b'W', "warnings and errors to stdout instead of stderr"),
    switch(b'R', "begin the file anew at its end"),
    takes(
        b'F',
        "fall_behind",
        "queries due and not sent at which the ramp ends, 0 for any number",
        Some("1000"),
    ),
    switch(b'h', "print this help"),
    switch(b'H', "print the help for long options"),
    takes(b'O', "name[=value]", "set a long option", None),
];

/// The help of `-h`.
pub(super) fn help() -> String {
    help_of("resperf", &SHORT_OPTIONS)
}

/// The help of `-H`.
pub(super) fn long_help() -> String {
    long_help_of("resperf")
}
