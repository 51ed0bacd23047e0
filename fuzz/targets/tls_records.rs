//! TLS sessions of both sides: octets from a stranger, and a real handshake with octets changed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::tls::rustls::{ClientConfig, ServerConfig, pki_types::ServerName};
use proto::tls::{ClientTls, ClientTlsOptions, ServerTls, client_config, server_config};
use std::sync::{Arc, LazyLock};

static CLIENT: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
    let options = ClientTlsOptions {
        verify: false,
        ..ClientTlsOptions::default()
    };
    client_config(&options).expect("the options go together")
});

static SERVER: LazyLock<Arc<ServerConfig>> = LazyLock::new(|| {
    let identity =
        rcgen::generate_simple_self_signed(["dns.example".to_owned()]).expect("the name is valid");
    let (certificate, key) = (identity.cert.pem(), identity.signing_key.serialize_pem());
    server_config(certificate.as_bytes(), key.as_bytes()).expect("both belong together")
});

fn client() -> ClientTls {
    let name = ServerName::try_from("dns.example").expect("the name is valid");
    ClientTls::new(CLIENT.clone(), name).expect("the configuration is valid")
}

/// Octets of a stranger, in pieces.
fn feed_strangers_octets(octets: &[u8], length: usize) {
    let (mut plaintext, mut wire) = (Vec::new(), Vec::new());
    let (mut client, mut server) = (client(), ServerTls::new(SERVER.clone()).expect("as above"));
    for piece in octets.chunks(length) {
        if client.handle_bytes(piece, &mut plaintext).is_err() {
            break;
        }
    }
    client.poll_transmit(&mut wire);
    for piece in octets.chunks(length) {
        if server.handle_bytes(piece, &mut plaintext).is_err() {
            break;
        }
    }
    server.poll_transmit(&mut wire);
    assert!(plaintext.is_empty(), "nobody has completed a handshake");
}

/// Handshake and messages both ways; each three octets of `changes` are an offset in the octets
/// from the server, and what to add there. Cut into pieces of `length`.
fn change_a_session(changes: &[u8], length: usize) {
    let (mut client, mut server) = (client(), ServerTls::new(SERVER.clone()).expect("as above"));
    let (mut at_client, mut at_server) = (Vec::new(), Vec::new());
    client.write(b"query");
    server.write(b"response");
    let mut sent = 0;
    for _ in 0..4 {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        client.poll_transmit(&mut up);
        if server.handle_bytes(&up, &mut at_server).is_err() {
            break;
        }
        server.poll_transmit(&mut down);
        for change in changes.chunks_exact(3) {
            let at = usize::from(u16::from_be_bytes([change[0], change[1]]) % 4_096);
            if let Some(octet) = at.checked_sub(sent).and_then(|at| down.get_mut(at)) {
                *octet = octet.wrapping_add(change[2]);
            }
        }
        sent += down.len();
        let failed = down
            .chunks(length)
            .any(|piece| client.handle_bytes(piece, &mut at_client).is_err());
        if failed {
            break;
        }
    }
    assert!(b"query".starts_with(&at_server) && b"response".starts_with(&at_client));
    if changes.is_empty() {
        assert_eq!(at_client, b"response");
    }
}

fuzz_target!(|input: &[u8]| {
    let Some(([kind, length], octets)) = input.split_first_chunk() else {
        return;
    };
    let length = usize::from(*length).max(1) * 7;
    match kind % 2 {
        0 => feed_strangers_octets(octets, length),
        _ => change_a_session(&octets[..octets.len().min(12)], length),
    }
});
