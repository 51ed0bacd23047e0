//! The live page and stored records over sockets: events, browsers that are slow, cut off or too
//! many, and its end.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod archive;
mod browser;
mod chromium;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use browser::{Browser, Event, answer, get, status};
use lab::live::{Live, Phase, Shown};
use measure::Interval;
use web::{CONNECTIONS_MAX, EVENTS_MAX, Server};

const REPORT: &str = "<!DOCTYPE html>\n<html><h1>The report</h1>\n</html>\n";

fn start(live: &Live) -> Server {
    Server::start(live, SocketAddr::from(([127, 0, 0, 1], 0)), "run").unwrap()
}

fn address(server: &Server) -> SocketAddr {
    let url = server.url();
    let rest = url.strip_prefix("http://").unwrap();
    rest.split('/').next().unwrap().parse().unwrap()
}

fn publish(live: &Live, count: u64) {
    for _ in 0..count {
        let number = live.newest();
        let mut interval = Interval {
            start_ns: number * 1_000_000_000,
            end_ns: (number + 1) * 1_000_000_000,
            ..Interval::default()
        };
        interval.counts.responses = 1_000 + number;
        live.publish(Shown {
            phase: Phase::Load,
            interval: Some(Arc::new(interval)),
            ..Shown::default()
        });
    }
}

/// Publishes one after the other, each once the one before was rendered: none is skipped.
fn publish_each(live: &Live, server: &Server, count: u64) {
    let mut follows = Browser::open(address(server), "/events", "");
    for _ in 0..count {
        publish(live, 1);
        follows.until(live.newest());
    }
}

#[test]
fn page_is_there_with_headers_that_keep_it_to_itself() {
    let live = Live::default();
    let server = start(&live);
    publish_each(&live, &server, 2);
    let response = get(address(&server), "/");
    assert_eq!(status(&response), 200, "{response}");
    for header in [
        "content-type: text/html; charset=utf-8",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
        "referrer-policy: no-referrer",
        "frame-ancestors 'none'",
        "script-src 'sha256-",
    ] {
        assert!(response.contains(header), "{header}: {response}");
    }
    assert!(response.contains("data-number=\"2\""), "{response}");
    assert!(response.contains("1,001"), "{response}");
    let head = answer(
        address(&server),
        "HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(status(&head), 200);
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    assert_eq!(status(&get(address(&server), "/metrics")), 404);
}

#[test]
fn events_come_once_each_with_the_numbers_of_their_snapshots() {
    let live = Live::default();
    let server = start(&live);
    let mut browser = Browser::open(address(&server), "/events", "");
    assert_eq!(browser.event().id, Some(0));
    for number in 1..=5 {
        publish(&live, 1);
        let event = browser.event();
        assert_eq!(event.id, Some(number));
        assert_eq!(event.missed(), 0);
        let responses = format!("1,00{}", number - 1);
        assert!(event.data.contains(&responses), "{}", event.data);
    }
}

#[test]
fn connection_that_was_cut_resumes_without_gap_and_without_double() {
    let live = Live::default();
    let server = start(&live);
    let mut browser = Browser::open(address(&server), "/events", "");
    publish(&live, 1);
    browser.until(1);
    drop(browser);
    publish_each(&live, &server, 4);
    let mut again = Browser::open(address(&server), "/events?after=0", "Last-Event-ID: 1\r\n");
    let resumed: Vec<Event> = (0..4).map(|_| again.event()).collect();
    let ids: Vec<u64> = resumed.iter().filter_map(|it| it.id).collect();
    assert_eq!(ids, [2, 3, 4, 5]);
    assert!(resumed.iter().all(|it| it.missed() == 0));
    publish(&live, 1);
    assert_eq!(again.event().id, Some(6));
}

#[test]
fn resumed_connection_learns_how_many_the_ring_has_lost() {
    let live = Live::default();
    let server = start(&live);
    let all = EVENTS_MAX as u64 + 10;
    publish_each(&live, &server, all);
    let mut browser = Browser::open(address(&server), "/events", "Last-Event-ID: 3\r\n");
    let first = browser.event();
    assert_eq!((first.id, first.missed()), (Some(11), 7));
    assert_eq!(browser.event().id, Some(12));
}

/// Its buffers fill, and nothing waits for it; what it reads in the end is bounded and ordered.
#[test]
fn browser_that_does_not_read_delays_neither_publisher_nor_others() {
    let live = Live::default();
    let server = start(&live);
    let mut silent = Browser::open(address(&server), "/events", "");
    let mut other = Browser::open(address(&server), "/events", "");
    let all = 2_000;
    for _ in 0..all {
        publish(&live, 1);
        other.until(live.newest());
    }
    let (mut last, mut missed, mut events) = (0, 0, 0);
    while last < all {
        let event = silent.event();
        let id = event.id.unwrap();
        assert_eq!(
            id,
            if events == 0 {
                id
            } else {
                last + 1 + event.missed()
            }
        );
        (last, missed, events) = (id, missed + event.missed(), events + 1);
    }
    assert!(missed > 0, "{events} events were kept for it");
    assert_eq!(events + missed - 1, all);
}

#[test]
fn requests_that_would_change_something_get_405() {
    let server = start(&Live::default());
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let request = format!(
            "{method} / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\
             \r\n\r\n"
        );
        let response = answer(address(&server), &request);
        assert_eq!(status(&response), 405, "{response}");
        assert!(response.contains("allow: GET, HEAD"), "{response}");
    }
}

#[test]
fn names_that_point_at_loopback_are_refused() {
    let server = start(&Live::default());
    for (host, expected) in [
        ("Host: rebound.example:80\r\n", 403),
        ("Host: localhost\r\n", 200),
        ("Host: 127.0.0.1\r\nHost: rebound.example\r\n", 403),
    ] {
        let request = format!("GET / HTTP/1.1\r\n{host}Connection: close\r\n\r\n");
        let response = answer(address(&server), &request);
        assert_eq!(status(&response), expected, "{response}");
    }
}

#[test]
fn address_that_others_reach_needs_the_token() {
    let any = SocketAddr::from(([0, 0, 0, 0], 0));
    let server = Server::start(&Live::default(), any, "run").unwrap();
    let url = server.url();
    let (_, token) = url.split_once("/?token=").unwrap();
    assert_eq!(token.len(), 32, "{url}");
    let address = SocketAddr::from(([127, 0, 0, 1], address(&server).port()));
    let wrong = "0".repeat(32);
    for (path, expected) in [
        ("/".to_owned(), 401),
        ("/events".to_owned(), 401),
        (format!("/?token={wrong}"), 401),
        (format!("/?token={token}"), 200),
    ] {
        let response = get(address, &path);
        assert_eq!(status(&response), expected, "{path}: {response}");
        assert!(!response.contains(token), "{path}");
    }
    let other = Server::start(&Live::default(), any, "run").unwrap();
    assert!(!other.url().contains(token));
}

#[test]
fn connections_above_the_limit_get_503_until_others_are_gone() {
    let server = start(&Live::default());
    let open = || Browser::open(address(&server), "/events", "");
    let mut held: Vec<Browser> = (0..CONNECTIONS_MAX).map(|_| open()).collect();
    held.iter_mut().for_each(|it| drop(it.event()));
    let refused = get(address(&server), "/");
    assert_eq!(status(&refused), 503, "{refused}");
    drop(held);
    testing::wait::until("the page is answered again", || {
        status(&get(address(&server), "/")) == 200
    });
}

#[test]
fn last_event_is_the_report_and_the_server_ends() {
    let live = Live::default();
    let server = start(&live);
    let address = address(&server);
    let mut browsers: Vec<Browser> = (0..3)
        .map(|_| Browser::open(address, "/events", ""))
        .collect();
    publish(&live, 1);
    browsers.iter_mut().for_each(|it| it.until(1));
    live.close();
    let reads = browsers.into_iter().map(|mut browser| {
        thread::spawn(move || {
            let last = browser.event();
            (last, browser.is_over())
        })
    });
    let reads: Vec<_> = reads.collect();
    server.finish(REPORT);
    for read in reads {
        let (last, is_over) = read.join().unwrap();
        assert_eq!((last.name.as_str(), is_over), ("report", true));
        assert_eq!(last.data, REPORT);
    }
    // Nothing listens there any more.
    drop(TcpListener::bind(address).unwrap());
}

#[test]
fn command_without_a_report_ends_the_events_too() {
    let live = Live::default();
    let server = start(&live);
    let mut browser = Browser::open(address(&server), "/events", "");
    browser.event();
    let read = thread::spawn(move || browser.event().name);
    drop(server);
    assert_eq!(read.join().unwrap(), "end");
}

#[test]
fn port_that_is_taken_is_an_error_with_its_cure() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = Server::start(&Live::default(), address, "run").unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert!(error.cure().contains("another port"), "{}", error.cure());
}
