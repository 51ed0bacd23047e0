//! HPACK's integers with a prefix (RFC 7541, section 5.1).

use super::DecodeError;

/// The largest value that is accepted; more than any length or index can be here.
const VALUE_MAX: u32 = 1 << 24;

/// Appends `value` behind the bits `flags`, with a prefix of `prefix_bits`.
pub(crate) fn write(flags: u8, prefix_bits: u8, value: u32, out: &mut Vec<u8>) {
    let prefix_max = (1_u32 << prefix_bits) - 1;
    if value < prefix_max {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | prefix_max as u8);
    let mut rest = value - prefix_max;
    while rest >= 128 {
        out.push(rest as u8 | 128);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Takes an integer from the front of `bytes`; its first octet has a prefix of `prefix_bits`.
pub(crate) fn read(bytes: &mut &[u8], prefix_bits: u8) -> Result<u32, DecodeError> {
    let (&first, mut rest) = bytes.split_first().ok_or(DecodeError::Truncated)?;
    let prefix_max = (1_u32 << prefix_bits) - 1;
    let mut value = u32::from(first) & prefix_max;
    if value == prefix_max {
        let mut shift = 0;
        loop {
            let (&octet, after) = rest.split_first().ok_or(DecodeError::Truncated)?;
            rest = after;
            if shift > 21 {
                return Err(DecodeError::IntegerTooLarge);
            }
            value += u32::from(octet & 127) << shift;
            shift += 7;
            if octet < 128 {
                break;
            }
        }
        if value > VALUE_MAX {
            return Err(DecodeError::IntegerTooLarge);
        }
    }
    *bytes = rest;
    Ok(value)
}
