//! Signs that are there while their cause is not: what must not be claimed.

use crate::example;
use crate::observation::SeriesKind;
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

fn said_of(record: &RunRecord) -> String {
    let verdict = judge(record);
    verdict.evidence.join("\n")
}

#[test]
fn latency_is_not_set_by_slots_that_lost_queries_hold() {
    let mut record = example::record((0..10).map(|i| interval(i, &[(100_000, 10)])).collect());
    lose(&mut record, 1_000);
    change_last(&mut record, |it| {
        it.in_flight_ns += 1_000 * u128::from(SECOND)
    });
    record.scenario.timeout_ns = SECOND;
    let said = said_of(&record);
    assert!(!said.contains("latency was set by --outstanding"), "{said}");
}

#[test]
fn fifty_microseconds_are_no_queue_at_the_target() {
    // 10 slots, all in use: p50 56 us against the shortest 6.5 us.
    let latencies = [(6_500, 10), (56_000, 178_000)];
    let mut record = example::record((0..10).map(|i| interval(i, &latencies)).collect());
    record.scenario.arrival = Arrival::Closed {
        outstanding: 10,
        rate_qps_max: None,
    };
    judged(
        &record,
        Limit::Outstanding,
        "but nothing queued",
        "--outstanding 40",
    );
}

#[test]
fn datagrams_that_others_dropped_are_not_of_a_run_over_tcp() {
    let mut record = in_time(10_000.0);
    record.scenario.target = "127.0.0.1:53".into();
    record.scenario.transport = Transport::Tcp.into();
    lose(&mut record, 1_000);
    record
        .network
        .kernel
        .insert("Udp.RcvbufErrors".into(), 1_000);
    assert!(found_on(&record, "receive buffers of the target").is_none());
    let said = said_of(&record);
    assert!(!said.contains("receive buffers"), "{said}");
}

#[test]
fn an_observed_unbound_is_not_looked_at_with_the_commands_of_bind() {
    let mut unbound = server(10_000.0, &[]);
    unbound.facts.product = Some("Unbound".to_owned());
    let mut process = program(0.9, 0.3, &[]);
    process.facts.binary = Some("/usr/sbin/unbound".to_owned());
    let found = met(&observing(saturated(), &[process, unbound]));
    let how: Vec<&str> = found
        .iter()
        .flat_map(|it| &it.cures)
        .map(|it| it.how.as_str())
        .collect();
    assert!(
        how.iter().any(|it| it.contains("pgrep -o unbound")),
        "{how:?}"
    );
    assert!(
        !how.iter()
            .any(|it| it.contains("rndc") || it.contains("named")),
        "{how:?}"
    );
}

#[test]
fn acknowledgements_that_delay_all_responses_are_no_queue_at_the_target() {
    // One query after the other over DoT: nearly all take 41 ms, and to connect 0.1 ms.
    let latencies = [(MS, 30), (41 * MS, 70)];
    let delayed = |connect_ns: u64| {
        let mut record = example::record((0..10).map(|i| interval(i, &latencies)).collect());
        record.scenario.transport = Transport::Dot.into();
        record.scenario.arrival = Arrival::Closed {
            outstanding: 3,
            rate_qps_max: None,
        };
        change_last(&mut record, |it| {
            it.counts.connections.attempted = 10;
            it.counts.connections.established = 10;
            it.counts.connections.handshakes.full = 10;
            let connections = &mut it.distributions.connections;
            connections.tcp_connect.record_many(connect_ns, 10);
        });
        record
    };
    judged(
        &delayed(100_000),
        Limit::Unknown,
        "wait for an acknowledgement",
        "TCP_NODELAY",
    );
    // Where the way takes as long, it is the way.
    let far = said_of(&delayed(40 * MS));
    assert!(!far.contains("acknowledgement"), "{far}");
}

#[test]
fn scrapes_are_not_blamed_for_an_outage_nor_readers_of_proc_for_anything() {
    let mut process = program(0.3, 0.2, &[("udp.drops", SeriesKind::Counter, 0.0)]);
    process.profile = "process".to_owned();
    let mut record = in_time(10_000.0);
    let mut timeline = crate::timeline::Timeline::new();
    for bin in 0..1_000_u64 {
        let slow = bin % 100 >= 45 && bin % 100 < 55;
        let what = crate::timeline::Bin {
            due: 100,
            responses: 100,
            latency_us: 100 * if slow { 50_000 } else { 1_000 },
            ..crate::timeline::Bin::default()
        };
        timeline.add(bin * SECOND / 100, &what);
    }
    record.timeline = Some(timeline);
    let observed = observing(record.clone(), &[process]);
    assert!(!said(&observed).contains("the scrapes slow it down"));
    // Of a server that is asked, they are.
    let observed = observing(record, &[server(10_000.0, &[])]);
    assert!(
        said(&observed).contains("the scrapes slow it down"),
        "{}",
        said(&observed)
    );
}
