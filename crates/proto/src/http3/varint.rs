//! Variable-length integers (RFC 9000, section 16).

/// The largest that can be written.
pub(super) const MAX: u64 = (1 << 62) - 1;

/// Appends `value` in as few octets as possible. Larger ones than [`MAX`] are cut off to it.
pub(super) fn write(value: u64, out: &mut Vec<u8>) {
    let value = value.min(MAX);
    match value {
        0..=0x3f => out.push(value as u8),
        0x40..=0x3fff => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => out.extend_from_slice(&(value as u32 | 1 << 31).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 3 << 62).to_be_bytes()),
    }
}

/// Takes an integer from the front of `rest`; `None`, and nothing taken, if it is cut off.
pub(super) fn read(rest: &mut &[u8]) -> Option<u64> {
    let first = *rest.first()?;
    let octets = 1_usize << (first >> 6);
    let (encoded, after) = rest.split_at_checked(octets)?;
    let value = encoded[1..]
        .iter()
        .fold(u64::from(first & 0x3f), |value, &octet| {
            value << 8 | u64::from(octet)
        });
    *rest = after;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rfc9000_a1_examples() {
        for (octets, value) in [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            let mut rest = octets;
            assert_eq!(read(&mut rest), Some(value));
            let mut written = Vec::new();
            write(value, &mut written);
            assert_eq!(written, octets);
        }
        assert_eq!(read(&mut &[0x40, 0x25][..]), Some(37), "in two bytes");
    }

    proptest! {
        #[test]
        fn every_integer_survives_and_every_cut_is_seen(value in 0..=MAX) {
            let mut octets = Vec::new();
            write(value, &mut octets);
            for cut in 0..octets.len() {
                let mut rest = &octets[..cut];
                prop_assert_eq!(read(&mut rest), None);
                prop_assert_eq!(rest.len(), cut);
            }
            prop_assert_eq!(read(&mut &octets[..]), Some(value));
        }
    }
}
