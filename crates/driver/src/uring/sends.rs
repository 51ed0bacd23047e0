//! Outgoing data of streams: copied here, submitted together, kept until sent.
//!
//! A stream has at most one request in flight, so that octets keep their order. Further data goes
//! into a second slot and follows.

use std::os::fd::{OwnedFd, RawFd};

use crate::SocketId;

/// Capacity of a slot; with more, the stream blocks until it is sent.
pub(super) const SLOT_OCTETS: usize = 64 << 10;
/// Capacity that a free slot keeps.
const KEPT_OCTETS: usize = 4 << 10;

/// The number of no slot.
pub(super) const NONE: u32 = u32::MAX;

/// The kernel's use of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing.
    Idle,
    /// It reads from the octets: they must not move.
    InFlight,
    /// It will say when the stream can be written.
    Awaiting,
}

/// Octets of one stream.
pub(super) struct Slot {
    pub(super) octets: Vec<u8>,
    /// How many of them the socket has taken.
    pub(super) sent: usize,
    pub(super) fd: RawFd,
    /// Index of the stream among the registered files, if it is one.
    pub(super) place: Option<u32>,
    /// Whose they are.
    pub(super) owner: SocketId,
    pub(super) state: State,
    /// The stream was closed while this was in flight: the data that follows, and its descriptor.
    pub(super) last_words: Option<(u32, OwnedFd)>,
}

/// All slots of a driver, as many as ever were needed at once.
#[derive(Default)]
pub(super) struct Sends {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots to be submitted.
    pub(super) due: Vec<u32>,
}

impl Sends {
    /// A free slot for `owner`, a descriptor and, if it is one, a registered file.
    pub(super) fn take(&mut self, owner: SocketId, (fd, place): (RawFd, Option<u32>)) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                octets: Vec::new(),
                sent: 0,
                fd,
                place,
                owner,
                state: State::Idle,
                last_words: None,
            });
            self.slots.len() as u32 - 1
        });
        let taken = &mut self.slots[slot as usize];
        (taken.owner, taken.fd, taken.place) = (owner, fd, place);
        slot
    }

    /// Frees a slot that the kernel does not know.
    pub(super) fn release(&mut self, slot: u32) {
        let freed = &mut self.slots[slot as usize];
        assert!(freed.state == State::Idle, "the kernel knows this slot");
        freed.octets.clear();
        freed.octets.shrink_to(KEPT_OCTETS);
        freed.sent = 0;
        freed.last_words = None;
        self.free.push(slot);
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }

    /// Slots that the kernel reads from.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = u32> + '_ {
        let slots = self.slots.iter().zip(0..);
        slots
            .filter(|(slot, _)| slot.state == State::InFlight)
            .map(|(_, number)| number)
    }

    /// Appends to a slot that is not in flight; returns how many octets there was room for.
    #[inline]
    pub(super) fn append(&mut self, slot: u32, octets: &[u8]) -> usize {
        let slot = &mut self.slots[slot as usize];
        debug_assert!(slot.state == State::Idle);
        let taken = octets
            .len()
            .min(SLOT_OCTETS.saturating_sub(slot.octets.len()));
        slot.octets.extend_from_slice(&octets[..taken]);
        taken
    }

    /// Leaks the memory of slots in flight: the kernel's end of using it will not be known.
    pub(super) fn abandon(&mut self) {
        for slot in &mut self.slots {
            if slot.state == State::InFlight {
                std::mem::forget(std::mem::take(&mut slot.octets));
            }
        }
    }
}
