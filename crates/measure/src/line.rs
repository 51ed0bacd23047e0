//! Statistics of a delay line (`throng line`).
//!
//! A packet is one IP packet: over UDP a query or a response, over TCP a segment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Histogram;

/// A line between two networks, and the outcome of all that went over it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// The network namespaces at its ends: near, where load comes from, and far.
    pub between: [String; 2],
    /// Seed of all chances.
    pub seed: u64,
    /// How long it moved packets, ns.
    pub duration_ns: u64,
    /// CPU time of its one thread, ns.
    pub cpu_ns: u64,
    /// How long that thread was ready to run but had to wait for a CPU, ns.
    pub cpu_waited_ns: u64,
    /// From near to far, the way of queries.
    pub to_far: Direction,
    /// From far to near, the way of responses.
    pub to_near: Direction,
}

/// One direction of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Direction {
    /// What was asked of it.
    pub asked: Impairment,
    /// Packets that it took.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub octets: u64,
    /// Packets of which there is a copy, by chance.
    pub duplicated: u64,
    /// Packets that were held back, by chance.
    pub held_back: u64,
    /// Packets and copies that left it at its other end.
    pub delivered: u64,
    /// Of those, packets that left after one that had come later.
    pub overtaken: u64,
    /// Packets and copies that were under way when this account began.
    #[serde(default)]
    pub under_way_at_start: u64,
    /// Packets and copies that were under way when it ended.
    pub under_way: u64,
    /// Packets and copies that did not leave it, by cause.
    pub lost: Lost,
    /// Packets before the line that the interface dropped, because the line did not read them in
    /// time. They are not among `packets`.
    pub not_read: u64,
    /// Multicast and what is no IP packet: what interfaces say of themselves. The line takes none.
    pub not_carried: u64,
    /// How long after they were due packets had left the line, ns: what it added beyond what was
    /// asked.
    pub late: Histogram,
    /// How long packets may have waited before they were read, ns, while the line was busy: at
    /// most, and without the time that its thread waited for a CPU. Delays count from when a packet
    /// was read.
    pub unread: Histogram,
}

/// What is asked of one direction; shares are from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Impairment {
    /// How long each packet takes, ns.
    pub delay_ns: u64,
    /// What is added to it at random, from nothing to this, evenly, ns. Packets keep their order:
    /// none leaves before one that had come earlier.
    pub jitter_ns: u64,
    /// Share of packets that are lost.
    pub loss: f64,
    /// Share of packets that are held back, so that later ones may overtake them.
    pub reorder: f64,
    /// For how long those are held back, ns.
    pub reorder_by_ns: u64,
    /// Share of packets that arrive twice.
    pub duplicate: f64,
    /// Bits a second, IP headers included; none for no limit.
    pub rate_bps: Option<u64>,
    /// Packets that may wait for their turn at that rate.
    pub queue: u64,
}

/// Packets that did not leave the line, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lost {
    /// By the chance that was asked for.
    pub asked_for: u64,
    /// The queue before the rate was full.
    pub queue_full: u64,
    /// More was under way than the line has memory for.
    pub too_much_under_way: u64,
    /// The interface at the other end did not take them.
    pub refused: u64,
}

impl Direction {
    /// One that has seen nothing.
    pub fn new(asked: Impairment) -> Self {
        Direction {
            asked,
            packets: 0,
            octets: 0,
            duplicated: 0,
            held_back: 0,
            delivered: 0,
            overtaken: 0,
            under_way_at_start: 0,
            under_way: 0,
            lost: Lost::default(),
            not_read: 0,
            not_carried: 0,
            late: Histogram::new(),
            unread: Histogram::new(),
        }
    }

    /// Whether each packet and each copy became one thing.
    pub fn adds_up(&self) -> bool {
        let came = self.under_way_at_start + self.packets + self.duplicated;
        came == self.delivered + self.under_way + self.lost.total()
    }

    /// Packets and copies that did not come out of it, for whatever reason.
    pub fn lost_total(&self) -> u64 {
        self.lost.total() + self.not_read
    }

    /// Adds what a line did at another time, of which the same was asked.
    pub fn add(&mut self, other: &Direction) {
        let Lost {
            asked_for,
            queue_full,
            too_much_under_way,
            refused,
        } = other.lost;
        for (sum, other) in [
            (&mut self.packets, other.packets),
            (&mut self.octets, other.octets),
            (&mut self.duplicated, other.duplicated),
            (&mut self.held_back, other.held_back),
            (&mut self.delivered, other.delivered),
            (&mut self.overtaken, other.overtaken),
            (&mut self.under_way_at_start, other.under_way_at_start),
            (&mut self.under_way, other.under_way),
            (&mut self.lost.asked_for, asked_for),
            (&mut self.lost.queue_full, queue_full),
            (&mut self.lost.too_much_under_way, too_much_under_way),
            (&mut self.lost.refused, refused),
            (&mut self.not_read, other.not_read),
            (&mut self.not_carried, other.not_carried),
        ] {
            *sum += other;
        }
        self.late.merge(&other.late);
        self.unread.merge(&other.unread);
    }
}

impl Lost {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.asked_for + self.queue_full + self.too_much_under_way + self.refused
    }
}
