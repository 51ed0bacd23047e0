//! Interrupt moderation for veth interfaces: how often they are read under load.
//!
//! By default a veth pair processes each frame at once: the kernel interrupts the sender to run the
//! receiver's filter, to copy the frame and to wake the receiver. That is more than half of a
//! query's cost. Under load a timer reads the ring instead, many frames at a time. It adds up to
//! [`TIMER_US`] to latencies that are higher then anyway; with little load nothing changes, and the
//! first frame after a pause is always read at once.
//!
//! The settings (over netlink, from Linux 6.13) are those of NAPI instances, which a veth interface
//! has only as long as it has an XDP program: they vanish with the program. Network cards have
//! their own moderation and settings (`ethtool -C`), which are left alone.

use super::interface::Interface;
use crate::netlink::Generic;

/// How often the timer reads, in us. The ring has room for 256 frames, of which 15 may have been
/// read already, and the sender drops the overflow: this suffices because no sender needs less than
/// 0.4 us a frame.
pub(super) const TIMER_US: u32 = 100;
/// How often the timer finds nothing before frames are read at once again.
const TIMER_ROUNDS: u32 = 2;
/// Frames read at a time that are a load.
const MANY_FRAMES: usize = 32;
/// Frames read at a time that are not, under moderation.
const FEW_FRAMES: usize = 16;
/// How many such reads in a row end it.
const FEW_READS_MAX: u32 = 8;

/// Controls how often the queues of one worker are read.
pub(super) struct ReadPace {
    netlink: Generic,
    /// Of our queues.
    napis: Vec<u32>,
    state: State,
}

/// The last decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    is_on: bool,
    /// Reads in a row that found few frames.
    few_reads: u32,
}

impl State {
    /// Takes a read into account; true if that was a change.
    #[inline]
    fn note_read(&mut self, frames: usize) -> bool {
        let before = self.is_on;
        if frames >= FEW_FRAMES {
            self.few_reads = 0;
            self.is_on |= frames >= MANY_FRAMES;
        } else if self.is_on {
            self.few_reads += 1;
            self.is_on = self.few_reads < FEW_READS_MAX;
        }
        self.is_on != before
    }
}

impl ReadPace {
    /// For some queues of an interface; none if the kernel has no such settings.
    pub(super) fn of(
        interface: &Interface,
        queues: impl Iterator<Item = usize>,
    ) -> Option<ReadPace> {
        let netlink = Generic::open().ok()?;
        let napis = netlink.napis(interface.device).ok()?;
        if napis.len() != interface.queues as usize {
            return None;
        }
        let napis = queues.map(|queue| napis.get(queue).copied());
        let moderation = ReadPace {
            netlink,
            napis: napis.collect::<Option<_>>()?,
            state: State::default(),
        };
        // Set the present value, only to check whether it can be set.
        moderation.set(false).then_some(moderation)
    }

    /// Accounts for a read of this number of frames.
    #[inline]
    pub(super) fn note_read(&mut self, frames: usize) {
        if self.state.note_read(frames) {
            self.set(self.state.is_on);
        }
    }

    /// The timer reads now.
    #[cfg(test)]
    pub(super) fn is_on(&self) -> bool {
        self.state.is_on
    }

    #[cold]
    fn set(&self, on: bool) -> bool {
        let (rounds, timer_ns) = match on {
            true => (TIMER_ROUNDS, TIMER_US * 1_000),
            false => (0, 0),
        };
        let defer = |napi: &u32| self.netlink.defer_interrupts(*napi, rounds, timer_ns);
        self.napis.iter().all(|napi| defer(napi).is_ok())
    }
}

impl Drop for ReadPace {
    fn drop(&mut self) {
        if self.state.is_on {
            self.set(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_with_many_frames_and_ends_after_several_reads_of_few() {
        let mut state = State::default();
        for frames in [1, 31, 0, 16] {
            assert!(!state.note_read(frames), "{frames} are no load");
        }
        assert!(state.note_read(32) && state.is_on);
        assert!(!state.note_read(128) && state.is_on);
        for _ in 0..3 {
            for _ in 1..FEW_READS_MAX {
                assert!(!state.note_read(15) && state.is_on);
            }
            assert!(!state.note_read(16) && state.is_on, "counted anew");
        }
        for _ in 1..FEW_READS_MAX {
            assert!(!state.note_read(1));
        }
        assert!(state.note_read(1) && !state.is_on);
        assert_eq!(
            state,
            State {
                few_reads: FEW_READS_MAX,
                is_on: false
            }
        );
        assert!(!state.note_read(1) && state.note_read(40));
    }
}
