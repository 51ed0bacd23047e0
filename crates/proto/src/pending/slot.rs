//! One query's slot in the ring, and its public view.

use super::Question;
use crate::time::Instant;

/// An odd multiplier, so `n * SPREAD mod 2^16` is a bijection; `UNSPREAD` is its inverse.
pub(super) const SPREAD: u16 = 0x6d2b;
pub(super) const UNSPREAD: u16 = inverse(SPREAD);

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
#[repr(u8)]
pub enum State {
    /// No query has used the slot yet.
    Empty,
    /// Submitted, not yet handed to the network.
    Waiting,
    /// Handed to the network, no response yet.
    InFlight,
    /// A matching response came.
    Answered,
    /// Its timeout passed.
    TimedOut,
    /// Its connection was lost, or it was given up before it was sent.
    Lost,
}

impl State {
    /// In the order of their numbers.
    const ALL: [State; 6] = [
        State::Empty,
        State::Waiting,
        State::InFlight,
        State::Answered,
        State::TimedOut,
        State::Lost,
    ];

    /// Later queries have to pass over the slots of queries in one of these: a bit for each.
    const KEPT: u8 =
        1 << State::Waiting as u8 | 1 << State::InFlight as u8 | 1 << State::TimedOut as u8;
}

/// Half a cache line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) scheduled_at: Instant,
    pub(super) sent_at: Instant,
    pub(super) number: u32,
    template: u32,
    /// The changes in the template's copy, and in the last byte the state.
    variation_and_state: [u8; 8],
}

impl Slot {
    /// That of a query which is to be sent.
    #[inline(always)]
    pub(super) fn waiting(number: u32, question: Question, scheduled_at: Instant) -> Self {
        let state = (State::Waiting as u64) << (8 * STATE);
        Slot {
            scheduled_at,
            sent_at: Instant::ZERO,
            number,
            template: question.template,
            variation_and_state: (question.variation | state).to_le_bytes(),
        }
    }

    /// True if it is that of query `number`, which is in `state`.
    #[inline]
    pub(super) fn holds(&self, state: State, number: u32) -> bool {
        self.is_in(state) && self.number == number
    }

    #[inline]
    pub(super) fn is_in(&self, state: State) -> bool {
        self.variation_and_state[STATE] == state as u8
    }

    #[inline]
    pub(super) fn state(&self) -> State {
        State::ALL[usize::from(self.variation_and_state[STATE])]
    }

    /// True if later queries have to pass over it.
    #[inline]
    pub(super) fn is_kept(&self) -> bool {
        State::KEPT >> (self.variation_and_state[STATE] & 7) & 1 != 0
    }

    #[inline]
    pub(super) fn set_state(&mut self, state: State) {
        self.variation_and_state[STATE] = state as u8;
    }

    /// The query that it holds, which is at `position`.
    #[inline(always)]
    pub(super) fn query(&self, position: usize, id_offset: u16) -> Query {
        Query {
            position: position as u32,
            number: self.number,
            id: (self.number as u16)
                .wrapping_mul(SPREAD)
                .wrapping_add(id_offset),
            question: self.question(),
            state: self.state(),
            scheduled_at: self.scheduled_at,
            sent_at: self.sent_at,
        }
    }

    #[inline]
    pub(super) fn question(&self) -> Question {
        let variation = u64::from_le_bytes(self.variation_and_state);
        Question {
            template: self.template,
            variation: variation & VARIATION,
        }
    }
}

const _: () = assert!(size_of::<Slot>() == 32, "two slots share a cache line");

/// Where the state is in the last octets of a slot, and the bits that are not the state's.
const STATE: usize = 7;
const VARIATION: u64 = (1 << (8 * STATE)) - 1;

pub(super) const EMPTY: Slot = Slot {
    scheduled_at: Instant::ZERO,
    sent_at: Instant::ZERO,
    number: 0,
    template: 0,
    variation_and_state: [0; 8],
};

/// The public view of one query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// Its slot; valid until the next [`super::Pending::submit`].
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

/// A query in flight in its slot, found by its message ID: to be compared with a response, and
/// ended by it.
#[derive(Debug)]
pub struct Found<'a> {
    pub(super) slot: &'a mut Slot,
    pub(super) in_flight: &'a mut u32,
}

impl Found<'_> {
    /// What it asks.
    #[inline]
    pub fn question(&self) -> Question {
        self.slot.question()
    }

    /// Ends it as answered; returns when it was scheduled and when it was sent.
    #[inline]
    pub fn answer(self) -> (Instant, Instant) {
        self.slot.set_state(State::Answered);
        *self.in_flight -= 1;
        (self.slot.scheduled_at, self.slot.sent_at)
    }
}

/// Queries that wait to be sent, see [`super::Pending::waiting_queries`].
#[derive(Debug)]
pub struct WaitingQueries<'a> {
    pub(super) slots: &'a [Slot],
    pub(super) number: u32,
    pub(super) left: u32,
    pub(super) id_offset: u16,
}

impl Iterator for WaitingQueries<'_> {
    type Item = Query;

    #[inline(always)]
    fn next(&mut self) -> Option<Query> {
        while self.left > 0 {
            let number = self.number;
            self.number = number.wrapping_add(1);
            let position = number as usize & self.slots.len().wrapping_sub(1);
            let slot = &self.slots[position];
            if slot.holds(State::Waiting, number) {
                self.left -= 1;
                return Some(slot.query(position, self.id_offset));
            }
        }
        None
    }
}
