//! The queries of one client that are waiting or in flight: message IDs, instants, timeouts.
//!
//! Queries are numbered in the order of [`Pending::submit`]; the ID is a bijection of the low 16
//! bits of that number, so consecutive IDs look unrelated and none repeats within 65,536 queries. A
//! query is in slot `number mod capacity` of a ring and stays there, after it has ended, until the
//! slot is needed again. So a response is matched in O(1) without a hash table, and late and
//! duplicate responses can be distinguished from unsolicited ones.
//!
//! A slot that is still open is skipped by later queries. The ring doubles when more than half of
//! it is open, up to 65,536 slots: then there is a slot for each ID, and at most [`OPEN_MAX`]
//! queries of one client can be open. The slots of the last [`TIMED_OUT_MAX`] queries that timed
//! out are kept in the same way: their responses may come long after, and must be known as late.
//! Where nearly all slots are kept, fewer of those are, so that the next free slot is near.

use std::collections::VecDeque;

use crate::time::Instant;
use slot::{EMPTY, Slot, UNSPREAD};

mod question;
mod slot;
mod trail;

pub use question::{LABEL_MAX, Question};
pub use slot::{Found, Query, State, WaitingQueries};
pub use trail::Trail;

/// Most queries of one client that can be waiting or in flight: all message IDs except those
/// reserved for queries that have timed out, whose late responses would otherwise match new
/// queries.
pub const OPEN_MAX: u32 = (CAPACITY_MAX - TIMED_OUT_MAX) as u32;

/// Most queries of one client that are remembered after they have timed out.
pub const TIMED_OUT_MAX: usize = 4_096;

const CAPACITY_MIN: usize = 4;
/// One slot for each message ID.
const CAPACITY_MAX: usize = 65_536;
/// Slots of the largest ring that are kept free: one in 32. With a single free slot, each query
/// would have to scan the whole ring for it.
const SPARE: usize = 2_048;

const _: () = assert!(OPEN_MAX as usize + SPARE <= CAPACITY_MAX);

/// The open queries of one client. New ones are none; the first submit allocates.
#[derive(Debug, Default)]
pub struct Pending {
    slots: Box<[Slot]>,
    /// Of each slot; empty unless trails are kept.
    trails: Box<[Trail]>,
    keeps_trails: bool,
    /// Number of the next query.
    next: u32,
    /// No query before this number is waiting.
    first_waiting: u32,
    /// No query before this number is in flight.
    first_in_flight: u32,
    waiting: u32,
    in_flight: u32,
    /// Numbers of the queries that have timed out and keep their slot, oldest first.
    timed_out: VecDeque<u32>,
    id_offset: u16,
}

impl Pending {
    /// Sets the offset of message IDs. Called before the first submit.
    pub fn start_ids(&mut self, id_offset: u16) {
        self.id_offset = id_offset;
    }

    /// Keeps the trail of every query from now on: 4 bytes each. Called before the first submit.
    pub fn keep_trails(&mut self) {
        self.keeps_trails = true;
    }

    /// Where the query at `position` has been sent, if trails are kept.
    #[inline]
    pub fn trail(&self, position: u32) -> Trail {
        let trail = self.trails.get(position as usize);
        trail.copied().unwrap_or_default()
    }

    /// Notes where the query at `position` has been sent, if trails are kept.
    #[inline]
    pub fn set_trail(&mut self, position: u32, trail: Trail) {
        if let Some(kept) = self.trails.get_mut(position as usize) {
            *kept = trail;
        }
    }

    /// Queries submitted and not yet handed to the network.
    #[inline]
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Queries handed to the network without an end yet.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Queues one query for sending. False if [`OPEN_MAX`] are open: nothing was queued.
    ///
    /// Amortised O(1); allocates only when the ring grows.
    #[inline]
    pub fn submit(&mut self, scheduled_at: Instant, question: Question) -> bool {
        self.submit_many(scheduled_at, 1, || question) == 1
    }

    /// Queues up to `queries` for sending; returns how many were queued before [`OPEN_MAX`] were
    /// open.
    #[inline(always)]
    pub fn submit_many(
        &mut self,
        scheduled_at: Instant,
        queries: u32,
        mut question: impl FnMut() -> Question,
    ) -> u32 {
        let mut left = queries;
        while left > 0 {
            let open = self.waiting + self.in_flight;
            let kept = open as usize + self.timed_out.len();
            let mut room = (self.slots.len() / 2).saturating_sub(kept) as u32;
            if room == 0 && self.slots.len() == CAPACITY_MAX {
                room = OPEN_MAX.saturating_sub(open);
                let kept_max = CAPACITY_MAX - SPARE - left.min(room) as usize;
                while open as usize + self.timed_out.len() > kept_max {
                    self.forget_timed_out();
                }
            }
            if room == 0 {
                if self.grow() {
                    continue;
                }
                break;
            }
            let batch = left.min(room);
            left -= batch;
            for _ in 0..batch {
                self.queue(scheduled_at, question());
            }
            self.waiting += batch;
        }
        queries - left
    }

    /// Puts a query into the next slot that is free, of which there is one.
    #[inline(always)]
    fn queue(&mut self, scheduled_at: Instant, question: Question) {
        let mask = self.mask();
        loop {
            let position = self.next as usize & mask;
            let slot = &mut self.slots[position];
            let number = self.next;
            self.next = self.next.wrapping_add(1);
            if !slot.is_kept() {
                *slot = Slot::waiting(number, question, scheduled_at);
                if let Some(trail) = self.trails.get_mut(position) {
                    *trail = Trail::default();
                }
                return;
            }
        }
    }

    /// Number of the query that was submitted last; of no meaning before the first.
    #[inline]
    pub fn newest(&self) -> u32 {
        self.next.wrapping_sub(1)
    }

    /// Number of the first query that waits to be sent, if any.
    #[inline]
    pub fn number_waiting(&mut self) -> Option<u32> {
        let number = self.oldest_waiting();
        (self.waiting > 0).then_some(number)
    }

    /// The first query that waits to be sent, if any.
    #[inline]
    pub fn next_waiting(&mut self) -> Option<Query> {
        let number = self.oldest_waiting();
        (self.waiting > 0).then(|| self.query(number as usize & self.mask()))
    }

    /// The query that waits behind `query`, if any.
    #[inline]
    pub fn next_waiting_after(&self, query: Query) -> Option<Query> {
        self.next_in_after(State::Waiting, query)
    }

    /// The query in flight that was submitted next after `query`, if any.
    pub fn next_in_flight_after(&self, query: Query) -> Option<Query> {
        self.next_in_after(State::InFlight, query)
    }

    #[inline]
    fn next_in_after(&self, state: State, query: Query) -> Option<Query> {
        let mut number = self.slots[query.position as usize].number;
        loop {
            number = number.wrapping_add(1);
            if number == self.next {
                return None;
            }
            let position = number as usize & self.mask();
            let slot = &self.slots[position];
            if slot.holds(state, number) {
                return Some(self.query(position));
            }
        }
    }

    /// The query at `position`.
    pub fn at(&self, position: u32) -> Query {
        self.query(position as usize)
    }

    /// The query with this number, if it is still remembered.
    #[inline]
    pub fn numbered(&self, number: u32) -> Option<Query> {
        let position = number as usize & self.mask();
        let slot = self.slots.get(position)?;
        let known = !slot.is_in(State::Empty) && slot.number == number;
        known.then(|| self.query(position))
    }

    /// The queries that wait, oldest first, at most `most` of them.
    #[inline(always)]
    pub fn waiting_queries(&mut self, most: usize) -> WaitingQueries<'_> {
        WaitingQueries {
            number: self.oldest_waiting(),
            left: most.min(self.waiting as usize) as u32,
            slots: &self.slots,
            id_offset: self.id_offset,
        }
    }

    /// When each of the queries that wait was scheduled, newest first, at most `most` of them.
    pub fn newest_waiting(&self, most: u32) -> impl Iterator<Item = Instant> {
        let span = self.next.wrapping_sub(self.first_waiting);
        let newest_first = (1..=span).map(|age| self.next.wrapping_sub(age));
        let waiting = newest_first.filter_map(|number| {
            let slot = &self.slots[number as usize & self.mask()];
            slot.holds(State::Waiting, number)
                .then_some(slot.scheduled_at)
        });
        waiting.take(most.min(self.waiting) as usize)
    }

    /// Marks the `queries` that have waited longest, of those that wait, as handed to the network
    /// at `sent_at`; one that is sent again stays under way since it was first sent.
    ///
    /// Calls `each` with the number of consecutive queries that are alike, when they were
    /// scheduled, and whether they are sent again.
    #[inline(always)]
    pub fn send_oldest(
        &mut self,
        queries: u32,
        sent_at: Instant,
        mut each: impl FnMut(u32, Instant, bool),
    ) {
        let mut left = queries.min(self.waiting);
        if left == 0 {
            return;
        }
        let mut number = self.oldest_waiting();
        let age = self.next.wrapping_sub(number);
        if self.in_flight == 0 || age > self.next.wrapping_sub(self.first_in_flight) {
            self.first_in_flight = number;
        }
        self.waiting -= left;
        self.in_flight += left;
        let mask = self.mask();
        let slots = &mut self.slots[..];
        while left > 0 {
            let first = slots[number as usize & mask];
            let mut alike = 0;
            loop {
                let slot = &mut slots[number as usize & mask];
                let is_like_first = slot.holds(State::Waiting, number)
                    && slot.scheduled_at == first.scheduled_at
                    && slot.sent_at == first.sent_at;
                if !is_like_first {
                    break;
                }
                slot.set_state(State::InFlight);
                if first.sent_at == Instant::ZERO {
                    slot.sent_at = sent_at;
                }
                number = number.wrapping_add(1);
                alike += 1;
                if alike == left {
                    break;
                }
            }
            if alike > 0 {
                each(alike, first.scheduled_at, first.sent_at != Instant::ZERO);
                left -= alike;
            } else {
                number = number.wrapping_add(1);
            }
        }
        self.first_waiting = number;
    }

    /// Number of the query that has waited longest, of those that wait; the next number without
    /// any.
    #[inline(always)]
    fn oldest_waiting(&mut self) -> u32 {
        let number = self.first_waiting;
        let first = self.slots.get(number as usize & self.mask());
        if !first.is_some_and(|slot| slot.holds(State::Waiting, number)) {
            self.first_waiting = match self.waiting {
                0 => self.next,
                _ => self.first_number_in(State::Waiting, number),
            };
        }
        self.first_waiting
    }

    /// Takes back the query in flight at `position`: it waits again, to be sent once more. It keeps
    /// the instant at which it was first sent, which distinguishes it from a query never sent.
    pub fn requeue(&mut self, position: u32) {
        let slot = &mut self.slots[position as usize];
        assert_eq!(
            slot.state(),
            State::InFlight,
            "only a query in flight can be taken back"
        );
        slot.set_state(State::Waiting);
        self.in_flight -= 1;
        let age = self.next.wrapping_sub(slot.number);
        if self.waiting == 0 || age > self.next.wrapping_sub(self.first_waiting) {
            self.first_waiting = slot.number;
        }
        self.waiting += 1;
    }

    /// The latest query with message ID `id` that is still remembered, open or ended.
    #[inline]
    pub fn find(&self, id: u16) -> Option<Query> {
        let low = self.number_of(id);
        let position = usize::from(low) & self.mask();
        let slot = self.slots.get(position)?;
        let known = !slot.is_in(State::Empty) && slot.number as u16 == low;
        known.then(|| self.query(position))
    }

    /// The query in flight with message ID `id`.
    #[inline(always)]
    pub fn find_in_flight(&mut self, id: u16) -> Option<Found<'_>> {
        let low = self.number_of(id);
        let position = usize::from(low) & self.mask();
        let slot = self.slots.get_mut(position)?;
        let known = slot.is_in(State::InFlight) && slot.number as u16 == low;
        known.then_some(Found {
            slot,
            in_flight: &mut self.in_flight,
        })
    }

    /// The low 16 bits of the number of the queries with this message ID.
    #[inline]
    fn number_of(&self, id: u16) -> u16 {
        id.wrapping_sub(self.id_offset).wrapping_mul(UNSPREAD)
    }

    /// Ends the open query at `position` in `state`. Allocates only for a timeout.
    #[inline]
    pub fn end(&mut self, position: u32, state: State) {
        let slot = &mut self.slots[position as usize];
        match slot.state() {
            State::Waiting => self.waiting -= 1,
            State::InFlight => self.in_flight -= 1,
            other => panic!("a query in state {other:?} cannot end again"),
        }
        slot.set_state(state);
        if state == State::TimedOut {
            let number = slot.number;
            if self.timed_out.len() == TIMED_OUT_MAX {
                self.forget_timed_out();
            }
            self.timed_out.push_back(number);
        }
    }

    /// Gives up the slot of the query that timed out first.
    #[cold]
    fn forget_timed_out(&mut self) {
        if let Some(number) = self.timed_out.pop_front() {
            let position = number as usize & self.mask();
            self.slots[position].set_state(State::Lost);
        }
    }

    /// The oldest query in flight, if any.
    #[inline]
    pub fn oldest_in_flight(&mut self) -> Option<Query> {
        if self.in_flight == 0 {
            self.first_in_flight = self.next;
            return None;
        }
        self.first_in_flight = self.first_number_in(State::InFlight, self.first_in_flight);
        Some(self.query(self.first_in_flight as usize & self.mask()))
    }

    /// When the next query times out if each may take `timeout_ns`: in flight from when it was
    /// sent, waiting from when it was scheduled. `None` if no query is open.
    pub fn poll_timeout(&mut self, timeout: std::time::Duration) -> Option<Instant> {
        let in_flight = self.oldest_in_flight().map(|query| query.sent_at + timeout);
        let waiting = self
            .next_waiting()
            .map(|query| query.scheduled_at + timeout);
        [in_flight, waiting].into_iter().flatten().min()
    }

    /// The first open query whose timeout has passed at `now`, if any. End it and call again.
    pub fn expired(&mut self, now: Instant, timeout: std::time::Duration) -> Option<Query> {
        let in_flight = self
            .oldest_in_flight()
            .filter(|query| query.sent_at + timeout <= now);
        in_flight.or_else(|| {
            self.next_waiting()
                .filter(|query| query.scheduled_at + timeout <= now)
        })
    }

    /// The smallest query number from `from` on whose slot holds it in `state`.
    ///
    /// Walks numbers, and scans the ring once after as many misses as it has slots. So it takes at
    /// most two steps for each number passed, and callers store the result as the next `from`:
    /// amortised O(1) a query, however many came since the oldest.
    fn first_number_in(&self, state: State, from: u32) -> u32 {
        let mut number = from;
        for _ in 0..=self.slots.len() {
            #[cfg(test)]
            tests::count_steps(1);
            let slot = &self.slots[number as usize & self.mask()];
            if slot.holds(state, number) {
                return number;
            }
            assert_ne!(number, self.next, "a query in that state exists");
            number = number.wrapping_add(1);
        }
        #[cfg(test)]
        tests::count_steps(self.slots.len() as u64);
        let age = |slot: &Slot| self.next.wrapping_sub(slot.number);
        let in_state = self.slots.iter().filter(|slot| slot.is_in(state));
        let oldest = in_state.max_by_key(|slot| age(slot));
        oldest.expect("a query in that state exists").number
    }

    #[inline]
    fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }

    #[inline]
    fn query(&self, position: usize) -> Query {
        self.slots[position].query(position, self.id_offset)
    }

    /// Doubles the ring; false if it is as large as it may be.
    #[cold]
    fn grow(&mut self) -> bool {
        let capacity = (self.slots.len() * 2).max(CAPACITY_MIN);
        if capacity > CAPACITY_MAX {
            return false;
        }
        let old = std::mem::replace(&mut self.slots, vec![EMPTY; capacity].into_boxed_slice());
        let trails = match self.keeps_trails {
            true => vec![Trail::default(); capacity].into_boxed_slice(),
            false => Box::default(),
        };
        let old_trails = std::mem::replace(&mut self.trails, trails);
        let mask = self.mask();
        let all = old.iter().enumerate();
        for (index, slot) in all.filter(|(_, slot)| !slot.is_in(State::Empty)) {
            let position = slot.number as usize & mask;
            let place = &mut self.slots[position];
            // Two ended queries of different laps may meet; one that is kept is never overwritten.
            if !place.is_kept() {
                *place = *slot;
                if let Some(trail) = old_trails.get(index) {
                    self.trails[position] = *trail;
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests;
