//! Certificates: clients can verify generated ones.

use std::sync::Arc;

use proto::tls::rustls::pki_types::pem::PemObject;
use proto::tls::rustls::pki_types::{CertificateDer, ServerName};
use proto::tls::rustls::{self, ClientConfig, RootCertStore};
use proto::tls::{ClientTls, ServerTls};
use responder::certificate::{CertificateError, Identity, SelfSigned, from_pem, self_signed};

/// A client that trusts `certificate_pem` and nothing else.
pub(crate) fn client(certificate_pem: &str, name: &str) -> ClientTls {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(certificate_pem.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    ClientTls::new(Arc::new(config), name).unwrap()
}

/// Octets from the server if the handshake succeeds.
fn handshake(identity: &Identity, name: &str) -> Option<usize> {
    let mut client = client(&identity.certificate_pem, name);
    let mut server = ServerTls::new(identity.server_config.clone()).unwrap();
    let mut octets = 0;
    let mut plaintext = Vec::new();
    for _ in 0..4 {
        let mut flight = Vec::new();
        client.poll_transmit(&mut flight);
        server.handle_bytes(&flight, &mut plaintext).ok()?;
        flight.clear();
        server.poll_transmit(&mut flight);
        octets += flight.len();
        client.handle_bytes(&flight, &mut plaintext).ok()?;
    }
    (!client.is_handshaking() && !server.is_handshaking()).then_some(octets)
}

#[test]
fn own_and_given_names_are_valid() {
    let identity = self_signed(&SelfSigned {
        names: vec![
            "dns.example.".to_owned(),
            "192.0.2.53".to_owned(),
            "::1".to_owned(),
        ],
        ..SelfSigned::default()
    })
    .unwrap();
    for name in ["localhost", "127.0.0.1", "::1", "dns.example", "192.0.2.53"] {
        assert!(handshake(&identity, name).is_some(), "{name}");
    }
    assert!(handshake(&identity, "other.example").is_none());
}

#[test]
fn handshakes_are_equally_long_if_asked_for() {
    let options = SelfSigned {
        deterministic_lengths: true,
        ..SelfSigned::default()
    };
    let octets = || handshake(&self_signed(&options).unwrap(), "localhost").unwrap();
    let first = octets();
    for _ in 0..20 {
        assert_eq!(octets(), first);
    }
}

#[test]
fn an_expired_certificate_is_refused_by_clients() {
    let options = SelfSigned {
        expired: true,
        ..SelfSigned::default()
    };
    assert!(handshake(&self_signed(&options).unwrap(), "localhost").is_none());
}

#[test]
fn pem_texts_are_taken() {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["given.example".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    let identity = from_pem(&certificate, &key.serialize_pem()).unwrap();
    assert!(handshake(&identity, "given.example").is_some());

    let other_key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let mismatch = from_pem(&certificate, &other_key).unwrap_err();
    assert!(matches!(mismatch, CertificateError::Unusable(_)));
    let empty = from_pem("", &other_key).unwrap_err();
    assert!(matches!(empty, CertificateError::CertificatePem(_)));
    let keyless = from_pem(&certificate, &certificate).unwrap_err();
    assert!(matches!(keyless, CertificateError::KeyPem(_)));
    let name = self_signed(&SelfSigned {
        names: vec!["b\u{fc}cher.example".to_owned()],
        ..SelfSigned::default()
    });
    assert!(matches!(name, Err(CertificateError::Name(_))));
}
