//! Keys, from the bytes that a terminal sends for them.

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Help,
    Quit,
    Freeze,
    Chart,
    NextView,
    /// The view of that number, from 1.
    View(u8),
    Up,
    Down,
}

/// Control-F.
const CONTROL_F: u8 = 0x06;
const ESCAPE: u8 = 0x1b;

/// How much of a key has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// An escape: the beginning of a sequence, or the key Esc.
    Escape,
    /// Within a sequence, until its last byte.
    Sequence,
}

/// Reads keys. A sequence may be divided among reads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keys(State);

impl Keys {
    /// The key that ends with this byte; none if it has no meaning here.
    pub(crate) fn read(&mut self, byte: u8) -> Option<Key> {
        let before = std::mem::take(&mut self.0);
        match (before, byte) {
            (State::Escape, b'[' | b'O') => {
                self.0 = State::Sequence;
                None
            }
            (State::Sequence, 0x40..=0x7e) => match byte {
                b'A' => Some(Key::Up),
                b'B' => Some(Key::Down),
                _ => None,
            },
            (State::Sequence, 0x20..0x40) => {
                self.0 = State::Sequence;
                None
            }
            (_, ESCAPE) => {
                self.0 = State::Escape;
                None
            }
            (_, byte) => key(byte),
        }
    }
}

fn key(byte: u8) -> Option<Key> {
    Some(match byte {
        b'?' | b'h' => Key::Help,
        b'q' => Key::Quit,
        CONTROL_F => Key::Freeze,
        b'c' => Key::Chart,
        b'\t' => Key::NextView,
        b'1'..=b'9' => Key::View(byte - b'0'),
        b'k' => Key::Up,
        b'j' => Key::Down,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut keys = Keys::default();
        bytes.iter().filter_map(|byte| keys.read(*byte)).collect()
    }

    #[test]
    fn keys_are_single_bytes_and_arrows_are_sequences() {
        assert_eq!(
            keys(b"?q\x06c\t3"),
            [
                Key::Help,
                Key::Quit,
                Key::Freeze,
                Key::Chart,
                Key::NextView,
                Key::View(3)
            ]
        );
        assert_eq!(keys(b"\x1b[A\x1bOB"), [Key::Up, Key::Down]);
    }

    #[test]
    fn sequence_of_an_unknown_key_is_not_read_as_its_letters() {
        // F5, and a mouse that moved.
        assert_eq!(keys(b"\x1b[15~q"), [Key::Quit]);
        assert_eq!(keys(b"\x1b[<35;1;2Mq"), [Key::Quit]);
        // Esc, and then a key.
        assert_eq!(keys(b"\x1bq"), [Key::Quit]);
        assert_eq!(keys(b"\x1b\x1b[Aq\xff"), [Key::Up, Key::Quit]);
    }
}
