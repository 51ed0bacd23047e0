//! Instructions that are legal on the encoder and decoder streams with an empty dynamic table (RFC
//! 9204, sections 4.3 and 4.4).

/// Checks octets of the peer's encoder stream: nothing can be inserted into a table of capacity 0,
/// so all that is allowed is to set the capacity to 0 (section 4.3.1).
///
/// False for QPACK_ENCODER_STREAM_ERROR.
pub fn check_encoder_instructions(octets: &[u8]) -> bool {
    octets.iter().all(|&octet| octet == 0x20)
}

/// The peer's decoder stream: it may cancel streams (section 4.4.2), but has nothing to
/// acknowledge.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecoderInstructions {
    /// The stream ID of a Stream Cancellation continues.
    is_within_integer: bool,
}

impl DecoderInstructions {
    /// Checks the next octets; false for QPACK_DECODER_STREAM_ERROR.
    pub fn check(&mut self, octets: &[u8]) -> bool {
        octets.iter().all(|&octet| {
            if self.is_within_integer {
                self.is_within_integer = octet & 0x80 != 0;
                return true;
            }
            // Stream Cancellation: two bits, and a prefix of six.
            self.is_within_integer = octet == 0x7f;
            octet & 0xc0 == 0x40
        })
    }
}
