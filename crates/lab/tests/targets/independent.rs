//! Every target, asked over each of its transports by clients that are not ours.
//!
//! This proves the targets before our own engine is tried on them: `dig`, `kdig` (of two
//! releases), `curl` and `openssl s_client`, all verifying the server's certificate.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use lab::target::{DOH_PATH, Product, RunningServer, Service, TLS_NAME, prepared};

use crate::query::{message, read};
use crate::zone;

/// Name, type, RCODE and, if there is one, the address in the answer.
const QUESTIONS: [(&str, &str, &str, Option<&str>); 3] = [
    ("test-record-1.lab.test", "A", "NOERROR", Some("192.0.2.1")),
    ("test-record-2.lab.test", "AAAA", "NOERROR", None),
    ("missing.lab.test", "A", "NXDOMAIN", None),
];

/// A client that prints a response as `dig` does.
#[derive(Clone, Copy, Debug)]
enum Program {
    Dig,
    Kdig,
    /// That of Debian 13.
    Kdig34,
}

use Program::{Dig, Kdig, Kdig34};

/// Over what, by what, with which flags.
type Row = (Option<Service>, Program, &'static [&'static str]);

/// Flags for UDP and TCP; `None` is Do53.
const DO53: [Row; 4] = [
    (None, Dig, &["+notcp", "+ignore"]),
    (None, Kdig, &["+notcp", "+ignore"]),
    (None, Dig, &["+tcp"]),
    (None, Kdig, &["+tcp"]),
];

/// `dig` asks over HTTP/2 with and without TLS, `kdig` over QUIC.
const ENCRYPTED: [Row; 14] = [
    (Some(Service::Dot), Dig, &["+tls"]),
    (Some(Service::Dot), Kdig, &["+tls"]),
    (Some(Service::Dot), Kdig34, &["+tls"]),
    (Some(Service::Doh2), Dig, &["+https"]),
    (Some(Service::Doh2), Dig, &["+https-get"]),
    (Some(Service::Doh2), Kdig, &["+https"]),
    (Some(Service::Doh2), Kdig, &["+https", "+https-get"]),
    (Some(Service::Doh2), Kdig34, &["+https"]),
    (Some(Service::Doh2), Kdig34, &["+https", "+https-get"]),
    (Some(Service::H2c), Dig, &["+http-plain"]),
    (Some(Service::H2c), Dig, &["+http-plain-get"]),
    (Some(Service::Doq), Kdig, &["+quic"]),
    (Some(Service::Doq), Kdig34, &["+quic"]),
    (Some(Service::Doq), Kdig34, &["+quic", "+keepopen"]),
];

impl Program {
    fn command(self) -> Command {
        match self {
            Dig => Command::new("dig"),
            Kdig => Command::new("kdig"),
            Kdig34 => prepared::debian13("usr/bin/kdig").unwrap(),
        }
    }

    fn patience(self) -> &'static [&'static str] {
        match self {
            Dig => &["+time=10", "+tries=1"],
            Kdig | Kdig34 => &["+timeout=10", "+retry=0"],
        }
    }
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn ask_as_row_says(row: &Row, server: SocketAddr, authority: &Path) {
    let (service, program, flags) = row;
    for (name, kind, rcode, address) in QUESTIONS {
        let mut command = program.command();
        command.arg(format!("@{}", server.ip()));
        command.args(["-p", &server.port().to_string()]);
        command.args(program.patience());
        if service.is_some_and(Service::has_tls) {
            command.arg(format!("+tls-ca={}", authority.display()));
            command.arg(format!("+tls-hostname={TLS_NAME}"));
        }
        // After the CA's flag, with which `kdig` understands TLS over TCP.
        let output = command.args(*flags).args([name, kind]).output().unwrap();
        let text = printed(&output);
        let header = text.lines().find(|line| line.contains("->>HEADER<<-"));
        let seen = header
            .and_then(|line| line.split("status: ").nth(1))
            .unwrap_or_default();
        let seen = seen.split([',', ';']).next().unwrap_or_default();
        assert_eq!(seen, rcode, "{command:?}\n{text}");
        let answers = |line: &str| address.is_some_and(|address| line.ends_with(address));
        let has_answer = text.lines().any(answers);
        assert_eq!(has_answer, address.is_some(), "{command:?}\n{text}");
    }
}

/// Asks with `curl`, by POST and by GET; `version` is what it must have used.
fn ask_with_curl(server: &RunningServer, service: Service, flags: &[&str], version: &str) {
    let at = server.endpoints().service(service).unwrap();
    let scheme = if service.has_tls() { "https" } else { "http" };
    let url = format!("{scheme}://{TLS_NAME}:{}{DOH_PATH}", at.port());
    let file = server.folder().join("query.bin");
    for is_post in [true, false] {
        for (name, rcode) in [("test-record-3.lab.test", 0), ("missing.lab.test", 3)] {
            let query = message(name);
            std::fs::write(&file, &query).unwrap();
            let mut command = prepared::debian13("usr/bin/curl").unwrap();
            command.args(["--silent", "--show-error", "--max-time", "20"]);
            command.args(flags).args(["--cacert", "authority.pem"]);
            command.args([
                "--resolve",
                &format!("{TLS_NAME}:{}:{}", at.port(), at.ip()),
            ]);
            command.args(["--header", "accept: application/dns-message"]);
            command.args([
                "--write-out",
                "%{stderr}%{http_version} %{http_code} %{content_type}",
            ]);
            if is_post {
                command.args(["--header", "content-type: application/dns-message"]);
                command.args(["--data-binary", "@query.bin", &url]);
            } else {
                command.arg(format!("{url}?dns={}", base64url(&query)));
            }
            let output = command.current_dir(server.folder()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            let expected = format!("{version} 200 application/dns-message");
            assert_eq!(said.trim(), expected, "{command:?}");
            let answered = read(&output.stdout);
            assert_eq!(answered.rcode, rcode, "{command:?}");
            if rcode == 0 {
                assert_eq!(answered.answer_count, 1, "{command:?}");
            }
        }
    }
}

/// Base64 for URLs, without padding (RFC 4648, section 5).
fn base64url(octets: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for group in octets.chunks(3) {
        let bits = group
            .iter()
            .fold(0_u32, |bits, octet| bits << 8 | u32::from(*octet));
        let bits = bits << (8 * (3 - group.len()));
        for digit in 0..=group.len() {
            let index = bits >> (18 - 6 * digit) & 0x3f;
            text.push(char::from(DIGITS[index as usize]));
        }
    }
    text
}

/// The handshake alone: the chain and the name are verified, and ALPN is as it should be.
fn shake_hands(server: &RunningServer, service: Service, alpn: &str) -> String {
    let at = server.endpoints().service(service).unwrap();
    let output = Command::new("openssl")
        .args(["s_client", "-connect", &at.to_string(), "-alpn", alpn])
        .args(["-servername", TLS_NAME, "-verify_hostname", TLS_NAME])
        .args(["-verify_return_error", "-CAfile", "authority.pem"])
        .current_dir(server.folder())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = printed(&output);
    assert!(text.contains("Verify return code: 0 (ok)"), "{text}");
    assert!(text.contains("TLSv1.3"), "{text}");
    text
}

fn check(product: Product) {
    let server = product.start(&zone()).unwrap();
    let authority = server.ca_file();
    let do53 = server.endpoints().do53();
    let has_udp = server.endpoints().address(proto::Transport::Udp).is_some();
    for row in DO53.iter().filter(|row| has_udp || row.2 == ["+tcp"]) {
        ask_as_row_says(row, do53, &authority);
    }
    for service in product.services() {
        let at = server.endpoints().service(*service).unwrap();
        for row in ENCRYPTED.iter().filter(|row| row.0 == Some(*service)) {
            ask_as_row_says(row, at, &authority);
        }
        match service {
            Service::Dot => {
                shake_hands(&server, *service, "dot");
            }
            Service::Doh2 => {
                let text = shake_hands(&server, *service, "h2");
                assert!(text.contains("ALPN protocol: h2"), "{text}");
                ask_with_curl(&server, *service, &["--http2"], "2");
            }
            Service::H2c => ask_with_curl(&server, *service, &["--http2-prior-knowledge"], "2"),
            Service::Doh3 => ask_with_curl(&server, *service, &["--http3-only"], "3"),
            Service::Doq => {}
        }
    }
}

#[test]
fn bind_answers_independent_clients_over_all_its_transports() {
    check(Product::Bind);
}

#[test]
fn unbound_answers_independent_clients_over_all_its_transports() {
    check(Product::Unbound);
}

#[test]
fn knot_answers_independent_clients_over_all_its_transports() {
    check(Product::Knot);
}

#[test]
fn coredns_answers_independent_clients_over_all_its_transports() {
    check(Product::CoreDns);
}

#[test]
fn dnsdist_answers_independent_clients_over_all_its_transports() {
    check(Product::Dnsdist);
}

#[test]
fn haproxy_answers_independent_clients_over_all_its_transports() {
    check(Product::Haproxy);
}

#[test]
fn base64_for_urls_is_that_of_rfc_8484() {
    // RFC 8484, section 4.1.1: the query for www.example.com, A.
    let mut query = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    query.extend_from_slice(b"\x03www\x07example\x03com\0\0\x01\0\x01");
    let expected = "AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB";
    assert_eq!(base64url(&query), expected);
}
