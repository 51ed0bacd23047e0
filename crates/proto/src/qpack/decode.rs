//! From field sections to fields (RFC 9204, section 4.5).

use super::static_table;
use crate::hpack::{huffman, integer};

/// Octets that the fields of one section may take when decoded, each with 32 on top, as
/// SETTINGS_MAX_FIELD_SECTION_SIZE counts them (RFC 9114, section 4.2.2).
pub(crate) const SECTION_OCTETS_MAX: usize = 65_536;

/// What a field counts beside its name and value.
const FIELD_OVERHEAD_OCTETS: usize = 32;

/// Why a field section cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// QPACK_DECOMPRESSION_FAILED: a connection error (section 6).
    Failed(&'static str),
    /// The fields take more than 64 KiB: the message is dropped, the connection stays open.
    TooLong,
}

const CUT_OFF: DecodeError = DecodeError::Failed("a field section ends within a field");
const DYNAMIC: DecodeError =
    DecodeError::Failed("a reference to the dynamic table, which is empty");

/// Hands the fields of a whole `section` to `on_field`, name and value, in order.
///
/// Strings are passed on in place; Huffman-coded ones through `scratch`, whose content is void
/// before and after.
///
/// # Errors
/// Fields before the fault have been handed out.
pub fn decode(
    section: &[u8],
    scratch: &mut Vec<u8>,
    mut on_field: impl FnMut(&[u8], &[u8]),
) -> Result<(), DecodeError> {
    let mut rest = read_prefix(section)?;
    let mut octets = 0;
    while let Some(&first) = rest.first() {
        scratch.clear();
        octets += FIELD_OVERHEAD_OCTETS
            + match first {
                // Indexed field line (section 4.5.2).
                0x80.. => {
                    let (name, value) = read_static(&mut rest, first & 0x40 != 0, 6)?;
                    on_field(name.as_bytes(), value.as_bytes());
                    name.len() + value.len()
                }
                // Literal with name reference (section 4.5.4).
                0x40.. => {
                    let (name, _) = read_static(&mut rest, first & 0x10 != 0, 4)?;
                    let value = read_string(&mut rest, 7, scratch)?.of(scratch);
                    on_field(name.as_bytes(), value);
                    name.len() + value.len()
                }
                // Literal with literal name (section 4.5.6).
                0x20.. => {
                    let name = read_string(&mut rest, 3, scratch)?;
                    let value = read_string(&mut rest, 7, scratch)?;
                    let (name, value) = (name.of(scratch), value.of(scratch));
                    on_field(name, value);
                    name.len() + value.len()
                }
                // Post-base indices (sections 4.5.3 and 4.5.5) are of the dynamic table.
                _ => return Err(DYNAMIC),
            };
        if octets > SECTION_OCTETS_MAX {
            return Err(DecodeError::TooLong);
        }
    }
    Ok(())
}

/// Required Insert Count and Base (section 4.5.1): nothing can be required.
fn read_prefix(section: &[u8]) -> Result<&[u8], DecodeError> {
    let mut rest = section;
    if read_integer(&mut rest, 8)? != 0 {
        return Err(DYNAMIC);
    }
    let is_negative = rest.first().is_some_and(|first| first & 0x80 != 0);
    read_integer(&mut rest, 7)?;
    match is_negative {
        true => Err(DecodeError::Failed(
            "the base of a field section is negative",
        )),
        false => Ok(rest),
    }
}

/// HPACK's integers, whose largest accepted value is more than any that makes sense.
fn read_integer(rest: &mut &[u8], prefix_bits: u8) -> Result<u32, DecodeError> {
    integer::read(rest, prefix_bits).map_err(|error| match error {
        crate::hpack::DecodeError::Truncated => CUT_OFF,
        _ => DecodeError::Failed("an integer in a field section is too large"),
    })
}

fn read_static(
    rest: &mut &[u8],
    is_static: bool,
    prefix_bits: u8,
) -> Result<(&'static str, &'static str), DecodeError> {
    if !is_static {
        return Err(DYNAMIC);
    }
    let index = read_integer(rest, prefix_bits)?;
    static_table::entry(index).ok_or(DecodeError::Failed("an index beyond the static table"))
}

/// A string, or where its decoding stands in the scratch buffer.
enum Text<'a> {
    InPlace(&'a [u8]),
    Scratch(std::ops::Range<usize>),
}

impl<'a> Text<'a> {
    fn of(self, scratch: &'a [u8]) -> &'a [u8] {
        match self {
            Text::InPlace(octets) => octets,
            Text::Scratch(range) => &scratch[range],
        }
    }
}

/// Takes a string (section 4.1.2); the bit above its length marks Huffman coding.
fn read_string<'a>(
    rest: &mut &'a [u8],
    prefix_bits: u8,
    scratch: &mut Vec<u8>,
) -> Result<Text<'a>, DecodeError> {
    let &first = rest.first().ok_or(CUT_OFF)?;
    let is_huffman = first & (1 << prefix_bits) != 0;
    let octets = read_integer(rest, prefix_bits)? as usize;
    let (encoded, after) = rest.split_at_checked(octets).ok_or(CUT_OFF)?;
    *rest = after;
    if !is_huffman {
        return Ok(Text::InPlace(encoded));
    }
    let start = scratch.len();
    huffman::decode(encoded, scratch)
        .map_err(|_| DecodeError::Failed("a string is no Huffman code"))?;
    Ok(Text::Scratch(start..scratch.len()))
}
