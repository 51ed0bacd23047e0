//! Reading responses and matching them to their queries (RFC 1035, section 4; RFC 5452, 9.1).

mod facts;
mod kind;

pub use facts::ResponseFacts;
pub use kind::ResponseKind;

use crate::query::OPTION_NSID;
use crate::rr::{OPCODE_UPDATE, TYPE_OPT};

/// The fixed header of a DNS message, as far as load generation needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Message ID.
    pub id: u16,
    /// QR: true for a response.
    pub is_response: bool,
    /// Opcode, 0 to 15.
    pub opcode: u8,
    /// The TC bit.
    pub truncated: bool,
    /// The low four bits of the RCODE; the OPT record may extend it.
    pub rcode: u8,
    /// QDCOUNT.
    pub question_count: u16,
}

impl Header {
    /// Reads the first twelve octets; `None` if there are fewer.
    #[inline]
    pub fn parse(message: &[u8]) -> Option<Header> {
        let head: &[u8; 12] = message.first_chunk()?;
        Some(Header {
            id: u16::from_be_bytes([head[0], head[1]]),
            is_response: head[2] & 0x80 != 0,
            opcode: (head[2] >> 3) & 0x0f,
            truncated: head[2] & 0x02 != 0,
            rcode: head[3] & 0x0f,
            question_count: u16::from_be_bytes([head[4], head[5]]),
        })
    }
}

/// True if the TC bit is set (RFC 1035, section 4.1.1); false without a whole header.
#[inline]
pub fn is_truncated(message: &[u8]) -> bool {
    message.len() >= HEADER_OCTETS && message[2] & 0x02 != 0
}

/// True if the RA bit is set (RFC 1035, section 4.1.1): the server resolves recursively. False
/// without a whole header.
#[inline]
pub fn offers_recursion(message: &[u8]) -> bool {
    message.len() >= HEADER_OCTETS && message[3] & 0x80 != 0
}

/// Octets of the header (RFC 1035, section 4.1.1).
const HEADER_OCTETS: usize = 12;

/// Where QDCOUNT is in the header.
const QUESTION_COUNT: std::ops::Range<usize> = 4..6;

/// Octets of QTYPE and QCLASS behind a QNAME.
const TYPE_AND_CLASS_OCTETS: usize = 4;

/// True if `response` carries the question of `query` (names compared without case, RFC 4343).
///
/// `query` is the whole message as sent; `question_octets` the length of its question section.
/// A response without a question section matches only if it reports an error (RCODE other than
/// NOERROR) or answers an UPDATE: servers that cannot parse a query send the header alone.
/// Looks at neither the ID nor the QR bit. Does not allocate.
#[inline]
pub fn question_matches(query: &[u8], question_octets: usize, response: &[u8]) -> bool {
    let (Some(sent), Some(received)) = (Header::parse(query), Header::parse(response)) else {
        return false;
    };
    if received.question_count == 0 {
        return received.rcode != 0 || sent.opcode == OPCODE_UPDATE;
    }
    let question_end = HEADER_OCTETS.saturating_add(question_octets);
    let range = HEADER_OCTETS..question_end;
    let (Some(asked), Some(echoed)) = (query.get(range.clone()), response.get(range)) else {
        return false;
    };
    let same_question = asked == echoed || question_equals_without_case(asked, echoed);
    same_question && received.question_count == sent.question_count
}

/// True if `response` repeats the question of `query` octet for octet: cheaper than
/// [`question_matches`], and true for nearly all responses that match.
#[inline(always)]
pub fn repeats_question(query: &[u8], question_octets: usize, response: &[u8]) -> bool {
    let question = HEADER_OCTETS..HEADER_OCTETS.saturating_add(question_octets);
    let (Some(asked), Some(echoed)) = (query.get(question.clone()), response.get(question)) else {
        return false;
    };
    query[QUESTION_COUNT] == response[QUESTION_COUNT] && are_same(asked, echoed)
}

/// Compares without a call what has 16 to 32 octets, as most questions: the first and the last 16,
/// which may overlap.
#[inline(always)]
fn are_same(left: &[u8], right: &[u8]) -> bool {
    const HALF: usize = 16;
    match (left.first_chunk::<HALF>(), left.last_chunk::<HALF>()) {
        (Some(first), Some(last)) if left.len() <= 2 * HALF && left.len() == right.len() => {
            right.first_chunk() == Some(first) && right.last_chunk() == Some(last)
        }
        _ => left == right,
    }
}

/// Compares the QNAMEs without case, QTYPE and QCLASS exactly.
///
/// Length octets are below 64, where no letter is, so the labels need not be walked.
#[cold]
fn question_equals_without_case(asked: &[u8], echoed: &[u8]) -> bool {
    let Some(name_octets) = asked.len().checked_sub(TYPE_AND_CLASS_OCTETS) else {
        return false;
    };
    let (asked_name, asked_type) = asked.split_at(name_octets);
    let (echoed_name, echoed_type) = echoed.split_at(name_octets);
    asked_type == echoed_type && asked_name.eq_ignore_ascii_case(echoed_name)
}

/// The whole RCODE, with the upper eight bits from an OPT record if there is one.
///
/// Walks the records without allocation; falls back to the header's RCODE if they are malformed,
/// and to 0 if there is no whole header.
#[inline]
pub fn extended_rcode(message: &[u8]) -> u16 {
    let Some(header) = message.first_chunk::<HEADER_OCTETS>() else {
        return 0;
    };
    let low_bits = u16::from(header[3] & 0x0f);
    if header[10..] == [0, 0] {
        return low_bits;
    }
    match opt_record(header, &message[HEADER_OCTETS..]) {
        // The first octet of the TTL is EXTENDED-RCODE (RFC 6891, section 6.1.3).
        Some(RecordHead {
            ttl: [high_bits, ..],
            ..
        }) => u16::from(high_bits) << 4 | low_bits,
        None => low_bits,
    }
}

/// The identifier of the server instance that responds (RFC 5001, section 2.3), if it is there.
#[inline]
pub fn nsid(message: &[u8]) -> Option<&[u8]> {
    edns_option(message, OPTION_NSID)
}

/// The data of the first EDNS option with this code (RFC 6891, section 6.1.2); `None` if there is
/// none, or if the message is malformed before it.
pub(crate) fn edns_option(message: &[u8], code: u16) -> Option<&[u8]> {
    let (header, sections) = message.split_first_chunk::<HEADER_OCTETS>()?;
    option_in(opt_record(header, sections)?.rdata, code)
}

/// The data of the first option with this code in the data of an OPT record; `None` as above.
pub fn option_in(mut options: &[u8], code: u16) -> Option<&[u8]> {
    loop {
        let (head, rest) = options.split_first_chunk::<4>()?;
        let octets = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let (data, after) = rest.split_at_checked(octets)?;
        if u16::from_be_bytes([head[0], head[1]]) == code {
            return Some(data);
        }
        options = after;
    }
}

/// The first OPT record in the additional section; `sections` follow the header.
///
/// Each record takes eleven octets or more off `sections`, which bounds the walk.
fn opt_record<'a>(header: &[u8; HEADER_OCTETS], sections: &'a [u8]) -> Option<RecordHead<'a>> {
    let count = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (questions, answers, authorities, additionals) = (count(4), count(6), count(8), count(10));
    if additionals == 0 {
        return None;
    }
    let mut rest = sections;
    for _ in 0..questions {
        rest = skip_name(rest)?.get(TYPE_AND_CLASS_OCTETS..)?;
    }
    for _ in 0..u32::from(answers) + u32::from(authorities) {
        rest = split_record(rest)?.1;
    }
    for _ in 0..additionals {
        let (record, after) = split_record(rest)?;
        if record.record_type == TYPE_OPT && record.owner_is_root {
            return Some(record);
        }
        rest = after;
    }
    None
}

/// A resource record, its owner left out (RFC 1035, section 4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead<'a> {
    /// Its owner is the root, as that of an OPT record has to be.
    pub owner_is_root: bool,
    /// Its TYPE.
    pub record_type: u16,
    /// The octets of its TTL, which are something else in OPT (RFC 6891, section 6.1.3).
    pub ttl: [u8; 4],
    /// Its RDATA.
    pub rdata: &'a [u8],
}

/// The record at the start of `octets` and the octets after it; `None` if it is malformed.
pub fn split_record(octets: &[u8]) -> Option<(RecordHead<'_>, &[u8])> {
    let after_name = skip_name(octets)?;
    let (fixed, rest) = after_name.split_first_chunk::<10>()?;
    let rdata_octets = usize::from(u16::from_be_bytes([fixed[8], fixed[9]]));
    let (rdata, after) = rest.split_at_checked(rdata_octets)?;
    let head = RecordHead {
        owner_is_root: octets.first() == Some(&0),
        record_type: u16::from_be_bytes([fixed[0], fixed[1]]),
        ttl: [fixed[4], fixed[5], fixed[6], fixed[7]],
        rdata,
    };
    Some((head, after))
}

/// The octets after the name at the start of `octets`; a compression pointer ends it unfollowed.
fn skip_name(octets: &[u8]) -> Option<&[u8]> {
    let mut rest = octets;
    loop {
        let (&length, after) = rest.split_first()?;
        match length {
            0 => return Some(after),
            1..=63 => rest = after.get(usize::from(length)..)?,
            // RFC 1035, section 4.1.4: two octets with the two highest bits set.
            0xc0.. => return after.get(1..),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests;
