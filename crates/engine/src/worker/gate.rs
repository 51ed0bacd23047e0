//! What holds back places of a closed loop: a cap on the rate, and the way it begins.
//!
//! A loop that filled all its places at once would overflow the receive buffer of the target (the
//! 212,992 octets that Linux gives a socket hold 277 small queries), and each place that is lost
//! so stays empty for a whole time-out. So the places are opened one after the other: a few at
//! once, one more for each response, and, because a target may be far away or silent, some each
//! millisecond, so that all of them are open after 64 ms at the latest. Places whose queries were
//! lost come back in the same way, or the end of an outage would be such a burst too.
//!
//! Costs nothing once all places are open: the gate holds nothing then, and is gone a step later.

use std::time::Duration;

use load::arrival::Schedule;
use proto::Instant;

use super::Worker;
use super::offer::Offer;

/// Places that are filled in one burst by all workers together: any receive buffer has room for
/// so many queries.
const BURST: u32 = 32;
/// How often places are opened without a response.
const OPENS_EVERY: Duration = Duration::from_millis(1);
/// How often that is at most until all of them are open.
const STEPS_MAX: u32 = 64;

/// Holds back places that are free.
pub(super) struct Gate {
    /// Queries are never faster than that.
    pub(super) schedule: Option<Schedule>,
    /// Places that are not open yet.
    shut: u32,
    /// Of the open ones, those that no response has freed.
    fresh: u32,
    /// Places that are opened at each step in time.
    step: u32,
    /// A step is to come.
    is_stepping: bool,
}

impl Gate {
    /// The gate of a loop that begins: leaves `burst` of the places in `free`, and shuts the rest.
    /// None if there is nothing to hold back.
    pub(super) fn at_start(schedule: Option<Schedule>, free: &mut u32, burst: u32) -> Option<Gate> {
        let open = (*free).min(burst);
        let shut = *free - open;
        *free = open;
        let gate = Gate::new(schedule, shut);
        let fresh = open;
        (shut > 0 || gate.schedule.is_some()).then_some(Gate { fresh, ..gate })
    }

    fn new(schedule: Option<Schedule>, shut: u32) -> Gate {
        Gate {
            schedule,
            shut,
            fresh: 0,
            step: 0,
            is_stepping: false,
        }
    }

    /// True if a free place may be filled at `now`; a place that a response has freed opens
    /// another one.
    pub(super) fn admit(&mut self, now: Instant, free: &mut u32) -> bool {
        if let Some(schedule) = &mut self.schedule {
            if schedule.next_due() > now {
                return false;
            }
            schedule.advance();
        }
        match self.fresh.checked_sub(1) {
            Some(fresh) => self.fresh = fresh,
            None => self.open(1, free),
        }
        true
    }

    /// False when all places are open and no rate is kept: it is there for its next step only.
    #[inline]
    pub(super) fn holds(&self) -> bool {
        self.shut > 0 || self.schedule.is_some()
    }

    fn open(&mut self, places: u32, free: &mut u32) {
        let places = places.min(self.shut);
        self.shut -= places;
        self.fresh += places;
        *free += places;
    }

    /// Shuts further places; true if somebody has to see to the steps that open them.
    fn shut(&mut self, places: u32) -> bool {
        self.shut += places;
        self.step = self.step.max(self.shut.div_ceil(STEPS_MAX));
        !std::mem::replace(&mut self.is_stepping, true)
    }
}

/// Places that are freed by losses within one step, and may be filled at once.
pub(super) struct Burst {
    /// Most of them.
    pub(super) places_max: u32,
    since: Instant,
    places: u32,
}

impl Burst {
    pub(super) fn new(workers: u32) -> Burst {
        Burst {
            places_max: (BURST / workers).max(1),
            since: Instant::ZERO,
            places: 0,
        }
    }

    /// How many of `places` may be filled at once.
    fn take(&mut self, places: u32, now: Instant) -> u32 {
        if now >= self.since + OPENS_EVERY {
            (self.since, self.places) = (now, 0);
        }
        let taken = places.min(self.places_max - self.places);
        self.places += taken;
        taken
    }
}

impl Worker {
    /// Sees to it that the places which the gate keeps shut are opened from `at` on.
    pub(super) fn open_later(&mut self, at: Instant) {
        if let Offer::Closed {
            gate: Some(gate), ..
        } = &mut self.offer
            && gate.shut > 0
            && gate.shut(0)
        {
            self.events.open_places(at + OPENS_EVERY);
        }
    }

    /// Opens the places of one step.
    pub(super) fn open_places(&mut self, now: Instant) {
        let Offer::Closed { gate, free, .. } = &mut self.offer else {
            return;
        };
        let Some(it) = gate else { return };
        it.open(it.step, free);
        if it.shut > 0 {
            return self.events.open_places(now + OPENS_EVERY);
        }
        (it.is_stepping, it.step) = (false, 0);
        if it.schedule.is_none() {
            *gate = None;
        }
    }

    /// Places are free again because their queries were lost: by a time-out or with their
    /// connection.
    #[cold]
    pub(super) fn release_lost(&mut self, places: u32, now: Instant) {
        let Offer::Closed {
            free, gate, losses, ..
        } = &mut self.offer
        else {
            return;
        };
        let at_once = losses.take(places, now);
        *free += at_once;
        if places > at_once {
            let gate = gate.get_or_insert_with(|| Gate::new(None, 0));
            if !gate.holds() {
                // Nobody has counted since it held nothing.
                gate.fresh = 0;
            }
            gate.fresh += at_once;
            if gate.shut(places - at_once) {
                self.events.open_places(now + OPENS_EVERY);
            }
        } else if let Some(gate) = gate {
            gate.fresh += at_once;
        }
    }
}
