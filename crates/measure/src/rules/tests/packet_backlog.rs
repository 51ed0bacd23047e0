//! Packets dropped between interface and sockets.

use crate::rules::situations::*;

#[test]
fn a_full_packet_backlog_is_to_be_longer_than_it_is() {
    let mut record = in_time(10_000.0);
    lose(&mut record, 1_000);
    record.network.kernel.insert("Softnet.Dropped".into(), 50);
    record.hosts[0]
        .sysctls
        .insert("net.core.netdev_max_backlog".into(), "8192".into());
    let larger = "netdev_max_backlog=32768";
    told(&record, "packet backlog").problem("dropped 50 packets", larger);
}
