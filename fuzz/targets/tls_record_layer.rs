//! Our own record layer behind a handshake: octets changed, cut off, put in and left out of what a
//! server sends, and what a client makes of it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::tls::rustls::{ClientConfig, ServerConfig, pki_types::ServerName};
use proto::tls::{
    ClientTls, ClientTlsOptions, ServerTls, TlsVersions, client_config, server_config,
};
use std::sync::{Arc, LazyLock};

static CLIENTS: LazyLock<[Arc<ClientConfig>; 2]> = LazyLock::new(|| {
    [TlsVersions::Tls12, TlsVersions::Tls13].map(|versions| {
        let options = ClientTlsOptions {
            verify: false,
            versions,
            ..ClientTlsOptions::default()
        };
        client_config(&options).expect("the options go together")
    })
});

static SERVER: LazyLock<Arc<ServerConfig>> = LazyLock::new(|| {
    let identity =
        rcgen::generate_simple_self_signed(["dns.example".to_owned()]).expect("the name is valid");
    let (certificate, key) = (identity.cert.pem(), identity.signing_key.serialize_pem());
    server_config(certificate.as_bytes(), key.as_bytes()).expect("both belong together")
});

/// Both ends of a session whose handshake is over.
fn established(version: usize) -> (ClientTls, ServerTls) {
    let name = ServerName::try_from("dns.example").expect("the name is valid");
    let config = CLIENTS[version].clone();
    let mut client = ClientTls::new(config, name).expect("the configuration is valid");
    let mut server = ServerTls::new(SERVER.clone()).expect("as above");
    let (mut wire, mut plaintext) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        client.poll_transmit(&mut wire);
        server
            .handle_bytes(&wire, &mut plaintext)
            .expect("nothing was changed");
        wire.clear();
        server.poll_transmit(&mut wire);
        client
            .handle_bytes(&wire, &mut plaintext)
            .expect("nothing was changed");
        wire.clear();
    }
    assert!(!client.is_handshaking() && !server.is_handshaking() && plaintext.is_empty());
    (client, server)
}

/// What happens to the octets on their way, three octets of input each.
fn change(wire: &mut Vec<u8>, [kind, at, value]: [u8; 3]) {
    let at = usize::from(at) % wire.len().max(1);
    match kind % 5 {
        0 if at < wire.len() => wire[at] ^= value,
        1 => wire.truncate(at),
        2 => wire.insert(at, value),
        3 => drop(wire.splice(at..at, [20 + value % 5, 3, 3, 0, value])),
        _ => {}
    }
}

fuzz_target!(|input: &[u8]| {
    let Some(([kind, length], steps)) = input.split_first_chunk() else {
        return;
    };
    let (mut client, mut server) = established(usize::from(kind % 2));
    let length = usize::from(*length).max(1);
    let (mut written, mut received) = (Vec::new(), Vec::new());
    let mut is_changed = false;
    for step in steps.chunks_exact(3).take(12) {
        let mut wire = Vec::new();
        let message = vec![step[2]; usize::from(step[1])];
        written.extend_from_slice(&message);
        server.write_into(&message, &mut wire);
        let genuine = wire.clone();
        change(&mut wire, [step[0], step[1], step[2]]);
        is_changed |= wire != genuine;
        let before = received.len();
        let failed = wire
            .chunks(length)
            .any(|piece| client.handle_bytes(piece, &mut received).is_err());
        assert!(
            written.starts_with(&received),
            "nothing but what was written"
        );
        if failed {
            assert!(is_changed);
            let again = client.handle_bytes(&genuine, &mut received);
            assert!(again.is_err(), "the failure lasts");
            break;
        }
        assert!(is_changed || received.len() == before + message.len());
    }
    let mut wire = Vec::new();
    client.write_into(b"goodbye", &mut wire);
    client.close();
    client.poll_transmit(&mut wire);
    // An alert or a goodbye: both are genuine.
    let mut at_server = Vec::new();
    let _ = server.handle_bytes(&wire, &mut at_server);
    assert!(b"goodbye".starts_with(&at_server));
});
