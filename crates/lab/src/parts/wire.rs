//! What goes between a part and its parent: messages of a word and what it is about, as frames of
//! any octets, so that one stream carries settings, files and records.
//!
//! A frame is its length (4 octets, big-endian; the highest bit is set if what follows is deflated,
//! RFC 1950), the word, a blank, and the rest.

use std::io::{Error, ErrorKind, Read, Result, Write};

use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

/// The most that a frame holds, deflated or not: what a frame says of its length is nothing to
/// trust. Records of a day have some tens of megabytes.
pub const OCTETS_MAX: usize = 512 << 20;
/// Shorter messages are not worth it.
const DEFLATED_MIN: usize = 1_024;
/// Of 1 to 10: intervals are a quarter of their size by it, and more gains little.
const LEVEL: u8 = 3;
const IS_DEFLATED: u32 = 1 << 31;
/// As much as is read of a frame at once, so that a length alone takes no memory.
const PIECE: u64 = 1 << 20;

/// A word and what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Without blanks.
    pub word: String,
    /// JSON, or the octets of a file.
    pub about: Vec<u8>,
}

impl Message {
    /// The same as text; another word than was said if it is none.
    pub(super) fn into_text(self) -> (String, String) {
        match String::from_utf8(self.about) {
            Ok(text) => (self.word, text),
            Err(_) => ("nonsense".to_owned(), self.word),
        }
    }
}

/// A message as a frame; deflated if it `travels` and is worth it.
///
/// # Errors
/// It is longer than a frame may be.
pub(super) fn frame(word: &str, about: &[u8], travels: bool) -> Result<Vec<u8>> {
    let whole = || [word.as_bytes(), b" ", about].concat();
    let length = word.len() + 1 + about.len();
    if length > OCTETS_MAX {
        return Err(invalid(format!("a message of {length} bytes is too long")));
    }
    let (body, mark) = match travels && about.len() >= DEFLATED_MIN {
        true => (compress_to_vec_zlib(&whole(), LEVEL), IS_DEFLATED),
        false => (whole(), 0),
    };
    let mut frame = Vec::with_capacity(4 + body.len());
    let length = u32::try_from(body.len()).map_err(|_| invalid("a message is too long"))?;
    frame.extend_from_slice(&(length | mark).to_be_bytes());
    frame.extend_from_slice(&body);
    Ok(frame)
}

/// Writes a message that is not deflated.
///
/// # Errors
/// Nobody reads it.
pub fn write(to: &mut impl Write, word: &str, about: &[u8]) -> Result<()> {
    to.write_all(&frame(word, about, false)?)?;
    to.flush()
}

/// The same to another host: a long one is deflated.
///
/// # Errors
/// Nobody reads it.
pub fn write_far(to: &mut impl Write, word: &str, about: &[u8]) -> Result<()> {
    to.write_all(&frame(word, about, true)?)?;
    to.flush()
}

/// Reads the next message; none if there are no more.
///
/// # Errors
/// The stream ends within a message, or is none of messages.
pub fn read(from: &mut impl Read) -> Result<Option<Message>> {
    let mut head = [0; 4];
    match from.read_exact(&mut head[..1]) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    from.read_exact(&mut head[1..])?;
    let head = u32::from_be_bytes(head);
    let length = (head & !IS_DEFLATED) as usize;
    if !(1..=OCTETS_MAX).contains(&length) {
        return Err(invalid("what it says is not of throng"));
    }
    let body = read_octets(from, length)?;
    let body = match head & IS_DEFLATED {
        0 => body,
        _ => decompress_to_vec_zlib_with_limit(&body, OCTETS_MAX)
            .map_err(|error| invalid(format!("a message cannot be inflated: {error}")))?,
    };
    let blank = body.iter().take(32).position(|octet| *octet == b' ');
    let (word, about) = body.split_at(blank.ok_or_else(|| invalid("a message has no word"))?);
    let word = std::str::from_utf8(word).map_err(|_| invalid("a message has no word"))?;
    Ok(Some(Message {
        word: word.to_owned(),
        about: about[1..].to_vec(),
    }))
}

fn read_octets(from: &mut impl Read, length: usize) -> Result<Vec<u8>> {
    let mut octets = Vec::new();
    while octets.len() < length {
        let wanted = (length - octets.len()) as u64;
        let read = from
            .by_ref()
            .take(wanted.min(PIECE))
            .read_to_end(&mut octets)?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(octets)
}

fn invalid(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, why.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(mut stream: &[u8]) -> Result<Vec<Message>> {
        std::iter::from_fn(|| read(&mut stream).transpose()).collect()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            messages in prop::collection::vec(
                ("[a-z-]{1,12}", prop::collection::vec(any::<u8>(), 0..3_000), any::<bool>()),
                0..6,
            ),
        ) {
            let frames = messages.iter().map(|(word, about, travels)| {
                frame(word, about, *travels).unwrap()
            });
            let read = all(&frames.collect::<Vec<_>>().concat()).unwrap();
            prop_assert_eq!(read.len(), messages.len());
            for (read, (word, about, _)) in read.iter().zip(&messages) {
                prop_assert_eq!((&read.word, &read.about), (word, about));
            }
        }

        #[test]
        fn any_octets_are_read_or_refused(octets in prop::collection::vec(any::<u8>(), 0..200)) {
            // Whatever comes of it.
            let _ = all(&octets);
        }
    }

    #[test]
    fn long_messages_that_travel_are_deflated() {
        let about = vec![b'a'; 20_000];
        assert!(frame("interval", &about, true).unwrap().len() < 500);
        assert!(frame("interval", &about, false).unwrap().len() > 20_000);
    }

    #[test]
    fn what_is_cut_off_or_foreign_is_refused() {
        let whole = frame("record", b"{}", false).unwrap();
        for length in 1..whole.len() {
            let error = all(&whole[..length]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        }
        for foreign in [
            "Welcome to node-1!\n",
            "HTTP/1.1 400 Bad Request\r\n",
            "\0\0\0\u{1}x",
        ] {
            let error = all(foreign.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{foreign}");
        }
    }
}
