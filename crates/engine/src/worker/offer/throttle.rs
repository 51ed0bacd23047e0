//! What holds back places of a closed loop: a cap on the rate, and the way it begins.
//!
//! A loop that filled all its places at once would overflow the receive buffer of the target (the
//! 212,992 octets that Linux gives a socket hold 277 small queries), and each place that is lost
//! so stays empty for a whole timeout. So the places are opened one after the other: a few at
//! once, one more for each response, and, because a target may be far away or silent, some each
//! millisecond, so that all of them are open after 64 ms at the latest. Places whose queries were
//! lost come back in the same way, or the end of an outage would be such a burst too.
//!
//! Costs nothing once all places are open: the throttle holds nothing then, and is gone a step
//! later.

use std::time::Duration;

use load::arrival::Schedule;
use proto::Instant;

/// Places that are filled in one burst by all workers together: any receive buffer has room for
/// so many queries.
const BURST: u32 = 32;
/// How often places are opened without a response.
const OPENS_EVERY: Duration = Duration::from_millis(1);
/// How often that is at most until all of them are open.
const STEPS_MAX: u32 = 64;

/// Holds back places that are free.
pub(super) struct Throttle {
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

impl Throttle {
    /// The throttle of a loop that begins: leaves `burst` of the places in `free`, and shuts the
    /// rest. None if there is nothing to hold back.
    pub(super) fn at_start(
        schedule: Option<Schedule>,
        free: &mut u32,
        burst: u32,
    ) -> Option<Throttle> {
        let open = (*free).min(burst);
        let shut = *free - open;
        *free = open;
        let throttle = Throttle::new(schedule, shut);
        let fresh = open;
        (shut > 0 || throttle.schedule.is_some()).then_some(Throttle { fresh, ..throttle })
    }

    fn new(schedule: Option<Schedule>, shut: u32) -> Throttle {
        Throttle {
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

    /// Shuts further places at `now`; says when the first of the steps that open them is due, if
    /// none is to come yet.
    fn shut(&mut self, places: u32, now: Instant) -> Option<Instant> {
        self.shut += places;
        self.step = self.step.max(self.shut.div_ceil(STEPS_MAX));
        let was_stepping = std::mem::replace(&mut self.is_stepping, true);
        (!was_stepping).then(|| now + OPENS_EVERY)
    }

    /// When to open the first of the places that are shut, from `at` on, if none is to be yet.
    pub(super) fn begin_steps(&mut self, at: Instant) -> Option<Instant> {
        if self.shut == 0 {
            return None;
        }
        self.shut(0, at)
    }

    /// Opens the places of one step; says when the next one is due, if places are still shut.
    pub(super) fn step(&mut self, free: &mut u32, now: Instant) -> Option<Instant> {
        self.open(self.step, free);
        if self.shut > 0 {
            return Some(now + OPENS_EVERY);
        }
        (self.is_stepping, self.step) = (false, 0);
        None
    }

    /// Of places whose queries were lost, some may be filled at once, and others are shut; says
    /// when these begin to be opened, if no step is to come yet.
    pub(super) fn hold_lost(
        throttle: &mut Option<Throttle>,
        at_once: u32,
        others: u32,
        now: Instant,
    ) -> Option<Instant> {
        if others == 0 {
            if let Some(throttle) = throttle {
                throttle.fresh += at_once;
            }
            return None;
        }
        let throttle = throttle.get_or_insert_with(|| Throttle::new(None, 0));
        if !throttle.holds() {
            // Nobody has counted since it held nothing.
            throttle.fresh = 0;
        }
        throttle.fresh += at_once;
        throttle.shut(others, now)
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
    pub(super) fn take(&mut self, places: u32, now: Instant) -> u32 {
        if now >= self.since + OPENS_EVERY {
            (self.since, self.places) = (now, 0);
        }
        let taken = places.min(self.places_max - self.places);
        self.places += taken;
        taken
    }
}
