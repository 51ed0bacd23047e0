//! RFC 9114, clause by clause, on whole streams.

use super::error::ErrorCode;
use super::frame::{self, Content, write_frame_header};
use super::request::{Request, RequestTemplate};
use super::response::Response;
use super::*;
use crate::doh::{DohRequest, MediaType, Method};
use crate::qpack;
use proptest::prelude::*;
use std::sync::Arc;

fn frame_of(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame_header(kind, payload.len(), &mut out);
    out.extend_from_slice(payload);
    out
}

fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = Vec::new();
    qpack::start_section(&mut section);
    for (name, value) in fields {
        qpack::write_field(name, value, &mut section);
    }
    frame_of(frame::HEADERS, &section)
}

fn data(octets: &[u8]) -> Vec<u8> {
    frame_of(frame::DATA, octets)
}

const DNS: (&str, &str) = ("content-type", "application/dns-message");
const OK: (&str, &str) = (":status", "200");

fn parse_response(parts: &[Vec<u8>]) -> Result<Response, ErrorCode> {
    response::parse(&parts.concat(), &mut Vec::new()).map_err(|error| error.code)
}

fn parse_request(parts: &[Vec<u8>]) -> Result<Request, ErrorCode> {
    request::parse(&parts.concat(), "/dns-query", &mut Vec::new()).map_err(|error| error.code)
}

/// The message that a response has, wherever it lies.
fn message_of(stream: &[u8]) -> Option<Vec<u8>> {
    match response::parse(stream, &mut Vec::new()) {
        Ok(Response::Message(Content::At(place))) => Some(stream[place].to_vec()),
        Ok(Response::Message(Content::Joined(message))) => Some(message),
        _ => None,
    }
}

#[test]
fn rfc9114_4_1_response_is_headers_and_data() {
    let mut stream = Vec::new();
    response::write(b"message", Some(300), &mut stream);
    assert_eq!(message_of(&stream).as_deref(), Some(&b"message"[..]));
    let section = [
        OK,
        DNS,
        ("content-length", "7"),
        ("cache-control", "max-age=300"),
    ];
    let written = [headers(&section), data(b"message")].concat();
    assert_eq!(stream, written);
    let parts = [headers(&[OK, DNS]), data(b"mes"), data(b""), data(b"sage")];
    assert_eq!(
        message_of(&parts.concat()).as_deref(),
        Some(&b"message"[..])
    );
}

#[test]
fn rfc9114_4_1_interim_responses_come_first_and_trailers_last() {
    let stream = [
        headers(&[(":status", "103"), ("link", "x")]),
        headers(&[(":status", "100")]),
        headers(&[OK, DNS]),
        data(b"message"),
        headers(&[("x-trailer", "1")]),
    ];
    assert_eq!(
        message_of(&stream.concat()).as_deref(),
        Some(&b"message"[..])
    );
    let late = [stream.concat(), data(b"more")];
    assert_eq!(parse_response(&late), Err(ErrorCode::FRAME_UNEXPECTED));
    let again = [stream.concat(), headers(&[("x-trailer", "2")])];
    assert_eq!(parse_response(&again), Err(ErrorCode::FRAME_UNEXPECTED));
    let interim_only = [headers(&[(":status", "100")])];
    assert_eq!(parse_response(&interim_only), Ok(Response::Malformed));
}

#[test]
fn rfc9114_4_1_data_before_headers_is_unexpected() {
    let stream = [data(b"x"), headers(&[OK, DNS])];
    assert_eq!(parse_response(&stream), Err(ErrorCode::FRAME_UNEXPECTED));
    assert_eq!(parse_request(&stream), Err(ErrorCode::FRAME_UNEXPECTED));
}

#[test]
fn rfc9114_4_1_2_malformed_responses_are_told_from_broken_connections() {
    for fields in [
        &[DNS][..],
        &[OK, OK, DNS],
        &[DNS, OK],
        &[(":status", "20"), DNS],
        &[(":status", "101"), DNS],
        &[OK, (":method", "GET"), DNS],
        &[OK, DNS, ("Upper", "case")],
        &[OK, DNS, ("connection", "close")],
        &[OK, DNS, ("content-length", "6")],
        &[OK, DNS, ("content-length", "x")],
        &[OK, DNS, ("x", "a\nb")],
    ] {
        let stream = [headers(fields), data(b"message")];
        assert_eq!(
            parse_response(&stream),
            Ok(Response::Malformed),
            "{fields:?}"
        );
    }
    let trailer = [headers(&[OK, DNS]), data(b"x"), headers(&[OK])];
    assert_eq!(parse_response(&trailer), Ok(Response::Malformed));
    assert_eq!(parse_response(&[]), Ok(Response::Malformed), "no response");
    let empty = [headers(&[OK, DNS])];
    assert_eq!(
        parse_response(&empty),
        Ok(Response::Malformed),
        "no message"
    );
    let long = [headers(&[OK, DNS]), data(&[0; 65_536])];
    assert_eq!(parse_response(&long), Ok(Response::Malformed));
}

#[test]
fn rfc8484_4_2_1_other_statuses_and_media_types_are_no_messages() {
    for status in ["204", "304", "404", "429", "503"] {
        let stream = [
            headers(&[(":status", status), DNS, ("content-length", "1")]),
            data(b"x"),
        ];
        let status = status.parse().unwrap();
        assert_eq!(parse_response(&stream), Ok(Response::Status(status)));
    }
    let html = [headers(&[OK, ("content-type", "text/html")]), data(b"x")];
    assert_eq!(
        parse_response(&html),
        Ok(Response::MediaType(MediaType::Other))
    );
    let short = [
        headers(&[OK, ("content-type", "application/dns")]),
        data(b"x"),
    ];
    assert_eq!(
        parse_response(&short),
        Ok(Response::MediaType(MediaType::Dns))
    );
    let none = [headers(&[OK]), data(b"x")];
    assert_eq!(
        parse_response(&none),
        Ok(Response::MediaType(MediaType::Other))
    );
    let parameter = [
        headers(&[OK, ("content-type", "Application/DNS-Message; a=b")]),
        data(b"x"),
    ];
    assert!(message_of(&parameter.concat()).is_some());
}

#[test]
fn rfc9114_7_1_stream_that_ends_within_a_frame_is_a_frame_error() {
    let whole = [headers(&[OK, DNS]), data(b"message")].concat();
    let head = headers(&[OK, DNS]).len();
    for cut in 1..whole.len() {
        let result = parse_response(&[whole[..cut].to_vec()]);
        let expected = match cut == head {
            true => Ok(Response::Malformed),
            false => Err(ErrorCode::FRAME_ERROR),
        };
        assert_eq!(result, expected, "{cut}");
    }
}

#[test]
fn rfc9114_7_2_frames_of_the_control_stream_must_not_be_in_messages() {
    for kind in [0x02, 0x03, 0x04, 0x06, 0x07, 0x08, 0x09, 0x0d] {
        let stream = [headers(&[OK, DNS]), frame_of(kind, b"\0"), data(b"x")];
        assert_eq!(parse_response(&stream), Err(ErrorCode::FRAME_UNEXPECTED));
        assert_eq!(
            parse_request(&[frame_of(kind, b"\0")]),
            Err(ErrorCode::FRAME_UNEXPECTED)
        );
    }
    let push = [frame_of(frame::PUSH_PROMISE, b"\0\0\0")];
    assert_eq!(parse_response(&push), Err(ErrorCode::ID_ERROR));
    assert_eq!(parse_request(&push), Err(ErrorCode::FRAME_UNEXPECTED));
}

#[test]
fn rfc9114_9_unknown_frames_are_ignored() {
    let grease = frame_of(0x21, b"grease");
    let long = frame_of(0x1f * 1_000_000_007 + 0x21, &[7; 300]);
    let stream = [
        grease.clone(),
        headers(&[OK, DNS]),
        long.clone(),
        data(b"message"),
        grease,
        headers(&[("x-trailer", "1")]),
        long,
    ];
    assert_eq!(
        message_of(&stream.concat()).as_deref(),
        Some(&b"message"[..])
    );
}

#[test]
fn rfc9204_2_2_section_that_cannot_be_decoded_fails_the_connection() {
    let stream = [frame_of(frame::HEADERS, &[2, 0, 0x80])];
    let failed = ErrorCode::QPACK_DECOMPRESSION_FAILED;
    assert_eq!(parse_response(&stream), Err(failed));
    assert_eq!(parse_request(&stream), Err(failed));
}

#[test]
fn start_of_a_response_tells_its_status() {
    let start = |fields: &[(&str, &str)]| {
        let mut stream = headers(fields);
        write_frame_header(frame::DATA, 1 << 40, &mut stream);
        stream.extend_from_slice(&[0; 1_000]);
        response::parse_start(&stream, &mut Vec::new()).unwrap()
    };
    assert_eq!(start(&[(":status", "500")]), Response::Status(500));
    assert_eq!(start(&[OK]), Response::MediaType(MediaType::Other));
    assert_eq!(start(&[OK, DNS]), Response::Malformed);
    assert_eq!(start(&[(":status", "103")]), Response::Malformed);
}

fn template(method: Method) -> RequestTemplate {
    let extra = [("x-test".to_owned(), "1".to_owned())];
    let request = DohRequest::new(method, "https://dns.example/dns-query", &extra);
    RequestTemplate::new(Arc::new(request.unwrap()))
}

#[test]
fn rfc8484_4_1_requests_are_read_as_they_were_written() {
    for method in [Method::Get, Method::Post] {
        let mut template = template(method);
        for message in [&b"x"[..], &[0; 512], &[7; 40_000]] {
            let mut stream = Vec::new();
            template.write(message, &mut stream);
            let request = request::parse(&stream, "/dns-query", &mut Vec::new()).unwrap();
            let Request::Query {
                method: found,
                message: place,
            } = request
            else {
                panic!("{request:?}");
            };
            assert_eq!(found, method);
            let octets = match place {
                Content::At(place) => stream[place].to_vec(),
                Content::Joined(octets) => octets,
            };
            assert_eq!(octets, message);
            let fields = template.counted_octets(message.len());
            assert!(fields > 200 && (method == Method::Post || fields > message.len()));
        }
    }
}

#[test]
fn requests_that_are_not_for_dns_are_refused_with_a_status() {
    let common = [(":scheme", "https"), (":authority", "dns.example")];
    let with = |fields: &[(&str, &str)], body: &[u8]| {
        let fields = [fields, &common[..]].concat();
        let regular = |field: &&(&str, &str)| !field.0.starts_with(':');
        let pseudo = fields.iter().filter(|field| !regular(field));
        let ordered: Vec<_> = pseudo
            .chain(fields.iter().filter(regular))
            .copied()
            .collect();
        let body = if body.is_empty() { vec![] } else { data(body) };
        parse_request(&[headers(&ordered), body])
    };
    let post = (":method", "POST");
    let get = (":method", "GET");
    let path = (":path", "/dns-query");
    assert_eq!(
        with(&[(":method", "PUT"), path], b""),
        Ok(Request::Refused(405))
    );
    assert_eq!(
        with(&[post, (":path", "/"), DNS], b"x"),
        Ok(Request::Refused(404))
    );
    assert_eq!(with(&[post, path], b"x"), Ok(Request::Refused(415)));
    assert_eq!(with(&[post, path, DNS], b""), Ok(Request::Refused(400)));
    assert_eq!(
        with(&[post, path, DNS], &[0; 65_536]),
        Ok(Request::Refused(413))
    );
    assert_eq!(with(&[get, path], b""), Ok(Request::Refused(400)));
    let wrong = (":path", "/dns-query?dns=%%%");
    assert_eq!(with(&[get, wrong], b""), Ok(Request::Refused(400)));
    let broken = |code| Ok(Request::Broken(code));
    assert_eq!(with(&[path], b""), broken(ErrorCode::MESSAGE_ERROR));
    let length = ("content-length", "2");
    assert_eq!(
        with(&[post, path, DNS, length], b"x"),
        broken(ErrorCode::MESSAGE_ERROR)
    );
    assert_eq!(parse_request(&[]), broken(ErrorCode::REQUEST_INCOMPLETE));
}

fn control(parts: &[Vec<u8>]) -> Vec<u8> {
    [vec![0x00], parts.concat()].concat()
}

fn settings(settings: &[u8]) -> Vec<u8> {
    frame_of(frame::SETTINGS, settings)
}

/// All steps of one stream, handed over in pieces.
fn steps(role: Role, octets: &[u8], piece_octets: usize) -> Result<Vec<UniStep>, ErrorCode> {
    let mut streams = PeerStreams::new(role);
    let mut found = Vec::new();
    for piece in octets.chunks(piece_octets) {
        let step = streams.handle_octets(3, piece, StreamEnd::Open);
        match step.map_err(|error| error.code)? {
            UniStep::None => {}
            step => found.push(step),
        }
    }
    Ok(found)
}

fn check_control(role: Role, parts: &[Vec<u8>], expected: Result<Vec<UniStep>, ErrorCode>) {
    for piece_octets in [1, 2, 7, 10_000] {
        let found = steps(role, &control(parts), piece_octets);
        assert_eq!(found, expected, "{parts:?} in pieces of {piece_octets}");
    }
}

#[test]
fn rfc9114_6_2_1_control_stream_begins_with_settings() {
    let missing = Err(ErrorCode::MISSING_SETTINGS);
    check_control(
        Role::Client,
        &[frame_of(frame::GOAWAY, &[0])],
        missing.clone(),
    );
    check_control(Role::Server, &[frame_of(0x21, &[0])], missing);
    let ours = {
        let mut ours = Vec::new();
        write_control_stream(&mut ours);
        ours
    };
    assert_eq!(steps(Role::Client, &ours, 1), Ok(vec![]));
    let mut streams = PeerStreams::new(Role::Client);
    streams.handle_octets(3, &ours, StreamEnd::Open).unwrap();
    assert!(streams.settings_seen());
    assert_eq!(streams.field_section_octets_max(), Some(65_536));
}

#[test]
fn rfc9114_7_2_4_settings_are_checked() {
    check_control(Role::Client, &[settings(&[0x06, 0x44, 0x00])], Ok(vec![]));
    check_control(
        Role::Client,
        &[settings(&[0x21, 5, 0x01, 0x07, 0x33, 1])],
        Ok(vec![]),
    );
    for id in [0x00, 0x02, 0x03, 0x04, 0x05] {
        let wrong = Err(ErrorCode::SETTINGS_ERROR);
        check_control(Role::Client, &[settings(&[id, 0])], wrong);
    }
    let twice = Err(ErrorCode::SETTINGS_ERROR);
    check_control(Role::Server, &[settings(&[6, 1, 6, 1])], twice);
    check_control(Role::Server, &[settings(&[6])], Err(ErrorCode::FRAME_ERROR));
    let second = [settings(&[]), settings(&[])];
    check_control(Role::Server, &second, Err(ErrorCode::FRAME_UNEXPECTED));
}

#[test]
fn rfc9114_7_2_frames_of_messages_must_not_be_on_the_control_stream() {
    for kind in [0x00, 0x01, 0x02, 0x05, 0x06, 0x08, 0x09] {
        let parts = [settings(&[]), frame_of(kind, b"")];
        check_control(Role::Client, &parts, Err(ErrorCode::FRAME_UNEXPECTED));
    }
    let grease = [
        settings(&[]),
        frame_of(0x21, &[1; 9_000]),
        frame_of(0x40, b""),
    ];
    check_control(Role::Client, &grease, Ok(vec![]));
}

#[test]
fn rfc9114_5_2_goaway_ids_are_of_requests_and_do_not_go_up() {
    let goaway = |id: &[u8]| frame_of(frame::GOAWAY, id);
    let down = [settings(&[]), goaway(&[8]), goaway(&[0])];
    let steps = vec![UniStep::GoAway(8), UniStep::GoAway(0)];
    for piece_octets in [1, 3] {
        let found = super::tests::steps(Role::Client, &control(&down), piece_octets);
        assert_eq!(found, Ok(steps.clone()));
    }
    let wrong = Err(ErrorCode::ID_ERROR);
    let up = [settings(&[]), goaway(&[0]), goaway(&[4])];
    check_control(Role::Client, &up, wrong.clone());
    check_control(Role::Client, &[settings(&[]), goaway(&[2])], wrong);
    check_control(Role::Server, &[settings(&[]), goaway(&[2])], Ok(vec![]));
    let long = [settings(&[]), goaway(&[0, 0])];
    check_control(Role::Client, &long, Err(ErrorCode::FRAME_ERROR));
    let longer = [settings(&[]), goaway(&[0; 5_000])];
    check_control(Role::Client, &longer, Err(ErrorCode::EXCESSIVE_LOAD));
}

#[test]
fn rfc9114_7_2_3_pushes_that_were_never_promised_cannot_be_cancelled() {
    let cancel = [settings(&[]), frame_of(frame::CANCEL_PUSH, &[0])];
    check_control(Role::Client, &cancel, Err(ErrorCode::ID_ERROR));
    check_control(Role::Server, &cancel, Err(ErrorCode::ID_ERROR));
    let allow = |id| frame_of(frame::MAX_PUSH_ID, &[id]);
    let up = [settings(&[]), allow(1), allow(2)];
    check_control(Role::Server, &up, Ok(vec![]));
    check_control(Role::Client, &up, Err(ErrorCode::FRAME_UNEXPECTED));
    let down = [settings(&[]), allow(2), allow(1)];
    check_control(Role::Server, &down, Err(ErrorCode::ID_ERROR));
}

#[test]
fn rfc9114_6_2_there_is_one_stream_of_each_type_and_it_stays_open() {
    for kind in [0x00, 0x02, 0x03] {
        let mut streams = PeerStreams::new(Role::Client);
        let first = streams.handle_octets(3, &[kind], StreamEnd::Open);
        assert_eq!(first, Ok(UniStep::None));
        let second = streams.handle_octets(7, &[kind], StreamEnd::Open);
        let creation = ErrorCode::STREAM_CREATION_ERROR;
        assert_eq!(second.map_err(|error| error.code), Err(creation));
        let closed = streams.handle_octets(3, &[], StreamEnd::Closed);
        let critical = ErrorCode::CLOSED_CRITICAL_STREAM;
        assert_eq!(closed.map_err(|error| error.code), Err(critical));
    }
}

#[test]
fn rfc9114_6_2_streams_of_unknown_types_are_not_read() {
    let mut streams = PeerStreams::new(Role::Server);
    let stop = UniStep::Stop(ErrorCode::STREAM_CREATION_ERROR);
    let handle = |streams: &mut PeerStreams, id, octets: &[u8], end| {
        streams.handle_octets(id, octets, end).unwrap()
    };
    assert_eq!(
        handle(&mut streams, 2, &[0x40], StreamEnd::Open),
        UniStep::None
    );
    assert_eq!(
        handle(&mut streams, 2, &[0x54, 1, 2], StreamEnd::Open),
        stop
    );
    assert_eq!(
        handle(&mut streams, 2, &[3], StreamEnd::Open),
        UniStep::None
    );
    assert_eq!(
        handle(&mut streams, 2, &[], StreamEnd::Closed),
        UniStep::None
    );
    let whole = handle(&mut streams, 6, &[0x21, 9, 9], StreamEnd::Closed);
    assert_eq!(whole, UniStep::None, "a closed stream needs no stop");
    let nothing = handle(&mut streams, 10, &[], StreamEnd::Closed);
    assert_eq!(nothing, UniStep::None);
}

#[test]
fn rfc9114_6_2_2_push_streams_are_errors() {
    for (role, code) in [
        (Role::Client, ErrorCode::ID_ERROR),
        (Role::Server, ErrorCode::STREAM_CREATION_ERROR),
    ] {
        assert_eq!(steps(role, &[0x01, 0x00], 1), Err(code));
    }
}

#[test]
fn rfc9204_4_2_streams_of_qpack_carry_nothing_of_consequence() {
    assert_eq!(steps(Role::Client, &[0x02, 0x20], 1), Ok(vec![]));
    assert_eq!(
        steps(Role::Client, &[0x03, 0x44, 0x7f, 0x80, 0x01], 2),
        Ok(vec![])
    );
    let encoder = ErrorCode::QPACK_ENCODER_STREAM_ERROR;
    assert_eq!(steps(Role::Client, &[0x02, 0xc0, 0x00], 1), Err(encoder));
    let decoder = ErrorCode::QPACK_DECODER_STREAM_ERROR;
    assert_eq!(steps(Role::Client, &[0x03, 0x84], 2), Err(decoder));
}

proptest! {
    #[test]
    fn random_streams_never_crash_and_splits_make_no_difference(
        octets in prop::collection::vec(any::<u8>(), 0..200),
        low in prop::collection::vec(0_u8..16, 0..100),
        piece_octets in 1_usize..20,
    ) {
        for octets in [octets, low] {
            let mut scratch = Vec::new();
            let _ = response::parse(&octets, &mut scratch);
            let _ = response::parse_start(&octets, &mut scratch);
            let _ = request::parse(&octets, "/dns-query", &mut scratch);
            let stream = control(&[settings(&[]), octets]);
            // An error may come sooner or later; a stream without one is read the same.
            for role in [Role::Client, Role::Server] {
                let whole = steps(role, &stream, 1);
                prop_assert_eq!(steps(role, &stream, piece_octets), whole);
            }
        }
    }

    #[test]
    fn any_bodies_in_any_frames_are_joined(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 1..8),
    ) {
        let mut stream = headers(&[OK, DNS]);
        pieces.iter().for_each(|piece| stream.extend(data(piece)));
        let expected = Some(pieces.concat()).filter(|message| !message.is_empty());
        prop_assert_eq!(message_of(&stream), expected);
    }
}
