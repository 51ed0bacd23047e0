//! Naming how TLS failed, for the record and for people.

use rustls::{AlertDescription, CertificateError, Error};
use std::fmt;

/// How a handshake or an established session failed, named for the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsFailure {
    /// The peer sent a fatal alert; its name as in RFC 8446, section 6 (`handshake_failure`, ...).
    Alert(String),
    /// The peer's certificate was refused, with the reason.
    Certificate(String),
    /// The peer broke the protocol, with rustls' description.
    Protocol(String),
}

impl TlsFailure {
    /// The failure that a fatal alert of the peer means; QUIC carries it as an error code.
    pub(crate) fn from_alert(alert: u8) -> Self {
        TlsFailure::from(Error::AlertReceived(AlertDescription::from(alert)))
    }
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsFailure::Alert(name) => write!(f, "the peer sent the TLS alert {name}"),
            TlsFailure::Certificate(reason) => {
                write!(f, "the peer's certificate was refused: {reason}")
            }
            TlsFailure::Protocol(description) => write!(f, "TLS failed: {description}"),
        }
    }
}

impl std::error::Error for TlsFailure {}

impl From<Error> for TlsFailure {
    fn from(error: Error) -> Self {
        match error {
            Error::AlertReceived(alert) => TlsFailure::Alert(alert_name(alert)),
            Error::InvalidCertificate(error) => TlsFailure::Certificate(reason(&error)),
            other => TlsFailure::Protocol(other.to_string()),
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
fn reason(error: &CertificateError) -> String {
    let text = match error {
        CertificateError::UnknownIssuer => "it is not signed by a trusted authority",
        CertificateError::Expired => "it has expired",
        CertificateError::NotValidYet => "it is not valid yet",
        CertificateError::Revoked => "it has been revoked",
        CertificateError::BadEncoding => "it cannot be read",
        CertificateError::BadSignature => "its signature is wrong",
        CertificateError::NotValidForName => "it is not valid for the name asked for",
        CertificateError::InvalidPurpose => "it is not meant for servers",
        CertificateError::Other(other) => return other.to_string(),
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
            (120, "no_application_protocol"),
            (200, "alert_200"),
        ] {
            let failure = TlsFailure::from(Error::AlertReceived(AlertDescription::from(number)));
            assert_eq!(failure, TlsFailure::Alert(name.to_owned()));
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
