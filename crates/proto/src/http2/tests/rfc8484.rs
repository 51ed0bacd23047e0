//! Clauses of RFC 8484 that only HTTP as a whole can show.

use super::*;

/// What a server makes of one request: fields, and content if there is any.
fn request(fields: &[(&str, &str)], content: Option<&[u8]>) -> Vec<Request> {
    let mut server = Server::settled(&[]);
    server
        .receive(&headers(1, content.is_none(), fields))
        .unwrap();
    if let Some(content) = content {
        server.receive(&data(1, true, content)).unwrap();
    }
    server.take_requests()
}

fn get(path: &str) -> [(&str, &str); 4] {
    [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "dns.example"),
        (":path", path),
    ]
}

#[test]
fn section_4_1_both_methods_carry_one_message() {
    let message = vec![0; 12];
    assert_eq!(
        request(&get("/dns-query?dns=AAAAAAAAAAAAAAAA"), None),
        [(1, Ok((Method::Get, message.clone())))]
    );
    assert_eq!(
        request(&get("/dns-query?a=b&dns=AAAAAAAAAAAAAAAA&c=d"), None),
        [(1, Ok((Method::Get, message.clone())))],
        "among other variables"
    );
    assert_eq!(
        request(&POST, Some(&message)),
        [(1, Ok((Method::Post, message)))]
    );
}

#[test]
fn section_4_1_content_of_a_get_means_nothing() {
    let found = request(&get("/dns-query?dns=AAAA"), Some(b"content"));
    assert_eq!(found, [(1, Ok((Method::Get, vec![0; 3])))]);
}

#[test]
fn section_4_2_1_bad_requests_get_the_status_that_says_why() {
    let with = |name: &str, value: &'static str| {
        POST.map(|(known, kept)| (known, if known == name { value } else { kept }))
    };
    let content: Option<&[u8]> = Some(b"message");
    for (fields, content, status) in [
        (get("/dns-query").to_vec(), None, 400),
        (get("/dns-query?dns=").to_vec(), None, 400),
        (get("/dns-query?dns=A*").to_vec(), None, 400),
        (get("/dns-query?dns=AA==").to_vec(), None, 400),
        (POST.to_vec(), None, 400),
        (POST.to_vec(), Some(&b""[..]), 400),
        (get("/other?dns=AAAA").to_vec(), None, 404),
        (with(":path", "/").to_vec(), content, 404),
        (with(":method", "PUT").to_vec(), content, 405),
        (with(":method", "HEAD").to_vec(), None, 405),
        (
            with("content-type", "application/dns-json").to_vec(),
            content,
            415,
        ),
        (POST[..3].to_vec(), content, 415),
        (
            [&POST[..], &[("content-length", "65536")]].concat(),
            content,
            413,
        ),
    ] {
        assert_eq!(request(&fields, content), [(1, Err(status))], "{fields:?}");
    }
}

#[test]
fn section_4_1_message_above_65535_octets_is_refused_once() {
    let mut server = Server::settled(&[]);
    server.receive(&headers(1, false, &POST)).unwrap();
    for _ in 0..5 {
        server.receive(&data(1, false, &[0; 16_384])).unwrap();
    }
    assert_eq!(server.take_requests(), [(1, Err(413))]);
    assert_eq!(server.http2.respond_status(1, 413, &mut server.out), Ok(()));
    server.receive(&data(1, true, &[0; 10])).unwrap();
    assert_eq!(
        (server.take_requests(), server.http2.open_streams()),
        (vec![], 0)
    );
}

#[test]
fn section_5_1_freshness_lifetime_is_said_in_cache_control() {
    let mut server = Server::settled(&[]);
    server
        .receive(&headers(1, true, &get("/dns-query?dns=AAAA")))
        .unwrap();
    server.answer_all(Some(709));
    let block = &server.take_frames()[0].payload;
    let mut fields = Vec::new();
    let decoded = crate::hpack::Decoder::default().decode(block, |name, value| {
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        fields.push(format!("{}: {}", text(name), text(value)));
    });
    assert_eq!(decoded, Ok(()));
    let expected = [
        ":status: 200",
        "content-type: application/dns-message",
        "content-length: 3",
        "cache-control: max-age=709",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn section_5_client_counts_every_status_but_200_as_a_status() {
    for (status, end) in [
        ("204", End::HttpStatus(204)),
        ("301", End::HttpStatus(301)),
        ("404", End::HttpStatus(404)),
        ("429", End::HttpStatus(429)),
        ("503", End::HttpStatus(503)),
        ("599", End::HttpStatus(599)),
    ] {
        let mut client = Client::settled(&[]);
        client.request(&[1; 20], 5).unwrap();
        client
            .receive(&headers(1, true, &[(":status", status)]))
            .unwrap();
        assert_eq!(client.take_ends(), [(5, end.clone())]);
        // With content, and whatever its type.
        client.request(&[1; 20], 6).unwrap();
        client
            .receive(&headers(3, false, &[(":status", status), OK[1]]))
            .unwrap();
        client.receive(&data(3, true, b"content")).unwrap();
        assert_eq!(client.take_ends(), [(6, end)]);
    }
}

#[test]
fn section_6_client_takes_messages_of_the_right_type_only() {
    // With `takes_dns_media_type`, of the type `application/dns` too, and of no other.
    let message = || End::Message(b"m".to_vec());
    for (content_type, strict, lenient) in [
        (Some("application/dns-message"), message(), message()),
        (Some("Application/DNS-Message;q=1"), message(), message()),
        (
            Some("application/dns"),
            End::MediaType(MediaType::Dns),
            message(),
        ),
        (Some("application/dns-json"), OTHER, OTHER),
        (Some("text/html"), OTHER, OTHER),
        (None, OTHER, OTHER),
    ] {
        for (takes_dns_media_type, expected) in [(false, strict), (true, lenient)] {
            let options = Http2Options {
                takes_dns_media_type,
                ..Http2Options::default()
            };
            let mut client = Client::with(Method::Get, &options);
            client.receive(&frame(kind::SETTINGS, 0, 0, &[])).unwrap();
            client.request(&[1; 20], 5).unwrap();
            let content_type = content_type.map(|it| ("content-type", it));
            let fields: Vec<_> = [OK[0]].into_iter().chain(content_type).collect();
            client.receive(&headers(1, false, &fields)).unwrap();
            client.receive(&data(1, true, b"m")).unwrap();
            assert_eq!(client.take_ends(), [(5, expected)], "{content_type:?}");
        }
    }
}

/// The end of a response that is not one of DNS.
const OTHER: End = End::MediaType(MediaType::Other);
