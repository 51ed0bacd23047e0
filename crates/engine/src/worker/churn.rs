//! Clients that come late, leave early, or lose their connections on the way.

use driver::{Close, Driver};
use proto::Instant;

use super::Worker;
use super::disconnecting::Ended;
use super::phases::Phase;
use super::population::client::{Link, Role};
use super::population::connection::Reason;
use super::population::events::Event;

impl Worker {
    /// Carries out the events due at `now`.
    pub(super) fn fire_events(&mut self, driver: &mut impl Driver, now: Instant) {
        while self.population.events.next_due() <= now && self.course.phase == Phase::Offering {
            match self.population.events.pop() {
                Some((_, Event::Join)) => self.join(driver, now),
                Some((_, Event::Leave)) => self.leave(driver, now),
                Some((_, Event::Reset(share))) => self.reset_connections(driver, share, now),
                Some((_, Event::OpenSlots)) => {
                    self.offer.open_slots(&mut self.population.events, now);
                }
                None => return,
            }
        }
    }

    fn join(&mut self, driver: &mut impl Driver, now: Instant) {
        if !self.plan.transport.has_connections() {
            return;
        }
        for index in 0..self.population.primaries {
            self.connect_if_needed(driver, index, now);
        }
    }

    fn leave(&mut self, driver: &mut impl Driver, now: Instant) {
        for index in 0..self.population.clients.len() as u32 {
            let client = &mut self.population.clients[index as usize];
            client.has_left = true;
            if let Some(connection) = client.connection() {
                connection.retired_for.get_or_insert(Reason::Done);
                self.close_if_used_up(driver, index, now);
            }
        }
    }

    fn reset_connections(&mut self, driver: &mut impl Driver, share: f64, now: Instant) {
        for index in 0..self.population.primaries {
            let number = f64::from(self.population.first_client + index);
            // Spread evenly: one client of every 1 / share.
            let is_hit = ((number + 1.0) * share).floor() > (number * share).floor();
            if is_hit {
                self.with_each_retiring(index, |worker| {
                    worker.reset_connection(driver, index, now);
                });
                self.reset_connection(driver, index, now);
            }
        }
    }

    /// Ends a client's connection as a crash or a change of network would; its queries in flight
    /// are lost.
    fn reset_connection(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let client = &self.population.clients[index as usize];
        let Link::Connected(connection) = &client.link else {
            return;
        };
        if !connection.is_open() || client.role != Role::Primary {
            return;
        }
        let socket = connection.socket;
        if connection.channel.is_quic() {
            // Without a close the target would keep the QUIC connection until it times out.
            self.close_quic(driver, index, now);
        }
        driver.close(socket, Close::Reset);
        let counts = self.ledger.connections(now);
        counts.closed_by_client += 1;
        counts.closed_by_client_for.reset += 1;
        self.lose_connection(driver, index, Ended::here(true), now);
    }

    /// Closes a client's connection once the queries sent on it have their responses.
    pub(super) fn close_for_script(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let is_open = matches!(
            &self.population.clients[index as usize].link,
            Link::Connected(connection) if connection.is_open()
        );
        if !is_open {
            return;
        }
        self.send_waiting(driver, index);
        self.population.retire(index, Reason::Done);
        self.close_if_used_up(driver, index, now);
    }
}
