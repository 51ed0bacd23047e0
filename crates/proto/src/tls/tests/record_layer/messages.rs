//! Framed messages, each in a record of its own.

use super::*;

fn framed(message_octets: &[usize]) -> Vec<u8> {
    let mut stream = Vec::new();
    for (at, &octets) in message_octets.iter().enumerate() {
        stream.extend_from_slice(&(octets as u16).to_be_bytes());
        stream.extend((0..octets).map(|octet| (octet + at) as u8));
    }
    stream
}

/// Octets of the records in `wire`, each with its header.
fn records(mut wire: &[u8]) -> Vec<usize> {
    let mut records = Vec::new();
    while let [_, 3, 3, high, low, ..] = *wire {
        let octets = 5 + usize::from(u16::from_be_bytes([high, low]));
        records.push(octets);
        wire = &wire[octets..];
    }
    assert!(wire.is_empty());
    records
}

#[test]
fn each_message_has_a_record_of_its_own_whatever_the_suite() {
    // 18 octets are two of the prefix and a tag; a header has five.
    let lengths = [0, 1, 45, 46, 47, 300, 16_382, 16_383, 20_000, 5];
    for suite in suites() {
        for mixture in MIXTURES {
            let mut pair = pair(mixture, suite);
            let mut stream = framed(&lengths);
            let (before, mut wire) = (stream.clone(), Vec::new());
            pair.client.write(b"first");
            pair.client.write_messages(&mut stream, &mut wire);
            assert_eq!(stream, before);
            let more = match suite {
                suite if suite.is_tls13() => 1,
                suite if suite.name().contains("GCM") => 8,
                _ => 0,
            };
            let expected: Vec<usize> = [5, 2, 3, 47, 48, 49, 302, 16_384, 16_384, 1]
                .into_iter()
                .chain([16_384, 3_618, 7])
                .map(|content_octets| content_octets + 5 + more + 16)
                .collect();
            assert_eq!(records(&wire), expected, "{mixture:?} {}", suite.name());
            pair.server
                .handle_bytes(&wire, &mut pair.server_received)
                .unwrap();
            assert!(pair.server_received == [b"first", &before[..]].concat());
        }
    }
}

#[test]
fn stream_that_ends_within_a_message_is_written_as_far_as_it_goes() {
    let mut pair = pair((false, false), suite_of(TlsVersions::Tls13));
    let mut wire = Vec::new();
    let mut stream = framed(&[45, 45]);
    stream.truncate(60);
    pair.client.write_messages(&mut stream, &mut wire);
    pair.client.write_messages(&mut Vec::new(), &mut wire);
    assert_eq!(records(&wire), [47 + 22, 13 + 22]);
    pair.server
        .handle_bytes(&wire, &mut pair.server_received)
        .unwrap();
    assert_eq!(pair.server_received, stream);
}

#[test]
fn key_that_is_used_up_among_messages_is_changed_and_a_closed_session_writes_nothing() {
    for suite in suites() {
        let mut pair = pair((false, false), suite);
        pair.client.own_records().unwrap().limit_records(7);
        let (mut stream, mut wire) = (framed(&[3; 20]), Vec::new());
        pair.client.write_messages(&mut stream, &mut wire);
        let progress = pair
            .server
            .handle_bytes(&wire, &mut pair.server_received)
            .unwrap();
        // TLS 1.2 has no other key, and closes.
        assert_eq!(progress.peer_closed, !suite.is_tls13());
        assert_eq!(pair.server_received == stream, suite.is_tls13());
        pair.client.close();
        wire.clear();
        pair.client.write_messages(&mut stream, &mut wire);
        pair.client.write_messages(&mut stream, &mut wire);
        assert_eq!(records(&wire).len(), usize::from(suite.is_tls13()));
    }
}

#[test]
fn messages_with_records_of_their_own_allocate_nothing() {
    let mut pair = pair((false, false), suite_of(TlsVersions::Tls13));
    let (mut stream, mut wire) = (framed(&[45; 5]), Vec::with_capacity(4_096));
    let mut plaintext = Vec::with_capacity(4_096);
    let mut round = || {
        wire.clear();
        plaintext.clear();
        pair.client.write_messages(&mut stream, &mut wire);
        pair.server.handle_bytes(&wire, &mut plaintext).unwrap();
        assert_eq!(plaintext, stream);
    };
    round();
    let counted = allocation_counter::measure(|| (0..10).for_each(|_| round()));
    assert_eq!(counted.count_total, 0);
}
