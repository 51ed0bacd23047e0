//! Configurations of servers.

use super::config::{
    TlsConfigError, TlsSetting, TlsVersions, certified_key, checked_alpn, provider, root_store,
    set_key_log, unusable_key,
};
use super::registry::{CipherSuite, Group};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{KeyLog, ServerConfig};
use std::sync::Arc;

/// How a server sets up its sessions.
#[derive(Clone, Debug)]
pub struct ServerTlsOptions {
    /// The TLS versions accepted.
    pub versions: TlsVersions,
    /// The cipher suites accepted; the client's order counts.
    pub cipher_suites: Vec<CipherSuite>,
    /// The key exchange groups accepted.
    pub groups: Vec<Group>,
    /// The ALPN protocols, preferred first. A client that offers others only is refused; one that
    /// offers none is not (RFC 7301, section 3.2). Empty takes no part in ALPN.
    pub alpn: Vec<Vec<u8>>,
    /// The tickets given to clients.
    pub tickets: Tickets,
    /// Octets of early data accepted on a connection; 0 for none. Needs [`Tickets::Stored`],
    /// because only a server that knows its tickets can take each but once (RFC 8446, section
    /// 8.1). Of early data that is rejected, as many octets are skipped, counted with their
    /// encryption and again at each read until the client's Finished comes; more than that ends
    /// the connection, so a number far beyond what clients send is best.
    pub early_data_octets_max: u32,
    /// For QUIC: TLS 1.3 alone, and early data without a limit of its own (RFC 9001, section
    /// 4.6.1).
    pub quic: bool,
    /// Whether clients are to show certificates.
    pub client_certificates: ClientCertificates,
    /// Where certificate checks and tickets take the time from; `None` for the system clock.
    pub time_provider: Option<Arc<dyn TimeProvider>>,
    /// Receives all secrets, for programs that decrypt captures.
    pub key_log: Option<Arc<dyn KeyLog>>,
    /// As [`super::ClientTlsOptions::stock_records`].
    pub stock_records: bool,
}

impl Default for ServerTlsOptions {
    /// TLS 1.2 and 1.3, whatever can be negotiated, two tickets, no early data, no ALPN.
    fn default() -> Self {
        ServerTlsOptions {
            versions: TlsVersions::All,
            cipher_suites: CipherSuite::all().to_vec(),
            groups: Group::ALL.to_vec(),
            alpn: Vec::new(),
            tickets: Tickets::Stateless { count: 2 },
            early_data_octets_max: 0,
            quic: false,
            client_certificates: ClientCertificates::Ignored,
            time_provider: None,
            key_log: None,
            stock_records: false,
        }
    }
}

/// What a server gives to clients that want to resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tickets {
    /// Nothing: every handshake is a full one.
    None,
    /// Tickets that hold the session, encrypted (RFC 5077): the server keeps nothing.
    Stateless {
        /// How many follow a handshake of TLS 1.3; TLS 1.2 has always one.
        count: u8,
    },
    /// Tickets that name a session which the server keeps.
    Stored {
        /// How many follow a handshake of TLS 1.3.
        count: u8,
        /// Sessions kept at most; the oldest goes.
        sessions_max: usize,
    },
}

/// Whether clients are to show certificates (RFC 8446, section 4.3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Not asked for.
    Ignored,
    /// Asked for; one that is shown has to be signed by an authority of this PEM file.
    Optional(Vec<u8>),
    /// Needed, signed by an authority of this PEM file.
    Required(Vec<u8>),
}

/// Builds a server's configuration with the default options.
///
/// # Errors
/// As [`server_config_with`].
pub fn server_config(
    cert_chain_pem: &[u8],
    key_pem: &[u8],
) -> Result<Arc<ServerConfig>, TlsConfigError> {
    server_config_with(cert_chain_pem, key_pem, &ServerTlsOptions::default())
}

/// Builds a server's configuration.
///
/// `cert_chain_pem` starts with the server's own certificate; `key_pem` holds its private key as
/// PKCS #8, PKCS #1 or SEC 1.
///
/// # Errors
/// One of the two is malformed or missing, they do not belong together, or an option cannot be
/// used.
pub fn server_config_with(
    cert_chain_pem: &[u8],
    key_pem: &[u8],
    options: &ServerTlsOptions,
) -> Result<Arc<ServerConfig>, TlsConfigError> {
    let (chain, key) = certified_key(cert_chain_pem, key_pem)?;
    let versions = match options.quic {
        true => TlsVersions::Tls13,
        false => options.versions,
    };
    let provider = provider(versions, &options.cipher_suites, &options.groups)?;
    let time_provider = options.time_provider.clone();
    let time_provider = time_provider.unwrap_or_else(|| Arc::new(DefaultTimeProvider));
    let verifier = client_verifier(&options.client_certificates, &provider)?;
    let mut config = ServerConfig::builder_with_details(provider, time_provider)
        .with_protocol_versions(versions.protocol_versions())
        .map_err(|error| TlsConfigError::new(TlsSetting::CipherSuites, error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(unusable_key)?;
    config.alpn_protocols = checked_alpn(&options.alpn)?;
    config.enable_secret_extraction = !options.stock_records;
    let user = options.key_log.clone();
    set_key_log(&mut config.key_log, (user, options.stock_records), false);
    set_tickets(&mut config, options)?;
    Ok(Arc::new(config))
}

fn client_verifier(
    wanted: &ClientCertificates,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsConfigError> {
    let (pem, is_optional) = match wanted {
        ClientCertificates::Ignored => return Ok(Arc::new(NoClientAuth)),
        ClientCertificates::Optional(pem) => (pem, true),
        ClientCertificates::Required(pem) => (pem, false),
    };
    let roots = Arc::new(root_store(pem)?);
    let mut builder = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
    if is_optional {
        builder = builder.allow_unauthenticated();
    }
    builder
        .build()
        .map_err(|error| TlsConfigError::new(TlsSetting::Roots, error))
}

fn set_tickets(
    config: &mut ServerConfig,
    options: &ServerTlsOptions,
) -> Result<(), TlsConfigError> {
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = match options.tickets {
        Tickets::None => 0,
        Tickets::Stateless { count } => {
            config.ticketer =
                Ticketer::new().map_err(|error| TlsConfigError::new(TlsSetting::Tickets, error))?;
            count.into()
        }
        Tickets::Stored {
            count,
            sessions_max,
        } => {
            config.session_storage = ServerSessionMemoryCache::new(sessions_max);
            count.into()
        }
    };
    if options.early_data_octets_max == 0 {
        return Ok(());
    }
    if !matches!(options.tickets, Tickets::Stored { .. }) {
        let what = "early data needs sessions that the server stores";
        return Err(TlsConfigError::new(TlsSetting::EarlyData, what));
    }
    config.max_early_data_size = match options.quic {
        true => u32::MAX,
        false => options.early_data_octets_max,
    };
    // Early queries are answered at once: that is what they are sent early for.
    config.send_half_rtt_data = true;
    Ok(())
}
