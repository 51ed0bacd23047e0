//! Configurations of clients, with the cryptography named rather than taken from the process.

use super::client_session::OwnSessions;
use super::failure::refusal;
use super::handshake::Alpn;
use super::pins::{Pinned, SpkiPin};
use super::record_layer::Listener;
use super::registry::{CipherSuite, Group};
use super::verifier::{AnyChain, ChainVerifier, JudgeChain, OwnAuthorities};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{
    ClientConfig, Error, InconsistentKeys, KeyLog, RootCertStore, SupportedProtocolVersion,
};
use std::fmt;
use std::sync::Arc;

/// How a client sets up its sessions.
#[derive(Clone, Debug)]
pub struct ClientTlsOptions {
    /// The authorities trusted; not looked at if `verify` is false.
    pub roots: Roots,
    /// Whether the certificate is checked (RFC 8310: strict) or any is taken (opportunistic),
    /// as far as there are no pins.
    pub verify: bool,
    /// Keys of which the server has to have one (RFC 7858, section 4.2), beside what `verify`
    /// asks for. Empty asks for none.
    pub pins: Vec<SpkiPin>,
    /// The TLS versions offered.
    pub versions: TlsVersions,
    /// The cipher suites offered, preferred first.
    pub cipher_suites: Vec<CipherSuite>,
    /// The key exchange groups offered, preferred first; a key share is sent for the first. In
    /// TLS 1.2 they are also the curves that certificates may have (RFC 8422, section 4).
    pub groups: Vec<Group>,
    /// The ALPN protocols offered; none by default, `dot` is registered for RFC 7858.
    pub alpn: Vec<Vec<u8>>,
    /// Whether the name is sent (RFC 6066, section 3); addresses never are.
    pub sni: bool,
    /// Shown to servers that ask for one.
    pub certificate: Option<ClientCertificate>,
    /// Where certificate checks take the time from; `None` for rustls' own, the system clock.
    pub time_provider: Option<Arc<dyn TimeProvider>>,
    /// Whether clients may resume their own sessions ([`super::ClientSession`]); off, every
    /// handshake is a full one.
    pub resumption: bool,
    /// Whether a resumed session begins with early data where the server allows it.
    pub early_data: bool,
    /// Receives all secrets, for programs that decrypt captures.
    pub key_log: Option<Arc<dyn KeyLog>>,
    /// Whether rustls does the records of streams to the end, rather than our own record layer.
    pub stock_records: bool,
}

impl Default for ClientTlsOptions {
    /// The roots of the Web, verified, full handshakes, TLS 1.2 and 1.3, no ALPN.
    fn default() -> Self {
        ClientTlsOptions {
            roots: Roots::WebPki,
            verify: true,
            pins: Vec::new(),
            versions: TlsVersions::All,
            cipher_suites: CipherSuite::all().to_vec(),
            groups: Group::DEFAULT.to_vec(),
            alpn: Vec::new(),
            sni: true,
            certificate: None,
            time_provider: None,
            resumption: false,
            early_data: false,
            key_log: None,
            stock_records: false,
        }
    }
}

/// The certificate authorities that a client trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// Mozilla's, as built into this program.
    WebPki,
    /// Those of a PEM file, and no others.
    Pem(Vec<u8>),
}

/// A certificate with its private key, as the contents of PEM files.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The client's certificate, then those that lead from it to an authority.
    pub chain_pem: Vec<u8>,
    /// Its private key as PKCS #8, PKCS #1 or SEC 1.
    pub key_pem: Vec<u8>,
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the key.
        f.debug_struct("ClientCertificate").finish_non_exhaustive()
    }
}

/// The TLS versions that a side offers or accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersions {
    /// TLS 1.2 and TLS 1.3.
    #[default]
    All,
    /// TLS 1.2 alone (RFC 5246).
    Tls12,
    /// TLS 1.3 alone (RFC 8446).
    Tls13,
}

impl TlsVersions {
    pub(super) fn protocol_versions(self) -> &'static [&'static SupportedProtocolVersion] {
        const TLS12: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12];
        const TLS13: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];
        match self {
            TlsVersions::All => rustls::ALL_VERSIONS,
            TlsVersions::Tls12 => TLS12,
            TlsVersions::Tls13 => TLS13,
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfigError {
    /// The setting at fault.
    pub setting: TlsSetting,
    /// What is wrong with it.
    pub what: String,
}

/// A setting of TLS, to say which flag or file is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsSetting {
    /// The authorities that are trusted.
    Roots,
    /// The side's own certificates.
    Certificate,
    /// The private key.
    Key,
    /// The certificate and the key together: one is not the other's.
    CertificateAndKey,
    /// The cipher suites.
    CipherSuites,
    /// The key exchange groups.
    Groups,
    /// The ALPN protocols.
    Alpn,
    /// Early data.
    EarlyData,
    /// Tickets of a server.
    Tickets,
}

impl TlsConfigError {
    pub(super) fn new(setting: TlsSetting, what: impl fmt::Display) -> Self {
        let what = what.to_string();
        TlsConfigError { setting, what }
    }
}

impl fmt::Display for TlsConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for TlsConfigError {}

/// Builds the configuration that all sessions of a client group share, on all threads.
///
/// # Errors
/// The first setting that cannot be used or that contradicts another.
pub fn client_config(options: &ClientTlsOptions) -> Result<Arc<ClientConfig>, TlsConfigError> {
    let provider = provider(options.versions, &options.cipher_suites, &options.groups)?;
    check_early_data(options)?;
    let time_provider = options.time_provider.clone();
    let time_provider = time_provider.unwrap_or_else(|| Arc::new(DefaultTimeProvider));
    let builder = ClientConfig::builder_with_details(provider.clone(), time_provider)
        .with_protocol_versions(options.versions.protocol_versions())
        .map_err(|error| TlsConfigError::new(TlsSetting::CipherSuites, error))?
        .dangerous()
        .with_custom_certificate_verifier(verifier(options, provider)?);
    let mut config = match &options.certificate {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let (chain, key) = certified_key(&own.chain_pem, &own.key_pem)?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(unusable_key)?
        }
    };
    config.alpn_protocols = checked_alpn(&options.alpn)?;
    config.enable_sni = options.sni;
    config.enable_early_data = options.early_data;
    config.resumption = match options.resumption {
        true => Resumption::store(Arc::new(OwnSessions)),
        false => Resumption::disabled(),
    };
    let user = options.key_log.clone();
    config.enable_secret_extraction = !options.stock_records;
    set_key_log(
        &mut config.key_log,
        (user, options.stock_records),
        options.resumption,
    );
    Ok(Arc::new(config))
}

/// Sets the user's key log, behind that of our own record layer unless rustls does the records.
pub(super) fn set_key_log(
    key_log: &mut Arc<dyn KeyLog>,
    (user, stock_records): (Option<Arc<dyn KeyLog>>, bool),
    remembers: bool,
) {
    match (user, stock_records) {
        (Some(user), true) => *key_log = user,
        (None, true) => {}
        (user, false) => *key_log = Arc::new(Listener { user, remembers }),
    }
}

fn check_early_data(options: &ClientTlsOptions) -> Result<(), TlsConfigError> {
    let what = match options {
        ClientTlsOptions {
            early_data: false, ..
        } => return Ok(()),
        ClientTlsOptions {
            resumption: false, ..
        } => "early data needs a session to resume",
        ClientTlsOptions {
            versions: TlsVersions::Tls12,
            ..
        } => "TLS 1.2 has no early data",
        _ => return Ok(()),
    };
    Err(TlsConfigError::new(TlsSetting::EarlyData, what))
}

/// The cryptography of one configuration: what was chosen, each of it usable.
pub(super) fn provider(
    versions: TlsVersions,
    cipher_suites: &[CipherSuite],
    groups: &[Group],
) -> Result<Arc<CryptoProvider>, TlsConfigError> {
    let unusable = match versions {
        TlsVersions::All => None,
        TlsVersions::Tls12 => cipher_suites.iter().find(|suite| suite.is_tls13()),
        TlsVersions::Tls13 => cipher_suites.iter().find(|suite| !suite.is_tls13()),
    };
    // All suites, the default, are no choice that could contradict the version.
    if let Some(suite) = unusable.filter(|_| cipher_suites != CipherSuite::all()) {
        let (its, version) = match suite.is_tls13() {
            true => ("1.3", "1.2"),
            false => ("1.2", "1.3"),
        };
        let what = format!("{suite} is of TLS {its}, the only version is {version}");
        return Err(TlsConfigError::new(TlsSetting::CipherSuites, what));
    }
    if let Some(twice) = repeated(cipher_suites) {
        let what = format!("{twice} is given twice");
        return Err(TlsConfigError::new(TlsSetting::CipherSuites, what));
    }
    if let Some(twice) = repeated(groups) {
        let what = format!("{twice} is given twice");
        return Err(TlsConfigError::new(TlsSetting::Groups, what));
    }
    if cipher_suites.is_empty() {
        let what = "there is no cipher suite to offer";
        return Err(TlsConfigError::new(TlsSetting::CipherSuites, what));
    }
    let is_usable = |group: &Group| versions != TlsVersions::Tls12 || group.is_for_tls12();
    if !groups.iter().any(is_usable) {
        let what = match groups.first() {
            None => "there is no group to offer".to_owned(),
            Some(group) => format!("TLS 1.2 cannot use {group}"),
        };
        return Err(TlsConfigError::new(TlsSetting::Groups, what));
    }
    Ok(Arc::new(CryptoProvider {
        cipher_suites: cipher_suites
            .iter()
            .map(|suite| suite.supported())
            .collect(),
        kx_groups: groups.iter().map(|group| group.supported()).collect(),
        ..aws_lc_rs::default_provider()
    }))
}

fn repeated<T: PartialEq>(list: &[T]) -> Option<&T> {
    let mut positions = list.iter().enumerate();
    positions
        .find(|(at, item)| list[..*at].contains(item))
        .map(|(_, item)| item)
}

/// What judges the server's certificate.
fn verifier(
    options: &ClientTlsOptions,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<ChainVerifier>, TlsConfigError> {
    let authorities = match options.verify {
        true => Some(authorities(&options.roots, &provider)?),
        false => None,
    };
    let judge = match (authorities, options.pins.is_empty()) {
        (Some(authorities), true) => authorities,
        (None, true) => Arc::new(AnyChain),
        (authorities, false) => Arc::new(Pinned {
            pins: options.pins.clone(),
            authorities,
            provider: provider.clone(),
        }),
    };
    Ok(Arc::new(ChainVerifier::new(judge, provider)))
}

fn authorities(
    roots: &Roots,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn JudgeChain>, TlsConfigError> {
    let store = match roots {
        Roots::WebPki => RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        },
        Roots::Pem(pem) => root_store(pem)?,
    };
    let authorities =
        WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone())
            .build()
            .map_err(|error| TlsConfigError::new(TlsSetting::Roots, error))?;
    Ok(match roots {
        Roots::WebPki => authorities,
        Roots::Pem(pem) => Arc::new(OwnAuthorities {
            authorities,
            given: certificates(pem, TlsSetting::Roots)?,
        }),
    })
}

/// The certificates of a PEM file as authorities.
pub(super) fn root_store(pem: &[u8]) -> Result<RootCertStore, TlsConfigError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(pem, TlsSetting::Roots)? {
        store.add(certificate).map_err(|error| {
            let what = format!("a certificate cannot serve as root: {error}");
            TlsConfigError::new(TlsSetting::Roots, what)
        })?;
    }
    Ok(store)
}

/// The certificates of a PEM file, in its order.
fn certificates(
    pem: &[u8],
    setting: TlsSetting,
) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| TlsConfigError::new(setting, format!("malformed PEM: {error}")))?;
    if certificates.is_empty() {
        let what = "there is no certificate in the PEM file";
        return Err(TlsConfigError::new(setting, what));
    }
    Ok(certificates)
}

/// A certificate chain and the private key of its first certificate.
type CertifiedKey = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Reads both from the contents of PEM files.
pub(super) fn certified_key(
    chain_pem: &[u8],
    key_pem: &[u8],
) -> Result<CertifiedKey, TlsConfigError> {
    let chain = certificates(chain_pem, TlsSetting::Certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|error| {
        let what = format!("no private key can be read from the PEM file: {error}");
        TlsConfigError::new(TlsSetting::Key, what)
    })?;
    Ok((chain, key))
}

/// Why rustls does not take a certificate with its key.
pub(super) fn unusable_key(error: Error) -> TlsConfigError {
    match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            let what = "the private key is not that of the certificate";
            TlsConfigError::new(TlsSetting::CertificateAndKey, what)
        }
        Error::InvalidCertificate(reason) => {
            let what = format!("the certificate cannot be used: {}", refusal(&reason));
            TlsConfigError::new(TlsSetting::Certificate, what)
        }
        other => TlsConfigError::new(TlsSetting::CertificateAndKey, other),
    }
}

/// The ALPN protocols, if their names can be used.
pub(super) fn checked_alpn(protocols: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, TlsConfigError> {
    let unusable = protocols.iter().find(|name| Alpn::new(name).is_none());
    if let Some(name) = unusable {
        let what = format!(
            "an ALPN protocol has a name of 1 to {} bytes, not {}",
            Alpn::OCTETS_MAX,
            name.len()
        );
        return Err(TlsConfigError::new(TlsSetting::Alpn, what));
    }
    Ok(protocols.to_vec())
}

/// The suite of QUIC's first packets, which is always the same (RFC 9001, section 5.2) whatever
/// cipher suites are offered.
///
/// # Panics
/// Never: the suite is one that QUIC has.
pub fn quic_initial_suite() -> rustls::quic::Suite {
    aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256
        .tls13()
        .and_then(|suite| suite.quic_suite())
        .expect("AES-128-GCM is QUIC's own suite")
}
