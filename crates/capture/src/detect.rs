//! Formats, told apart by their content.

use crate::error::CaptureError;
use crate::format::Format;
use crate::query_log::{self, Line};

/// Octets that are looked at to tell the format.
pub(crate) const SAMPLE_OCTETS: usize = 64 * 1024;

/// The format of a file that starts with `sample`; `asked` is what the user said it is.
///
/// # Errors
/// There is nothing, nothing that is known, or something else than was asked for.
pub(crate) fn detect(sample: &[u8], asked: Option<Format>) -> Result<Format, CaptureError> {
    if sample.is_empty() {
        return Err(CaptureError::Empty);
    }
    if let Some(tool) = compression(sample) {
        return Err(CaptureError::Compressed(tool));
    }
    let found = binary(sample).or_else(|| log(sample));
    match (asked, found) {
        (None, Some(found)) => Ok(found),
        (None, None) => Err(CaptureError::UnknownFormat),
        (Some(asked), Some(found)) if asked == found => Ok(asked),
        // A log may begin with any number of other lines; a line is text.
        (Some(asked), None) if asked.is_log() && !sample.contains(&0) => Ok(asked),
        (Some(asked), found) => Err(CaptureError::WrongFormat { asked, found }),
    }
}

fn binary(sample: &[u8]) -> Option<Format> {
    match sample.first_chunk::<4>()? {
        [0xa1, 0xb2, 0xc3, 0xd4] | [0xd4, 0xc3, 0xb2, 0xa1] => Some(Format::Pcap),
        [0xa1, 0xb2, 0x3c, 0x4d] | [0x4d, 0x3c, 0xb2, 0xa1] => Some(Format::Pcap),
        // A variant that is refused by name.
        [0xa1, 0xb2, 0xcd, 0x34] | [0x34, 0xcd, 0xb2, 0xa1] => Some(Format::Pcap),
        [0x0a, 0x0d, 0x0d, 0x0a] => Some(Format::Pcapng),
        // The escape of a control frame, its length (at most 512), and its type.
        [0, 0, 0, 0] => match sample.get(4..6)? {
            [0, 0] => Some(Format::Dnstap),
            _ => None,
        },
        _ => None,
    }
}

fn log(sample: &[u8]) -> Option<Format> {
    let lines = sample.split(|&octet| octet == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let formats = [Format::Bind, Format::Unbound, Format::CoreDns];
    lines
        .filter_map(|line| std::str::from_utf8(line).ok())
        .find_map(|line| {
            let fits = |format: &Format| matches!(query_log::read(*format, line), Line::Query(_));
            formats.into_iter().find(fits)
        })
}

fn compression(sample: &[u8]) -> Option<&'static str> {
    let magics: [(&[u8], &str); 5] = [
        (&[0x1f, 0x8b], "gzip"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
        (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
        (b"BZh", "bzip2"),
        (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
    ];
    let found = magics
        .into_iter()
        .find(|(magic, _)| sample.starts_with(magic));
    found.map(|(_, tool)| tool)
}
