//! What a response is counted as: its RCODE, and whether it is NODATA (RFC 2308, section 2.2) or
//! truncated.

use super::{HEADER_OCTETS, TYPE_AND_CLASS_OCTETS, extended_rcode, skip_name, split_record};

/// TYPE of NS (RFC 1035, section 3.2.2).
const TYPE_NS: u16 = 2;
/// TYPE of SOA (RFC 1035, section 3.2.2).
const TYPE_SOA: u16 = 6;
/// Of the third octet of the header: AA.
const AUTHORITATIVE: u8 = 0x04;
/// Of the third octet of the header: the opcode, which is 0 for QUERY, and TC.
const OPCODE_AND_TRUNCATED: u8 = 0x78 | 0x02;

/// What a response is counted as, in 16 bits, so that one comparison shows whether two responses
/// are alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseKind(u16);

impl ResponseKind {
    const NODATA: u16 = 1 << 15;
    const TRUNCATED: u16 = 1 << 14;

    /// Looks at a message. One with answers and no other records, as most are, costs hardly more
    /// than its RCODE; malformed records are never NODATA. Does not allocate.
    #[inline(always)]
    pub fn of(message: &[u8]) -> ResponseKind {
        let Some(header) = message.first_chunk::<HEADER_OCTETS>() else {
            return ResponseKind(0);
        };
        let has_answers = header[6..8] != [0, 0];
        let has_other_records = header[8..] != [0, 0, 0, 0];
        match has_answers && !has_other_records {
            true => ResponseKind(u16::from(header[3] & 0x0f)),
            false => ResponseKind::of_any(header, message),
        }
    }

    fn of_any(header: &[u8; HEADER_OCTETS], message: &[u8]) -> ResponseKind {
        let rcode = extended_rcode(message);
        let is_nodata = rcode == 0 && is_nodata(header, &message[HEADER_OCTETS..]) == Some(true);
        ResponseKind(rcode | if is_nodata { Self::NODATA } else { 0 })
    }

    /// The same, of a message with the TC bit if `truncated`.
    #[must_use]
    pub fn with_truncated(self, truncated: bool) -> ResponseKind {
        let bit = if truncated { Self::TRUNCATED } else { 0 };
        ResponseKind(self.0 & !Self::TRUNCATED | bit)
    }

    /// The whole RCODE.
    #[inline]
    pub fn rcode(self) -> u16 {
        self.0 & !(Self::NODATA | Self::TRUNCATED)
    }

    /// True if there is more to it than the RCODE.
    #[inline]
    pub fn is_special(self) -> bool {
        self.0 & (Self::NODATA | Self::TRUNCATED) != 0
    }

    /// NOERROR to a query, and no record of the type asked for: the name exists, the type does not.
    /// An Answer section with a chain of aliases that ends in nothing is NODATA, a referral is not.
    pub fn is_nodata(self) -> bool {
        self.0 & Self::NODATA != 0
    }

    /// True if [`ResponseKind::with_truncated`] recorded a TC bit.
    pub fn is_truncated(self) -> bool {
        self.0 & Self::TRUNCATED != 0
    }
}

/// True for NODATA, of a message with RCODE NOERROR; `None` if its records are malformed.
///
/// Answers with an SOA record in the authority section are aliases that end in nothing: a server
/// puts one there in negative responses alone (RFC 2308, sections 2.1 and 2.2).
fn is_nodata(header: &[u8; HEADER_OCTETS], sections: &[u8]) -> Option<bool> {
    let count = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (questions, answers, authorities) = (count(4), count(6), count(8));
    let is_empty = answers == 0;
    if header[2] & OPCODE_AND_TRUNCATED != 0 || questions == 0 || (!is_empty && authorities == 0) {
        return Some(false);
    }
    let mut rest = sections;
    for _ in 0..questions {
        rest = skip_name(rest)?.get(TYPE_AND_CLASS_OCTETS..)?;
    }
    for _ in 0..answers {
        rest = split_record(rest)?.1;
    }
    let mut has_name_servers = false;
    for _ in 0..authorities {
        let (record, after) = split_record(rest)?;
        if record.record_type == TYPE_SOA {
            return Some(true);
        }
        has_name_servers |= record.record_type == TYPE_NS;
        rest = after;
    }
    let is_referral = has_name_servers && header[2] & AUTHORITATIVE == 0;
    Some(is_empty && !is_referral)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOERROR: u8 = 0;

    /// A response of `www.example.` with records of these types in answer, authority and
    /// additional section.
    fn response(flags: u8, rcode: u8, sections: [&[u16]; 3]) -> Vec<u8> {
        let mut message = vec![0, 0, 0x80 | flags, rcode, 0, 1];
        let counts = sections.map(|types| types.len() as u16);
        for count in counts {
            message.extend(count.to_be_bytes());
        }
        message.extend_from_slice(b"\x03www\x07example\0\0\x1c\0\x01");
        for record_type in sections.concat() {
            message.extend_from_slice(b"\xc0\x0c");
            message.extend(record_type.to_be_bytes());
            message.extend_from_slice(b"\0\x01\0\0\0\x3c\0\x02\xc0\x0c");
        }
        message
    }

    #[test]
    fn nodata_is_told_from_answers_referrals_and_errors_as_rfc_2308_has_it() {
        const AA: u8 = 0x04;
        const TC: u8 = 0x02;
        const UPDATE: u8 = 5 << 3;
        const AAAA: u16 = 28;
        const CNAME: u16 = 5;
        const OPT: u16 = 41;
        const NSEC: u16 = 47;
        let (soa, ns) = (TYPE_SOA, TYPE_NS);
        let cases: [(u8, u8, [&[u16]; 3], bool); 16] = [
            // Types 1, 2 and 3 of section 2.2, with EDNS or DNSSEC too.
            (AA, NOERROR, [&[], &[ns, soa], &[]], true),
            (AA, NOERROR, [&[], &[soa], &[]], true),
            (0, NOERROR, [&[], &[soa], &[OPT]], true),
            (0, NOERROR, [&[], &[NSEC, soa], &[OPT]], true),
            (AA, NOERROR, [&[], &[], &[]], true),
            (0, NOERROR, [&[], &[], &[OPT]], true),
            // Aliases that end in nothing.
            (0, NOERROR, [&[CNAME], &[soa], &[]], true),
            // Referrals.
            (0, NOERROR, [&[], &[ns, ns], &[1, 1]], false),
            (0, NOERROR, [&[], &[ns], &[OPT]], false),
            // Answers.
            (AA, NOERROR, [&[AAAA], &[], &[]], false),
            (AA, NOERROR, [&[AAAA], &[ns, ns], &[1, OPT]], false),
            (0, NOERROR, [&[CNAME, AAAA], &[], &[OPT]], false),
            // Something else.
            (AA, 3, [&[], &[soa], &[]], false),
            (0, 2, [&[], &[], &[]], false),
            (TC, NOERROR, [&[], &[], &[OPT]], false),
            (UPDATE, NOERROR, [&[], &[], &[]], false),
        ];
        for (flags, rcode, sections, wanted) in cases {
            let kind = ResponseKind::of(&response(flags, rcode, sections));
            let case = format!("{flags:#x} {rcode} {sections:?}");
            assert_eq!(kind.is_nodata(), wanted, "{case}");
            assert_eq!(kind.is_special(), wanted, "{case}");
            assert_eq!(kind.rcode(), u16::from(rcode), "{case}");
        }
    }

    #[test]
    fn cut_off_records_and_headers_are_not_nodata() {
        let whole = response(0, NOERROR, [&[], &[TYPE_SOA], &[]]);
        for octets in 0..whole.len() {
            let kind = ResponseKind::of(&whole[..octets]);
            assert_eq!(kind, ResponseKind::default(), "{octets} bytes");
        }
        // The header alone: it says of no question that it has no data.
        let kind = ResponseKind::of(&[0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(!kind.is_nodata());
    }

    #[test]
    fn truncation_is_beside_the_rcode() {
        let kind = ResponseKind::of(&response(0x02, 3, [&[], &[], &[]]));
        for truncated in [true, false] {
            let kind = kind.with_truncated(true).with_truncated(truncated);
            let seen = (kind.rcode(), kind.is_truncated(), kind.is_special());
            assert_eq!(seen, (3, truncated, truncated));
        }
    }
}
