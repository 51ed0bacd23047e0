//! RFC 9250, clause by clause, as far as it concerns one stream's octets.

use super::*;
use proptest::prelude::*;

/// A header with ID 0 and nothing else, which the checks let pass.
const MESSAGE: [u8; 12] = [0; 12];

fn stream_of(message: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    write_stream(message, &mut stream);
    stream
}

/// A response with an OPT record that holds one option.
fn with_option(code: u16) -> Vec<u8> {
    let mut message = vec![0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    message.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 6]);
    message.extend_from_slice(&code.to_be_bytes());
    message.extend_from_slice(&[0, 2, 0, 9]);
    message
}

#[test]
fn rfc9250_4_2_message_is_encoded_with_a_length_of_two_octets() {
    let stream = stream_of(&MESSAGE);
    assert_eq!(stream[..2], [0, 12]);
    assert_eq!(
        parse_stream(&stream, true),
        Ok(StreamState::Message(&MESSAGE))
    );
}

#[test]
fn rfc9250_4_2_1_message_id_is_sent_as_0() {
    let stream = stream_of(&[0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(stream[2..6], [0, 0, 1, 0]);
}

#[test]
fn rfc9250_4_3_3_nonzero_message_id_is_a_protocol_error() {
    for id in [[0, 1], [1, 0], [255, 255]] {
        let mut stream = stream_of(&MESSAGE);
        stream[2..4].copy_from_slice(&id);
        assert_eq!(parse_stream(&stream, true), Err(Violation::NonzeroId));
    }
}

#[test]
fn rfc9250_4_3_3_fin_within_a_message_is_a_protocol_error() {
    let stream = stream_of(&MESSAGE);
    for octets in 1..stream.len() {
        let cut = &stream[..octets];
        assert_eq!(parse_stream(cut, true), Err(Violation::CutOff));
        assert_eq!(parse_stream(cut, false), Ok(StreamState::Incomplete));
    }
    assert_eq!(parse_stream(&[], true), Err(Violation::NoMessage));
    assert_eq!(parse_stream(&[], false), Ok(StreamState::Incomplete));
}

#[test]
fn rfc9250_4_3_3_second_message_on_a_stream_is_a_protocol_error() {
    let stream = [stream_of(&MESSAGE), stream_of(&MESSAGE)].concat();
    for octets in 15..=stream.len() {
        assert_eq!(
            parse_stream(&stream[..octets], false),
            Err(Violation::MoreThanOneMessage)
        );
    }
}

#[test]
fn rfc9250_5_5_2_edns_tcp_keepalive_is_a_protocol_error() {
    let keepalive = stream_of(&with_option(11));
    assert_eq!(parse_stream(&keepalive, true), Err(Violation::TcpKeepalive));
    let cookie = stream_of(&with_option(10));
    assert!(matches!(
        parse_stream(&cookie, true),
        Ok(StreamState::Message(_))
    ));
}

#[test]
fn empty_message_is_a_message() {
    assert_eq!(parse_stream(&[0, 0], true), Ok(StreamState::Message(&[])));
    assert_eq!(stream_of(&[]), [0, 0]);
    assert_eq!(stream_of(&[7]), [0, 1, 0]);
}

proptest! {
    #[test]
    fn random_octets_are_never_more_than_what_came(
        octets in prop::collection::vec(any::<u8>(), 0..80),
        finished in any::<bool>(),
    ) {
        if let Ok(StreamState::Message(message)) = parse_stream(&octets, finished) {
            prop_assert_eq!(message.len() + 2, octets.len());
        }
    }

    #[test]
    fn every_message_comes_out_as_it_went_in_but_for_its_id(
        message in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let stream = stream_of(&message);
        let mut expected = message;
        expected.iter_mut().take(2).for_each(|octet| *octet = 0);
        match parse_stream(&stream, true) {
            Ok(StreamState::Message(found)) => prop_assert_eq!(found, &expected[..]),
            other => prop_assert_eq!(other, Err(Violation::TcpKeepalive)),
        }
    }
}

#[test]
fn any_message_id_is_taken_of_peers_that_may_send_it() {
    let mut stream = vec![0, 12];
    stream.extend_from_slice(&[0x12, 0x34, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let (zero, any) = (MessageIds::Zero, MessageIds::Any);
    let refused = parse_stream_with(&stream, true, zero);
    assert_eq!(refused, Err(Violation::NonzeroId));
    let taken = parse_stream_with(&stream, true, any);
    assert_eq!(taken, Ok(StreamState::Message(&stream[2..])));
}
