//! Which formats there are.

use std::fmt;
use std::str::FromStr;

/// A format of captures or query logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pcap, in either byte order, with microseconds or nanoseconds.
    Pcap,
    /// pcapng.
    Pcapng,
    /// dnstap in Frame Streams.
    Dnstap,
    /// The lines of BIND's query log (category `queries`).
    Bind,
    /// The lines of Unbound's `log-queries` and `log-replies`.
    Unbound,
    /// The lines of CoreDNS's plugin `log`.
    CoreDns,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 6] = [
        Format::Pcap,
        Format::Pcapng,
        Format::Dnstap,
        Format::Bind,
        Format::Unbound,
        Format::CoreDns,
    ];

    /// The name as it is typed.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Pcap => "pcap",
            Format::Pcapng => "pcapng",
            Format::Dnstap => "dnstap",
            Format::Bind => "bind",
            Format::Unbound => "unbound",
            Format::CoreDns => "coredns",
        }
    }

    /// True if it is a log, one query a line.
    pub const fn is_log(self) -> bool {
        matches!(self, Format::Bind | Format::Unbound | Format::CoreDns)
    }

    /// All names, for messages.
    pub(crate) fn list() -> String {
        Format::ALL.map(Format::name).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Format::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| format!("unknown format `{text}`: expected {}", Format::list()))
    }
}
