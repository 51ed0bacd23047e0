//! Flows that the firewall of this host refused.

use crate::rules::situations::*;

#[test]
fn flows_that_conntrack_refused_are_named() {
    let mut record = saturated();
    record.network.kernel.insert("Conntrack.Dropped".into(), 5);
    let rule = "--dport 53 -j NOTRACK";
    told(&record, "conntrack").problem("refused 5 new flows", rule);
    told(&record, "conntrack").problem("", "nf_conntrack_max=1048576");
}
