//! A lead's state of one agent.

use std::time::Duration;

use measure::record::AgentClock;
use proto::Instant;

use super::Place;
use crate::BEAT_EVERY;
use crate::clocks::{AgentsClock, Exchange, Offset};
use crate::message::{Hello, ToAgent};

/// State of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has not greeted yet.
    Greeting,
    /// It prepares its share.
    Preparing,
    /// Its clients are set up.
    Ready,
    /// It starts, or has started.
    Running,
    /// Its record has come.
    Ended,
    /// It sends nothing more although its run was not over.
    Lost,
}

/// Whether it can start at the proposed instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Armed {
    /// No start was proposed.
    No,
    /// A start at this instant of its clock was proposed.
    Asked(u64),
    /// It has confirmed.
    Yes,
    /// It received the proposal too late.
    Late,
}

impl Armed {
    /// Handles its reply to a start proposed for `at_ns` of its clock.
    pub(super) fn hear(&mut self, at_ns: u64, can: bool) {
        if *self == Armed::Asked(at_ns) {
            *self = match can {
                true => Armed::Yes,
                false => Armed::Late,
            };
        }
    }
}

#[derive(Debug)]
pub(super) struct LeadLink {
    pub(super) place: Place,
    pub(super) state: State,
    pub(super) hello: Option<Hello>,
    clock: AgentsClock,
    /// Its clock when it sent the last answer that was read.
    heard_ns: Option<u64>,
    at_start: Option<Offset>,
    beaten: Option<Instant>,
    /// How long it has sent nothing, not counting pauses of the lead itself.
    pub(super) silence: Duration,
    pub(super) armed: Armed,
    /// Its start, by its clock.
    starts_ns: u64,
    /// How long it has ended no interval, not counting pauses of the lead itself.
    pub(super) stalled: Duration,
    /// Its first queries have all failed.
    pub(super) is_vain: bool,
    pub(super) is_leaving: bool,
}

impl LeadLink {
    pub(super) fn new(place: &Place) -> Self {
        LeadLink {
            place: place.clone(),
            state: match place {
                Place::Here => State::Preparing,
                Place::Host(_) => State::Greeting,
            },
            hello: None,
            clock: AgentsClock::default(),
            heard_ns: None,
            at_start: None,
            beaten: None,
            silence: Duration::ZERO,
            armed: Armed::No,
            starts_ns: 0,
            stalled: Duration::ZERO,
            is_vain: false,
            is_leaving: false,
        }
    }

    /// True if more reports are expected of it.
    pub(super) fn is_at_work(&self) -> bool {
        !matches!(self.state, State::Ended | State::Lost)
    }

    fn has_own_clock(&self) -> bool {
        self.place != Place::Here
    }

    /// The heartbeat or clock question to send, if one is due; before a start, clock questions
    /// follow each other without a pause.
    pub(super) fn beat(&mut self, now: Instant, is_before_start: bool) -> Option<ToAgent> {
        if !self.is_at_work() || self.state == State::Greeting {
            return None;
        }
        if self.has_own_clock() {
            let is_due = self.clock.is_due(now, is_before_start);
            return is_due.then(|| ToAgent::Clock {
                asked_ns: now.as_nanos(),
                heard_ns: self.heard_ns,
            });
        }
        let is_due = self.beaten.is_none_or(|at| now >= at + BEAT_EVERY);
        is_due.then(|| {
            self.beaten = Some(now);
            ToAgent::Beat
        })
    }

    pub(super) fn note_clock(&mut self, asked_ns: u64, theirs_ns: u64, now: Instant) {
        self.heard_ns = self.heard_ns.max(Some(theirs_ns));
        self.clock.note(Exchange {
            asked_ns,
            theirs_ns,
            answered_ns: now.as_nanos(),
        });
    }

    pub(super) fn clock_is_known(&self, now: Instant) -> bool {
        !self.has_own_clock() || self.clock.is_known(now)
    }

    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.clock.round_trip()
    }

    /// Proposes a start; returns that instant by the agent's clock.
    pub(super) fn arm(&mut self, start: Instant, now: Instant) -> u64 {
        self.at_start = self.clock.offset(now);
        let offset = self.clock.offset(start);
        let at_ns = offset.map_or(start.as_nanos(), |offset| offset.theirs(start));
        (self.armed, self.starts_ns) = (Armed::Asked(at_ns), at_ns);
        at_ns
    }

    /// Orders the start; returns its instant by the agent's clock, none if the agent is lost.
    pub(super) fn go(&mut self) -> Option<u64> {
        if self.state == State::Ready {
            self.state = State::Running;
            return Some(self.starts_ns);
        }
        None
    }

    /// Its clock's offset, as far as it is known.
    pub(super) fn clock(&self, now: Instant) -> Option<AgentClock> {
        let (start, end) = self.at_start.zip(self.clock.offset(now))?;
        Some(AgentClock {
            start_bound_ns: start.bound_ns,
            end_bound_ns: end.bound_ns,
            drift_ns: i64::try_from(end.offset_ns - start.offset_ns).unwrap_or(i64::MAX),
        })
    }
}
