//! Certificates that clients show (RFC 8446, section 4.4.2.3; RFC 5246, section 7.4.6).

use super::*;

fn own(certificates: &Certificates) -> ClientCertificate {
    ClientCertificate {
        chain_pem: certificates.chain.clone(),
        key_pem: certificates.key.clone(),
    }
}

fn asking(client_certificates: ClientCertificates) -> ServerTlsOptions {
    ServerTlsOptions {
        client_certificates,
        ..ServerTlsOptions::default()
    }
}

#[test]
fn server_that_needs_a_certificate_takes_one_of_its_authority() {
    for versions in [TlsVersions::Tls12, TlsVersions::Tls13] {
        let certificates = certificates();
        let options = ClientTlsOptions {
            certificate: Some(own(&certificates)),
            versions,
            ..trusting(&certificates.authority)
        };
        let server = asking(ClientCertificates::Required(certificates.authority.clone()));
        let mut pair = Pair::with(&options, &server, &certificates);
        pair.exchange(usize::MAX);
        assert!(pair.is_established(), "{:?}", pair.server_progress);
    }
}

#[test]
fn server_that_needs_a_certificate_refuses_clients_without_by_name() {
    for (versions, alert) in [
        (TlsVersions::Tls12, "certificate_required"),
        (TlsVersions::Tls13, "certificate_required"),
    ] {
        let certificates = certificates();
        let options = ClientTlsOptions {
            versions,
            ..trusting(&certificates.authority)
        };
        let server = asking(ClientCertificates::Required(certificates.authority.clone()));
        let mut pair = Pair::with(&options, &server, &certificates);
        pair.exchange(usize::MAX);
        let failure = TlsFailure::Alert(alert.to_owned());
        assert_eq!(pair.client_progress, Err(failure), "{versions:?}");
    }
}

#[test]
fn server_that_only_asks_takes_clients_without() {
    let certificates = certificates();
    let server = asking(ClientCertificates::Optional(certificates.authority.clone()));
    let mut pair = Pair::with(&trusting(&certificates.authority), &server, &certificates);
    pair.exchange(usize::MAX);
    assert!(pair.is_established(), "{:?}", pair.server_progress);
}

#[test]
fn certificate_of_another_authority_is_refused() {
    let (certificates, other) = (certificates(), certificates_of("Authority B"));
    let options = ClientTlsOptions {
        certificate: Some(own(&other)),
        ..trusting(&certificates.authority)
    };
    let server = asking(ClientCertificates::Optional(certificates.authority.clone()));
    let mut pair = Pair::with(&options, &server, &certificates);
    pair.exchange(usize::MAX);
    let failure = pair.client_progress.unwrap_err();
    assert!(matches!(failure, TlsFailure::Alert(_)), "{failure}");
}

#[test]
fn key_that_does_not_fit_is_refused_with_the_setting() {
    let (certificates, other) = (certificates(), certificates_of("Authority B"));
    let with = |chain: &[u8], key: &[u8]| {
        let options = ClientTlsOptions {
            certificate: Some(ClientCertificate {
                chain_pem: chain.to_vec(),
                key_pem: key.to_vec(),
            }),
            ..ClientTlsOptions::default()
        };
        client_config(&options).map_err(|error| error.setting)
    };
    assert_eq!(
        with(&certificates.chain, &other.key).unwrap_err(),
        TlsSetting::CertificateAndKey
    );
    assert_eq!(with(&certificates.chain, b"").unwrap_err(), TlsSetting::Key);
    assert_eq!(
        with(b"", &certificates.key).unwrap_err(),
        TlsSetting::Certificate
    );
    assert!(with(&certificates.chain, &certificates.key).is_ok());
}
