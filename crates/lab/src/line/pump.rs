//! The thread of a line: reads packets from one device, and writes them to the other when they are
//! due.

use std::io::{PipeReader, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
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
    /// Set to end it, before the other end of `woken` is closed.
    pub(super) shall_end: Arc<AtomicBool>,
    /// Set for an account, before an octet is written at the other end of `woken`.
    pub(super) shall_account: Arc<AtomicBool>,
    pub(super) woken: PipeReader,
    pub(super) accounts: Sender<Pumped>,
}

/// What the thread did since its last account.
pub(super) struct Pumped {
    pub(super) directions: [Direction; 2],
    pub(super) time: Duration,
    pub(super) cpu: Duration,
    pub(super) cpu_waited: Duration,
}

/// Clocks and counters that only grow.
struct Reading {
    at: Instant,
    cpu: Duration,
    cpu_waited: Duration,
    dropped: [u64; 2],
}

impl Pump {
    /// Moves packets until it shall end. The devices go with it.
    pub(super) fn run(mut self) -> Pumped {
        cpu::sharpen_timers();
        let clock = Clock::start();
        let mut since = self.reading(clock);
        let mut buffer = vec![0; PACKET_OCTETS_MAX];
        // Until when it is known that nothing waited to be read.
        let mut empty_at = [clock.now(); 2];
        while !self.shall_end.load(Ordering::Relaxed) {
            let mut is_busy = false;
            for (from, empty_at) in empty_at.iter_mut().enumerate() {
                is_busy |= self.read(from, clock, empty_at, &mut buffer);
                is_busy |= self.write(0, clock) | self.write(1, clock);
            }
            if self.shall_account.swap(false, Ordering::Relaxed) {
                self.account_on_request(clock, &mut since);
            }
            if !is_busy {
                self.wait(clock);
                // What came meanwhile woke it.
                empty_at = [clock.now(); 2];
            }
        }
        self.account(clock, &mut since)
    }

    fn account_on_request(&mut self, clock: Clock, since: &mut Reading) {
        // It is there, or comes at once.
        let _ = self.woken.read(&mut [0; 1]);
        let account = self.account(clock, since);
        // The receiver may be gone.
        let _ = self.accounts.send(account);
    }

    fn account(&mut self, clock: Clock, since: &mut Reading) -> Pumped {
        let now = self.reading(clock);
        let before = std::mem::replace(since, now);
        let not_read = |end: usize| since.dropped[end] - before.dropped[end];
        let directions = [0, 1].map(|end: usize| self.lanes[end].account(not_read(end)));
        Pumped {
            directions,
            time: since.at - before.at,
            cpu: since.cpu.saturating_sub(before.cpu),
            cpu_waited: since.cpu_waited.saturating_sub(before.cpu_waited),
        }
    }

    fn reading(&self, clock: Clock) -> Reading {
        Reading {
            at: clock.now(),
            cpu: Clock::thread_cpu_time(),
            cpu_waited: cpu::run_queue_wait(),
            dropped: self.dropped(),
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
        wait([near, far], self.woken.as_fd(), time);
    }

    /// Packets that each interface dropped so far, because this thread did not read them in time.
    fn dropped(&self) -> [u64; 2] {
        [0, 1].map(|end: usize| self.ends[end].dropped().map_or(0, |it| it.sent))
    }
}
