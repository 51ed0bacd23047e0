//! pcap files (draft-ietf-opsawg-pcap): both byte orders, microseconds and nanoseconds.

use std::io::Read;

use crate::error::CaptureError;
use crate::format::Format;
use crate::input::Input;
use crate::link;
use crate::packets::{ByteOrder, PACKET_OCTETS_MAX, Packet};

const FILE_HEADER_OCTETS: usize = 24;
const RECORD_HEADER_OCTETS: usize = 16;

/// The part of the last header field that is the link type; above it is the length of the frame
/// check sequence.
const LINK_TYPE_MASK: u32 = 0x03ff_ffff;

/// Reads records after the file header.
pub(crate) struct PcapReader {
    order: ByteOrder,
    tick_ns: u64,
    link_type: u32,
}

impl PcapReader {
    /// Takes the file header.
    pub(crate) fn new<R: Read>(input: &mut Input<R>) -> Result<Self, CaptureError> {
        let header = input.peek(FILE_HEADER_OCTETS)?;
        if header.len() < FILE_HEADER_OCTETS {
            return Err(CaptureError::CutOff { offset: 0 });
        }
        let is_little = header[0] != 0xa1;
        let order = ByteOrder { is_little };
        let tick_ns = match order.u32(header, 0) {
            0xa1b2_c3d4 => 1_000,
            0xa1b2_3c4d => 1,
            _ => {
                return Err(CaptureError::UnknownVariant {
                    format: Format::Pcap,
                    what: "records of a changed form (magic number a1b2cd34)",
                });
            }
        };
        let link_type = order.u32(header, 20) & LINK_TYPE_MASK;
        if !link::is_known(link_type) {
            return Err(CaptureError::UnknownLinkType(link_type));
        }
        input.take(FILE_HEADER_OCTETS);
        Ok(PcapReader {
            order,
            tick_ns,
            link_type,
        })
    }

    /// Reads the next packet; `false` at the end.
    pub(crate) fn read<R: Read>(
        &mut self,
        input: &mut Input<R>,
        packet: &mut Packet,
    ) -> Result<bool, CaptureError> {
        let offset = input.offset();
        let header = input.peek(RECORD_HEADER_OCTETS)?;
        if header.is_empty() {
            return Ok(false);
        }
        if header.len() < RECORD_HEADER_OCTETS {
            return Err(CaptureError::CutOff { offset });
        }
        let seconds = u64::from(self.order.u32(header, 0));
        let fraction_ns = u64::from(self.order.u32(header, 4)) * self.tick_ns;
        let captured = self.order.u32(header, 8) as usize;
        if captured > PACKET_OCTETS_MAX {
            let what = "a packet of more than 1 MiB";
            return Err(CaptureError::Garbage { offset, what });
        }
        let record = input.peek(RECORD_HEADER_OCTETS + captured)?;
        if record.len() < RECORD_HEADER_OCTETS + captured {
            return Err(CaptureError::CutOff { offset });
        }
        packet.at_ns = Some(seconds * 1_000_000_000 + fraction_ns);
        packet.link_type = self.link_type;
        packet.data.clear();
        packet
            .data
            .extend_from_slice(&record[RECORD_HEADER_OCTETS..]);
        input.take(RECORD_HEADER_OCTETS + captured);
        Ok(true)
    }
}
