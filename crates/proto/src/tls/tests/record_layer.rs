//! Our own record layer beside rustls': with each other, and each against the same octets.

use super::*;
use proptest::prelude::*;
use std::sync::LazyLock;

mod messages;

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

/// Who does the records: (client, server), true for rustls.
const MIXTURES: [(bool, bool); 4] = [(false, true), (true, false), (false, false), (true, true)];

static CERTIFICATES: LazyLock<Certificates> = LazyLock::new(certificates);

/// All there are but RSA's, which differ in the handshake only.
fn suites() -> Vec<CipherSuite> {
    let suites = CipherSuite::all().into_iter();
    suites
        .filter(|suite| !suite.name().contains("_RSA_"))
        .collect()
}

fn suite_of(versions: TlsVersions) -> CipherSuite {
    let is_tls13 = versions == TlsVersions::Tls13;
    let mut suites = suites().into_iter();
    suites.find(|suite| suite.is_tls13() == is_tls13).unwrap()
}

/// Both sides with the handshake behind them, and what came after it.
fn pair((client_stock, server_stock): (bool, bool), suite: CipherSuite) -> Pair {
    let options = ClientTlsOptions {
        cipher_suites: vec![suite],
        stock_records: client_stock,
        ..trusting(&CERTIFICATES.authority)
    };
    let server = ServerTlsOptions {
        stock_records: server_stock,
        ..ServerTlsOptions::default()
    };
    let mut pair = Pair::with(&options, &server, &CERTIFICATES);
    pair.exchange(usize::MAX);
    assert!(pair.is_established(), "{:?}", pair.client_progress);
    assert_eq!(pair.client.own_records().is_none(), client_stock);
    assert_eq!(pair.server.own_records().is_none(), server_stock);
    let negotiated = pair.client.negotiated().unwrap();
    assert_eq!(negotiated.cipher_suite, suite.name());
    assert_eq!(pair.server.negotiated(), Some(negotiated));
    pair
}

/// Lets one side request new keys, with either record layer.
fn update_keys(pair: &mut Pair, by_client: bool) {
    match by_client {
        true => {
            if let Some(rustls) = pair.client.rustls() {
                rustls.refresh_traffic_keys().unwrap();
            } else {
                pair.client.own_records().unwrap().request_key_update();
            }
        }
        false => {
            if let Some(rustls) = pair.server.rustls() {
                rustls.refresh_traffic_keys().unwrap();
            } else {
                pair.server.own_records().unwrap().request_key_update();
            }
        }
    }
}

/// What happens in a session.
#[derive(Clone, Debug)]
enum Event {
    Write {
        by_client: bool,
        octets: usize,
    },
    UpdateKeys {
        by_client: bool,
    },
    /// Delivers all waiting data, in pieces of at most this number of octets.
    Exchange(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let octets = prop_oneof![0..300_usize, 16_000..40_000_usize];
    let event = prop_oneof![
        8 => (any::<bool>(), octets).prop_map(|(by_client, octets)| Event::Write {
            by_client,
            octets,
        }),
        1 => any::<bool>().prop_map(|by_client| Event::UpdateKeys { by_client }),
        3 => prop_oneof![1..40_usize, 1_000..20_000_usize].prop_map(Event::Exchange),
    ];
    prop::collection::vec(event, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_one_side_writes_is_what_the_other_reads_whoever_does_the_records(
        events in events(),
        suite in prop::sample::select(suites()),
    ) {
        for mixture in MIXTURES {
            let mut pair = pair(mixture, suite);
            let (mut up, mut down) = (Vec::new(), Vec::new());
            for (at, event) in events.iter().enumerate() {
                match *event {
                    Event::Write { by_client, octets } => {
                        let message: Vec<u8> =
                            (0..octets).map(|octet| (octet + at) as u8).collect();
                        match by_client {
                            true => pair.client.write(&message),
                            false => pair.server.write(&message),
                        }
                        let written = if by_client { &mut up } else { &mut down };
                        written.extend_from_slice(&message);
                    }
                    Event::UpdateKeys { by_client } if suite.is_tls13() => {
                        update_keys(&mut pair, by_client);
                    }
                    Event::UpdateKeys { .. } => {}
                    Event::Exchange(chunk_octets) => pair.exchange(chunk_octets),
                }
            }
            pair.client.close();
            pair.exchange(usize::MAX);
            prop_assert!(pair.server_received == up, "{mixture:?}");
            prop_assert!(pair.client_received == down, "{mixture:?}");
            prop_assert_eq!(&pair.client_progress, &Ok(PeerState { peer_closed: false }));
            prop_assert_eq!(&pair.server_progress, &Ok(PeerState { peer_closed: true }));
        }
    }
}

/// Sends a client these records, sealed or as they are; returns the client's state or failure, its
/// plaintext, and the server's state or failure.
fn outcome(
    client_stock: bool,
    suite: CipherSuite,
    records: &[(bool, u8, Vec<u8>)],
    chunk_octets: usize,
) -> (
    Result<PeerState, TlsFailure>,
    Vec<u8>,
    Result<PeerState, TlsFailure>,
) {
    let mut pair = pair((client_stock, false), suite);
    for (is_sealed, kind, content) in records {
        if *is_sealed {
            pair.server
                .own_records()
                .unwrap()
                .send_record(*kind, content);
        } else {
            let mut wire = Vec::new();
            pair.server.poll_transmit(&mut wire);
            wire.extend_from_slice(&[*kind, 3, 3]);
            wire.extend_from_slice(&(content.len() as u16).to_be_bytes());
            wire.extend_from_slice(content);
            for chunk in wire.chunks(chunk_octets) {
                pair.client_progress = pair.client.handle_bytes(chunk, &mut pair.client_received);
            }
        }
    }
    pair.exchange(chunk_octets);
    // Nothing is said any more if the session has failed.
    pair.client.write(b"after it");
    pair.exchange(chunk_octets);
    (
        pair.client_progress,
        pair.client_received,
        pair.server_progress,
    )
}

fn check_alike(suite: CipherSuite, records: &[(bool, u8, Vec<u8>)], chunk_octets: usize) {
    let own = outcome(false, suite, records, chunk_octets);
    let stock = outcome(true, suite, records, chunk_octets);
    let is_failure = stock.0.is_err();
    assert_eq!(named(own.0), named(stock.0), "{suite}: {records:?}");
    assert!(own.1 == stock.1, "{suite}: {records:?}");
    // Where rustls fails without an alert, ours sends one.
    if stock.2.is_err() || !is_failure {
        assert_eq!(own.2.is_err(), stock.2.is_err(), "{suite}: {records:?}");
    }
    if !is_failure {
        assert_eq!(own.2, stock.2, "{suite}: {records:?}");
    }
}

/// Without what cannot be read in a message that is not to come: rustls may see that first.
fn named(progress: Result<PeerState, TlsFailure>) -> Result<PeerState, TlsFailure> {
    let odd = ["received corrupt message", "received unexpected"];
    progress.map_err(|failure| match failure {
        TlsFailure::Protocol(text) if odd.iter().any(|odd| text.starts_with(odd)) => {
            TlsFailure::Protocol("a message that is not to come".to_owned())
        }
        other => other,
    })
}

/// Records that a server should not send, or not so.
fn odd_records() -> Vec<Vec<(bool, u8, Vec<u8>)>> {
    let sealed = |kind: u8, content: &[u8]| (true, kind, content.to_vec());
    let plain = |kind: u8, content: &[u8]| (false, kind, content.to_vec());
    let data = sealed(APPLICATION_DATA, b"data");
    let mut odd = vec![
        vec![sealed(APPLICATION_DATA, &[0; 16_384]), data.clone()],
        vec![sealed(APPLICATION_DATA, &[1; 16_385])],
        vec![sealed(APPLICATION_DATA, &[1; 17_000])],
        vec![sealed(APPLICATION_DATA, &[1; 18_500])],
        vec![sealed(APPLICATION_DATA, b""); 33],
        vec![sealed(APPLICATION_DATA, b""); 32],
        vec![sealed(HANDSHAKE, b""), data.clone()],
        vec![sealed(ALERT, b"")],
        vec![sealed(ALERT, &[2])],
        vec![sealed(ALERT, &[2, 40, 0])],
        vec![sealed(ALERT, &[3, 40])],
        vec![sealed(ALERT, &[2, 0]), data.clone()],
        vec![data.clone(), sealed(ALERT, &[1, 0]), data.clone()],
        vec![sealed(ALERT, &[1, 90]), data.clone()],
        vec![sealed(ALERT, &[1, 90]); 5],
        vec![sealed(ALERT, &[1, 100]), data.clone()],
        vec![data.clone(), sealed(ALERT, &[2, 80])],
        // Handshake messages: key updates as they are and are not to be, in fragments, in between.
        vec![sealed(HANDSHAKE, &[24, 0, 0, 1, 2])],
        vec![sealed(HANDSHAKE, &[24, 0, 0, 0])],
        vec![sealed(HANDSHAKE, &[24, 0, 0, 2, 0, 0])],
        vec![sealed(HANDSHAKE, &[24, 0, 0, 1, 0, 24])],
        vec![sealed(HANDSHAKE, &[24, 0, 0]), data.clone()],
        vec![sealed(HANDSHAKE, &[24, 0, 0]), sealed(ALERT, &[1, 0])],
        vec![sealed(HANDSHAKE, &[20, 0, 0, 1, 0])],
        vec![sealed(HANDSHAKE, &[11, 1, 0, 0, 0])],
        vec![sealed(HANDSHAKE, &[0, 0, 0, 0]), data.clone()],
        vec![
            sealed(HANDSHAKE, &[0, 0, 0, 0]),
            sealed(HANDSHAKE, &[0, 0, 0, 0]),
        ],
        vec![sealed(20, &[1])],
        vec![sealed(24, &[1, 2, 3])],
        vec![sealed(99, b"unknown")],
        vec![sealed(0, b"")],
        vec![sealed(0, b"\0\0\0")],
        // Without protection.
        vec![plain(20, &[1])],
        vec![data.clone(), plain(20, &[1])],
        vec![data.clone(), plain(ALERT, &[2, 40])],
        vec![plain(
            APPLICATION_DATA,
            b"forged, and long enough for a tag",
        )],
        vec![plain(APPLICATION_DATA, b"")],
        vec![plain(APPLICATION_DATA, b"short")],
        vec![plain(HANDSHAKE, b"")],
        vec![plain(0x80, b"SSL")],
        vec![data.clone(), plain(b'H', b"TTP")],
    ];
    odd.push(vec![plain(APPLICATION_DATA, &[0; 18_432])]);
    odd.push(vec![plain(APPLICATION_DATA, &[0; 18_431])]);
    odd
}

#[test]
fn odd_records_lead_to_what_they_lead_to_with_rustls() {
    for versions in [TlsVersions::Tls12, TlsVersions::Tls13] {
        for records in odd_records() {
            for chunk_octets in [usize::MAX, 7] {
                check_alike(suite_of(versions), &records, chunk_octets);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_record_that_is_no_ticket_leads_to_what_it_leads_to_with_rustls(
        records in prop::collection::vec(
            (any::<bool>(), 21..25_u8, prop::collection::vec(0..60_u8, 0..8)),
            1..5,
        ),
        suite in prop::sample::select(suites()),
        chunk_octets in 1..60_usize,
    ) {
        // Ours passes tickets over unread: it does not say that one is malformed.
        let is_ticket = |content: &Vec<u8>| content.contains(&4);
        prop_assume!(!records.iter().any(|(_, kind, content)| *kind == 22 && is_ticket(content)));
        check_alike(suite, &records, chunk_octets);
    }
}

#[test]
fn changed_octet_anywhere_in_a_record_is_refused_as_rustls_refuses_it() {
    for suite in suites() {
        let mut record = Vec::new();
        let mut failures = Vec::new();
        for stock in [false, true] {
            let mut length = usize::MAX;
            let mut at = 0;
            while at < length {
                let mut pair = pair((stock, true), suite);
                record.clear();
                pair.server.write(b"message");
                pair.server.poll_transmit(&mut record);
                length = record.len();
                record[at] ^= 1;
                let progress = pair.client.handle_bytes(&record, &mut pair.client_received);
                failures.push((stock, at, progress, pair.client_received));
                at += 1;
            }
        }
        let (own, stock): (Vec<_>, Vec<_>) = failures.into_iter().partition(|one| !one.0);
        for (own, stock) in own.into_iter().zip(stock) {
            let is_refused = own.3.is_empty() && own.1 >= 5 && own.2.is_err();
            // Of the header, which has no part in the text, rustls protects less.
            let is_in_header = own.1 < 5 && (own.3.is_empty() || own.3 == stock.3);
            assert!(is_refused || is_in_header, "{suite}: byte {}", own.1);
            if is_refused {
                assert_eq!(own.2, stock.2, "{suite}: byte {}", own.1);
            }
        }
    }
}

#[test]
fn rfc_8446_section_4_6_3_requests_for_new_keys_are_answered_once_however_many_came() {
    for mixture in MIXTURES {
        let mut pair = pair(mixture, suite_of(TlsVersions::Tls13));
        for _ in 0..3 {
            update_keys(&mut pair, false);
            update_keys(&mut pair, true);
        }
        pair.server.write(b"down");
        pair.client.write(b"up");
        pair.exchange(usize::MAX);
        pair.client.write(b" again");
        pair.exchange(usize::MAX);
        assert_eq!(pair.client_received, b"down", "{mixture:?}");
        assert_eq!(pair.server_received, b"up again", "{mixture:?}");
    }
}

#[test]
fn peer_that_only_updates_keys_is_given_up_as_by_rustls() {
    let update = (true, HANDSHAKE, vec![24, 0, 0, 1, 0]);
    // The server goes on with the same key, so the second one cannot be opened.
    let records = vec![update; 2];
    check_alike(suite_of(TlsVersions::Tls13), &records, usize::MAX);
    for mixture in MIXTURES {
        let mut pair = pair(mixture, suite_of(TlsVersions::Tls13));
        for _ in 0..33 {
            update_keys(&mut pair, false);
        }
        pair.exchange(usize::MAX);
        let misbehaved = rustls::PeerMisbehaved::TooManyKeyUpdateRequests;
        let failure = TlsFailure::from(rustls::Error::from(misbehaved));
        assert_eq!(pair.client_progress, Err(failure), "{mixture:?}");
    }
}

#[test]
fn rfc_8446_section_5_5_key_is_changed_before_it_has_sealed_too_many_records() {
    for suite in suites() {
        let mut pair = pair((false, true), suite);
        pair.client.own_records().unwrap().limit_records(3);
        for _ in 0..10 {
            pair.client.write(b"x");
            pair.exchange(usize::MAX);
        }
        match suite.is_tls13() {
            true => assert_eq!(pair.server_received, b"xxxxxxxxxx"),
            false => {
                // The Finished was sealed with the same key. There is no other: it ends.
                assert_eq!(pair.server_received, b"xx", "{suite}");
                assert_eq!(pair.server_progress, Ok(PeerState { peer_closed: true }));
            }
        }
    }
}

/// A client that remembers, of a server that does its records by itself or not.
fn remembering(server: &ServerTlsOptions) -> Pair {
    let options = ClientTlsOptions {
        resumption: true,
        ..trusting(&CERTIFICATES.authority)
    };
    let config = client_config(&options).unwrap();
    let client = ClientTls::remembering(config, name(), ClientSession::default(), true).unwrap();
    let Certificates { chain, key, .. } = &*CERTIFICATES;
    Pair::of(client, server_config_with(chain, key, server).unwrap())
}

#[test]
fn client_that_remembers_hands_over_when_its_tickets_are_in() {
    let mut pair = remembering(&ServerTlsOptions {
        stock_records: true,
        ..ServerTlsOptions::default()
    });
    pair.client.write(b"query");
    pair.exchange(usize::MAX);
    assert!(pair.client.has_ticket() && pair.client.own_records().is_none());
    // New keys before the handover are followed, too.
    for by_client in [false, true, false] {
        update_keys(&mut pair, by_client);
        pair.exchange(usize::MAX);
    }
    pair.server.write(b"response");
    pair.exchange(usize::MAX);
    assert!(pair.client.own_records().is_some());
    update_keys(&mut pair, false);
    pair.server.write(b"s");
    pair.client.write(b"s");
    pair.exchange(1);
    assert_eq!(pair.client_received, b"responses");
    assert_eq!(pair.server_received, b"querys");
    assert!(pair.client.has_ticket());
}

#[test]
fn server_without_tickets_is_not_waited_for_forever() {
    let mut pair = remembering(&ServerTlsOptions {
        tickets: Tickets::None,
        ..ServerTlsOptions::default()
    });
    pair.exchange(usize::MAX);
    for round in 0..70 {
        assert_eq!(pair.client.own_records().is_some(), round >= 64, "{round}");
        pair.server.write(b"response");
        pair.exchange(usize::MAX);
    }
    assert_eq!(pair.client_received.len(), 70 * 8);
}

#[test]
fn session_that_is_closed_before_the_handover_stays_with_rustls() {
    let mut pair = remembering(&ServerTlsOptions::default());
    pair.exchange(usize::MAX);
    pair.client.close();
    pair.server.write(b"late");
    pair.exchange(usize::MAX);
    assert_eq!(pair.client_received, b"late");
    assert!(pair.client.own_records().is_none());
    assert_eq!(pair.server_progress, Ok(PeerState { peer_closed: true }));
}

#[test]
fn what_is_written_into_a_buffer_follows_what_waits() {
    for mixture in MIXTURES {
        let mut pair = pair(mixture, suite_of(TlsVersions::Tls13));
        let mut wire = Vec::new();
        pair.client.write(b"first, ");
        pair.client.write_into(b"second", &mut wire);
        pair.server
            .handle_bytes(&wire, &mut pair.server_received)
            .unwrap();
        assert_eq!(pair.server_received, b"first, second", "{mixture:?}");
        wire.clear();
        pair.server.write_into(&[7; 20_000], &mut wire);
        pair.server.close();
        pair.server.write_into(b"too late", &mut wire);
        let progress = pair
            .client
            .handle_bytes(&wire, &mut pair.client_received)
            .unwrap();
        assert!(progress.peer_closed && pair.client_received == [7; 20_000]);
    }
}

#[test]
fn messages_over_an_established_session_allocate_nothing() {
    for versions in [TlsVersions::Tls12, TlsVersions::Tls13] {
        let mut pair = pair((false, false), suite_of(versions));
        let (mut wire, mut plaintext) = (Vec::with_capacity(4_096), Vec::with_capacity(4_096));
        let mut round = |chunk_octets| {
            wire.clear();
            plaintext.clear();
            pair.client.write_into(&[7; 60], &mut wire);
            pair.client.write_into(&[8; 60], &mut wire);
            for chunk in wire.chunks(chunk_octets) {
                pair.server.handle_bytes(chunk, &mut plaintext).unwrap();
            }
            assert_eq!(plaintext.len(), 120);
        };
        // Room for a record that is cut off is made once a thread.
        round(50);
        let counted = allocation_counter::measure(|| {
            for chunk_octets in [usize::MAX, 1, 50, 90] {
                round(chunk_octets);
            }
        });
        assert_eq!(counted.count_total, 0, "{versions:?}");
    }
}
