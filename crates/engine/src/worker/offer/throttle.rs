//! Holds back slots of a closed loop: for a cap on the rate, and at its start.
//!
//! A loop that filled all its slots at once would overflow the target's receive buffer (Linux'
//! default of 212,992 bytes holds 277 small queries), and each query lost so would block its slot
//! for a whole timeout. So slots are opened gradually: a few at once, one more for each response,
//! and, because a target may be far away or silent, some each millisecond, so that all are open
//! after at most 64 ms. Slots whose queries were lost are reopened in the same way; else the end of
//! an outage would cause such a burst too.
//!
//! Costs nothing once all slots are open: the throttle is then dropped at its next step.

use std::time::Duration;

use load::arrival::Schedule;
use proto::Instant;

/// Slots that all workers together fill in one burst: any receive buffer holds this number of
/// queries.
const BURST: u32 = 32;
/// How often slots are opened without a response.
const OPENS_EVERY: Duration = Duration::from_millis(1);
/// Most such steps until all slots are open.
const STEPS_MAX: u32 = 64;

/// Holds back free slots.
pub(super) struct Throttle {
    /// Cap on the rate.
    pub(super) schedule: Option<Schedule>,
    /// Slots that are not open yet.
    shut: u32,
    /// Open slots that no response has freed yet.
    fresh: u32,
    /// Slots that are opened at each step in time.
    step: u32,
    /// A step is scheduled.
    is_stepping: bool,
}

impl Throttle {
    /// The throttle of a starting loop: leaves `burst` of the slots in `free`, and shuts the rest.
    /// None if there is nothing to hold back.
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

    /// True if a free slot may be filled at `now`; a slot freed by a response opens another one.
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

    /// False when all slots are open and the rate is not capped: only its next step is left.
    #[inline]
    pub(super) fn holds(&self) -> bool {
        self.shut > 0 || self.schedule.is_some()
    }

    fn open(&mut self, slots: u32, free: &mut u32) {
        let slots = slots.min(self.shut);
        self.shut -= slots;
        self.fresh += slots;
        *free += slots;
    }

    /// Shuts further slots at `now`; returns when the first step that opens them is due, unless one
    /// is scheduled already.
    fn shut(&mut self, slots: u32, now: Instant) -> Option<Instant> {
        self.shut += slots;
        self.step = self.step.max(self.shut.div_ceil(STEPS_MAX));
        let was_stepping = std::mem::replace(&mut self.is_stepping, true);
        (!was_stepping).then(|| now + OPENS_EVERY)
    }

    /// When to open the first shut slots, from `at` on, unless a step is scheduled already.
    pub(super) fn begin_steps(&mut self, at: Instant) -> Option<Instant> {
        if self.shut == 0 {
            return None;
        }
        self.shut(0, at)
    }

    /// Opens the slots of one step; returns when the next one is due, if slots are still shut.
    pub(super) fn step(&mut self, free: &mut u32, now: Instant) -> Option<Instant> {
        self.open(self.step, free);
        if self.shut > 0 {
            return Some(now + OPENS_EVERY);
        }
        (self.is_stepping, self.step) = (false, 0);
        None
    }

    /// Lets some of the slots whose queries were lost be filled at once, and shuts the others;
    /// returns when these begin to be opened, unless a step is scheduled already.
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
            // It was not maintained while the throttle held nothing.
            throttle.fresh = 0;
        }
        throttle.fresh += at_once;
        throttle.shut(others, now)
    }
}

/// Slots that are freed by losses within one step and may be filled at once.
pub(super) struct Burst {
    /// Most of them.
    pub(super) slots_max: u32,
    since: Instant,
    slots: u32,
}

impl Burst {
    pub(super) fn new(workers: u32) -> Burst {
        Burst {
            slots_max: (BURST / workers).max(1),
            since: Instant::ZERO,
            slots: 0,
        }
    }

    /// How many of `slots` may be filled at once.
    pub(super) fn take(&mut self, slots: u32, now: Instant) -> u32 {
        if now >= self.since + OPENS_EVERY {
            (self.since, self.slots) = (now, 0);
        }
        let taken = slots.min(self.slots_max - self.slots);
        self.slots += taken;
        taken
    }
}
