//! RFC 8446: resumption, early data, HelloRetryRequest; what TLS 1.2 has of them (RFC 5077).

use super::*;

/// One server, and clients that remember.
struct Reunions {
    client: Arc<rustls::ClientConfig>,
    server: Arc<rustls::ServerConfig>,
}

impl Reunions {
    fn new(options: &ClientTlsOptions, server: &ServerTlsOptions) -> Reunions {
        let certificates = certificates();
        let options = ClientTlsOptions {
            resumption: true,
            roots: Roots::Pem(certificates.authority.clone()),
            time_provider: Some(Arc::new(FixedTime(1_780_000_000))),
            ..options.clone()
        };
        let server = ServerTlsOptions {
            time_provider: Some(Arc::new(FixedTime(1_780_000_000))),
            ..server.clone()
        };
        let Certificates { chain, key, .. } = &certificates;
        Reunions {
            client: client_config(&options).unwrap(),
            server: server_config_with(chain, key, &server).unwrap(),
        }
    }

    /// A connection of the client with this memory; nothing has been exchanged.
    fn meet(&self, memory: &mut ClientSession, resume: bool) -> Pair {
        let memory = std::mem::take(memory);
        let client = ClientTls::remembering(self.client.clone(), name(), memory, resume).unwrap();
        Pair::of(client, self.server.clone())
    }

    /// A connection of one exchange that ends; says how its handshake was.
    fn visit(&self, memory: &mut ClientSession, resume: bool) -> Handshake {
        let mut pair = self.meet(memory, resume);
        pair.client.write(b"query");
        pair.exchange(usize::MAX);
        assert!(pair.is_established(), "{:?}", pair.client_progress);
        assert_eq!(pair.server_received, b"query");
        let kind = pair.client.handshake().unwrap().kind;
        let server_kind = pair.server.handshake_kind().unwrap();
        assert_eq!(server_kind, kind, "both sides say the same");
        *memory = pair.client.take_memory();
        pair.client.handshake().unwrap()
    }
}

/// Octets of early data that servers accept here.
const EARLY_OCTETS: u32 = 1_000;

fn with_early_data() -> Reunions {
    with_early_octets(EARLY_OCTETS)
}

fn with_early_octets(early_data_octets_max: u32) -> Reunions {
    let options = ClientTlsOptions {
        early_data: true,
        ..ClientTlsOptions::default()
    };
    let server = ServerTlsOptions {
        tickets: Tickets::Stored {
            count: 2,
            sessions_max: 1_000,
        },
        early_data_octets_max,
        ..ServerTlsOptions::default()
    };
    Reunions::new(&options, &server)
}

fn all_tickets() -> [Tickets; 2] {
    let stored = Tickets::Stored {
        count: 2,
        sessions_max: 1_000,
    };
    [Tickets::Stateless { count: 2 }, stored]
}

#[test]
fn section_2_2_second_handshake_resumes_the_first_session_and_is_shorter() {
    for versions in [TlsVersions::Tls12, TlsVersions::Tls13] {
        for tickets in all_tickets() {
            let options = ClientTlsOptions {
                versions,
                ..ClientTlsOptions::default()
            };
            let server = ServerTlsOptions {
                tickets,
                ..ServerTlsOptions::default()
            };
            let reunions = Reunions::new(&options, &server);
            let mut memory = ClientSession::default();
            assert!(!memory.has_ticket());
            let full = reunions.visit(&mut memory, true);
            assert_eq!(full.kind, HandshakeKind::Full);
            for _ in 0..3 {
                assert!(memory.has_ticket(), "{versions:?} {tickets:?}");
                let resumed = reunions.visit(&mut memory, true);
                assert_eq!(resumed.kind, HandshakeKind::Resumed);
                assert!(resumed.octets_received < full.octets_received / 2);
            }
        }
    }
}

#[test]
fn section_2_2_two_clients_never_share_a_ticket() {
    for versions in [TlsVersions::Tls12, TlsVersions::Tls13] {
        let options = ClientTlsOptions {
            versions,
            ..ClientTlsOptions::default()
        };
        let reunions = Reunions::new(&options, &ServerTlsOptions::default());
        let (mut first, mut second) = (ClientSession::default(), ClientSession::default());
        assert_eq!(reunions.visit(&mut first, true).kind, HandshakeKind::Full);
        // Another client of the same configuration knows nothing of it.
        assert_eq!(reunions.visit(&mut second, true).kind, HandshakeKind::Full);

        // Open at the same time and taking turns, each goes on with its own.
        let mut one = reunions.meet(&mut first, true);
        let mut other = reunions.meet(&mut second, true);
        one.exchange(usize::MAX);
        other.exchange(usize::MAX);
        for pair in [&one, &other] {
            let handshake = pair.client.handshake().unwrap();
            assert_eq!(handshake.kind, HandshakeKind::Resumed);
        }
        let mut third = ClientSession::default();
        assert_eq!(reunions.visit(&mut third, true).kind, HandshakeKind::Full);
    }
}

#[test]
fn client_that_is_not_to_resume_makes_a_full_handshake_and_keeps_its_ticket() {
    for versions in [TlsVersions::Tls12, TlsVersions::Tls13] {
        let options = ClientTlsOptions {
            versions,
            ..ClientTlsOptions::default()
        };
        let reunions = Reunions::new(&options, &ServerTlsOptions::default());
        let mut memory = ClientSession::default();
        let kinds = [true, false, true].map(|resume| reunions.visit(&mut memory, resume).kind);
        let (full, resumed) = (HandshakeKind::Full, HandshakeKind::Resumed);
        assert_eq!(kinds, [full, full, resumed]);
    }
}

#[test]
fn without_resumption_every_handshake_is_a_full_one() {
    for versions in [TlsVersions::Tls12, TlsVersions::Tls13] {
        for _ in 0..2 {
            let options = ClientTlsOptions {
                versions,
                ..ClientTlsOptions::default()
            };
            let mut pair = established(&options);
            let kind = pair.client.handshake().unwrap().kind;
            assert_eq!(kind, HandshakeKind::Full);
            assert!(!pair.client.take_memory().has_ticket());
        }
    }
}

#[test]
fn server_without_tickets_makes_full_handshakes_only() {
    for versions in [TlsVersions::Tls12, TlsVersions::Tls13] {
        let options = ClientTlsOptions {
            versions,
            ..ClientTlsOptions::default()
        };
        let server = ServerTlsOptions {
            tickets: Tickets::None,
            ..ServerTlsOptions::default()
        };
        let reunions = Reunions::new(&options, &server);
        let mut memory = ClientSession::default();
        for _ in 0..2 {
            assert_eq!(reunions.visit(&mut memory, true).kind, HandshakeKind::Full);
            assert!(!memory.has_ticket());
        }
    }
}

#[test]
fn appendix_c_4_a_ticket_of_tls13_is_used_once() {
    let reunions = Reunions::new(&ClientTlsOptions::default(), &ServerTlsOptions::default());
    let mut memory = ClientSession::default();
    reunions.visit(&mut memory, true);
    // Fails before it brings a new ticket.
    let mut pair = reunions.meet(&mut memory, true);
    memory = pair.client.take_memory();
    assert!(!memory.has_ticket());
    assert_eq!(reunions.visit(&mut memory, true).kind, HandshakeKind::Full);
}

#[test]
fn section_4_1_4_hello_retry_request_is_told_from_a_full_handshake() {
    let server = ServerTlsOptions {
        groups: vec![Group::Secp384r1],
        ..ServerTlsOptions::default()
    };
    let reunions = Reunions::new(&ClientTlsOptions::default(), &server);
    let mut memory = ClientSession::default();
    let first = reunions.visit(&mut memory, true);
    assert_eq!(first.kind, HandshakeKind::FullWithHelloRetryRequest);
    // A client that resumes knows which group its server takes; one that does not, does not.
    assert_eq!(
        reunions.visit(&mut memory, true).kind,
        HandshakeKind::Resumed
    );
    let again = reunions.visit(&mut memory, false);
    assert_eq!(again.kind, HandshakeKind::FullWithHelloRetryRequest);
}

#[test]
fn octets_of_the_handshake_are_all_that_passed_until_its_end() {
    for versions in [TlsVersions::Tls12, TlsVersions::Tls13] {
        for chunk_octets in [1, 100, usize::MAX] {
            let options = ClientTlsOptions {
                versions,
                ..ClientTlsOptions::default()
            };
            let certificates = certificates();
            let server = ServerTlsOptions {
                // Without tickets a server of TLS 1.3 sends nothing after its Finished.
                tickets: Tickets::None,
                ..ServerTlsOptions::default()
            };
            let roots = Roots::Pem(certificates.authority.clone());
            let options = ClientTlsOptions { roots, ..options };
            let mut pair = Pair::with(&options, &server, &certificates);
            let (mut sent, mut received) = (0, 0);
            loop {
                let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
                pair.client.poll_transmit(&mut to_server);
                for chunk in to_server.chunks(chunk_octets) {
                    pair.server.handle_bytes(chunk, &mut Vec::new()).unwrap();
                }
                pair.server.poll_transmit(&mut to_client);
                for chunk in to_client.chunks(chunk_octets) {
                    pair.client.handle_bytes(chunk, &mut Vec::new()).unwrap();
                }
                sent += to_server.len();
                received += to_client.len();
                if to_server.is_empty() && to_client.is_empty() {
                    break;
                }
            }
            let handshake = pair.client.handshake().unwrap();
            assert_eq!(handshake.octets_sent as usize, sent, "{versions:?}");
            assert_eq!(handshake.octets_received as usize, received, "{versions:?}");
        }
    }
}

#[test]
fn octets_of_the_handshake_leave_out_queries_early_data_and_tickets() {
    let reunions = with_early_data();
    let mut memory = ClientSession::default();
    let plain = reunions.visit(&mut memory, true);
    let tickets_and_query = Reunions::new(
        &ClientTlsOptions::default(),
        &ServerTlsOptions {
            tickets: Tickets::None,
            ..ServerTlsOptions::default()
        },
    );
    let bare = tickets_and_query.visit(&mut ClientSession::default(), false);
    assert_eq!(bare.octets_sent, plain.octets_sent);
    assert!(
        bare.octets_received.abs_diff(plain.octets_received) < 10,
        "signatures vary"
    );

    let sent = |octets: usize, memory: &mut ClientSession| {
        let mut pair = reunions.meet(memory, true);
        pair.client.write(&vec![7; octets]);
        pair.exchange(usize::MAX);
        assert_eq!(pair.server_received.len(), octets);
        let handshake = pair.client.handshake().unwrap();
        assert_eq!(handshake.early_data, EarlyData::Accepted);
        *memory = pair.client.take_memory();
        handshake.octets_sent
    };
    assert_eq!(sent(1, &mut memory), sent(300, &mut memory));
}

#[test]
fn section_2_3_early_data_goes_with_the_first_flight_and_is_read_before_the_handshake_ends() {
    let reunions = with_early_data();
    let mut memory = ClientSession::default();
    assert_eq!(
        reunions.visit(&mut memory, true).early_data,
        EarlyData::NotSent
    );

    let mut pair = reunions.meet(&mut memory, true);
    assert!(pair.client.can_write_early(200));
    pair.client.write(b"early query");
    assert_eq!(pair.client.early_data(), EarlyData::Pending);
    assert_eq!(pair.client.early_octets(), 11);
    let mut first_flight = Vec::new();
    pair.client.poll_transmit(&mut first_flight);
    let received = &mut pair.server_received;
    pair.server.handle_bytes(&first_flight, received).unwrap();
    assert_eq!(pair.server_received, b"early query");
    assert!(pair.server.is_handshaking() && pair.server.has_early_data());

    // The response need not wait for the client's Finished either.
    pair.server.write(b"response");
    let mut flight = Vec::new();
    pair.server.poll_transmit(&mut flight);
    let received = &mut pair.client_received;
    pair.client.handle_bytes(&flight, received).unwrap();
    assert_eq!(pair.client_received, b"response");
    pair.client.write(b", late query");
    pair.exchange(usize::MAX);
    assert!(pair.is_established());
    assert_eq!(pair.server_received, b"early query, late query");
    let handshake = pair.client.handshake().unwrap();
    assert_eq!(handshake.kind, HandshakeKind::Resumed);
    assert_eq!(handshake.early_data, EarlyData::Accepted);
}

/// Writes of many sizes, before and after the handshake; what the server reads of them.
fn write_and_read(pair: &mut Pair, writes: &[usize], chunk_octets: usize) -> EarlyData {
    let mut written = Vec::new();
    let mut write = |pair: &mut Pair, index: usize| {
        let octets = vec![index as u8; writes[index]];
        pair.client.write(&octets);
        written.extend_from_slice(&octets);
    };
    for index in 0..writes.len() - 1 {
        write(pair, index);
        if index == writes.len() / 2 {
            let mut flight = Vec::new();
            pair.client.poll_transmit(&mut flight);
            for chunk in flight.chunks(chunk_octets) {
                let received = &mut pair.server_received;
                pair.server.handle_bytes(chunk, received).unwrap();
            }
        }
    }
    pair.exchange(chunk_octets);
    assert!(
        pair.is_established(),
        "{:?} {:?}",
        pair.client_progress,
        pair.server_progress
    );
    write(pair, writes.len() - 1);
    pair.exchange(chunk_octets);
    assert!(
        pair.server_received == written,
        "nothing lost, nothing twice, in order"
    );
    pair.client.handshake().unwrap().early_data
}

fn check_early_data(refuse: bool, writes: &[usize], chunk_octets: usize) -> EarlyData {
    // A server of rustls counts what it skips once for each read until the next record that it
    // understands.
    let reunions = with_early_octets(if refuse { 1 << 20 } else { EARLY_OCTETS });
    let mut memory = ClientSession::default();
    reunions.visit(&mut memory, true);
    let mut pair = reunions.meet(&mut memory, true);
    if refuse {
        pair.server.refuse_early_data();
    }
    let early_data = write_and_read(&mut pair, writes, chunk_octets);
    assert_eq!(pair.client.early_octets(), 0);
    let kind = pair.client.handshake().unwrap().kind;
    assert_eq!(kind, HandshakeKind::Resumed);
    early_data
}

#[test]
fn section_4_2_10_nothing_is_lost_or_doubled_whether_early_data_is_accepted_or_rejected() {
    for chunk_octets in [1, 57, usize::MAX] {
        for (writes, accepted) in [
            (&[10, 20, 30][..], EarlyData::Accepted),
            (&[100, 100, 100, 100, 1], EarlyData::Accepted),
            (&[0, 700, 700, 1, 1], EarlyData::Accepted),
            (&[1_001, 5, 5], EarlyData::NotSent),
        ] {
            assert_eq!(check_early_data(false, writes, chunk_octets), accepted);
            let refused = check_early_data(true, writes, chunk_octets);
            assert_eq!(refused, EarlyData::Rejected);
        }
    }
}

#[test]
fn section_4_2_10_early_data_survives_a_server_that_has_forgotten_the_session() {
    let reunions = with_early_data();
    let mut memory = ClientSession::default();
    reunions.visit(&mut memory, true);
    // The same server after it was started again: another store, the same certificate.
    let mut server = (*reunions.server).clone();
    server.session_storage = rustls::server::ServerSessionMemoryCache::new(100);
    let restarted = Reunions {
        client: reunions.client.clone(),
        server: Arc::new(server),
    };
    let mut pair = restarted.meet(&mut memory, true);
    let early = write_and_read(&mut pair, &[50, 50, 50], usize::MAX);
    assert_eq!(early, EarlyData::Rejected);
    assert_eq!(pair.client.handshake().unwrap().kind, HandshakeKind::Full);
}

#[test]
fn section_4_2_10_early_data_is_sent_again_after_a_hello_retry_request() {
    let reunions = with_early_data();
    let mut memory = ClientSession::default();
    reunions.visit(&mut memory, true);
    let certificates = certificates();
    let other = ServerTlsOptions {
        groups: vec![Group::Secp384r1],
        ..ServerTlsOptions::default()
    };
    let mut server =
        (*server_config_with(&certificates.chain, &certificates.key, &other).unwrap()).clone();
    server.cert_resolver = reunions.server.cert_resolver.clone();
    let moved = Reunions {
        client: reunions.client.clone(),
        server: Arc::new(server),
    };
    let mut pair = moved.meet(&mut memory, true);
    let early = write_and_read(&mut pair, &[50, 50, 50], usize::MAX);
    assert_eq!(early, EarlyData::Rejected);
    let kind = pair.client.handshake().unwrap().kind;
    assert_eq!(kind, HandshakeKind::FullWithHelloRetryRequest);
}

#[test]
fn section_8_1_a_replayed_first_flight_is_not_taken_again() {
    let reunions = with_early_data();
    let mut memory = ClientSession::default();
    reunions.visit(&mut memory, true);
    let mut pair = reunions.meet(&mut memory, true);
    pair.client.write(b"once");
    let mut flight = Vec::new();
    pair.client.poll_transmit(&mut flight);
    let received: Vec<_> = (0..2)
        .map(|_| {
            let mut server = ServerTls::new(reunions.server.clone()).unwrap();
            let mut plaintext = Vec::new();
            server.handle_bytes(&flight, &mut plaintext).unwrap();
            plaintext
        })
        .collect();
    assert_eq!(received, [b"once".to_vec(), Vec::new()]);
}

#[test]
fn early_data_needs_a_server_that_stores_its_sessions() {
    let certificates = certificates();
    let options = ServerTlsOptions {
        early_data_octets_max: 1,
        ..ServerTlsOptions::default()
    };
    let refused = server_config_with(&certificates.chain, &certificates.key, &options);
    assert_eq!(refused.unwrap_err().setting, TlsSetting::EarlyData);
}

#[test]
fn client_without_early_data_in_its_configuration_sends_none() {
    let server = ServerTlsOptions {
        tickets: Tickets::Stored {
            count: 1,
            sessions_max: 10,
        },
        early_data_octets_max: 1_000,
        ..ServerTlsOptions::default()
    };
    let reunions = Reunions::new(&ClientTlsOptions::default(), &server);
    let mut memory = ClientSession::default();
    reunions.visit(&mut memory, true);
    let mut pair = reunions.meet(&mut memory, true);
    assert!(!pair.client.can_write_early(1));
    pair.client.write(b"not early");
    assert_eq!(pair.client.early_data(), EarlyData::NotSent);
    pair.exchange(usize::MAX);
    assert_eq!(pair.server_received, b"not early");
}
