//! Our responder, asked by clients that are not ours, and loaded by other generators.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use lab::run::{Serving, SocketUse, serve};
use lab::target::Service;
use proto::Transport;
use proto::doq::MessageIds;
use responder::certificate::{SelfSigned, self_signed};
use responder::{ResponderConfig, Zone};
use testing::folder::Folder;

use crate::clients::{Asked, Way, ask_all_ways};
use crate::{numbers_after, zone};

/// What the responder is asked over.
const OVER: [Transport; 6] = Transport::ALL;

/// Names in the zone that a generator asks for, and names that are not in it.
const EXISTING: u64 = 3;
const MISSING: u64 = 1;

/// Each generator asks this often for each name: 12,000 queries.
const ROUNDS: u64 = 3_000;

/// The responder with the zone of these tests, and a folder for its clients.
pub(crate) struct Responder {
    pub(crate) serving: Serving,
    folder: Folder,
}

impl Responder {
    /// Starts it at `address`; the folder is named for the test.
    pub(crate) fn start(address: IpAddr, over: &[Transport], test: &str) -> Responder {
        let folder = Folder::new(test);
        let identity = self_signed(&SelfSigned::default()).unwrap();
        folder.write("authority.pem", &identity.certificate_pem);
        let config = ResponderConfig {
            listen: over.iter().map(|it| (*it, (address, 0).into())).collect(),
            listen_http: vec![(address, 0).into()],
            zone: Arc::new(Zone::from_text(&zone().text, None).unwrap()),
            tls: Some(identity.server_config),
            // For kxdpgun; others send 0 (RFC 9250, section 4.2.1).
            doq_message_ids: MessageIds::Any,
            ..ResponderConfig::default()
        };
        let serving = serve(&config, &[], SocketUse::default()).unwrap();
        Responder { serving, folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.folder()
    }

    pub(crate) fn address(&self, transport: Transport) -> SocketAddr {
        self.serving.address(transport).unwrap()
    }

    /// Where it listens for DoH/2 without TLS.
    fn http_address(&self) -> SocketAddr {
        self.serving.addresses().last().unwrap().1
    }

    /// Writes the names file that generators read, and returns its path.
    pub(crate) fn write_names(&self) -> String {
        let existing = (1..=EXISTING).map(|number| format!("test-record-{number}.lab.test. A\n"));
        let missing = (1..=MISSING).map(|number| format!("missing-{number}.lab.test. A\n"));
        let names: String = existing.chain(missing).collect();
        self.folder.write("names.txt", names)
    }
}

/// How many of `queries`, asked in turn, are for names that exist.
pub(crate) fn existing_of(queries: u64) -> u64 {
    let names = EXISTING + MISSING;
    queries / names * EXISTING + (queries % names).min(EXISTING)
}

fn way(transport: Transport) -> Way {
    match (transport, Service::of(transport)) {
        (Transport::Udp, _) => Way::Udp,
        (_, None) => Way::Tcp,
        (_, Some(service)) => Way::Of(service),
    }
}

#[test]
fn responder_answers_other_clients_over_all_its_transports_and_counts_their_queries() {
    let target = Responder::start(Ipv4Addr::LOCALHOST.into(), &OVER, "other-clients");
    let mut ways = OVER.map(|it| (way(it), target.address(it))).to_vec();
    ways.push((Way::Of(Service::H2c), target.http_address()));
    let asked = ask_all_ways(&Asked {
        folder: target.folder(),
        ways,
    });
    let counters = target.serving.stop();
    let http = asked.last().map_or(0, |(_, queries)| *queries);
    assert!(http > 0, "no queries without TLS");
    for (transport, (_, queries)) in OVER.into_iter().zip(asked) {
        assert!(queries > 0, "no queries over {transport}");
        let queries = match transport {
            Transport::Doh2 => queries + http,
            _ => queries,
        };
        assert_eq!(counters.queries.get(transport), queries, "{transport}");
        assert_eq!(counters.responses.get(transport), queries, "{transport}");
    }
}

/// dnsperf's mode for a transport, with its options for each way to ask.
fn dnsperf_modes(transport: Transport) -> (&'static str, &'static [&'static str]) {
    match transport {
        Transport::Udp => ("udp", &[""]),
        Transport::Tcp => ("tcp", &[""]),
        Transport::Dot => ("dot", &[""]),
        Transport::Doh2 => ("doh", &["doh-method=GET", "doh-method=POST"]),
        Transport::Doh3 | Transport::Doq => ("", &[]),
    }
}

#[test]
fn dnsperf_gets_every_response_from_the_responder_and_both_count_the_same() {
    for transport in OVER {
        let (mode, methods) = dnsperf_modes(transport);
        for method in methods {
            let target = Responder::start(Ipv4Addr::LOCALHOST.into(), &OVER, "dnsperf");
            let at = target.address(transport);
            let mut command = Command::new("dnsperf");
            command.args(["-m", mode, "-s", "127.0.0.1", "-p", &at.port().to_string()]);
            command.args(["-c", "10", "-q", "50", "-n", &ROUNDS.to_string()]);
            // No query times out because the responder was not scheduled.
            command.args(["-t", "60"]);
            command.arg("-d").arg(target.write_names());
            if !method.is_empty() {
                command.args(["-O", method, "-O", "doh-uri=https://localhost/dns-query"]);
            }
            let output = command.output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            let counters = target.serving.stop();
            let queries = ROUNDS * (EXISTING + MISSING);
            for (label, expected) in [
                ("Queries sent:", queries),
                ("Queries completed:", queries),
                ("Queries lost:", 0),
                ("NOERROR", existing_of(queries)),
                ("NXDOMAIN", queries - existing_of(queries)),
            ] {
                let seen = numbers_after(&text, label);
                assert_eq!(seen, [expected], "{label} over {mode}, {method}:\n{text}");
            }
            assert_eq!(counters.queries.get(transport), queries, "{transport}");
            assert_eq!(counters.responses.get(transport), queries, "{transport}");
        }
    }
}
