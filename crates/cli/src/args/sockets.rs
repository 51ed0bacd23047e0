//! Flags of `throng run`: how sockets are opened.

use clap::Args;
use proto::Transport;
use settings::{Named, SocketOptions, StampSource};

use super::values::{Chosen, count, none_or};

/// How sockets are opened.
#[derive(Debug, Clone, Args)]
pub(crate) struct SocketArguments {
    /// Size of the sockets' send and receive buffers
    #[arg(long, value_name = "BYTES", value_parser = count::<u32>, help_heading = "Generator")]
    pub(crate) socket_buffer: Option<u32>,
    /// Disable UDP GSO and GRO
    #[arg(long, help_heading = "Generator")]
    pub(crate) no_offload: bool,
    /// Timestamp datagrams to show where time is spent: in the generator, on the wire and in the
    /// server, or until a response is read. UDP only; disables GSO and GRO
    #[arg(long, default_value = "off", help_heading = "Generator",
          value_parser = none_or("off", "No timestamps", StampSource::ALL))]
    pub(crate) timestamps: Chosen<StampSource>,
    /// Acknowledge at once what comes over TCP (TCP_QUICKACK), so that no server waits for an
    /// acknowledgement that is delayed; costs a system call for each read
    #[arg(long, help_heading = "Connections")]
    tcp_quickack: bool,
}

impl SocketArguments {
    /// What is asked of the sockets of clients.
    pub(crate) fn asked(&self, transport: Transport) -> SocketOptions {
        SocketOptions {
            buffer_octets: self.socket_buffer,
            // Datagrams that leave in one burst have one stamp.
            offload: (!self.no_offload || transport.is_stream()) && self.timestamps.is_none(),
            timestamps: self.timestamps,
            tcp_quickack: self.tcp_quickack && transport.is_stream(),
        }
    }
}
