//! Messages as bytes.
//!
//! A message is JSON, deflated with a checksum (RFC 1950), in one frame or several:
//!
//! | octets | |
//! |---|---|
//! | 3 | `F7 54 68`: no text that a shell may print begins so |
//! | 1 | 1 if a further frame of this message follows, else 0 |
//! | 4 | length of the rest, big-endian |
//! | | a part of the deflated message |

use std::fmt;

use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use serde::Serialize;
use serde::de::DeserializeOwned;

const MARK: [u8; 3] = [0xF7, b'T', b'h'];
const HEADER: usize = 8;
/// Most bytes of a message in one frame, which is written at once.
const FRAME_MAX: usize = 1 << 20;
/// Most bytes of a deflated message, before and after its sender's greeting. Records of 10,000
/// clients take a few megabytes, names to query some tens.
const GREETING_MAX: usize = 64 << 10;
const MESSAGE_MAX: usize = 256 << 20;
/// An inflated message is at most this many times as long as the longest deflated one: a bound
/// against decompression bombs.
const INFLATION_MAX: usize = 4;
/// From 1 to 10: it reduces an interval to a quarter, and higher levels gain little.
const LEVEL: u8 = 3;

/// Why bytes cannot be decoded. Nothing after them can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// They do not begin like ours: another program sent them.
    Foreign(Vec<u8>),
    /// A message is longer than it may be.
    TooLong,
    /// It cannot be inflated, or is not a message.
    Damaged(String),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Foreign(octets) => {
                let text = String::from_utf8_lossy(octets);
                write!(f, "`{}` is not a message", text.trim_end())
            }
            FrameError::TooLong => write!(f, "a message is too long"),
            FrameError::Damaged(why) => write!(f, "a message is damaged: {why}"),
        }
    }
}

impl std::error::Error for FrameError {}

/// A message as frames.
///
/// # Errors
/// It is longer than it may be.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let text = serde_json::to_vec(message).map_err(|it| FrameError::Damaged(it.to_string()))?;
    let deflated = compress_to_vec_zlib(&text, LEVEL);
    if deflated.len() > MESSAGE_MAX || text.len() > MESSAGE_MAX * INFLATION_MAX {
        return Err(FrameError::TooLong);
    }
    let parts = deflated.chunks(FRAME_MAX);
    let mut octets = Vec::with_capacity(deflated.len() + parts.len() * HEADER);
    let last = parts.len() - 1;
    for (number, part) in parts.enumerate() {
        octets.extend_from_slice(&MARK);
        octets.push(u8::from(number < last));
        octets.extend_from_slice(&(part.len() as u32).to_be_bytes());
        octets.extend_from_slice(part);
    }
    Ok(octets)
}

/// Assembles messages from bytes as they arrive.
#[derive(Debug)]
pub struct Decoder {
    /// Bytes of an incomplete frame.
    octets: Vec<u8>,
    /// Frames of a message whose last one has not come.
    message: Vec<u8>,
    message_max: usize,
}

impl Decoder {
    /// For a sender that is known.
    pub fn new() -> Self {
        Decoder {
            octets: Vec::new(),
            message: Vec::new(),
            message_max: MESSAGE_MAX,
        }
    }

    /// For a sender that has not greeted yet.
    pub fn of_stranger() -> Self {
        Decoder {
            message_max: GREETING_MAX,
            ..Decoder::new()
        }
    }

    /// The sender has greeted.
    pub fn let_in(&mut self) {
        self.message_max = MESSAGE_MAX;
    }

    /// Takes bytes that have arrived.
    pub fn push(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    /// The next message; none until more bytes have arrived.
    ///
    /// # Errors
    /// [`FrameError`]: there are no further messages.
    pub fn poll<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        while self.octets.len() >= MARK.len() || !MARK.starts_with(&self.octets) {
            if !self.octets.starts_with(&MARK) {
                return Err(FrameError::Foreign(self.octets.clone()));
            }
            let Some(header) = self.octets.first_chunk::<HEADER>() else {
                return Ok(None);
            };
            let [.., a, b, c, d] = *header;
            let (has_more, length) = (header[MARK.len()], u32::from_be_bytes([a, b, c, d]));
            let (length, so_far) = (length as usize, self.message.len());
            if length > FRAME_MAX || length.saturating_add(so_far) > self.message_max {
                return Err(FrameError::TooLong);
            }
            if self.octets.len() < HEADER + length {
                return Ok(None);
            }
            self.message
                .extend_from_slice(&self.octets[HEADER..HEADER + length]);
            self.octets.drain(..HEADER + length);
            if has_more == 0 {
                let message = std::mem::take(&mut self.message);
                return decode(&message, self.message_max * INFLATION_MAX).map(Some);
            }
        }
        Ok(None)
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

fn decode<T: DeserializeOwned>(deflated: &[u8], octets_max: usize) -> Result<T, FrameError> {
    let text = decompress_to_vec_zlib_with_limit(deflated, octets_max)
        .map_err(|error| FrameError::Damaged(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| FrameError::Damaged(error.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::ToAgent;

    /// The messages in these bytes, which arrive in pieces of this length, and how decoding ends.
    fn read(octets: &[u8], piece: usize) -> (Vec<String>, Result<(), FrameError>) {
        let mut decoder = Decoder::new();
        let mut messages = Vec::new();
        for piece in octets.chunks(piece) {
            decoder.push(piece);
            loop {
                match decoder.poll::<String>() {
                    Ok(Some(message)) => messages.push(message),
                    Ok(None) => break,
                    Err(error) => return (messages, Err(error)),
                }
            }
        }
        (messages, Ok(()))
    }

    proptest! {
        #[test]
        fn messages_arrive_however_they_are_cut(
            messages in prop::collection::vec(".{0,200}", 1..6),
            piece in 1_usize..300,
        ) {
            let octets: Vec<u8> = messages.iter().flat_map(|it| encode(it).unwrap()).collect();
            prop_assert_eq!(read(&octets, piece), (messages, Ok(())));
        }

        /// Damaged bytes are never decoded as a message.
        #[test]
        fn a_flipped_octet_is_found(
            message in ".{1,200}",
            place in 0_usize..10_000,
            flipped in 1_u8..=255,
        ) {
            let mut octets = encode(&message).unwrap();
            let place = place % octets.len();
            octets[place] ^= flipped;
            // More bytes follow, in case the flip makes the frame longer.
            let next = "x".repeat(100);
            octets.extend(encode(&next).unwrap());
            let (messages, _) = read(&octets, 1_000);
            prop_assert!(messages.iter().all(|it| *it == message || *it == next));
        }
    }

    #[test]
    fn long_messages_are_several_frames() {
        // Bytes that hardly compress.
        let mut state = 1_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from(b'!' + (state >> 33) as u8 % 90)
        };
        let message: String = (0..3_000_000).map(|_| next()).collect();
        let octets = encode(&message).unwrap();
        assert_eq!(octets[3], 1);
        assert_eq!(read(&octets, 100_000), (vec![message], Ok(())));
    }

    #[test]
    fn what_is_no_message_is_refused_at_once() {
        let banner = b"Welcome to node-1!\n";
        let foreign = FrameError::Foreign(banner.to_vec());
        assert_eq!(read(banner, 100).1, Err(foreign.clone()));
        assert_eq!(foreign.to_string(), "`Welcome to node-1!` is not a message");
        assert!(read(b"\xF7W", 1).1.is_err());
        // A length alone allocates no memory.
        let long = [0xF7, b'T', b'h', 0, 0xFF, 0xFF, 0xFF, 0xFF];
        assert_eq!(read(&long, 8).1, Err(FrameError::TooLong));
        let other = encode(&"no message of a lead").unwrap();
        let mut decoder = Decoder::new();
        decoder.push(&other);
        assert!(matches!(
            decoder.poll::<ToAgent>(),
            Err(FrameError::Damaged(_))
        ));
    }

    #[test]
    fn a_stranger_says_no_more_than_a_greeting() {
        let long = encode(&(0..20_000_u32).collect::<Vec<_>>()).unwrap();
        assert!(long.len() > 30_000, "{}", long.len());
        let longer = encode(&(0..80_000_u32).collect::<Vec<_>>()).unwrap();
        let mut decoder = Decoder::of_stranger();
        decoder.push(&longer);
        assert_eq!(decoder.poll::<Vec<u32>>(), Err(FrameError::TooLong));
        let mut decoder = Decoder::of_stranger();
        decoder.let_in();
        decoder.push(&longer);
        assert_eq!(decoder.poll::<Vec<u32>>().unwrap().unwrap().len(), 80_000);
    }

    #[test]
    fn a_message_of_a_stranger_does_not_swell() {
        let text = "a".repeat(GREETING_MAX * INFLATION_MAX);
        let swollen = encode(&text).unwrap();
        assert!(swollen.len() < GREETING_MAX / 10);
        let read = |mut decoder: Decoder| {
            decoder.push(&swollen);
            decoder.poll::<String>()
        };
        assert!(matches!(
            read(Decoder::of_stranger()),
            Err(FrameError::Damaged(_))
        ));
        assert_eq!(read(Decoder::new()).unwrap(), Some(text));
    }
}
