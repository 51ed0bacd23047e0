//! Measures the cost of TLS for a query and its response on an established session, without a
//! network.
//!
//! `cargo run --release -p responder --example records` prints the time of the client's side for
//! each cipher suite, with the lean record layer and with rustls' own (`--tls-stock`), and with
//! 5,000 clients that take turns. Instructions are counted by
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*client_turn*' \
//!     target/release/examples/records TLS_AES_128_GCM_SHA256 lean 10000
//! ```
//!
//! which makes this number of turns of one session; divide the count by it.
#![allow(clippy::unwrap_used, reason = "a failed unwrap ends the measurement")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::tls::rustls::pki_types::ServerName;
use proto::tls::rustls::{ClientConfig, ServerConfig};
use proto::tls::{
    CipherSuite, ClientTls, ClientTlsOptions, ServerTls, client_config, server_config,
};

/// A query with EDNS behind its length, and a response with an address.
const QUERY_OCTETS: usize = 2 + 44;
const RESPONSE_OCTETS: usize = 2 + 60;

/// Turns of each kind, after a tenth of that number as warm-up.
const TURNS: usize = 100_000;

/// More than have their keys ready.
const MANY: usize = 5_000;

/// Both ends of a session, and the octets between them.
struct Session {
    client: ClientTls,
    server: ServerTls,
}

impl Session {
    fn new(client: Arc<ClientConfig>, server: Arc<ServerConfig>) -> Session {
        let name = ServerName::try_from("localhost").unwrap();
        let mut session = Session {
            client: ClientTls::new(client, name).unwrap(),
            server: ServerTls::new(server).unwrap(),
        };
        let (mut wire, mut plaintext) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            session.client.poll_transmit(&mut wire);
            session.server.handle_bytes(&wire, &mut plaintext).unwrap();
            wire.clear();
            session.server.poll_transmit(&mut wire);
            session.client.handle_bytes(&wire, &mut plaintext).unwrap();
            wire.clear();
        }
        assert!(!session.client.is_handshaking());
        session
    }
}

/// Buffers that a worker has.
#[derive(Default)]
struct Buffers {
    up: Vec<u8>,
    down: Vec<u8>,
    plaintext: Vec<u8>,
}

/// The client's part: sends a query, and reads the response of the previous turn.
#[inline(never)]
fn client_turn(client: &mut ClientTls, buffers: &mut Buffers) {
    buffers.plaintext.clear();
    client
        .handle_bytes(&buffers.down, &mut buffers.plaintext)
        .unwrap();
    buffers.up.clear();
    client.write_into(&[7; QUERY_OCTETS], &mut buffers.up);
}

/// Lets the sessions take turns; returns the time of the clients.
fn take_turns(sessions: &mut [Session], turns: usize) -> Duration {
    let mut buffers = Buffers::default();
    let mut spent = Duration::ZERO;
    for turn in 0..turns {
        let at = turn % sessions.len();
        let session = &mut sessions[at];
        buffers.down.clear();
        session
            .server
            .write_into(&[8; RESPONSE_OCTETS], &mut buffers.down);
        let start = Instant::now();
        client_turn(&mut session.client, &mut buffers);
        spent += start.elapsed();
        assert_eq!(buffers.plaintext.len(), RESPONSE_OCTETS);
        buffers.plaintext.clear();
        session
            .server
            .handle_bytes(&buffers.up, &mut buffers.plaintext)
            .unwrap();
    }
    spent
}

fn sessions(suite: CipherSuite, stock_records: bool, count: usize) -> Vec<Session> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let server = server_config(certificate.as_bytes(), key.as_bytes()).unwrap();
    let options = ClientTlsOptions {
        verify: false,
        cipher_suites: vec![suite],
        stock_records,
        ..ClientTlsOptions::default()
    };
    let client = client_config(&options).unwrap();
    let session = || Session::new(client.clone(), server.clone());
    std::iter::repeat_with(session).take(count).collect()
}

fn report(suite: CipherSuite, stock_records: bool, count: usize) {
    let mut sessions = sessions(suite, stock_records, count);
    take_turns(&mut sessions, TURNS / 10);
    let spent = take_turns(&mut sessions, TURNS);
    let records = if stock_records { "stock" } else { "lean" };
    let each = spent.as_nanos() as f64 / TURNS as f64;
    println!("{suite:<45} {records:<6} {count:>5} clients {each:>7.0} ns a query and response");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [suite, records, turns] = &arguments[..] {
        let mut one = sessions(suite.parse().unwrap(), records == "stock", 1);
        take_turns(&mut one, turns.parse().unwrap());
        return;
    }
    let suites = CipherSuite::all().into_iter();
    for suite in suites.filter(|suite| !suite.name().contains("_RSA_")) {
        for stock_records in [false, true] {
            report(suite, stock_records, 1);
        }
    }
    let suite = CipherSuite::all()[0];
    for stock_records in [false, true] {
        report(suite, stock_records, MANY);
    }
}
