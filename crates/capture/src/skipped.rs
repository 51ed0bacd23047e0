//! What a capture holds that did not become an [`Observed`](crate::Observed) query, by reason.

/// Why something was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Skip {
    /// A packet that is neither IPv4 nor IPv6: ARP and others.
    NotIp,
    /// An IP packet that is neither UDP nor TCP.
    NotUdpNorTcp,
    /// A datagram or segment of no port that DNS is expected on.
    OtherPort,
    /// A datagram or segment of port 853 or 443, whose content is encrypted.
    Encrypted,
    /// A packet with a malformed header, or one that ends within its headers.
    MalformedPacket,
    /// A message or segment that the capture's snapshot length cut off.
    CutBySnapshotLength,
    /// A packet of an interface with a link type that is not understood.
    UnknownLinkType,
    /// An IP fragment whose datagram was never completed, that overlaps another, or for which
    /// there was no room.
    Fragment,
    /// A gap in a TCP stream: segments that were not captured.
    StreamGap,
    /// Octets of a TCP stream between a gap, or the start of the capture, and the next message.
    StreamOctets,
    /// A TCP segment that repeats octets already seen.
    RetransmittedSegment,
    /// A TCP segment for which there was no room among those out of order.
    SegmentOverflow,
    /// A TCP connection forgotten because too many were open.
    ConnectionOverflow,
    /// Octets that are not a DNS message, on a port that DNS is expected on.
    NotDns,
    /// A message with another opcode than QUERY, such as NOTIFY or UPDATE.
    OtherOpcode,
    /// A message with no question, or more than one.
    NotOneQuestion,
    /// A query that was seen already and has no response yet: sent again by the client, or
    /// captured twice.
    RepeatedQuery,
    /// A response whose query was not captured.
    ResponseWithoutQuery,
    /// A query given up waiting for its response because too many were open; it came out without.
    PairingOverflow,
    /// A dnstap message of another kind than a query to this server or its response: what a
    /// resolver or forwarder asked others.
    OtherDnstapMessage,
    /// A frame that is not a dnstap message, or one without what a query needs.
    MalformedFrame,
    /// A block of pcapng without packets, such as name resolutions and statistics.
    OtherBlock,
    /// A packet or log line without a time; the query came out with the time before it.
    WithoutTime,
    /// A line of a log that is about something else than a query.
    OtherLine,
    /// A line of a log that looks like a query and cannot be understood.
    MalformedLine,
}

impl Skip {
    /// All reasons, in the order in which they are listed.
    pub const ALL: [Skip; 25] = [
        Skip::NotIp,
        Skip::NotUdpNorTcp,
        Skip::OtherPort,
        Skip::Encrypted,
        Skip::MalformedPacket,
        Skip::CutBySnapshotLength,
        Skip::UnknownLinkType,
        Skip::Fragment,
        Skip::StreamGap,
        Skip::StreamOctets,
        Skip::RetransmittedSegment,
        Skip::SegmentOverflow,
        Skip::ConnectionOverflow,
        Skip::NotDns,
        Skip::OtherOpcode,
        Skip::NotOneQuestion,
        Skip::RepeatedQuery,
        Skip::ResponseWithoutQuery,
        Skip::PairingOverflow,
        Skip::OtherDnstapMessage,
        Skip::MalformedFrame,
        Skip::OtherBlock,
        Skip::WithoutTime,
        Skip::OtherLine,
        Skip::MalformedLine,
    ];

    /// What is counted, in the plural, for people.
    pub const fn what(self) -> &'static str {
        match self {
            Skip::NotIp => "packets other than IP",
            Skip::NotUdpNorTcp => "IP packets other than UDP and TCP",
            Skip::OtherPort => "packets of other ports",
            Skip::Encrypted => "packets of encrypted DNS",
            Skip::MalformedPacket => "malformed packets",
            Skip::CutBySnapshotLength => "packets cut off by the snapshot length",
            Skip::UnknownLinkType => "packets of an unknown link type",
            Skip::Fragment => "IP fragments without the rest",
            Skip::StreamGap => "gaps in TCP streams",
            Skip::StreamOctets => "bytes of TCP streams before a message was found",
            Skip::RetransmittedSegment => "TCP segments sent again",
            Skip::SegmentOverflow => "TCP segments too far out of order",
            Skip::ConnectionOverflow => "TCP connections beyond those kept",
            Skip::NotDns => "payloads that are not DNS",
            Skip::OtherOpcode => "messages other than queries",
            Skip::NotOneQuestion => "messages without exactly one question",
            Skip::RepeatedQuery => "queries sent again",
            Skip::ResponseWithoutQuery => "responses without their query",
            Skip::PairingOverflow => "queries given up waiting for a response",
            Skip::OtherDnstapMessage => "dnstap messages of a resolver's own queries",
            Skip::MalformedFrame => "malformed dnstap frames",
            Skip::OtherBlock => "pcapng blocks without packets",
            Skip::WithoutTime => "packets or lines without a time",
            Skip::OtherLine => "lines other than queries",
            Skip::MalformedLine => "lines that cannot be understood",
        }
    }
}

/// How often each [`Skip`] happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    counts: [u64; Skip::ALL.len()],
}

impl Skipped {
    /// Counts one.
    pub(crate) fn count(&mut self, reason: Skip) {
        self.add(reason, 1);
    }

    /// Counts several.
    pub(crate) fn add(&mut self, reason: Skip, more: u64) {
        let count = &mut self.counts[reason as usize];
        *count = count.saturating_add(more);
    }

    /// How often it happened for this reason.
    pub fn get(&self, reason: Skip) -> u64 {
        self.counts[reason as usize]
    }

    /// The reasons that happened, with how often.
    pub fn iter(&self) -> impl Iterator<Item = (Skip, u64)> {
        let all = Skip::ALL
            .into_iter()
            .map(|reason| (reason, self.get(reason)));
        all.filter(|(_, count)| *count > 0)
    }

    /// True if nothing was skipped.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Adds the counts of another capture.
    pub fn merge(&mut self, other: &Skipped) {
        for (reason, count) in other.iter() {
            self.add(reason, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_count_and_text() {
        let mut skipped = Skipped::default();
        assert!(skipped.is_empty());
        for (index, reason) in Skip::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            skipped.add(reason, index as u64 + 1);
        }
        let mut twice = skipped.clone();
        twice.merge(&skipped);
        let texts: std::collections::BTreeSet<_> =
            twice.iter().map(|(reason, _)| reason.what()).collect();
        assert_eq!(texts.len(), Skip::ALL.len());
        assert_eq!(twice.get(Skip::MalformedLine), 50);
    }
}
