//! One query, independent of the product's own message code: written octet by octet, or over TLS
//! by `kdig`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Far above what a loaded machine needs; a failure here is a lost response.
const RESPONSE_DURATION_MAX: Duration = Duration::from_secs(60);

/// What a response says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) rcode: u8,
    pub(crate) answer_count: u16,
    /// The last four octets of the message: the address, when one A RR is the whole answer.
    pub(crate) last_octets: [u8; 4],
}

impl Answered {
    /// NOERROR with one A RR at the end.
    pub(crate) fn address(last_octets: [u8; 4]) -> Answered {
        Answered {
            rcode: 0,
            answer_count: 1,
            last_octets,
        }
    }
}

pub(crate) fn message(name: &str) -> Vec<u8> {
    // ID 0x2a2a, RD set, one question.
    let mut message = vec![0x2a, 0x2a, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.').filter(|label| !label.is_empty()) {
        message.push(u8::try_from(label.len()).unwrap());
        message.extend_from_slice(label.as_bytes());
    }
    message.extend_from_slice(&[0, 0, 1, 0, 1]);
    message
}

pub(crate) fn read(response: &[u8]) -> Answered {
    assert!(
        response.len() >= 12 && response[..2] == [0x2a, 0x2a],
        "{response:?}"
    );
    Answered {
        rcode: response[3] & 0x0f,
        answer_count: u16::from_be_bytes([response[6], response[7]]),
        last_octets: *response.last_chunk().unwrap(),
    }
}

/// Asks for the A RRset of `name` over UDP.
pub(crate) fn ask_udp(server: SocketAddr, name: &str) -> Answered {
    let local = if server.is_ipv4() {
        "127.0.0.1:0"
    } else {
        "[::1]:0"
    };
    let socket = UdpSocket::bind(local).unwrap();
    socket.connect(server).unwrap();
    socket
        .set_read_timeout(Some(RESPONSE_DURATION_MAX))
        .unwrap();
    socket.send(&message(name)).unwrap();
    let mut response = [0; 4096];
    let octets = socket.recv(&mut response).unwrap();
    read(&response[..octets])
}

/// Asks for the A RRset of `name` over TCP (RFC 1035, section 4.2.2).
pub(crate) fn ask_tcp(server: SocketAddr, name: &str) -> Answered {
    let mut stream = TcpStream::connect(server).unwrap();
    stream
        .set_read_timeout(Some(RESPONSE_DURATION_MAX))
        .unwrap();
    let message = message(name);
    let mut framed = u16::try_from(message.len()).unwrap().to_be_bytes().to_vec();
    framed.extend_from_slice(&message);
    stream.write_all(&framed).unwrap();
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut response = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut response).unwrap();
    read(&response)
}

/// Asks for the A RRset of `name` over TLS with `kdig`, which verifies the server's certificate
/// against `ca_pem`; returns what it prints.
pub(crate) fn ask_dot(server: SocketAddr, ca_pem: &str, folder: &Path, name: &str) -> String {
    let authority = folder.join("authority.pem");
    std::fs::write(&authority, ca_pem).unwrap();
    let output = Command::new("kdig")
        .arg(format!("@{}", server.ip()))
        .args([
            "-p",
            &server.port().to_string(),
            "+short",
            "+timeout=60",
            "+retry=0",
        ])
        .arg(format!("+tls-ca={}", authority.display()))
        .args(["+tls-hostname=localhost", name, "A"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr)
}
