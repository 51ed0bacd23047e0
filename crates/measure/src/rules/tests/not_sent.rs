//! Queries that were due and did not leave, a reason each; most of those that the kernel refused
//! decide.

use crate::counts::SendFailures;
use crate::rules::situations::*;

#[test]
fn refused_sends_are_the_generators_limit() {
    let mut record = saturated();
    change_last(&mut record, |interval| {
        interval.counts.offered += 1_000;
        interval.counts.not_sent.send_failed += 1_000;
    });
    judged(
        &record,
        Limit::Generator,
        "the kernel did not take them",
        "net.core.wmem_max",
    );
}

#[test]
fn queries_not_sent_are_told_by_reason() {
    let mut record = saturated();
    change_last(&mut record, |interval| {
        interval.counts.offered += 1_110;
        interval.counts.not_sent.no_free_id += 1_000;
        interval.counts.not_sent.timed_out_waiting += 100;
        interval.counts.not_sent.send_failed += 10;
    });
    let reasons: Vec<Diagnosis> = met(&record)
        .into_iter()
        .filter(|it| it.topic == "queries not sent")
        .collect();
    let states: Vec<State> = reasons.iter().map(|it| it.state).collect();
    assert_eq!(states, [State::Warning, State::Warning]);
    assert!(reasons[1].cures[0].how.contains("wmem_max"), "{reasons:#?}");
}

#[test]
fn what_a_firewall_of_this_host_forbids_is_no_full_buffer() {
    let told_of = |count: fn(&mut SendFailures)| {
        let mut record = saturated();
        change_last(&mut record, |interval| {
            interval.counts.offered += 1_000;
            interval.counts.not_sent.send_failed += 1_000;
            count(&mut interval.counts.not_sent.send_failed_for);
        });
        told(&record, "queries not sent")
    };
    told_of(|why| why.forbidden = 1_000).problem("a firewall rule of this host", "nft list");
    told_of(|why| why.unreachable = 1_000).problem("no route to the target", "ip route");
    told_of(|why| why.refused = 1_000).problem("nothing was listening", "start the server");
    // A full buffer, or a reason that the record does not have.
    for full in [told_of(|why| why.no_resources = 1_000), told_of(|_| {})] {
        assert!(full.matters.contains("queue of the interface"), "{full:#?}");
        full.problem("refused by the kernel", "wmem_max");
    }
}

#[test]
fn few_refused_sends_are_not_the_limit() {
    for refused in [
        |why: &mut SendFailures| why.unreachable = 100,
        |why: &mut SendFailures| why.forbidden = 100,
        |why: &mut SendFailures| why.refused = 100,
        |why: &mut SendFailures| why.no_resources = 100,
    ] {
        let mut record = saturated();
        change_last(&mut record, |interval| {
            interval.counts.offered += 100;
            interval.counts.not_sent.send_failed += 100;
            refused(&mut interval.counts.not_sent.send_failed_for);
        });
        assert!(found_on(&record, "queries not sent").is_some());
        assert_eq!(judge(&record).limit, Limit::Server);
    }
}
