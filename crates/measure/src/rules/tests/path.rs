//! A path that is known to lose: segments of our own connections, or the model of a network.

use crate::facts::{EchoFacts, TcpFacts};
use crate::histogram::Histogram;
use crate::rules::situations::*;

#[test]
fn segments_that_our_own_connections_lost_are_the_networks_limit() {
    let mut record = saturated();
    record.scenario.transport = Transport::Tcp.into();
    // Those of the host are of everybody who uses it.
    let host = [("Tcp.RetransSegs", 2_000), ("Tcp.OutSegs", 100_000)];
    let host = host.map(|(name, count)| (name.to_owned(), count));
    record.network.kernel.extend(host);
    assert_eq!(judge(&record).limit, Limit::Server);
    let mut tcp = TcpFacts {
        segments_sent: 100_000,
        segments_repeated: 2_000,
        ..TcpFacts::default()
    };
    record.network.tcp = Some(tcp.clone());
    let evidence = "2.00 % of the TCP segments of this run's connections (2,000) were lost";
    judged(&record, Limit::Network, evidence, "drops on the path");
    // Queries that had reached the target were not lost.
    tcp.segments_repeated_in_vain = 1_500;
    record.network.tcp = Some(tcp.clone());
    assert_eq!(judge(&record).limit, Limit::Server);
    // Nor was what came on connections that the target has not accepted.
    tcp.segments_repeated_in_vain = 0;
    tcp.segments_repeated_unanswered = 1_500;
    record.network.tcp = Some(tcp);
    assert_eq!(judge(&record).limit, Limit::Server);
}

#[test]
fn what_a_full_listen_queue_of_this_host_dropped_is_not_lost_by_the_path() {
    let mut record = saturated();
    record.scenario.transport = Transport::Tcp.into();
    record.network.tcp = Some(TcpFacts {
        segments_sent: 100_000,
        segments_repeated: 2_000,
        ..TcpFacts::default()
    });
    let overflows = ("TcpExt.ListenOverflows".to_owned(), 1_900);
    record.network.kernel.extend([overflows]);
    assert_eq!(judge(&record).limit, Limit::Network);
    record.scenario.target = "127.0.0.1:53".to_owned();
    assert_eq!(judge(&record).limit, Limit::Server);
}

#[test]
fn what_a_firewall_rejects_is_evidence_and_the_reason_where_nothing_came_back() {
    let mut record = in_time(10_000.0);
    lose(&mut record, 5_000);
    let kernel = &mut record.network.kernel;
    kernel.insert("Icmp.InDestUnreachs".into(), 10);
    let seen = "10 rejections (ICMP destination unreachable) came to this host";
    told(&record, "rejections").problem(seen, "tcpdump");
    let said = judge(&record).evidence;
    assert!(said.iter().any(|it| it.starts_with(seen)), "{said:#?}");
    // Those of a closed port are counted by themselves; a few are of others.
    let mut closed = record.clone();
    change_last(&mut closed, |it| it.counts.port_unreachable = 9);
    assert!(found_on(&closed, "rejections").is_none());
    // None of the queries was answered.
    let mut all = limited(|_| 0);
    all.network.kernel.insert("Icmp.InDestUnreachs".into(), 10);
    judged(&all, Limit::Network, "10 rejections", "tcpdump");
}

#[test]
fn syns_sent_again_are_no_segments_that_the_path_loses() {
    let mut record = saturated();
    record.scenario.transport = Transport::Tcp.into();
    record.network.tcp = Some(TcpFacts {
        closed: 1_000,
        read: 1_000,
        segments_sent: 10_000,
        segments_repeated: 300,
        ..TcpFacts::default()
    });
    assert_eq!(judge(&record).limit, Limit::Network);
    // A hundred were sent again once, and a hundred twice.
    change_last(&mut record, |it| {
        let times = &mut it.distributions.connections.tcp_connect;
        times.record_many(MS, 800);
        times.record_many(1_030 * MS, 100);
        times.record_many(3_070 * MS, 100);
    });
    assert_eq!(judge(&record).limit, Limit::Server);
}

/// 10,000 queries over TCP by ten clients, and 500 that timed out.
fn stalled(out_of_order: u64) -> RunRecord {
    let mut record = in_time(10_000.0);
    record.scenario.transport = Transport::Tcp.into();
    record.network.tcp = Some(TcpFacts {
        closed: 10,
        read: 10,
        segments_sent: 10_000,
        out_of_order,
        ..TcpFacts::default()
    });
    lose(&mut record, 500);
    record
}

#[test]
fn connections_that_wait_for_a_segment_to_the_end_are_the_paths() {
    let record = stalled(8);
    let evidence = "8 of 10 connections waited for a segment from the target that never came";
    judged(
        &record,
        Limit::Network,
        evidence,
        "ping -M do -s 1472 192.0.2.1",
    );
    let is_said = |record: &RunRecord| found_on(record, "long segments").is_some();
    // A server that is stopped leaves no gap; one or two are accidents.
    assert!(!is_said(&stalled(0)) && !is_said(&stalled(2)));
    // What is lost at random is sent again, and comes.
    let mut random = record.clone();
    change_last(&mut random, |it| {
        it.distributions.service.record_many(210 * MS, 8)
    });
    assert!(!is_said(&random));
    // A server that goes on answers late.
    let mut late = record.clone();
    change_last(&mut late, |it| it.counts.late = 500);
    assert!(!is_said(&late));
    // A path that loses in both directions.
    let mut lossy = record;
    if let Some(tcp) = &mut lossy.network.tcp {
        tcp.segments_repeated = 50;
    }
    assert!(!is_said(&lossy));
}

/// `sent` echo requests, of which `replies` came back after these times.
fn echo(record: &mut RunRecord, sent: u64, replies: &[(u64, u64)]) {
    let mut times = Histogram::new();
    for (ns, number) in replies {
        times.record_many(*ns, *number);
    }
    record.network.echo = Some(EchoFacts { sent, times });
}

#[test]
fn echo_requests_that_wait_as_queries_do_show_a_queue_on_the_path() {
    let mut record = saturated();
    echo(&mut record, 100, &[(250_000, 5), (9 * MS, 95)]);
    let evidence = "ICMP echo requests to the target waited as queries did: p50 9.0";
    judged(&record, Limit::Network, evidence, "--rate");
    let intervals = (0..10).map(|index| interval(index, &[(20 * MS * (index + 1), 10_000)]));
    let mut grows = RunRecord {
        scenario: in_time(10_000.0).scenario,
        ..super::super::situations::record(intervals.collect())
    };
    assert_eq!(judge(&grows).limit, Limit::Server);
    let over_the_run: Vec<_> = (1..=10).map(|tenth| (20 * MS * tenth, 10)).collect();
    echo(&mut grows, 100, &over_the_run);
    assert_eq!(judge(&grows).limit, Limit::Network);
}

#[test]
fn echo_requests_that_pass_the_queue_leave_it_to_the_server() {
    for (sent, replies) in [
        // The network waits a little, the server much.
        (100, [(250_000, 50), (3 * MS, 50)]),
        (100, [(250_000, 95), (9 * MS, 5)]),
        // Too few to tell.
        (9, [(250_000, 1), (9 * MS, 8)]),
    ] {
        let mut record = saturated();
        echo(&mut record, sent, &replies);
        judged(&record, Limit::Server, "queued at the target", "--rate");
    }
    // What waits for less than 2 ms may wait for a CPU.
    let mut record = run(&[(200_000, 1), (2 * MS, 999)]);
    echo(&mut record, 100, &[(200_000, 1), (2 * MS, 99)]);
    assert_ne!(judge(&record).limit, Limit::Network);
    // A long path is no queue, and a rate that was held is no limit.
    let mut record = in_time(10_000.0);
    echo(&mut record, 100, &[(200_000, 10), (40 * MS, 90)]);
    assert_eq!(judge(&record).limit, Limit::Rate);
}

#[test]
fn echo_requests_lost_as_queries_are_show_a_path_that_loses() {
    let lossy = |lost: u64, without_reply: u64| {
        let mut record = in_time(10_000.0);
        lose(&mut record, lost);
        echo(&mut record, 200, &[(250_000, 200 - without_reply)]);
        record
    };
    let evidence = "5.00 % of the ICMP echo requests to the target (10 of 200) got no reply, and";
    judged(
        &lossy(5_000, 10),
        Limit::Network,
        evidence,
        "drops on the path",
    );
    // None lost, one by chance, and as many as a limit on echo requests drops.
    for without_reply in [0, 1, 150] {
        let limit = judge(&lossy(5_000, without_reply)).limit;
        assert_ne!(limit, Limit::Network, "{without_reply}");
    }
    assert_eq!(judge(&lossy(0, 10)).limit, Limit::Rate);
    let mut streams = lossy(5_000, 10);
    streams.scenario.transport = Transport::Tcp.into();
    assert_ne!(judge(&streams).limit, Limit::Network);
}
