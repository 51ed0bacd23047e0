//! From a query's octets to a response's (RFC 1035, section 4.1; RFC 2136; RFC 6891).
//!
//! The fast path of the responder: header and question are copied, the rest is looked up in the
//! [`Zone`] and appended. Does not allocate beyond the growth of the output. TSIG is ignored: a
//! signed query gets an unsigned response.

use proto::name;

use crate::zone::{Sections, Zone};

const HEADER_OCTETS: usize = 12;
const OPT_OCTETS: usize = 11;
const TYPE_OPT: u16 = 41;
const TYPE_IXFR: u16 = 251;
const TYPE_AXFR: u16 = 252;
const CLASS_IN: u16 = 1;
const CLASS_ANY: u16 = 255;
const OPCODE_QUERY: u8 = 0;
const OPCODE_UPDATE: u8 = 5;

const NOERROR: u16 = 0;
const FORMERR: u16 = 1;
const NOTIMP: u16 = 4;
const REFUSED: u16 = 5;
const BADVERS: u16 = 16;

/// The UDP payload size that the responder's own OPT record states, in octets.
const OWN_PAYLOAD_OCTETS: u16 = 1232;
/// Longest UDP response for a client without EDNS (RFC 1035, section 2.3.4).
const PLAIN_PAYLOAD_OCTETS: u16 = 512;

/// How long a response may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Over UDP: the client's EDNS payload size (512 octets without EDNS), at most this many
    /// octets. A longer response becomes an empty one with the TC bit.
    Datagram(u16),
    /// Over a stream: 65,535 octets.
    Stream,
}

/// A replacement for the zone's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Instead {
    /// Nothing: the zone answers.
    #[default]
    Nothing,
    /// No records and this RCODE (0 to 15).
    Rcode(u8),
    /// No records and the TC bit.
    Truncated,
}

/// The result of handling a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// Nothing was appended: shorter than a header, or a response itself.
    Ignored,
    /// A response was appended.
    Response {
        /// Its RCODE, extended (RFC 6891, section 6.1.3).
        rcode: u16,
        /// The query could not be parsed; the response is a bare header with FORMERR.
        malformed: bool,
        /// It was an UPDATE (RFC 2136).
        update: bool,
        /// How long the response could have been, in octets.
        octets_max: usize,
    },
}

/// The one question of a query.
struct Question {
    qname_octets: usize,
    qtype: u16,
    qclass: u16,
    /// Offset of the first octet after it.
    end: usize,
}

/// The fields of a query's OPT record.
#[derive(Clone, Copy)]
struct Opt {
    payload_octets: u16,
    version: u8,
    dnssec_ok: bool,
}

/// Appends the response to `query` to `out`.
///
/// `query` is a whole message without length prefix. O(length of the query).
pub fn answer(
    zone: &Zone,
    query: &[u8],
    limit: Limit,
    instead: Instead,
    out: &mut Vec<u8>,
) -> Answered {
    let Some(header) = query.first_chunk::<HEADER_OCTETS>() else {
        return Answered::Ignored;
    };
    if header[2] & 0x80 != 0 {
        return Answered::Ignored;
    }
    let opcode = (header[2] >> 3) & 0x0f;
    if opcode != OPCODE_QUERY && opcode != OPCODE_UPDATE {
        return bare_header(header, NOTIMP, out);
    }
    let Some(question) = parse_question(query) else {
        return bare_header(header, FORMERR, out);
    };
    let start = out.len();
    out.extend_from_slice(&query[..question.end]);
    out[start + 2] = 0x80 | (header[2] & 0x79);
    // CD is copied (RFC 4035, section 3.1.6); the rest of the octet is ours.
    out[start + 3] = header[3] & 0x10;
    out[start + 6..start + HEADER_OCTETS].fill(0);
    if opcode == OPCODE_UPDATE {
        return update(instead, &mut out[start..]);
    }
    match parse_opt(query, question.end) {
        Ok(opt) => respond(zone, question, opt, (limit, instead), (out, start)),
        Err(Malformed) => {
            out.truncate(start);
            bare_header(header, FORMERR, out)
        }
    }
}

/// A response of a header alone, for what cannot be parsed or is not implemented.
fn bare_header(header: &[u8; HEADER_OCTETS], rcode: u16, out: &mut Vec<u8>) -> Answered {
    let flags = [0x80 | (header[2] & 0x79), rcode as u8];
    out.extend_from_slice(&[
        header[0], header[1], flags[0], flags[1], 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
    Answered::Response {
        rcode,
        malformed: rcode == FORMERR,
        update: false,
        octets_max: HEADER_OCTETS,
    }
}

/// Finishes the response to an UPDATE; the zone section has been copied, nothing is changed.
fn update(instead: Instead, response: &mut [u8]) -> Answered {
    let rcode = match instead {
        Instead::Rcode(rcode) => u16::from(rcode),
        Instead::Nothing | Instead::Truncated => NOERROR,
    };
    response[3] |= rcode as u8;
    Answered::Response {
        rcode,
        malformed: false,
        update: true,
        octets_max: response.len(),
    }
}

/// Appends answer and OPT to the header and question at `start`, and sets the header's fields.
fn respond(
    zone: &Zone,
    question: Question,
    opt: Option<Opt>,
    (limit, instead): (Limit, Instead),
    (out, start): (&mut Vec<u8>, usize),
) -> Answered {
    let unsupported_version = opt.is_some_and(|opt| opt.version != 0);
    let mut truncated = instead == Instead::Truncated;
    let mut sections = match instead {
        Instead::Nothing if unsupported_version => empty(0),
        Instead::Nothing => look_up(zone, &question, (out, start)),
        Instead::Rcode(rcode) => empty(rcode),
        Instead::Truncated => empty(0),
    };
    let opt_octets = opt.map_or(0, |_| OPT_OCTETS);
    let octets_max = octets_max(limit, opt);
    if out.len() - start + opt_octets > octets_max {
        out.truncate(start + question.end);
        truncated = true;
        sections.counts = [0; 3];
    }
    let mut rcode = u16::from(sections.rcode);
    if let Some(opt) = opt {
        if unsupported_version && instead == Instead::Nothing {
            rcode = BADVERS;
        }
        sections.counts[2] += 1;
        let dnssec_ok = if opt.dnssec_ok { 0x80 } else { 0 };
        let [size_high, size_low] = OWN_PAYLOAD_OCTETS.to_be_bytes();
        let extended = (rcode >> 4) as u8;
        let octets = [
            0, 0, 41, size_high, size_low, extended, 0, dnssec_ok, 0, 0, 0,
        ];
        out.extend_from_slice(&octets);
    }
    let header = &mut out[start..start + HEADER_OCTETS];
    header[2] |= u8::from(sections.authoritative) << 2 | u8::from(truncated) << 1;
    header[3] |= u8::from(zone.is_synthesised()) << 7 | (rcode & 0x0f) as u8;
    for (field, count) in header[6..].chunks_exact_mut(2).zip(sections.counts) {
        field.copy_from_slice(&count.to_be_bytes());
    }
    Answered::Response {
        rcode,
        malformed: false,
        update: false,
        octets_max,
    }
}

fn empty(rcode: u8) -> Sections {
    Sections {
        rcode,
        authoritative: true,
        counts: [0; 3],
    }
}

#[inline]
fn look_up(zone: &Zone, question: &Question, (out, start): (&mut Vec<u8>, usize)) -> Sections {
    let known_class = matches!(question.qclass, CLASS_IN | CLASS_ANY);
    if !known_class || matches!(question.qtype, TYPE_IXFR | TYPE_AXFR) {
        return Sections {
            authoritative: false,
            ..empty(REFUSED as u8)
        };
    }
    let mut lower = [0; 256];
    let qname = &mut lower[..question.qname_octets];
    qname.copy_from_slice(&out[start + HEADER_OCTETS..][..question.qname_octets]);
    // Label lengths are at most 63, below `A`: lowering the whole name changes letters only.
    qname.make_ascii_lowercase();
    zone.answer(qname, question.qtype, out)
}

fn octets_max(limit: Limit, opt: Option<Opt>) -> usize {
    match limit {
        Limit::Stream => usize::from(u16::MAX),
        Limit::Datagram(own_max) => {
            let theirs = opt.map_or(PLAIN_PAYLOAD_OCTETS, |opt| opt.payload_octets);
            // Values below 512 mean 512 (RFC 6891, section 6.2.3).
            usize::from(theirs.min(own_max).max(PLAIN_PAYLOAD_OCTETS))
        }
    }
}

/// `None` unless there is exactly one question and it is whole (RFC 9619).
#[inline]
fn parse_question(query: &[u8]) -> Option<Question> {
    if query[4..6] != [0, 1] {
        return None;
    }
    let qname_octets = name::wire_length(&query[HEADER_OCTETS..])?;
    let fixed: &[u8; 4] = query.get(HEADER_OCTETS + qname_octets..)?.first_chunk()?;
    Some(Question {
        qname_octets,
        qtype: u16::from_be_bytes([fixed[0], fixed[1]]),
        qclass: u16::from_be_bytes([fixed[2], fixed[3]]),
        end: HEADER_OCTETS + qname_octets + 4,
    })
}

/// The records after the question are cut off or contradict RFC 6891.
struct Malformed;

/// Finds the OPT record among the records that start at `offset`.
#[inline]
fn parse_opt(query: &[u8], offset: usize) -> Result<Option<Opt>, Malformed> {
    let count = |at: usize| usize::from(u16::from_be_bytes([query[at], query[at + 1]]));
    let records = count(6) + count(8) + count(10);
    let mut rest = &query[offset..];
    let mut found = None;
    for _ in 0..records {
        let owner_octets = owner_length(rest).ok_or(Malformed)?;
        let fixed: &[u8; 10] = rest[owner_octets..].first_chunk().ok_or(Malformed)?;
        if u16::from_be_bytes([fixed[0], fixed[1]]) == TYPE_OPT {
            // One OPT, owned by the root (RFC 6891, section 6.1.1).
            if found.is_some() || owner_octets != 1 {
                return Err(Malformed);
            }
            found = Some(Opt {
                payload_octets: u16::from_be_bytes([fixed[2], fixed[3]]),
                version: fixed[5],
                dnssec_ok: fixed[6] & 0x80 != 0,
            });
        }
        let rdata_octets = usize::from(u16::from_be_bytes([fixed[8], fixed[9]]));
        rest = rest
            .get(owner_octets + 10 + rdata_octets..)
            .ok_or(Malformed)?;
    }
    Ok(found)
}

/// The octets that a possibly compressed name takes up at the start of `wire`.
fn owner_length(wire: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match *wire.get(at)? {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + usize::from(length),
            192.. => return (wire.len() >= at + 2).then_some(at + 2),
            _ => return None,
        }
    }
}
