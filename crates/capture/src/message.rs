//! What a message says, as far as a load generator needs it (RFC 1035, section 4).

use proto::name;
use proto::response::{RecordHead, split_record};
use proto::rr::{OPCODE_QUERY, TYPE_OPT, TYPE_SOA};

use crate::observed::{QueryFlags, Question};
use crate::skipped::Skip;

const HEADER_OCTETS: usize = 12;

/// NOERROR and NXDOMAIN, the RCODEs that caches keep (RFC 2308).
const RCODE_NOERROR: u16 = 0;
const RCODE_NXDOMAIN: u16 = 3;

/// A query or a response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: u16,
    pub(crate) is_response: bool,
    /// `None` only in a response to a query that the server could not read.
    pub(crate) question: Option<Question>,
    pub(crate) flags: QueryFlags,
    pub(crate) rcode: u16,
    pub(crate) ttl_s_min: Option<u32>,
}

/// Reads a message. One that ends within its records is read as far as it goes.
pub(crate) fn read(octets: &[u8]) -> Result<Message, Skip> {
    let header: &[u8; HEADER_OCTETS] = octets.first_chunk().ok_or(Skip::NotDns)?;
    let count = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let is_response = header[2] & 0x80 != 0;
    let rcode = u16::from(header[3] & 0x0f);
    if (header[2] >> 3) & 0x0f != OPCODE_QUERY {
        return Err(match header[2] >> 3 & 0x0f {
            1..=6 => Skip::OtherOpcode,
            _ => Skip::NotDns,
        });
    }
    let mut message = Message {
        id: count(0),
        is_response,
        question: None,
        flags: QueryFlags {
            recursion_desired: header[2] & 0x01 != 0,
            checking_disabled: header[3] & 0x10 != 0,
            ..QueryFlags::default()
        },
        rcode,
        ttl_s_min: None,
    };
    match count(4) {
        0 if is_response && rcode != 0 => return Ok(message),
        1 => {}
        _ => return Err(Skip::NotOneQuestion),
    }
    let (question, rest) = split_question(&octets[HEADER_OCTETS..]).ok_or(Skip::NotDns)?;
    message.question = Some(question);
    let counts = Counts {
        answers: count(6),
        authorities: count(8),
        additionals: count(10),
    };
    message.read_records(counts, rest);
    Ok(message)
}

struct Counts {
    answers: u16,
    authorities: u16,
    additionals: u16,
}

impl Message {
    /// Reads TTLs and the OPT record; stops where records are cut off or malformed.
    fn read_records(&mut self, counts: Counts, mut rest: &[u8]) -> Option<()> {
        let mut ttl_s_min: Option<u32> = None;
        for _ in 0..counts.answers {
            let (record, after) = split_record(rest)?;
            ttl_s_min = Some(ttl_s_min.map_or(ttl_s(&record), |least| least.min(ttl_s(&record))));
            rest = after;
        }
        let is_negative = self.rcode == RCODE_NXDOMAIN || counts.answers == 0;
        for _ in 0..counts.authorities {
            let (record, after) = split_record(rest)?;
            if is_negative && record.record_type == TYPE_SOA {
                // MINIMUM is the last of the SOA's fields (RFC 1035, section 3.3.13).
                let minimum = record
                    .rdata
                    .last_chunk()
                    .map(|octets| u32::from_be_bytes(*octets));
                let negative = ttl_s(&record).min(minimum.unwrap_or(0));
                ttl_s_min = Some(ttl_s_min.map_or(negative, |least| least.min(negative)));
            }
            rest = after;
        }
        if matches!(self.rcode, RCODE_NOERROR | RCODE_NXDOMAIN) {
            self.ttl_s_min = ttl_s_min;
        }
        for _ in 0..counts.additionals {
            let (record, after) = split_record(rest)?;
            if record.record_type == TYPE_OPT {
                self.flags.edns = true;
                // RFC 6891, section 6.1.3: EXTENDED-RCODE, VERSION, DO and zeros.
                let [extended, _, high, _] = record.ttl;
                self.flags.dnssec_ok = high & 0x80 != 0;
                self.rcode |= u16::from(extended) << 4;
            }
            rest = after;
        }
        Some(())
    }
}

/// The question at the start of `section`, and what follows.
pub(crate) fn split_question(section: &[u8]) -> Option<(Question, &[u8])> {
    let (wire, rest) = section.split_at(name::wire_length(section)?);
    let (fixed, rest) = rest.split_first_chunk::<4>()?;
    let question = Question {
        name: wire.to_ascii_lowercase().into(),
        qtype: u16::from_be_bytes([fixed[0], fixed[1]]),
        qclass: u16::from_be_bytes([fixed[2], fixed[3]]),
    };
    Some((question, rest))
}

/// The TTL of a record in seconds.
fn ttl_s(record: &RecordHead<'_>) -> u32 {
    let ttl_s = u32::from_be_bytes(record.ttl);
    // RFC 2181, section 8: a TTL with the highest bit set is zero.
    if ttl_s > i32::MAX.cast_unsigned() {
        0
    } else {
        ttl_s
    }
}
