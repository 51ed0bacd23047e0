//! How the kernel's sockets are opened, as far as it can be asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::StampSource;

/// What a run asks of its sockets; its groups of clients have it in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SocketOptions {
    /// Socket send and receive buffers in bytes; none for 4 MiB on datagram sockets and the
    /// kernel's automatic tuning on streams.
    #[serde(rename = "socket_buffer_octets")]
    pub buffer_octets: Option<u32>,
    /// UDP GSO and GRO are used where the kernel has them.
    pub offload: bool,
    /// Who stamps datagrams, if somebody does: with epoll, and without offload.
    pub timestamps: Option<StampSource>,
    /// What comes over TCP is acknowledged at once (TCP_QUICKACK).
    #[serde(default)]
    pub tcp_quickack: bool,
}

impl Default for SocketOptions {
    fn default() -> Self {
        SocketOptions {
            buffer_octets: None,
            offload: true,
            timestamps: None,
            tcp_quickack: false,
        }
    }
}
