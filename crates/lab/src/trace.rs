//! The way to a server: the same query repeatedly, each time one hop further.
//!
//! One query is under way at a time, all from one port: routers that spread flows keep them
//! together, and an ICMP error that quotes too little to tell its query still belongs to the only
//! one. Needs no right beyond that of a socket.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use driver::hops::{Arrival, HopSocket};
use measure::trace::{Hop, IcmpReason, Probe, TraceEnd};
use proto::response::{Header, extended_rcode, question_matches};
use proto::rr::rcode_to_text;

use crate::run::RunError;

/// What is asked, and how far.
#[derive(Clone, Debug)]
pub struct TraceRequest {
    /// The server.
    pub target: SocketAddr,
    /// Where to ask from, if not where the kernel says.
    pub local: Option<SocketAddr>,
    /// The query, whose ID is put in.
    pub query: Vec<u8>,
    /// Length of its question section.
    pub question_octets: usize,
    /// The first distance tried, at least 1.
    pub first: u8,
    /// The last.
    pub hops_max: u8,
    /// Queries for each distance.
    pub probes: u8,
    /// How long to wait for what becomes of each.
    pub timeout: Duration,
}

/// What a trace found.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The hops.
    pub hops: Vec<Hop>,
    /// Why it ended.
    pub ended: TraceEnd,
    /// Messages that belong to no query, or came too late.
    pub unexpected: u64,
}

/// A trace that is ready to begin.
pub struct Tracer {
    request: TraceRequest,
    socket: HopSocket,
    query: Vec<u8>,
    id: u16,
    buffer: Vec<u8>,
    unexpected: u64,
}

fn refused(request: &TraceRequest, error: &std::io::Error) -> RunError {
    RunError::new(
        format!("cannot trace the path to {}: {error}", request.target),
        "check the address and the route to it; ICMP errors are read with IP_RECVERR, which needs \
            no special privileges",
    )
}

impl Tracer {
    /// Opens the socket; nothing is sent.
    ///
    /// # Errors
    /// There is no way to the target from here, or no way to read ICMP errors.
    pub fn open(request: TraceRequest) -> Result<Tracer, RunError> {
        let socket = HopSocket::open(request.target, request.local)
            .map_err(|error| refused(&request, &error))?;
        Ok(Tracer {
            socket,
            query: request.query.clone(),
            // Any will do: the socket takes datagrams of the server alone.
            id: driver::clock::Clock::unix_time().subsec_micros() as u16,
            buffer: vec![0; 65_535],
            unexpected: 0,
            request,
        })
    }

    /// Traces; `on_hop` sees each hop when it is known, `is_stopped` is asked before each query.
    ///
    /// # Errors
    /// The kernel refuses to send or to be read.
    pub fn run(
        mut self,
        is_stopped: impl Fn() -> bool,
        mut on_hop: impl FnMut(&Hop),
    ) -> Result<Traced, RunError> {
        let (mut hops, mut ended) = (Vec::new(), TraceEnd::HopsMax);
        for distance in self.request.first..=self.request.hops_max {
            let hop = self.hop(distance, &is_stopped)?;
            let is_whole = hop.probes.len() == usize::from(self.request.probes);
            if !hop.probes.is_empty() {
                on_hop(&hop);
            }
            let end = match () {
                () if hop.is_answered() => Some(TraceEnd::Response),
                () if hop.is_dead_end() => Some(TraceEnd::Unreachable),
                () if !is_whole => Some(TraceEnd::Interrupted),
                () => None,
            };
            hops.extend((!hop.probes.is_empty()).then_some(hop));
            if let Some(end) = end {
                ended = end;
                break;
            }
        }
        Ok(Traced {
            hops,
            ended,
            unexpected: self.unexpected,
        })
    }

    /// All queries of one distance, or those before it was stopped.
    fn hop(&mut self, distance: u8, is_stopped: &impl Fn() -> bool) -> Result<Hop, RunError> {
        let mut probes = Vec::new();
        for _ in 0..self.request.probes {
            if is_stopped() {
                break;
            }
            let probe = self.probe(distance);
            probes.push(probe.map_err(|error| refused(&self.request, &error))?);
        }
        Ok(Hop { distance, probes })
    }

    /// One query that passes at most `distance` hops, and its outcome.
    fn probe(&mut self, distance: u8) -> std::io::Result<Probe> {
        self.socket.set_hops_max(distance)?;
        self.id = self.id.wrapping_add(1);
        self.query[..2].copy_from_slice(&self.id.to_be_bytes());
        let sent_at = self.socket.send(&self.query)?;
        let until = sent_at + self.request.timeout;
        while let Some(arrival) = self.socket.receive(&mut self.buffer, until)? {
            let probe = match arrival {
                Arrival::Datagram { octets, at } => self.response(octets, at.nanos_since(sent_at)),
                Arrival::Icmp {
                    from,
                    is_v6,
                    icmp_type,
                    code,
                    quoted,
                    at,
                } => self.quotes_this(quoted).then(|| Probe::Icmp {
                    from: address(from),
                    reason: reason(is_v6, icmp_type, code),
                    after_ns: at.nanos_since(sent_at),
                }),
            };
            match probe {
                Some(probe) => return Ok(probe),
                None => self.unexpected += 1,
            }
        }
        Ok(Probe::Silence)
    }

    /// True unless the ID quoted is that of another query.
    fn quotes_this(&self, quoted: usize) -> bool {
        let quoted = self.buffer.get(..quoted.min(2)).unwrap_or_default();
        self.id.to_be_bytes().starts_with(quoted)
    }

    fn response(&self, octets: usize, after_ns: u64) -> Option<Probe> {
        let message = self.buffer.get(..octets)?;
        let header = Header::parse(message)?;
        let is_answer = header.is_response
            && header.id == self.id
            && question_matches(&self.query, self.request.question_octets, message);
        is_answer.then(|| Probe::Response {
            from: self.request.target.ip().to_string(),
            // A datagram has at most 65,535 octets.
            octets: octets as u32,
            rcode: rcode_to_text(extended_rcode(message)),
            after_ns,
        })
    }
}

fn address(from: Option<IpAddr>) -> String {
    from.map_or_else(|| "unknown".to_owned(), |address| address.to_string())
}

/// RFC 792 and RFC 1812, section 5.2.7.1; RFC 4443, sections 3.1 and 3.3.
fn reason(is_v6: bool, icmp_type: u8, code: u8) -> IcmpReason {
    match (is_v6, icmp_type, code) {
        (false, 11, 0) | (true, 3, 0) => IcmpReason::TimeExceeded,
        (false, 3, 0 | 6) | (true, 1, 0) => IcmpReason::NetworkUnreachable,
        (false, 3, 1 | 7) | (true, 1, 3) => IcmpReason::HostUnreachable,
        (false, 3, 3) | (true, 1, 4) => IcmpReason::PortUnreachable,
        (false, 3, 9 | 10 | 13) | (true, 1, 1) => IcmpReason::Prohibited,
        _ => IcmpReason::Other { icmp_type, code },
    }
}
