//! Datagrams that the kernel of this host dropped on sending.

use crate::rules::situations::*;

#[test]
fn refused_sends_that_the_kernel_counted_are_the_networks_limit() {
    let mut record = saturated();
    change_last(&mut record, |interval| {
        interval.counts.offered += 1_000;
        interval.counts.not_sent.send_failed += 1_000;
    });
    record
        .network
        .kernel
        .insert("Udp.SndbufErrors".into(), 1_000);
    judged(
        &record,
        Limit::Network,
        "dropped 1,000 datagrams on sending",
        "net.core.wmem_max",
    );
    // More than this run missed are those of others.
    record
        .network
        .kernel
        .insert("Udp.SndbufErrors".into(), 90_000);
    assert_ne!(judge(&record).limit, Limit::Network);
}
