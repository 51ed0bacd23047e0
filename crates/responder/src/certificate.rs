//! The certificate that DoT clients see: self-signed and made at start, or given as PEM.

use std::fmt;
use std::sync::Arc;

use proto::Transport;
use proto::tls::rustls::ServerConfig;
use proto::tls::{ServerTlsOptions, TlsConfigError, TlsSetting, server_config_with};
use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519};

/// Names that every self-signed certificate is valid for.
const OWN_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Options of a self-signed certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelfSigned {
    /// Domain names and addresses that it is valid for, beside `localhost`, 127.0.0.1 and ::1.
    pub names: Vec<String>,
    /// Every signature has the same length (Ed25519 instead of ECDSA P-256), so that handshakes
    /// of all runs have equal octet counts; for the simulator.
    pub deterministic_lengths: bool,
    /// Valid until the year 2000 only, for tests of clients.
    pub expired: bool,
}

/// A certificate with its key, ready for a server.
#[derive(Clone)]
pub struct Identity {
    /// The certificate chain for clients to trust, as PEM.
    pub certificate_pem: String,
    /// Its private key as PEM.
    pub key_pem: String,
    /// For [`crate::ResponderConfig::tls`]: DoT with default options.
    pub server_config: Arc<ServerConfig>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the key.
        f.debug_struct("Identity")
            .field("certificate_pem", &self.certificate_pem)
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// A configuration for `transport`: ALPN protocol and QUIC settings come from the transport,
    /// everything else from `options`.
    ///
    /// # Errors
    /// Options that cannot be used or contradict each other.
    pub fn config(
        &self,
        transport: Transport,
        options: &ServerTlsOptions,
    ) -> Result<Arc<ServerConfig>, TlsConfigError> {
        let options = ServerTlsOptions {
            alpn: transport
                .alpn()
                .iter()
                .map(|name| name.as_bytes().to_vec())
                .collect(),
            quic: transport.is_quic(),
            ..options.clone()
        };
        let (chain, key) = (self.certificate_pem.as_bytes(), self.key_pem.as_bytes());
        server_config_with(chain, key, &options)
    }
}

/// Why there is no certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateError {
    /// A name that cannot stand in a certificate; the reason.
    Name(String),
    /// The certificate could not be made.
    Make(String),
    /// The PEM text holds no certificate, or a broken one.
    CertificatePem(String),
    /// The PEM text holds no private key, or a broken one.
    KeyPem(String),
    /// Certificate and key do not go together, or are of a kind that TLS cannot use.
    Unusable(String),
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateError::Name(why) => write!(f, "certificate name: {why}"),
            CertificateError::Make(why) => write!(f, "cannot make a certificate: {why}"),
            CertificateError::CertificatePem(why) => write!(f, "certificate PEM: {why}"),
            CertificateError::KeyPem(why) => write!(f, "private key PEM: {why}"),
            CertificateError::Unusable(why) => {
                write!(f, "certificate and key cannot be used together: {why}")
            }
        }
    }
}

impl std::error::Error for CertificateError {}

/// Makes a key and a certificate for it.
///
/// # Errors
/// [`CertificateError::Name`] for a name that is neither an address nor ASCII.
pub fn self_signed(options: &SelfSigned) -> Result<Identity, CertificateError> {
    let mut names: Vec<String> = OWN_NAMES.map(str::to_owned).to_vec();
    for name in &options.names {
        let name = name.trim_end_matches('.');
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    let mut params =
        CertificateParams::new(names).map_err(|error| CertificateError::Name(error.to_string()))?;
    params
        .distinguished_name
        .push(DnType::CommonName, "throng responder");
    // A serial number derived from the key would vary in length.
    params.serial_number = Some(1u64.into());
    if options.expired {
        params.not_after = rcgen::date_time_ymd(2000, 1, 1);
    }
    let algorithm = match options.deterministic_lengths {
        true => &PKCS_ED25519,
        false => &PKCS_ECDSA_P256_SHA256,
    };
    let make = |error: rcgen::Error| CertificateError::Make(error.to_string());
    let key = KeyPair::generate_for(algorithm).map_err(make)?;
    let certificate = params.self_signed(&key).map_err(make)?;
    identity(certificate.pem(), key.serialize_pem())
}

/// Takes certificate chain (leaf first) and private key from the contents of PEM files.
///
/// # Errors
/// What is missing or broken, and in which of the two.
pub fn from_pem(certificates: &str, key: &str) -> Result<Identity, CertificateError> {
    identity(certificates.to_owned(), key.to_owned())
}

fn identity(certificate_pem: String, key_pem: String) -> Result<Identity, CertificateError> {
    let options = ServerTlsOptions {
        alpn: Transport::Dot
            .alpn()
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect(),
        ..ServerTlsOptions::default()
    };
    let server_config =
        server_config_with(certificate_pem.as_bytes(), key_pem.as_bytes(), &options)
            .map_err(certificate_error)?;
    Ok(Identity {
        certificate_pem,
        key_pem,
        server_config,
    })
}

fn certificate_error(error: TlsConfigError) -> CertificateError {
    match error.setting {
        TlsSetting::Certificate => CertificateError::CertificatePem(error.what),
        TlsSetting::Key => CertificateError::KeyPem(error.what),
        _ => CertificateError::Unusable(error.what),
    }
}
