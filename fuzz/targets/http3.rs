//! Whole streams of HTTP/3 messages, and unidirectional streams in pieces of any length.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::http3::request::{self, Request};
use proto::http3::response::{self, Response};
use proto::http3::{Content, ErrorCode, PeerStreams, Role, StreamEnd, UniStep};

fn check_content(content: &Content, stream: &[u8]) {
    let octets = match content {
        Content::At(place) => stream[place.clone()].len(),
        Content::Joined(octets) => octets.len(),
    };
    assert!((1..=65_535).contains(&octets));
}

fn messages(stream: &[u8]) {
    let mut scratch = Vec::new();
    let whole = response::parse(stream, &mut scratch);
    if let Ok(Response::Message(content)) = &whole {
        check_content(content, stream);
    }
    if let (Ok(Response::Status(status)), Ok(start)) =
        (&whole, response::parse_start(stream, &mut scratch))
    {
        assert_eq!(start, Response::Status(*status));
    }
    if let Ok(Request::Query { message, .. }) = request::parse(stream, "/dns-query", &mut scratch)
    {
        check_content(&message, stream);
    }
}

/// Three streams of a peer, whose octets come in turns.
fn streams(role: Role, octets: &[u8], length: usize) -> Result<Vec<UniStep>, ErrorCode> {
    let mut streams = PeerStreams::new(role);
    let mut steps = Vec::new();
    for (id, stream) in octets.chunks(octets.len().div_ceil(3).max(1)).enumerate() {
        for piece in stream.chunks(length) {
            let step = streams.handle_octets(id as u64, piece, StreamEnd::Open);
            match step.map_err(|error| error.code)? {
                UniStep::None => {}
                step => steps.push(step),
            }
        }
    }
    Ok(steps)
}

fuzz_target!(|input: &[u8]| {
    let Some((&length, octets)) = input.split_first() else {
        return;
    };
    messages(octets);
    let length = usize::from(length).max(1);
    for role in [Role::Client, Role::Server] {
        for prefix in [&[][..], &[0x00, 0x04, 0x00]] {
            let stream = [prefix, octets].concat();
            // Whether one piece holds two GOAWAYs depends on the split, so only errors compare.
            let single = streams(role, &stream, 1).err();
            assert_eq!(streams(role, &stream, length).err(), single);
        }
    }
});
