//! This tool's own receive buffers (SO_RXQ_OVFL), or the queues of the interface that AF_XDP reads,
//! were full.

use crate::facts::XdpFacts;
use crate::rules::situations::*;

#[test]
fn full_receive_buffers_that_explain_the_losses_are_the_networks_limit() {
    let mut record = saturated();
    lose(&mut record, 100);
    record.network.receive_drops = 60;
    let evidence = "dropped 60 datagrams, 60.00 % of the 100 without response";
    judged(&record, Limit::Network, evidence, "net.core.rmem_max");
    record.network.receive_drops = 40;
    // Those of other sockets of this host have nothing to do with it.
    record.network.kernel.insert("Udp.RcvbufErrors".into(), 100);
    assert_ne!(judge(&record).limit, Limit::Network);
}

#[test]
fn full_receive_buffers_are_a_problem_where_they_explain_the_losses() {
    let mut record = in_time(10_000.0);
    lose(&mut record, 1_000);
    record.network.receive_drops = 900;
    let seen = "dropped 900 datagrams, 90.00 % of the 1,000";
    told(&record, "receive buffers").problem(seen, "rmem_max=16777216");
    assert_eq!(met(&record)[0].topic, "receive buffers");
    record.network.receive_drops = 9;
    told(&record, "receive buffers").warning("dropped 9 datagrams", "--socket-buffer");
}

#[test]
fn full_queues_of_an_interface_are_told_from_full_buffers() {
    let mut record = in_time(10_000.0);
    lose(&mut record, 1_000);
    // Of 900 that came, AF_XDP itself dropped 500, and counts them itself.
    record.network.receive_drops = 500;
    record.network.xdp = Some(XdpFacts {
        receive_dropped: 500,
        interface_received_dropped: 600,
        peer_sent_dropped: 300,
        ..XdpFacts::default()
    });
    let seen = "full receive queues of the interface dropped 900 frames, 90.00 % of the 1,000";
    told(&record, "receive queues").problem(seen, "--outstanding");
    assert_eq!(met(&record)[0].topic, "receive queues");
    assert_eq!(judge(&record).limit, Limit::Network);
    assert_eq!(found_on(&record, "receive buffers"), None);

    // Without missing responses, the drops are not ours.
    let mut whole = in_time(10_000.0);
    whole.network.xdp = Some(XdpFacts {
        interface_received_dropped: 3,
        peer_received_dropped: 3,
        ..XdpFacts::default()
    });
    assert_eq!(found_on(&whole, "receive queues"), None);
}
