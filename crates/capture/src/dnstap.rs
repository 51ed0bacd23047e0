//! dnstap (dnstap.info) in Frame Streams files (farsightsec fstrm, `fstrm/control.h`).
//!
//! Queries that reached this server, as authoritative server or resolver, with their responses.
//! What a resolver or forwarder asked others is counted and skipped.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use prost::Message as _;
use proto::Transport;

use crate::assembly::Assembly;
use crate::error::CaptureError;
use crate::format::Format;
use crate::input::Input;
use crate::message;
use crate::observed::{Observed, Response};
use crate::pairing::{Key, Seen};
use crate::skipped::Skip;

const CONTROL_START: u32 = 2;
/// Longest control frame.
const CONTROL_OCTETS_MAX: usize = 512;
/// Longest data frame that is believed: two messages of 64 KiB and what is around them.
const FRAME_OCTETS_MAX: usize = 256 * 1024;
const CONTENT_TYPE: &[u8] = b"protobuf:dnstap.Dnstap";

/// `dnstap.Dnstap`, as far as it is read.
#[derive(Clone, PartialEq, prost::Message)]
struct Envelope {
    #[prost(message, optional, tag = "14")]
    message: Option<Tapped>,
}

/// `dnstap.Message`, as far as it is read.
#[derive(Clone, PartialEq, prost::Message)]
struct Tapped {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(int32, optional, tag = "3")]
    socket_protocol: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "4")]
    query_address: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "5")]
    response_address: Option<Vec<u8>>,
    #[prost(uint32, optional, tag = "6")]
    query_port: Option<u32>,
    #[prost(uint32, optional, tag = "7")]
    response_port: Option<u32>,
    #[prost(uint64, optional, tag = "8")]
    query_time_sec: Option<u64>,
    #[prost(fixed32, optional, tag = "9")]
    query_time_nsec: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "10")]
    query_message: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "12")]
    response_time_sec: Option<u64>,
    #[prost(fixed32, optional, tag = "13")]
    response_time_nsec: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "14")]
    response_message: Option<Vec<u8>>,
}

/// Reads frames after the start frame.
pub(crate) struct DnstapReader;

impl DnstapReader {
    /// Looks at the start frame, without taking it.
    pub(crate) fn new<R: Read>(input: &mut Input<R>) -> Result<Self, CaptureError> {
        let frame = input.peek(12)?;
        if frame.len() < 12 {
            return Err(CaptureError::CutOff { offset: 0 });
        }
        let octets = number(&frame[4..8]) as usize;
        let kind = number(&frame[8..12]);
        let frame = input.peek(8 + octets.min(CONTROL_OCTETS_MAX))?;
        let fields = frame.get(12..).unwrap_or_default();
        let has_content_type = !fields.is_empty();
        let is_dnstap = fields
            .windows(CONTENT_TYPE.len())
            .any(|each| each == CONTENT_TYPE);
        if kind != CONTROL_START || (has_content_type && !is_dnstap) {
            return Err(CaptureError::UnknownVariant {
                format: Format::Dnstap,
                what: "another content than dnstap messages",
            });
        }
        Ok(DnstapReader)
    }

    /// Reads the next frame; false at the end.
    pub(crate) fn read<R: Read>(
        &mut self,
        input: &mut Input<R>,
        assembly: &mut Assembly,
    ) -> Result<bool, CaptureError> {
        let offset = input.offset();
        let head = input.peek(4)?;
        match head.len() {
            0 => return Ok(false),
            4 => {}
            _ => return Err(CaptureError::CutOff { offset }),
        }
        let (before, octets) = match number(head) as usize {
            // The escape; the length of the control frame follows.
            0 => match input.peek(8)? {
                head if head.len() < 8 => return Err(CaptureError::CutOff { offset }),
                head => (8, number(&head[4..]) as usize),
            },
            octets => (4, octets),
        };
        let octets_max = if before == 8 {
            CONTROL_OCTETS_MAX
        } else {
            FRAME_OCTETS_MAX
        };
        if octets > octets_max {
            let what = "a frame of impossible length";
            return Err(CaptureError::Garbage { offset, what });
        }
        let frame = input.peek(before + octets)?;
        if frame.len() < before + octets {
            return Err(CaptureError::CutOff { offset });
        }
        let body = &frame[before..];
        if before == 4 {
            if let Err(reason) = frame_body(body, assembly) {
                assembly.skipped.count(reason);
            }
        } else if !matches!(body.first_chunk(), Some(&[0, 0, 0, 2..=3])) {
            let what = "a control frame that does not belong into a file";
            return Err(CaptureError::Garbage { offset, what });
        }
        input.take(before + octets);
        Ok(true)
    }
}

fn number(octets: &[u8]) -> u32 {
    octets
        .first_chunk()
        .map_or(0, |octets| u32::from_be_bytes(*octets))
}

/// One dnstap message.
fn frame_body(body: &[u8], assembly: &mut Assembly) -> Result<(), Skip> {
    let envelope = Envelope::decode(body).map_err(|_| Skip::MalformedFrame)?;
    let tapped = envelope.message.ok_or(Skip::OtherDnstapMessage)?;
    match tapped.kind {
        // AUTH_QUERY and CLIENT_QUERY, AUTH_RESPONSE and CLIENT_RESPONSE.
        1 | 5 => query(&tapped, assembly),
        2 | 6 => response(&tapped, assembly),
        _ => Err(Skip::OtherDnstapMessage),
    }
}

fn query(tapped: &Tapped, assembly: &mut Assembly) -> Result<(), Skip> {
    let octets = tapped
        .query_message
        .as_deref()
        .ok_or(Skip::MalformedFrame)?;
    let message = message::read(octets)?;
    if message.is_response {
        return Err(Skip::MalformedFrame);
    }
    let key = tapped.key(message.id)?;
    let observed = Observed {
        at_ns: assembly.at_ns(tapped.query_ns()),
        client: key.client,
        server: tapped.server(),
        transport: key.transport,
        connection: None,
        question: message.question.ok_or(Skip::NotOneQuestion)?,
        flags: message.flags,
        response: None,
    };
    let Assembly {
        pairing, skipped, ..
    } = assembly;
    pairing.query(key, observed, skipped);
    Ok(())
}

fn response(tapped: &Tapped, assembly: &mut Assembly) -> Result<(), Skip> {
    let octets = tapped
        .response_message
        .as_deref()
        .ok_or(Skip::MalformedFrame)?;
    let message = message::read(octets)?;
    if !message.is_response {
        return Err(Skip::MalformedFrame);
    }
    let key = tapped.key(message.id)?;
    let at_ns = assembly.at_ns(tapped.response_ns());
    let query_ns = tapped.query_ns();
    let response = Response {
        rcode: message.rcode,
        ttl_s_min: message.ttl_s_min,
        latency_ns: query_ns.map(|query_ns| at_ns.saturating_sub(query_ns)),
    };
    let seen = Seen {
        at_ns,
        question: message.question.as_ref(),
        response,
    };
    if assembly.pairing.response(&key, &seen) {
        return Ok(());
    }
    // A server may tell of responses only; they say when their query came.
    let question = message.question.ok_or(Skip::ResponseWithoutQuery)?;
    let at_ns = query_ns.ok_or(Skip::ResponseWithoutQuery)?;
    let asked = tapped.query_message.as_deref().map(message::read);
    let flags = match asked {
        Some(Ok(asked)) => asked.flags,
        // OPT is in a response if it was in the query (RFC 6891, section 6.1.1); DO is copied.
        _ => message.flags,
    };
    assembly.pairing.whole(Observed {
        at_ns,
        client: key.client,
        server: tapped.server(),
        transport: key.transport,
        connection: None,
        question,
        flags,
        response: Some(response),
    });
    Ok(())
}

impl Tapped {
    fn key(&self, id: u16) -> Result<Key, Skip> {
        let client = socket_address(self.query_address.as_deref(), self.query_port);
        Ok(Key {
            client: client.ok_or(Skip::MalformedFrame)?,
            // Some servers leave it out of one of the two messages.
            server: None,
            transport: self.transport(),
            connection: None,
            id,
            question: None,
        })
    }

    fn server(&self) -> Option<SocketAddr> {
        socket_address(self.response_address.as_deref(), self.response_port)
    }

    /// `SocketProtocol`; UDP if it is not said. DoH is not told apart by HTTP's version.
    fn transport(&self) -> Transport {
        match self.socket_protocol {
            Some(2 | 6) => Transport::Tcp,
            Some(3) => Transport::Dot,
            Some(4) => Transport::Doh2,
            Some(7) => Transport::Doq,
            _ => Transport::Udp,
        }
    }

    fn query_ns(&self) -> Option<u64> {
        time_ns(self.query_time_sec?, self.query_time_nsec)
    }

    fn response_ns(&self) -> Option<u64> {
        time_ns(self.response_time_sec?, self.response_time_nsec)
    }
}

fn time_ns(seconds: u64, ns: Option<u32>) -> Option<u64> {
    let whole = seconds.checked_mul(1_000_000_000)?;
    whole.checked_add(ns.unwrap_or(0).into())
}

/// An address of 4 or 16 octets; without a port, port 0.
fn socket_address(octets: Option<&[u8]>, port: Option<u32>) -> Option<SocketAddr> {
    let octets = octets?;
    let address: IpAddr = match (<[u8; 4]>::try_from(octets), <[u8; 16]>::try_from(octets)) {
        (Ok(octets), _) => Ipv4Addr::from(octets).into(),
        (_, Ok(octets)) => Ipv6Addr::from(octets).into(),
        _ => return None,
    };
    Some((address, u16::try_from(port.unwrap_or(0)).ok()?).into())
}
