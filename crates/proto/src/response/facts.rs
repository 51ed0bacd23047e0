//! Properties of a response that clients act on.

use super::{
    HEADER_OCTETS, Header, TYPE_AND_CLASS_OCTETS, extended_rcode, skip_name, split_record,
};

/// A summary of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseFacts {
    /// The whole RCODE, with the bits of an OPT record.
    pub rcode: u16,
    /// ANCOUNT.
    pub answers: u16,
    /// The TC bit.
    pub truncated: bool,
    /// The lowest TTL in the Answer section, in seconds; `None` if it is empty or malformed.
    pub ttl_min: Option<u32>,
}

impl ResponseFacts {
    /// Reads a response; `None` if it has no whole header. Does not allocate.
    pub fn read(message: &[u8]) -> Option<ResponseFacts> {
        let header = Header::parse(message)?;
        let answers = u16::from_be_bytes([message[6], message[7]]);
        Some(ResponseFacts {
            rcode: extended_rcode(message),
            answers,
            truncated: header.truncated,
            ttl_min: ttl_min(&message[HEADER_OCTETS..], header.question_count, answers),
        })
    }
}

fn ttl_min(sections: &[u8], questions: u16, answers: u16) -> Option<u32> {
    let mut rest = sections;
    for _ in 0..questions {
        rest = skip_name(rest)?.get(TYPE_AND_CLASS_OCTETS..)?;
    }
    let mut lowest = None;
    for _ in 0..answers {
        let (record, after) = split_record(rest)?;
        let ttl = u32::from_be_bytes(record.ttl);
        // RFC 2181, section 8: one with the highest bit set counts as 0.
        let ttl = if ttl > i32::MAX as u32 { 0 } else { ttl };
        lowest = Some(lowest.unwrap_or(ttl).min(ttl));
        rest = after;
    }
    lowest
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"\0\0\x81\x83\0\x01\0\x02\0\0\0\0\x01a\0\0\x01\0\x01";

    fn response(ttls: [u32; 2]) -> Vec<u8> {
        let mut message = HEAD.to_vec();
        for ttl in ttls {
            message.extend_from_slice(b"\xc0\x0c\0\x01\0\x01");
            message.extend_from_slice(&ttl.to_be_bytes());
            message.extend_from_slice(b"\0\x04\x7f\0\0\x01");
        }
        message
    }

    #[test]
    fn rcode_answers_and_the_lowest_ttl_are_read() {
        let facts = ResponseFacts::read(&response([300, 60])).unwrap();
        assert_eq!((facts.rcode, facts.answers), (3, 2));
        assert_eq!((facts.ttl_min, facts.truncated), (Some(60), false));
    }

    #[test]
    fn rfc2181_section_8_a_ttl_with_the_highest_bit_counts_as_zero() {
        let facts = ResponseFacts::read(&response([300, 0x8000_0000])).unwrap();
        assert_eq!(facts.ttl_min, Some(0));
    }

    #[test]
    fn a_response_cut_off_anywhere_is_read_as_far_as_it_goes() {
        let whole = response([300, 60]);
        for octets in 0..whole.len() {
            let facts = ResponseFacts::read(&whole[..octets]);
            assert_eq!(facts.is_some(), octets >= 12, "{octets}");
            assert!(
                facts.is_none_or(|facts| facts.ttl_min.is_none()),
                "{octets}"
            );
        }
    }
}
