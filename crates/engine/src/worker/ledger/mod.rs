//! What one worker has counted and timed, and its reports to the observer.
//!
//! * `tally`: which interval an event is counted in; `bins`: the timeline.
//! * `sending`: queries that were sent, kept waiting, or refused by the kernel.
//! * `responses`: responses, those of a delivery that count alike together.
//! * `connections`: handshakes, failures and broken rules; `open_connections`: how many are open.
//! * `losses`: queries without a response, by question.
//! * `instances`: responses by server instance.
//! * `statistics`: statistics of each client.
//! * `checkpoints`: which intervals end with a checkpoint.
//! * `stamps`: timestamps of datagrams, which query each belongs to, and the parts of a latency.

mod bins;
pub(crate) mod checkpoints;
pub(crate) mod connections;
mod instances;
mod losses;
pub(crate) mod open_connections;
pub(crate) mod responses;
mod sending;
mod stamps;
mod statistics;
pub(crate) mod tally;

use driver::{Driver, Event, Received};
use load::Plan;
use measure::Counts;
use measure::counts::Connections;
use measure::instances::Instances;
use measure::losses_by_question::WorkerLosses;
use proto::Instant;
use proto::pending::Query;

use super::population::Population;
use super::population::client::{Link, Role};
use super::population::stub::Cause;
use super::summary::{TlsNotes, Window};
use crate::control::Control;
use crate::observer::Observer;
use crate::query_end::QueryEnd;
use instances::InstanceCounts;
use open_connections::OpenConnections;
use responses::Alike;
use stamps::Stamps;
use statistics::Statistics;
use tally::Tally;

/// A worker gives up once this many queries have failed and none was answered: more than a starting
/// server or a burst loses.
const FAILURES_LOOKED_AT: u32 = 100;

/// What one worker has counted and timed.
pub(crate) struct Ledger {
    pub(crate) tally: Tally,
    pub(crate) window: Window,
    /// Recent responses that count alike and are not in the tally yet.
    alike: Alike,
    pub(crate) statistics: Statistics,
    pub(crate) losses: WorkerLosses,
    /// None unless queries request NSID.
    instances: Option<Box<InstanceCounts>>,
    pub(crate) open_connections: OpenConnections,
    pub(crate) tls: TlsNotes,
    /// When datagrams left and arrived; none if they have no timestamps.
    pub(crate) stamps: Option<Box<Stamps>>,
    pub(crate) observer: Option<Observer>,
    /// Stub resolver, stamps, script, instances or observer need each response.
    pub(crate) is_watched: bool,
    /// Truncated responses are repeated over TCP.
    falls_back: bool,
    /// Queries that failed, of the first that did.
    failures_looked_at: u32,
    /// Lowest limit of concurrent streams that the target has set.
    pub(crate) streams_max: Option<u64>,
    /// When the first query was due, and when it left.
    pub(crate) first_sent: Option<(Instant, Instant)>,
}

impl Ledger {
    /// For this number of clients, fallback clients not included; with `has_script` a script
    /// receives responses.
    pub(crate) fn new(
        plan: &Plan,
        clients: u32,
        observer: Option<Observer>,
        has_script: bool,
    ) -> Self {
        let instances = instances::counters(plan);
        Ledger {
            is_watched: plan.stub.is_some()
                || plan.sockets.timestamps.is_some()
                || has_script
                || instances.is_some()
                || observer.as_ref().is_some_and(Observer::hears_responses),
            tally: Tally::new(plan.interval),
            window: Window::default(),
            alike: Alike::default(),
            statistics: match plan.client_statistics {
                true => Statistics::new(clients),
                false => Statistics::none(),
            },
            losses: losses::counters(plan),
            instances,
            open_connections: OpenConnections::default(),
            tls: TlsNotes::default(),
            stamps: (plan.sockets.timestamps).map(|_| Box::new(Stamps::new(clients))),
            observer,
            falls_back: plan.tcp_fallback,
            failures_looked_at: 0,
            streams_max: None,
            first_sent: None,
        }
    }

    /// Where a query scheduled at `scheduled_at` is counted.
    #[inline]
    pub(crate) fn of_query(&mut self, scheduled_at: Instant) -> &mut Counts {
        &mut self.tally.of_query(scheduled_at).counts
    }

    /// Where to count `queries` that were due at `scheduled_at` and have ended without a response;
    /// books them as lost.
    #[inline]
    pub(crate) fn of_lost(&mut self, scheduled_at: Instant, queries: u64) -> &mut Counts {
        &mut self.tally.of_lost(scheduled_at, queries).counts
    }

    /// A query of a client was sent and got no response.
    pub(crate) fn count_lost(&mut self, query: &Query) {
        if self.tally.is_measured(query.scheduled_at) {
            losses::count(&mut self.losses, query.question);
        }
    }

    /// Counts a response for the instance that sent it, if instances are distinguished.
    #[inline]
    pub(crate) fn count_instance(
        &mut self,
        query: &Query,
        (message, rcode): (&[u8], u16),
        at: Instant,
    ) {
        if let Some(instances) = &mut self.instances
            && self.tally.is_measured(query.scheduled_at)
        {
            instances.count(message, rcode, at.nanos_since(query.sent_at));
        }
    }

    /// Responses by instance; none if instances are not distinguished.
    pub(crate) fn instances(&self) -> Option<Instances> {
        self.instances.as_ref().map(|it| it.counts())
    }

    /// Where an event that belongs to no query is counted.
    #[inline]
    pub(crate) fn of_event(&mut self, at: Instant) -> &mut Counts {
        &mut self.tally.of_event(at).counts
    }

    /// Where events of connections at `at` are counted.
    #[inline]
    pub(crate) fn connections(&mut self, at: Instant) -> &mut Connections {
        &mut self.tally.of_event(at).counts.connections
    }

    /// Counts that a client switches to another server, with a query or a connection of `phase_at`.
    pub(crate) fn count_failover(&mut self, phase_at: Instant, cause: Cause) {
        let failovers = &mut self.tally.of_query(phase_at).counts.stub.failovers;
        *match cause {
            Cause::TimedOut => &mut failovers.timed_out,
            Cause::Refused => &mut failovers.refused,
            Cause::Rcode => &mut failovers.rcode,
            Cause::Connection => &mut failovers.connection,
        } += 1;
    }

    /// Counts the datagrams or bytes of a delivery.
    #[inline]
    pub(crate) fn count_received(&mut self, received: &Received) {
        let wire = &mut self.tally.of_event(received.at).counts.wire;
        match received.event {
            Event::Datagrams => {
                let datagrams = &received.datagrams;
                let octets = datagrams.iter().map(|it| it.length as usize).sum();
                wire.receive_datagrams(datagrams.len(), octets);
            }
            Event::Bytes => wire.read(received.stream_octets),
            _ => {}
        }
    }

    /// Records a change in a client's queries in flight. Those of fallback clients are counted
    /// separately.
    #[inline]
    pub(crate) fn change_in_flight(
        &mut self,
        (role, client): (Role, u32),
        at: Instant,
        change: i64,
    ) {
        if role == Role::Primary {
            self.tally.change_in_flight(at, change);
            if change != 0 {
                self.statistics.touch(client, at);
            }
        }
    }

    /// True if a response to client `owner` needs only matching and counting: no script or observer
    /// receives it, and it is not the first of its connection, within an interval, or after
    /// idleness. Valid for the whole delivery, because no query is sent while it is handled.
    #[inline]
    pub(crate) fn only_counts(&self, population: &Population, owner: u32, at: Instant) -> bool {
        let is_known = match &population.clients[owner as usize].link {
            Link::Connected(connection) => {
                connection.served
                    && connection.counted.active_in == self.tally.number_of_interval(at)
            }
            _ => true,
        };
        is_known
            && !self.is_watched
            && owner < population.primaries
            && !self.statistics.is_after_idleness(owner)
    }

    /// A query was sent and has failed. Reports the worker's run as failing once the first
    /// [`FAILURES_LOOKED_AT`] queries have all failed.
    pub(crate) fn count_failure(&mut self, control: &Control) {
        if self.failures_looked_at == FAILURES_LOOKED_AT {
            return;
        }
        self.failures_looked_at += 1;
        if self.failures_looked_at == FAILURES_LOOKED_AT
            && self.window.last_response_at == Instant::ZERO
        {
            control.worker_is_in_vain();
        }
    }

    /// Reports to the observer, if there is one, how a query has ended.
    #[inline]
    pub(crate) fn observe(&self, role: Role, query: &Query, end: &QueryEnd<'_>, at: Instant) {
        if let Some(observer) = &self.observer
            && role == Role::Primary
        {
            observer.ended(query, end, at);
        }
    }

    /// Ends the intervals and ticks that are over at `now`; true if there were any.
    #[inline]
    pub(crate) fn roll_intervals(&mut self, driver: &impl Driver, now: Instant) -> bool {
        let is_over = now >= self.tally.roll_at();
        if is_over {
            self.roll(driver, now);
        }
        is_over
    }

    /// An interval is over, or a tick of the timeline is.
    #[cold]
    fn roll(&mut self, driver: &impl Driver, now: Instant) {
        self.settle_responses();
        while now >= self.tally.interval_end() {
            self.tally.roll(
                driver.cpu_time(),
                &mut self.open_connections,
                self.window.end,
            );
        }
        self.tally.tick(now);
    }
}
