//! The two-octet length prefix of DNS over streams (RFC 1035, section 4.2.2; RFC 7766, section 8).
//!
//! [`Deframer`] turns stream octets into whole messages. Whole messages in the input are passed on
//! in place; only an incomplete message at the end is copied and kept.

/// Octets of the length prefix.
pub const PREFIX_OCTETS: usize = 2;

/// Reassembles messages from a stream; holds at most one partial message.
#[derive(Debug, Default)]
pub struct Deframer {
    /// Prefix and octets so far of a message that the stream has not finished; else empty and
    /// without capacity. At most 65,537 octets.
    partial: Vec<u8>,
}

impl Deframer {
    /// Passes every whole message (without prefix) to `on_message`, in order. True if the octets
    /// end within a message, whose rest is still to come.
    ///
    /// A prefix of zero gives an empty message. No allocation unless the octets end within a
    /// message; the buffer is freed when the stream is next at a message boundary, so an idle
    /// connection holds none.
    #[inline]
    pub fn handle_bytes(&mut self, bytes: &[u8], mut on_message: impl FnMut(&[u8])) -> bool {
        let framed;
        let (mut next, mut rest) = (None, bytes);
        if !self.partial.is_empty() {
            rest = self.extend_partial(rest);
            if !self.partial_is_whole() {
                return true;
            }
            framed = std::mem::take(&mut self.partial);
            next = Some(&framed[PREFIX_OCTETS..]);
        }
        while let Some(message) = next.take().or_else(|| take_message(&mut rest)) {
            on_message(message);
        }
        if rest.is_empty() {
            return false;
        }
        self.extend_partial(rest);
        true
    }

    /// Octets of an unfinished message held back, with its prefix.
    pub fn partial_octets(&self) -> usize {
        self.partial.len()
    }

    /// Moves what belongs to the partial message into the buffer; returns the octets after it.
    fn extend_partial<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let rest = self.extend_partial_to(PREFIX_OCTETS, bytes);
        match self.partial.first_chunk() {
            Some(&prefix) => {
                let message_octets = usize::from(u16::from_be_bytes(prefix));
                self.extend_partial_to(PREFIX_OCTETS + message_octets, rest)
            }
            None => rest,
        }
    }

    /// Extends the buffer up to `octets` as far as `bytes` go; returns the octets after that.
    fn extend_partial_to<'a>(&mut self, octets: usize, bytes: &'a [u8]) -> &'a [u8] {
        let missing = octets.saturating_sub(self.partial.len());
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.partial.reserve_exact(missing);
        self.partial.extend_from_slice(taken);
        rest
    }

    fn partial_is_whole(&self) -> bool {
        take_message(&mut &self.partial[..]).is_some()
    }
}

/// Octets of the first message of `stream` with its prefix, or as many of them as there are;
/// `None` without a whole prefix.
#[inline]
pub fn framed_octets(stream: &[u8]) -> Option<usize> {
    let (prefix, rest) = stream.split_first_chunk()?;
    let octets = usize::from(u16::from_be_bytes(*prefix)).min(rest.len());
    Some(PREFIX_OCTETS + octets)
}

/// The messages of `stream`, each with its prefix; the last may be cut off.
pub fn framed_messages(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = stream;
    std::iter::from_fn(move || {
        let (message, after) = rest.split_at(framed_octets(rest)?);
        rest = after;
        Some(message)
    })
}

/// Takes the first message off `stream`, its prefix dropped; `None` if it is cut off.
#[inline]
fn take_message<'a>(stream: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (prefix, rest) = stream.split_first_chunk()?;
    let octets = usize::from(u16::from_be_bytes(*prefix));
    let (message, rest) = rest.split_at_checked(octets)?;
    *stream = rest;
    Some(message)
}

/// Appends the length prefix and `message` to `stream`.
///
/// # Panics
/// If the message is longer than 65,535 octets: a programmer error, templates are checked.
pub fn write_message(message: &[u8], stream: &mut Vec<u8>) {
    let length = u16::try_from(message.len()).expect("a DNS message has at most 65,535 bytes");
    stream.extend_from_slice(&length.to_be_bytes());
    stream.extend_from_slice(message);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream_of(messages: &[Vec<u8>]) -> Vec<u8> {
        let mut stream = Vec::new();
        messages
            .iter()
            .for_each(|message| write_message(message, &mut stream));
        stream
    }

    fn deframe(deframer: &mut Deframer, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        deframer.handle_bytes(bytes, |message| messages.push(message.to_vec()));
        messages
    }

    #[test]
    fn whole_messages_are_handed_on_in_place() {
        let stream = stream_of(&[b"first".to_vec(), b"second".to_vec(), b"third".to_vec()]);
        let mut deframer = Deframer::default();
        assert_eq!(deframe(&mut deframer, &stream[..4]), Vec::<Vec<u8>>::new());
        let rest = &stream[4..];
        let mut in_place = Vec::new();
        deframer.handle_bytes(rest, |message| {
            in_place.push(rest.as_ptr_range().contains(&message.as_ptr()))
        });
        assert_eq!(
            in_place,
            [false, true, true],
            "only the cut message is copied"
        );
        assert_eq!(deframer.partial.capacity(), 0);
    }

    #[test]
    fn zero_prefix_gives_an_empty_message() {
        let mut deframer = Deframer::default();
        assert_eq!(deframe(&mut deframer, b"\0\0\0"), [b""]);
        assert_eq!(deframer.partial_octets(), 1);
        assert_eq!(deframe(&mut deframer, b"\0\0\x01x"), [&b""[..], b"x"]);
        assert_eq!(deframer.partial.capacity(), 0);
    }

    #[test]
    fn longest_message_octet_by_octet_stays_within_its_bound() {
        let stream = stream_of(&[vec![7; 65_535], b"next".to_vec()]);
        let mut deframer = Deframer::default();
        let mut messages = Vec::new();
        for octet in stream.chunks(1) {
            messages.extend(deframe(&mut deframer, octet));
            assert!(deframer.partial.capacity() <= 65_537);
        }
        assert_eq!(messages, [vec![7; 65_535], b"next".to_vec()]);
        assert_eq!(deframer.partial.capacity(), 0);
    }

    proptest! {
        #[test]
        fn any_split_of_a_stream_gives_the_same_messages(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
            chunk_octets in prop::collection::vec(1_usize..50, 1..10),
        ) {
            let stream = stream_of(&messages);
            let (mut deframer, mut found) = (Deframer::default(), Vec::new());
            let (mut rest, mut sizes) = (&stream[..], chunk_octets.iter().cycle());
            while !rest.is_empty() {
                let octets = sizes.next().map_or(1, |&octets| octets).min(rest.len());
                let (chunk, after) = rest.split_at(octets);
                found.extend(deframe(&mut deframer, chunk));
                rest = after;
            }
            prop_assert_eq!(found, messages);
            prop_assert_eq!(deframer.partial.capacity(), 0);
        }
    }
}
