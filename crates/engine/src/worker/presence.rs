//! Clients that come late, leave early, or lose their connections on the way.

use std::collections::VecDeque;

use driver::{Close, Driver};
use load::Presence;
use proto::Instant;

use super::connections::Ended;
use super::{Phase, Worker};
use crate::client::{Channel, Link, Reason, Role};

/// What happens to the clients of a worker at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    /// Their connections, if the transport has any, are opened.
    Join,
    /// They ask nothing more.
    Leave,
    /// This share of their connections is reset.
    Reset(f64),
    /// Places of the closed loop are opened.
    OpenPlaces,
}

/// What is still to happen, in order of time.
#[derive(Debug, Default)]
pub(super) struct Events(VecDeque<(Instant, Event)>);

impl Events {
    /// What happens to clients whose run starts at `start`.
    pub(super) fn of(presence: &Presence, start: Instant) -> Self {
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

    /// Lets places be opened at `at`.
    pub(super) fn open_places(&mut self, at: Instant) {
        let position = self.0.partition_point(|(before, _)| *before <= at);
        self.0.insert(position, (at, Event::OpenPlaces));
    }

    /// When the next one happens.
    #[inline]
    pub(super) fn next_due(&self) -> Instant {
        let first = self.0.front();
        first.map_or(Instant::FAR_FUTURE, |(at, _)| *at)
    }
}

impl Worker {
    /// Until when queries are offered: the end of the run, or when the clients leave.
    #[inline]
    pub(super) fn offer_end(&self) -> Instant {
        self.run_end.min(self.leaves_at)
    }

    /// Lets happen what is due at `now`.
    pub(super) fn fire_events(&mut self, driver: &mut impl Driver, now: Instant) {
        while self.events.next_due() <= now && self.phase == Phase::Offering {
            match self.events.0.pop_front() {
                Some((_, Event::Join)) => self.join(driver, now),
                Some((_, Event::Leave)) => self.leave(driver, now),
                Some((_, Event::Reset(share))) => self.reset_connections(driver, share, now),
                Some((_, Event::OpenPlaces)) => self.open_places(now),
                None => return,
            }
        }
    }

    fn join(&mut self, driver: &mut impl Driver, now: Instant) {
        if !self.plan.transport.has_connections() {
            return;
        }
        for index in 0..self.primaries {
            self.connect_if_needed(driver, index, now);
        }
    }

    fn leave(&mut self, driver: &mut impl Driver, now: Instant) {
        for index in 0..self.clients.len() as u32 {
            let client = &mut self.clients[index as usize];
            client.has_left = true;
            if let Some(connection) = client.connection() {
                connection.retired_for.get_or_insert(Reason::Done);
                self.close_if_used_up(driver, index, now);
            }
        }
    }

    fn reset_connections(&mut self, driver: &mut impl Driver, share: f64, now: Instant) {
        for index in 0..self.primaries {
            let number = f64::from(self.first_client + index);
            // Evenly spread: of every 1 / share clients one.
            let is_hit = ((number + 1.0) * share).floor() > (number * share).floor();
            if is_hit {
                self.reset_connection(driver, index, now);
            }
        }
    }

    /// Ends a client's connection as a crash or a change of network would; its queries in flight
    /// are lost.
    fn reset_connection(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let client = &self.clients[index as usize];
        let Link::Connected(connection) = &client.link else {
            return;
        };
        if !connection.is_open() || client.role != Role::Primary {
            return;
        }
        let socket = connection.socket;
        if matches!(connection.channel, Channel::Quic { .. }) {
            // A QUIC connection that is only forgotten would be the target's to time out.
            self.close_quic(driver, index, now);
        }
        driver.close(socket, Close::Reset);
        let counts = &mut self.tally.of_event(now).counts.connections;
        counts.closed_by_client += 1;
        counts.closed_by_client_for.reset += 1;
        self.lose_connection(driver, index, Ended::here(true), now);
    }
}
