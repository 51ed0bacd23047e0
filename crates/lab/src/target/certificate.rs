//! Certificates for DNS over TLS: a certification authority made for one target, and one server
//! certificate below it.

use std::net::IpAddr;

use anyhow::Context;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// The name in every target's certificate, beside 127.0.0.1, ::1 and its own addresses.
pub const TLS_NAME: &str = "localhost";

/// What a server needs and what a client needs to verify it, all PEM.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    /// The authority's certificate, for the client.
    pub(crate) ca_pem: String,
    /// The server's certificate.
    pub(crate) server_pem: String,
    /// The server's private key (PKCS #8, ECDSA P-256).
    pub(crate) key_pem: String,
}

impl Certificate {
    /// Makes an authority and a server certificate for loopback and these addresses. Costs two key
    /// generations.
    pub(crate) fn generate(addresses: &[IpAddr]) -> anyhow::Result<Certificate> {
        Certificate::try_generate(addresses).context("cannot make a certificate for DNS over TLS")
    }

    fn try_generate(addresses: &[IpAddr]) -> Result<Certificate, rcgen::Error> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority
            .distinguished_name
            .push(DnType::CommonName, "throng lab authority");
        let authority_key = KeyPair::generate()?;
        let ca_pem = authority.self_signed(&authority_key)?.pem();

        let mut names: Vec<String> = [TLS_NAME, "127.0.0.1", "::1"].map(String::from).into();
        for address in addresses.iter().filter(|address| !address.is_loopback()) {
            names.push(address.to_string());
        }
        let mut server = CertificateParams::new(names)?;
        server.distinguished_name.push(DnType::CommonName, TLS_NAME);
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let issuer = Issuer::new(authority, authority_key);
        let server_pem = server.signed_by(&key, &issuer)?.pem();
        Ok(Certificate {
            ca_pem,
            server_pem,
            key_pem: key.serialize_pem(),
        })
    }
}
