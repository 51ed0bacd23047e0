//! Useless responses: their RCODE does not count as goodput.
//!
//! A server that refuses is fast: such a run does not measure one that answers. To measure REFUSED
//! or NXDOMAIN, count it as goodput (`--goodput`).

use crate::rules::situations::*;

#[test]
fn responses_of_no_use_are_said_first_unless_they_are_named_as_good() {
    let mut record = in_time(10_000.0);
    for (rcode, name, cure) in [
        (5, "REFUSED", "allow-query"),
        (2, "SERVFAIL", "rndc zonestatus"),
        (1, "FORMERR", "without EDNS"),
        (4, "NOTIMP", "--goodput NOTIMP"),
    ] {
        record.total.counts.rcodes = Default::default();
        record.total.counts.rcodes.record_many(rcode, 100_000);
        let evidence = format!("100 % of the responses were {name} (100,000): the figures say");
        judged(&record, Limit::Unknown, &evidence, cure);
        record.scenario.goodput_rcodes = vec![rcode];
        assert_eq!(judge(&record).limit, Limit::Rate);
        record.scenario.goodput_rcodes = vec![0, 3];
    }
}

#[test]
fn rcodes_that_are_no_use_are_named_with_the_servers_settings() {
    let mut record = saturated();
    change_last(&mut record, |interval| {
        interval.counts.rcodes.by_rcode[0] -= 3_000;
        interval.counts.rcodes.by_rcode[2] += 1_500;
        interval.counts.rcodes.by_rcode[5] += 1_500;
    });
    told(&record, "SERVFAIL").warning("1.50 % of the responses", "recursive-clients 10000;");
    told(&record, "REFUSED").warning("(1,500)", "allow-query { any; };");
}

#[test]
fn refusals_of_most_queries_are_looked_for_below_what_was_answered() {
    let mut record = in_time(10_000.0);
    record.total.counts.rcodes = Default::default();
    record.total.counts.rcodes.record_many(5, 99_000);
    record.total.counts.rcodes.record_many(0, 1_000);
    let cures = told(&record, "REFUSED").cures;
    assert!(cures[0].how.contains("--rate 80:"), "{cures:#?}");
}
