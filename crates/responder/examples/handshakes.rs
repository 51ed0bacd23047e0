//! Measures TLS handshakes per second of one core, client and server separately, without a network.
//!
//! `cargo run --release -p responder --example handshakes` prints a line for each kind, with the
//! argument `first` only for full handshakes as a run makes them unless told otherwise. Client and
//! server are state machines on one thread; the CPU time between handing octets to one of them and
//! taking its answer is that side's. The client verifies a certificate (ECDSA, P-256) that a root
//! has signed, as a run does. The machine has to be idle otherwise.
#![allow(clippy::unwrap_used, reason = "a failed unwrap ends the measurement")]

use std::sync::Arc;
use std::time::Duration;

use driver::clock::Clock;
use proto::tls::rustls::pki_types::ServerName;
use proto::tls::rustls::{ClientConfig, ServerConfig};
use proto::tls::{
    CipherSuite, ClientSession, ClientTls, ClientTlsOptions, Group, HandshakeKind, Roots,
    ServerTls, ServerTlsOptions, TlsVersions, client_config, server_config_with,
};

/// Handshakes measured of each kind, after a tenth of that number as warm-up.
const HANDSHAKES: u32 = 5_000;

/// CPU time of each side.
#[derive(Clone, Copy, Default)]
struct Spent {
    client: Duration,
    server: Duration,
}

/// Runs `work`, whose time is counted in `sum`.
fn timed<R>(sum: &mut Duration, work: impl FnOnce() -> R) -> R {
    let start = Clock::thread_cpu_time();
    let result = work();
    *sum += Clock::thread_cpu_time().saturating_sub(start);
    result
}

/// A certificate of a root, and its configuration for a server; the root.
fn identity() -> (Arc<ServerConfig>, Roots) {
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let authority = rcgen::CertifiedIssuer::self_signed(authority, key).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let leaf = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &authority).unwrap();
    let (chain, key) = (leaf.pem(), key.serialize_pem());
    let options = ServerTlsOptions::default();
    let server = server_config_with(chain.as_bytes(), key.as_bytes(), &options).unwrap();
    (server, Roots::Pem(authority.pem().into_bytes()))
}

/// One handshake with a query and a response, and the end of both sides.
fn shake(
    client: &Arc<ClientConfig>,
    server: &Arc<ServerConfig>,
    memory: &mut ClientSession,
    resume: bool,
    spent: &mut Spent,
) -> HandshakeKind {
    let name = ServerName::try_from("localhost").unwrap();
    let mut client_tls = timed(&mut spent.client, || {
        let memory = std::mem::take(memory);
        let mut tls = ClientTls::remembering(client.clone(), name, memory, resume).unwrap();
        tls.write(b"query");
        tls
    });
    let mut server_tls = timed(&mut spent.server, || {
        ServerTls::new(server.clone()).unwrap()
    });
    let (mut up, mut down, mut plaintext) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        up.clear();
        timed(&mut spent.client, || client_tls.poll_transmit(&mut up));
        down.clear();
        timed(&mut spent.server, || {
            server_tls.handle_bytes(&up, &mut plaintext).unwrap();
            if !plaintext.is_empty() {
                server_tls.write(b"response");
                plaintext.clear();
            }
            server_tls.poll_transmit(&mut down);
        });
        if up.is_empty() && down.is_empty() {
            break;
        }
        timed(&mut spent.client, || {
            client_tls.handle_bytes(&down, &mut plaintext)
        })
        .unwrap();
        plaintext.clear();
    }
    let kind = client_tls.handshake().unwrap().kind;
    *memory = client_tls.take_memory();
    timed(&mut spent.client, || drop(client_tls));
    timed(&mut spent.server, || drop(server_tls));
    kind
}

fn measure(options: &ClientTlsOptions, server: &Arc<ServerConfig>, resume: bool) -> Spent {
    let client = client_config(options).unwrap();
    let mut memory = ClientSession::default();
    let mut spent = Spent::default();
    for _ in 0..HANDSHAKES / 10 {
        shake(&client, server, &mut memory, resume, &mut spent);
    }
    spent = Spent::default();
    for _ in 0..HANDSHAKES {
        let kind = shake(&client, server, &mut memory, resume, &mut spent);
        assert_eq!(kind == HandshakeKind::Resumed, resume);
    }
    spent
}

fn main() {
    let (server, roots) = identity();
    let first_only = std::env::args().nth(1).as_deref() == Some("first");
    let suites = CipherSuite::all();
    println!("version  suite                   group           kind       client/s  server/s");
    for (versions, suite, groups) in [
        (TlsVersions::Tls13, suites[0], &Group::ALL[..5]),
        (TlsVersions::Tls13, suites[1], &Group::ALL[..5]),
        (TlsVersions::Tls12, suites[3], &Group::ALL[..2]),
    ] {
        for group in groups {
            for resume in [false, true] {
                if first_only && (resume || suite != suites[0] || *group != Group::DEFAULT[0]) {
                    continue;
                }
                let options = ClientTlsOptions {
                    roots: roots.clone(),
                    versions,
                    cipher_suites: vec![suite],
                    groups: vec![*group],
                    resumption: true,
                    ..ClientTlsOptions::default()
                };
                let spent = measure(&options, &server, resume);
                let rate = |time: Duration| f64::from(HANDSHAKES) / time.as_secs_f64();
                println!(
                    "{versions:?}    {:22.22}  {:14}  {:9}  {:8.0}  {:8.0}",
                    suite.name(),
                    group.name(),
                    if resume { "resumed" } else { "full" },
                    rate(spent.client),
                    rate(spent.server)
                );
            }
        }
    }
}
