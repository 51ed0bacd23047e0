//! What a handshake agreed on, and what it took.

use super::failure::TlsFailure;
use super::registry::{group_name, suite_name};
use rustls::CommonState;
use std::fmt;

/// What a handshake agreed on, by the names of the IANA registries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Negotiated {
    /// `TLS 1.2` or `TLS 1.3`.
    pub version: &'static str,
    /// `TLS_AES_256_GCM_SHA384` and the like.
    pub cipher_suite: &'static str,
    /// `x25519` and the like; `none` for a resumed session of TLS 1.2, which exchanges no keys.
    pub key_exchange_group: &'static str,
    /// The ALPN protocol (RFC 7301), if any.
    pub alpn: Option<Alpn>,
}

impl Negotiated {
    pub(crate) fn of(session: &CommonState) -> Option<Negotiated> {
        if session.is_handshaking() {
            return None;
        }
        let version = match session.protocol_version()? {
            rustls::ProtocolVersion::TLSv1_2 => "TLS 1.2",
            rustls::ProtocolVersion::TLSv1_3 => "TLS 1.3",
            _ => "unknown",
        };
        let group = session.negotiated_key_exchange_group();
        Some(Negotiated {
            version,
            cipher_suite: suite_name(session.negotiated_cipher_suite()?.suite()),
            key_exchange_group: group.map_or("none", |group| group_name(group.name())),
            alpn: session.alpn_protocol().and_then(Alpn::new),
        })
    }

    /// Checks that `protocol` was agreed on, for transports that cannot do without, as HTTP/2
    /// (RFC 9113, section 3.3).
    ///
    /// # Errors
    /// [`TlsFailure::Alpn`] with what was agreed on instead; the caller ends the connection.
    pub fn require_alpn(&self, protocol: &str) -> Result<(), TlsFailure> {
        match self.alpn {
            Some(alpn) if alpn.as_bytes() == protocol.as_bytes() => Ok(()),
            Some(alpn) => {
                let what = format!("`{alpn}` was agreed on, not `{protocol}`");
                Err(TlsFailure::Alpn(what))
            }
            None => {
                let what = format!("the peer agreed on no protocol, `{protocol}` is needed");
                Err(TlsFailure::Alpn(what))
            }
        }
    }
}

/// The name of an ALPN protocol (RFC 7301), held in place.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Alpn {
    octets: [u8; Alpn::OCTETS_MAX],
    length: u8,
}

impl Alpn {
    /// The longest name that can be used. RFC 7301 has 255; the longest registered has 14.
    pub const OCTETS_MAX: usize = 31;

    /// A name of 1 to 31 octets; `None` for others.
    pub fn new(name: &[u8]) -> Option<Alpn> {
        let mut octets = [0; Alpn::OCTETS_MAX];
        octets.get_mut(..name.len())?.copy_from_slice(name);
        let length = u8::try_from(name.len()).ok()?;
        (length > 0).then_some(Alpn { octets, length })
    }

    /// The octets of the name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.octets[..usize::from(self.length)]
    }
}

impl fmt::Display for Alpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().escape_ascii().fmt(f)
    }
}

impl fmt::Debug for Alpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// What a handshake was like on the client's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Full or resumed.
    pub kind: HandshakeKind,
    /// What became of early data.
    pub early_data: EarlyData,
    /// Octets sent, in whole records with their headers, up to and with our Finished. Early data,
    /// application data and what follows are not in it.
    pub octets_sent: u32,
    /// Octets received, in whole records with their headers, up to and with the one that ended
    /// the handshake. Tickets that a server of TLS 1.3 sends afterwards are not in it.
    pub octets_received: u32,
}

/// Whether a handshake went the whole way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandshakeKind {
    /// A full one, with certificates.
    Full,
    /// A full one after a HelloRetryRequest (RFC 8446, section 4.1.4): one round trip more.
    FullWithHelloRetryRequest,
    /// An earlier session was resumed.
    Resumed,
}

impl From<rustls::HandshakeKind> for HandshakeKind {
    fn from(kind: rustls::HandshakeKind) -> Self {
        match kind {
            rustls::HandshakeKind::Full => HandshakeKind::Full,
            rustls::HandshakeKind::FullWithHelloRetryRequest => {
                HandshakeKind::FullWithHelloRetryRequest
            }
            rustls::HandshakeKind::Resumed => HandshakeKind::Resumed,
        }
    }
}

/// What became of early data (0-RTT; RFC 8446, section 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EarlyData {
    /// None was sent.
    #[default]
    NotSent,
    /// Some was sent; the server has not said yet.
    Pending,
    /// The server took it.
    Accepted,
    /// The server did not; the same octets were sent again after the handshake.
    Rejected,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_names_have_1_to_31_octets() {
        assert_eq!(Alpn::new(b""), None);
        assert_eq!(Alpn::new(&[b'x'; 32]), None);
        assert_eq!(Alpn::new(&[b'x'; 31]).unwrap().as_bytes(), [b'x'; 31]);
        assert_eq!(Alpn::new(b"h2\xff").unwrap().to_string(), "h2\\xff");
    }
}
