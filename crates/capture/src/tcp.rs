//! TCP streams put together from their segments (RFC 9293, section 3.10), and cut into messages.
//!
//! Segments may come out of order, twice, or not at all. After a gap a stream is read on from the
//! next segment that starts with a message, as almost all do. What is held at a time is never more
//! than was captured, and bounded for each stream.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use proto::framing::Deframer;

use crate::message;
use crate::skipped::{Skip, Skipped};

/// Connections that are followed at the same time.
const CONNECTIONS_MAX: usize = 1 << 20;
/// Segments of one direction that wait for an earlier one.
const WAITING_MAX: usize = 256;
/// Octets between what was read last and a segment: the largest window (RFC 7323, section 2.3).
const WINDOW_OCTETS_MAX: i32 = 1 << 30;

/// A segment and where it belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) at_ns: u64,
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    pub(crate) is_from_client: bool,
    pub(crate) sequence: u32,
    pub(crate) acknowledgment: Option<u32>,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) rst: bool,
    pub(crate) payload: &'a [u8],
    /// Octets at the end of the payload that were not captured.
    pub(crate) missing_octets: usize,
}

/// A message on a connection.
#[derive(Debug)]
pub(crate) struct StreamMessage {
    /// Number of the connection, from 0.
    pub(crate) connection: u64,
    pub(crate) octets: Vec<u8>,
}

/// All connections of a capture.
#[derive(Default)]
pub(crate) struct Streams {
    connections: HashMap<(SocketAddr, SocketAddr), Connection>,
    opened: u64,
}

struct Connection {
    number: u64,
    last_ns: u64,
    /// Sequence number of the client's SYN, if that was seen.
    syn: Option<u32>,
    from_client: Half,
    from_server: Half,
}

/// One direction of a connection. Offsets count octets of the stream, from wherever it was seen
/// first.
#[derive(Default)]
struct Half {
    /// Offset and sequence number of the octet expected next; `None` before the first segment.
    next: Option<(u64, u32)>,
    waiting: BTreeMap<u64, Vec<u8>>,
    /// Where the stream ends.
    end: Option<u64>,
    /// False while it is not known where messages start.
    is_in_step: bool,
    deframer: Deframer,
}

impl Streams {
    /// Takes in a segment; the messages that it completes are added to `messages`.
    pub(crate) fn handle(
        &mut self,
        segment: &Segment<'_>,
        messages: &mut Vec<StreamMessage>,
        skipped: &mut Skipped,
    ) {
        let key = (segment.client, segment.server);
        if segment.syn && segment.is_from_client {
            let known = self.connections.get(&key);
            if known.is_some_and(|known| known.syn != Some(segment.sequence)) {
                // The same ports once more.
                self.close(&key, skipped);
            }
        }
        if !self.connections.contains_key(&key) {
            if segment.rst || (segment.payload.is_empty() && !segment.syn) {
                return;
            }
            self.open(segment, skipped);
        }
        let Some(connection) = self.connections.get_mut(&key) else {
            return;
        };
        connection.handle(segment, messages, skipped);
        if segment.rst || connection.is_finished() {
            self.close(&key, skipped);
        }
    }

    /// True if such a connection is followed.
    pub(crate) fn is_known(&self, client: SocketAddr, server: SocketAddr) -> bool {
        self.connections.contains_key(&(client, server))
    }

    /// Counts what is left at the end of the capture.
    pub(crate) fn finish(&mut self, skipped: &mut Skipped) {
        for (_, connection) in self.connections.drain() {
            connection.count_rest(skipped);
        }
    }

    fn open(&mut self, segment: &Segment<'_>, skipped: &mut Skipped) {
        if self.connections.len() >= CONNECTIONS_MAX {
            self.forget_oldest(skipped);
        }
        let is_start = segment.syn && segment.is_from_client;
        let connection = Connection {
            number: self.opened,
            last_ns: segment.at_ns,
            syn: is_start.then_some(segment.sequence),
            from_client: Half::default(),
            from_server: Half::default(),
        };
        self.opened += 1;
        let key = (segment.client, segment.server);
        self.connections.insert(key, connection);
    }

    fn close(&mut self, key: &(SocketAddr, SocketAddr), skipped: &mut Skipped) {
        if let Some(connection) = self.connections.remove(key) {
            connection.count_rest(skipped);
        }
    }

    /// Forgets the eighth of the connections that was silent longest.
    fn forget_oldest(&mut self, skipped: &mut Skipped) {
        let mut lasts: Vec<u64> = self.connections.values().map(|open| open.last_ns).collect();
        let (_, limit, _) = lasts.select_nth_unstable(CONNECTIONS_MAX / 8);
        let limit = *limit;
        self.connections.retain(|_, connection| {
            let stays = connection.last_ns > limit;
            if !stays {
                skipped.count(Skip::ConnectionOverflow);
                connection.count_rest(skipped);
            }
            stays
        });
    }
}

impl Connection {
    fn handle(
        &mut self,
        segment: &Segment<'_>,
        messages: &mut Vec<StreamMessage>,
        skipped: &mut Skipped,
    ) {
        self.last_ns = segment.at_ns;
        let (half, other) = match segment.is_from_client {
            true => (&mut self.from_client, &mut self.from_server),
            false => (&mut self.from_server, &mut self.from_client),
        };
        let mut sink = Sink {
            connection: self.number,
            is_from_client: segment.is_from_client,
            messages,
            skipped,
        };
        half.handle(segment, &mut sink);
        if let Some(acknowledgment) = segment.acknowledgment {
            sink.is_from_client = !segment.is_from_client;
            other.handle_acknowledgment(acknowledgment, &mut sink);
        }
    }

    fn is_finished(&self) -> bool {
        self.from_client.is_finished() && self.from_server.is_finished()
    }

    fn count_rest(&self, skipped: &mut Skipped) {
        for half in [&self.from_client, &self.from_server] {
            if !half.waiting.is_empty() {
                skipped.count(Skip::StreamGap);
            }
            let waiting: usize = half.waiting.values().map(Vec::len).sum();
            let octets = waiting + half.deframer.partial_octets();
            skipped.add(Skip::StreamOctets, octets as u64);
        }
    }
}

/// Where messages and counts of one direction go.
struct Sink<'a> {
    connection: u64,
    is_from_client: bool,
    messages: &'a mut Vec<StreamMessage>,
    skipped: &'a mut Skipped,
}

impl Half {
    fn is_finished(&self) -> bool {
        match (self.next, self.end) {
            (Some((next, _)), Some(end)) => next >= end,
            _ => false,
        }
    }

    fn handle(&mut self, segment: &Segment<'_>, sink: &mut Sink<'_>) {
        let start = segment.sequence.wrapping_add(u32::from(segment.syn));
        let (next, next_sequence) = *self.next.get_or_insert_with(|| {
            self.is_in_step = segment.syn;
            // Above zero, so that what was sent before has an offset too.
            (1 << 32, start)
        });
        let distance = start.wrapping_sub(next_sequence).cast_signed();
        if !(-WINDOW_OCTETS_MAX..=WINDOW_OCTETS_MAX).contains(&distance) {
            sink.skipped.count(Skip::MalformedPacket);
            return;
        }
        let offset = next.saturating_add_signed(i64::from(distance));
        let end = offset + (segment.payload.len() + segment.missing_octets) as u64;
        if segment.fin {
            self.end = Some(end);
        }
        self.insert(offset, segment.payload, sink);
        if segment.missing_octets > 0 {
            sink.skipped.count(Skip::CutBySnapshotLength);
            self.skip_to(end, sink);
        }
    }

    /// Takes in what is next, keeps what comes later, drops what was there.
    fn insert(&mut self, offset: u64, payload: &[u8], sink: &mut Sink<'_>) {
        let Some((next, _)) = self.next.filter(|_| !payload.is_empty()) else {
            return;
        };
        if offset > next {
            match self.waiting.get(&offset) {
                Some(known) if known.len() >= payload.len() => {
                    sink.skipped.count(Skip::RetransmittedSegment);
                }
                _ => {
                    self.waiting.insert(offset, payload.to_vec());
                }
            }
            if self.waiting.len() > WAITING_MAX {
                sink.skipped.count(Skip::SegmentOverflow);
                let first = self
                    .waiting
                    .first_key_value()
                    .map_or(next, |(&first, _)| first);
                self.skip_to(first, sink);
            }
            return;
        }
        self.deliver(offset, payload, sink);
        self.deliver_waiting(sink);
    }

    /// Hands on the part of a segment that is new.
    fn deliver(&mut self, offset: u64, payload: &[u8], sink: &mut Sink<'_>) {
        let Some((next, sequence)) = self.next else {
            return;
        };
        let known = usize::try_from(next.saturating_sub(offset)).unwrap_or(usize::MAX);
        if known > 0 {
            sink.skipped.count(Skip::RetransmittedSegment);
        }
        let Some(new) = payload.get(known..).filter(|new| !new.is_empty()) else {
            return;
        };
        let octets = new.len() as u32; // a packet is not longer than a MiB
        self.next = Some((next + new.len() as u64, sequence.wrapping_add(octets)));
        if !self.is_in_step {
            if !starts_message(new, sink.is_from_client) {
                sink.skipped.add(Skip::StreamOctets, new.len() as u64);
                return;
            }
            self.is_in_step = true;
        }
        let (connection, messages) = (sink.connection, &mut *sink.messages);
        self.deframer.handle_bytes(new, |message| {
            messages.push(StreamMessage {
                connection,
                octets: message.to_vec(),
            });
        });
    }

    fn deliver_waiting(&mut self, sink: &mut Sink<'_>) {
        while let Some(entry) = self.waiting.first_entry() {
            if self.next.is_none_or(|(next, _)| *entry.key() > next) {
                return;
            }
            let (offset, payload) = entry.remove_entry();
            self.deliver(offset, &payload, sink);
        }
    }

    /// The receiver has everything before this. What we do not have, although later segments came,
    /// was not captured.
    fn handle_acknowledgment(&mut self, acknowledgment: u32, sink: &mut Sink<'_>) {
        let (Some((next, sequence)), Some((&first, _))) =
            (self.next, self.waiting.first_key_value())
        else {
            return;
        };
        let distance = acknowledgment.wrapping_sub(sequence).cast_signed();
        if (1..=WINDOW_OCTETS_MAX).contains(&distance) {
            let acknowledged = next + u64::from(distance.cast_unsigned());
            if acknowledged >= first {
                self.skip_to(first, sink);
            }
        }
    }

    /// Gives up what is missing before `offset`.
    fn skip_to(&mut self, offset: u64, sink: &mut Sink<'_>) {
        let Some((next, sequence)) = self.next.filter(|&(next, _)| next < offset) else {
            return;
        };
        sink.skipped.count(Skip::StreamGap);
        let partial = self.deframer.partial_octets() as u64;
        sink.skipped.add(Skip::StreamOctets, partial);
        self.deframer = Deframer::default();
        self.is_in_step = false;
        let octets = (offset - next) as u32; // within a window
        self.next = Some((offset, sequence.wrapping_add(octets)));
        self.deliver_waiting(sink);
    }
}

/// True if a message with its prefix seems to start here.
fn starts_message(octets: &[u8], is_from_client: bool) -> bool {
    let Some((prefix, rest)) = octets.split_first_chunk() else {
        return false;
    };
    let message_octets = usize::from(u16::from_be_bytes(*prefix));
    let message = &rest[..message_octets.min(rest.len())];
    let read = message::read(message);
    read.is_ok_and(|message| message.is_response != is_from_client && message.question.is_some())
}
