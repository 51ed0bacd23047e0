//! Why a connection ended, as a closed set.

use super::session::{CERTIFICATE_REASON, PIN_REASON};
use crate::tls::{CertificateFault, TlsFailure};
use quinn_proto::{ConnectionError, TransportErrorCode};
use std::fmt;

/// Which side ended the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// The peer sent CONNECTION_CLOSE.
    Peer,
    /// We did, because the peer broke the protocol.
    Us,
}

/// Why a connection is gone, or was never there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LostReason {
    /// Nothing came within the idle timeout.
    IdleTimeout,
    /// Nothing came within the idle timeout, and the handshake was not complete.
    HandshakeTimeout,
    /// TLS failed: an alert of the peer, its certificate, ALPN, or its messages (RFC 9001,
    /// section 4.8).
    Tls(TlsFailure),
    /// A transport error code (RFC 9000, section 20.1) that is not one of TLS.
    Transport {
        /// The error code.
        code: u64,
        /// Who sent it.
        by: By,
    },
    /// An application error code (RFC 9250, section 8.4; RFC 9114, section 8.1).
    Application {
        /// The error code.
        code: u64,
        /// Who sent it.
        by: By,
    },
    /// The peer does not know the connection any more (RFC 9000, section 10.3).
    StatelessReset,
    /// The peer speaks no version of QUIC that we speak (RFC 9000, section 6).
    VersionNegotiation,
    /// We closed it, without fault of the peer.
    ClosedByUs,
}

impl LostReason {
    /// `was_handshaking` is true if the handshake was incomplete until now.
    pub(super) fn of(error: ConnectionError, was_handshaking: bool) -> LostReason {
        match error {
            ConnectionError::TimedOut if was_handshaking => LostReason::HandshakeTimeout,
            ConnectionError::TimedOut => LostReason::IdleTimeout,
            ConnectionError::VersionMismatch => LostReason::VersionNegotiation,
            ConnectionError::Reset => LostReason::StatelessReset,
            ConnectionError::LocallyClosed | ConnectionError::CidsExhausted => {
                LostReason::ClosedByUs
            }
            ConnectionError::ApplicationClosed(close) => LostReason::Application {
                code: close.error_code.into_inner(),
                by: By::Peer,
            },
            ConnectionError::ConnectionClosed(close) => match tls_alert(close.error_code) {
                Some(alert) => LostReason::Tls(TlsFailure::from_alert(alert)),
                None => LostReason::Transport {
                    code: close.error_code.into(),
                    by: By::Peer,
                },
            },
            ConnectionError::TransportError(error) => match tls_alert(error.code) {
                Some(alert) => LostReason::Tls(own_failure(alert, error.reason)),
                None => LostReason::Transport {
                    code: error.code.into(),
                    by: By::Us,
                },
            },
        }
    }
}

/// `no_application_protocol` in the registry of TLS alerts.
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// The alert in a CRYPTO_ERROR (RFC 9000, section 20.1: 0x0100 to 0x01ff).
fn tls_alert(code: TransportErrorCode) -> Option<u8> {
    let code = u64::from(code);
    (code >> 8 == 1).then_some(code as u8)
}

/// The error that we raised ourselves, as text of [`super::session`].
fn own_failure(alert: u8, reason: String) -> TlsFailure {
    if alert == NO_APPLICATION_PROTOCOL {
        return TlsFailure::Alpn(reason);
    }
    let of_certificate = reason.strip_prefix(CERTIFICATE_REASON);
    let parts = of_certificate.and_then(|rest| rest.split_once(": "));
    if let Some((name, reason)) = parts
        && let Some(fault) = CertificateFault::named(name)
    {
        return TlsFailure::Certificate(fault, reason.to_owned());
    }
    match reason.strip_prefix(PIN_REASON) {
        Some(reason) => TlsFailure::Pin(reason.to_owned()),
        None => TlsFailure::Protocol(reason),
    }
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = |by: &By| match by {
            By::Peer => "the peer closed the connection with",
            By::Us => "the peer broke the protocol, closed with",
        };
        match self {
            LostReason::IdleTimeout => f.write_str("nothing came within the idle timeout"),
            LostReason::HandshakeTimeout => f.write_str("the handshake timed out"),
            LostReason::Tls(failure) => failure.fmt(f),
            LostReason::Transport { code, by: who } => {
                write!(f, "{} transport error {code:#x}", by(who))
            }
            LostReason::Application { code, by: who } => {
                write!(f, "{} application error {code:#x}", by(who))
            }
            LostReason::StatelessReset => f.write_str("the peer does not know the connection"),
            LostReason::VersionNegotiation => f.write_str("the peer speaks no QUIC version 1"),
            LostReason::ClosedByUs => f.write_str("closed"),
        }
    }
}
