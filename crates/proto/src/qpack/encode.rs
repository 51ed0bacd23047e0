//! From fields to field sections (RFC 9204, section 4.5).

use super::static_table::{field_index, name_index};
use crate::hpack::integer;

/// Begins a field section: Required Insert Count and Base of 0 (section 4.5.1).
pub fn start_section(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0]);
}

/// Appends a field: an index if the static table has it whole, else its value as a literal behind
/// the index of its name, or behind its name. Without the Huffman code: sections are rendered
/// once, and octets are cheaper than time at the other end.
pub fn write_field(name: &str, value: &str, out: &mut Vec<u8>) {
    match field_index(name, value) {
        // Indexed field line, T = 1 (section 4.5.2).
        Some(index) => integer::write(0xc0, 6, index, out),
        None => {
            write_name(name, out);
            write_string(value.as_bytes(), out);
        }
    }
}

/// The name of a literal: with a reference to the static table (section 4.5.4) or itself (section
/// 4.5.6).
pub(crate) fn write_name(name: &str, out: &mut Vec<u8>) {
    match name_index(name) {
        Some(index) => integer::write(0x50, 4, index, out),
        None => {
            integer::write(0x20, 3, name.len() as u32, out);
            out.extend_from_slice(name.as_bytes());
        }
    }
}

/// A string without the Huffman code (section 4.1.2).
fn write_string(text: &[u8], out: &mut Vec<u8>) {
    write_string_octets(text.len(), out);
    out.extend_from_slice(text);
}

/// The prefix of a string of `octets` octets.
pub(crate) fn write_string_octets(octets: usize, out: &mut Vec<u8>) {
    integer::write(0, 7, octets as u32, out);
}

/// Appends a field whose value is a number, such as `content-length`. Does not allocate itself.
pub fn write_number_field(name: &str, number: u32, out: &mut Vec<u8>) {
    write_name(name, out);
    write_string(Decimal::new(number).digits(), out);
}

/// A number in decimal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal {
    digits: [u8; 10],
    start: u8,
}

impl Decimal {
    pub(crate) fn new(number: u32) -> Self {
        let mut digits = [0; 10];
        let mut start = digits.len();
        let mut rest = number;
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        Decimal {
            digits,
            start: start as u8,
        }
    }

    pub(crate) fn digits(&self) -> &[u8] {
        &self.digits[usize::from(self.start)..]
    }
}
