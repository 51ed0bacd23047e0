//! Connection attempts to several servers that are raced (RFC 8305, section 5, "happy eyeballs"):
//! while one is under way the next is begun after a delay, or as soon as one has failed. The first
//! that is established (TCP, not TLS) is the client's connection, the others are closed.

use driver::{Close, Driver, Event, Received, SocketError, SocketSpec};
use proto::Instant;

use super::Worker;
use super::ledger::connections::failure_counter;
use super::population::connection::Stage;
use super::population::racer::Racer;

/// Why the other participants of a race are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Losers {
    /// Another one has won.
    Lost,
    /// None was established in time.
    TimedOut,
    /// The run is over.
    Abandoned,
}

impl Worker {
    /// Begins the next participant of a client's race, if it is due.
    pub(super) fn race_if_due(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        if self.population.race_due(index).is_some_and(|at| at <= now) {
            self.start_racer(driver, index, now);
        }
    }

    /// Begins a connection attempt at the next server that was not tried yet; at the one after it
    /// if no socket can be had for that.
    fn start_racer(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        while let Some(stub) = &mut self.population.stub
            && let Some(server) = stub.choose_racer(index)
        {
            let address = stub.address(server);
            let local = self.population.clients[index as usize].local;
            let spec = SocketSpec {
                local: local.filter(|local| local.is_ipv4() == address.is_ipv4()),
                peer: Some(address),
                fast_open: self.plan.connections.tcp_fast_open,
                ..SocketSpec::default()
            };
            let counts = self.ledger.of_event(now);
            counts.connections.attempted += 1;
            counts.stub.raced += 1;
            match driver.connect_tcp(&spec) {
                Ok(socket) => {
                    stub.racers[index as usize].push(Racer {
                        socket,
                        server,
                        started_at: now,
                    });
                    self.population.own(socket, index);
                    break;
                }
                Err(error) => *failure_counter(&mut counts.connections.failed, Some(error)) += 1,
            }
        }
        if let Some(at) = self.population.race_due(index) {
            self.population.arm(index, at);
        }
    }

    /// Handles a delivery for a participant of a race other than the client's link; false if it is
    /// for none.
    pub(super) fn handle_racer(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        received: &Received,
    ) -> bool {
        let Some(stub) = &mut self.population.stub else {
            return false;
        };
        let Some(racers) = stub.racers.get_mut(index as usize) else {
            return false;
        };
        let place = racers.iter().position(|it| it.socket == received.socket);
        let Some(place) = place else {
            return false;
        };
        let failed = match received.event {
            Event::Connected => {
                let winner = racers.remove(place);
                self.win_race(driver, index, winner, received.at);
                return true;
            }
            Event::Failed(error) => Some(error),
            Event::EndOfStream => None,
            _ => return true,
        };
        let racer = racers.remove(place);
        stub.mark_dead(index, racer.server, received.at);
        driver.close(racer.socket, Close::Graceful);
        let counts = self.ledger.connections(received.at);
        *failure_counter(&mut counts.failed, failed) += 1;
        self.start_racer(driver, index, received.at);
        true
    }

    /// A participant takes the place of the client's link.
    fn win_race(&mut self, driver: &mut impl Driver, index: u32, winner: Racer, now: Instant) {
        let Some(connection) = self.population.connection(index) else {
            return driver.close(winner.socket, Close::Reset);
        };
        let loser = std::mem::replace(&mut connection.socket, winner.socket);
        driver.close(loser, Close::Reset);
        self.ledger.of_event(now).stub.races_lost += 1;
        if let Some(stub) = &mut self.population.stub {
            stub.set_server(index, winner.server);
        }
        self.end_race(driver, index, Losers::Lost, now);
        self.handle_connected(driver, index, now);
    }

    /// Closes the participants of a race beside the client's link.
    pub(super) fn end_race(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        losers: Losers,
        now: Instant,
    ) {
        let Some(stub) = &mut self.population.stub else {
            return;
        };
        let Some(racers) = stub.racers.get_mut(index as usize) else {
            return;
        };
        let counts = self.ledger.of_event(now);
        for racer in racers.drain(..) {
            driver.close(racer.socket, Close::Reset);
            match losers {
                Losers::Lost => counts.stub.races_lost += 1,
                Losers::TimedOut => counts.connections.failed.timed_out += 1,
                Losers::Abandoned => counts.connections.abandoned += 1,
            }
        }
    }

    /// The attempt of the client's link has failed: the participant that began next takes its
    /// place. False if there is none.
    pub(super) fn replace_by_racer(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        error: Option<SocketError>,
        now: Instant,
    ) -> bool {
        let Some(stub) = &mut self.population.stub else {
            return false;
        };
        let Some(racers) = stub.racers.get_mut(index as usize) else {
            return false;
        };
        let client = &mut self.population.clients[index as usize];
        let Some(connection) = client.connection() else {
            return false;
        };
        if racers.is_empty() || connection.stage != Stage::Connecting {
            return false;
        }
        let next = racers.remove(0);
        let failed = std::mem::replace(&mut connection.socket, next.socket);
        stub.mark_dead(index, stub.server_of(index), now);
        stub.set_server(index, next.server);
        driver.close(failed, Close::Graceful);
        let counts = self.ledger.connections(now);
        *failure_counter(&mut counts.failed, error) += 1;
        self.start_racer(driver, index, now);
        true
    }
}
