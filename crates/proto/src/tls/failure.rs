//! Naming how TLS failed, for the record and for people.

use super::pins::PinMismatch;
use super::verifier::CA_AS_SERVER;
use rustls::{AlertDescription, CertificateError, Error, OtherError, PeerMisbehaved};
use std::fmt;

/// How a handshake or an established session failed, named for the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsFailure {
    /// The peer sent a fatal alert; its name as in RFC 8446, section 6 (`handshake_failure`, ...).
    Alert(String),
    /// The peer's certificate was refused, with what is wrong with it and the reason in words.
    Certificate(CertificateFault, String),
    /// No SPKI pin is that of the peer (RFC 7858, section 4.2), with the one it has.
    Pin(String),
    /// No ALPN protocol was agreed on, or a wrong one (RFC 7301, section 3.2).
    Alpn(String),
    /// The peer broke the protocol, with rustls' description.
    Protocol(String),
}

/// What is wrong with a certificate that was refused, as far as the cures differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateFault {
    /// Its validity is over.
    Expired,
    /// Its validity has not begun.
    NotYetValid,
    /// No trusted CA has signed it.
    UnknownIssuer,
    /// It names other servers.
    WrongName,
    /// Anything else.
    Other,
}

impl CertificateFault {
    const ALL: [CertificateFault; 5] = [
        CertificateFault::Expired,
        CertificateFault::NotYetValid,
        CertificateFault::UnknownIssuer,
        CertificateFault::WrongName,
        CertificateFault::Other,
    ];

    fn of(error: &CertificateError) -> Self {
        match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                CertificateFault::Expired
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                CertificateFault::NotYetValid
            }
            CertificateError::UnknownIssuer => CertificateFault::UnknownIssuer,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                CertificateFault::WrongName
            }
            _ => CertificateFault::Other,
        }
    }

    /// The word by which a QUIC session names it in the reason of its error.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CertificateFault::Expired => "expired",
            CertificateFault::NotYetValid => "not yet valid",
            CertificateFault::UnknownIssuer => "unknown issuer",
            CertificateFault::WrongName => "wrong name",
            CertificateFault::Other => "refused",
        }
    }

    /// The fault of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsFailure::Alert(name) => write!(f, "the peer sent the TLS alert {name}"),
            TlsFailure::Certificate(_, reason) => {
                write!(f, "the peer's certificate was refused: {reason}")
            }
            TlsFailure::Pin(reason) => write!(f, "the peer is not the one pinned: {reason}"),
            TlsFailure::Alpn(reason) => write!(f, "ALPN: {reason}"),
            TlsFailure::Protocol(description) => write!(f, "TLS failed: {description}"),
        }
    }
}

impl std::error::Error for TlsFailure {}

impl From<Error> for TlsFailure {
    fn from(error: Error) -> Self {
        match error {
            Error::AlertReceived(alert) => TlsFailure::from_alert(alert.into()),
            Error::InvalidCertificate(CertificateError::Other(other)) if is_pin(&other) => {
                TlsFailure::Pin(other.to_string())
            }
            Error::InvalidCertificate(error) => {
                TlsFailure::Certificate(CertificateFault::of(&error), refusal(&error))
            }
            Error::NoApplicationProtocol => {
                TlsFailure::Alpn("the peer offers none of our protocols".to_owned())
            }
            Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedApplicationProtocol) => {
                TlsFailure::Alpn("the peer chose a protocol that was not offered".to_owned())
            }
            other => TlsFailure::Protocol(other.to_string()),
        }
    }
}

fn is_pin(error: &OtherError) -> bool {
    error.0.is::<PinMismatch>()
}

impl TlsFailure {
    /// What a fatal alert of the peer says, by its number; QUIC carries it as the transport error
    /// 0x100 plus the number (RFC 9001, section 4.8).
    pub fn from_alert(number: u8) -> TlsFailure {
        match AlertDescription::from(number) {
            AlertDescription::NoApplicationProtocol => {
                let what = "the peer sent the TLS alert no_application_protocol";
                TlsFailure::Alpn(what.to_owned())
            }
            alert => TlsFailure::Alert(alert_name(alert)),
        }
    }
}

/// The name of an alert in the IANA registry (RFC 8446, section 6), or `alert_200`.
fn alert_name(alert: AlertDescription) -> String {
    let name = match alert {
        AlertDescription::CloseNotify => "close_notify",
        AlertDescription::UnexpectedMessage => "unexpected_message",
        AlertDescription::BadRecordMac => "bad_record_mac",
        AlertDescription::DecryptionFailed => "decryption_failed",
        AlertDescription::RecordOverflow => "record_overflow",
        AlertDescription::DecompressionFailure => "decompression_failure",
        AlertDescription::HandshakeFailure => "handshake_failure",
        AlertDescription::NoCertificate => "no_certificate",
        AlertDescription::BadCertificate => "bad_certificate",
        AlertDescription::UnsupportedCertificate => "unsupported_certificate",
        AlertDescription::CertificateRevoked => "certificate_revoked",
        AlertDescription::CertificateExpired => "certificate_expired",
        AlertDescription::CertificateUnknown => "certificate_unknown",
        AlertDescription::IllegalParameter => "illegal_parameter",
        AlertDescription::UnknownCA => "unknown_ca",
        AlertDescription::AccessDenied => "access_denied",
        AlertDescription::DecodeError => "decode_error",
        AlertDescription::DecryptError => "decrypt_error",
        AlertDescription::ExportRestriction => "export_restriction",
        AlertDescription::ProtocolVersion => "protocol_version",
        AlertDescription::InsufficientSecurity => "insufficient_security",
        AlertDescription::InternalError => "internal_error",
        AlertDescription::InappropriateFallback => "inappropriate_fallback",
        AlertDescription::UserCanceled => "user_canceled",
        AlertDescription::NoRenegotiation => "no_renegotiation",
        AlertDescription::MissingExtension => "missing_extension",
        AlertDescription::UnsupportedExtension => "unsupported_extension",
        AlertDescription::CertificateUnobtainable => "certificate_unobtainable",
        AlertDescription::UnrecognisedName => "unrecognized_name",
        AlertDescription::BadCertificateStatusResponse => "bad_certificate_status_response",
        AlertDescription::BadCertificateHashValue => "bad_certificate_hash_value",
        AlertDescription::UnknownPSKIdentity => "unknown_psk_identity",
        AlertDescription::CertificateRequired => "certificate_required",
        AlertDescription::NoApplicationProtocol => "no_application_protocol",
        other => return format!("alert_{}", u8::from(other)),
    };
    name.to_owned()
}

/// Why a certificate was refused, in words.
pub(super) fn refusal(error: &CertificateError) -> String {
    let text = match error {
        CertificateError::UnknownIssuer => "it is not signed by a trusted authority",
        CertificateError::Expired => "it has expired",
        CertificateError::NotValidYet => "it is not valid yet",
        CertificateError::Revoked => "it has been revoked",
        CertificateError::BadEncoding => "it cannot be read",
        CertificateError::BadSignature => "its signature is wrong",
        CertificateError::NotValidForName => "it is not valid for the name asked for",
        CertificateError::InvalidPurpose => "it is not meant for servers",
        CertificateError::Other(other) => match other.to_string().as_str() {
            CA_AS_SERVER => "it says that it is the certificate of an authority, not of a server",
            "UnsupportedCertVersion" => {
                "it is an X.509 version 1 certificate, which names no server; it takes version 3"
            }
            unnamed => return unnamed.to_owned(),
        },
        // The others carry details, which rustls puts into words.
        detailed => return detailed.to_string(),
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_are_named_as_in_the_registry() {
        for (number, name) in [
            (40, "handshake_failure"),
            (48, "unknown_ca"),
            (70, "protocol_version"),
            (112, "unrecognized_name"),
            (116, "certificate_required"),
            (200, "alert_200"),
        ] {
            let failure = TlsFailure::from(Error::AlertReceived(AlertDescription::from(number)));
            assert_eq!(failure, TlsFailure::Alert(name.to_owned()));
        }
    }

    #[test]
    fn missing_protocol_is_told_from_other_alerts() {
        let alert = AlertDescription::from(120);
        for failure in [Error::AlertReceived(alert), Error::NoApplicationProtocol] {
            let failure = TlsFailure::from(failure);
            assert!(matches!(failure, TlsFailure::Alpn(_)), "{failure}");
        }
    }

    #[test]
    fn failures_are_told_apart_and_put_into_words() {
        let refused = TlsFailure::from(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        assert_eq!(
            refused.to_string(),
            "the peer's certificate was refused: it is not signed by a trusted authority"
        );
        let broken = TlsFailure::from(Error::DecryptError);
        assert!(matches!(broken, TlsFailure::Protocol(_)), "{broken}");
    }
}
