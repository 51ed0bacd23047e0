//! Connections that waited too long for the target to accept them.

use crate::rules::situations::*;

#[test]
fn a_listen_queue_that_overflows_is_seen_in_three_ways() {
    let mut record = saturated();
    record.scenario.transport = Transport::Tcp.into();
    change_last(&mut record, |it| it.counts.connections.failed.timed_out = 3);
    let queue = "tcp-listen-queue 4096;";
    told(&record, "listen queue").warning("3 connection attempts timed out", queue);
    change_last(&mut record, |interval| {
        let times = &mut interval.distributions.connections.tcp_connect;
        times.record_many(200_000, 10);
        times.record(1_030 * MS);
    });
    told(&record, "listen queue").warning("as when a SYN is sent again", "somaxconn=4096");
    record.scenario.target = "127.0.0.1:53".into();
    let overflows = ("TcpExt.ListenOverflows".to_owned(), 12);
    record.network.kernel.extend([overflows]);
    told(&record, "listen queue").warning("12 SYNs found", "tcp_max_syn_backlog=8192");
}
