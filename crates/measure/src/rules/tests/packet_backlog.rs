//! Packets dropped between interface and sockets.

use crate::rules::situations::*;

/// A run on a host whose backlog dropped `packets`, and in which `lost` queries got no response.
fn dropped(packets: u64, lost: u64) -> RunRecord {
    let mut record = in_time(10_000.0);
    lose(&mut record, lost);
    let kernel = &mut record.network.kernel;
    kernel.insert("Softnet.Dropped".into(), packets);
    let sysctls = &mut record.hosts[0].sysctls;
    sysctls.insert("net.core.netdev_max_backlog".into(), "8192".into());
    record
}

#[test]
fn a_full_packet_backlog_is_to_be_longer_than_it_is() {
    let larger = "netdev_max_backlog=32768";
    told(&dropped(500, 1_000), "packet backlog").problem("dropped 500 packets", larger);
}

#[test]
fn packets_of_others_in_the_backlog_are_no_problem_of_the_run() {
    // All was answered, few queries were lost, or far more than the backlog dropped.
    for (packets, lost) in [(50_000, 0), (50_000, 9), (499, 1_000)] {
        told(&dropped(packets, lost), "packet backlog").warning("packets", "netdev_max_backlog");
    }
    assert_eq!(judge(&dropped(50_000, 0)).limit, Limit::Rate);
}
