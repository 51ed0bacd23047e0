//! Scheduled events of a worker's clients: they join late, leave early, or lose their connections.

use std::collections::VecDeque;

use load::Presence;
use proto::Instant;

/// An event of a worker's clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    /// They join, and open their connections if the transport has any.
    Join,
    /// They send no more queries.
    Leave,
    /// This share of their connections is reset.
    Reset(f64),
    /// Slots of the closed loop are opened.
    OpenSlots,
}

/// Pending events, in order of time.
#[derive(Debug, Default)]
pub(crate) struct Events(VecDeque<(Instant, Event)>);

impl Events {
    /// The events of clients whose run starts at `start`.
    pub(crate) fn of(presence: &Presence, start: Instant) -> Self {
        let resets = presence.resets.iter();
        let mut events: Vec<(Instant, Event)> = resets
            .map(|reset| (start + reset.after, Event::Reset(reset.share)))
            .collect();
        if !presence.joins_after.is_zero() {
            events.push((start + presence.joins_after, Event::Join));
        }
        if let Some(after) = presence.leaves_after {
            events.push((start + after, Event::Leave));
        }
        events.sort_by_key(|(at, _)| *at);
        Events(events.into())
    }

    /// Schedules the opening of slots at `at`.
    pub(crate) fn open_slots(&mut self, at: Instant) {
        let position = self.0.partition_point(|(before, _)| *before <= at);
        self.0.insert(position, (at, Event::OpenSlots));
    }

    /// Takes the next one.
    pub(crate) fn pop(&mut self) -> Option<(Instant, Event)> {
        self.0.pop_front()
    }

    /// When the next one happens.
    #[inline]
    pub(crate) fn next_due(&self) -> Instant {
        let first = self.0.front();
        first.map_or(Instant::FAR_FUTURE, |(at, _)| *at)
    }
}
