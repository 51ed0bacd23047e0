//! Reports every query as it ends, and every connection as it becomes usable, to a reader.
//!
//! For commands that send few queries and print each response, such as `throng ping`; matching and
//! timing are those of every other run. A run without an observer pays one comparison a query.
//! Observations wait in a queue of a fixed length. If it is full, the worker counts an observation
//! as missed and does not wait, except with [`Observer::never_missing`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use proto::Instant;
use proto::pending::Query;
use proto::response::{Header, extended_rcode};
use script::End;

use crate::query_end::QueryEnd;

/// Observations that may wait for the reader.
const WAITING_MAX: usize = 16_384;

/// What happened to one query or connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The group of clients, as given to [`Observer::of_group`].
    pub group: u32,
    /// When it happened.
    pub at: Instant,
    /// What it was.
    pub event: Observed,
}

/// An event of [`Observation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// A connection can carry queries.
    Usable {
        /// Nanoseconds since the attempt to connect began, handshakes included.
        set_up_ns: u64,
    },
    /// A query has ended.
    Ended {
        /// Its question, by position in the plan.
        question: u32,
        /// Its message ID.
        id: u16,
        /// When it was sent; zero if it never was.
        sent_at: Instant,
        /// How it ended.
        how: Ending,
        /// The response, for an observer who asked for messages.
        message: Option<Box<[u8]>>,
    },
}

/// How a query ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a response.
    Response {
        /// Length of the DNS message.
        octets: u32,
        /// The whole RCODE, with the bits of an OPT record.
        rcode: u16,
        /// Octets three and four of the header (RFC 1035, section 4.1.1): QR, Opcode, AA, TC, RD,
        /// RA, AD, CD and RCODE.
        flags: u16,
    },
    /// No response came in time.
    TimedOut,
    /// Its connection, stream or exchange ended first.
    Lost,
    /// It could not be sent.
    NotSent,
}

/// The worker's end of the queue; clones write to the same reader.
#[derive(Clone, Debug)]
pub struct Observer {
    sender: SyncSender<Observation>,
    missed: Arc<AtomicU64>,
    group: u32,
    hears_responses: bool,
    has_messages: bool,
    waits: bool,
}

/// The reader's end of the queue.
#[derive(Debug)]
pub struct Observations {
    receiver: Receiver<Observation>,
    missed: Arc<AtomicU64>,
}

/// An observer, and where its observations can be read. Reading ends when all clones of the
/// observer are gone.
pub fn observer() -> (Observer, Observations) {
    let (sender, receiver) = sync_channel(WAITING_MAX);
    let missed = Arc::new(AtomicU64::new(0));
    let observer = Observer {
        sender,
        missed: Arc::clone(&missed),
        group: 0,
        hears_responses: true,
        has_messages: false,
        waits: false,
    };
    (observer, Observations { receiver, missed })
}

impl Observer {
    /// The same for another group of clients.
    pub fn of_group(&self, group: u32) -> Self {
        Observer {
            group,
            ..self.clone()
        }
    }

    /// Leaves responses out, which then cost nothing.
    pub fn without_responses(self) -> Self {
        Observer {
            hears_responses: false,
            ..self
        }
    }

    /// Includes the messages of responses.
    pub fn with_messages(self) -> Self {
        Observer {
            has_messages: true,
            ..self
        }
    }

    /// The worker waits while the queue is full, which delays all that it measures meanwhile.
    pub fn never_missing(self) -> Self {
        Observer {
            waits: true,
            ..self
        }
    }

    pub(crate) fn hears_responses(&self) -> bool {
        self.hears_responses
    }

    /// Reports how a query has ended.
    #[cold]
    pub(crate) fn ended(&self, query: &Query, end: &QueryEnd<'_>, at: Instant) {
        let how = match end {
            QueryEnd::Response(_) if !self.hears_responses => return,
            QueryEnd::Response(message) => response(message),
            QueryEnd::End(End::TimedOut) => Ending::TimedOut,
            QueryEnd::End(End::Lost) => Ending::Lost,
            QueryEnd::End(End::NotSent) => Ending::NotSent,
        };
        let message = match end {
            QueryEnd::Response(message) if self.has_messages => Some((*message).into()),
            _ => None,
        };
        let event = Observed::Ended {
            message,
            question: query.question.template,
            id: query.id,
            sent_at: query.sent_at,
            how,
        };
        self.tell(at, event);
    }

    /// Reports that a connection is usable.
    #[cold]
    pub(crate) fn usable(&self, set_up_ns: u64, at: Instant) {
        self.tell(at, Observed::Usable { set_up_ns });
    }

    fn tell(&self, at: Instant, event: Observed) {
        let group = self.group;
        let observation = Observation { group, at, event };
        let is_told = match self.waits {
            // Fails once the reader is gone.
            true => self.sender.send(observation).is_ok(),
            false => self.sender.try_send(observation).is_ok(),
        };
        if !is_told {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn response(message: &[u8]) -> Ending {
    let flags = match message {
        [_, _, high, low, ..] if Header::parse(message).is_some() => {
            u16::from_be_bytes([*high, *low])
        }
        _ => 0,
    };
    Ending::Response {
        // No DNS message is longer than 65,535 octets.
        octets: message.len() as u32,
        rcode: extended_rcode(message),
        flags,
    }
}

impl Observations {
    /// Observations that did not fit into the queue, or whose reader was gone.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

impl Iterator for &Observations {
    type Item = Observation;

    /// Waits for the next one; none when the run is over.
    fn next(&mut self) -> Option<Observation> {
        self.receiver.recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_never_to_miss_anything_is_waited_for() {
        let (observer, observations) = observer();
        let observer = observer.never_missing();
        let told = WAITING_MAX + 10;
        std::thread::scope(|scope| {
            scope.spawn(move || (0..told).for_each(|_| observer.usable(1, Instant::ZERO)));
            assert_eq!(observations.into_iter().count(), told);
        });
        assert_eq!(observations.missed(), 0);
    }

    #[test]
    fn what_does_not_fit_into_the_queue_is_counted_and_the_worker_does_not_wait() {
        let (observer, observations) = observer();
        let other = observer.of_group(7);
        for _ in 0..WAITING_MAX {
            other.usable(1, Instant::ZERO);
        }
        observer.usable(2, Instant::ZERO);
        observer.usable(3, Instant::ZERO);
        drop((observer, other));
        assert_eq!(observations.missed(), 2);
        assert_eq!(
            observations
                .into_iter()
                .filter(|each| each.group == 7)
                .count(),
            WAITING_MAX
        );
    }
}
