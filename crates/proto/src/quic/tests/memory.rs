//! What an idle client holds.

use super::*;
use crate::doh::{DohRequest, Method};

/// Bytes of heap that a client holds after a few queries, when all is acknowledged; `at_once` of
/// them were open at the same time. Its ticket is among them.
fn idle_bytes(client: ClientProtocol, server: ServerProtocol, at_once: u32) -> u64 {
    let certificates = certificates();
    let (client, server) = (client_options(client), server_options(server));
    let mut world = World::new(&certificates, client, server);
    let client = world.connected(&client_tls(&certificates, true));
    for number in 0..16 {
        world.ask(client, &query(number), number).unwrap();
        if (number + 1) % at_once == 0 {
            world.run_until(|world| world.messages(client).len() == 1 + number as usize);
        }
    }
    world.run_for(Duration::from_secs(1));
    let key = world.keys[client];
    let freed = allocation_counter::measure(|| world.client.forget(key));
    u64::try_from(-freed.bytes_current).unwrap()
}

/// The limit that the design sets; most of it is quinn-proto's. It keeps about 0.6 KB for each
/// stream that was ever open at the same time as others.
const IDLE_BYTES_MAX: u64 = 30_000;

#[test]
fn idle_doq_client_holds_at_most_30_kb() {
    for at_once in [1, 16] {
        let bytes = idle_bytes(ClientProtocol::Doq, ServerProtocol::Doq, at_once);
        println!("{bytes} bytes, {at_once} at once");
        assert!(bytes <= IDLE_BYTES_MAX, "{bytes} bytes, {at_once} at once");
    }
}

#[test]
fn idle_http3_client_holds_at_most_30_kb() {
    for at_once in [1, 16] {
        let request = DohRequest::new(Method::Post, "https://dns.example/dns-query", &[]);
        let client = ClientProtocol::Http3(Arc::new(request.unwrap()));
        let path = "/dns-query".into();
        let bytes = idle_bytes(client, ServerProtocol::Http3 { path }, at_once);
        println!("{bytes} bytes, {at_once} at once");
        assert!(bytes <= IDLE_BYTES_MAX, "{bytes} bytes, {at_once} at once");
    }
}
