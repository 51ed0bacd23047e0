//! Captures and query logs of DNS servers: what was asked, by whom and when.
//!
//! Octets go in (anything that is [`std::io::Read`]); [`Observed`] queries come out, one by one and
//! in the order of the capture, each with its response if there was one. Opens no file and reads no
//! clock. Everything that was skipped is counted in [`Skipped`]; why reading ended before the
//! end is in [`Capture::end`].
//!
//! | module | contents |
//! |---|---|
//! | [`format`](mod@format) | which formats there are, and telling them apart by content |
//! | [`reader`] | [`Capture`], the iterator over any of them |
//! | [`observed`] | what comes out: a query and its response |
//! | [`skipped`] | what did not come out, by reason |
//! | [`error`] | why a capture cannot be read, or only to a point |
//! | [`fit`] | the profile of those who asked |
//! | [`replay`] | what to ask again, by whom and when |
//! | `pcap`, `pcapng` | packets in files (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng) |
//! | `link`, `network`, `fragments` | from a frame to what UDP and TCP carry |
//! | `tcp` | streams put together from segments |
//! | `message` | what a message says, as far as a load generator needs it |
//! | `pairing` | which response belongs to which query |
//! | `dnstap` | Frame Streams and dnstap's messages |
//! | `query_log` | the logs of BIND, Unbound and CoreDNS |

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")
)]

mod assembly;
mod detect;
mod dnstap;
pub mod error;
pub mod fit;
pub mod format;
mod fragments;
mod input;
mod link;
mod message;
mod network;
pub mod observed;
mod packets;
mod pairing;
mod pcap;
mod pcapng;
mod query_log;
pub mod reader;
pub mod replay;
pub mod skipped;
mod tcp;

#[cfg(test)]
mod tests;

pub use error::CaptureError;
pub use fit::{Fit, FitError, FitNotes, FitOptions, Fitted};
pub use format::Format;
pub use observed::{Observed, QueryFlags, Question, Response};
pub use reader::{Capture, Options};
pub use replay::{ReplayBuilder, ReplayFilter, ReplayList};
pub use skipped::{Skip, Skipped};
