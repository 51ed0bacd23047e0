//! Clauses of RFC 9113, section 8: what requests and responses are made of.

use super::frame::{flag, setting};
use super::*;

/// The octets end the one exchange of a client as malformed, and the connection goes on.
fn check_malformed_response(octets: &[u8]) {
    let mut client = asking();
    client.receive(octets).unwrap();
    assert_eq!(client.take_ends(), [(9, End::Malformed)]);
    assert_eq!(
        resets(&client.take_frames()),
        [(1, ErrorCode::PROTOCOL_ERROR)]
    );
    client.request(&[1; 20], 10).unwrap();
    client
        .receive(&[headers(3, false, &OK), data(3, true, b"m")].concat())
        .unwrap();
    assert_eq!(client.take_ends(), [(10, End::Message(b"m".to_vec()))]);
}

/// The fields reset the stream at a server, and the connection goes on.
fn check_malformed_request(octets: &[u8]) {
    let mut server = Server::settled(&[]);
    server.receive(octets).unwrap();
    assert_eq!(server.take_requests(), []);
    assert_eq!(
        resets(&server.take_frames()),
        [(1, ErrorCode::PROTOCOL_ERROR)]
    );
    assert_eq!(server.http2.counts().malformed, 1);
    server
        .receive(&[headers(3, false, &POST), data(3, true, b"m")].concat())
        .unwrap();
    assert_eq!(
        server.take_requests(),
        [(3, Ok((Method::Post, b"m".to_vec())))]
    );
}

#[test]
fn section_8_1_interim_responses_and_trailers_are_taken() {
    let mut client = asking();
    let octets = [
        headers(1, false, &[(":status", "103"), ("link", "x")]),
        headers(1, false, &[(":status", "100")]),
        headers(1, false, &OK),
        data(1, false, b"mess"),
        data(1, false, b"age"),
        headers(1, true, &[("checksum", "x")]),
    ];
    client.receive(&octets.concat()).unwrap();
    assert_eq!(client.take_ends(), [(9, End::Message(b"message".to_vec()))]);
    let mut server = Server::settled(&[]);
    let octets = [
        headers(1, false, &POST),
        data(1, false, b"message"),
        headers(1, true, &[("checksum", "x")]),
    ];
    server.receive(&octets.concat()).unwrap();
    assert_eq!(
        server.take_requests(),
        [(1, Ok((Method::Post, b"message".to_vec())))]
    );
}

#[test]
fn section_8_1_responses_out_of_order_are_malformed() {
    check_malformed_response(&data(1, true, b"m"));
    check_malformed_response(&headers(1, true, &[(":status", "100")]));
    check_malformed_response(&headers(1, true, &[(":status", "101")]));
    check_malformed_response(&[headers(1, false, &OK), headers(1, false, &[("a", "b")])].concat());
    check_malformed_response(&[headers(1, false, &OK), headers(1, true, &OK)].concat());
    check_malformed_request(&[headers(1, false, &POST), headers(1, false, &[("a", "b")])].concat());
    check_malformed_request(&[headers(1, false, &POST), headers(1, true, &POST)].concat());
}

#[test]
fn section_8_1_answered_early_the_rest_of_the_request_is_not_sent() {
    let mut client = Client::settled(&[(setting::INITIAL_WINDOW_SIZE, 5)]);
    client.request(&[1; 20], 0).unwrap();
    client.out.clear();
    client
        .receive(&headers(1, true, &[(":status", "413")]))
        .unwrap();
    assert_eq!(client.take_ends(), [(0, End::HttpStatus(413))]);
    assert_eq!(resets(&client.take_frames()), [(1, ErrorCode::CANCEL)]);
    client.request(&[1; 5], 1).unwrap();
}

#[test]
fn section_8_1_server_that_answers_early_stops_the_request() {
    let mut server = Server::settled(&[]);
    server
        .receive(&headers(
            1,
            false,
            &[POST[0], POST[1], (":path", "/other"), POST[3]],
        ))
        .unwrap();
    server.answer_all(None);
    let frames = server.take_frames();
    assert_eq!(frames[0].flags, flag::END_STREAM | flag::END_HEADERS);
    assert_eq!(resets(&frames), [(1, ErrorCode::NO_ERROR)]);
    server
        .receive(&data(1, true, b"content that was under way"))
        .unwrap();
    assert_eq!((server.take_requests(), server.out.len()), (vec![], 0));
}

#[test]
fn section_8_1_1_content_length_has_to_be_true() {
    let with = |octets| headers(1, false, &[OK[0], OK[1], ("content-length", octets)]);
    let mut client = asking();
    client
        .receive(&[with("7"), data(1, true, b"message")].concat())
        .unwrap();
    assert_eq!(client.take_ends(), [(9, End::Message(b"message".to_vec()))]);
    for octets in ["6", "8", "0", "4294967303", "99999999999"] {
        let mut client = asking();
        client
            .receive(&[with(octets), data(1, true, b"message")].concat())
            .unwrap();
        assert_eq!(client.take_ends(), [(9, End::Malformed)], "{octets}");
    }
    for octets in ["", "+7", "7,7", "7 ", "x", "9999999999999999999999"] {
        check_malformed_response(&with(octets));
    }
    let twice = [OK[0], ("content-length", "7"), ("content-length", "8")];
    check_malformed_response(&headers(1, true, &twice));
    let request = |octets| [&POST[..], &[("content-length", octets)]].concat();
    check_malformed_request(&[headers(1, false, &request("6")), data(1, true, b"m")].concat());
    check_malformed_request(&headers(1, true, &request("6")));
}

#[test]
fn section_8_1_1_response_without_content_is_no_message() {
    let mut client = asking();
    client.receive(&headers(1, true, &OK)).unwrap();
    assert_eq!(client.take_ends(), [(9, End::Malformed)]);
}

#[test]
fn section_8_2_malformed_fields_reset_the_stream() {
    for field in [
        ("Upper", "x"),
        ("", "x"),
        ("a b", "x"),
        ("a:b", "x"),
        ("a\u{7f}", "x"),
        ("a", "x\ny"),
        ("a", "x\0"),
        ("a", " x"),
        ("a", "x\t"),
        ("connection", "close"),
        ("keep-alive", "timeout=5"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("te", "gzip"),
        (":unknown", "x"),
        (":path", "/"),
    ] {
        check_malformed_response(&headers(1, true, &[OK[0], OK[1], field]));
        check_malformed_request(&headers(1, true, &[&POST[..], &[field]].concat()));
    }
    let mut server = Server::settled(&[]);
    server
        .receive(&headers(
            1,
            false,
            &[&POST[..], &[("te", "trailers")]].concat(),
        ))
        .unwrap();
    assert_eq!(server.http2.open_streams(), 1);
}

#[test]
fn section_8_3_1_requests_name_method_scheme_and_path_first_and_once() {
    for missing in 0..3 {
        let mut fields = POST.to_vec();
        fields.remove(missing);
        check_malformed_request(&headers(1, true, &fields));
    }
    for twice in &POST[..3] {
        let fields = [&[*twice], &POST[..]].concat();
        check_malformed_request(&headers(1, true, &fields));
    }
    let late = [POST[3], POST[0], POST[1], POST[2]];
    check_malformed_request(&headers(1, true, &late));
    check_malformed_request(&headers(1, true, &[(":status", "200")]));
}

#[test]
fn section_8_3_2_responses_name_their_status_first_and_once() {
    for fields in [
        vec![OK[1]],
        vec![OK[1], OK[0]],
        vec![OK[0], OK[0]],
        vec![(":status", "20")],
        vec![(":status", "2000")],
        vec![(":status", "+20")],
        vec![(":status", "099")],
        vec![],
    ] {
        check_malformed_response(&headers(1, true, &fields));
    }
}

#[test]
fn section_8_1_1_message_above_65535_octets_is_malformed() {
    let mut client = asking();
    client.receive(&headers(1, false, &OK)).unwrap();
    for _ in 0..4 {
        client.receive(&data(1, false, &[0; 16_383])).unwrap();
    }
    assert_eq!(client.take_ends(), []);
    client.receive(&data(1, false, &[0; 4])).unwrap();
    assert_eq!(client.take_ends(), [(9, End::Malformed)]);
}

#[test]
fn section_8_1_1_endless_content_of_an_error_is_cut() {
    let mut client = asking();
    client
        .receive(&headers(1, false, &[(":status", "503")]))
        .unwrap();
    for _ in 0..4 {
        client.receive(&data(1, false, &[0; 16_384])).unwrap();
    }
    assert_eq!(client.take_ends(), [(9, End::HttpStatus(503))]);
    assert_eq!(resets(&client.take_frames()), [(1, ErrorCode::CANCEL)]);
}
