//! Packets, as either capture format has them.

/// The longest packet that is believed: four times the longest snapshot length of tcpdump.
pub(crate) const PACKET_OCTETS_MAX: usize = 1 << 20;

/// One captured packet; its buffer is used again for the next.
#[derive(Debug, Default)]
pub(crate) struct Packet {
    /// Nanoseconds since 1970; `None` if the format does not say.
    pub(crate) at_ns: Option<u64>,
    /// Link type by pcap's registry.
    pub(crate) link_type: u32,
    /// What was captured.
    pub(crate) data: Vec<u8>,
}

/// Numbers in the byte order of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteOrder {
    pub(crate) is_little: bool,
}

impl ByteOrder {
    /// The two octets at `at`, 0 if there are none.
    pub(crate) fn u16(self, octets: &[u8], at: usize) -> u16 {
        let number = octets.get(at..).and_then(<[u8]>::first_chunk);
        let number = number.copied().unwrap_or_default();
        match self.is_little {
            true => u16::from_le_bytes(number),
            false => u16::from_be_bytes(number),
        }
    }

    /// The four octets at `at`, 0 if there are none.
    pub(crate) fn u32(self, octets: &[u8], at: usize) -> u32 {
        let number = octets.get(at..).and_then(<[u8]>::first_chunk);
        let number = number.copied().unwrap_or_default();
        match self.is_little {
            true => u32::from_le_bytes(number),
            false => u32::from_be_bytes(number),
        }
    }
}
