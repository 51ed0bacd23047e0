//! DNS over TCP: order, repeats, gaps, and connections that were open before the capture.

use proptest::prelude::*;

use super::writer::*;
use super::*;

/// The client's first sequence number, near the wrap; the server's.
const CLIENT_ISN: u32 = 0xffff_fff0;
const SERVER_ISN: u32 = 7_000;

fn stream(ids: std::ops::Range<u16>) -> Vec<u8> {
    let messages = ids.map(|id| framed(&query(id, &format!("n{id}.example"))));
    messages.collect::<Vec<_>>().concat()
}

fn from_client(offset: usize, payload: &[u8]) -> Vec<u8> {
    let sequence = CLIENT_ISN.wrapping_add(1).wrapping_add(offset as u32);
    tcp(CLIENT, SERVER, (sequence, SERVER_ISN + 1), ACK, payload)
}

fn from_server(offset: usize, acknowledged: usize, payload: &[u8]) -> Vec<u8> {
    let acknowledgment = CLIENT_ISN.wrapping_add(1).wrapping_add(acknowledged as u32);
    tcp(
        SERVER,
        CLIENT,
        (SERVER_ISN + 1 + offset as u32, acknowledgment),
        ACK,
        payload,
    )
}

fn handshake() -> Vec<Vec<u8>> {
    vec![
        tcp(CLIENT, SERVER, (CLIENT_ISN, 0), SYN, b""),
        tcp(
            SERVER,
            CLIENT,
            (SERVER_ISN, CLIENT_ISN.wrapping_add(1)),
            SYN | ACK,
            b"",
        ),
    ]
}

fn capture(packets: &[Vec<u8>]) -> Outcome {
    let packets: Vec<_> = (0..)
        .zip(packets)
        .map(|(at, data)| (START + at, data.clone()))
        .collect();
    read(&RAW.write(&packets))
}

fn names(ids: std::ops::Range<u16>) -> Vec<String> {
    ids.map(|id| format!("n{id}.example")).collect()
}

#[test]
fn queries_and_responses_of_a_connection_are_paired() {
    let mut packets = handshake();
    let asked = stream(0..3);
    packets.push(from_client(0, &asked));
    let answers: Vec<u8> = [2, 0, 1]
        .map(|id| framed(&response(id, &format!("n{id}.example"), 0, 9)))
        .concat();
    packets.push(from_server(0, asked.len(), &answers[..50]));
    packets.push(from_server(50, asked.len(), &answers[50..]));
    let outcome = capture(&packets);
    assert_eq!(outcome.names(), names(0..3));
    for observed in &outcome.observed {
        assert_eq!(observed.transport, proto::Transport::Tcp);
        assert_eq!(observed.connection, Some(0));
        assert_eq!(observed.client, address(CLIENT));
        assert!(observed.response.unwrap().latency_ns.unwrap() <= 2);
    }
    outcome.assert_skipped(&[]);
}

#[test]
fn segments_sent_again_are_counted_and_their_octets_taken_once() {
    let asked = stream(0..4);
    let mut packets = handshake();
    packets.push(packets[0].clone());
    packets.push(from_client(0, &asked[..40]));
    packets.push(from_client(0, &asked[..40]));
    // One that begins in what is known and brings something new.
    packets.push(from_client(20, &asked[20..]));
    let outcome = capture(&packets);
    assert_eq!(outcome.names(), names(0..4));
    outcome.assert_skipped(&[(Skip::RetransmittedSegment, 2)]);
}

#[test]
fn what_was_acknowledged_and_not_captured_is_a_gap() {
    let messages: Vec<Vec<u8>> = (0..4).map(|id| stream(id..id + 1)).collect();
    let octets = messages[0].len();
    let mut packets = handshake();
    packets.push(from_client(0, &messages[0]));
    packets.push(from_client(2 * octets, &messages[2]));
    packets.push(from_server(0, 3 * octets, b""));
    packets.push(from_client(3 * octets, &messages[3]));
    let outcome = capture(&packets);
    assert_eq!(outcome.names(), ["n0.example", "n2.example", "n3.example"]);
    outcome.assert_skipped(&[(Skip::StreamGap, 1)]);
}

#[test]
fn after_a_gap_reading_starts_again_with_a_segment_that_starts_with_a_message() {
    let asked = stream(0..4);
    let octets = asked.len() / 4;
    let mut packets = handshake();
    // The second message is in two segments of which the first is missing.
    packets.push(from_client(0, &asked[..octets]));
    packets.push(from_client(octets + 20, &asked[octets + 20..2 * octets]));
    packets.push(from_client(2 * octets, &asked[2 * octets..]));
    packets.push(from_server(0, asked.len(), b""));
    let outcome = capture(&packets);
    assert_eq!(outcome.names(), ["n0.example", "n2.example", "n3.example"]);
    let lost = octets as u64 - 20;
    outcome.assert_skipped(&[(Skip::StreamGap, 1), (Skip::StreamOctets, lost)]);
}

#[test]
fn connections_from_before_the_capture_are_read_from_their_first_message() {
    let asked = stream(0..3);
    let octets = asked.len() / 3;
    let packets = [
        from_server(0, 0, b""),
        from_client(10, &asked[10..octets]),
        from_client(octets, &asked[octets..]),
    ];
    let outcome = capture(&packets);
    assert_eq!(outcome.names(), ["n1.example", "n2.example"]);
    outcome.assert_skipped(&[(Skip::StreamOctets, octets as u64 - 10)]);
}

#[test]
fn too_many_segments_out_of_order_are_a_gap() {
    let mut packets = handshake();
    let messages: Vec<Vec<u8>> = (1_000..1_400).map(|id| stream(id..id + 1)).collect();
    let octets = messages[0].len();
    for (index, message) in messages.iter().enumerate().skip(1) {
        packets.push(from_client(index * octets, message));
    }
    let outcome = capture(&packets);
    assert_eq!(outcome.names(), names(1_001..1_400));
    outcome.assert_skipped(&[(Skip::SegmentOverflow, 1), (Skip::StreamGap, 1)]);
}

#[test]
fn ports_used_again_are_another_connection() {
    let asked = stream(0..1);
    let end = CLIENT_ISN.wrapping_add(1).wrapping_add(asked.len() as u32);
    let mut packets = handshake();
    packets.push(from_client(0, &asked));
    packets.push(tcp(CLIENT, SERVER, (end, SERVER_ISN + 1), ACK | FIN, b""));
    packets.push(tcp(
        SERVER,
        CLIENT,
        (SERVER_ISN + 1, end + 1),
        ACK | FIN,
        b"",
    ));
    packets.push(tcp(CLIENT, SERVER, (end + 1, SERVER_ISN + 2), ACK, b""));
    // With a SYN again, then a third time without an end in between.
    for isn in [1_000_u32, 900_000] {
        packets.push(tcp(CLIENT, SERVER, (isn, 0), SYN, b""));
        packets.push(tcp(CLIENT, SERVER, (isn + 1, 1), ACK, &asked));
    }
    packets.push(tcp(SERVER, CLIENT, (5, 5), RST, b""));
    let outcome = capture(&packets);
    let connections: Vec<_> = outcome
        .observed
        .iter()
        .map(|query| query.connection)
        .collect();
    assert_eq!(connections, [Some(0), Some(1), Some(2)]);
    outcome.assert_skipped(&[]);
}

#[test]
fn messages_within_the_syn_are_read() {
    // TCP Fast Open (RFC 7413).
    let packets = [tcp(CLIENT, SERVER, (CLIENT_ISN, 0), SYN, &stream(0..1))];
    assert_eq!(capture(&packets).names(), ["n0.example"]);
}

#[test]
fn who_opens_a_connection_between_two_ports_of_dns_is_the_client() {
    let (one, other) = ("192.0.2.1:53", "192.0.2.2:53");
    let packets = [
        tcp(one, other, (1, 0), SYN, b""),
        tcp(other, one, (8, 2), SYN | ACK, b""),
        tcp(one, other, (2, 9), ACK, &stream(0..1)),
        tcp(
            other,
            one,
            (9, 99),
            ACK,
            &framed(&response(0, "n0.example", 0, 1)),
        ),
    ];
    let outcome = capture(&packets);
    assert_eq!(outcome.observed[0].client, address(one));
    assert!(outcome.observed[0].response.is_some());
    outcome.assert_skipped(&[]);
}

#[test]
fn segments_cut_by_the_snapshot_length_are_gaps() {
    let asked = stream(0..3);
    let octets = asked.len() / 3;
    let mut cut = from_client(octets, &asked[octets..2 * octets]);
    cut.truncate(cut.len() - 10);
    let mut packets = handshake();
    packets.push(from_client(0, &asked[..octets]));
    packets.push(cut);
    packets.push(from_client(2 * octets, &asked[2 * octets..]));
    let outcome = capture(&packets);
    assert_eq!(outcome.names(), ["n0.example", "n2.example"]);
    assert_eq!(outcome.skipped.get(Skip::CutBySnapshotLength), 1);
    assert_eq!(outcome.skipped.get(Skip::StreamGap), 1);
}

proptest! {
    #[test]
    fn any_cut_order_and_repetition_gives_every_message_once(
        cuts in prop::collection::vec(1_usize..60, 1..40),
        order in prop::collection::vec(any::<prop::sample::Index>(), 60),
        repeats in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let asked = stream(0..20);
        let (mut segments, mut offset) = (Vec::new(), 0);
        for octets in cuts.iter().cycle() {
            let end = (offset + octets).min(asked.len());
            segments.push(from_client(offset, &asked[offset..end]));
            offset = end;
            if end == asked.len() {
                break;
            }
        }
        prop_assume!(segments.len() <= 250);
        for index in &repeats {
            segments.push(segments[index.index(segments.len())].clone());
        }
        for (place, index) in order.iter().enumerate() {
            let (place, other) = (place % segments.len(), index.index(segments.len()));
            segments.swap(place, other);
        }
        let mut packets = handshake();
        packets.extend(segments);
        let outcome = capture(&packets);
        prop_assert_eq!(outcome.names(), names(0..20));
        prop_assert_eq!(outcome.skipped.get(Skip::RetransmittedSegment), repeats.len() as u64);
        prop_assert_eq!(outcome.skipped.get(Skip::StreamGap), 0);
    }

    #[test]
    fn with_any_segments_missing_no_message_is_made_up(
        missing in prop::collection::vec(any::<bool>(), 40),
        cuts in prop::collection::vec(5_usize..60, 1..40),
    ) {
        let asked = stream(0..20);
        let (mut packets, mut offset) = (handshake(), 0);
        for (octets, is_missing) in cuts.iter().cycle().zip(missing.iter().cycle()) {
            let end = (offset + octets).min(asked.len());
            if !is_missing {
                packets.push(from_client(offset, &asked[offset..end]));
                packets.push(from_server(0, end, b""));
            }
            offset = end;
            if end == asked.len() {
                break;
            }
        }
        let outcome = capture(&packets);
        let all = names(0..20);
        prop_assert!(outcome.names().iter().all(|name| all.contains(name)));
        let mut sorted = outcome.names();
        sorted.dedup();
        prop_assert_eq!(sorted.len(), outcome.names().len());
    }
}
