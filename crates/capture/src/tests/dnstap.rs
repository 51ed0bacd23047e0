//! dnstap files.

use std::net::{IpAddr, SocketAddr};

use super::writer::*;
use super::*;
use crate::Format;

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn number_field(tag: u64, number: u64, out: &mut Vec<u8>) {
    varint(tag << 3, out);
    varint(number, out);
}

fn bytes_field(tag: u64, bytes: &[u8], out: &mut Vec<u8>) {
    varint(tag << 3 | 2, out);
    varint(bytes.len() as u64, out);
    out.extend(bytes);
}

fn time_fields(tag: u64, at_ns: u64, out: &mut Vec<u8>) {
    number_field(tag, at_ns / S, out);
    varint((tag + 1) << 3 | 5, out);
    out.extend(((at_ns % S) as u32).to_le_bytes());
}

fn octets_of(address: SocketAddr) -> Vec<u8> {
    match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

/// One message: kind, socket protocol, times, query and response.
struct Tap<'a> {
    kind: u64,
    protocol: u64,
    query: Option<(u64, &'a [u8])>,
    response: Option<(u64, &'a [u8])>,
}

impl Tap<'_> {
    fn frame(&self) -> Vec<u8> {
        let (client, server) = (address("[2001:db8::1]:5353"), address("[2001:db8::53]:53"));
        let mut message = Vec::new();
        number_field(1, self.kind, &mut message);
        number_field(2, 2, &mut message);
        number_field(3, self.protocol, &mut message);
        bytes_field(4, &octets_of(client), &mut message);
        bytes_field(5, &octets_of(server), &mut message);
        number_field(6, client.port().into(), &mut message);
        number_field(7, server.port().into(), &mut message);
        if let Some((at_ns, octets)) = self.query {
            time_fields(8, at_ns, &mut message);
            if !octets.is_empty() {
                bytes_field(10, octets, &mut message);
            }
        }
        bytes_field(11, b"\0", &mut message);
        if let Some((at_ns, octets)) = self.response {
            time_fields(12, at_ns, &mut message);
            bytes_field(14, octets, &mut message);
        }
        let mut envelope = Vec::new();
        bytes_field(1, b"server", &mut envelope);
        bytes_field(14, &message, &mut envelope);
        number_field(15, 1, &mut envelope);
        data(&envelope)
    }
}

fn data(frame: &[u8]) -> Vec<u8> {
    [&(frame.len() as u32).to_be_bytes()[..], frame].concat()
}

fn control(kind: u32, fields: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 4];
    frame.extend((fields.len() as u32 + 4).to_be_bytes());
    frame.extend(kind.to_be_bytes());
    frame.extend(fields);
    frame
}

fn file(content_type: &[u8], frames: &[Vec<u8>]) -> Vec<u8> {
    let mut field = 1_u32.to_be_bytes().to_vec();
    field.extend((content_type.len() as u32).to_be_bytes());
    field.extend(content_type);
    [control(2, &field), frames.concat(), control(3, b"")].concat()
}

pub(super) fn sample() -> Vec<u8> {
    let (asked, answered) = (query(7, "a.example"), response(7, "a.example", 0, 30));
    let frames = [
        Tap {
            kind: 5,
            protocol: 1,
            query: Some((START, &asked)),
            response: None,
        }
        .frame(),
        Tap {
            kind: 6,
            protocol: 1,
            query: None,
            response: Some((START + 9, &answered)),
        }
        .frame(),
    ];
    file(b"protobuf:dnstap.Dnstap", &frames)
}

#[test]
fn queries_and_responses_are_paired() {
    let outcome = read(&sample());
    let [observed] = &outcome.observed[..] else {
        panic!("one query");
    };
    assert_eq!(observed.at_ns, START);
    assert_eq!(observed.client, address("[2001:db8::1]:5353"));
    assert_eq!(observed.server, Some(address("[2001:db8::53]:53")));
    let response = observed.response.unwrap();
    assert_eq!(
        (response.ttl_s_min, response.latency_ns),
        (Some(30), Some(9))
    );
    assert_eq!((outcome.end, outcome.skipped.is_empty()), (None, true));
}

#[test]
fn a_response_alone_tells_when_its_query_came() {
    let answered = response(7, "a.example", 3, 0);
    let transports = [(1, "udp"), (2, "tcp"), (3, "dot"), (4, "doh2"), (7, "doq")];
    for (protocol, transport) in transports {
        let tap = Tap {
            kind: 2,
            protocol,
            query: Some((START, b"")),
            response: Some((START + 5, &answered)),
        };
        let outcome = read(&file(b"protobuf:dnstap.Dnstap", &[tap.frame()]));
        let observed = &outcome.observed[0];
        assert_eq!(
            (observed.at_ns, observed.transport.name()),
            (START, transport)
        );
        assert_eq!(observed.response.unwrap().latency_ns, Some(5));
        assert_eq!(observed.response.unwrap().rcode, 3);
    }
}

#[test]
fn a_resolvers_own_queries_and_broken_frames_are_counted() {
    let asked = query(7, "a.example");
    let own = Tap {
        kind: 3,
        protocol: 1,
        query: Some((START, &asked)),
        response: None,
    };
    let empty = Tap {
        kind: 5,
        protocol: 1,
        query: Some((START, b"")),
        response: None,
    };
    let alone = Tap {
        kind: 6,
        protocol: 1,
        query: None,
        response: Some((START, &asked)),
    };
    let frames = [
        own.frame(),
        empty.frame(),
        alone.frame(),
        data(b"\xff\xff"),
        data(b""),
    ];
    // An empty frame is the escape of a control frame, so the last ends the file.
    let outcome = read(&file(b"protobuf:dnstap.Dnstap", &frames[..4]));
    assert!(outcome.observed.is_empty());
    outcome.assert_skipped(&[(Skip::OtherDnstapMessage, 1), (Skip::MalformedFrame, 3)]);
}

#[test]
fn frames_of_something_else_are_refused() {
    let error = read_with(&file(b"other", &[]), &Options::default())
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "dnstap with another content than dnstap messages"
    );
    let mut long = sample();
    long.extend([1, 0, 0, 0]);
    let error = read(&long).end.unwrap();
    assert!(matches!(error, CaptureError::Garbage { .. }), "{error}");
    let ready = [sample(), control(4, b"")].concat();
    assert!(matches!(
        read(&ready).end,
        Some(CaptureError::Garbage { .. })
    ));
    // Files written one after the other are read on.
    assert_eq!(read(&[sample(), sample()].concat()).observed.len(), 2);
    assert_eq!(
        Capture::new(&sample()[..], &Options::default())
            .unwrap()
            .format(),
        Format::Dnstap
    );
}
