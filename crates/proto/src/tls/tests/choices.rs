//! What can be chosen is what is negotiated: versions, cipher suites, groups.

use super::*;
use rcgen::{PKCS_RSA_SHA256, RsaKeySize};

#[test]
fn every_cipher_suite_is_negotiated_alone() {
    let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    let (rsa, ecdsa) = (certificates_with(rsa, "Authority R"), certificates());
    for suite in CipherSuite::all() {
        let certificates = if suite.name().contains("_RSA_") {
            &rsa
        } else {
            &ecdsa
        };
        let options = ClientTlsOptions {
            cipher_suites: vec![suite],
            ..trusting(&certificates.authority)
        };
        let mut pair = Pair::new(&options, "dns.example", certificates);
        pair.exchange(usize::MAX);
        assert!(pair.is_established(), "{suite}: {:?}", pair.client_progress);
        let negotiated = pair.client.negotiated().unwrap();
        assert_eq!(negotiated.cipher_suite, suite.name());
        let version = if suite.is_tls13() {
            "TLS 1.3"
        } else {
            "TLS 1.2"
        };
        assert_eq!(negotiated.version, version);
    }
}

#[test]
fn every_group_is_negotiated_alone_in_every_version_that_has_it() {
    for group in Group::ALL {
        for versions in [TlsVersions::Tls12, TlsVersions::Tls13] {
            if versions == TlsVersions::Tls12 && !group.is_for_tls12() {
                continue;
            }
            let pair = established(&ClientTlsOptions {
                groups: vec![group],
                versions,
                ..ClientTlsOptions::default()
            });
            let negotiated = pair.client.negotiated().unwrap();
            assert_eq!(negotiated.key_exchange_group, group.name());
        }
    }
}

#[test]
fn the_first_of_several_is_what_a_willing_server_takes() {
    let suites = CipherSuite::all();
    for (cipher_suites, groups) in [
        (
            vec![suites[1], suites[0]],
            vec![Group::Secp384r1, Group::X25519],
        ),
        (
            vec![suites[2], suites[1]],
            vec![Group::MlKem768, Group::X25519],
        ),
    ] {
        let pair = established(&ClientTlsOptions {
            cipher_suites: cipher_suites.clone(),
            groups: groups.clone(),
            ..ClientTlsOptions::default()
        });
        let negotiated = pair.client.negotiated().unwrap();
        assert_eq!(negotiated.cipher_suite, cipher_suites[0].name());
        assert_eq!(negotiated.key_exchange_group, groups[0].name());
    }
}

#[test]
fn default_groups_are_those_documented_and_one_share_is_sent() {
    let names = Group::DEFAULT.map(Group::name);
    assert_eq!(
        names,
        ["x25519", "secp256r1", "secp384r1", "X25519MLKEM768"]
    );
    let pair = established(&ClientTlsOptions::default());
    assert_eq!(
        pair.client.negotiated().unwrap().key_exchange_group,
        "x25519"
    );
    let octets_sent = pair.client.handshake().unwrap().octets_sent;
    assert!(octets_sent < 600, "no hybrid share: {octets_sent}");
}

#[test]
fn choices_that_contradict_each_other_are_refused() {
    let tls12_suite = *CipherSuite::all().last().unwrap();
    let defaults = ClientTlsOptions::default;
    for (options, setting) in [
        (
            ClientTlsOptions {
                versions: TlsVersions::Tls13,
                cipher_suites: vec![tls12_suite],
                ..defaults()
            },
            TlsSetting::CipherSuites,
        ),
        (
            ClientTlsOptions {
                versions: TlsVersions::Tls12,
                cipher_suites: vec![tls12_suite, CipherSuite::all()[0]],
                ..defaults()
            },
            TlsSetting::CipherSuites,
        ),
        (
            ClientTlsOptions {
                cipher_suites: Vec::new(),
                ..defaults()
            },
            TlsSetting::CipherSuites,
        ),
        (
            ClientTlsOptions {
                versions: TlsVersions::Tls12,
                groups: vec![Group::X25519MlKem768],
                ..defaults()
            },
            TlsSetting::Groups,
        ),
        (
            ClientTlsOptions {
                groups: vec![Group::X25519, Group::MlKem768, Group::X25519],
                ..defaults()
            },
            TlsSetting::Groups,
        ),
        (
            ClientTlsOptions {
                alpn: vec![vec![b'x'; 32]],
                ..defaults()
            },
            TlsSetting::Alpn,
        ),
        (
            ClientTlsOptions {
                early_data: true,
                ..defaults()
            },
            TlsSetting::EarlyData,
        ),
        (
            ClientTlsOptions {
                early_data: true,
                resumption: true,
                versions: TlsVersions::Tls12,
                ..defaults()
            },
            TlsSetting::EarlyData,
        ),
    ] {
        let error = client_config(&options).unwrap_err();
        assert_eq!(error.setting, setting, "{error}");
    }
}

#[test]
fn name_is_sent_unless_it_is_not_to_be() {
    for sni in [true, false] {
        let options = ClientTlsOptions {
            sni,
            ..ClientTlsOptions::default()
        };
        let mut client = ClientTls::new(client_config(&options).unwrap(), name()).unwrap();
        let mut hello = Vec::new();
        client.poll_transmit(&mut hello);
        let is_sent = hello.windows(11).any(|octets| octets == b"dns.example");
        assert_eq!(is_sent, sni);
        let pair = established(&options);
        assert!(pair.is_established(), "verified by the name in both cases");
    }
}

#[test]
fn key_log_is_told_secrets_of_both_versions() {
    #[derive(Debug, Default)]
    struct Labels(std::sync::Mutex<Vec<String>>);
    impl rustls::KeyLog for Labels {
        fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
            assert_eq!(client_random.len(), 32);
            assert!(secret.len() >= 32);
            self.0.lock().unwrap().push(label.to_owned());
        }
    }
    for (versions, label) in [
        (TlsVersions::Tls12, "CLIENT_RANDOM"),
        (TlsVersions::Tls13, "CLIENT_TRAFFIC_SECRET_0"),
    ] {
        let labels = Arc::new(Labels::default());
        established(&ClientTlsOptions {
            versions,
            key_log: Some(labels.clone()),
            ..ClientTlsOptions::default()
        });
        let labels = labels.0.lock().unwrap();
        assert!(labels.iter().any(|each| each == label), "{labels:?}");
    }
}
