//! Our client against quinn and h3 as servers, and the other way round, over loopback.

mod doq;
mod http3;

use super::*;
use std::collections::BTreeMap;
use tokio::net::UdpSocket;

/// Queries of each test.
const QUERIES: u32 = 3_000;

/// Queries that are open at once.
const AT_ONCE: u32 = 60;

fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let limit = Duration::from_secs(60);
    runtime.unwrap().block_on(async {
        let test = tokio::time::timeout(limit, test);
        test.await.expect("the test takes less than a minute");
    });
}

/// Instants for both sides of a test.
fn clock() -> (Clock, impl Fn() -> Instant) {
    #[allow(clippy::disallowed_methods, reason = "a test with real sockets")]
    let epoch = std::time::Instant::now();
    #[allow(clippy::disallowed_methods, reason = "a test with real sockets")]
    let now = move || Instant::ZERO + epoch.elapsed();
    (Clock::new(epoch), now)
}

/// Responses differ in length, from a datagram to many.
fn long_response_to(query: &[u8]) -> Vec<u8> {
    let mut response = response_to(query);
    // The last digit of the number in the name.
    let octets = match query.get(20).copied().unwrap_or_default() {
        b'3' => 2_000,
        b'7' => 20_000,
        _ => 16,
    };
    response.resize(response.len() + octets, 7);
    response
}

/// Asks all queries of a test over one connection, and checks that each is answered once.
async fn ask_all(protocol: ClientProtocol, tls: Arc<rustls::ClientConfig>, target: SocketAddr) {
    let (clock, now) = clock();
    let client = QuicClient::new(QuicClientOptions {
        clock,
        ..client_options(protocol)
    });
    assert_eq!(ask_all_of(client, now, (&tls, target), AT_ONCE).await, None);
}

/// The same as `client`, with this number of queries open at once; returns the server's violation,
/// if that ended it.
async fn ask_all_of(
    mut client: QuicClient,
    now: impl Fn() -> Instant,
    (tls, target): (&Arc<rustls::ClientConfig>, SocketAddr),
    at_once: u32,
) -> Option<(&'static str, &'static str)> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(target).await.unwrap();
    let key = client.connect(now(), tls, "dns.example").unwrap();
    let mut answered = BTreeMap::new();
    let (mut asked, mut octets, mut buffer) = (0, Vec::new(), [0; 2_048]);
    while answered.len() < QUERIES as usize {
        while let Some(event) = client.poll_event(key) {
            match Seen::of(event) {
                Seen::Message(token, message) => {
                    let mut expected = long_response_to(&query(token));
                    expected[..2].fill(0);
                    assert_eq!(message, expected);
                    *answered.entry(token).or_insert(0) += 1;
                }
                Seen::Established(_) | Seen::StreamsAvailable => {}
                Seen::Lost(LostReason::Application { by: By::Us, .. }) => {
                    return client.broken_rule(key);
                }
                seen => panic!("{seen:?}"),
            }
        }
        while asked < QUERIES
            && asked - (answered.len() as u32) < at_once
            && client.request(now(), key, &query(asked), asked).is_ok()
        {
            asked += 1;
        }
        while let Some(burst) = client.poll_transmit(now(), key, &mut octets, 10) {
            for datagram in octets.chunks(burst.datagram_octets) {
                socket.send(datagram).await.unwrap();
            }
            octets.clear();
        }
        let wait = client.timeout(key).map_or(0, |due| due.nanos_since(now()));
        let received = socket.recv(&mut buffer);
        match tokio::time::timeout(Duration::from_nanos(wait), received).await {
            Ok(received) => {
                let datagram = &buffer[..received.unwrap()];
                assert!(client.handle_datagram(now(), key, datagram));
            }
            Err(_) => client.handle_timeout(now(), key),
        }
    }
    assert!(answered.values().all(|&times| times == 1));
    assert_eq!(client.exchanges_open(key), 0);
    client.broken_rule(key)
}

/// Serves until the task is dropped.
async fn serve(socket: UdpSocket, tls: Arc<rustls::ServerConfig>, protocol: ServerProtocol) {
    let (clock, now) = clock();
    let options = QuicServerOptions {
        clock,
        ..server_options(protocol)
    };
    let mut server = QuicServer::new(&tls, options).unwrap();
    let (mut octets, mut buffer) = (Vec::new(), [0; 2_048]);
    loop {
        let mut queries = Vec::new();
        while let Some(event) = server.poll_event() {
            if let ServerEvent::Query {
                key,
                stream,
                message,
                ..
            } = event
            {
                queries.push((key, stream, message.to_vec()));
            }
        }
        for (key, stream, message) in queries {
            let response = long_response_to(&message);
            assert!(server.respond(key, stream, &response, Some(60)));
        }
        while let Some(transmit) = server.poll_transmit(now(), &mut octets, 10) {
            for datagram in octets.chunks(transmit.burst.datagram_octets) {
                socket.send_to(datagram, transmit.to).await.unwrap();
            }
            octets.clear();
        }
        let wait = server
            .timeout()
            .map_or(u64::MAX >> 1, |due| due.nanos_since(now()));
        let received = socket.recv_from(&mut buffer);
        match tokio::time::timeout(Duration::from_nanos(wait), received).await {
            Ok(received) => {
                let (length, from) = received.unwrap();
                let datagram = &buffer[..length];
                server.handle_datagram(now(), from, datagram, Admission::Accept);
            }
            Err(_) => server.handle_timeout(now()),
        }
    }
}

/// Starts our server; returns where.
async fn start(certificates: &Certificates, protocol: ServerProtocol) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let target = socket.local_addr().unwrap();
    tokio::spawn(serve(socket, server_tls(certificates), protocol));
    target
}

/// A quinn client's endpoint.
fn quinn_client(certificates: &Certificates, alpn: &[u8]) -> quinn::Endpoint {
    let mut tls = Arc::unwrap_or_clone(client_tls(certificates, false));
    tls.alpn_protocols = vec![alpn.to_vec()];
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
    let mut endpoint = quinn::Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(crypto)));
    endpoint
}

/// A quinn server's endpoint.
fn quinn_server(certificates: &Certificates, alpn: &[u8]) -> quinn::Endpoint {
    let mut tls = Arc::unwrap_or_clone(server_tls(certificates));
    tls.alpn_protocols = vec![alpn.to_vec()];
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
    let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    quinn::Endpoint::server(config, SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
}
