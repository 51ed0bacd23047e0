//! `throng compare-transports` on servers: BIND, the responder, ports without a listener; and an
//! interrupt.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use lab::target::{BindOptions, DOH_PATH, Service};
use measure::comparison::Comparison;
use measure::{HttpMethod, RunRecord};
use testing::folder::Folder;
use testing::ports::{ClosedTcpPort, Listener};
use testing::program::signal;

use crate::dnsperf::{bind, names_in};
use crate::process::{Responder, THRONG, throng};

const COMPARE: &str = "compare-transports --quiet";

fn compared(flags: &str) -> Comparison {
    let stdout = throng(&format!("{COMPARE} --format json {flags}")).succeeded();
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn servers_on_different_ports_get_their_own_queries() {
    let folder = Folder::new("compare-ports");
    let names = folder.write("names.txt", "a.example A\nb.example A\n");
    let responder = Responder::start("udp:127.0.0.1:0,tcp:127.0.0.1:0,dot:127.0.0.1:0", "");
    let ports: Vec<String> = responder
        .addresses
        .iter()
        .map(|(transport, address)| format!("{transport}={}", address.port()))
        .collect();
    let flags = format!(
        "--server 127.0.0.1 --port {} --names {names} --queries 300 --clients 3 --tls-insecure",
        ports.join(",")
    );
    let comparison = compared(&flags);
    assert!(!comparison.self_test);
    for (contender, (transport, address)) in comparison.transports.iter().zip(&responder.addresses)
    {
        assert_eq!(&contender.transport.to_string(), transport);
        assert_eq!(contender.target, address.to_string());
    }
    let counters = responder.counters();
    assert_eq!(counters.get("queries received"), 900, "{}", counters.0);
}

#[test]
fn bind_is_compared_over_all_that_it_speaks() {
    let folder = Folder::new("compare-bind");
    let names = names_in(&folder);
    let target = bind(|options| BindOptions {
        services: vec![Service::Dot, Service::Doh2],
        ..options
    });
    let transports = ["udp", "tcp", "dot", "doh2"];
    let ports = transports.map(|name| {
        let address = target.endpoints().address(name.parse().unwrap()).unwrap();
        format!("{name}={}", address.port())
    });
    let comparison = compared(&format!(
        "--transports {} --server 127.0.0.1 --port {} --names {names} --queries 400 --clients 4 \
         --outstanding 40 --tls-insecure --doh-method get --records {}",
        transports.join(","),
        ports.join(","),
        folder.path("records")
    ));
    assert_eq!(comparison.costs.len(), 3 + 2);
    let file = |name: &str| folder.path(&format!("records/{name}-1.json"));
    let record =
        |name: &str| RunRecord::from_json(&fs::read_to_string(file(name)).unwrap()).unwrap();
    for name in transports {
        let record = record(name);
        assert_eq!(record.total.counts.rcodes.by_rcode[0], 400, "{name}");
        let has_tls = ["dot", "doh2"].contains(&name);
        let handshakes = if has_tls { 4 } else { 0 };
        assert_eq!(record.connections().handshakes.full, handshakes, "{name}");
        assert_eq!(record.scenario.tls.is_some(), has_tls);
    }
    let scenario = record("doh2").scenario;
    let http = scenario.http.unwrap();
    assert_eq!(
        (http.method, http.path.as_str()),
        (HttpMethod::Get, DOH_PATH)
    );
    let tls = scenario.tls.unwrap();
    assert_eq!(
        (tls.alpn.as_deref(), tls.version.as_deref()),
        (Some("h2"), Some("TLS 1.3"))
    );
    assert_eq!((tls.verified, tls.settings.alpn.len()), (false, 1));
    assert!(tls.group.is_some() && tls.cipher_suite.is_some());
}

/// Checks that a comparison is refused with these parts in its error and its hint.
fn check(flags: &str, error_part: &str, hint_part: &str) {
    throng(&format!("{COMPARE} {flags}")).refused_with(error_part, hint_part);
}

#[test]
fn one_transport_that_nobody_serves_is_named_before_anything_is_sent() {
    let folder = Folder::new("compare-unreachable");
    let names = folder.write("names.txt", "a.example A\n");
    let udp = Listener::new();
    let port = ClosedTcpPort::new();
    let closed = port.address();
    check(
        &format!(
            "--server udp={},tcp={closed} --transports udp,tcp --names {names}",
            udp.address()
        ),
        &format!("tcp: nothing is listening on {closed} over TCP"),
        "check address and port",
    );
    assert_eq!(udp.received(), []);
}

#[test]
fn interrupt_ends_the_comparison_and_its_record_is_kept() {
    let folder = Folder::new("compare-interrupt");
    let records = folder.path("records");
    let mut command = Command::new(THRONG);
    command.args([
        "compare-transports",
        "--duration",
        "60s",
        "--interval",
        "50ms",
    ]);
    command
        .args(["--rate", "100", "--records", &records])
        .stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("0.1 s  sent ") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0);
    }
    signal(&child, "INT");
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(
        rest.contains("interrupted: 0 of 3 runs are compared"),
        "{rest}"
    );
    assert!(
        rest.contains("error: interrupted within the first run"),
        "{rest}"
    );
    let kept = fs::read_to_string(format!("{records}/udp-1.json")).unwrap();
    assert!(RunRecord::from_json(&kept).is_ok());
}
