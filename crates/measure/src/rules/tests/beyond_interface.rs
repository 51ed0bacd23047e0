//! Frames that left AF_XDP here and found no room further on.

use crate::facts::XdpFacts;
use crate::rules::situations::*;

#[test]
fn frames_dropped_beyond_the_interface_are_told_beside_the_verdict() {
    let mut record = in_time(10_000.0);
    record.network.xdp = Some(XdpFacts {
        interface_received_dropped: 3,
        peer_received_dropped: 3,
        ..XdpFacts::default()
    });
    assert_eq!(found_on(&record, "queues beyond the interface"), None);

    lose(&mut record, 1_000);
    record.network.xdp = Some(XdpFacts {
        interface_sent_dropped: 1,
        peer_received_dropped: 900,
        ..XdpFacts::default()
    });
    let seen = "900 frames dropped at the other end of the veth pair, where no program read \
                them in time; 1 frame dropped on leaving";
    let beyond = told(&record, "queues beyond the interface").warning(seen, "--rate");
    assert!(
        judge(&record).evidence.contains(&beyond.seen),
        "{beyond:#?}"
    );
    assert_eq!(found_on(&record, "receive queues"), None);
}
