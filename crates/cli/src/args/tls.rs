//! Flags of TLS, for those who send load and for the responder.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::values::count;

/// TLS of `throng run`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsArguments {
    /// CA certificates (PEM) to verify the server's certificate against
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Name for SNI and certificate verification [default: the host in --server]
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_name: Option<String>,
    /// Accept any certificate
    #[arg(long, conflicts_with = "tls_ca")]
    pub(crate) tls_insecure: bool,
    /// Key that the server must have (SPKI pin: base64 of its SHA-256; RFC 7858); may be repeated,
    /// one match is enough. Without --tls-ca the certificate chain is not verified
    #[arg(long, value_name = "PIN", conflicts_with = "tls_insecure")]
    pub(crate) tls_pin: Vec<String>,
    /// The only version offered: 1.2 or 1.3 [default: both]
    #[arg(long, value_name = "1.2|1.3")]
    pub(crate) tls_version: Option<String>,
    /// Cipher suites offered, preferred first, by their IANA names [default: all supported; an
    /// unknown name lists them]
    #[arg(long, value_name = "SUITE[,...]", value_delimiter = ',')]
    pub(crate) tls_ciphers: Vec<String>,
    /// Key exchange groups offered, preferred first; a key share is sent for the first. Also
    /// available: SecP256r1MLKEM768, MLKEM768, MLKEM1024
    #[arg(
        long,
        value_name = "GROUP[,...]",
        value_delimiter = ',',
        default_value = "x25519,secp256r1,secp384r1,X25519MLKEM768"
    )]
    pub(crate) tls_groups: Vec<String>,
    /// Connections that resume their client's last session: never, always, or a share of them
    /// such as 0.9; each client resumes its own only. With --queries-per-connection 0 a client
    /// without a ticket waits for one before it closes, up to 100 ms
    #[arg(long, value_name = "never|always|SHARE", default_value = "never")]
    pub(crate) tls_resume: String,
    /// Send queries as early data (0-RTT) where a resumed session allows it
    #[arg(long)]
    pub(crate) tls_early_data: bool,
    /// Client certificate (PEM), for servers that request one
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key (PEM) of the client certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// ALPN protocols offered, preferred first [default: none for dot, h2, h3 or doq for the
    /// others]
    #[arg(long, value_name = "NAME[,...]", value_delimiter = ',')]
    pub(crate) tls_alpn: Vec<String>,
    /// Do not send the server's name (SNI)
    #[arg(long)]
    pub(crate) tls_no_sni: bool,
    /// Append the secrets of all sessions to this file, for Wireshark; slows handshakes [default:
    /// the file that the environment variable SSLKEYLOGFILE names]
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_keylog: Option<PathBuf>,
    /// Let rustls handle the TLS records of DoT and DoH/2 throughout, instead of the lean record
    /// layer that takes over after the handshake; for cross-checks
    #[arg(long)]
    pub(crate) tls_stock: bool,
}

/// TLS of `throng responder`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[command(next_help_heading = "TLS")]
pub(crate) struct ServerTlsArguments {
    /// The only version accepted: 1.2 or 1.3 [default: both]
    #[arg(long, value_name = "1.2|1.3")]
    pub(crate) tls_version: Option<String>,
    /// Cipher suites accepted, by their IANA names [default: all supported]
    #[arg(long, value_name = "SUITE[,...]", value_delimiter = ',')]
    pub(crate) tls_ciphers: Vec<String>,
    /// Key exchange groups accepted [default: all supported]
    #[arg(long, value_name = "GROUP[,...]", value_delimiter = ',')]
    pub(crate) tls_groups: Vec<String>,
    /// Session tickets after a handshake; 0 for none
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) tls_tickets: u8,
    /// Accept early data (0-RTT); sessions are then stored, --tls-sessions of them
    #[arg(long)]
    pub(crate) tls_early_data: bool,
    /// Maximum number of stored sessions
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100_000,
        requires = "tls_early_data",
        value_parser = count::<u32>,
    )]
    pub(crate) tls_sessions: u32,
    /// CA certificates (PEM) to verify client certificates against
    #[arg(long, value_name = "FILE")]
    #[serde(with = "super::paths::option")]
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// Whether clients need a certificate
    #[arg(
        long,
        value_enum,
        default_value = "required",
        requires = "tls_client_ca"
    )]
    pub(crate) tls_client_cert: ClientCertificatePolicy,
}

/// Whether a client has to show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum ClientCertificatePolicy {
    /// Verified if presented
    Optional,
    /// Required
    Required,
}
