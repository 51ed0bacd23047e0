//! HTTP/1.1 requests and their responses, without I/O. A connection has one of each.

use crate::format::Format;

/// The longest request that is read, its headers included. Prometheus sends some 400 bytes.
pub const REQUEST_BYTES_MAX: usize = 8 << 10;

/// What a scraper asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// GET, not HEAD.
    pub(crate) wants_body: bool,
    pub(crate) resource: Resource,
}

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Metrics(Format),
    /// A text that says where the metrics are.
    Root,
    /// Nothing: the status of the response.
    Refused(Status),
}

/// Status of a response that has no resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    BadRequest,
    NotFound,
    MethodNotAllowed,
    TooLarge,
    Unavailable,
}

impl Status {
    /// As in the first line of a response.
    fn line(self) -> &'static str {
        match self {
            Status::BadRequest => "400 Bad Request",
            Status::NotFound => "404 Not Found",
            Status::MethodNotAllowed => "405 Method Not Allowed",
            Status::TooLarge => "431 Request Header Fields Too Large",
            Status::Unavailable => "503 Service Unavailable",
        }
    }
}

/// The request at the beginning of what was received; none while its headers are not complete.
pub fn parse_request(received: &[u8]) -> Option<Request> {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(end) = end else {
        let is_full = received.len() >= REQUEST_BYTES_MAX;
        return is_full.then(|| Request::refused(Status::TooLarge));
    };
    let Ok(head) = std::str::from_utf8(&received[..end]) else {
        return Some(Request::refused(Status::BadRequest));
    };
    let request = parse_head(head);
    Some(request.unwrap_or_else(|| Request::refused(Status::BadRequest)))
}

fn parse_head(head: &str) -> Option<Request> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if !version.starts_with("HTTP/1.") || words.next().is_some() {
        return None;
    }
    let mut accept = String::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("accept") {
            accept.push_str(value.trim());
            accept.push(',');
        }
    }
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let resource = match (method, path) {
        ("GET" | "HEAD", "/metrics") => Resource::Metrics(Format::negotiate(&accept)),
        ("GET" | "HEAD", "/") => Resource::Root,
        (_, "/metrics" | "/") => Resource::Refused(Status::MethodNotAllowed),
        _ => Resource::Refused(Status::NotFound),
    };
    Some(Request {
        wants_body: method != "HEAD",
        resource,
    })
}

impl Request {
    /// One that gets this status.
    pub(crate) fn refused(status: Status) -> Request {
        Request {
            wants_body: true,
            resource: Resource::Refused(status),
        }
    }

    /// The response, with what `encode` makes if metrics are asked for.
    pub(crate) fn respond(self, encode: impl FnOnce(Format) -> Vec<u8>) -> Vec<u8> {
        const PLAIN: &str = "text/plain; charset=utf-8";
        let (status, content_type, body) = match self.resource {
            Resource::Metrics(format) => ("200 OK", format.content_type(), encode(format)),
            Resource::Root => {
                let text = "throng: metrics of the command are at /metrics\n";
                ("200 OK", PLAIN, text.as_bytes().to_vec())
            }
            Resource::Refused(status) => {
                let text = format!("{}\n", status.line());
                (status.line(), PLAIN, text.into_bytes())
            }
        };
        let allow = match self.resource {
            Resource::Refused(Status::MethodNotAllowed) => "Allow: GET, HEAD\r\n",
            _ => "",
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{allow}\
             Cache-Control: no-store\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let mut response = head.into_bytes();
        if self.wants_body {
            response.extend(body);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn response(request: &str) -> String {
        let request = parse_request(request.as_bytes()).unwrap();
        let encode = |format| format!("{format:?}\n").into_bytes();
        String::from_utf8(request.respond(encode)).unwrap()
    }

    #[test]
    fn metrics_are_sent_in_the_format_that_is_accepted() {
        let text = response("GET /metrics?x=y HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"));
        assert!(text.ends_with(
            "Content-Length: 5\r\nCache-Control: no-store\r\nConnection: \
                                close\r\n\r\nText\n"
        ));
        let open = "GET /metrics HTTP/1.0\r\naCCept: application/openmetrics-text\r\n\r\n";
        assert!(response(open).ends_with("OpenMetrics\n"));
        let head = response("HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length: 5\r\n") && head.ends_with("\r\n\r\n"));
    }

    #[test]
    fn other_requests_get_their_status() {
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", "200 OK"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
            ("DELETE / HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
            ("GET /../etc/passwd HTTP/1.1\r\n\r\n", "404 Not Found"),
            ("POST /x HTTP/1.1\r\n\r\n", "404 Not Found"),
            ("GET /metrics\r\n\r\n", "400 Bad Request"),
            ("GET  /metrics HTTP/1.1\r\n\r\n", "400 Bad Request"),
            ("PRI * HTTP/2.0\r\n\r\n", "400 Bad Request"),
            (
                "GET /metrics HTTP/1.1\r\nno colon\r\n\r\n",
                "400 Bad Request",
            ),
        ] {
            let text = response(request);
            assert!(
                text.starts_with(&format!("HTTP/1.1 {status}\r\n")),
                "{text}"
            );
        }
        assert!(response("PUT / HTTP/1.1\r\n\r\n").contains("\r\nAllow: GET, HEAD\r\n"));
    }

    #[test]
    fn request_is_awaited_until_its_end_or_its_maximum() {
        assert_eq!(parse_request(b"GET /metrics HTTP/1.1\r\nAccept: "), None);
        let long = vec![b'x'; REQUEST_BYTES_MAX];
        assert_eq!(parse_request(&long[1..]), None);
        let refused = Request::refused(Status::TooLarge);
        assert_eq!(parse_request(&long), Some(refused));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_none(bytes in proptest::collection::vec(0u8.., 0..300)) {
            if let Some(request) = parse_request(&bytes) {
                prop_assert!(!request.respond(|_| Vec::new()).is_empty());
            }
        }
    }
}
