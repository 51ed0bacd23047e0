//! What only this driver counts.

/// Counters of AF_XDP, cumulative since the driver was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpStats {
    /// Datagrams dropped because the receive ring was full.
    pub receive_ring_full: u64,
    /// Datagrams dropped for lack of a free frame, or because they were longer than one.
    pub receive_dropped: u64,
    /// How often the kernel found no frame to fill.
    pub fill_ring_empty: u64,
    /// Frames that the kernel did not take for sending.
    pub transmit_invalid: u64,
    /// How often a socket had to wait because all frames to send with were on their way.
    pub transmit_full: u64,
    /// Datagrams dropped because their UDP checksum was wrong.
    pub checksums_wrong: u64,
    /// Datagrams over a virtual interface whose checksum the sender had left to a network card.
    pub checksums_unfinished: u64,
    /// Frames that the filter picked and no socket was there for.
    pub stray: u64,
    /// Datagrams that arrived in the queue of another worker and were passed on.
    pub forwarded: u64,
    /// Those that were dropped because the other worker did not keep up.
    pub forward_drops: u64,
    /// Datagrams that went through the kernel's socket, because they were too long for a frame or
    /// their receiver's link-layer address was not known.
    pub sent_by_kernel: u64,
    /// What the interface dropped; of several workers of a process the first one tells.
    pub interface: InterfaceDrops,
}

/// Dropped frames of an interface, of all programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceDrops {
    /// Those that came; in a driver's own mode (not the generic one) also what
    /// [`XdpStats::receive_ring_full`] and [`XdpStats::receive_dropped`] count.
    pub received: u64,
    /// Those that were to be sent; over a veth pair those for which the other end had no room.
    pub sent: u64,
    /// Those that came to the other end of a veth pair, and that it dropped.
    pub peer_received: u64,
    /// Those that the other end of a veth pair was to send, and for which this end had no room.
    pub peer_sent: u64,
}
