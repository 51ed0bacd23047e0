//! The transport of a run, or that its groups of clients had several.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Transport;

/// How queries of a run travelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transports {
    /// Over several transports: each group of clients has its own.
    Mixed,
    /// All over this one.
    #[serde(untagged)]
    One(Transport),
}

impl Transports {
    /// The only one; none if there are several.
    pub fn only(self) -> Option<Transport> {
        match self {
            Transports::Mixed => None,
            Transports::One(transport) => Some(transport),
        }
    }

    /// True if queries travel in connections.
    pub fn has_connections(self) -> bool {
        self.only().is_none_or(Transport::has_connections)
    }

    /// True if all connections are QUIC's (RFC 9000).
    pub fn is_quic(self) -> bool {
        self.only().is_some_and(Transport::is_quic)
    }

    /// True if each query is an HTTP request.
    pub fn is_doh(self) -> bool {
        self.only().is_some_and(Transport::is_doh)
    }

    /// True if each query has a stream of its own, which HTTP or QUIC may end without a message.
    pub fn has_exchanges(self) -> bool {
        self.only().is_some_and(Transport::has_exchanges)
    }

    /// True if connections begin with a TLS handshake; with several transports, some may.
    pub fn has_tls(self) -> bool {
        self.only().is_none_or(Transport::has_tls)
    }
}

impl From<Transport> for Transports {
    fn from(transport: Transport) -> Self {
        Transports::One(transport)
    }
}

impl PartialEq<Transport> for Transports {
    fn eq(&self, other: &Transport) -> bool {
        self.only() == Some(*other)
    }
}

impl fmt::Display for Transports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transports::Mixed => f.write_str("mixed"),
            Transports::One(transport) => transport.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_transport_and_several_are_a_word_each() {
        let cases = [
            (Transports::One(Transport::Doh2), "doh2"),
            (Transports::Mixed, "mixed"),
        ];
        for (value, word) in cases {
            assert_eq!(value.to_string(), word);
            assert_eq!(serde_json::to_value(value).unwrap(), word);
            assert_eq!(
                serde_json::from_value::<Transports>(word.into()).unwrap(),
                value
            );
        }
        assert!(serde_json::from_value::<Transports>("doh4".into()).is_err());
    }
}
