//! Counts of stub-resolver behaviour: retransmissions, changes of server, races of connections.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Queries that were sent more than once, and servers that were left for others. All zero where
/// clients have one server and ask once.
///
/// A query is one query however often it was sent: `sent`, `responses` and its latency, from the
/// instant at which it was scheduled, count it once. What a target receives is `sent` and
/// `retransmitted` together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StubCounts {
    /// Messages sent beside the first one of each query: later attempts, and copies for further
    /// servers if all are queried at once.
    pub retransmitted: u64,
    /// Bytes of these, without transport framing.
    pub retransmitted_octets: u64,
    /// Later attempts that the socket did not take.
    pub not_retransmitted: u64,
    /// Responses by the attempt that was under way when they came, the first attempt first. A
    /// response to an earlier attempt that comes late counts here and not as late.
    pub responses_by_attempt: Vec<u64>,
    /// Responses by the server that gave them, in the order of the scenario's servers.
    pub responses_by_server: Vec<u64>,
    /// Messages sent by the server they went to, in the same order.
    pub sent_by_server: Vec<u64>,
    /// Times that a client went on to another server, by cause.
    pub failovers: Failovers,
    /// Responses that were not accepted because of their RCODE: the client switched to another
    /// server.
    pub responses_not_taken: u64,
    /// Connections given up because a query on them had no response within the time of its
    /// attempt.
    pub connections_given_up: u64,
    /// Connection attempts started beside another one (RFC 8305).
    pub raced: u64,
    /// Connection attempts that lost a race and were closed.
    pub races_lost: u64,
}

/// Why clients went on to another server: over UDP with a query, else with a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failovers {
    /// The time of an attempt was over.
    pub timed_out: u64,
    /// The server's host said that nothing is listening (ICMP port unreachable).
    pub refused: u64,
    /// The RCODE was one of those that send a client on.
    pub rcode: u64,
    /// A connection could not be set up, or ended without a response.
    pub connection: u64,
}

impl Failovers {
    /// Whatever the cause.
    pub fn total(&self) -> u64 {
        self.timed_out + self.refused + self.rcode + self.connection
    }

    fn add(&mut self, other: &Failovers) {
        // Names every field, so that a new one cannot be forgotten here.
        let Failovers {
            timed_out,
            refused,
            rcode,
            connection,
        } = other;
        self.timed_out += timed_out;
        self.refused += refused;
        self.rcode += rcode;
        self.connection += connection;
    }
}

impl StubCounts {
    /// True if nothing of it happened.
    pub fn is_empty(&self) -> bool {
        *self == StubCounts::default()
    }

    /// Adds everything counted in `other`.
    pub fn add(&mut self, other: &StubCounts) {
        // Names every field, so that a new one cannot be forgotten here.
        let StubCounts {
            retransmitted,
            retransmitted_octets,
            not_retransmitted,
            responses_by_attempt,
            responses_by_server,
            sent_by_server,
            failovers,
            responses_not_taken,
            connections_given_up,
            raced,
            races_lost,
        } = other;
        self.retransmitted += retransmitted;
        self.retransmitted_octets += retransmitted_octets;
        self.not_retransmitted += not_retransmitted;
        add_each(&mut self.responses_by_attempt, responses_by_attempt);
        add_each(&mut self.responses_by_server, responses_by_server);
        add_each(&mut self.sent_by_server, sent_by_server);
        self.failovers.add(failovers);
        self.responses_not_taken += responses_not_taken;
        self.connections_given_up += connections_given_up;
        self.raced += raced;
        self.races_lost += races_lost;
    }

    /// Counts a response of `server` after this number of attempts, from 1.
    pub fn respond(&mut self, attempt: u8, server: u8) {
        count_at(
            &mut self.responses_by_attempt,
            usize::from(attempt.max(1)) - 1,
            1,
        );
        count_at(&mut self.responses_by_server, usize::from(server), 1);
    }

    /// Counts messages that went to `server`.
    pub fn send_to(&mut self, server: u8, messages: u64) {
        count_at(&mut self.sent_by_server, usize::from(server), messages);
    }

    /// Responses counted by attempt.
    pub fn responses(&self) -> u64 {
        self.responses_by_attempt.iter().sum()
    }
}

fn count_at(counts: &mut Vec<u64>, place: usize, number: u64) {
    if number == 0 {
        return;
    }
    if counts.len() <= place {
        counts.resize(place + 1, 0);
    }
    counts[place] += number;
}

fn add_each(own: &mut Vec<u64>, others: &[u64]) {
    for (place, number) in others.iter().enumerate() {
        count_at(own, place, *number);
    }
}
