//! `throng ping`: what it shows of each response, and at its end.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use measure::RunRecord;
use serde_json::Value;
use testing::folder::Folder;
use testing::ports::{ClosedUdpPort, Listener};
use testing::program::signal;

use crate::dnsperf::bind;
use crate::process::{Responder, THRONG, throng};

const QUICK: &str = "--interval 20ms --timeout 20s";

/// The lines of `--format json`.
fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn each_response_is_a_line_and_the_statistics_come_last() {
    let responder = Responder::start("udp:127.0.0.1:0", "--delay 3ms");
    let address = responder.address();
    let folder = Folder::new("ping-lines");
    let record = folder.path("record.json");
    let text = throng(&format!(
        "ping www.example.com --server {address} --count 5 {QUICK} --record {record}"
    ));
    let text = text.succeeded();
    let mut lines = text.lines();
    let head = format!("www.example.com A over udp from {address}");
    assert_eq!(lines.next(), Some(head.as_str()));
    for number in 1..=5 {
        let line = lines.next().unwrap();
        let start = format!("   {number}  49 bytes from {address}  NOERROR  ");
        assert!(
            line.starts_with(&start) && line.contains(" aa rd"),
            "{text}"
        );
    }
    assert_eq!(lines.next(), Some(""));
    assert_eq!(
        lines.next(),
        Some("5 queries sent, 5 responses, 0 lost (0 %)")
    );
    assert_eq!(lines.next(), Some("RCODEs: NOERROR 5"));
    assert!(text.contains("\n  response "), "{text}");
    let record = std::fs::read_to_string(record).unwrap();
    let record = RunRecord::from_json(&record).unwrap();
    let least = record.total.distributions.service.min_ns();
    assert!(least >= Some(3_000_000), "{text}");
    assert_eq!(responder.counters().get("queries received"), 5);
}

#[test]
fn every_transport_is_asked_and_connections_are_timed_apart() {
    for transport in ["udp", "tcp", "dot", "doh2", "doh3", "doq"] {
        let folder = Folder::new(&format!("ping-{transport}"));
        let record = folder.path("record.json");
        let responder = Responder::start(&format!("{transport}:[::1]:0"), "");
        let tls = if matches!(transport, "udp" | "tcp") {
            ""
        } else {
            "--tls-insecure"
        };
        let address = responder.address();
        let flags = format!("--transport {transport} --count 4 --record {record} {tls} {QUICK}");
        let each = if transport == "udp" {
            ""
        } else {
            "--queries-per-connection 2"
        };
        let flags = format!("{flags} {each} --format json");
        let line = format!("ping a.example --server {address} --type a,AAAA {flags}");
        let shown = lines(&throng(&line).succeeded());
        let of = |event: &str| shown.iter().filter(|line| line["event"] == event).count();
        assert_eq!((of("response"), of("statistics")), (4, 1), "{transport}");
        let asked: Vec<&Value> = (shown.iter())
            .filter(|line| line["event"] == "response")
            .map(|line| &line["question"])
            .collect();
        assert_eq!(asked[..2], ["a.example A", "a.example AAAA"], "{transport}");
        let statistics = &shown.last().unwrap()["statistics"];
        let steps = statistics["set_up"].as_array().unwrap();
        assert_eq!(
            steps.is_empty(),
            transport == "udp",
            "{transport}: {statistics}"
        );
        assert_eq!(of("connected") >= 2, transport != "udp", "{transport}");
        let record = std::fs::read_to_string(record).unwrap();
        let record = RunRecord::from_json(&record).unwrap();
        assert_eq!(record.total.counts.responses, 4);
        let time = &statistics["time"];
        let least = record.total.distributions.service.min_ns();
        assert_eq!(time["min_ns"].as_u64(), least, "{transport}");
    }
}

#[test]
fn losses_and_rcodes_are_shown_where_they_happen() {
    for (flags, of_line, of_end) in [
        (
            "--rcodes SERVFAIL=1",
            "  SERVFAIL  ",
            "RCODEs: SERVFAIL 2\n",
        ),
        ("--truncate 1", " TC rd", "of note: truncated 2\n"),
    ] {
        let responder = Responder::start("udp:127.0.0.1:0", flags);
        let line = format!(
            "ping a.example --server {} --count 2 {QUICK}",
            responder.address()
        );
        let text = throng(&line).succeeded();
        assert!(text.contains(of_line) && text.contains(of_end), "{text}");
    }

    let listener = Listener::new();
    let silent = listener.address();
    let line = format!("ping a.example --server {silent} --count 2 --interval 10ms --timeout 50ms");
    let text = throng(&line).ended_with(1);
    assert!(text.contains("   2  no response: timed out\n"), "{text}");
    assert!(
        text.contains("2 queries sent, 0 responses, 2 lost (100 %)\n"),
        "{text}"
    );
    assert!(text.contains("of note: timed out 2\n"), "{text}");
    assert_eq!(listener.received().len(), 2);
}

#[test]
fn an_interrupt_ends_it_with_the_statistics() {
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let address = responder.address().to_string();
    let mut command = Command::new(THRONG);
    command.args(["ping", "a.example", "--count", "0", "--interval", "10ms"]);
    command.args(["--server", &address]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("   5  ") {
        assert!(stdout.read_line(&mut text).unwrap() > 0, "{text}");
    }
    signal(&child, "INT");
    stdout.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    assert!(text.contains(" 0 lost (0 %)\n"), "{text}");
}

#[test]
fn bind_answers_over_udp_and_tcp() {
    let target = bind(|options| options);
    let address = target.endpoints().do53();
    for (transport, name, rcode) in [
        ("udp", "test-record-1.lab.test", "NOERROR"),
        ("tcp", "missing.lab.test", "NXDOMAIN"),
    ] {
        let flags = format!("--transport {transport} --dnssec --edns-size 1232 --count 3 {QUICK}");
        let text = throng(&format!("ping {name} --server {address} {flags}")).succeeded();
        assert!(
            text.contains(&format!("RCODEs: {rcode} 3\n")),
            "{transport}: {text}"
        );
        assert_eq!(
            text.contains("\n  TCP connect "),
            transport == "tcp",
            "{text}"
        );
    }
}

#[test]
fn a_port_without_a_listener_is_refused() {
    let closed = ClosedUdpPort::new();
    let line = format!("ping a.example --server {}", closed.address());
    let (error, _) = throng(&line).refused();
    assert!(error.contains("nothing is listening"), "{error}");
}
