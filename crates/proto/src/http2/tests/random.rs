//! Random frames and octets: any split gives the same events, and nothing panics.

use super::*;
use proptest::prelude::*;

/// Octets of a frame: sensible ones more often than not.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let stream = 0_u32..10;
    let octets = prop::collection::vec(any::<u8>(), 0..40);
    let random = (0_u8..12, any::<u8>(), stream.clone(), octets)
        .prop_map(|(kind, flags, stream, payload)| frame(kind, flags, stream, &payload));
    let field_section = |fields: &'static [(&'static str, &'static str)]| {
        (stream.clone(), any::<bool>()).prop_map(|(stream, ends)| headers(stream, ends, fields))
    };
    let content = (stream.clone(), any::<bool>(), 0_usize..70)
        .prop_map(|(stream, ends, octets)| data(stream, ends, &vec![7; octets]));
    let response = (stream.clone(), 0_usize..70)
        .prop_map(|(stream, octets)| whole_response(stream, &OK, &vec![7; octets]));
    let number = |kind: u8, numbers: std::ops::RangeInclusive<u32>| {
        (stream.clone(), numbers)
            .prop_map(move |(stream, number)| frame(kind, 0, stream, &number.to_be_bytes()))
    };
    let settings = (1_u16..7, any::<u32>()).prop_map(|(id, value)| {
        let mut out = Vec::new();
        write_settings(&[(id, value)], &mut out);
        out
    });
    prop_oneof![
        4 => random,
        6 => field_section(&OK),
        6 => field_section(&POST),
        8 => content,
        8 => response,
        2 => number(kind::RST_STREAM, 0..=14),
        2 => number(kind::WINDOW_UPDATE, 0..=u32::MAX),
        2 => settings,
        1 => Just(frame(kind::PING, 0, 0, b"12345678")),
        1 => Just(frame(kind::SETTINGS, 1, 0, &[])),
        1 => Just(frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 5, 0, 0, 0, 0])),
    ]
}

fn any_frames() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any_frame(), 0..40).prop_map(|frames| {
        let mut octets = frame(kind::SETTINGS, 0, 0, &[]);
        octets.extend(frames.concat());
        octets
    })
}

/// Pieces of `octets` whose lengths go round in `lengths`.
fn pieces<'a>(octets: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let (mut rest, mut pieces) = (octets, Vec::new());
    for length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at(rest.len().min(*length));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// What one side made of all this: events, what it said, its error, and its open streams.
type Story<T> = (Vec<T>, Vec<u8>, Option<Http2Error>, usize);

fn client_story(pieces: &[&[u8]]) -> Story<(u32, End)> {
    let mut client = Client::new(Method::Post);
    for token in 0..4 {
        client.request(&[1; 40], token).unwrap();
    }
    client.http2.cancel(1, &mut client.out);
    let error = pieces.iter().find_map(|piece| client.receive(piece).err());
    (client.ends, client.out, error, client.http2.open_streams())
}

fn server_story(pieces: &[&[u8]]) -> Story<Request> {
    let mut server = Server::new();
    server.receive(CLIENT_PREFACE).unwrap();
    let error = pieces.iter().find_map(|piece| server.receive(piece).err());
    (
        server.requests,
        server.out,
        error,
        server.http2.open_streams(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_split_gives_a_client_the_same_events(
        octets in any_frames(),
        lengths in prop::collection::vec(1_usize..60, 1..8),
    ) {
        let whole = client_story(&[&octets]);
        prop_assert_eq!(client_story(&pieces(&octets, &lengths)), whole);
    }

    #[test]
    fn any_split_gives_a_server_the_same_events(
        octets in any_frames(),
        lengths in prop::collection::vec(1_usize..60, 1..8),
    ) {
        let whole = server_story(&[&octets]);
        prop_assert_eq!(server_story(&pieces(&octets, &lengths)), whole);
    }

    #[test]
    fn each_token_comes_back_at_most_once_unless_late(octets in any_frames()) {
        let (ends, _, error, open) = client_story(&[&octets]);
        for token in 0..4 {
            let found = ends.iter().filter(|(ended, _)| *ended == token);
            let is_late = |(_, end): &(u32, End)| *end == End::Late;
            prop_assert!(found.clone().count() <= 1, "{ends:?}");
            prop_assert!(found.clone().all(|end| is_late(end) == (token == 1)));
        }
        let ended = ends.iter().filter(|(token, _)| *token != 1).count();
        prop_assert!(error.is_some() || ended + open == 3, "{ends:?} and {open} open");
    }

    #[test]
    fn random_octets_break_neither_side(octets in prop::collection::vec(any::<u8>(), 0..300)) {
        client_story(&[&octets]);
        server_story(&[&octets]);
        let mut server = Server::new();
        let _ = server.receive(&octets);
    }

    #[test]
    fn flipped_bits_break_neither_side(
        octets in any_frames(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..8), 1..20),
    ) {
        let mut octets = octets;
        for (index, bit) in flips {
            *index.get_mut(&mut octets) ^= 1 << bit;
        }
        client_story(&[&octets]);
        server_story(&[&octets]);
    }
}
