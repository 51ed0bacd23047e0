//! Client and server talking through buffers, as sentences about what each side then knows.

use super::*;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::pki_types::{ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use std::sync::Arc;
use std::time::Duration;

mod choices;
mod client_certificates;
mod record_layer;
mod rfc7301;
mod rfc7858;
mod rfc8446;

/// An authority, and a certificate for `dns.example` signed by it, as PEM.
struct Certificates {
    authority: Vec<u8>,
    chain: Vec<u8>,
    key: Vec<u8>,
}

fn certificates() -> Certificates {
    certificates_of("Authority A")
}

fn certificates_of(authority_name: &str) -> Certificates {
    certificates_with(KeyPair::generate().unwrap(), authority_name)
}

fn certificates_with(key: KeyPair, authority_name: &str) -> Certificates {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority
        .distinguished_name
        .push(DnType::CommonName, authority_name);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let names = vec!["dns.example".to_owned(), "127.0.0.1".to_owned()];
    let mut params = CertificateParams::new(names).unwrap();
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let chain = params.signed_by(&key, &authority).unwrap();
    Certificates {
        authority: authority.pem().into_bytes(),
        chain: chain.pem().into_bytes(),
        key: key.serialize_pem().into_bytes(),
    }
}

/// A clock that stands, in seconds since 1970; rcgen's certificates are valid from 1975 to 4096.
#[derive(Debug)]
struct FixedTime(u64);

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0)))
    }
}

fn trusting(authority: &[u8]) -> ClientTlsOptions {
    ClientTlsOptions {
        roots: Roots::Pem(authority.to_vec()),
        time_provider: Some(Arc::new(FixedTime(1_780_000_000))),
        ..ClientTlsOptions::default()
    }
}

/// Both sides and the octets that each has received in plaintext.
struct Pair {
    client: ClientTls,
    server: ServerTls,
    client_received: Vec<u8>,
    server_received: Vec<u8>,
    client_progress: Result<PeerState, TlsFailure>,
    server_progress: Result<PeerState, TlsFailure>,
}

impl Pair {
    fn new(options: &ClientTlsOptions, name: &str, certificates: &Certificates) -> Pair {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let server = server_config(&certificates.chain, &certificates.key).unwrap();
        let client = ClientTls::new(client_config(options).unwrap(), name).unwrap();
        Pair::of(client, server)
    }

    /// A client and a server that is configured, too.
    fn with(
        options: &ClientTlsOptions,
        server_options: &ServerTlsOptions,
        certificates: &Certificates,
    ) -> Pair {
        let Certificates { chain, key, .. } = certificates;
        let server = server_config_with(chain, key, server_options).unwrap();
        let client = ClientTls::new(client_config(options).unwrap(), name()).unwrap();
        Pair::of(client, server)
    }

    fn of(client: ClientTls, server: Arc<rustls::ServerConfig>) -> Pair {
        Pair {
            client,
            server: ServerTls::new(server).unwrap(),
            client_received: Vec::new(),
            server_received: Vec::new(),
            client_progress: Ok(PeerState { peer_closed: false }),
            server_progress: Ok(PeerState { peer_closed: false }),
        }
    }

    /// Moves octets both ways in pieces of at most `chunk_octets` until none are left.
    fn exchange(&mut self, chunk_octets: usize) {
        // A handshake takes three turns; 20 is far beyond any of these tests.
        for _ in 0..20 {
            let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
            self.client.poll_transmit(&mut to_server);
            for chunk in to_server.chunks(chunk_octets) {
                self.server_progress = self.server.handle_bytes(chunk, &mut self.server_received);
            }
            self.server.poll_transmit(&mut to_client);
            for chunk in to_client.chunks(chunk_octets) {
                self.client_progress = self.client.handle_bytes(chunk, &mut self.client_received);
            }
            if to_server.is_empty() && to_client.is_empty() {
                return;
            }
        }
        panic!("the two sides never fell silent");
    }

    fn is_established(&self) -> bool {
        !self.client.is_handshaking() && !self.server.is_handshaking()
    }
}

fn name() -> ServerName<'static> {
    ServerName::try_from("dns.example").unwrap()
}

fn established(options: &ClientTlsOptions) -> Pair {
    let certificates = certificates();
    let roots = match &options.roots {
        Roots::WebPki => Roots::Pem(certificates.authority.clone()),
        pem => pem.clone(),
    };
    let options = ClientTlsOptions {
        roots,
        ..options.clone()
    };
    let mut pair = Pair::new(&options, "dns.example", &certificates);
    pair.exchange(usize::MAX);
    assert!(
        pair.is_established(),
        "{:?} {:?}",
        pair.client_progress,
        pair.server_progress
    );
    pair
}

#[test]
fn both_versions_are_negotiated_and_named() {
    for (versions, version) in [
        (TlsVersions::Tls12, "TLS 1.2"),
        (TlsVersions::Tls13, "TLS 1.3"),
        (TlsVersions::All, "TLS 1.3"),
    ] {
        let pair = established(&ClientTlsOptions {
            versions,
            ..ClientTlsOptions::default()
        });
        let negotiated = pair.client.negotiated().unwrap();
        assert_eq!(negotiated.version, version);
        assert!(
            negotiated.cipher_suite.starts_with("TLS_"),
            "{negotiated:?}"
        );
        assert_ne!(negotiated.key_exchange_group, "unknown");
        assert_eq!(pair.server.negotiated(), Some(negotiated));
    }
}

#[test]
fn addresses_are_verified_like_names() {
    let certificates = certificates();
    let mut pair = Pair::new(
        &trusting(&certificates.authority),
        "127.0.0.1",
        &certificates,
    );
    assert_eq!(pair.client.negotiated(), None);
    pair.exchange(usize::MAX);
    assert!(pair.is_established());
}

#[test]
fn certificate_for_another_name_is_refused_and_the_server_told() {
    let certificates = certificates();
    let mut pair = Pair::new(
        &trusting(&certificates.authority),
        "other.example",
        &certificates,
    );
    pair.exchange(usize::MAX);
    match &pair.client_progress {
        Err(TlsFailure::Certificate(fault, reason)) => {
            assert_eq!(*fault, CertificateFault::WrongName);
            assert!(reason.contains("dns.example"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert!(
        matches!(&pair.server_progress, Err(TlsFailure::Alert(_))),
        "the alert was sent"
    );
}

#[test]
fn certificate_of_an_unknown_authority_is_refused() {
    let options = trusting(&certificates_of("Authority B").authority);
    let mut pair = Pair::new(&options, "dns.example", &certificates());
    pair.exchange(usize::MAX);
    let failure = pair.client_progress.unwrap_err();
    assert!(
        matches!(
            failure,
            TlsFailure::Certificate(CertificateFault::UnknownIssuer, _)
        ),
        "{failure}"
    );
    let alert = TlsFailure::Alert("unknown_ca".to_owned());
    assert_eq!(pair.server_progress, Err(alert));
}

#[test]
fn validity_is_judged_by_the_time_provider() {
    let certificates = certificates();
    for (now, expected, words) in [
        (1_000, CertificateFault::NotYetValid, "not valid yet"),
        (
            u64::from(u32::MAX) * 16,
            CertificateFault::Expired,
            "expired",
        ),
    ] {
        let options = ClientTlsOptions {
            time_provider: Some(Arc::new(FixedTime(now))),
            ..trusting(&certificates.authority)
        };
        let mut pair = Pair::new(&options, "dns.example", &certificates);
        pair.exchange(usize::MAX);
        match &pair.client_progress {
            Err(TlsFailure::Certificate(fault, reason)) => {
                assert_eq!(*fault, expected);
                assert!(reason.contains(words), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn unverified_client_takes_any_certificate() {
    for versions in [TlsVersions::Tls12, TlsVersions::Tls13] {
        let options = ClientTlsOptions {
            verify: false,
            versions,
            ..ClientTlsOptions::default()
        };
        let mut pair = Pair::new(&options, "other.example", &certificates());
        pair.exchange(usize::MAX);
        assert!(pair.is_established(), "{:?}", pair.client_progress);
    }
}

#[test]
fn octets_may_be_cut_anywhere() {
    for chunk_octets in [1, 2, 3, 5, 7, 100, 1_000] {
        let certificates = certificates();
        let mut pair = Pair::new(
            &trusting(&certificates.authority),
            "dns.example",
            &certificates,
        );
        pair.client.write(b"written before the handshake");
        pair.exchange(chunk_octets);
        assert!(pair.is_established());
        pair.server.write(b"back");
        pair.exchange(chunk_octets);
        assert_eq!(pair.server_received, b"written before the handshake");
        assert_eq!(pair.client_received, b"back");
    }
}

#[test]
fn records_may_be_cut_at_every_boundary() {
    let mut pair = established(&ClientTlsOptions::default());
    let mut cuts = 0;
    loop {
        let mut record = Vec::new();
        pair.client.write(b"x");
        pair.client.poll_transmit(&mut record);
        if cuts == record.len() {
            break;
        }
        let (head, tail) = record.split_at(cuts);
        pair.server
            .handle_bytes(head, &mut pair.server_received)
            .unwrap();
        assert_eq!(
            pair.server_received.len(),
            cuts,
            "nothing from a part of a record"
        );
        pair.server
            .handle_bytes(tail, &mut pair.server_received)
            .unwrap();
        cuts += 1;
    }
    assert!(cuts > 20);
    assert_eq!(pair.server_received, vec![b'x'; cuts]);
}

#[test]
fn a_megabyte_each_way_arrives_whole() {
    for versions in [TlsVersions::Tls12, TlsVersions::Tls13] {
        let mut pair = established(&ClientTlsOptions {
            versions,
            ..ClientTlsOptions::default()
        });
        let sent: Vec<u8> = (0..1_000_000_u32)
            .map(|index| (index % 251) as u8)
            .collect();
        pair.client.write(&sent);
        pair.server.write(&sent);
        pair.exchange(usize::MAX);
        assert!(
            pair.server_received == sent,
            "{} octets",
            pair.server_received.len()
        );
        assert!(
            pair.client_received == sent,
            "{} octets",
            pair.client_received.len()
        );
    }
}

#[test]
fn close_notify_is_seen_with_what_was_written_before_it() {
    let mut pair = established(&ClientTlsOptions::default());
    pair.server.write(b"last words");
    pair.server.close();
    pair.server.write(b"too late");
    pair.exchange(usize::MAX);
    assert_eq!(pair.client_progress, Ok(PeerState { peer_closed: true }));
    assert_eq!(pair.client_received, b"last words");
    let again = pair
        .client
        .handle_bytes(b"junk after the end", &mut pair.client_received);
    assert_eq!(again, Ok(PeerState { peer_closed: true }));
    pair.client.write(b"half-open");
    pair.exchange(usize::MAX);
    assert_eq!(pair.server_received, b"half-open");
}

#[test]
fn garbage_instead_of_a_handshake_is_a_protocol_failure_with_an_alert() {
    let certificates = certificates();
    let options = trusting(&certificates.authority);
    for garbage in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        &[0; 100],
        &[0x16, 3, 3, 255, 255],
    ] {
        let mut pair = Pair::new(&options, "dns.example", &certificates);
        let mut transmit = Vec::new();
        pair.client.poll_transmit(&mut transmit);
        transmit.clear();
        let failure = pair
            .client
            .handle_bytes(garbage, &mut pair.client_received)
            .unwrap_err();
        assert!(matches!(failure, TlsFailure::Protocol(_)), "{failure}");
        pair.client.poll_transmit(&mut transmit);
        assert_eq!(
            transmit.first(),
            Some(&21),
            "an alert record for {garbage:?}"
        );
        let again = pair.client.handle_bytes(b"more", &mut pair.client_received);
        assert_eq!(again, Err(failure), "the failure lasts");
    }
}

#[test]
fn forged_record_ends_an_established_session_but_keeps_what_came_before() {
    let mut pair = established(&ClientTlsOptions::default());
    let mut records = Vec::new();
    pair.server.write(b"genuine");
    pair.server.poll_transmit(&mut records);
    records.extend_from_slice(&[23, 3, 3, 0, 20]);
    records.extend_from_slice(&[7; 20]);
    let failure = pair
        .client
        .handle_bytes(&records, &mut pair.client_received)
        .unwrap_err();
    assert!(matches!(failure, TlsFailure::Protocol(_)), "{failure}");
    assert_eq!(pair.client_received, b"genuine");
    pair.client.write(b"into the void");
    pair.exchange(usize::MAX);
    assert_eq!(
        pair.server_progress,
        Err(TlsFailure::Alert("bad_record_mac".to_owned()))
    );
}

#[test]
fn fatal_alert_of_the_peer_is_named() {
    let certificates = certificates();
    let options = trusting(&certificates.authority);
    let mut pair = Pair::new(&options, "dns.example", &certificates);
    // A fatal handshake_failure (RFC 8446, section 6) in a record without encryption.
    let progress = pair
        .client
        .handle_bytes(&[21, 3, 3, 0, 2, 2, 40], &mut pair.client_received);
    assert_eq!(
        progress,
        Err(TlsFailure::Alert("handshake_failure".to_owned()))
    );
}

#[test]
fn alpn_is_offered_only_if_asked_for() {
    let offers_dot = |alpn: Vec<Vec<u8>>| {
        let options = ClientTlsOptions {
            alpn,
            ..ClientTlsOptions::default()
        };
        let name = ServerName::try_from("dns.example").unwrap();
        let mut client = ClientTls::new(client_config(&options).unwrap(), name).unwrap();
        let mut hello = Vec::new();
        client.poll_transmit(&mut hello);
        hello.windows(4).any(|octets| octets == b"\x03dot")
    };
    assert!(offers_dot(vec![b"dot".to_vec()]));
    assert!(!offers_dot(Vec::new()));
}

#[test]
fn malformed_files_are_refused_with_a_reason() {
    let Certificates {
        authority,
        chain,
        key,
    } = certificates();
    for pem in [&b""[..], &b"no PEM"[..], &key[..], &authority[..60]] {
        let error = client_config(&trusting(pem)).unwrap_err();
        assert_eq!(error.setting, TlsSetting::Roots, "{error}");
        assert!(server_config(pem, &key).is_err());
    }
    let without_key = server_config(&chain, &chain).unwrap_err();
    assert_eq!(without_key.setting, TlsSetting::Key, "{without_key}");
    let other_key = certificates().key;
    let differing = server_config(&chain, &other_key).unwrap_err();
    assert!(
        differing
            .to_string()
            .contains("not that of the certificate"),
        "{differing}"
    );
    assert!(server_config(&chain, &key).is_ok());
}

/// Bytes of heap and value of a client that has been answered and is now idle.
fn idle_bytes(mut pair: Pair) -> i64 {
    pair.client.write(&[1; 100]);
    pair.exchange(usize::MAX);
    for _ in 0..50 {
        pair.server.write(&[2; 200]);
    }
    pair.exchange(usize::MAX);
    assert_eq!(pair.client_received.len(), 10_000);
    let client = pair.client;
    let freed = allocation_counter::measure(move || drop(client));
    size_of::<ClientTls>() as i64 - freed.bytes_current
}

/// The keys that are ready for work are the thread's; see `record_layer/contexts.rs`.
#[test]
fn idle_client_holds_at_most_700_bytes_and_2_kb_with_a_ticket() {
    for versions in [TlsVersions::Tls12, TlsVersions::Tls13] {
        for (resumption, bytes_max) in [(false, 700), (true, 2_000)] {
            let certificates = certificates();
            let options = ClientTlsOptions {
                versions,
                resumption,
                ..trusting(&certificates.authority)
            };
            // The group's configuration outlives the client and is not part of its cost.
            let config = client_config(&options).unwrap();
            let server = server_config(&certificates.chain, &certificates.key).unwrap();
            let memory = ClientSession::default();
            let client = ClientTls::remembering(config.clone(), name(), memory, true).unwrap();
            let bytes = idle_bytes(Pair::of(client, server));
            println!("{versions:?}, resumption {resumption}: {bytes} bytes");
            assert!(bytes <= bytes_max, "{versions:?}: {bytes}");
            drop(config);
        }
    }
}
