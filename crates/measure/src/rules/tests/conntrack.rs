//! Flows that the firewall of this host refused.

use crate::rules::situations::*;

/// A run on a host whose connection tracking refused `flows`, and in which `lost` queries got no
/// response.
fn refused(flows: u64, lost: u64) -> RunRecord {
    let mut record = saturated();
    lose(&mut record, lost);
    let kernel = &mut record.network.kernel;
    kernel.insert("Conntrack.Dropped".into(), flows);
    record
}

#[test]
fn flows_that_conntrack_refused_are_named() {
    let record = refused(50, 100);
    let rule = "--dport 53 -j NOTRACK";
    told(&record, "conntrack").problem("refused 50 new flows", rule);
    told(&record, "conntrack").problem("", "nf_conntrack_max=1048576");
}

#[test]
fn refused_flows_that_are_not_of_this_run_are_no_problem() {
    // All network namespaces share the counter: all was answered, or far more was lost.
    for (flows, lost) in [(5_000, 0), (49, 100)] {
        let record = refused(flows, lost);
        told(&record, "conntrack").warning("new flows", "NOTRACK");
        assert_eq!(judge(&record).limit, Limit::Server, "{flows}, {lost}");
    }
}

#[test]
fn a_refused_flow_delays_a_connection_or_is_not_sent() {
    let mut delayed = refused(5, 0);
    delayed.scenario.transport = Transport::Tcp.into();
    let connected = |record: &mut RunRecord, took_ns| {
        change_last(record, |interval| {
            let times = &mut interval.distributions.connections.tcp_connect;
            times.record_many(took_ns, 10);
        });
    };
    connected(&mut delayed, MS);
    told(&delayed, "conntrack").warning("5 new flows", "");
    connected(&mut delayed, 1_030 * MS);
    told(&delayed, "conntrack").problem("5 new flows", "");
    let mut not_sent = refused(50, 0);
    change_last(&mut not_sent, |interval| {
        interval.counts.offered += 100;
        interval.counts.not_sent.send_failed += 100;
    });
    told(&not_sent, "conntrack").problem("50 new flows", "");
}
