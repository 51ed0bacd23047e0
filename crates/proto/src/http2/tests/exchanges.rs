//! Whole exchanges of our client with our server.

use super::*;
use crate::http2::frame::{flag, setting};

/// Messages of several lengths.
fn messages(number: usize) -> Vec<Vec<u8>> {
    (0..number)
        .map(|index| {
            (0..20 + index * 7 % 50)
                .map(|at| (at + index) as u8)
                .collect()
        })
        .collect()
}

#[test]
fn every_message_comes_back_to_its_token_whatever_the_split() {
    for method in [Method::Get, Method::Post] {
        for chunk_octets in [1, 7, 100, 100_000] {
            let (mut client, mut server) = (Client::new(method), Server::new());
            let messages = messages(60);
            for (token, message) in messages.iter().enumerate() {
                client.request(message, token as u32).unwrap();
            }
            exchange(&mut client, &mut server, chunk_octets, Some(60));
            let ends = client.take_ends();
            assert_eq!(ends.len(), messages.len());
            for (token, end) in ends {
                assert_eq!(end, End::Message(reversed(&messages[token as usize])));
            }
            assert_eq!(
                (client.http2.open_streams(), server.http2.open_streams()),
                (0, 0)
            );
        }
    }
}

#[test]
fn from_the_second_on_fields_are_one_octet_each() {
    let mut client = Client::settled(&[]);
    client.request(&[1; 40], 0).unwrap();
    client.request(&[2; 41], 1).unwrap();
    client.take_frames();
    client.request(&[3; 40], 2).unwrap();
    let frames = client.take_frames();
    assert_eq!(frames.len(), 2);
    // :method, :scheme, :authority, :path, accept, content-type, content-length.
    assert_eq!(frames[0].payload.len(), 7);
    assert!(frames[0].payload.iter().all(|octet| octet & 0x80 != 0));
    assert_eq!(
        (frames[1].flags, frames[1].payload.len()),
        (flag::END_STREAM, 40)
    );
}

#[test]
fn small_windows_delay_octets_and_lose_none() {
    let small = Http2Options {
        stream_window_octets: 10,
        ..Http2Options::default()
    };
    let mut client = Client::with(Method::Post, &small);
    let mut server = Server::with(Http2ServerOptions {
        http2: small,
        ..Http2ServerOptions::default()
    });
    let messages = messages(50);
    let mut ended = Vec::new();
    for (token, message) in messages.iter().enumerate() {
        while client.request(message, token as u32).is_err() {
            exchange(&mut client, &mut server, 33, None);
        }
    }
    exchange(&mut client, &mut server, 33, None);
    ended.extend(client.take_ends());
    ended.sort_by_key(|(token, _)| *token);
    let expected = messages
        .iter()
        .map(|message| End::Message(reversed(message)));
    let found: Vec<End> = ended.into_iter().map(|(_, end)| end).collect();
    assert_eq!(found, expected.collect::<Vec<_>>());
    assert_eq!(server.http2.queued_octets(), 0);
}

#[test]
fn longest_message_goes_both_ways() {
    let longest: Vec<u8> = (0..65_535_u32).map(|at| at as u8).collect();
    let (mut client, mut server) = (Client::new(Method::Post), Server::new());
    for token in 0..40 {
        while client.request(&longest, token).is_err() {
            exchange(&mut client, &mut server, 5_000, Some(1));
        }
    }
    exchange(&mut client, &mut server, 5_000, Some(1));
    let ends = client.take_ends();
    assert_eq!(ends.len(), 40);
    let expected = End::Message(reversed(&longest));
    assert!(ends.iter().all(|(_, end)| *end == expected));
}

#[test]
fn message_in_one_frame_is_handed_out_in_place() {
    let mut client = Client::settled(&[]);
    client.request(&[7; 30], 1).unwrap();
    let bytes = [headers(1, false, &OK), data(1, true, &[8; 50])].concat();
    let mut in_place = Vec::new();
    let progress = client
        .http2
        .handle_bytes(&bytes, &mut client.out, |_, end| {
            if let ExchangeEnd::Message(octets) = end {
                in_place.push(bytes.as_ptr_range().contains(&octets.as_ptr()));
            }
        });
    assert_eq!(
        (progress, in_place),
        (Ok(Continuation::Continues), vec![true])
    );
}

#[test]
fn response_with_the_fields_of_the_one_before_is_judged_by_its_own_message() {
    let mut client = Client::settled(&[]);
    let fields = [OK[0], OK[1], ("content-length", "50")];
    let lengths = [50, 50, 40, 50, 0, 51, 50];
    let mut bytes = Vec::new();
    for (token, octets) in (0..).zip(lengths) {
        client.request(&[7; 30], token).unwrap();
        let body = vec![token as u8; octets];
        bytes.extend(whole_response(2 * token + 1, &fields, &body));
    }
    client.http2.cancel(3, &mut client.out);
    client.receive(&bytes).unwrap();
    let expected = (0..).zip(lengths).map(|(token, octets)| {
        let end = match octets {
            _ if token == 3 => End::Late,
            50 => End::Message(vec![token as u8; 50]),
            _ => End::Malformed,
        };
        (token, end)
    });
    assert_eq!(client.take_ends(), expected.collect::<Vec<_>>());
}

#[test]
fn block_that_refers_to_the_table_means_what_the_connection_has_in_it() {
    // :status: 200, and content-type with an entry of the table, or into the table.
    let entry = |media_type: &str| {
        let mut block = vec![0x88, 0x5f, media_type.len() as u8];
        block.extend_from_slice(media_type.as_bytes());
        block
    };
    let reference = [0x88, 0xbe];
    let plain = block(&OK);
    let cases = [
        ("application/dns-message", End::Message(vec![8; 50])),
        ("text/html", End::MediaType(MediaType::Other)),
        ("application/dns-message", End::Message(vec![8; 50])),
    ];
    for (media_type, expected) in cases {
        let mut client = Client::settled(&[]);
        let blocks = [&entry(media_type)[..], &reference, &reference, &plain];
        for (token, block) in (0..).zip(blocks) {
            client.request(&[7; 30], token).unwrap();
            let stream = 2 * token + 1;
            let headers = frame(kind::HEADERS, flag::END_HEADERS, stream, block);
            let bytes = [headers, data(stream, true, &[8; 50])].concat();
            client.receive(&bytes).unwrap();
        }
        let ends: Vec<End> = client.take_ends().into_iter().map(|(_, end)| end).collect();
        assert!(ends[..3].iter().all(|end| *end == expected), "{ends:?}");
        assert_eq!(ends[3], End::Message(vec![8; 50]));
    }
}

#[test]
fn request_with_the_fields_of_the_one_before_obeys_the_table_and_the_windows() {
    let mut client = Client::settled(&[]);
    for token in 0..3 {
        client.request(&[7; 30], token).unwrap();
    }
    let mut server = Server::new();
    let mut known = client.take_frames();
    client
        .receive(&settings(&[(setting::MAX_FRAME_SIZE, 1 << 14)]))
        .unwrap();
    // A table of no size is said so once, and nothing enters it.
    client
        .receive(&settings(&[(setting::HEADER_TABLE_SIZE, 0)]))
        .unwrap();
    for token in 3..6 {
        client.request(&[7; 30], token).unwrap();
    }
    known.extend(client.take_frames());
    let blocks = known.iter().filter(|frame| frame.kind == kind::HEADERS);
    let octets: Vec<usize> = blocks.map(|frame| frame.payload.len()).collect();
    assert_eq!(octets[1..3], [7, 7]);
    assert!(octets[3] == octets[4] + 1 && octets[4] == octets[5] && octets[5] > 20);
    server.receive(CLIENT_PREFACE).unwrap();
    server.receive(&settings(&[])).unwrap();
    for frame in known {
        let octets = super::frame(frame.kind, frame.flags, frame.stream, &frame.payload);
        server.receive(&octets).unwrap();
    }
    let requests = server.take_requests();
    assert_eq!(requests.len(), 6);
    let expected = (Method::Post, vec![7; 30]);
    assert!(
        requests
            .iter()
            .all(|(_, request)| request == &Ok(expected.clone()))
    );
}

#[test]
fn nothing_is_allocated_for_a_query_after_warm_up() {
    for method in [Method::Get, Method::Post] {
        let mut out = Vec::with_capacity(1 << 16);
        let mut replies = Vec::with_capacity(1 << 16);
        let options = Http2Options::default();
        let mut client = Http2Client::new(doh_request(method), &options, &mut out);
        let mut server = Http2Server::new(Arc::new(Http2ServerOptions::default()), &mut replies);
        let mut requests = Vec::with_capacity(64);
        let mut round = |rounds: usize| {
            for token in 0..rounds * 8 {
                let message = [9; 60];
                client
                    .request(&message[..30 + token % 30], token as u32, &mut out)
                    .unwrap();
                if token % 8 != 7 {
                    continue;
                }
                let read = server.handle_bytes(&out, &mut replies, |id, query| {
                    requests.push((id, query.unwrap().message[0]));
                });
                read.unwrap();
                out.clear();
                for (id, octet) in requests.drain(..) {
                    let response = [octet; 90];
                    server
                        .respond(id, &response, Some(300), &mut replies)
                        .unwrap();
                }
                let mut ended = 0;
                client
                    .handle_bytes(&replies, &mut out, |_, _| ended += 1)
                    .unwrap();
                replies.clear();
                assert_eq!(ended, 8);
            }
        };
        round(20);
        let counted = allocation_counter::measure(|| round(100));
        assert_eq!(counted.count_total, 0, "{method}");
    }
}

#[test]
fn idle_client_holds_less_than_a_kibibyte() {
    let mut server = Server::new();
    let mut client = Client::with(Method::Post, &Http2Options::default());
    client.http2.request(&[5; 40], 1, &mut client.out).unwrap();
    client.http2.request(&[5; 41], 2, &mut client.out).unwrap();
    exchange(&mut client, &mut server, 1_000, Some(5));
    assert_eq!(client.take_ends().len(), 2);
    // All connections share the request.
    let _request = Arc::clone(client.http2.shared_request());
    let freed = allocation_counter::measure(|| drop(client.http2));
    let held = size_of::<Http2Client>() as i64 - freed.bytes_current;
    println!("{held} bytes, {} of them itself", size_of::<Http2Client>());
    assert!(held < 1_024, "{held} bytes");
}
