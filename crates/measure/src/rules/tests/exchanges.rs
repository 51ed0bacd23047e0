//! Queries that HTTP or their stream ended: the target answers, but not with DNS. It turns queries
//! away, or cannot do them.

use crate::rules::situations::*;

/// A tenth of the queries of the last second, 1,000 of 11,000, got `status` instead of a
/// message.
fn ended_by_http(record: &mut RunRecord, status: u64) {
    record.scenario.transport = Transport::Doh2.into();
    change_last(record, |interval| {
        interval.counts.offered += 10_000;
        interval.counts.sent += 10_000;
        let ended = &mut interval.counts.exchange_failures;
        ended.http_status.record_many(status, 10_000);
    });
}

#[test]
fn http_429_and_503_are_the_servers_limit() {
    for (status, name) in [
        (429, "429 Too Many Requests"),
        (503, "503 Service Unavailable"),
    ] {
        for mut record in [saturated(), in_time(10_000.0)] {
            ended_by_http(&mut record, status);
            let evidence = format!(
                "9.09 % of the queries were answered without a DNS message: 10,000 HTTP {name}"
            );
            let verdict = judged(&record, Limit::Server, &evidence, "--local-address");
            let said = verdict.evidence.iter().filter(|line| **line == evidence);
            assert_eq!(said.count(), 1);
        }
    }
}

#[test]
fn http_404_says_to_look_at_the_request() {
    let mut record = saturated();
    ended_by_http(&mut record, 404);
    judged(
        &record,
        Limit::Server,
        "10,000 HTTP 404 Not Found",
        "path and method",
    );
}

#[test]
fn few_streams_that_were_reset_are_told_and_decide_nothing() {
    let mut record = saturated();
    record.scenario.transport = Transport::Doq.into();
    change_last(&mut record, |interval| {
        interval.counts.offered += 7;
        interval.counts.sent += 7;
        interval
            .counts
            .exchange_failures
            .stream_reset
            .record_many(4, 7);
    });
    let verdict = judged(
        &record,
        Limit::Server,
        "queries were in flight",
        "--rate 7000",
    );
    let line = "0.01 % of the queries were answered without a DNS message: 7 streams reset \
                with DOQ_EXCESSIVE_LOAD";
    assert!(
        verdict.evidence.iter().any(|evidence| evidence == line),
        "{verdict:#?}"
    );
}

#[test]
fn run_in_which_every_query_got_an_http_error_says_so() {
    let mut record = record(vec![interval(0, &[])]);
    ended_by_http(&mut record, 415);
    let evidence = "no response to 10,000 queries: 10,000 HTTP 415 Unsupported Media Type";
    judged(&record, Limit::Unknown, evidence, "over doh2");
}
