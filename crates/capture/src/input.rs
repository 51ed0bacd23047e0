//! Octets of a capture, a piece at a time, with their offset.

use std::io::Read;

use crate::error::CaptureError;

/// Octets asked of the reader at a time.
const READ_OCTETS: usize = 64 * 1024;

/// A buffer before a reader: lets the first octets be looked at before they are taken, and knows
/// where in the file it is.
pub(crate) struct Input<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Octets of the buffer already taken.
    taken: usize,
    /// Octets of the file before the buffer.
    before: u64,
}

impl<R: Read> Input<R> {
    pub(crate) fn new(reader: R) -> Self {
        Input {
            reader,
            buffer: Vec::new(),
            taken: 0,
            before: 0,
        }
    }

    /// Where the next octet is in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.before + self.taken as u64
    }

    /// Up to `octets` octets without taking them; fewer only at the end of the file.
    pub(crate) fn peek(&mut self, octets: usize) -> Result<&[u8], CaptureError> {
        while self.buffer.len() - self.taken < octets {
            if self.fill()? == 0 {
                break;
            }
        }
        let rest = &self.buffer[self.taken..];
        Ok(&rest[..octets.min(rest.len())])
    }

    /// Moves on; at most what was peeked at.
    pub(crate) fn take(&mut self, octets: usize) {
        self.taken = (self.taken + octets).min(self.buffer.len());
    }

    /// Octets up to the next line feed, without it, of which at most `octets_max` are kept; `None`
    /// at the end of the file. A carriage return before the line feed is taken off.
    pub(crate) fn line(
        &mut self,
        octets_max: usize,
        line: &mut Vec<u8>,
    ) -> Result<Option<()>, CaptureError> {
        line.clear();
        if self.peek(1)?.is_empty() {
            return Ok(None);
        }
        loop {
            let rest = &self.buffer[self.taken..];
            let end = rest.iter().position(|&octet| octet == b'\n');
            let piece = &rest[..end.unwrap_or(rest.len())];
            let room = octets_max.saturating_sub(line.len());
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            let octets = piece.len() + usize::from(end.is_some());
            self.take(octets);
            if end.is_some() || self.peek(1)?.is_empty() {
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(Some(()));
            }
        }
    }

    /// Reads some more; 0 at the end of the file.
    fn fill(&mut self) -> Result<usize, CaptureError> {
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.before += self.taken as u64;
            self.taken = 0;
        }
        let length = self.buffer.len();
        self.buffer.resize(length + READ_OCTETS, 0);
        loop {
            match self.reader.read(&mut self.buffer[length..]) {
                Ok(octets) => {
                    self.buffer.truncate(length + octets);
                    return Ok(octets);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.buffer.truncate(length);
                    return Err(CaptureError::Unreadable {
                        offset: self.before + length as u64,
                        reason: error.to_string(),
                    });
                }
            }
        }
    }
}
