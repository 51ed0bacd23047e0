//! pcapng files (draft-ietf-opsawg-pcapng): sections in either byte order, interfaces with clocks
//! of their own.

use std::io::Read;

use crate::error::CaptureError;
use crate::input::Input;
use crate::link;
use crate::packets::{ByteOrder, PACKET_OCTETS_MAX, Packet};
use crate::skipped::{Skip, Skipped};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
/// The packet block that older tools wrote.
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

const OPTION_TIME_RESOLUTION: u16 = 9;
const OPTION_TIME_OFFSET: u16 = 14;

/// Octets of the type and length before a block's body; the length stands behind it once more.
const BLOCK_HEAD_OCTETS: usize = 8;
const BLOCK_OCTETS_MIN: usize = 12;
/// The longest block that is believed: a packet and its options.
const BLOCK_OCTETS_MAX: usize = 16 * PACKET_OCTETS_MAX;

/// Most interfaces of a section.
const INTERFACES_MAX: usize = 4_096;

/// Reads blocks; starts before the first.
pub(crate) struct PcapngReader {
    order: ByteOrder,
    interfaces: Vec<Interface>,
    /// A link type that is not understood, and whether one was seen that is.
    unknown_link_type: Option<u32>,
    has_known_link_type: bool,
}

struct Interface {
    link_type: u32,
    snapshot_octets: usize,
    ticks_a_second: u128,
    offset_s: i64,
}

impl Interface {
    /// Nanoseconds since 1970 of a time stamp; `None` if it is before that, or after 2554.
    fn at_ns(&self, ticks: u64) -> Option<u64> {
        let ns = i128::try_from(u128::from(ticks) * 1_000_000_000 / self.ticks_a_second).ok()?;
        u64::try_from(ns.checked_add(i128::from(self.offset_s) * 1_000_000_000)?).ok()
    }
}

impl PcapngReader {
    pub(crate) fn new() -> Self {
        PcapngReader {
            order: ByteOrder { is_little: true },
            interfaces: Vec::new(),
            unknown_link_type: None,
            has_known_link_type: false,
        }
    }

    /// Reads the next packet; `false` at the end.
    ///
    /// # Errors
    /// Beside damage: at the end, if there was no interface whose link type is understood.
    pub(crate) fn read<R: Read>(
        &mut self,
        input: &mut Input<R>,
        packet: &mut Packet,
        skipped: &mut Skipped,
    ) -> Result<bool, CaptureError> {
        loop {
            let offset = input.offset();
            let head = input.peek(BLOCK_OCTETS_MIN)?;
            if head.is_empty() {
                return match self.unknown_link_type {
                    Some(number) if !self.has_known_link_type => {
                        Err(CaptureError::UnknownLinkType(number))
                    }
                    _ => Ok(false),
                };
            }
            if head.len() < BLOCK_OCTETS_MIN {
                return Err(CaptureError::CutOff { offset });
            }
            if head.starts_with(&SECTION_HEADER.to_be_bytes()) {
                self.order = section_order(head, offset)?;
                self.interfaces.clear();
            }
            let kind = self.order.u32(head, 0);
            let octets = self.order.u32(head, 4) as usize;
            if !(BLOCK_OCTETS_MIN..=BLOCK_OCTETS_MAX).contains(&octets) || !octets.is_multiple_of(4)
            {
                let what = "a block of impossible length";
                return Err(CaptureError::Garbage { offset, what });
            }
            let block = input.peek(octets)?;
            if block.len() < octets {
                return Err(CaptureError::CutOff { offset });
            }
            if self.order.u32(block, octets - 4) as usize != octets {
                let what = "a block with two different lengths";
                return Err(CaptureError::Garbage { offset, what });
            }
            let body = &block[BLOCK_HEAD_OCTETS..octets - 4];
            let has_packet = self.block(kind, body, packet, skipped);
            let has_packet = has_packet.map_err(|what| CaptureError::Garbage { offset, what })?;
            input.take(octets);
            if has_packet {
                return Ok(true);
            }
        }
    }

    /// True if the block holds a packet, which is then in `packet`.
    fn block(
        &mut self,
        kind: u32,
        body: &[u8],
        packet: &mut Packet,
        skipped: &mut Skipped,
    ) -> Result<bool, &'static str> {
        match kind {
            SECTION_HEADER => Ok(false),
            INTERFACE_DESCRIPTION => self.interface(body).map(|()| false),
            ENHANCED_PACKET => {
                let interface = self.order.u32(body, 0) as usize;
                self.packet(interface, body, packet, skipped)
            }
            OBSOLETE_PACKET => {
                let interface = usize::from(self.order.u16(body, 0));
                self.packet(interface, body, packet, skipped)
            }
            SIMPLE_PACKET => self.simple_packet(body, packet, skipped),
            _ => {
                skipped.count(Skip::OtherBlock);
                Ok(false)
            }
        }
    }

    fn interface(&mut self, body: &[u8]) -> Result<(), &'static str> {
        const FIXED_OCTETS: usize = 8;
        let Some((fixed, mut options)) = body.split_at_checked(FIXED_OCTETS) else {
            return Err("an interface description that is too short");
        };
        if self.interfaces.len() == INTERFACES_MAX {
            return Err("too many interfaces");
        }
        let mut interface = Interface {
            link_type: u32::from(self.order.u16(fixed, 0)),
            snapshot_octets: self.order.u32(fixed, 4) as usize,
            ticks_a_second: 1_000_000,
            offset_s: 0,
        };
        match link::is_known(interface.link_type) {
            true => self.has_known_link_type = true,
            false => self.unknown_link_type = Some(interface.link_type),
        }
        while let Some((head, rest)) = options.split_at_checked(4) {
            let octets = usize::from(self.order.u16(head, 2));
            let Some((value, _)) = rest.split_at_checked(octets) else {
                return Err("an option that is longer than its block");
            };
            match (self.order.u16(head, 0), value) {
                (0, _) => break,
                (OPTION_TIME_RESOLUTION, &[resolution, ..]) => {
                    interface.ticks_a_second = ticks_a_second(resolution)?;
                }
                (OPTION_TIME_OFFSET, value) if octets == 8 => {
                    interface.offset_s = self.i64(value);
                }
                _ => {}
            }
            options = rest.get(octets.next_multiple_of(4)..).unwrap_or_default();
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// A packet of a known interface, with a time. Both blocks have their lengths at the same
    /// place.
    fn packet(
        &mut self,
        interface: usize,
        body: &[u8],
        packet: &mut Packet,
        skipped: &mut Skipped,
    ) -> Result<bool, &'static str> {
        const FIXED_OCTETS: usize = 20;
        let interface = self.interfaces.get(interface);
        let interface = interface.ok_or("a packet of an interface that was not described")?;
        let captured = self.order.u32(body, 12) as usize;
        let data = body
            .get(FIXED_OCTETS..)
            .and_then(|rest| rest.get(..captured));
        let data = data.ok_or("a packet that is longer than its block")?;
        let ticks = u64::from(self.order.u32(body, 4)) << 32 | u64::from(self.order.u32(body, 8));
        if !link::is_known(interface.link_type) {
            skipped.count(Skip::UnknownLinkType);
            return Ok(false);
        }
        packet.at_ns = interface.at_ns(ticks);
        packet.link_type = interface.link_type;
        packet.data.clear();
        packet.data.extend_from_slice(data);
        Ok(true)
    }

    /// A packet of the first interface, without a time.
    fn simple_packet(
        &mut self,
        body: &[u8],
        packet: &mut Packet,
        skipped: &mut Skipped,
    ) -> Result<bool, &'static str> {
        let interface = self.interfaces.first();
        let interface = interface.ok_or("a packet of an interface that was not described")?;
        let data = body.get(4..).ok_or("a packet block that is too short")?;
        let mut captured = (self.order.u32(body, 0) as usize).min(data.len());
        if interface.snapshot_octets > 0 {
            captured = captured.min(interface.snapshot_octets);
        }
        if !link::is_known(interface.link_type) {
            skipped.count(Skip::UnknownLinkType);
            return Ok(false);
        }
        packet.at_ns = None;
        packet.link_type = interface.link_type;
        packet.data.clear();
        packet.data.extend_from_slice(&data[..captured]);
        Ok(true)
    }

    fn i64(&self, value: &[u8]) -> i64 {
        let (first, second) = (self.order.u32(value, 0), self.order.u32(value, 4));
        let (high, low) = match self.order.is_little {
            true => (second, first),
            false => (first, second),
        };
        (u64::from(high) << 32 | u64::from(low)).cast_signed()
    }
}

/// The byte order of a section from the magic number in its header.
fn section_order(head: &[u8], offset: u64) -> Result<ByteOrder, CaptureError> {
    let orders = [true, false].map(|is_little| ByteOrder { is_little });
    let order = orders
        .into_iter()
        .find(|order| order.u32(head, 8) == BYTE_ORDER_MAGIC);
    let what = "a section without byte order";
    order.ok_or(CaptureError::Garbage { offset, what })
}

/// `if_tsresol`: a negative power of ten, or of two if the highest bit is set.
fn ticks_a_second(resolution: u8) -> Result<u128, &'static str> {
    let exponent = u32::from(resolution & 0x7f);
    let ticks = match resolution & 0x80 {
        0 => 10_u128.checked_pow(exponent),
        _ => 2_u128.checked_pow(exponent),
    };
    ticks.ok_or("a clock that is too fast")
}
