//! Requests from texts.

use super::*;

fn request(method: Method, uri: &str) -> Result<DohRequest, InvalidDohRequest> {
    DohRequest::new(method, uri, &[])
}

fn get_path(request: &DohRequest, message: &[u8]) -> String {
    let mut path = Vec::new();
    request.write_get_path(message, &mut path);
    assert_eq!(path.len(), request.get_path_octets(message.len()));
    String::from_utf8(path).unwrap()
}

#[test]
fn uri_is_taken_apart() {
    let cases = [
        (
            "https://dns.example/dns-query{?dns}",
            "dns.example",
            443,
            "/dns-query",
            "/dns-query?dns=AA",
        ),
        (
            "https://dns.example/dns-query",
            "dns.example",
            443,
            "/dns-query",
            "/dns-query?dns=AA",
        ),
        (
            "HTTPS://[::1]:8443/q?a=b{&dns}",
            "::1",
            8443,
            "/q?a=b",
            "/q?a=b&dns=AA",
        ),
        (
            "http://127.0.0.1:80/q?a=b",
            "127.0.0.1",
            80,
            "/q?a=b",
            "/q?a=b&dns=AA",
        ),
        ("http://localhost", "localhost", 80, "/", "/?dns=AA"),
        ("https://h{?dns}", "h", 443, "/", "/?dns=AA"),
        ("https://h/q/{dns}/x", "h", 443, "/q//x", "/q/AA/x"),
    ];
    for (uri, host, port, path, path_of_get) in cases {
        let request = request(Method::Post, uri).unwrap();
        assert_eq!((request.host(), request.port()), (host, port), "{uri}");
        assert_eq!(request.path(), path, "{uri}");
        assert_eq!(get_path(&request, &[0]), path_of_get, "{uri}");
    }
    let request = request(Method::Get, "https://[::1]:8443/q").unwrap();
    assert_eq!(
        (request.authority(), request.scheme()),
        ("[::1]:8443", Scheme::Https)
    );
}

#[test]
fn wrong_uri_says_what_is_wrong_and_what_to_write() {
    let cases = [
        (
            "dns.example/dns-query",
            "`dns.example/dns-query` is not a URI of DNS over HTTPS",
        ),
        ("ftp://h/", "`ftp://h/` is not a URI of DNS over HTTPS"),
        ("https:///q", "`https:///q`: it has no valid host"),
        ("https://[::1/q", "`https://[::1/q`: it has no valid host"),
        ("https://[v6]/q", "`https://[v6]/q`: it has no valid host"),
        ("https://a b/q", "`https://a b/q`: it has no valid host"),
        ("https://h:0/", "`https://h:0/`: it has no valid port"),
        ("https://h:/", "`https://h:/`: it has no valid port"),
        ("https://[::1]x/", "`https://[::1]x/`: it has no valid port"),
        (
            "https://u:p@h/",
            "the URI of h has a user name, which is not sent",
        ),
        ("https://h/q#f", "`https://h/q#f`: a fragment is not sent"),
        (
            "https://h/q{?name}",
            "`https://h/q{?name}`: the template has another variable than `dns`",
        ),
        (
            "https://h/{dns}{?dns}",
            "`https://h/{dns}{?dns}`: the template has another variable than `dns`",
        ),
        (
            "https://h/a\"b",
            "`https://h/a\"b`: the path has characters that a URI cannot have",
        ),
    ];
    for (uri, fault) in cases {
        let invalid = request(Method::Post, uri).unwrap_err();
        assert_eq!(invalid.fault, fault);
        assert!(!invalid.cure.is_empty() && invalid.to_string().starts_with(fault));
    }
    let long = format!("https://h/{}", "a".repeat(5_000));
    assert_eq!(
        request(Method::Get, &long).unwrap_err().fault,
        "the path of the URI has 5001 bytes"
    );
}

#[test]
fn additional_fields_are_checked() {
    let with = |name: &str, value: &str| {
        DohRequest::new(
            Method::Post,
            "https://h/",
            &[(name.to_owned(), value.to_owned())],
        )
    };
    let request = with("X-Key", "a b").unwrap();
    let last = request.regular_fields().last().unwrap();
    assert_eq!((&*last.name, &*last.value), ("x-key", "a b"));
    for (name, value, fault) in [
        (
            "Connection",
            "close",
            "header field `Connection`: belongs to HTTP/1.1",
        ),
        ("TE", "trailers", "header field `TE`: belongs to HTTP/1.1"),
        ("host", "h", "header field `host`: is set already"),
        (
            "content-length",
            "3",
            "header field `content-length`: is set already",
        ),
        ("", "x", "header field ``: not a field name"),
        (":path", "/", "header field `:path`: not a field name"),
        ("a b", "x", "header field `a b`: not a field name"),
        (
            "a",
            "x\r\ny: z",
            "header field `a`: its value has control characters, or spaces at an end",
        ),
        (
            "a",
            " x",
            "header field `a`: its value has control characters, or spaces at an end",
        ),
    ] {
        assert_eq!(with(name, value).unwrap_err().fault, fault);
    }
    assert!(with("a", &"x".repeat(9_000)).is_err());
}

#[test]
fn methods_have_names() {
    assert_eq!("get".parse(), Ok(Method::Get));
    assert_eq!("POST".parse(), Ok(Method::Post));
    assert!("put".parse::<Method>().is_err());
    assert_eq!(Method::default().to_string(), "POST");
}

mod rfc8484 {
    use super::*;

    /// The message of section 4.1.1: www.example.com A.
    const MESSAGE: &str = "00000100000100000000000003777777076578616d706c6503636f6d0000010001";

    #[test]
    fn section_4_1_1_path_of_the_example_is_the_one_of_the_rfc() {
        let message = data_encoding::HEXLOWER.decode(MESSAGE.as_bytes()).unwrap();
        let request =
            request(Method::Get, "https://dnsserver.example.net/dns-query{?dns}").unwrap();
        let path = get_path(&request, &message);
        let expected = "/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB";
        assert_eq!(path, expected);
        let mut decoded = Vec::new();
        assert!(decode_message(&expected.as_bytes()[15..], &mut decoded));
        assert_eq!(decoded, message);
    }

    #[test]
    fn section_4_1_1_fields_of_both_methods_are_those_of_the_examples() {
        let fields = |method| {
            let request = request(method, "https://dnsserver.example.net/dns-query").unwrap();
            let all = request
                .pseudo_fields()
                .iter()
                .chain(request.regular_fields());
            all.map(|field| format!("{}: {}", field.name, field.value))
                .collect::<Vec<_>>()
        };
        let get = [
            ":authority: dnsserver.example.net",
            "accept: application/dns-message",
        ];
        assert_eq!(fields(Method::Get), get);
        let post = [
            ":authority: dnsserver.example.net",
            ":path: /dns-query",
            "accept: application/dns-message",
            "content-type: application/dns-message",
        ];
        assert_eq!(fields(Method::Post), post);
    }

    #[test]
    fn section_6_padding_and_other_alphabets_are_refused() {
        let decoded = |encoded: &str| decode_message(encoded.as_bytes(), &mut Vec::new());
        assert!(decoded("AA") && decoded("_-8"));
        for wrong in ["", "A", "AA==", "AA=", "+/8", "A A", "AB"] {
            assert!(!decoded(wrong), "{wrong}");
        }
        assert!(decoded(&"A".repeat(87_380)));
        assert!(!decoded(&"A".repeat(87_382)), "65,536 bytes");
    }

    #[test]
    fn section_6_media_type_has_any_case_and_parameters() {
        for right in [
            "application/dns-message",
            "Application/DNS-Message",
            "application/dns-message; charset=utf-8",
            "application/dns-message ;x",
        ] {
            assert!(
                MediaType::of(right.as_bytes()) == MediaType::DnsMessage,
                "{right}"
            );
        }
        for wrong in [
            "",
            "application/dns-json",
            "application/dns-messages",
            "text/html",
        ] {
            assert_eq!(MediaType::of(wrong.as_bytes()), MediaType::Other, "{wrong}");
        }
        for short in ["application/dns", "Application/DNS ;x"] {
            assert_eq!(MediaType::of(short.as_bytes()), MediaType::Dns, "{short}");
        }
    }
}
