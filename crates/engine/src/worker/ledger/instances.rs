//! Responses by the server instance that sent them, as identified by its NSID (RFC 5001).
//!
//! Only if queries request it. The first response of an instance costs an allocation. Later ones
//! are looked up by the bytes of the identifier, beginning with the instance that answered last.

use load::Plan;
use measure::instances::{EACH_MAX, Instance, Instances};
use proto::response;

/// Octets of an identifier that are compared; the rest is ignored.
const OCTETS_MAX: usize = 64;

/// What a worker counted by instance.
#[derive(Default)]
pub(crate) struct InstanceCounts {
    /// The identifiers of those in `counts.each`, in the same order.
    identifiers: Vec<Box<[u8]>>,
    /// Which of them answered last.
    last: usize,
    counts: Instances,
}

/// Counters, if the queries of the plan ask for identifiers.
pub(super) fn counters(plan: &Plan) -> Option<Box<InstanceCounts>> {
    plan.questions.edns_uses().nsid.then(Box::default)
}

impl InstanceCounts {
    /// Counts a response of the measured run.
    pub(super) fn count(&mut self, message: &[u8], rcode: u16, service_ns: u64) {
        let Some(nsid) = response::nsid(message).filter(|nsid| !nsid.is_empty()) else {
            self.counts.responses_without += 1;
            return;
        };
        let nsid = &nsid[..nsid.len().min(OCTETS_MAX)];
        match self.position(nsid) {
            Some(position) => {
                self.last = position;
                self.counts.each[position].count(rcode, service_ns);
            }
            None => self.counts.responses_of_others += 1,
        }
    }

    fn position(&mut self, nsid: &[u8]) -> Option<usize> {
        let is_it = |it: &[u8]| it == nsid;
        if self.identifiers.get(self.last).is_some_and(|it| is_it(it)) {
            return Some(self.last);
        }
        let known = self.identifiers.iter().position(|it| is_it(it));
        known.or_else(|| {
            let is_full = self.identifiers.len() == EACH_MAX;
            (!is_full).then(|| {
                self.identifiers.push(nsid.into());
                self.counts.each.push(Instance::new(shown(nsid)));
                self.identifiers.len() - 1
            })
        })
    }

    /// All that was counted, in the order of the identifiers.
    pub(super) fn counts(&self) -> Instances {
        let mut counts = Instances::default();
        counts.merge(&self.counts);
        counts
    }
}

/// An identifier as printed: as text if it is text, which is usual but not required (RFC 5001,
/// section 3.1).
fn shown(nsid: &[u8]) -> String {
    let is_text = nsid.iter().all(|it| it.is_ascii_graphic() || *it == b' ');
    match is_text {
        true => String::from_utf8_lossy(nsid).into_owned(),
        false => nsid
            .iter()
            .fold("0x".to_owned(), |text, octet| format!("{text}{octet:02x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A response whose OPT record has this identifier.
    fn response(nsid: &[u8]) -> Vec<u8> {
        let mut message = vec![0, 1, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        message.extend([0, 0, 41, 4, 208, 0, 0, 0, 0]);
        let octets = nsid.len() as u16;
        message.extend((octets + 4).to_be_bytes());
        message.extend([0, 3]);
        message.extend(octets.to_be_bytes());
        message.extend(nsid);
        message
    }

    #[test]
    fn each_instance_has_its_responses_and_nothing_is_lost() {
        let mut counts = InstanceCounts::default();
        for (nsid, rcode) in [("b", 0), ("a", 2), ("b", 0), ("b", 3)] {
            counts.count(&response(nsid.as_bytes()), rcode, 1_000);
        }
        counts.count(&response(&[0, 255]), 0, 1_000);
        counts.count(&response(&[]), 0, 1_000);
        counts.count(&[0, 1, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0, 1_000);
        for number in 0..EACH_MAX {
            counts.count(&response(format!("c{number}").as_bytes()), 0, 1_000);
        }
        let counts = counts.counts();
        let named = |nsid: &str| counts.each.iter().find(|it| it.nsid == nsid);
        assert_eq!(named("b").map(|it| it.responses), Some(3));
        assert_eq!(named("a").map(|it| it.rcodes.by_rcode[2]), Some(1));
        assert_eq!(named("0x00ff").map(|it| it.service.count()), Some(1));
        assert_eq!(counts.each.len(), EACH_MAX);
        assert_eq!(
            (counts.responses_without, counts.responses_of_others),
            (2, 3)
        );
    }

    #[test]
    fn instances_are_told_apart_by_the_first_64_octets() {
        let mut counts = InstanceCounts::default();
        counts.count(&response(&[b'x'; 64]), 0, 1_000);
        counts.count(&response(&[b'x'; 70]), 0, 1_000);
        let counts = counts.counts();
        assert_eq!(counts.each.len(), 1);
        assert_eq!(counts.each[0].nsid, "x".repeat(64));
    }
}
