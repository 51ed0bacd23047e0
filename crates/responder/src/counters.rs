//! The responder's counters, so that both ends of a run can be compared.

use std::fmt;
use std::ops::AddAssign;

use proto::Transport;

use crate::delayed::Reply;

/// RCODEs counted separately: 0 to 15 and BADVERS (16).
pub const RCODES: usize = 17;

/// One count for each transport, in the order of [`Transport::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByTransport([u64; Transport::ALL.len()]);

impl ByTransport {
    /// The count of one transport.
    pub fn get(&self, transport: Transport) -> u64 {
        self.0[transport as usize]
    }

    /// The sum over all transports.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    #[inline]
    pub(crate) fn add(&mut self, transport: Transport, count: u64) {
        self.0[transport as usize] += count;
    }
}

impl AddAssign for ByTransport {
    fn add_assign(&mut self, other: ByTransport) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// A count that can be converted to plain numbers.
trait Numbers: Sized {
    fn write(&self, numbers: &mut Vec<u64>);
    fn read(numbers: &mut std::slice::Iter<'_, u64>) -> Option<Self>;
}

impl Numbers for u64 {
    fn write(&self, numbers: &mut Vec<u64>) {
        numbers.push(*self);
    }

    fn read(numbers: &mut std::slice::Iter<'_, u64>) -> Option<Self> {
        numbers.next().copied()
    }
}

impl Numbers for ByTransport {
    fn write(&self, numbers: &mut Vec<u64>) {
        numbers.extend(self.0);
    }

    fn read(numbers: &mut std::slice::Iter<'_, u64>) -> Option<Self> {
        let mut counts = ByTransport::default();
        for count in &mut counts.0 {
            *count = *numbers.next()?;
        }
        Some(counts)
    }
}

impl fmt::Display for ByTransport {
    /// The sum, and the transports that are part of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.total())?;
        let counted = |transport: &Transport| self.get(*transport) > 0;
        let parts: Vec<String> = { Transport::ALL.into_iter() }
            .filter(counted)
            .map(|transport| format!("{transport} {}", self.get(transport)))
            .collect();
        match parts.is_empty() {
            true => Ok(()),
            false => write!(f, " ({})", parts.join(", ")),
        }
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $label:literal,)*) => {
        /// Counts of one worker since it was made; workers' counts are added.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: $kind,)*
            /// Responses by RCODE, faults that change an RCODE included; counted when the response
            /// is made, lost ones excepted.
            pub rcodes: [u64; RCODES],
        }

        impl AddAssign<&Counters> for Counters {
            fn add_assign(&mut self, other: &Counters) {
                $(self.$name += other.$name;)*
                for (mine, theirs) in self.rcodes.iter_mut().zip(other.rcodes) {
                    *mine += theirs;
                }
            }
        }

        impl Counters {
            /// All counts in order, for [`Counters::from_numbers`] of the same binary.
            pub fn to_numbers(&self) -> Vec<u64> {
                let mut numbers = Vec::new();
                $(self.$name.write(&mut numbers);)*
                numbers.extend(self.rcodes);
                numbers
            }

            /// Each count that is not zero by its name, over all transports; queries, responses
            /// and those lost on purpose always.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                let all = [$((stringify!($name), Count::total(&self.$name)),)*];
                let is_told = |(name, count): &(&str, u64)| {
                    *count > 0 || matches!(*name, "queries" | "responses" | "lost")
                };
                all.into_iter().filter(is_told).collect()
            }

            /// The counts from [`Counters::to_numbers`]; none if there are too few or too many.
            pub fn from_numbers(numbers: &[u64]) -> Option<Self> {
                let mut left = numbers.iter();
                let mut counters = Counters {
                    $($name: Numbers::read(&mut left)?,)*
                    rcodes: [0; RCODES],
                };
                for count in &mut counters.rcodes {
                    *count = *left.next()?;
                }
                left.next().is_none().then_some(counters)
            }
        }

        impl fmt::Display for Counters {
            /// One line for each count that is not zero; queries and responses always.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(write_line(f, $label, &self.$name)?;)*
                for (rcode, count) in self.rcodes.iter().enumerate() {
                    write_line(f, &proto::rr::rcode_to_text(rcode as u16), count)?;
                }
                Ok(())
            }
        }
    };
}

counters! {
    /// Queries received: messages with a whole header and QR clear, malformed ones included.
    queries: ByTransport = "queries received",
    /// Responses handed to the network, duplicates and faulty ones included.
    responses: ByTransport = "responses sent",
    /// Octets of DNS messages, HTTP, TLS and length prefixes received.
    octets_received: ByTransport = "bytes received",
    /// Octets of DNS messages, HTTP, TLS and length prefixes sent.
    octets_sent: ByTransport = "bytes sent",
    /// UPDATE messages among the queries.
    updates: u64 = "updates",
    /// Queries answered with FORMERR because they could not be parsed.
    malformed: u64 = "malformed queries",
    /// Messages shorter than a header, or with QR set: not answered.
    ignored: u64 = "messages ignored",
    /// Responses dropped on purpose (the loss share).
    lost: u64 = "responses lost on purpose",
    /// Second copies of responses (the duplicate share).
    duplicated: u64 = "responses duplicated on purpose",
    /// Responses with a wrong ID or question, garbage, or as long as can be.
    spoilt: u64 = "responses corrupted on purpose",
    /// Queries dropped because the queue before the rate ceiling was full.
    rate_dropped: u64 = "queries over the rate ceiling",
    /// Queries over UDP dropped by the response rate limit of their network.
    rate_limited: u64 = "queries over the response rate limit",
    /// Queries dropped because too many datagrams waited for the modelled server.
    queue_dropped: u64 = "queries over the modelled queue",
    /// Responses dropped because too many waited to be sent later.
    delayed_dropped: u64 = "delayed responses over the limit",
    /// Datagrams dropped because a receive buffer, or a ring of AF_XDP, was full. The owner of the
    /// driver sets it when serving ends.
    receives_dropped: u64 = "datagrams dropped on receiving",
    /// Datagrams that the driver did not take.
    send_dropped: u64 = "datagrams not sent",
    /// Responses dropped because the client did not read its stream.
    unread_dropped: u64 = "responses to streams that were not read",
    /// Delayed responses whose connection, or stream, was gone when they were due.
    orphaned: u64 = "responses without a connection",
    /// HTTP requests received, those without a query included.
    http_requests: u64 = "HTTP requests received",
    /// HTTP responses with another status than 200: bad requests, and the status share.
    http_statuses: u64 = "HTTP statuses other than 200",
    /// Streams of queries that were reset on purpose (the reset share).
    streams_reset: u64 = "streams reset on purpose",
    /// Streams of queries that clients reset.
    streams_cancelled: u64 = "streams reset by clients",
    /// Queries over DoH and DoQ refused: too many streams, too much of unfinished queries, or after
    /// GOAWAY.
    streams_refused: u64 = "streams refused",
    /// HTTP requests that broke the rules, and messages over DoQ that are no query; their streams
    /// were reset.
    streams_malformed: u64 = "malformed HTTP requests and DoQ messages",
    /// GOAWAYs sent on purpose.
    goaways: u64 = "GOAWAY sent",
    /// Connections ended because they broke HTTP.
    http_failed: u64 = "connections that broke HTTP",
    /// Connections ended because they broke DoQ (RFC 9250, section 4.3.3).
    doq_failed: u64 = "connections that broke DoQ",
    /// Queries on a connection whose limit of queries was reached: not answered.
    unanswered: u64 = "queries after the end of a connection",
    /// Connections accepted and served.
    connections_accepted: ByTransport = "connections accepted",
    /// Times that a connection could not be accepted, mostly for lack of file descriptors; it
    /// waits, and is tried again. The owner of the driver sets it when serving ends.
    accepts_failed: u64 = "connections that could not be accepted",
    /// Connections accepted and ended at once, for the limit on clients.
    connections_refused: ByTransport = "connections refused",
    /// Connections ended in an orderly way by either side.
    connections_closed: ByTransport = "connections closed",
    /// Connections that were idle for too long, among those closed.
    connections_idle: u64 = "connections idle too long",
    /// Connections whose handshake took too long, among the handshakes that failed.
    handshakes_late: u64 = "TLS handshakes that took too long",
    /// Connections closed for their memory, among those reset.
    memory_closed: u64 = "connections closed for memory",
    /// Connections reset by either side, or broken.
    connections_reset: ByTransport = "connections reset",
    /// QUIC connections that had to come back with a token (the retry share, or too many others
    /// that had not proved their address).
    quic_retries: u64 = "QUIC retries",
    /// QUIC connections that were told of no version of use (the version negotiation share).
    quic_versions: u64 = "QUIC version negotiations",
    /// Datagrams that would have begun a QUIC connection and were not answered (the ignore share).
    quic_ignored: u64 = "QUIC initials ignored",
    /// Datagrams that the endpoint answered by itself: stateless resets, other versions.
    quic_answered: u64 = "QUIC resets and other answers",
    /// Datagrams that belong to no QUIC connection and begin none.
    quic_dropped: u64 = "QUIC datagrams dropped",
    /// QUIC connections forgotten on purpose.
    quic_forgotten: u64 = "QUIC connections forgotten",
    /// Queries in the first flight of a resumed QUIC session.
    early_queries: u64 = "QUIC queries in early data",
    /// Handshakes among those completed that resumed a session.
    handshakes_resumed: u64 = "TLS handshakes that resumed a session",
    /// TLS handshakes completed.
    handshakes_completed: u64 = "TLS handshakes completed",
    /// TLS handshakes that failed, those cut off by the client included.
    handshakes_failed: u64 = "TLS handshakes failed",
    /// TLS sessions that failed after the handshake, or did not agree on HTTP/2 for DoH/2.
    tls_failed: u64 = "TLS sessions failed",
}

impl Counters {
    /// Counts a reply to a query.
    #[inline]
    pub(crate) fn count_reply(&mut self, transport: Transport, reply: Reply) {
        match reply {
            Reply::Message | Reply::Mistyped => self.responses.add(transport, 1),
            Reply::Status(_) => self.http_statuses += 1,
            Reply::Reset => self.streams_reset += 1,
            Reply::Malformed => self.streams_malformed += 1,
        }
    }

    #[inline]
    pub(crate) fn count_rcode(&mut self, rcode: u16, responses: u64) {
        self.rcodes[usize::from(rcode).min(RCODES - 1)] += responses;
    }
}

/// A count that can be written on a line.
trait Count: fmt::Display {
    fn total(&self) -> u64;
}

impl Count for u64 {
    fn total(&self) -> u64 {
        *self
    }
}

impl Count for ByTransport {
    fn total(&self) -> u64 {
        ByTransport::total(self)
    }
}

fn write_line(f: &mut fmt::Formatter<'_>, label: &str, count: &impl Count) -> fmt::Result {
    if count.total() == 0 && !matches!(label, "queries received" | "responses sent") {
        return Ok(());
    }
    writeln!(f, "{label:<41} {count}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_told_as_numbers_are_the_same() {
        let mut counters = Counters {
            updates: 3,
            ..Counters::default()
        };
        counters.queries.add(Transport::Doq, 7);
        counters.rcodes[RCODES - 1] = 9;
        let mut numbers = counters.to_numbers();
        assert_eq!(Counters::from_numbers(&numbers), Some(counters));
        numbers.push(0);
        assert_eq!(Counters::from_numbers(&numbers), None);
        assert_eq!(Counters::from_numbers(&numbers[..3]), None);
    }
}
