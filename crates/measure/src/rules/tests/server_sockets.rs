//! Overflowing sockets of an observed server.

use crate::observation::SeriesKind;
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

#[test]
fn full_sockets_of_the_server_are_counted_there() {
    let drops = [
        ("udp.drops", SeriesKind::Counter, 12.0),
        ("listen.overflows", SeriesKind::Counter, 3.0),
        ("udp.room{port=\"53\"}", SeriesKind::Gauge, 212_992.0),
        ("tcp.room{port=\"53\"}", SeriesKind::Gauge, 10.0),
        ("tcp.room{port=\"8053\"}", SeriesKind::Gauge, 5.0),
    ];
    let record = observing(saturated(), &[program(0.5, 0.3, &drops)]);
    tells(
        &record,
        &["had no room for 120 datagrams; the smallest takes 212,992 bytes"],
    );
    // Counters of the other protocol are not of this run.
    assert!(found_on(&record, "listen queue of the server").is_none());
    let mut over_tcp = saturated();
    over_tcp.scenario.transport = Transport::Tcp.into();
    let over_tcp = observing(over_tcp, &[program(0.5, 0.3, &drops)]);
    tells(
        &over_tcp,
        &["was full for 30 connections; its own has room for 10"],
    );
    assert!(found_on(&over_tcp, "receive buffers of the server").is_none());
    let diagnosis = told(&record, "receive buffers of the server");
    let cures: Vec<&str> = diagnosis.cures.iter().map(|it| it.how.as_str()).collect();
    assert!(cures.contains(&"so-rcvbuf: 16m"), "{cures:?}");
    // Of a BIND that is observed, BIND's alone.
    let mut named = program(0.5, 0.3, &drops);
    named.facts.product = Some("BIND".into());
    let record = observing(saturated(), &[named]);
    let diagnosis = told(&record, "receive buffers of the server");
    let cures: Vec<&str> = diagnosis.cures.iter().map(|it| it.how.as_str()).collect();
    assert!(cures.contains(&"udp-receive-buffer 16777216;"), "{cures:?}");
    assert!(!cures.contains(&"so-rcvbuf: 16m"), "{cures:?}");
}

/// Those of its interface are no sign that it reads too slowly.
#[test]
fn packets_that_the_interface_of_a_pod_drops_are_said_by_themselves() {
    let drops = [("group.receive_dropped", SeriesKind::Counter, 7.0)];
    for transport in [Transport::Udp, Transport::Tcp] {
        let mut record = saturated();
        record.scenario.transport = transport.into();
        let record = observing(record, &[program(0.5, 0.3, &drops)]);
        tells(&record, &["dropped 70 packets to it"]);
        told(&record, "interface of the server").problem("70 packets", "ip -s link");
        assert!(found_on(&record, "receive buffers of the server").is_none());
    }
}

/// What a server behind the target understands does nothing for the target's sockets.
#[test]
fn cures_are_those_of_the_program_whose_sockets_were_full() {
    let drops = [("udp.drops", SeriesKind::Counter, 12.0)];
    let mut proxy = program(0.5, 0.3, &drops);
    proxy.facts.product = Some("CoreDNS".into());
    let mut behind = program(0.5, 0.3, &[]);
    behind.facts.product = Some("BIND".into());
    let record = observing(saturated(), &[proxy, behind]);
    let diagnosis = told(&record, "receive buffers of the server");
    let cures: Vec<&str> = diagnosis.cures.iter().map(|it| it.how.as_str()).collect();
    assert!(
        cures.iter().any(|it| it.contains("rmem_default")),
        "{cures:?}"
    );
    assert!(
        !cures.contains(&"udp-receive-buffer 16777216;"),
        "{cures:?}"
    );
}
