//! Why a capture cannot be read, or only to a point.

use std::fmt;

use crate::format::Format;

/// Why a capture cannot be read, or only to a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureError {
    /// There are no octets at all.
    Empty,
    /// The content is of no format that is known.
    UnknownFormat,
    /// The file is compressed, by the tool named.
    Compressed(&'static str),
    /// The content is of another format than was asked for.
    WrongFormat {
        /// What was asked for.
        asked: Format,
        /// What the content is, if that can be told.
        found: Option<Format>,
    },
    /// Packets are of a link type that is not understood (its number in pcap's registry).
    UnknownLinkType(u32),
    /// A variant of a format that is not read.
    UnknownVariant {
        /// The format.
        format: Format,
        /// What is unusual about it.
        what: &'static str,
    },
    /// The file ends within a record; everything before it was read.
    CutOff {
        /// Where that record starts, in octets from the start of the file.
        offset: u64,
    },
    /// A record that cannot be one; everything before it was read.
    Garbage {
        /// Where that record starts, in octets from the start of the file.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The file cannot be read on; everything before that was read.
    Unreadable {
        /// How far it was read, in octets.
        offset: u64,
        /// What the system says.
        reason: String,
    },
}

impl CaptureError {
    /// What can be done about it.
    pub fn cure(&self) -> String {
        match self {
            CaptureError::Empty => "check that the capture was written, and with permission".into(),
            CaptureError::UnknownFormat => format!(
                "known are {}; a log may start with other lines, if so, name its format (--format)",
                Format::list()
            ),
            CaptureError::Compressed(tool) => {
                format!("decompress it first: `{tool} -dc FILE | throng fit -`")
            }
            CaptureError::WrongFormat { found, .. } => match found {
                Some(found) => format!("give `--format {found}`, or leave --format out"),
                None => "leave --format out to have it found from the content".into(),
            },
            CaptureError::UnknownLinkType(_) => "capture on an interface with Ethernet, Linux \
                 cooked (`-i any`), raw IP or loopback frames, or convert with `editcap -T`"
                .into(),
            CaptureError::UnknownVariant { format, .. } => {
                format!("write it anew as {format}, for example with `tshark -r FILE -F pcapng`")
            }
            CaptureError::CutOff { .. } => {
                "the writer was interrupted or the copy is incomplete; what is there was read"
                    .into()
            }
            CaptureError::Garbage { .. } => "the file is damaged, or was joined from several \
                 (`mergecap` joins captures); what is before was read"
                .into(),
            CaptureError::Unreadable { .. } => "check the disk and the permissions".into(),
        }
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureError::Empty => f.write_str("the file is empty"),
            CaptureError::UnknownFormat => {
                f.write_str("not a capture or query log of a known format")
            }
            CaptureError::Compressed(tool) => write!(f, "the file is compressed ({tool})"),
            CaptureError::WrongFormat { asked, found } => match found {
                Some(found) => write!(f, "the file is not {asked} but {found}"),
                None => write!(f, "the file is not {asked}"),
            },
            CaptureError::UnknownLinkType(number) => {
                write!(f, "packets of link type {number}, which is not understood")
            }
            CaptureError::UnknownVariant { format, what } => write!(f, "{format} with {what}"),
            CaptureError::CutOff { offset } => {
                write!(f, "cut off within the record at byte {offset}")
            }
            CaptureError::Garbage { offset, what } => {
                write!(f, "damaged: {what} at byte {offset}")
            }
            CaptureError::Unreadable { offset, reason } => {
                write!(f, "cannot be read beyond byte {offset}: {reason}")
            }
        }
    }
}

impl std::error::Error for CaptureError {}
