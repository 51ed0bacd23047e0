//! Clauses of RFC 9113 about the connection, each on the side that it binds.

use super::frame::{flag, setting};
use super::*;

const ACK: u8 = flag::ACK;

/// The octets end both a client's and a server's connection with this code, sent in a GOAWAY.
fn check_connection_error(octets: &[u8], code: ErrorCode) {
    let mut client = asking();
    let error = client.receive(octets).unwrap_err();
    assert_eq!(error.code, code, "client: {error}");
    let goaway = client.take_frames().pop().unwrap();
    assert_eq!(
        (goaway.kind, code_of(&goaway.payload[4..8])),
        (kind::GOAWAY, code)
    );
    assert_eq!(client.receive(&[]), Err(error), "it stays broken");
    assert_eq!(client.request(&[1; 20], 10), Err(Blocked::Ending));
    let mut server = Server::settled(&[]);
    server.receive(&headers(1, false, &POST)).unwrap();
    let error = server.receive(octets).unwrap_err();
    assert_eq!(error.code, code, "server: {error}");
    let goaway = server.take_frames().pop().unwrap();
    assert_eq!(
        (goaway.kind, code_of(&goaway.payload[4..8])),
        (kind::GOAWAY, code)
    );
    assert_eq!(goaway.payload[..4], [0, 0, 0, 1], "the last stream");
    assert_eq!(server.receive(&[]), Err(error), "it stays broken");
}

#[test]
fn section_3_4_client_begins_with_preface_and_settings() {
    let client = Client::new(Method::Post);
    let rest = client.out.strip_prefix(CLIENT_PREFACE).unwrap();
    let frames = frames(rest);
    assert_eq!((frames[0].kind, frames[0].stream), (kind::SETTINGS, 0));
    let expected = [(1, 0), (2, 0), (4, 1 << 17)];
    assert_eq!(settings(&expected)[9..], frames[0].payload);
    assert_eq!(frames[1].payload, ((1_u32 << 20) - 65_535).to_be_bytes());
}

#[test]
fn section_3_4_server_begins_with_settings_and_wants_the_preface() {
    let mut server = Server::new();
    let frames = server.take_frames();
    assert_eq!((frames[0].kind, frames[0].flags), (kind::SETTINGS, 0));
    let error = server.receive(b"GET / HTTP/1.1\r\n").unwrap_err();
    assert_eq!(error.code, ErrorCode::PROTOCOL_ERROR);
    let mut server = Server::new();
    assert!(server.receive(&CLIENT_PREFACE[..10]).is_ok());
    assert!(server.receive(&CLIENT_PREFACE[9..]).is_err());
}

#[test]
fn section_3_4_first_frame_has_to_be_settings() {
    for octets in [
        frame(kind::PING, 0, 0, &[0; 8]),
        frame(kind::SETTINGS, ACK, 0, &[]),
        headers(1, true, &OK),
    ] {
        let error = Client::new(Method::Post).receive(&octets).unwrap_err();
        assert_eq!(error.code, ErrorCode::PROTOCOL_ERROR);
        let mut server = Server::new();
        let octets = [&CLIENT_PREFACE[..], &octets].concat();
        assert_eq!(
            server.receive(&octets).unwrap_err().code,
            ErrorCode::PROTOCOL_ERROR
        );
    }
}

#[test]
fn section_4_2_frame_above_16384_octets_is_an_error_before_it_is_whole() {
    check_connection_error(&[0, 0x40, 1, 0, 0, 0, 0, 0, 1], ErrorCode::FRAME_SIZE_ERROR);
    check_connection_error(
        &[0xff, 0xff, 0xff, 99, 0, 0, 0, 0, 0],
        ErrorCode::FRAME_SIZE_ERROR,
    );
}

#[test]
fn section_4_3_field_block_that_cannot_be_decoded_is_an_error() {
    let octets = frame(kind::HEADERS, flag::END_HEADERS, 1, &[0xff, 0x80, 0x80]);
    check_connection_error(&octets, ErrorCode::COMPRESSION_ERROR);
}

#[test]
fn section_4_3_field_blocks_of_ended_streams_still_change_the_table() {
    let mut client = asking();
    client.http2.cancel(9, &mut client.out);
    // content-type enters the peer's table on a cancelled stream, and is used on the next.
    let inserting = [&[0x88, 0x5f, 23][..], OK[1].1.as_bytes()].concat();
    client
        .receive(&frame(kind::HEADERS, flag::END_HEADERS, 1, &inserting))
        .unwrap();
    client.request(&[1; 20], 10).unwrap();
    client
        .receive(&frame(kind::HEADERS, flag::END_HEADERS, 3, &[0x88, 0xbe]))
        .unwrap();
    client.receive(&data(3, true, b"m")).unwrap();
    assert_eq!(client.take_ends(), [(10, End::Message(b"m".to_vec()))]);
}

#[test]
fn section_5_1_frames_on_idle_streams_are_errors() {
    for octets in [
        data(7, true, b"m"),
        reset(7, ErrorCode::CANCEL),
        window_update(7, 1),
    ] {
        check_connection_error(&octets, ErrorCode::PROTOCOL_ERROR);
    }
    let error = asking().receive(&headers(7, true, &OK)).unwrap_err();
    assert_eq!(error.code, ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn section_5_1_frames_on_ended_streams_do_no_harm() {
    let mut client = asking();
    let response = [headers(1, false, &OK), data(1, true, b"m")].concat();
    client.receive(&response).unwrap();
    assert_eq!(client.take_ends().len(), 1);
    for octets in [reset(1, ErrorCode::NO_ERROR), window_update(1, 5), response] {
        assert_eq!(client.receive(&octets), Ok(Continuation::Continues));
    }
    assert_eq!(client.take_ends(), []);
}

#[test]
fn section_5_1_request_that_goes_on_after_its_end_is_reset() {
    for octets in [data(1, false, b"m"), headers(1, true, &[("a", "b")])] {
        let mut server = Server::settled(&[]);
        server.receive(&headers(1, false, &POST)).unwrap();
        server
            .receive(&[data(1, true, b"message"), octets].concat())
            .unwrap();
        assert_eq!(server.take_requests().len(), 1);
        assert_eq!(
            resets(&server.take_frames()),
            [(1, ErrorCode::STREAM_CLOSED)]
        );
        let answered = server.http2.respond(1, b"m", None, &mut server.out);
        assert_eq!((answered, server.out.len()), (Err(RespondError::Closed), 0));
    }
}

#[test]
fn section_5_1_1_streams_have_odd_numbers_that_rise() {
    let mut client = Client::settled(&[]);
    for token in 0..3 {
        client.request(&[1; 20], token).unwrap();
    }
    let frames = client.take_frames();
    let streams: Vec<u32> = frames.iter().map(|frame| frame.stream).collect();
    assert_eq!(streams, [1, 1, 3, 3, 5, 5]);
    let error = Server::settled(&[])
        .receive(&headers(2, true, &POST))
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn section_5_1_2_streams_stay_within_the_peers_limit() {
    let mut client = Client::new(Method::Post);
    assert_eq!(
        client.http2.streams_free(),
        100,
        "before the settings are known"
    );
    client
        .receive(&settings(&[(setting::MAX_CONCURRENT_STREAMS, 2)]))
        .unwrap();
    client.request(&[1; 20], 0).unwrap();
    client.request(&[1; 20], 1).unwrap();
    assert_eq!(client.request(&[1; 20], 2), Err(Blocked::Streams));
    assert_eq!(client.http2.streams_free(), 0);
    client
        .receive(&headers(1, true, &[(":status", "500")]))
        .unwrap();
    assert_eq!(client.http2.streams_free(), 1);
    client.request(&[1; 20], 2).unwrap();
    client
        .receive(&settings(&[(setting::MAX_CONCURRENT_STREAMS, 0)]))
        .unwrap();
    assert_eq!(client.http2.open_streams(), 2, "open ones are not touched");
    client
        .receive(&settings(&[(setting::MAX_CONCURRENT_STREAMS, u32::MAX)]))
        .unwrap();
    assert_eq!(client.http2.streams_free(), u32::MAX - 2);
}

#[test]
fn section_5_1_2_server_refuses_streams_above_its_limit() {
    let mut server = Server::with(Http2ServerOptions {
        streams_max: 1,
        ..Http2ServerOptions::default()
    });
    server
        .receive(&[&CLIENT_PREFACE[..], &settings(&[])].concat())
        .unwrap();
    server.out.clear();
    server
        .receive(&[headers(1, false, &POST), headers(3, false, &POST)].concat())
        .unwrap();
    assert_eq!(
        resets(&server.take_frames()),
        [(3, ErrorCode::REFUSED_STREAM)]
    );
    assert_eq!(server.http2.counts().refused, 1);
}

#[test]
fn requests_that_stay_unfinished_have_a_bound_on_a_connection_and_on_all() {
    let options = Http2ServerOptions {
        collected_octets_max: 3_000,
        collected: SharedOctets::new(5_000),
        ..Http2ServerOptions::default()
    };
    let begun = [&CLIENT_PREFACE[..], &settings(&[])].concat();
    let mut servers = [(); 2].map(|()| Server::with(options.clone()));
    for (server, open) in servers.iter_mut().zip([3, 2]) {
        server.receive(&begun).unwrap();
        server.out.clear();
        for stream in [1, 3, 5, 7] {
            let part = [
                headers(stream, false, &POST),
                data(stream, false, &[0; 1_000]),
            ];
            server.receive(&part.concat()).unwrap();
        }
        assert_eq!(server.http2.open_streams(), open);
        assert_eq!(server.http2.counts().refused, 4 - open as u64);
        let refused = resets(&server.take_frames());
        let codes = refused.iter().map(|(_, code)| *code);
        assert!(codes.eq((open..4).map(|_| ErrorCode::ENHANCE_YOUR_CALM)));
    }
    assert_eq!(options.collected.used(), 5_000);
    // One that becomes whole, one that is reset, and the end of a connection make room.
    let [first, second] = servers;
    drop(first);
    assert_eq!(options.collected.used(), 2_000);
    let mut second = second;
    second.receive(&reset(1, ErrorCode::CANCEL)).unwrap();
    assert_eq!(options.collected.used(), 1_000);
    second.receive(&data(3, true, &[])).unwrap();
    assert_eq!(options.collected.used(), 0);
    assert_eq!(second.take_requests().len(), 1);
}

#[test]
fn section_6_1_padding_is_dropped_and_counts_for_the_windows() {
    let mut client = asking();
    client.receive(&headers(1, false, &OK)).unwrap();
    let padded = [&[200][..], b"message", &[0; 200]].concat();
    client
        .receive(&frame(
            kind::DATA,
            flag::PADDED | flag::END_STREAM,
            1,
            &padded,
        ))
        .unwrap();
    assert_eq!(client.take_ends(), [(9, End::Message(b"message".to_vec()))]);
    // The connection's window of 1 MiB is half used by padding alone.
    let padding = [&[255][..], &[0; 255]].concat();
    client.request(&[1; 20], 10).unwrap();
    client.receive(&headers(3, false, &OK)).unwrap();
    client.out.clear();
    let mut octets = 208;
    while octets < 1 << 19 {
        client
            .receive(&frame(kind::DATA, flag::PADDED, 3, &padding))
            .unwrap();
        octets += 256;
    }
    let updates = client.take_frames();
    let connection: Vec<_> = updates.iter().filter(|frame| frame.stream == 0).collect();
    assert_eq!(connection.len(), 1);
    assert_eq!(connection[0].payload, (octets as u32).to_be_bytes());
    assert_eq!(
        updates.len() - 1,
        octets / (1 << 16),
        "and the stream's, half of 128 KiB each"
    );
}

#[test]
fn section_6_1_padding_longer_than_the_frame_is_an_error() {
    let octets = frame(kind::DATA, flag::PADDED, 1, &[5, 0, 0, 0, 0]);
    check_connection_error(&octets, ErrorCode::PROTOCOL_ERROR);
    let octets = frame(kind::DATA, flag::PADDED, 1, &[]);
    check_connection_error(&octets, ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn section_6_2_headers_have_padding_and_priority() {
    let mut client = asking();
    let fields = [&[3, 0, 0, 0, 0, 16][..], &block(&OK), &[0; 3]].concat();
    let flags = flag::PADDED | flag::PRIORITY | flag::END_HEADERS;
    client
        .receive(&frame(kind::HEADERS, flags, 1, &fields))
        .unwrap();
    client.receive(&data(1, true, b"m")).unwrap();
    assert_eq!(client.take_ends(), [(9, End::Message(b"m".to_vec()))]);
    let octets = frame(kind::HEADERS, flag::PRIORITY, 1, &[0; 4]);
    check_connection_error(&octets, ErrorCode::FRAME_SIZE_ERROR);
}

#[test]
fn section_6_3_priority_is_ignored_and_its_length_checked() {
    let mut client = asking();
    client
        .receive(&frame(kind::PRIORITY, 0, 99, &[0; 5]))
        .unwrap();
    assert!(client.out.is_empty(), "{:?}", client.out);
    check_connection_error(
        &frame(kind::PRIORITY, 0, 1, &[0; 4]),
        ErrorCode::FRAME_SIZE_ERROR,
    );
    check_connection_error(
        &frame(kind::PRIORITY, 0, 0, &[0; 5]),
        ErrorCode::PROTOCOL_ERROR,
    );
}

#[test]
fn section_6_4_reset_ends_the_exchange_with_its_code() {
    let mut client = asking();
    client
        .receive(&reset(1, ErrorCode::INTERNAL_ERROR))
        .unwrap();
    assert_eq!(client.take_ends(), [(9, End::Reset(2))]);
    check_connection_error(
        &frame(kind::RST_STREAM, 0, 1, &[0; 3]),
        ErrorCode::FRAME_SIZE_ERROR,
    );
    check_connection_error(&reset(0, ErrorCode::CANCEL), ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn section_8_7_refused_stream_was_not_processed() {
    let mut client = asking();
    client
        .receive(&reset(1, ErrorCode::REFUSED_STREAM))
        .unwrap();
    assert_eq!(client.take_ends(), [(9, End::NotProcessed)]);
}

#[test]
fn section_6_4_server_forgets_a_stream_that_is_reset() {
    let mut server = Server::settled(&[]);
    server
        .receive(&[headers(1, false, &POST), data(1, true, b"m")].concat())
        .unwrap();
    server.receive(&reset(1, ErrorCode::CANCEL)).unwrap();
    assert_eq!(
        (
            server.http2.open_streams(),
            server.http2.counts().resets_received
        ),
        (0, 1)
    );
    let answered = server.http2.respond(1, b"m", None, &mut server.out);
    assert_eq!((answered, server.out.len()), (Err(RespondError::Closed), 0));
}

#[test]
fn section_6_5_settings_are_acknowledged_and_checked() {
    let mut client = asking();
    client.receive(&settings(&[(99, 1)])).unwrap();
    let expected = frame(kind::SETTINGS, ACK, 0, &[]);
    assert_eq!(client.out, expected, "an unknown setting is ignored");
    let with = |id, value| settings(&[(id, value)]);
    let protocol = ErrorCode::PROTOCOL_ERROR;
    check_connection_error(&with(setting::ENABLE_PUSH, 2), protocol);
    check_connection_error(&with(setting::MAX_FRAME_SIZE, 16_383), protocol);
    check_connection_error(&with(setting::MAX_FRAME_SIZE, 1 << 24), protocol);
    let window = with(setting::INITIAL_WINDOW_SIZE, 1 << 31);
    check_connection_error(&window, ErrorCode::FLOW_CONTROL_ERROR);
    let size = ErrorCode::FRAME_SIZE_ERROR;
    check_connection_error(&frame(kind::SETTINGS, 0, 0, &[0; 5]), size);
    check_connection_error(&frame(kind::SETTINGS, ACK, 0, &[0; 6]), size);
    check_connection_error(&frame(kind::SETTINGS, 0, 1, &[]), protocol);
}

#[test]
fn section_6_5_2_client_is_not_told_to_push() {
    let error = asking()
        .receive(&settings(&[(setting::ENABLE_PUSH, 1)]))
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn section_6_6_push_is_refused() {
    check_connection_error(
        &frame(kind::PUSH_PROMISE, flag::END_HEADERS, 1, &[0, 0, 0, 2]),
        ErrorCode::PROTOCOL_ERROR,
    );
}

#[test]
fn section_6_7_ping_is_echoed_and_checked() {
    let mut client = asking();
    client
        .receive(&frame(kind::PING, 0, 0, b"12345678"))
        .unwrap();
    assert_eq!(client.out, frame(kind::PING, ACK, 0, b"12345678"));
    client.out.clear();
    client
        .receive(&frame(kind::PING, ACK, 0, b"12345678"))
        .unwrap();
    assert!(client.out.is_empty(), "{:?}", client.out);
    check_connection_error(
        &frame(kind::PING, 0, 0, &[0; 7]),
        ErrorCode::FRAME_SIZE_ERROR,
    );
    check_connection_error(&frame(kind::PING, 0, 1, &[0; 8]), ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn section_6_8_streams_above_the_last_were_not_processed_and_others_end() {
    let mut client = Client::settled(&[]);
    for token in 0..4 {
        client.request(&[1; 20], token).unwrap();
    }
    client.receive(&goaway(3, ErrorCode::NO_ERROR)).unwrap();
    assert_eq!(
        client.take_ends(),
        [(2, End::NotProcessed), (3, End::NotProcessed)]
    );
    assert!(client.http2.is_going_away());
    assert_eq!(client.http2.open_tokens(), [0, 1]);
    assert_eq!(client.http2.goaway_code(), Some(ErrorCode::NO_ERROR));
    assert_eq!(client.http2.streams_free(), 0);
    assert_eq!(client.request(&[1; 20], 4), Err(Blocked::Ending));
    let answer = |stream| [headers(stream, false, &OK), data(stream, true, b"m")].concat();
    assert_eq!(client.receive(&answer(1)), Ok(Continuation::Continues));
    assert_eq!(client.receive(&answer(3)), Ok(Continuation::Drained));
    let message = End::Message(b"m".to_vec());
    assert_eq!(client.take_ends(), [(0, message.clone()), (1, message)]);
    check_connection_error(
        &frame(kind::GOAWAY, 0, 0, &[0; 7]),
        ErrorCode::FRAME_SIZE_ERROR,
    );
    check_connection_error(
        &frame(kind::GOAWAY, 0, 1, &[0; 8]),
        ErrorCode::PROTOCOL_ERROR,
    );
}

#[test]
fn section_6_8_server_that_goes_away_answers_what_it_has_and_refuses_the_rest() {
    let mut server = Server::settled(&[]);
    server
        .receive(&[headers(1, false, &POST), data(1, true, b"m")].concat())
        .unwrap();
    server.http2.go_away(ErrorCode::NO_ERROR, &mut server.out);
    let later = [headers(3, false, &POST), data(3, true, b"m")].concat();
    assert_eq!(server.receive(&later), Ok(Continuation::Continues));
    server.answer_all(None);
    assert!(server.http2.is_drained());
    let frames = server.take_frames();
    assert_eq!(frames[0].payload[..4], [0, 0, 0, 1]);
    assert_eq!(resets(&frames), [(3, ErrorCode::REFUSED_STREAM)]);
    assert_eq!(
        frames.last().map(|frame| (frame.kind, frame.stream)),
        Some((kind::DATA, 1))
    );
}

#[test]
fn section_6_8_server_names_the_last_stream_that_it_processes() {
    let mut server = Server::settled(&[]);
    for stream in [1, 3, 5] {
        let request = [headers(stream, false, &POST), data(stream, true, b"m")].concat();
        server.receive(&request).unwrap();
    }
    let no_error = ErrorCode::NO_ERROR;
    server.http2.go_away_after(3, no_error, &mut server.out);
    assert_eq!(server.http2.open_streams(), 2);
    // A second one may name an earlier stream, and never a later one.
    server.http2.go_away(no_error, &mut server.out);
    let last = |frame: &OwnedFrame| frame.payload[..4].to_vec();
    let named: Vec<_> = server.take_frames().iter().map(last).collect();
    assert_eq!(named, [[0, 0, 0, 3], [0, 0, 0, 3]]);
    let answered = server.http2.respond(5, b"m", None, &mut server.out);
    assert_eq!(answered, Err(RespondError::Closed));
}

#[test]
fn section_6_8_client_says_goodbye_once() {
    let mut client = asking();
    client.http2.close(&mut client.out);
    client.http2.close(&mut client.out);
    assert_eq!(client.take_frames().len(), 1);
    assert_eq!(client.request(&[1; 20], 4), Err(Blocked::Ending));
    let answer = [headers(1, false, &OK), data(1, true, b"m")].concat();
    assert_eq!(client.receive(&answer), Ok(Continuation::Drained));
    assert_eq!(client.take_ends().len(), 1);
}

#[test]
fn section_6_9_content_waits_for_the_streams_window() {
    let mut client = Client::settled(&[(setting::INITIAL_WINDOW_SIZE, 15)]);
    client.request(b"0123456789abcdefghij", 0).unwrap();
    let frames = client.take_frames();
    assert_eq!(
        (frames[1].flags, &*frames[1].payload),
        (0, &b"0123456789abcde"[..])
    );
    assert_eq!(
        client.request(b"m", 1),
        Err(Blocked::Window),
        "one after the other"
    );
    client.receive(&window_update(1, 2)).unwrap();
    assert_eq!(client.take_frames()[0].payload, b"fg");
    client.receive(&window_update(1, 9)).unwrap();
    let frames = client.take_frames();
    assert_eq!(
        (frames[0].flags, &*frames[0].payload),
        (flag::END_STREAM, &b"hij"[..])
    );
    client.request(b"m", 1).unwrap();
}

#[test]
fn section_6_9_content_waits_for_the_connections_window() {
    let mut client = Client::settled(&[(setting::INITIAL_WINDOW_SIZE, 1 << 20)]);
    client.request(&[1; 65_000], 0).unwrap();
    client.request(&[2; 600], 1).unwrap();
    assert_eq!(client.request(&[3; 1], 2), Err(Blocked::Window));
    assert_eq!(client.http2.streams_free(), 0);
    client.take_frames();
    client.receive(&window_update(0, 64)).unwrap();
    assert_eq!(client.take_frames()[0].payload, [2; 64]);
    client.receive(&window_update(0, 10)).unwrap();
    let frames = client.take_frames();
    assert_eq!(
        (frames[0].flags, &*frames[0].payload),
        (flag::END_STREAM, &[2; 1][..])
    );
    client.request(&[3; 9], 2).unwrap();
}

#[test]
fn section_6_9_1_windows_have_limits() {
    let none = frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]);
    check_connection_error(&none, ErrorCode::PROTOCOL_ERROR);
    let overflow = window_update(0, (1 << 31) - 1);
    check_connection_error(&overflow, ErrorCode::FLOW_CONTROL_ERROR);
    let short = frame(kind::WINDOW_UPDATE, 0, 0, &[0; 3]);
    check_connection_error(&short, ErrorCode::FRAME_SIZE_ERROR);
    let mut client = asking();
    client.receive(&window_update(1, 0)).unwrap();
    assert_eq!(client.take_ends(), [(9, End::Malformed)]);
    assert_eq!(
        resets(&client.take_frames()),
        [(1, ErrorCode::PROTOCOL_ERROR)]
    );
    let mut server = Server::settled(&[]);
    server.receive(&headers(1, false, &POST)).unwrap();
    server.receive(&window_update(1, (1 << 31) - 1)).unwrap();
    assert_eq!(
        resets(&server.take_frames()),
        [(1, ErrorCode::FLOW_CONTROL_ERROR)]
    );
}

#[test]
fn section_6_9_2_initial_window_changes_open_streams_even_below_zero() {
    let mut client = Client::settled(&[(setting::INITIAL_WINDOW_SIZE, 15)]);
    client.request(&[1; 20], 0).unwrap();
    client.out.clear();
    client
        .receive(&settings(&[(setting::INITIAL_WINDOW_SIZE, 5)]))
        .unwrap();
    client.receive(&window_update(1, 10)).unwrap();
    assert!(
        client
            .take_frames()
            .iter()
            .all(|frame| frame.kind != kind::DATA)
    );
    client
        .receive(&settings(&[(setting::INITIAL_WINDOW_SIZE, 7)]))
        .unwrap();
    assert_eq!(client.take_frames()[1].payload, [1; 2]);
    let overflow = settings(&[(setting::INITIAL_WINDOW_SIZE, (1 << 31) - 1)]);
    client.receive(&window_update(1, 1)).unwrap();
    client.receive(&window_update(1, 1)).unwrap();
    assert_eq!(client.receive(&overflow), Ok(Continuation::Continues));
    assert_eq!(client.take_frames().pop().unwrap().flags, flag::END_STREAM);
}

#[test]
fn section_6_9_2_initial_window_that_makes_a_window_too_large_is_an_error() {
    let mut client = Client::settled(&[(setting::INITIAL_WINDOW_SIZE, 0)]);
    client.request(&[1; 20], 0).unwrap();
    let octets = settings(&[(setting::INITIAL_WINDOW_SIZE, (1 << 31) - 1)]);
    let mut server = Server::settled(&[]);
    server.receive(&headers(1, false, &POST)).unwrap();
    server.receive(&window_update(1, 1)).unwrap();
    let error = server.receive(&octets).unwrap_err();
    assert_eq!(error.code, ErrorCode::FLOW_CONTROL_ERROR);
}

#[test]
fn section_6_9_peer_that_ignores_our_windows_is_disconnected() {
    let mut client = Client::with(
        Method::Post,
        &Http2Options {
            stream_window_octets: 100,
            ..Http2Options::default()
        },
    );
    client
        .receive(&[settings(&[]), frame(kind::SETTINGS, ACK, 0, &[])].concat())
        .unwrap();
    client.request(&[1; 20], 0).unwrap();
    client.receive(&headers(1, false, &OK)).unwrap();
    let error = client.receive(&data(1, true, &[0; 101])).unwrap_err();
    assert_eq!(error.code, ErrorCode::FLOW_CONTROL_ERROR);
}

#[test]
fn section_6_10_field_block_in_several_frames_is_put_together() {
    let fields = block(&OK);
    let mut octets = frame(kind::HEADERS, 0, 1, &fields[..5]);
    octets.extend(frame(kind::CONTINUATION, 0, 1, &fields[5..20]));
    octets.extend(frame(
        kind::CONTINUATION,
        flag::END_HEADERS,
        1,
        &fields[20..],
    ));
    octets.extend(data(1, true, b"m"));
    let mut client = asking();
    client.receive(&octets).unwrap();
    assert_eq!(client.take_ends(), [(9, End::Message(b"m".to_vec()))]);
}

#[test]
fn section_6_10_nothing_may_come_between() {
    let start = frame(kind::HEADERS, 0, 1, &block(&OK));
    for octets in [
        frame(kind::PING, 0, 0, &[0; 8]),
        frame(kind::CONTINUATION, 0, 3, &[]),
        frame(99, 0, 0, &[]),
        data(1, true, b"m"),
    ] {
        let octets = [&start[..], &octets].concat();
        check_connection_error(&octets, ErrorCode::PROTOCOL_ERROR);
    }
    let alone = frame(kind::CONTINUATION, flag::END_HEADERS, 1, &[]);
    check_connection_error(&alone, ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn section_6_10_long_path_is_sent_in_several_frames() {
    let mut client = Client::new(Method::Get);
    let mut server = Server::new();
    client.request(&[7; 30_000], 3).unwrap();
    let kinds: Vec<u8> = client
        .take_frames()
        .iter()
        .map(|frame| frame.kind)
        .collect();
    assert_eq!(
        kinds[2..],
        [kind::HEADERS, kind::CONTINUATION, kind::CONTINUATION]
    );
    // Our own server takes 16,384 octets of fields and no more.
    let mut client = Client::new(Method::Get);
    client.request(&[7; 12_000], 3).unwrap();
    exchange(&mut client, &mut server, 1_000, None);
    assert_eq!(client.take_ends(), [(3, End::Message(vec![7; 12_000]))]);
}

#[test]
fn section_5_4_2_cancelled_exchange_is_reported_when_its_message_comes_late() {
    let mut client = Client::settled(&[]);
    for token in 0..4 {
        client.request(&[1; 20], token).unwrap();
    }
    client.take_frames();
    client.receive(&headers(3, false, &OK)).unwrap();
    for token in 0..3 {
        assert!(client.http2.cancel(token, &mut client.out));
        assert!(!client.http2.cancel(token, &mut client.out), "once");
    }
    let expected: Vec<_> = [1, 3, 5].map(|stream| (stream, ErrorCode::CANCEL)).into();
    assert_eq!(resets(&client.take_frames()), expected);
    assert_eq!(client.http2.open_streams(), 1);
    let octets = [
        headers(1, false, &OK),
        data(1, false, b"mess"),
        data(1, true, b"age"),
        data(3, true, b"message"),
        headers(5, true, &[(":status", "503")]),
        headers(7, false, &OK),
        data(7, true, b"message"),
    ];
    client.receive(&octets.concat()).unwrap();
    let message = End::Message(b"message".to_vec());
    assert_eq!(
        client.take_ends(),
        [(0, End::Late), (1, End::Late), (3, message)]
    );
    client.receive(&octets[..4].concat()).unwrap();
    assert_eq!(client.take_ends(), [], "once");
}

#[test]
fn section_5_4_2_cancelled_exchanges_are_remembered_up_to_a_limit() {
    let mut client = Client::settled(&[]);
    for token in 0..130 {
        client.request(&[1; 20], token).unwrap();
    }
    for token in 0..130 {
        client.http2.cancel(token, &mut client.out);
    }
    assert_eq!(client.http2.forgotten(), 2);
    let answer = |stream| [headers(stream, false, &OK), data(stream, true, b"m")].concat();
    client.receive(&[answer(3), answer(5)].concat()).unwrap();
    assert_eq!(client.take_ends(), [(2, End::Late)]);
}

#[test]
fn section_10_5_floods_end_the_connection() {
    let ping = frame(kind::PING, 0, 0, &[0; 8]);
    for octets in [
        ping.clone(),
        frame(kind::SETTINGS, 0, 0, &[]),
        frame(kind::PRIORITY, 0, 1, &[0; 5]),
        frame(99, 0, 0, &[]),
        window_update(0, 1),
        data(1, false, &[]),
    ] {
        let start = headers(1, false, &OK);
        let mut client = asking();
        client.receive(&start).unwrap();
        let error = client.receive(&octets.repeat(10_010)).unwrap_err();
        assert_eq!(error.code, ErrorCode::ENHANCE_YOUR_CALM);
        let mut server = Server::settled(&[]);
        server.receive(&headers(1, false, &POST)).unwrap();
        let error = server.receive(&octets.repeat(10_010)).unwrap_err();
        assert_eq!(error.code, ErrorCode::ENHANCE_YOUR_CALM);
    }
    let mut client = asking();
    for _ in 0..20_000 {
        assert_eq!(
            client.receive(&ping),
            Ok(Continuation::Continues),
            "one at a time is no flood"
        );
    }
}

#[test]
fn section_10_5_1_field_blocks_are_limited() {
    let start = frame(kind::HEADERS, 0, 1, &[]);
    let empty = frame(kind::CONTINUATION, 0, 1, &[]).repeat(65);
    check_connection_error(&[&start[..], &empty].concat(), ErrorCode::ENHANCE_YOUR_CALM);
    let long = frame(kind::CONTINUATION, 0, 1, &[0; 8_193]).repeat(2);
    check_connection_error(&[&start[..], &long].concat(), ErrorCode::ENHANCE_YOUR_CALM);
}

#[test]
fn section_10_5_responses_that_are_not_taken_wait_up_to_a_limit() {
    let mut server = Server::settled(&[(setting::INITIAL_WINDOW_SIZE, 0)]);
    for stream in [1, 3, 5] {
        server.receive(&headers(stream, false, &POST)).unwrap();
        server.receive(&data(stream, true, b"m")).unwrap();
    }
    let message = vec![7; 1 << 19];
    let mut respond = |stream| {
        server
            .http2
            .respond(stream, &message, None, &mut server.out)
    };
    assert_eq!(respond(1), Ok(()));
    assert_eq!(respond(3), Ok(()));
    assert_eq!(respond(5), Err(RespondError::QueueFull));
    assert_eq!(server.http2.queued_octets(), 1 << 20);
    assert!(
        server
            .http2
            .reset_stream(5, ErrorCode::CANCEL, &mut server.out)
    );
    server.receive(&reset(1, ErrorCode::CANCEL)).unwrap();
    assert_eq!(server.http2.queued_octets(), 1 << 19);
}
