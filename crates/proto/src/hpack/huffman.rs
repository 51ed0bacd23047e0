//! The Huffman code of HPACK and QPACK (RFC 7541, section 5.2 and appendix B).
//!
//! The code is canonical: codes of one length are consecutive and in the order of their symbols.
//! So the lengths say everything, and the tables are computed from them at compile time.

/// Symbols: all octets, and EOS.
const SYMBOLS: usize = 257;

/// EOS, which must not occur in a string.
const EOS: u16 = 256;

/// Bits of the longest code.
const BITS_MAX: usize = 30;

/// Codes of up to this many bits are found with one table lookup.
const SHORT_BITS: u32 = 8;

/// Bits of each symbol's code.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11,
    10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8,
    15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5,
    6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23,
    23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21,
    23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25,
    26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26,
    28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// The code from both sides.
struct Tables {
    /// Code of each symbol, right-aligned.
    codes: [u32; SYMBOLS],
    /// Symbols in the order of their codes.
    ordered: [u16; SYMBOLS],
    /// For each length: the first code of that length, and its place in `ordered`.
    first: [(u32, u16); BITS_MAX + 2],
    /// For all values of the next eight bits: a symbol and its length; length 0 if it is longer.
    short: [(u8, u8); 1 << SHORT_BITS],
}

static TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut tables = Tables {
        codes: [0; SYMBOLS],
        ordered: [0; SYMBOLS],
        first: [(0, 0); BITS_MAX + 2],
        short: [(0, 0); 1 << SHORT_BITS],
    };
    let (mut bits, mut code, mut place) = (1, 0_u32, 0);
    while bits <= BITS_MAX + 1 {
        tables.first[bits] = (code, place as u16);
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == bits {
                tables.codes[symbol] = code;
                tables.ordered[place] = symbol as u16;
                if bits <= SHORT_BITS as usize {
                    let spare = SHORT_BITS as usize - bits;
                    let mut tail = 0;
                    while tail < 1 << spare {
                        let index = ((code as usize) << spare) | tail;
                        tables.short[index] = (symbol as u8, bits as u8);
                        tail += 1;
                    }
                }
                code += 1;
                place += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        bits += 1;
    }
    tables
}

/// Why a string cannot be decoded: it contains EOS, or its padding is longer than 7 bits or not
/// made of ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidHuffman;

/// Octets that `text` takes when encoded.
pub fn encoded_octets(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|&octet| usize::from(LENGTHS[usize::from(octet)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends the code of `text` to `out`, padded with ones.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut window, mut bits) = (0_u64, 0);
    for &octet in text {
        let symbol = usize::from(octet);
        window = (window << LENGTHS[symbol]) | u64::from(TABLES.codes[symbol]);
        bits += u32::from(LENGTHS[symbol]);
        while bits >= 8 {
            bits -= 8;
            out.push((window >> bits) as u8);
        }
    }
    if bits > 0 {
        let padding = 8 - bits;
        out.push(((window << padding) as u8) | ((1_u8 << padding) - 1));
    }
}

/// Appends what `encoded` stands for to `out`: at most 8/5 of its octets. About 2 ns an octet.
///
/// # Errors
/// [`InvalidHuffman`]; a part of the text may have been appended.
pub fn decode(encoded: &[u8], out: &mut Vec<u8>) -> Result<(), InvalidHuffman> {
    // The next `bits` bits of the string are left-aligned in the window, ones behind them.
    let (mut window, mut bits) = (u64::MAX, 0_u32);
    let mut rest = encoded.iter();
    out.reserve(encoded.len() + encoded.len() / 2);
    loop {
        while bits <= 56 {
            let Some(&octet) = rest.next() else { break };
            let shift = 56 - bits;
            window &= !(0xff << shift) | (u64::from(octet) << shift);
            bits += 8;
        }
        let (symbol, mut length) = TABLES.short[(window >> (64 - SHORT_BITS)) as usize];
        let mut symbol = u16::from(symbol);
        if length == 0 {
            (symbol, length) = long_code((window >> 32) as u32);
        }
        let length = u32::from(length);
        if length > bits {
            // Fewer bits than a code: padding, if they are all ones.
            let all_ones = bits < 8 && window == u64::MAX;
            return all_ones.then_some(()).ok_or(InvalidHuffman);
        }
        if symbol == EOS {
            return Err(InvalidHuffman);
        }
        out.push(symbol as u8);
        window = (window << length) | ((1 << length) - 1);
        bits -= length;
    }
}

/// The symbol whose code of more than eight bits `window` begins with, and the code's length.
fn long_code(window: u32) -> (u16, u8) {
    for bits in SHORT_BITS as usize + 1..=BITS_MAX {
        let code = window >> (32 - bits);
        let (next_first, next_place) = TABLES.first[bits + 1];
        if code < next_first >> 1 {
            let back = (next_first >> 1) - code;
            return (
                TABLES.ordered[usize::from(next_place) - back as usize],
                bits as u8,
            );
        }
    }
    (EOS, BITS_MAX as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rfc7541_appendix_b_codes_are_those_of_the_table() {
        let known: [(usize, u32); 10] = [
            (0, 0x1ff8),
            (10, 0x3fff_fffc),
            (usize::from(b' '), 0x14),
            (usize::from(b'0'), 0),
            (usize::from(b'A'), 0x21),
            (usize::from(b'\\'), 0x7fff0),
            (usize::from(b'z'), 0x7b),
            (127, 0xfff_fffc),
            (255, 0x3ff_ffee),
            (256, 0x3fff_ffff),
        ];
        for (symbol, code) in known {
            assert_eq!(TABLES.codes[symbol], code, "symbol {symbol}");
        }
    }

    #[test]
    fn rfc7541_section_5_2_padding_must_be_the_front_of_eos_and_under_eight_bits() {
        let decoded = |encoded: &[u8]| {
            let mut text = Vec::new();
            decode(encoded, &mut text).map(|()| text)
        };
        assert_eq!(decoded(&[]), Ok(vec![]));
        assert_eq!(decoded(&[0b0000_0111]), Ok(b"0".to_vec()));
        assert_eq!(decoded(&[0b0000_0110]), Err(InvalidHuffman));
        assert_eq!(
            decoded(&[0xff]),
            Err(InvalidHuffman),
            "eight bits of padding"
        );
        assert_eq!(decoded(&[0b0000_0111, 0xff]), Err(InvalidHuffman));
        assert_eq!(
            decoded(&[0xff, 0xff, 0xff, 0xff]),
            Err(InvalidHuffman),
            "EOS"
        );
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
            encode(&text, &mut encoded);
            prop_assert_eq!(encoded.len(), encoded_octets(&text));
            prop_assert_eq!(decode(&encoded, &mut decoded), Ok(()));
            prop_assert_eq!(decoded, text);
        }

        #[test]
        fn whatever_decodes_is_the_one_encoding_of_its_text(
            encoded in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut text = Vec::new();
            if decode(&encoded, &mut text).is_ok() {
                let mut again = Vec::new();
                encode(&text, &mut again);
                prop_assert_eq!(again, encoded);
            }
        }
    }
}
