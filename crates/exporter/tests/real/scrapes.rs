//! Scrapes over sockets: in parallel, slow, cut off, and more than are allowed.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use exporter::{About, CONNECTIONS_MAX, Exporter, Limits, SCRAPES_MAX};
use lab::live::{Live, Phase, Shown};
use measure::Interval;
use observe::exposition;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn start(live: &Live, patience: Duration) -> Exporter {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    Exporter::start(live, loopback, (About::default(), Limits { patience })).unwrap()
}

fn connect(exporter: &Exporter) -> TcpStream {
    let stream = TcpStream::connect(exporter.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// The response; what came of it where the connection is closed before its end.
fn answer(mut stream: TcpStream, request: &str) -> String {
    let mut text = Vec::new();
    let sent = stream.write_all(request.as_bytes());
    let _ = sent.and_then(|()| stream.read_to_end(&mut text));
    String::from_utf8(text).unwrap()
}

const GET: &str = "GET /metrics HTTP/1.1\r\nHost: throng\r\n\r\n";

/// The value of the first series of that name, if there is one.
fn value(response: &str, name: &str) -> Option<f64> {
    let (_, body) = response.split_once("\r\n\r\n")?;
    let reading = exposition::parse(body, |_| true).unwrap();
    let found = reading.samples.iter().find(|sample| sample.name == name);
    found.map(|sample| sample.value)
}

fn scrape(exporter: &Exporter) -> String {
    let response = answer(connect(exporter), GET);
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    response
}

/// Scrapes until the value is that.
fn wait_for(exporter: &Exporter, name: &str, expected: f64) {
    testing::wait::until(&format!("{name} is {expected}"), || {
        value(&scrape(exporter), name) == Some(expected)
    });
}

fn publish(live: &Live, responses: u64) {
    let mut interval = Interval::default();
    interval.counts.sent = responses;
    live.publish(Shown {
        phase: Phase::Load,
        interval: Some(Arc::new(interval)),
        ..Shown::default()
    });
}

#[test]
fn snapshots_are_scraped_as_they_come_and_after_the_last() {
    let live = Live::default();
    let exporter = start(&live, LONG);
    publish(&live, 5);
    wait_for(&exporter, "throng_queries_sent_total", 5.0);
    publish(&live, 6);
    wait_for(&exporter, "throng_queries_sent_total", 11.0);
    live.close();
    wait_for(&exporter, "throng_queries_sent_total", 11.0);
    let address = exporter.address();
    drop(exporter);
    // Nothing listens there any more.
    drop(TcpListener::bind(address).unwrap());
}

#[test]
fn port_that_is_taken_is_an_error_with_its_cure() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let about = (About::default(), Limits::default());
    let error = Exporter::start(&Live::default(), address, about).unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert!(error.cure().contains("another port"), "{}", error.cure());
}

#[test]
fn scraper_that_sends_half_a_request_is_cut_off_and_counted() {
    let live = Live::default();
    let exporter = start(&live, Duration::from_millis(50));
    let mut slow = connect(&exporter);
    slow.write_all(b"GET /metrics HT").unwrap();
    let mut rest = Vec::new();
    assert_eq!(slow.read_to_end(&mut rest).unwrap(), 0);
    // A scrape that a busy host delays is cut off as well, and made again.
    testing::wait::until("the cut is counted", || {
        let response = answer(connect(&exporter), GET);
        value(&response, "throng_scrapes_timed_out_total") >= Some(1.0)
    });
}

#[test]
fn scraper_that_does_not_read_delays_no_other() {
    let live = Live::default();
    let exporter = start(&live, LONG);
    let silent: Vec<TcpStream> = (0..SCRAPES_MAX - 1)
        .map(|_| {
            let mut stream = connect(&exporter);
            stream.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
            stream
        })
        .collect();
    for _ in 0..3 {
        scrape(&exporter);
    }
    // Nor does the end of the command wait for one.
    drop(exporter);
    drop(silent);
}

#[test]
fn scrapes_above_the_limit_get_503_until_others_are_done() {
    let live = Live::default();
    let exporter = start(&live, LONG);
    let held: Vec<TcpStream> = (0..SCRAPES_MAX).map(|_| connect(&exporter)).collect();
    let refused = answer(connect(&exporter), GET);
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    // Above that limit, connections are closed at once.
    let more: Vec<TcpStream> = (SCRAPES_MAX..CONNECTIONS_MAX)
        .map(|_| connect(&exporter))
        .collect();
    let mut closed = connect(&exporter);
    let mut nothing = Vec::new();
    assert_eq!(closed.read_to_end(&mut nothing).unwrap_or(0), 0);
    drop((held, more));
    testing::wait::until("a scrape is answered again", || {
        answer(connect(&exporter), GET).starts_with("HTTP/1.1 200 ")
    });
    let refused = value(&scrape(&exporter), "throng_scrapes_refused_total");
    let least = (CONNECTIONS_MAX - SCRAPES_MAX + 1) as f64;
    assert!(refused >= Some(least), "{refused:?}");
}

#[test]
fn requests_get_their_status_and_the_format_that_they_accept() {
    let live = Live::default();
    let exporter = start(&live, LONG);
    for (request, status, words) in [
        ("GET / HTTP/1.1", "200 OK", "are at /metrics"),
        ("GET /metrics?x=y HTTP/1.0", "200 OK", "version=0.0.4"),
        (
            "GET /metrics HTTP/1.1\r\naCCept: application/openmetrics-text",
            "200 OK",
            "# EOF\n",
        ),
        ("POST /metrics HTTP/1.1", "405 Method", "allow: GET, HEAD"),
        ("DELETE / HTTP/1.1", "405 Method", "allow: GET, HEAD"),
        ("GET /../etc/passwd HTTP/1.1", "404 Not Found", ""),
        ("POST /x HTTP/1.1", "404 Not Found", ""),
        ("GET /metrics", "400 Bad Request", ""),
        ("GET  /metrics HTTP/1.1", "400 Bad Request", ""),
        ("GET /metrics HTTP/1.1\r\nno colon", "400 Bad Request", ""),
    ] {
        let response = answer(connect(&exporter), &format!("{request}\r\nHost: a\r\n\r\n"));
        let (first, _) = response.split_once("\r\n").expect(request);
        assert!(first[9..].starts_with(status), "{request}: {response}");
        assert!(response.contains(words), "{request}: {response}");
    }
    let head = answer(
        connect(&exporter),
        "HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    let length = head.split("content-length: ").nth(1).unwrap();
    let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
    assert!(length > 0, "{head}");
}

#[test]
fn a_request_in_pieces_gets_one_response() {
    let live = Live::default();
    let exporter = start(&live, LONG);
    let mut stream = connect(&exporter);
    for octet in GET.as_bytes() {
        stream.write_all(&[*octet]).unwrap();
    }
    let response = answer(stream, "");
    assert_eq!(response.matches("HTTP/1.1 200 OK").count(), 1, "{response}");
}
