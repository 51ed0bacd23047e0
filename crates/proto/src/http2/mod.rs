//! HTTP/2 for DNS over HTTPS, both ends (RFC 9113, RFC 8484).
//!
//! [`Http2Client`] and [`Http2Server`] take octets and return octets, with TLS or without (prior
//! knowledge, RFC 9113 section 3.3). Only DoH requests are supported: one message each way. Flow
//! control, settings, pings, padding, field blocks in several frames, trailers and interim
//! responses are handled; priorities are ignored, pushes refused. Memory and work that a peer can
//! cause are limited (section 10.5).

mod client;
mod collected;
mod endpoint;
pub(crate) mod fields;
mod frame;
mod known_fields;
mod response;
pub(crate) mod server;
mod streams;

pub use client::{Blocked, Http2Client};
pub use collected::SharedOctets;
pub use frame::{CLIENT_PREFACE, ErrorCode, Http2Error};
pub use server::{DohQuery, Http2Server, Http2ServerOptions, RespondError, ServerCounts};

use frame::{WINDOW_MAX, finish_headers};

/// The ALPN protocol name of HTTP/2 over TLS (RFC 9113, section 3.2).
pub const ALPN: &[u8] = b"h2";

/// Our settings of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Options {
    /// SETTINGS_HEADER_TABLE_SIZE: what the peer's fields may take in our memory. 0 by default,
    /// which makes responses about 20 octets longer and an idle connection 1 to 9 KiB smaller.
    pub table_octets: u32,
    /// SETTINGS_INITIAL_WINDOW_SIZE. 128 KiB by default, so that no message needs a
    /// WINDOW_UPDATE of its stream. At most 2^31-1, at least 1.
    pub stream_window_octets: u32,
    /// The connection's window: 1 MiB by default. From 65,535, which it cannot fall below, to
    /// 2^31-1. A WINDOW_UPDATE is sent when half of it is used.
    pub connection_window_octets: u32,
    /// A client takes the content of a response with the media type [`DNS`](crate::doh::DNS) for a
    /// message. False by default.
    pub takes_dns_media_type: bool,
}

impl Default for Http2Options {
    fn default() -> Self {
        Http2Options {
            table_octets: 0,
            stream_window_octets: 1 << 17,
            connection_window_octets: 1 << 20,
            takes_dns_media_type: false,
        }
    }
}

impl Http2Options {
    fn stream_window(&self) -> u32 {
        self.stream_window_octets.clamp(1, WINDOW_MAX)
    }
}

/// The result of handling octets from the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// The connection stays open.
    Continues,
    /// One side has said GOAWAY and no exchange is open: close the connection once `out` is sent.
    Drained,
}

impl Continuation {
    fn new(is_drained: bool) -> Self {
        match is_drained {
            true => Continuation::Drained,
            false => Continuation::Continues,
        }
    }
}

#[cfg(test)]
mod tests;
