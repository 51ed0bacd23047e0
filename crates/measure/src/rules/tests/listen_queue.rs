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

/// A run against a server on this host, in whose network namespace listen queues overflowed, and
/// whose connections opened within 0.2 ms.
fn overflowed(transport: Transport) -> RunRecord {
    let mut record = saturated();
    record.scenario.transport = transport.into();
    record.scenario.target = "127.0.0.1:53".into();
    change_last(&mut record, |interval| {
        let times = &mut interval.distributions.connections;
        times.tcp_connect.record_many(200_000, 10);
        times.first_query.record_many(10 * MS, 10);
    });
    let overflows = ("TcpExt.ListenOverflows".to_owned(), 5_000);
    record.network.kernel.extend([overflows]);
    record
}

#[test]
fn listen_queues_of_other_programs_are_not_the_targets() {
    for transport in [Transport::Tcp, Transport::Udp, Transport::Doq] {
        assert_eq!(found_on(&overflowed(transport), "listen queue"), None);
    }
    // The kernel of the target counts elsewhere.
    let mut elsewhere = overflowed(Transport::Tcp);
    elsewhere.scenario.target = "192.0.2.1:53".into();
    lose(&mut elsewhere, 100);
    assert_eq!(found_on(&elsewhere, "listen queue"), None);
}

#[test]
fn an_overflow_delays_a_connection_or_loses_what_it_carries() {
    let mut lossy = overflowed(Transport::Tcp);
    lose(&mut lossy, 100);
    told(&lossy, "listen queue").warning("5,000 SYNs found", "somaxconn=4096");
    let mut slow = overflowed(Transport::Tcp);
    change_last(&mut slow, |interval| {
        let times = &mut interval.distributions.connections;
        times.first_query.record(700 * MS);
    });
    told(&slow, "listen queue").warning("5,000 SYNs found", "somaxconn=4096");
}
