//! The options of dnsperf 2.14 as tables, and the help made from them.

use std::fmt::Write;

use super::options::LONG_OPTIONS;

/// Columns of the synopsis.
const COLUMNS_MAX: usize = 79;

/// An option of one letter.
#[derive(Clone, Copy)]
pub(super) struct ShortOption {
    pub(super) letter: u8,
    /// What its value is called; none if it takes none.
    pub(super) value: Option<&'static str>,
    help: &'static str,
    default: Option<&'static str>,
}

impl ShortOption {
    pub(super) const fn with_letter(self, letter: u8) -> Self {
        ShortOption { letter, ..self }
    }
}

pub(super) const fn takes(
    letter: u8,
    value: &'static str,
    help: &'static str,
    default: Option<&'static str>,
) -> ShortOption {
    ShortOption {
        letter,
        value: Some(value),
        help,
        default,
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

/// All of them, in the order of dnsperf's help.
pub(super) const SHORT_OPTIONS: [ShortOption; 27] = [
    takes(
        b'f',
        "family",
        "address family: inet, inet6 or any",
        Some("any"),
    ),
    takes(b'm', "mode", "transport: udp, tcp, dot or doh", Some("udp")),
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
        b'c',
        "clients",
        "clients, each with its own socket or connection",
        Some("1"),
    ),
    takes(b'T', "threads", "worker threads", Some("1")),
    takes(
        b'n',
        "maxruns",
        "end after that many times through the file",
        None,
    ),
    takes(b'l', "timelimit", "end after that many seconds", None),
    takes(
        b'b',
        "buffer_size",
        "socket send and receive buffers in kilobytes",
        None,
    ),
    takes(
        b't',
        "timeout",
        "seconds until a query counts as lost",
        Some("5"),
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
        b'q',
        "num_queries",
        "queries in flight at a time",
        Some("100"),
    ),
    takes(
        b'Q',
        "max_qps",
        "never send more than that many queries a second",
        None,
    ),
    takes(
        b'S',
        "stats_interval",
        "print statistics every that many seconds",
        None,
    ),
    switch(b'u', "the file holds dynamic updates"),
    switch(b'B', "the file holds messages as on a TCP connection"),
    switch(b'v', "verbose (there are no lines for single queries here)"),
    switch(b'W', "warnings and errors to stdout instead of stderr"),
    switch(b'h', "print this help"),
    switch(b'H', "print the help for long options"),
    takes(b'O', "name[=value]", "set a long option", None),
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
        if column + item.len() > COLUMNS_MAX {
            let _ = write!(text, "\n{:indent$}", "");
            column = indent;
        }
        column += item.len();
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
    long_help_of("dnsperf")
}

/// The help of `-H` of a program.
pub(super) fn long_help_of(program: &str) -> String {
    let mut text = format!("Usage: {program} ... -O <name>[=<value>] ...\n\n");
    text.push_str("Available long options:\n");
    for option in &LONG_OPTIONS {
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
    fn help_names_every_option_within_80_columns() {
        let help = help();
        assert!(help.starts_with("Usage: dnsperf [-f family] [-m mode] [-s server_addr]"));
        for option in &SHORT_OPTIONS {
            let letter = char::from(option.letter);
            assert!(help.contains(&format!("[-{letter}")), "{letter}");
            assert!(help.contains(&format!("\n  -{letter} ")), "{letter}");
        }
        assert!(help.lines().all(|line| line.len() < 80), "{help}");
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
