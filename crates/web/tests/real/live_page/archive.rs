//! Stored records over sockets: who may see them, what is refused, and the end.

use std::net::{SocketAddr, TcpListener};
use std::thread;

use testing::folder::Folder;
use testing::{browser, example};
use web::{Archive, ArchiveServer};

use crate::browser::{answer, get, status};

const LOOPBACK: &str = "127.0.0.1:0";

/// A folder with two runs, and a server over it.
fn start(test: &str, address: &str) -> (Folder, ArchiveServer) {
    let folder = Folder::new(test);
    for (file, latency_ns) in [("a.json", 1_000_000), ("b.json", 2_000_000)] {
        let record = example::record(vec![example::interval(0, &[(latency_ns, 500)])]);
        folder.write(file, record.to_json());
    }
    let archive = Archive::open(folder.folder()).unwrap();
    let server = ArchiveServer::start(&archive, address.parse().unwrap()).unwrap();
    (folder, server)
}

fn address(server: &ArchiveServer) -> SocketAddr {
    let url = server.url();
    let rest = url.strip_prefix("http://").unwrap();
    rest.split('/').next().unwrap().parse().unwrap()
}

#[test]
fn each_page_is_there_with_headers_that_keep_it_to_itself() {
    let (_folder, server) = start("served-pages", LOOPBACK);
    let targets = [
        "/",
        "/record/1",
        "/compare?a=1&b=2",
        "/trend?metric=p50",
        "/none",
    ];
    for target in targets {
        let response = get(address(&server), target);
        let expected = if target == "/none" { 404 } else { 200 };
        assert_eq!(status(&response), expected, "{response}");
        for header in [
            "content-type: text/html; charset=utf-8",
            "x-content-type-options: nosniff",
            "cache-control: no-store",
            "referrer-policy: no-referrer",
            "frame-ancestors 'none'",
            "default-src 'none'",
        ] {
            assert!(response.contains(header), "{header}: {response}");
        }
        assert!(!response.contains("script-src"), "{response}");
        assert!(response.contains("</html>"), "{response}");
    }
    let head = answer(
        address(&server),
        "HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(status(&head), 200);
    assert!(head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn requests_that_are_not_of_a_reader_are_refused() {
    let (_folder, server) = start("served-refused", LOOPBACK);
    let long = "x".repeat(5_000);
    for (request, expected) in [
        ("POST / HTTP/1.1\r\nHost: 127.0.0.1".to_owned(), 405),
        (
            "DELETE /record/1 HTTP/1.1\r\nHost: 127.0.0.1".to_owned(),
            405,
        ),
        ("GET / HTTP/1.1\r\nHost: rebound.example".to_owned(), 403),
        (
            format!("GET /?text={long} HTTP/1.1\r\nHost: 127.0.0.1"),
            414,
        ),
        ("GET /?page=0 HTTP/1.1\r\nHost: 127.0.0.1".to_owned(), 400),
        (
            "GET /record/../a.json HTTP/1.1\r\nHost: 127.0.0.1".to_owned(),
            404,
        ),
        (
            "GET /../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1".to_owned(),
            404,
        ),
        ("nonsense".to_owned(), 400),
    ] {
        let request = format!("{request}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let response = answer(address(&server), &request);
        assert_eq!(status(&response), expected, "{request} {response}");
        if expected == 405 {
            assert!(response.contains("allow: GET, HEAD"), "{response}");
        }
    }
}

#[test]
fn address_that_others_reach_needs_the_token_on_every_page() {
    let (_folder, server) = start("served-token", "0.0.0.0:0");
    let url = server.url();
    let (_, token) = url.split_once("/?token=").unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], address(&server).port()));
    for path in ["/", "/record/1", "/trend", "/none"] {
        let response = get(address, path);
        assert_eq!(status(&response), 401, "{path}: {response}");
        assert!(!response.contains(token), "{path}");
    }
    let list = get(address, &format!("/?token={token}"));
    assert_eq!(status(&list), 200);
    let link = format!("/record/1?token={token}");
    assert!(list.contains(&link), "{list}");
    assert_eq!(status(&get(address, &link)), 200);
}

#[test]
fn many_browsers_get_the_same_and_the_port_is_free_at_the_end() {
    let (_folder, server) = start("served-many", LOOPBACK);
    let address = address(&server);
    let readers = (0..12).map(|_| thread::spawn(move || get(address, "/record/1")));
    let readers: Vec<_> = readers.collect();
    let responses = readers.into_iter().map(|it| it.join().unwrap());
    let bodies = responses.map(|it| it.split_once("\r\n\r\n").unwrap().1.to_owned());
    let mut bodies: Vec<String> = bodies.collect();
    bodies.dedup();
    assert_eq!(bodies.len(), 1);
    drop(server);
    drop(TcpListener::bind(address).unwrap());
}

#[test]
fn port_that_is_taken_is_an_error_with_its_cure() {
    let taken = TcpListener::bind(LOOPBACK).unwrap();
    let folder = Folder::new("served-taken");
    let archive = Archive::open(folder.folder()).unwrap();
    let error = ArchiveServer::start(&archive, taken.local_addr().unwrap()).unwrap_err();
    assert!(error.to_string().contains("the records"), "{error}");
    assert!(error.cure().contains("another port"), "{}", error.cure());
}

#[test]
fn browser_shows_the_pages_and_the_policy_lets_their_styles_pass() {
    let (folder, server) = start("served-chromium", LOOPBACK);
    for (path, words) in [
        ("", "Compare B with A"),
        ("record/1", "What it shows"),
        ("trend?metric=p50&by=target", "<svg class=\"chart\""),
    ] {
        let mut command = browser::chromium(&folder);
        command.args(["--dump-dom", "--enable-logging=stderr"]);
        command.arg(format!("{}{path}", server.url()));
        let (page, errors) = browser::printed(command);
        assert!(!errors.contains("Content Security Policy"), "{errors}");
        assert!(page.contains(words), "{words} {page}");
    }
}

#[test]
fn pages_are_accessible() {
    let (_records, server) = start("served-axe", LOOPBACK);
    let folder = Folder::new("axe-served");
    for path in [
        "/",
        "/record/1",
        "/compare?a=1&b=2",
        "/trend?metric=p50&by=target",
        "/none",
    ] {
        let response = get(address(&server), path);
        let (_, page) = response.split_once("\r\n\r\n").unwrap();
        let found = browser::violations(&folder, page);
        assert!(found.is_empty(), "{path}: {found:#?}");
    }
}
