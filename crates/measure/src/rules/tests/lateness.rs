//! Queries that left late though no worker was short of CPU: the host stalled them.

use crate::rules::situations::*;

#[test]
fn stalled_host_is_the_generators_limit() {
    let mut record = in_time(10_000.0);
    late(&mut record, 4 * MS);
    judged(
        &record,
        Limit::Generator,
        "the host stalled them",
        "other load",
    );
}

/// A twentieth of the response time changes nothing that is measured.
#[test]
fn lateness_counts_beside_the_response_time() {
    let slow = |lateness_ns| {
        let mut record = open_loop(&[(100 * MS, 1_000)], 10_000.0);
        late(&mut record, lateness_ns);
        record
    };
    assert_eq!(judge(&slow(4 * MS)).limit, Limit::Rate);
    assert_eq!(judge(&slow(6 * MS)).limit, Limit::Generator);
    // Lateness may be why queries are lost.
    let mut lossy = slow(4 * MS);
    lose(&mut lossy, 100);
    assert_ne!(judge(&lossy).limit, Limit::Rate);
}

#[test]
fn late_generator_is_not_blamed_for_what_others_lost() {
    let mut record = in_time(10_000.0);
    late(&mut record, 4 * MS);
    lose(&mut record, 50_000);
    assert_ne!(judge(&record).limit, Limit::Generator);
    // Responses dropped by this host explain it.
    record.network.receive_drops = 50_000;
    assert_eq!(judge(&record).limit, Limit::Generator);
    // So do queries that it had no time to send, if they are most of those missing.
    record.network.receive_drops = 0;
    change_last(&mut record, |interval| {
        interval.counts.offered += 50_000;
        interval.counts.not_sent.run_ended += 50_000;
    });
    assert_eq!(judge(&record).limit, Limit::Generator);
}

#[test]
fn a_host_that_stalls_its_workers_is_to_be_looked_at() {
    let mut record = in_time(10_000.0);
    late(&mut record, 4 * MS);
    told(&record, "lateness").problem("the host stalled them", "ps -eo pcpu");
}
