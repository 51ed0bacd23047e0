//! Waiting until a server answers on all its ports.
//!
//! A server is ready when every stream port is in LISTEN, every QUIC port is bound and it has
//! answered the SOA query for its zone over UDP, or over TCP if it has no UDP. The query is
//! repeated only after it was refused or answered with an error, so that a slow server does not
//! find it twice in its socket and count it twice.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::process::ServerProcess;
use super::{Endpoints, ports};

/// How long a server may take to start on a busy machine.
const START_DURATION_MAX: Duration = Duration::from_secs(60);

/// How long one read of the socket blocks; it paces the loop.
const TURN: Duration = Duration::from_millis(20);

/// Turns after which an unanswered query counts as lost.
const UNANSWERED_TURNS_MAX: u32 = 100;

/// Log lines of servers when a port is in use; BIND continues without the port.
const PORT_TAKEN: [&str; 3] = [
    "address in use",
    "address already in use",
    "interface ignored",
];

/// QTYPEs tried in turn after errors, SOA first (RFC 1035, section 3.2.2; RFC 3596). Resolvers
/// repeat an error for the same question for a minute.
const TYPES: [u8; 6] = [6, 2, 1, 28, 16, 15];

const RCODE_NOERROR: u8 = 0;
const RCODE_REFUSED: u8 = 5;

/// Why one attempt to start a server failed.
pub(super) enum StartFailure {
    /// Another process took one of the ports between their choice and their use; try others.
    PortTaken(anyhow::Error),
    /// Trying again would not help.
    Final(anyhow::Error),
}

impl From<anyhow::Error> for StartFailure {
    fn from(error: anyhow::Error) -> Self {
        StartFailure::Final(error)
    }
}

/// When a server counts as ready and when as failed.
pub(crate) struct Readiness<'a> {
    /// All of these must answer.
    pub(crate) endpoints: &'a Endpoints,
    /// The zone to query.
    pub(crate) origin: &'a str,
    /// It is on another host, whose listening sockets are not visible.
    pub(crate) is_elsewhere: bool,
    /// REFUSED is a valid response: the zone answers signed queries only.
    pub(crate) refused_is_ready: bool,
    /// Must be in the log before the first query is sent.
    pub(crate) ready_line: Option<&'a str>,
    /// A line that contains one of these, in lower case, means failure.
    pub(crate) fatal_lines: &'a [&'a str],
}

/// Blocks until `server` is ready as `readiness` says, at most a minute.
pub(crate) fn wait_until_ready(
    server: &mut ServerProcess,
    readiness: &Readiness<'_>,
) -> Result<(), StartFailure> {
    let deadline = Instant::now() + START_DURATION_MAX;
    for address in readiness.endpoints.do53_all() {
        let mut probe = Probe::new(address, readiness).context("cannot probe the server")?;
        loop {
            check_alive(server, readiness)?;
            let is_ready = match (listens(readiness, server), readiness.endpoints.has_udp) {
                (false, _) => false,
                (true, true) => probe.turn().context("probe failed")?,
                // A proxy without UDP; a failed connection or query is repeated.
                (true, false) => probe.ask_over_tcp(address).unwrap_or(false),
            };
            if is_ready {
                break;
            }
            if !probe.has_waited {
                probe.pace();
            }
            if Instant::now() > deadline {
                let what = format!("did not answer at {address} in {START_DURATION_MAX:?}");
                return Err(StartFailure::Final(server.error(&what)));
            }
        }
    }
    Ok(())
}

fn check_alive(server: &mut ServerProcess, readiness: &Readiness<'_>) -> Result<(), StartFailure> {
    let ended = server.ended()?;
    let log = server.log_of_start().to_lowercase();
    if PORT_TAKEN.iter().any(|line| log.contains(line)) {
        return Err(StartFailure::PortTaken(server.error("found a port in use")));
    }
    if let Some(status) = ended {
        let what = format!("ended before it answered ({})", server.describe_end(status));
        return Err(StartFailure::Final(server.error(&what)));
    }
    if readiness.fatal_lines.iter().any(|line| log.contains(line)) {
        return Err(StartFailure::Final(server.error("cannot serve the zone")));
    }
    Ok(())
}

fn listens(readiness: &Readiness<'_>, server: &ServerProcess) -> bool {
    let (listening, bound) = (ports::listening_ports(), ports::bound_udp_ports());
    let endpoints = readiness.endpoints;
    let all_do = || {
        endpoints.tcp_ports().all(|port| listening.contains(&port))
            && endpoints.udp_ports().all(|port| bound.contains(&port))
    };
    (readiness.is_elsewhere || all_do())
        && readiness
            .ready_line
            .is_none_or(|line| server.log_of_start().contains(line))
}

/// One socket that queries the zone's SOA RR, and other types after errors, until the response is
/// valid.
struct Probe {
    socket: UdpSocket,
    query: Vec<u8>,
    /// Responses that were not valid.
    errors: usize,
    refused_is_ready: bool,
    /// Turns since the query was sent; `None` when there is none to wait for.
    waiting_turns: Option<u32>,
    /// The last turn blocked for its whole time.
    has_waited: bool,
}

impl Probe {
    fn new(address: SocketAddr, readiness: &Readiness<'_>) -> io::Result<Probe> {
        let local = if address.is_ipv4() {
            "0.0.0.0:0"
        } else {
            "[::]:0"
        };
        let socket = UdpSocket::bind(local)?;
        socket.connect(address)?;
        socket.set_read_timeout(Some(TURN))?;
        Ok(Probe {
            socket,
            query: soa_query(readiness.origin),
            errors: 0,
            refused_is_ready: readiness.refused_is_ready,
            waiting_turns: None,
            has_waited: false,
        })
    }

    /// Sends a query if none is open, and waits one turn; true if a valid response came.
    fn turn(&mut self) -> io::Result<bool> {
        self.has_waited = false;
        if self.waiting_turns.is_none() {
            match self.socket.send(&self.query) {
                Ok(_) => self.waiting_turns = Some(0),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        let mut response = [0; 512];
        match self.socket.recv(&mut response) {
            Ok(octets) => {
                self.waiting_turns = None;
                let is_good = self.is_good(&response[..octets]);
                if !is_good {
                    self.ask_for_next_type();
                }
                Ok(is_good)
            }
            Err(error) => self.no_response(error),
        }
    }

    fn ask_for_next_type(&mut self) {
        self.errors += 1;
        // The low octet of the type is before the class, the last two.
        let at = self.query.len() - 3;
        self.query[at] = TYPES[self.errors % TYPES.len()];
    }

    /// Sends one query on a new connection.
    fn ask_over_tcp(&self, address: SocketAddr) -> io::Result<bool> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TURN * UNANSWERED_TURNS_MAX))?;
        let length = u16::try_from(self.query.len()).map_err(io::Error::other)?;
        stream.write_all(&[&length.to_be_bytes(), &self.query[..]].concat())?;
        let mut response = [0; 2 + 4];
        stream.read_exact(&mut response)?;
        Ok(self.is_good(&response[2..]))
    }

    fn no_response(&mut self, error: io::Error) -> io::Result<bool> {
        match error.kind() {
            ErrorKind::ConnectionRefused => self.waiting_turns = None,
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                self.has_waited = true;
                let turns = self.waiting_turns.map_or(0, |turns| turns + 1);
                self.waiting_turns = (turns < UNANSWERED_TURNS_MAX).then_some(turns);
            }
            _ => return Err(error),
        }
        Ok(false)
    }

    /// Blocks for one turn on a socket to which nothing comes.
    fn pace(&mut self) {
        if self.waiting_turns.is_none() {
            // Only the elapsed time matters; an early return costs one more turn.
            let _ = self.socket.recv(&mut [0; 512]);
        }
    }

    fn is_good(&self, response: &[u8]) -> bool {
        let [id0, id1, _, flags, ..] = *response else {
            return false;
        };
        let rcode = flags & 0x0f;
        [id0, id1] == self.query[..2]
            && (rcode == RCODE_NOERROR || (self.refused_is_ready && rcode == RCODE_REFUSED))
    }
}

/// A query for the SOA RR of `origin` (RFC 1035, section 4.1). It has RD set: a resolver may refuse
/// queries without it.
fn soa_query(origin: &str) -> Vec<u8> {
    let mut message = vec![0x74, 0x68, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in origin.split('.').filter(|label| !label.is_empty()) {
        let octets = &label.as_bytes()[..label.len().min(63)];
        message.push(octets.len() as u8);
        message.extend_from_slice(octets);
    }
    message.extend_from_slice(&[0, 0, 6, 0, 1]);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soa_query_has_the_octets_of_rfc_1035() {
        let expected = b"\x74\x68\x01\0\0\x01\0\0\0\0\0\0\x02ab\x04test\0\0\x06\0\x01";
        assert_eq!(soa_query("ab.test."), expected);
        assert_eq!(soa_query("ab.test"), expected);
    }

    #[test]
    fn question_changes_after_each_error_because_resolvers_repeat_errors() {
        let endpoints = Endpoints {
            addresses: vec![std::net::Ipv4Addr::LOCALHOST.into()],
            has_udp: true,
            do53_port: 53,
            services: Vec::new(),
        };
        let readiness = Readiness {
            endpoints: &endpoints,
            origin: "ab.test.",
            is_elsewhere: false,
            refused_is_ready: false,
            ready_line: None,
            fatal_lines: &[],
        };
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut probe = Probe::new(server.local_addr().unwrap(), &readiness).unwrap();
        let mut asked = Vec::new();
        for rcode in [2, 2, 0] {
            assert!(!probe.turn().unwrap());
            let mut message = [0; 512];
            let (octets, client) = server.recv_from(&mut message).unwrap();
            asked.push(message[octets - 3]);
            message[3] = rcode;
            server.send_to(&message[..octets], client).unwrap();
            while !probe.turn().unwrap() && probe.has_waited {}
        }
        assert_eq!(asked, [6, 2, 1]);
        assert_eq!(probe.errors, 2);
    }
}
