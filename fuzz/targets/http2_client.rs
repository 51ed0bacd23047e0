//! An HTTP/2 client with open and cancelled requests, fed by a peer in pieces of any length.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::doh::{DohRequest, Method};
use proto::exchange::ExchangeEnd;
use proto::http2::{Http2Client, Http2Error, Http2Options};
use std::sync::{Arc, LazyLock};

static REQUESTS: LazyLock<[Arc<DohRequest>; 2]> = LazyLock::new(|| {
    [Method::Get, Method::Post].map(|method| {
        let request = DohRequest::new(method, "https://dns.example/dns-query", &[]);
        Arc::new(request.expect("the URI is valid"))
    })
});

/// Requests at the start; their tokens count from 0.
const REQUESTS_FIRST: u32 = 6;

#[derive(Debug, Default, PartialEq)]
struct Story {
    ends: Vec<(u32, bool)>,
    out: Vec<u8>,
    error: Option<Http2Error>,
    open: usize,
}

fn story(options: &Http2Options, method: u8, pieces: &mut dyn Iterator<Item = &[u8]>) -> Story {
    let mut story = Story::default();
    let request = REQUESTS[usize::from(method % 2)].clone();
    let mut client = Http2Client::new(request, options, &mut story.out);
    for token in 0..REQUESTS_FIRST {
        let sent = client.request(&[7; 40], token, &mut story.out);
        assert!(sent.is_ok());
    }
    client.cancel(1, &mut story.out);
    client.cancel(2, &mut story.out);
    for piece in pieces {
        let ends = &mut story.ends;
        let handled = client.handle_bytes(piece, &mut story.out, |token, end| {
            ends.push((token, end == ExchangeEnd::Late));
        });
        if let Err(error) = handled {
            story.error = Some(error);
            break;
        }
    }
    story.open = client.open_streams();
    story
}

fuzz_target!(|input: &[u8]| {
    let Some(([setting, length], octets)) = input.split_first_chunk() else {
        return;
    };
    let mut options = Http2Options::default();
    if setting & 2 != 0 {
        options.stream_window_octets = 50;
        options.table_octets = 200;
    }
    // A SETTINGS frame in front, or hardly anything gets further.
    let mut frames = Vec::new();
    if setting & 4 == 0 {
        frames.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    }
    frames.extend_from_slice(octets);
    let whole = story(&options, *setting, &mut std::iter::once(&frames[..]));
    let length = usize::from(*length).max(1);
    let cut = story(&options, *setting, &mut frames.chunks(length));
    assert_eq!(whole, cut, "the same events whatever the split");
    for token in 0..REQUESTS_FIRST {
        let ends: Vec<bool> = { whole.ends.iter() }
            .filter(|(ended, _)| *ended == token)
            .map(|(_, is_late)| *is_late)
            .collect();
        let is_cancelled = matches!(token, 1 | 2);
        assert!(
            ends.is_empty() || ends == [is_cancelled],
            "each token at most once"
        );
    }
    if whole.error.is_none() {
        let ended = whole.ends.iter().filter(|(_, is_late)| !is_late).count();
        assert_eq!(
            ended + whole.open,
            REQUESTS_FIRST as usize - 2,
            "nobody is lost"
        );
    }
});
