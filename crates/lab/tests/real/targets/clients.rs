//! Clients that are not ours, and how each of them asks over each transport.
//!
//! `dig` and `kdig`, of Debian 12 and 13, `curl` and `openssl s_client`; all verify the
//! certificate. They prove the servers that our generator is tried on, and try our responder.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use lab::target::{DOH_PATH, Service, TLS_NAME, prepared};

use crate::query::{message, read};

/// Name, type, RCODE and, if there is one, the address in the answer.
const QUESTIONS: [(&str, &str, &str, Option<&str>); 3] = [
    ("test-record-1.lab.test", "A", "NOERROR", Some("192.0.2.1")),
    ("test-record-2.lab.test", "AAAA", "NOERROR", None),
    ("missing.lab.test", "A", "NXDOMAIN", None),
];

/// How a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Udp,
    Tcp,
    Of(Service),
}

use Way::{Of, Tcp, Udp};

/// A server that is asked.
pub(crate) struct Asked<'a> {
    /// Holds the certificate to trust in `authority.pem`, and takes queries as files.
    pub(crate) folder: &'a Path,
    /// Everything it offers.
    pub(crate) ways: Vec<(Way, SocketAddr)>,
}

/// A client that prints a response as `dig` does.
#[derive(Clone, Copy, Debug)]
enum Program {
    Dig,
    /// That of Debian 13, 9.20.
    NewDig,
    Kdig,
    /// That of Debian 13, 3.4.
    NewKdig,
}

use Program::{Dig, Kdig, NewDig, NewKdig};

/// Over what, by what, with which flags.
type Row = (Way, Program, &'static [&'static str]);

const DOT: Way = Of(Service::Dot);
const DOH2: Way = Of(Service::Doh2);
const H2C: Way = Of(Service::H2c);
const DOQ: Way = Of(Service::Doq);

const ROWS: [Row; 23] = [
    (Udp, Dig, &["+notcp", "+ignore"]),
    (Udp, Kdig, &["+notcp", "+ignore"]),
    (Udp, NewKdig, &["+notcp", "+ignore"]),
    (Tcp, Dig, &["+tcp"]),
    (Tcp, Kdig, &["+tcp"]),
    (Tcp, NewKdig, &["+tcp"]),
    (DOT, Dig, &["+tls"]),
    (DOT, NewDig, &["+tls"]),
    (DOT, Kdig, &["+tls"]),
    (DOT, NewKdig, &["+tls"]),
    (DOH2, Dig, &["+https"]),
    (DOH2, Dig, &["+https-get"]),
    (DOH2, NewDig, &["+https"]),
    (DOH2, NewDig, &["+https-get"]),
    (DOH2, Kdig, &["+https"]),
    (DOH2, Kdig, &["+https", "+https-get"]),
    (DOH2, NewKdig, &["+https"]),
    (DOH2, NewKdig, &["+https", "+https-get"]),
    (H2C, Dig, &["+http-plain"]),
    (H2C, Dig, &["+http-plain-get"]),
    (H2C, NewDig, &["+http-plain"]),
    (DOQ, Kdig, &["+quic"]),
    (DOQ, NewKdig, &["+quic"]),
];

/// Has every client ask over every way that it knows; returns how many queries were asked each
/// way, handshakes without a query excepted.
pub(crate) fn ask_all_ways(asked: &Asked<'_>) -> Vec<(Way, u64)> {
    let count = |(way, at): &(Way, SocketAddr)| {
        let rows = ROWS.iter().filter(|row| row.0 == *way);
        let mut queries = rows.map(|row| ask_as_row_says(row, *at, asked)).sum();
        match way {
            Of(Service::Dot) => shake_hands(*at, asked, "dot"),
            Of(Service::Doh2) => {
                shake_hands(*at, asked, "h2");
                queries += ask_with_curl((*way, *at), asked, "--http2", "2");
            }
            Of(Service::H2c) => {
                queries += ask_with_curl((*way, *at), asked, "--http2-prior-knowledge", "2");
            }
            Of(Service::Doh3) => {
                queries += ask_with_curl((*way, *at), asked, "--http3-only", "3");
            }
            Udp | Tcp | Of(Service::Doq) => {}
        }
        (*way, queries)
    };
    asked.ways.iter().map(count).collect()
}

impl Program {
    fn command(self) -> Command {
        match self {
            Dig => Command::new("dig"),
            NewDig => prepared::debian13("usr/bin/dig").unwrap(),
            Kdig => Command::new("kdig"),
            NewKdig => prepared::debian13("usr/bin/kdig").unwrap(),
        }
    }

    fn patience(self) -> &'static [&'static str] {
        match self {
            Dig | NewDig => &["+time=60", "+tries=1"],
            Kdig | NewKdig => &["+timeout=60", "+retry=0"],
        }
    }
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

impl Way {
    fn has_tls(self) -> bool {
        matches!(self, Of(service) if service.has_tls())
    }
}

/// Returns how many queries that were.
fn ask_as_row_says(row: &Row, server: SocketAddr, asked: &Asked<'_>) -> u64 {
    let (way, program, flags) = row;
    for (name, kind, rcode, address) in QUESTIONS {
        let mut command = program.command();
        command.arg(format!("@{}", server.ip()));
        command.args(["-p", &server.port().to_string()]);
        command.args(program.patience());
        if way.has_tls() {
            command
                .args(["+tls-ca=authority.pem"])
                .current_dir(asked.folder);
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
    QUESTIONS.len() as u64
}

/// Asks with `curl`, by POST and by GET; `version` is what it must have used. Returns how many
/// queries that were.
fn ask_with_curl(way: (Way, SocketAddr), asked: &Asked<'_>, flag: &str, version: &str) -> u64 {
    let (way, at) = way;
    let scheme = if way.has_tls() { "https" } else { "http" };
    let url = format!("{scheme}://{TLS_NAME}:{}{DOH_PATH}", at.port());
    let cases = [
        (true, "test-record-3.lab.test", 0),
        (true, "missing.lab.test", 3),
        (false, "test-record-3.lab.test", 0),
        (false, "missing.lab.test", 3),
    ];
    for (is_post, name, rcode) in cases {
        let query = message(name);
        std::fs::write(asked.folder.join("query.bin"), &query).unwrap();
        let mut command = prepared::debian13("usr/bin/curl").unwrap();
        command.args(["--silent", "--show-error", "--max-time", "60", flag]);
        command.args(["--cacert", "authority.pem"]);
        command.args([
            "--resolve",
            &format!("{TLS_NAME}:{}:{}", at.port(), at.ip()),
        ]);
        command.args(["--header", "accept: application/dns-message"]);
        let written = "%{stderr}%{http_version} %{http_code} %{content_type}";
        command.args(["--write-out", written]);
        if is_post {
            command.args(["--header", "content-type: application/dns-message"]);
            command.args(["--data-binary", "@query.bin", &url]);
        } else {
            command.arg(format!("{url}?dns={}", base64url(&query)));
        }
        let output = command.current_dir(asked.folder).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = format!("{version} 200 application/dns-message");
        assert_eq!(said.trim(), expected, "{command:?}");
        let answered = read(&output.stdout);
        let answers = u16::from(rcode == 0);
        let seen = (answered.rcode, answered.answer_count);
        assert_eq!(seen, (rcode, answers), "{command:?}");
    }
    cases.len() as u64
}

/// The handshake alone: chain and name are verified, and `openssl` offers this ALPN protocol.
fn shake_hands(at: SocketAddr, asked: &Asked<'_>, alpn: &str) {
    let output = Command::new("openssl")
        .args(["s_client", "-connect", &at.to_string(), "-alpn", alpn])
        .args(["-servername", TLS_NAME, "-verify_hostname", TLS_NAME])
        .args(["-verify_return_error", "-CAfile", "authority.pem"])
        .current_dir(asked.folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = printed(&output);
    assert!(text.contains("Verify return code: 0 (ok)"), "{text}");
    assert!(text.contains("TLSv1.3"), "{text}");
    // DNS over TLS needs none (RFC 7858, section 3.1), HTTP/2 does (RFC 9113, section 3.2).
    let agreed = format!("ALPN protocol: {alpn}");
    assert!(alpn == "dot" || text.contains(&agreed), "{text}");
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

#[test]
fn base64_for_urls_is_that_of_rfc_8484() {
    // RFC 8484, section 4.1.1: the query for www.example.com, A.
    let mut query = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    query.extend_from_slice(b"\x03www\x07example\x03com\0\0\x01\0\x01");
    let expected = "AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB";
    assert_eq!(base64url(&query), expected);
}
