//! The options of dnsperf 2.14 as tables, and the help made from them.

use std::fmt::Write;

use super::options::{LONG_OPTIONS, LongOption};

/// Columns of the synopsis, in which each option counts as one more than it has.
const COLUMNS_MAX: usize = 79;

/// An option of one letter.
#[derive(Clone, Copy)]
pub(super) struct ShortOption {
    pub(super) letter: u8,
    /// What its value is called; none if it takes none, or if it is `-O`.
    pub(super) value: Option<&'static str>,
    help: &'static str,
    default: Option<&'static str>,
}

/// The one option whose value has no name in the help.
const LONG: u8 = b'O';

impl ShortOption {
    pub(super) const fn with_letter(self, letter: u8) -> Self {
        ShortOption { letter, ..self }
    }

    pub(super) const fn with_default(self, default: &'static str) -> Self {
        ShortOption {
            default: Some(default),
            ..self
        }
    }

    pub(super) const fn with_help(self, help: &'static str) -> Self {
        ShortOption { help, ..self }
    }

    pub(super) fn takes_value(&self) -> bool {
        self.value.is_some() || self.letter == LONG
    }
}

pub(super) const fn takes(letter: u8, value: &'static str, help: &'static str) -> ShortOption {
    ShortOption {
        letter,
        value: Some(value),
        help,
        default: None,
    }
}

pub(super) const fn switch(letter: u8, help: &'static str) -> ShortOption {
    ShortOption {
        letter,
        value: None,
        help,
        default: None,
    }
}

/// All of them, in the order and with the words of dnsperf's help.
pub(super) const SHORT_OPTIONS: [ShortOption; 27] = [
    takes(
        b'f',
        "family",
        "address family of DNS transport, inet or inet6",
    )
    .with_default("any"),
    takes(b'm', "mode", "set transport mode: udp, tcp, dot or doh").with_default("udp"),
    takes(b's', "server_addr", "the server to query").with_default("127.0.0.1"),
    takes(b'p', "port", "the port on which to query the server")
        .with_default("udp/tcp 53, DoT 853 or DoH 443"),
    takes(
        b'a',
        "local_addr",
        "the local address from which to send queries",
    ),
    takes(
        b'x',
        "local_port",
        "the local port from which to send queries",
    )
    .with_default("0"),
    takes(b'd', "datafile", "the input data file").with_default("stdin"),
    takes(b'c', "clients", "the number of clients to act as"),
    takes(b'T', "threads", "the number of threads to run"),
    takes(b'n', "maxruns", "run through input at most N times"),
    takes(b'l', "timelimit", "run for at most this many seconds"),
    takes(
        b'b',
        "buffer_size",
        "socket send/receive buffer size in kilobytes",
    ),
    takes(
        b't',
        "timeout",
        "the timeout for query completion in seconds",
    )
    .with_default("5"),
    switch(b'e', "enable EDNS 0"),
    takes(b'E', "code:value", "send EDNS option"),
    switch(b'D', "set the DNSSEC OK bit (implies EDNS)"),
    takes(
        b'y',
        "[alg:]name:secret",
        "the TSIG algorithm, name and secret (base64)",
    ),
    takes(
        b'q',
        "num_queries",
        "the maximum number of queries outstanding",
    )
    .with_default("100"),
    takes(b'Q', "max_qps", "limit the number of queries per second"),
    takes(
        b'S',
        "stats_interval",
        "print qps statistics every N seconds",
    ),
    switch(b'u', "send dynamic updates instead of queries"),
    switch(b'B', "read input file as TCP-stream binary format"),
    switch(
        b'v',
        "verbose: report each query and additional information to stdout",
    ),
    switch(b'W', "log warnings and errors to stdout instead of stderr"),
    switch(b'h', "print this help"),
    switch(b'H', "print long options help"),
    switch(LONG, "set long options: <name>=<value>"),
];

/// The option of dnsperf with that letter, for the table of another program.
pub(super) const fn of_dnsperf(letter: u8) -> ShortOption {
    let mut at = 0;
    // A letter that is in no entry does not compile.
    while SHORT_OPTIONS[at].letter != letter {
        at += 1;
    }
    SHORT_OPTIONS[at]
}

/// The help of `-h`.
pub(super) fn help() -> String {
    help_of("dnsperf", &SHORT_OPTIONS)
}

/// The help of `-h` of a program with these options.
pub(super) fn help_of(program: &str, options: &[ShortOption]) -> String {
    let mut text = format!("Usage: {program}");
    let indent = text.len();
    let mut column = indent;
    for option in options {
        let value = option
            .value
            .map(|value| format!(" {value}"))
            .unwrap_or_default();
        let item = format!(" [-{}{value}]", char::from(option.letter));
        if column + item.len() + 1 > COLUMNS_MAX {
            let _ = write!(text, "\n{:indent$}", "");
            column = indent;
        }
        column += item.len() + 1;
        text.push_str(&item);
    }
    text.push('\n');
    for option in options {
        // Writing to a String does not fail.
        let _ = write!(text, "  -{} {}", char::from(option.letter), option.help);
        push_default(&mut text, option.default);
    }
    text
}

/// The help of `-H`.
pub(super) fn long_help() -> String {
    long_help_of("dnsperf", &LONG_OPTIONS.iter().collect::<Vec<_>>())
}

/// The help of `-H` of a program with these long options, and our own.
pub(super) fn long_help_of(program: &str, options: &[&LongOption]) -> String {
    let mut text = format!("Usage: {program} ... -O <name>[=<value>] ...\n\n");
    text.push_str("Available long options:\n");
    for option in options {
        let value = option
            .value
            .map(|value| format!("=<{value}>"))
            .unwrap_or_default();
        let _ = write!(text, "  {}{value}: {}", option.name, option.help);
        push_default(&mut text, option.default);
    }
    text
}

fn push_default(text: &mut String, default: Option<&str>) {
    if let Some(default) = default {
        let _ = write!(text, " (default: {default})");
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_option() {
        let help = help();
        assert!(help.starts_with("Usage: dnsperf [-f family] [-m mode] [-s server_addr]"));
        for option in &SHORT_OPTIONS {
            let letter = char::from(option.letter);
            assert!(help.contains(&format!("[-{letter}")), "{letter}");
            assert!(help.contains(&format!("\n  -{letter} ")), "{letter}");
        }
    }

    #[test]
    fn long_help_names_every_long_option() {
        let help = long_help();
        for option in &LONG_OPTIONS {
            assert!(
                help.contains(&format!("\n  {}", option.name)),
                "{}",
                option.name
            );
        }
    }
}
