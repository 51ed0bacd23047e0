//! How long an HTTP response is fresh (RFC 8484, section 5.1).

/// The least TTL in the Answer section, which is how long the response is fresh (RFC 8484, section
/// 5.1); `None` if there is no record, or no message that could be read.
pub(crate) fn ttl_min(message: &[u8]) -> Option<u32> {
    let count = |at: usize| {
        let octets = message.get(at..)?.first_chunk()?;
        Some(u16::from_be_bytes(*octets))
    };
    let mut rest = message.get(12..)?;
    for _ in 0..count(4)? {
        rest = after_name(rest)?.get(4..)?;
    }
    let mut least = None;
    for _ in 0..count(6)? {
        let record: &[u8; 10] = after_name(rest)?.first_chunk()?;
        let [.., t0, t1, t2, t3, l0, l1] = *record;
        let ttl = u32::from_be_bytes([t0, t1, t2, t3]);
        least = Some(least.map_or(ttl, |least: u32| least.min(ttl)));
        let rdata_octets = usize::from(u16::from_be_bytes([l0, l1]));
        rest = after_name(rest)?.get(record.len() + rdata_octets..)?;
    }
    least
}

/// What follows a name (RFC 1035, section 4.1.4).
fn after_name(octets: &[u8]) -> Option<&[u8]> {
    let mut rest = octets;
    loop {
        let (&length, after) = rest.split_first()?;
        match length {
            0 => return Some(after),
            1..64 => rest = after.get(usize::from(length)..)?,
            _ => return after.get(1..),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc8484_section_5_1_freshness_is_the_least_ttl_of_the_answer() {
        let header = |answers: u8| [0, 0, 0x80, 0, 0, 1, 0, answers, 0, 0, 0, 0].to_vec();
        let question = b"\x01a\0\0\x01\0\x01";
        let record = |ttl: u8| [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, ttl, 0, 1, 9];
        let message = |answers: u8, records: &[[u8; 13]]| {
            [&header(answers)[..], question, &records.concat()].concat()
        };
        assert_eq!(ttl_min(&message(0, &[])), None);
        assert_eq!(ttl_min(&message(1, &[record(60)])), Some(60));
        let three = [record(60), record(5), record(7)];
        assert_eq!(ttl_min(&message(3, &three)), Some(5));
        let whole = message(3, &three);
        for length in 0..whole.len() {
            assert_eq!(ttl_min(&whole[..length]), None, "cut off at {length}");
        }
    }
}
