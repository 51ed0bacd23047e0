//! Responses by server instance, identified by NSID (RFC 5001): instances behind an anycast
//! address, a load balancer or a Service of Kubernetes.
//!
//! A worker counts them in `crates/engine/src/worker/ledger/instances.rs`. Records merge by
//! identifier.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counts::{Counts, Rcodes};
use crate::histogram::Histogram;

/// Instances whose responses are counted each.
pub const EACH_MAX: usize = 64;

/// The responses of the measured run by the instance that sent them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Instances {
    /// Instances in the order of their identifiers, at most 64.
    #[schemars(length(max = 64))]
    pub each: Vec<Instance>,
    /// Responses of further instances.
    pub responses_of_others: u64,
    /// Responses without an identifier.
    pub responses_without: u64,
}

/// Responses of one instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Its identifier: as text where it is printable ASCII, and as hexadecimal digits after `0x`
    /// otherwise; the first 64 bytes of a longer one.
    pub nsid: String,
    /// Its responses.
    pub responses: u64,
    /// Their RCODEs.
    pub rcodes: Rcodes,
    /// The time from sending a query until its response.
    pub service: Histogram,
}

impl Instance {
    /// An instance that has not answered yet.
    pub fn new(nsid: String) -> Self {
        Instance {
            nsid,
            ..Instance::default()
        }
    }

    /// Counts a response.
    pub fn count(&mut self, rcode: u16, service_ns: u64) {
        self.responses += 1;
        self.rcodes.record(rcode);
        self.service.record(service_ns);
    }

    fn merge(&mut self, other: &Instance) {
        self.responses += other.responses;
        self.rcodes.add(&other.rcodes);
        self.service.merge(&other.service);
    }
}

impl Instances {
    /// Adds what others counted. Instances beyond the maximum become one with the others.
    pub fn merge(&mut self, other: &Instances) {
        self.responses_of_others += other.responses_of_others;
        self.responses_without += other.responses_without;
        for one in &other.each {
            match self.each.iter().position(|own| own.nsid == one.nsid) {
                Some(known) => self.each[known].merge(one),
                None if self.each.len() < EACH_MAX => self.each.push(one.clone()),
                None => self.responses_of_others += one.responses,
            }
        }
        self.each.sort_by(|a, b| a.nsid.cmp(&b.nsid));
    }

    /// Checks that each response belongs to an instance or to none.
    pub(crate) fn check(&self, counts: &Counts) -> Result<(), String> {
        let mut all = self.responses_of_others + self.responses_without;
        for it in &self.each {
            if it.rcodes.total() != it.responses || it.service.count() != it.responses {
                return Err(format!(
                    "instance {}: {} responses, {} RCODEs and {} latencies",
                    it.nsid,
                    it.responses,
                    it.rcodes.total(),
                    it.service.count()
                ));
            }
            all += it.responses;
        }
        match all == counts.responses {
            true => Ok(()),
            false => Err(format!(
                "{} responses, but {all} of server instances",
                counts.responses
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instances(answered: &[(&str, u64)]) -> Instances {
        let each = answered.iter().map(|(nsid, responses)| {
            let mut instance = Instance::new((*nsid).to_owned());
            for _ in 0..*responses {
                instance.count(0, 1_000);
            }
            instance
        });
        Instances {
            each: each.collect(),
            ..Instances::default()
        }
    }

    #[test]
    fn records_merge_by_identifier_and_those_beyond_the_maximum_are_others() {
        let mut all = instances(&[("b", 2)]);
        let mut other = instances(&[("a", 1), ("b", 3)]);
        (other.responses_without, other.responses_of_others) = (4, 5);
        all.merge(&other);
        assert_eq!(all.each, instances(&[("a", 1), ("b", 5)]).each);
        assert_eq!((all.responses_without, all.responses_of_others), (4, 5));
        let names: Vec<String> = (0..EACH_MAX).map(|number| format!("c{number}")).collect();
        let many: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        all.merge(&instances(&many));
        assert_eq!(all.each.len(), EACH_MAX);
        assert_eq!(all.responses_of_others, 5 + 2);
        let mut counts = Counts {
            responses: 6 + 4 + 5 + EACH_MAX as u64,
            ..Counts::default()
        };
        assert_eq!(all.check(&counts), Ok(()));
        counts.responses += 1;
        assert!(all.check(&counts).is_err());
        all.each[0].responses += 1;
        assert!(all.check(&counts).is_err());
    }
}
