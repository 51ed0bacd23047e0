//! How messages travel.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Named;

/// How messages travel between client and target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// DNS over UDP (RFC 1035, section 4.2.1).
    Udp,
    /// DNS over TCP with pipelining (RFC 7766).
    Tcp,
    /// DNS over TLS (RFC 7858).
    Dot,
    /// DNS over HTTPS (RFC 8484) with HTTP/2 (RFC 9113).
    Doh2,
    /// DNS over HTTPS (RFC 8484) with HTTP/3 (RFC 9114).
    Doh3,
    /// DNS over QUIC (RFC 9250).
    Doq,
}

impl Transport {
    /// All transports, in the order in which tables list them.
    pub const ALL: [Transport; 6] = [
        Transport::Udp,
        Transport::Tcp,
        Transport::Dot,
        Transport::Doh2,
        Transport::Doh3,
        Transport::Doq,
    ];

    /// The name as it is typed and recorded: `udp`, `tcp`, `dot`, `doh2`, `doh3`, `doq`.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            Transport::Dot => "dot",
            Transport::Doh2 => "doh2",
            Transport::Doh3 => "doh3",
            Transport::Doq => "doq",
        }
    }

    /// The port that a target listens on unless told otherwise: 53, 853 for DoT and DoQ, 443 for
    /// DoH.
    pub const fn default_port(self) -> u16 {
        match self {
            Transport::Udp | Transport::Tcp => 53,
            Transport::Dot | Transport::Doq => 853,
            Transport::Doh2 | Transport::Doh3 => 443,
        }
    }

    /// The protocol that it is in ALPN (RFC 7301), where it has TLS: `dot` (RFC 7858), `h2`, `h3`,
    /// `doq` (RFC 9250).
    pub const fn alpn(self) -> Option<&'static str> {
        match self {
            Transport::Udp | Transport::Tcp => None,
            Transport::Dot => Some("dot"),
            Transport::Doh2 => Some("h2"),
            Transport::Doh3 => Some("h3"),
            Transport::Doq => Some("doq"),
        }
    }

    /// True if messages travel in a connection that has to be set up first.
    pub const fn has_connections(self) -> bool {
        !matches!(self, Transport::Udp)
    }

    /// True if its connections are TCP's.
    pub const fn is_stream(self) -> bool {
        matches!(self, Transport::Tcp | Transport::Dot | Transport::Doh2)
    }

    /// True if its connections are QUIC's (RFC 9000).
    pub const fn is_quic(self) -> bool {
        matches!(self, Transport::Doh3 | Transport::Doq)
    }

    /// True if each query has a stream of its own, which HTTP or QUIC may end without a message.
    pub const fn has_exchanges(self) -> bool {
        self.is_doh() || self.is_quic()
    }

    /// True if its connections begin with a TLS handshake, within QUIC or before HTTP. `http://`
    /// is DoH/2 without it.
    pub const fn has_tls(self) -> bool {
        !matches!(self, Transport::Udp | Transport::Tcp)
    }

    /// True if each query is an HTTP request.
    pub const fn is_doh(self) -> bool {
        matches!(self, Transport::Doh2 | Transport::Doh3)
    }
}

impl Named for Transport {
    const WHAT: &'static str = "transport";
    const ALL: &'static [Self] = &Transport::ALL;

    fn name(self) -> &'static str {
        Transport::name(self)
    }

    fn meaning(self) -> &'static str {
        match self {
            Transport::Udp => "DNS over UDP",
            Transport::Tcp => "DNS over TCP",
            Transport::Dot => "DNS over TLS",
            Transport::Doh2 => "DNS over HTTPS with HTTP/2",
            Transport::Doh3 => "DNS over HTTPS with HTTP/3",
            Transport::Doq => "DNS over QUIC",
        }
    }
}

impl FromStr for Transport {
    type Err = String;

    /// Reads a name, in letters of any case, or what other programs call it: `tls` is `dot`; `doh`,
    /// `https` and `h2` are `doh2`; `h3` is `doh3`; `quic` is `doq`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "tls" => Ok(Transport::Dot),
            "doh" | "https" | "h2" => Ok(Transport::Doh2),
            "h3" => Ok(Transport::Doh3),
            "quic" => Ok(Transport::Doq),
            // What is unknown is shown as it was typed.
            name => Transport::named(name).or_else(|_| Transport::named(text)),
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_programs_and_capitals_are_read() {
        for (text, transport) in [
            ("udp", Transport::Udp),
            ("UDP", Transport::Udp),
            ("TCP", Transport::Tcp),
            ("DoT", Transport::Dot),
            ("tls", Transport::Dot),
            ("TLS", Transport::Dot),
            ("doh", Transport::Doh2),
            ("https", Transport::Doh2),
            ("h2", Transport::Doh2),
            ("h3", Transport::Doh3),
            ("DoH3", Transport::Doh3),
            ("quic", Transport::Doq),
            ("DoQ", Transport::Doq),
        ] {
            assert_eq!(text.parse(), Ok(transport), "{text}");
        }
        for text in ["", "dnscrypt", "u", "53", "doh1", "Tcp "] {
            let reason = text.parse::<Transport>().unwrap_err();
            assert!(
                reason.starts_with(&format!("unknown transport `{text}`: ")),
                "{reason}"
            );
        }
    }
}
