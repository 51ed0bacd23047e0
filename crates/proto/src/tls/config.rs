//! Configurations of both sides, with the cryptography named rather than taken from the process.

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme, SupportedProtocolVersion,
};
use std::sync::Arc;

/// How a client sets up its sessions.
#[derive(Clone, Debug)]
pub struct ClientTlsOptions {
    /// The authorities trusted; not looked at if `verify` is false.
    pub roots: Roots,
    /// Whether the certificate is checked (RFC 8310: strict) or any is taken (opportunistic).
    pub verify: bool,
    /// The TLS versions offered.
    pub versions: TlsVersions,
    /// The ALPN protocols offered; none by default, `dot` is registered for RFC 7858.
    pub alpn: Vec<Vec<u8>>,
    /// Where certificate checks take the time from; `None` for rustls' own, the system clock.
    pub time_provider: Option<Arc<dyn TimeProvider>>,
    /// Whether later sessions may resume earlier ones; off, every handshake is a full one.
    pub resumption: bool,
}

impl Default for ClientTlsOptions {
    /// The roots of the Web, verified, full handshakes, TLS 1.2 and 1.3, no ALPN.
    fn default() -> Self {
        ClientTlsOptions {
            roots: Roots::WebPki,
            verify: true,
            versions: TlsVersions::All,
            alpn: Vec::new(),
            time_provider: None,
            resumption: false,
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

/// The TLS versions that a client offers.
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
    fn protocol_versions(self) -> &'static [&'static SupportedProtocolVersion] {
        const TLS12: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12];
        const TLS13: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];
        match self {
            TlsVersions::All => rustls::ALL_VERSIONS,
            TlsVersions::Tls12 => TLS12,
            TlsVersions::Tls13 => TLS13,
        }
    }
}

/// Builds the configuration that all sessions of a client group share.
///
/// # Errors
/// The roots hold no certificate or a malformed one; the text says which.
pub fn client_config(options: &ClientTlsOptions) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let time_provider = options.time_provider.clone();
    let time_provider = time_provider.unwrap_or_else(|| Arc::new(DefaultTimeProvider));
    let builder = ClientConfig::builder_with_details(provider.clone(), time_provider)
        .with_protocol_versions(options.versions.protocol_versions())
        .map_err(|error| error.to_string())?;
    let builder = if options.verify {
        builder.with_root_certificates(root_store(&options.roots)?)
    } else {
        let verifier = Arc::new(AcceptAnyCertificate { provider });
        builder
            .dangerous()
            .with_custom_certificate_verifier(verifier)
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols.clone_from(&options.alpn);
    if !options.resumption {
        config.resumption = Resumption::disabled();
    }
    Ok(Arc::new(config))
}

fn root_store(roots: &Roots) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    match roots {
        Roots::WebPki => store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Roots::Pem(pem) => {
            for certificate in certificates(pem)? {
                let added = store.add(certificate);
                added.map_err(|error| format!("a certificate cannot serve as root: {error}"))?;
            }
        }
    }
    Ok(store)
}

/// The certificates of a PEM file, in its order.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("malformed PEM: {error}"))?;
    if certificates.is_empty() {
        return Err("there is no certificate in the PEM file".to_owned());
    }
    Ok(certificates)
}

/// Builds a server's configuration: TLS 1.2 and 1.3, no client certificates, no ALPN.
///
/// `cert_chain_pem` starts with the server's own certificate; `key_pem` holds its private key as
/// PKCS #8, PKCS #1 or SEC 1.
///
/// # Errors
/// One of the two is malformed or missing, or they do not belong together.
pub fn server_config(cert_chain_pem: &[u8], key_pem: &[u8]) -> Result<Arc<ServerConfig>, String> {
    let chain = certificates(cert_chain_pem)?;
    let key = PrivateKeyDer::from_pem_slice(key_pem)
        .map_err(|error| format!("no private key can be read from the PEM file: {error}"))?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(config))
}

/// Takes any certificate, but still has the server prove that it holds the key to it.
#[derive(Debug)]
struct AcceptAnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        tolerate_odd_certificate(verify_tls12_signature(
            message,
            certificate,
            signed,
            algorithms,
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        tolerate_odd_certificate(verify_tls13_signature(
            message,
            certificate,
            signed,
            algorithms,
        ))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Lets a handshake pass whose certificate cannot be read, as X.509 version 1 certificates cannot:
/// BIND's `tls ephemeral` makes one. A signature that was checked and is wrong stays an error.
fn tolerate_odd_certificate(
    checked: Result<HandshakeSignatureValid, Error>,
) -> Result<HandshakeSignatureValid, Error> {
    match checked {
        Err(Error::InvalidCertificate(reason)) if reason != CertificateError::BadSignature => {
            Ok(HandshakeSignatureValid::assertion())
        }
        other => other,
    }
}
