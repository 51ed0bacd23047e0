//! The queries of one client that are waiting or in flight: message IDs, instants, time-outs.
//!
//! Queries are numbered in the order of [`Pending::submit`]; the ID is a bijection of the low 16
//! bits of that number, so consecutive IDs look unrelated and none repeats within 65,536 queries.
//! A query lives in slot `number mod capacity` of a ring and stays there, after it has ended, until
//! the slot is needed again. That is how a response is found in O(1) without a hash table, and how
//! late and duplicate responses are told from those that belong to no query.
//!
//! A slot that is still open is skipped by later queries. The ring doubles when more than half of
//! it is open, up to 65,536 slots, so at most [`OPEN_MAX`] queries of one client can be open.
//! The slots of the last [`TIMED_OUT_MAX`] queries that timed out are kept in the same way: their
//! responses may come long after, and must be known as late.

use std::collections::VecDeque;

use crate::time::Instant;

mod question;
mod trail;

pub use question::{LABEL_MAX, Question};
pub use trail::Trail;

/// Most queries of one client that can be waiting or in flight: half of the ID space, so that a
/// free ID is always near and a late response is not taken for a new one.
pub const OPEN_MAX: u32 = 32_768;

/// Most queries of one client that are remembered after they have timed out.
pub const TIMED_OUT_MAX: usize = 4_096;

const CAPACITY_MIN: usize = 4;
const CAPACITY_MAX: usize = 65_536;

/// An odd multiplier, so `n * SPREAD mod 2^16` is a bijection; `UNSPREAD` is its inverse.
const SPREAD: u16 = 0x6d2b;
const UNSPREAD: u16 = inverse(SPREAD);

/// The multiplicative inverse modulo 2^16 of an odd number (Newton's iteration).
const fn inverse(odd: u16) -> u16 {
    let mut x = odd;
    let mut round = 0;
    while round < 4 {
        x = x.wrapping_mul(2u16.wrapping_sub(odd.wrapping_mul(x)));
        round += 1;
    }
    x
}

/// How far a query has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No query has used the slot yet.
    Empty,
    /// Submitted, not yet handed to the network.
    Waiting,
    /// Handed to the network, no response yet.
    InFlight,
    /// A matching response came.
    Answered,
    /// Its time-out passed.
    TimedOut,
    /// Its connection was lost, or it was given up before it was sent.
    Lost,
}

impl State {
    /// Later queries have to pass over the slot.
    #[inline]
    fn keeps_its_slot(self) -> bool {
        matches!(self, State::Waiting | State::InFlight | State::TimedOut)
    }
}

/// Half a cache line: the question's number of a label takes what was padding.
#[derive(Clone, Copy, Debug)]
struct Slot {
    scheduled_at: Instant,
    sent_at: Instant,
    number: u32,
    template: u32,
    label_low: u32,
    label_high: u16,
    qtype: u8,
    state: State,
}

const _: () = assert!(size_of::<Slot>() == 32, "two slots share a cache line");

const EMPTY: Slot = Slot {
    scheduled_at: Instant::ZERO,
    sent_at: Instant::ZERO,
    number: 0,
    template: 0,
    label_low: 0,
    label_high: 0,
    qtype: 0,
    state: State::Empty,
};

/// What is known of one query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// Its place; valid until the next [`Pending::submit`].
    pub position: u32,
    /// Its number among the client's queries; says which one it is for as long as it is known.
    pub number: u32,
    /// Its message ID.
    pub id: u16,
    /// What it asks.
    pub question: Question,
    /// How far it has come.
    pub state: State,
    /// When the scenario wanted it sent.
    pub scheduled_at: Instant,
    /// When it was handed to the network; zero while it waits for the first time.
    pub sent_at: Instant,
}

/// The open queries of one client.
#[derive(Debug)]
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
    /// No queries; IDs start at a place given by `id_offset`. Allocates on the first submit.
    pub fn new(id_offset: u16) -> Self {
        Pending {
            slots: Box::default(),
            trails: Box::default(),
            keeps_trails: false,
            next: 0,
            first_waiting: 0,
            first_in_flight: 0,
            waiting: 0,
            in_flight: 0,
            timed_out: VecDeque::new(),
            id_offset,
        }
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
        let open = (self.waiting + self.in_flight) as usize;
        let kept = open + self.timed_out.len();
        if kept * 2 >= self.slots.len() && !self.grow() {
            if open >= OPEN_MAX as usize {
                return false;
            }
            self.forget_timed_out();
        }
        let mask = self.mask();
        loop {
            let position = self.next as usize & mask;
            let slot = &mut self.slots[position];
            let number = self.next;
            self.next = self.next.wrapping_add(1);
            if !slot.state.keeps_its_slot() {
                *slot = Slot {
                    scheduled_at,
                    sent_at: Instant::ZERO,
                    number,
                    template: question.template,
                    label_low: question.label_low,
                    label_high: question.label_high,
                    qtype: question.qtype,
                    state: State::Waiting,
                };
                if let Some(trail) = self.trails.get_mut(position) {
                    *trail = Trail::default();
                }
                self.waiting += 1;
                return true;
            }
        }
    }

    /// Number of the query that was submitted last; of no meaning before the first.
    #[inline]
    pub fn newest(&self) -> u32 {
        self.next.wrapping_sub(1)
    }

    /// The first query that waits to be sent, if any.
    #[inline]
    pub fn next_waiting(&mut self) -> Option<Query> {
        if self.waiting == 0 {
            self.first_waiting = self.next;
            return None;
        }
        self.first_waiting = self.first_number_in(State::Waiting, self.first_waiting);
        Some(self.query(self.first_waiting as usize & self.mask()))
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
            if slot.state == state && slot.number == number {
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
        let known = slot.state != State::Empty && slot.number == number;
        known.then(|| self.query(position))
    }

    /// Marks the waiting query at `position` as handed to the network at `sent_at`, if it is for
    /// the first time; returns when it was scheduled.
    #[inline]
    pub fn mark_sent(&mut self, position: u32, sent_at: Instant) -> Instant {
        let slot = &mut self.slots[position as usize];
        assert_eq!(
            slot.state,
            State::Waiting,
            "only a waiting query can be sent"
        );
        slot.state = State::InFlight;
        // One that is sent again has been under way since it was first sent.
        if slot.sent_at == Instant::ZERO {
            slot.sent_at = sent_at;
        }
        if slot.number == self.first_waiting {
            self.first_waiting = slot.number.wrapping_add(1);
        }
        let age = self.next.wrapping_sub(slot.number);
        if self.in_flight == 0 || age > self.next.wrapping_sub(self.first_in_flight) {
            self.first_in_flight = slot.number;
        }
        self.waiting -= 1;
        self.in_flight += 1;
        slot.scheduled_at
    }

    /// Takes back the query in flight at `position`: it waits again, to be sent once more. It keeps
    /// the instant at which it was first sent, which tells it from one that never was.
    pub fn requeue(&mut self, position: u32) {
        let slot = &mut self.slots[position as usize];
        assert_eq!(
            slot.state,
            State::InFlight,
            "only a query in flight can be taken back"
        );
        slot.state = State::Waiting;
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
        if self.slots.is_empty() {
            return None;
        }
        let low = id.wrapping_sub(self.id_offset).wrapping_mul(UNSPREAD);
        let position = usize::from(low) & self.mask();
        let slot = &self.slots[position];
        let known = slot.state != State::Empty && slot.number as u16 == low;
        known.then(|| self.query(position))
    }

    /// Ends the open query at `position` in `state`. Allocates only for a time-out.
    #[inline]
    pub fn end(&mut self, position: u32, state: State) {
        let slot = &mut self.slots[position as usize];
        match slot.state {
            State::Waiting => self.waiting -= 1,
            State::InFlight => self.in_flight -= 1,
            other => panic!("a query in state {other:?} cannot end again"),
        }
        slot.state = state;
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
            self.slots[position].state = State::Lost;
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

    /// The first open query whose time-out has passed at `now`, if any. End it and ask again.
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
    /// Walks numbers where few have passed, and the ring where more numbers than slots have: each
    /// costs at most `capacity` steps, amortised O(1) a query.
    fn first_number_in(&self, state: State, from: u32) -> u32 {
        let span = self.next.wrapping_sub(from) as usize;
        if span <= self.slots.len() {
            let mut number = from;
            loop {
                let slot = &self.slots[number as usize & self.mask()];
                if slot.state == state && slot.number == number {
                    return number;
                }
                assert_ne!(number, self.next, "a query in that state exists");
                number = number.wrapping_add(1);
            }
        }
        let age = |slot: &Slot| self.next.wrapping_sub(slot.number);
        let in_state = self.slots.iter().filter(|slot| slot.state == state);
        let oldest = in_state.max_by_key(|slot| age(slot));
        oldest.expect("a query in that state exists").number
    }

    #[inline]
    fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }

    #[inline]
    fn query(&self, position: usize) -> Query {
        let slot = &self.slots[position];
        Query {
            position: position as u32,
            number: slot.number,
            id: (slot.number as u16)
                .wrapping_mul(SPREAD)
                .wrapping_add(self.id_offset),
            question: Question {
                template: slot.template,
                label_low: slot.label_low,
                label_high: slot.label_high,
                qtype: slot.qtype,
            },
            state: slot.state,
            scheduled_at: slot.scheduled_at,
            sent_at: slot.sent_at,
        }
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
        for (index, slot) in all.filter(|(_, slot)| slot.state != State::Empty) {
            let position = slot.number as usize & mask;
            let place = &mut self.slots[position];
            // Two ended queries of different laps may meet; one that is kept is never overwritten.
            if !place.state.keeps_its_slot() {
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
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn send_one(pending: &mut Pending, now: Instant) -> Query {
        assert!(pending.submit(now, Question::plain(7)));
        let query = pending.next_waiting().unwrap();
        pending.mark_sent(query.position, now);
        pending.find(query.id).unwrap()
    }

    #[test]
    fn trail_of_a_query_is_its_own_and_moves_with_it() {
        let mut pending = Pending::new(7);
        pending.keep_trails();
        let submit = |pending: &mut Pending| {
            assert!(pending.submit(Instant::ZERO, Question::plain(0)));
            pending.newest()
        };
        let first = submit(&mut pending);
        let position = pending.numbered(first).unwrap().position;
        pending.set_trail(position, Trail::default().then(2).then(0));
        // The ring grows several times.
        let others: Vec<u32> = (0..100).map(|_| submit(&mut pending)).collect();
        let trail = |number: u32| pending.trail(pending.numbered(number).unwrap().position);
        assert_eq!((trail(first).attempts, trail(first).server), (2, 0));
        assert!(trail(first).has_asked(2) && !trail(first).has_asked(1));
        assert!(others.iter().all(|other| trail(*other) == Trail::default()));
        // Without trails none is kept.
        let mut plain = Pending::new(7);
        let number = submit(&mut plain);
        let position = plain.numbered(number).unwrap().position;
        plain.set_trail(position, Trail::default().then(1));
        assert_eq!(plain.trail(position), Trail::default());
    }

    #[test]
    fn multiplier_has_an_inverse() {
        assert_eq!(SPREAD.wrapping_mul(UNSPREAD), 1);
    }

    #[test]
    fn a_sent_query_is_found_by_its_id_and_by_no_other() {
        let mut pending = Pending::new(4711);
        let query = send_one(&mut pending, at(1));
        assert_eq!(query.state, State::InFlight);
        assert_eq!(query.question.template, 7);
        let others = (0..=u16::MAX).filter(|id| *id != query.id);
        assert_eq!(others.filter(|id| pending.find(*id).is_some()).count(), 0);
    }

    #[test]
    fn a_query_taken_back_is_the_next_to_be_sent_and_times_out_as_if_it_had_not_been() {
        let mut pending = Pending::new(0);
        let first = send_one(&mut pending, at(1));
        let second = send_one(&mut pending, at(2));
        assert!(pending.submit(at(3), Question::plain(8)));
        pending.requeue(first.position);
        assert_eq!((pending.waiting(), pending.in_flight()), (2, 1));
        assert_eq!(
            pending.oldest_in_flight().unwrap().position,
            second.position
        );
        let next = pending.next_waiting().unwrap();
        assert_eq!((next.position, next.sent_at), (first.position, at(1)));
        assert_eq!(
            pending.next_waiting_after(next).unwrap().question.template,
            8
        );
        pending.mark_sent(next.position, at(4));
        assert_eq!(pending.oldest_in_flight().unwrap().sent_at, at(1));
        let timeout = Duration::from_millis(5);
        let expired = pending.expired(at(6), timeout).unwrap();
        assert_eq!(expired.position, first.position);
    }

    #[test]
    fn an_answered_query_is_remembered_so_that_a_duplicate_is_seen() {
        let mut pending = Pending::new(0);
        let query = send_one(&mut pending, at(1));
        pending.end(query.position, State::Answered);
        assert_eq!(pending.find(query.id).unwrap().state, State::Answered);
        assert_eq!(pending.in_flight(), 0);
    }

    #[test]
    fn ids_do_not_repeat_within_65536_queries() {
        let mut pending = Pending::new(99);
        let mut seen = vec![false; 65_536];
        for _ in 0..65_536 {
            let query = send_one(&mut pending, at(1));
            assert!(!std::mem::replace(&mut seen[usize::from(query.id)], true));
            pending.end(query.position, State::Answered);
        }
    }

    #[test]
    fn an_open_query_is_skipped_while_others_come_and_go() {
        let mut pending = Pending::new(1);
        let lost = send_one(&mut pending, at(0));
        for ms in 1..200_000 {
            let query = send_one(&mut pending, at(ms));
            assert_ne!(query.id, lost.id);
            pending.end(query.position, State::Answered);
        }
        assert_eq!(pending.oldest_in_flight().unwrap().id, lost.id);
        let timeout = Duration::from_secs(5);
        assert_eq!(pending.poll_timeout(timeout), Some(at(5_000)));
        assert_eq!(pending.expired(at(4_999), timeout), None);
        assert_eq!(pending.expired(at(5_000), timeout).unwrap().id, lost.id);
    }

    #[test]
    fn at_most_open_max_queries_are_open() {
        let mut pending = Pending::new(1);
        for _ in 0..OPEN_MAX {
            send_one(&mut pending, at(0));
        }
        assert!(!pending.submit(at(0), Question::plain(0)));
        let oldest = pending.oldest_in_flight().unwrap();
        pending.end(oldest.position, State::TimedOut);
        assert!(pending.submit(at(0), Question::plain(0)));
    }

    #[test]
    fn time_outs_come_in_the_order_of_sending_and_reach_waiting_queries_too() {
        let mut pending = Pending::new(5);
        let first = send_one(&mut pending, at(10));
        assert!(pending.submit(at(2), Question::plain(1)));
        let timeout = Duration::from_millis(100);
        assert_eq!(pending.poll_timeout(timeout), Some(at(102)));
        let waiting = pending.expired(at(102), timeout).unwrap();
        assert_eq!(waiting.state, State::Waiting);
        pending.end(waiting.position, State::Lost);
        assert_eq!(pending.poll_timeout(timeout), Some(at(110)));
        pending.end(first.position, State::TimedOut);
        assert_eq!(pending.poll_timeout(timeout), None);
    }

    #[test]
    fn a_query_that_timed_out_is_remembered_while_others_come_and_go() {
        let mut pending = Pending::new(77);
        let lost: Vec<u16> = (0..TIMED_OUT_MAX)
            .map(|_| {
                let query = send_one(&mut pending, at(0));
                pending.end(query.position, State::TimedOut);
                query.id
            })
            .collect();
        for ms in 1..200_000 {
            let query = send_one(&mut pending, at(ms));
            pending.end(query.position, State::Answered);
        }
        for id in &lost {
            assert_eq!(pending.find(*id).unwrap().state, State::TimedOut);
        }
        // One more, and the first is forgotten: its slot is free for others.
        let query = send_one(&mut pending, at(200_000));
        pending.end(query.position, State::TimedOut);
        assert_eq!(pending.find(lost[0]).unwrap().state, State::Lost);
        assert_eq!(pending.find(lost[1]).unwrap().state, State::TimedOut);
    }

    #[test]
    fn queries_that_timed_out_make_room_when_all_others_are_open() {
        let mut pending = Pending::new(1);
        for _ in 0..TIMED_OUT_MAX {
            let query = send_one(&mut pending, at(0));
            pending.end(query.position, State::TimedOut);
        }
        for _ in 0..OPEN_MAX {
            send_one(&mut pending, at(0));
        }
        assert!(!pending.submit(at(0), Question::plain(0)));
    }

    proptest::proptest! {
        #[test]
        fn behaves_like_a_list_of_open_queries(
            actions in proptest::collection::vec(0..100u8, 1..2_000),
        ) {
            let mut pending = Pending::new(31_337);
            let mut model: Vec<(u16, u64)> = Vec::new();
            for (step, action) in actions.into_iter().enumerate() {
                let now = step as u64;
                if action < 55 || model.is_empty() {
                    let query = send_one(&mut pending, at(now));
                    proptest::prop_assert!(model.iter().all(|(id, _)| *id != query.id));
                    model.push((query.id, now));
                } else {
                    let (id, sent) = model.remove(usize::from(action) % model.len());
                    let query = pending.find(id).unwrap();
                    proptest::prop_assert_eq!(query.sent_at, at(sent));
                    pending.end(query.position, State::Answered);
                }
                let oldest = pending.oldest_in_flight().map(|query| query.sent_at);
                proptest::prop_assert_eq!(oldest, model.first().map(|(_, sent)| at(*sent)));
                proptest::prop_assert_eq!(pending.in_flight() as usize, model.len());
            }
        }
    }
}
