//! HPACK, the compression of HTTP/2's field sections (RFC 7541).
//!
//! [`Decoder`] takes whole field blocks and passes on fields in place where it can. [`Encoder`] is
//! made for many blocks of nearly the same fields: it fills the peer's dynamic table once and
//! evicts nothing, so that a field is one octet from its second time on. The Huffman code
//! ([`huffman`]) is HTTP/3's too.

pub mod huffman;
pub mod static_table;

mod decoder;
mod encoder;
pub(crate) mod integer;

pub use decoder::{DecodeError, Decoder};
pub use encoder::{Encoder, Field, FieldRef, NumberField};

/// Initial size of the dynamic table (RFC 9113, section 6.5.2), in octets as section 4.1 counts
/// them.
pub const TABLE_OCTETS_INITIAL: u32 = 4_096;

/// What an entry of a dynamic table counts beside its name and value (RFC 7541, section 4.1).
const ENTRY_OVERHEAD_OCTETS: usize = 32;

#[cfg(test)]
mod tests;
