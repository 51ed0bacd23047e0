//! The thread of a line: reads packets from one device, and writes them to the other when they are
//! due.

use std::io::PipeReader;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use driver::clock::Clock;
use driver::cpu;
use driver::tun::{Tun, wait};
use measure::line::Direction;
use proto::Instant;

use super::lane::Lane;

/// Packets that are read or written before anything else has its turn: one direction does not wait
/// for a burst of the other.
const BATCH: usize = 32;
/// The longest packet of IP.
const PACKET_OCTETS_MAX: usize = 65_535;

/// What moves the packets.
pub(super) struct Pump {
    /// Near and far.
    pub(super) ends: [Tun; 2],
    /// From near to far, and back.
    pub(super) lanes: [Lane; 2],
    /// Set to end it, before the other end of `ended` is closed.
    pub(super) shall_end: Arc<AtomicBool>,
    pub(super) ended: PipeReader,
}

/// What the thread did.
pub(super) struct Pumped {
    pub(super) directions: [Direction; 2],
    pub(super) time: Duration,
    pub(super) cpu: Duration,
    pub(super) cpu_waited: Duration,
}

impl Pump {
    /// Moves packets until it shall end. The devices go with it.
    pub(super) fn run(mut self) -> Pumped {
        cpu::sharpen_timers();
        let clock = Clock::start();
        let dropped = self.dropped();
        let mut buffer = vec![0; PACKET_OCTETS_MAX];
        // Until when it is known that nothing waited to be read.
        let mut empty_at = [clock.now(); 2];
        while !self.shall_end.load(Ordering::Relaxed) {
            let mut is_busy = false;
            for (from, empty_at) in empty_at.iter_mut().enumerate() {
                is_busy |= self.read(from, clock, empty_at, &mut buffer);
                is_busy |= self.write(0, clock) | self.write(1, clock);
            }
            if !is_busy {
                self.wait(clock);
                // What came meanwhile woke it.
                empty_at = [clock.now(); 2];
            }
        }
        let after = self.dropped();
        let mut not_read = dropped
            .iter()
            .zip(after)
            .map(|(before, after)| after - before);
        let directions = self
            .lanes
            .map(|lane| lane.end(not_read.next().unwrap_or(0)));
        Pumped {
            directions,
            time: clock.now() - Instant::ZERO,
            cpu: Clock::thread_cpu_time(),
            cpu_waited: cpu::run_queue_wait(),
        }
    }

    /// Reads a batch that was sent at one end; false if nothing was there.
    fn read(
        &mut self,
        from: usize,
        clock: Clock,
        empty_at: &mut Instant,
        buffer: &mut [u8],
    ) -> bool {
        for count in 0..BATCH {
            // An interface that somebody has taken down sends nothing; it may come up again.
            let read = self.ends[from].read(buffer).unwrap_or(None);
            let at = clock.now();
            let Some(octets) = read else {
                *empty_at = at;
                return count > 0;
            };
            self.lanes[from].handle_packet(*empty_at, at, &buffer[..octets]);
        }
        true
    }

    /// Writes a batch of one direction that is due; false if nothing is.
    fn write(&mut self, direction: usize, clock: Clock) -> bool {
        let (lane, to) = (&mut self.lanes[direction], &self.ends[1 - direction]);
        let mut now = clock.now();
        for count in 0..BATCH {
            let Some(departure) = lane.poll_transmit(now) else {
                return count > 0;
            };
            let written = to.write(&departure.packet);
            now = clock.now();
            match written {
                Ok(()) => lane.handle_delivered(&departure, now),
                Err(_) => lane.handle_refused(),
            }
        }
        true
    }

    /// Sleeps until there is something to read, or to write, or the end.
    fn wait(&self, clock: Clock) {
        let due = self.lanes.iter().filter_map(Lane::poll_timeout).min();
        let time = due.map(|due| due.duration_since(clock.now()));
        let [near, far] = &self.ends;
        wait([near, far], self.ended.as_fd(), time);
    }

    /// Packets that each interface dropped so far, because nobody read them.
    fn dropped(&self) -> [u64; 2] {
        [0, 1].map(|end: usize| self.ends[end].dropped().map_or(0, |it| it.sent))
    }
}
