//! QPACK, the compression of HTTP/3's field sections (RFC 9204), without a dynamic table.
//!
//! Both sides set a capacity of 0, so a section never waits for another stream, and the encoder and
//! decoder streams have no effect. That leaves the static table and literals, with or without
//! Huffman coding.

mod decode;
mod encode;
mod instructions;
mod static_table;

#[cfg(test)]
mod tests;

pub(crate) use decode::SECTION_OCTETS_MAX;
pub use decode::{DecodeError, decode};
pub(crate) use encode::{Decimal, write_name, write_string_octets};
pub use encode::{start_section, write_field, write_number_field};
pub use instructions::{DecoderInstructions, check_encoder_instructions};
pub use static_table::{entry, name_index};
