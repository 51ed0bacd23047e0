//! An HTTP/2 server that answers what it gets, fed by a client in pieces of any length.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::http2::{CLIENT_PREFACE, ErrorCode, Http2Error, Http2Server, Http2ServerOptions};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Debug, Default, PartialEq)]
struct Story {
    requests: Vec<(u32, Result<Vec<u8>, u16>)>,
    error: Option<Http2Error>,
    out: Vec<u8>,
}

/// Answers at once, `late` by a call, or never.
fn story(
    options: &Arc<Http2ServerOptions>,
    setting: u8,
    pieces: &mut dyn Iterator<Item = &[u8]>,
) -> Story {
    let mut story = Story::default();
    let mut server = Http2Server::new(options.clone(), &mut story.out);
    for piece in pieces {
        let first = story.requests.len();
        let requests = &mut story.requests;
        let handled = server.handle_bytes(piece, &mut story.out, |stream, request| {
            requests.push((stream, request.map(|query| query.message.to_vec())));
        });
        if let Err(error) = handled {
            story.error = Some(error);
            break;
        }
        if setting & 8 != 0 {
            continue;
        }
        for (stream, request) in &story.requests[first..] {
            let _ = match (request, stream % 5) {
                (Ok(_), 0) => {
                    server.reset_stream(*stream, ErrorCode::CANCEL, &mut story.out);
                    Ok(())
                }
                (Ok(message), _) => server.respond(*stream, message, Some(5), &mut story.out),
                (Err(status), _) => server.respond_status(*stream, *status, &mut story.out),
            };
        }
        assert!(server.queued_octets() <= options.queued_octets_max + 65_535);
    }
    story
}

fuzz_target!(|input: &[u8]| {
    let Some(([setting, length], octets)) = input.split_first_chunk() else {
        return;
    };
    let mut options = Http2ServerOptions {
        streams_max: 8,
        ..Http2ServerOptions::default()
    };
    if setting & 2 != 0 {
        options.http2.stream_window_octets = 50;
        options.http2.table_octets = 200;
    }
    let options = Arc::new(options);
    let mut frames = Vec::new();
    if setting & 4 == 0 {
        frames.extend_from_slice(CLIENT_PREFACE);
        frames.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    }
    frames.extend_from_slice(octets);
    let whole = story(&options, *setting, &mut std::iter::once(&frames[..]));
    let cut = story(
        &options,
        *setting,
        &mut frames.chunks(usize::from(*length).max(1)),
    );
    let streams: BTreeSet<u32> = whole.requests.iter().map(|(stream, _)| *stream).collect();
    assert_eq!(streams.len(), whole.requests.len(), "each request once");
    if setting & 8 != 0 {
        // Answers change what later frames mean; without them the split makes no difference.
        assert_eq!(whole, cut, "the same events whatever the split");
    }
});
