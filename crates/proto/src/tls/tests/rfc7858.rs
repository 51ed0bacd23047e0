//! RFC 7858, section 4.2: the out-of-band key-pinned privacy profile.

use super::*;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

fn pin(pem: &[u8]) -> SpkiPin {
    SpkiPin::of(&CertificateDer::from_pem_slice(pem).unwrap()).unwrap()
}

fn pinned(pins: Vec<SpkiPin>, verify: bool, certificates: &Certificates) -> Pair {
    let options = ClientTlsOptions {
        pins,
        verify,
        ..trusting(&certificates.authority)
    };
    let mut pair = Pair::new(&options, "dns.example", certificates);
    pair.exchange(usize::MAX);
    pair
}

#[test]
fn section_4_2_pin_of_the_servers_key_needs_no_authority() {
    let certificates = certificates();
    let own = pin(&certificates.chain);
    let pair = pinned(vec![own], false, &certificates);
    assert!(pair.is_established(), "{:?}", pair.client_progress);
}

#[test]
fn section_4_2_one_of_several_pins_is_enough() {
    let certificates = certificates();
    let pins = vec![pin(&super::certificates().chain), pin(&certificates.chain)];
    assert!(pinned(pins, false, &certificates).is_established());
}

#[test]
fn section_4_2_mismatch_is_fatal_and_names_the_pin_there_is() {
    let certificates = certificates();
    let pair = pinned(
        vec![pin(&super::certificates().chain)],
        false,
        &certificates,
    );
    match pair.client_progress.unwrap_err() {
        TlsFailure::Pin(reason) => {
            let own = pin(&certificates.chain).to_string();
            assert!(reason.contains(&own), "{reason}");
        }
        other => panic!("{other}"),
    }
    assert!(pair.server_progress.is_err(), "the server is alerted");
}

#[test]
fn section_4_2_pin_and_authority_both_count_if_both_are_asked_for() {
    let certificates = certificates();
    let own = pin(&certificates.chain);
    assert!(pinned(vec![own], true, &certificates).is_established());

    let other = pin(&super::certificates().chain);
    let failure = pinned(vec![other], true, &certificates).client_progress;
    assert!(matches!(failure, Err(TlsFailure::Pin(_))), "{failure:?}");

    let options = ClientTlsOptions {
        pins: vec![own],
        ..trusting(&certificates_of("Authority B").authority)
    };
    let mut pair = Pair::new(&options, "dns.example", &certificates);
    pair.exchange(usize::MAX);
    let failure = pair.client_progress;
    assert!(
        matches!(failure, Err(TlsFailure::Certificate(..))),
        "{failure:?}"
    );
}

#[test]
fn section_4_2_pin_of_an_authority_covers_what_it_signed() {
    let mut certificates = certificates();
    let authority = certificates.authority.clone();
    certificates.chain.extend_from_slice(&authority);
    let pair = pinned(vec![pin(&authority)], false, &certificates);
    assert!(pair.is_established(), "{:?}", pair.client_progress);
}

#[test]
fn section_4_2_pinned_certificate_that_is_only_sent_along_vouches_for_nothing() {
    let stranger = certificates_of("Authority B").authority;
    let mut certificates = certificates();
    certificates.chain.extend_from_slice(&stranger);
    let failure = pinned(vec![pin(&stranger)], false, &certificates).client_progress;
    assert!(matches!(failure, Err(TlsFailure::Pin(_))), "{failure:?}");
}

#[test]
fn section_4_2_copied_certificate_without_its_key_is_refused() {
    // The server shows a pinned certificate, but signs with another key.
    let (certificates, own) = (certificates(), super::certificates());
    let own_pin = pin(&certificates.chain);
    let shown: Vec<_> = CertificateDer::pem_slice_iter(&certificates.chain)
        .collect::<Result<_, _>>()
        .unwrap();
    let key = rustls::pki_types::PrivateKeyDer::from_pem_slice(&own.key).unwrap();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let key = provider.key_provider.load_private_key(key).unwrap();
    let forged = Arc::new(rustls::sign::CertifiedKey::new(shown, key));
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(forged)));
    for versions in [TlsVersions::Tls12, TlsVersions::Tls13] {
        let options = ClientTlsOptions {
            pins: vec![own_pin],
            verify: false,
            versions,
            ..ClientTlsOptions::default()
        };
        let client = ClientTls::new(client_config(&options).unwrap(), name()).unwrap();
        let mut pair = Pair::of(client, Arc::new(config.clone()));
        pair.exchange(usize::MAX);
        let failure = pair.client_progress.unwrap_err();
        assert!(matches!(failure, TlsFailure::Certificate(..)), "{failure}");
    }
}
