//! A path that is known to lose: segments of our own connections, or the model of a network.

use crate::facts::TcpFacts;
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
