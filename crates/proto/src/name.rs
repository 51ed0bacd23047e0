//! Domain names between presentation format (RFC 1035, section 5.1; RFC 4343) and wire format.
//!
//! Works on uncompressed names only; following compression pointers is left to the few callers
//! that read whole messages. Octets above 127 are passed on as they stand: no IDNA.

use std::fmt;

/// The most octets that a name has in wire format, root label included (RFC 1035, section 2.3.4).
pub const NAME_OCTETS_MAX: usize = 255;

/// The most octets that a label has, its length octet not counted (RFC 1035, section 2.3.4).
pub const LABEL_OCTETS_MAX: usize = 63;

/// Why a text is not a domain name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// The text was empty; the root is written `.`.
    Empty,
    /// Two dots in a row, or a dot first.
    EmptyLabel,
    /// A label of more than 63 octets.
    LabelTooLong,
    /// More than 255 octets in wire format.
    NameTooLong,
    /// A backslash without what must follow it, or `\DDD` above 255.
    BadEscape,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameError::Empty => "the name is empty (the root is written `.`)",
            NameError::EmptyLabel => "the name has an empty label (a dot first, or two in a row)",
            NameError::LabelTooLong => "a label of the name has more than 63 bytes",
            NameError::NameTooLong => "the name has more than 255 bytes",
            NameError::BadEscape => {
                "a backslash in the name must be followed by one character or by three digits up \
                 to 255"
            }
        })
    }
}

impl std::error::Error for NameError {}

/// Appends the wire format of the domain name `text` to `wire`.
///
/// Always fully qualified: a missing last dot is added. `\.`, `\\` and `\DDD` escapes are
/// understood. Case is kept. On an error `wire` is left as it was.
///
/// # Errors
/// [`NameError`] describes the fault in `text`.
pub fn parse(text: &str, wire: &mut Vec<u8>) -> Result<(), NameError> {
    let start = wire.len();
    let result = append_labels(text.as_bytes(), wire);
    if result.is_err() {
        wire.truncate(start);
    }
    result
}

/// Appends the labels of `text` and the root label; may leave a torso behind on an error.
fn append_labels(text: &[u8], wire: &mut Vec<u8>) -> Result<(), NameError> {
    let start = wire.len();
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if text == b"." {
        wire.push(0);
        return Ok(());
    }
    let mut label_at = start;
    wire.push(0);
    let mut rest = text;
    while let Some((&octet, after)) = rest.split_first() {
        rest = after;
        match octet {
            b'.' => {
                close_label(wire, label_at)?;
                label_at = wire.len();
                wire.push(0);
            }
            b'\\' => {
                let (value, after) = unescape(rest)?;
                wire.push(value);
                rest = after;
            }
            _ => wire.push(octet),
        }
    }
    // After a last dot the open label is empty and already stands for the root.
    if wire.len() > label_at + 1 {
        close_label(wire, label_at)?;
        wire.push(0);
    }
    if wire.len() - start > NAME_OCTETS_MAX {
        return Err(NameError::NameTooLong);
    }
    Ok(())
}

/// Fills in the length octet at `label_at` of the label that ends where `wire` ends.
fn close_label(wire: &mut [u8], label_at: usize) -> Result<(), NameError> {
    match wire.len() - label_at - 1 {
        0 => Err(NameError::EmptyLabel),
        octets @ 1..=LABEL_OCTETS_MAX => {
            wire[label_at] = octets as u8;
            Ok(())
        }
        _ => Err(NameError::LabelTooLong),
    }
}

/// The octet that an escape stands for, and the text after it; `rest` starts after the backslash.
fn unescape(rest: &[u8]) -> Result<(u8, &[u8]), NameError> {
    match rest {
        [
            a @ b'0'..=b'9',
            b @ b'0'..=b'9',
            c @ b'0'..=b'9',
            after @ ..,
        ] => {
            let digit = |octet: &u8| u16::from(octet - b'0');
            let value = digit(a) * 100 + digit(b) * 10 + digit(c);
            let value = u8::try_from(value).map_err(|_| NameError::BadEscape)?;
            Ok((value, after))
        }
        [b'0'..=b'9', ..] | [] => Err(NameError::BadEscape),
        [octet, after @ ..] => Ok((*octet, after)),
    }
}

/// The length in octets of the uncompressed name at the start of `wire`, root label included.
///
/// `None` if it is cut off, longer than 255 octets, or holds a compression pointer.
pub fn wire_length(wire: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < NAME_OCTETS_MAX {
        match usize::from(*wire.get(at)?) {
            0 => return Some(at + 1),
            octets if octets <= LABEL_OCTETS_MAX => at += 1 + octets,
            _ => return None,
        }
    }
    None
}

/// The presentation format of the uncompressed name at the start of `wire`, with a last dot.
///
/// Octets that are not printable ASCII become `\DDD`; those that mean something in a zone file
/// (RFC 1035, section 5.1) get a backslash. `None` where [`wire_length`] is `None`.
pub fn to_text(wire: &[u8]) -> Option<String> {
    let octets = wire_length(wire)?;
    if octets == 1 {
        return Some(".".to_owned());
    }
    let mut text = String::with_capacity(octets);
    let mut rest = &wire[..octets - 1];
    while let Some((&length, after)) = rest.split_first() {
        let (label, after) = after.split_at(usize::from(length));
        label
            .iter()
            .for_each(|&octet| push_escaped(octet, &mut text));
        text.push('.');
        rest = after;
    }
    Some(text)
}

fn push_escaped(octet: u8, text: &mut String) {
    match octet {
        b'.' | b'\\' | b'"' | b';' | b'(' | b')' | b'@' | b'$' => {
            text.push('\\');
            text.push(char::from(octet));
        }
        b'!'..=b'~' => text.push(char::from(octet)),
        _ => {
            text.push('\\');
            for divisor in [100, 10, 1] {
                text.push(char::from(b'0' + octet / divisor % 10));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::rr::Name;
    use proptest::prelude::*;

    fn wire_of(text: &str) -> Result<Vec<u8>, NameError> {
        let mut wire = b"before".to_vec();
        let result = parse(text, &mut wire);
        assert!(wire.starts_with(b"before"));
        if result.is_err() {
            assert_eq!(wire.len(), 6, "an error leaves the buffer as it was");
        }
        result.map(|()| wire.split_off(6))
    }

    #[test]
    fn names_become_labels() {
        for (text, wire) in [
            (".", &b"\0"[..]),
            ("example", b"\x07example\0"),
            ("example.", b"\x07example\0"),
            ("wWw.Example.COM", b"\x03wWw\x07Example\x03COM\0"),
            (r"a\.b.c", b"\x03a.b\x01c\0"),
            (r"a\\b", b"\x03a\\b\0"),
            (r"a\.", b"\x02a.\0"),
            (r"\000\255\046.x.", b"\x03\0\xff.\x01x\0"),
            ("_dns._udp", b"\x04_dns\x04_udp\0"),
            ("é", b"\x02\xc3\xa9\0"),
        ] {
            assert_eq!(wire_of(text).as_deref(), Ok(wire), "{text}");
        }
    }

    #[test]
    fn malformed_names_are_refused() {
        for (text, error) in [
            ("", NameError::Empty),
            ("..", NameError::EmptyLabel),
            (".a", NameError::EmptyLabel),
            ("a..b", NameError::EmptyLabel),
            ("a..", NameError::EmptyLabel),
            (r"a\", NameError::BadEscape),
            (r"\256", NameError::BadEscape),
            (r"\12", NameError::BadEscape),
            (r"\1a2", NameError::BadEscape),
        ] {
            assert_eq!(wire_of(text), Err(error), "{text}");
            assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn labels_end_at_63_octets_and_names_at_255() {
        let label = "x".repeat(63);
        assert!(wire_of(&label).is_ok());
        assert_eq!(wire_of(&format!("{label}x")), Err(NameError::LabelTooLong));
        let longest = format!("{label}.{label}.{label}.{}", "y".repeat(61));
        assert_eq!(wire_of(&longest).map(|wire| wire.len()), Ok(255));
        assert_eq!(wire_of(&format!("{longest}y")), Err(NameError::NameTooLong));
        assert_eq!(
            wire_of(&format!("{longest}.z")),
            Err(NameError::NameTooLong)
        );
    }

    #[test]
    fn cut_off_and_compressed_names_have_no_length() {
        for wire in [
            &b""[..],
            b"\x03ab",
            b"\x01a",
            b"\xc0\x0c",
            b"\x01a\xc0\x0c",
            b"\x40",
        ] {
            assert_eq!(wire_length(wire), None, "{wire:?}");
            assert_eq!(to_text(wire), None, "{wire:?}");
        }
        assert_eq!(wire_length(b"\x01a\0tail"), Some(3));
    }

    #[test]
    fn zone_file_syntax_and_unprintable_octets_are_escaped() {
        let text = to_text(b"\x06a b.;\"\x02\xc3\xa9\0");
        assert_eq!(text.as_deref(), Some(r#"a\032b\.\;\".\195\169."#));
    }

    fn labels() -> impl Strategy<Value = Vec<Vec<u8>>> {
        prop::collection::vec(prop::collection::vec(any::<u8>(), 1..=63), 0..8)
            .prop_filter("255 bytes", |labels| {
                labels.iter().map(|label| label.len() + 1).sum::<usize>() < 255
            })
    }

    fn wire_from(labels: &[Vec<u8>]) -> Vec<u8> {
        let mut wire = Vec::new();
        for label in labels {
            wire.push(label.len() as u8);
            wire.extend_from_slice(label);
        }
        wire.push(0);
        wire
    }

    proptest! {
        #[test]
        fn every_name_survives_the_way_through_text(labels in labels()) {
            let wire = wire_from(&labels);
            prop_assert_eq!(wire_length(&wire), Some(wire.len()));
            let text = to_text(&wire).unwrap();
            prop_assert!(text.is_ascii());
            prop_assert_eq!(wire_of(&text), Ok(wire));
        }

        #[test]
        fn plain_names_are_read_as_hickory_reads_them(
            text in "[a-z0-9_][a-zA-Z0-9_-]{0,65}(\\.[A-Z0-9_][a-zA-Z0-9_-]{0,62}){0,5}\\.?",
        ) {
            let theirs = Name::from_ascii(&text).ok().map(|name| {
                let labels: Vec<Vec<u8>> = name.iter().map(<[u8]>::to_vec).collect();
                wire_from(&labels)
            });
            prop_assert_eq!(wire_of(&text).ok(), theirs);
        }

        #[test]
        fn any_text_and_any_octets_are_survived(text in ".{0,300}", octets: Vec<u8>) {
            if let Ok(wire) = wire_of(&text) {
                prop_assert_eq!(wire_length(&wire), Some(wire.len()));
            }
            if let Some(length) = wire_length(&octets) {
                prop_assert!(length <= octets.len());
            }
            let _ = to_text(&octets);
        }
    }
}
