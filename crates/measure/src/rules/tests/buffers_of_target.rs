//! Receive buffers of a target on the same host, whose drops are in the host's counters.

use crate::facts::CpuUse;
use crate::rules::situations::*;

#[test]
fn receive_drops_of_a_target_on_the_same_host_are_the_targets() {
    let mut record = in_time(10_000.0);
    lose(&mut record, 1_000);
    record.scenario.target = "127.0.0.1:53".into();
    record
        .network
        .kernel
        .insert("Udp.RcvbufErrors".into(), 1_000);
    let verdict = judged(
        &record,
        Limit::Server,
        "0.99 % of the offered queries",
        "--rate 8000",
    );
    let evidence = "dropped 1,000 datagrams: the target, or a server behind it, did not read";
    let says = |line: &String| line.contains(evidence);
    assert!(verdict.evidence.iter().any(says), "{verdict:#?}");
}

#[test]
fn drops_of_the_targets_own_sockets_are_known_from_those_of_other_programs() {
    let mut record = in_time(10_000.0);
    lose(&mut record, 1_000);
    record.scenario.target = "127.0.0.1:53".into();
    let kernel = &mut record.network.kernel;
    kernel.insert("Udp.RcvbufErrors".into(), 1_000);
    let topic = "receive buffers of the target";
    let of_target = |drops| {
        let mut record = record.clone();
        record.host_use = Some(CpuUse {
            is_target_here: true,
            target_udp_drops: Some(drops),
            ..CpuUse::default()
        });
        found_on(&record, topic)
    };
    assert!(found_on(&record, topic).is_some());
    assert!(of_target(0).is_none());
    assert!(of_target(600).is_some_and(|it| it.seen.contains("600 datagrams")));
}

/// A target that is stopped for 300 ms, and holds each query for long, so that no silence shows it.
#[test]
fn buffers_that_overflow_in_one_span_are_no_sign_of_load() {
    let lossy = |is_lost: &dyn Fn(u64) -> bool| {
        let mut record = limited(|bin| if is_lost(bin) { 5 } else { 10 });
        let lost = record.total.counts.timeouts;
        record.scenario.target = "127.0.0.1:53".into();
        let kernel = &mut record.network.kernel;
        kernel.insert("Udp.RcvbufErrors".into(), lost);
        judge(&record)
    };
    let at_once = lossy(&|bin| (400..430).contains(&bin));
    assert_eq!(at_once.limit, Limit::Unknown, "{at_once:#?}");
    let text = at_once.evidence.join("\n");
    assert!(text.contains("did not read them in time"), "{at_once:#?}");
    let all_the_time = lossy(&|bin| scattered(bin) < 3);
    assert_eq!(all_the_time.limit, Limit::Server, "{all_the_time:#?}");
}

#[test]
fn what_other_sockets_of_the_host_dropped_is_told_from_what_ours_did() {
    let mut record = in_time(10_000.0);
    lose(&mut record, 1_000);
    record.network.receive_drops = 9;
    record.scenario.target = "127.0.0.1:53".into();
    record.network.kernel.insert("Udp.RcvbufErrors".into(), 800);
    told(&record, "receive buffers of the target").warning("791 datagrams", "reuseport yes;");
}
