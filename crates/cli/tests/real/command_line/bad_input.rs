//! Bad input that is found out at a port, in a folder or from a limit of the system: one clear
//! error with its cure, exit code 2, and nothing was started.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::thread;

use testing::folder::Folder;
use testing::ports::{ClosedTcpPort, ClosedUdpPort, Listener};
use testing::program::execute;

use crate::process::{Responder, THRONG, throng};

/// Checks that a command is refused with these parts in its error and its hint.
fn check(flags: &str, error_part: &str, hint_part: &str) {
    throng(flags).refused_with(error_part, hint_part);
}

/// A names file that is as it should be.
fn names_in(folder: &Folder) -> String {
    folder.write("names.txt", "a.example A\n")
}

#[test]
fn a_server_that_cannot_be_found_or_reached_is_named() {
    let folder = Folder::new("bad-server");
    let names = names_in(&folder);
    let run = |server: &str, flags: &str| format!("run --names {names} --server {server} {flags}");
    let unresolvable = "cannot resolve the server `nowhere.invalid`";
    check(
        &run("nowhere.invalid", ""),
        unresolvable,
        "check the name, or give an address",
    );
    check(
        &run("nowhere.invalid:53", ""),
        unresolvable,
        "check the name, or give an address",
    );
    let listens = "check address and port, and that the server listens for this transport";
    let (udp, tcp) = (ClosedUdpPort::new(), ClosedTcpPort::new());
    let (udp, tcp) = (udp.address(), tcp.address());
    check(
        &run(&udp.to_string(), ""),
        &format!("nothing is listening on {udp} over UDP"),
        listens,
    );
    for transport in ["tcp", "dot --tls-insecure"] {
        let flags = format!("--transport {transport}");
        check(
            &run(&tcp.to_string(), &flags),
            &format!("nothing is listening on {tcp} over TCP"),
            listens,
        );
    }
}

#[test]
fn an_unwritable_record_is_found_before_anything_is_sent() {
    let listener = Listener::new();
    let responder = Responder::start("udp:127.0.0.1:0,tcp:127.0.0.1:0", "");
    let folder = Folder::new("unwritable");
    let names = names_in(&folder);
    let directory = folder.folder().display();
    let cure = "give --record a file in a folder that exists and may be written";
    for (record, reason) in [
        (
            folder.path("missing/record.json"),
            "No such file or directory",
        ),
        (format!("{directory}"), "Is a directory"),
        (format!("{names}/record.json"), "Not a directory"),
    ] {
        for (transport, address) in &responder.addresses {
            let server = format!("--server {address} --transport {transport} --names {names}");
            check(&format!("run {server} --record {record}"), reason, cure);
        }
        let server = format!("--server {} --names {names}", listener.address());
        check(&format!("run {server} --record {record}"), reason, cure);
    }
    let counters = responder.counters();
    assert_eq!(counters.0.lines().count(), 2, "{}", counters.0);
    for label in ["queries received", "bytes received", "connections accepted"] {
        assert_eq!(counters.get(label), 0, "{}", counters.0);
    }
    assert_eq!(listener.received(), []);
    let left: Vec<_> = fs::read_dir(folder.folder()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "only the names are there: {left:?}");
}

#[test]
fn a_run_that_does_not_start_leaves_its_record_as_it_was_and_an_error_for_ci() {
    let folder = Folder::new("not-started");
    let junit = folder.path("junit.xml");
    let (names, new) = (names_in(&folder), folder.path("new.json"));
    let old = folder.write("old.json", "kept");
    let port = ClosedUdpPort::new();
    let closed = port.address();
    for record in [&new, &old] {
        let flags = format!(
            "--server {closed} --names {names} --record {record} --fail-if p99>5ms --junit {junit}"
        );
        check(
            &format!("run {flags}"),
            "nothing is listening",
            "check address and port",
        );
    }
    assert!(!Path::new(&new).exists());
    let junit = fs::read_to_string(junit).unwrap();
    assert!(
        junit.contains("<error message=\"nothing is listening"),
        "{junit}"
    );
    assert_eq!(fs::read_to_string(old).unwrap(), "kept");
}

#[test]
fn a_cpu_that_is_not_there_is_named() {
    let (error, hint) = throng("run --cpus 4000 --queries 1").refused();
    assert!(error.contains("CPU 4000"), "{error}");
    assert!(!hint.is_empty(), "{error}");
}

#[test]
fn too_many_clients_for_the_limit_on_open_files_get_a_cure_that_works() {
    for transport in ["udp", "tcp"] {
        let run = format!(
            "prlimit --nofile=100:100 {THRONG} run --quiet --agents 1 --transport {transport}"
        );
        let (error, hint) = execute(&format!("{run} --clients 500 --queries 10")).refused();
        assert!(error.starts_with("500 clients need "), "{error}");
        assert!(
            error.ends_with(" open files, and the limit here is 100"),
            "{error}"
        );
        assert!(hint.contains("or raise the limit: `ulimit -Hn "), "{hint}");
        let cure = hint
            .strip_prefix("use ")
            .unwrap()
            .split(',')
            .next()
            .unwrap();
        assert!(cure.starts_with("--clients "), "{hint}");
        execute(&format!("{run} {cure} --queries 10")).succeeded();
    }
}

#[test]
fn tls_that_cannot_be_verified_or_is_none_is_refused_before_the_run() {
    let folder = Folder::new("bad-tls");
    let (names, certificate) = (names_in(&folder), folder.path("certificate.pem"));
    let dot = "dot:127.0.0.1:0";
    let responder = Responder::start(dot, &format!("--write-certificate {certificate}"));
    let server = format!("run --transport dot --names {names} --queries 10");
    let run = format!("{server} --server {}", responder.address());
    let failed = format!("the TLS handshake with {} fails: ", responder.address());
    check(&run, &failed, "--tls-ca FILE");
    let wrong_name = format!("{run} --tls-ca {certificate} --tls-name wrong.example");
    check(&wrong_name, &failed, "verified as `wrong.example`");
    let no_name = format!("{run} --tls-ca {certificate} --tls-name bad..name");
    check(&no_name, "is not a name that TLS can verify", "--tls-name");
    let counters = responder.counters();
    assert_eq!(counters.get("queries received"), 0, "{}", counters.0);

    let plain = speaks_no_tls();
    let run = format!("{server} --server {plain} --tls-insecure");
    let failed = format!("the TLS handshake with {plain} fails: ");
    check(&run, &failed, "check that the port speaks TLS (DoT: 853)");
}

/// A TCP service that answers a TLS handshake with a line of text, once.
fn speaks_no_tls() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Read first: unread octets would turn the end of the connection into a reset.
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"220 this is a service without encryption\r\n");
    });
    address
}

#[test]
fn a_target_that_was_not_looked_for_and_is_not_there_is_exit_code_1() {
    let folder = Folder::new("not-looked-for");
    let names = names_in(&folder);
    let (udp, tcp) = (ClosedUdpPort::new(), ClosedTcpPort::new());
    for (transport, address) in [("udp", udp.address()), ("tcp", tcp.address())] {
        let server = format!("--server {address} --names {names} --transport {transport}");
        let flags = "--no-preflight --duration 200ms --outstanding 2 --timeout 100ms";
        let text = throng(&format!("run --quiet {server} {flags}")).ended_with(1);
        assert!(text.contains("\nEverything else: "), "{text}");
        assert!(
            text.contains(&format!("{transport} to {address}")),
            "{text}"
        );
    }
}
