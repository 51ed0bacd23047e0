//! Queries that HTTP or their stream ended: the target answers, but not with DNS. It turns queries
//! away, or cannot do them.

use crate::rules::situations::*;
use crate::scenario::{HttpMethod, HttpRequest, HttpScheme};

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

/// Of 10,000 queries, `number` got `status`; the others got a response.
fn most_ended(transport: Transport, status: u64, number: u64) -> RunRecord {
    let mut record = record(vec![interval(0, &[(MS, 10_000 - number)])]);
    record.scenario.transport = transport.into();
    record.scenario.http = Some(HttpRequest {
        method: HttpMethod::Post,
        scheme: HttpScheme::Https,
        authority: "dns.example".into(),
        path: "/wrong".into(),
        headers: Vec::new(),
    });
    change_last(&mut record, |interval| {
        interval.counts.offered += number;
        interval.counts.sent += number;
        let ended = &mut interval.counts.exchange_failures;
        ended.http_status.record_many(status, number);
    });
    record
}

#[test]
fn http_error_for_most_queries_is_named_with_its_cure() {
    for (status, name, cure) in [
        (302, "302 Found", "redirects to"),
        (400, "400 Bad Request", "--doh-method get"),
        (401, "401 Unauthorized", "--doh-header"),
        (403, "403 Forbidden", "accept queries from"),
        (404, "404 Not Found", "--doh-path /"),
        (405, "405 Method Not Allowed", "--doh-method get"),
        (415, "415 Unsupported Media Type", "--doh-method get"),
        (418, "418", "--doh-path"),
        (421, "421 Misdirected Request", "--doh-authority"),
        (500, "500 Internal Server Error", "logs"),
        (502, "502 Bad Gateway", "behind the proxy"),
        (503, "503 Service Unavailable", "logs"),
        (504, "504 Gateway Timeout", "logs"),
    ] {
        for transport in [Transport::Doh2, Transport::Doh3] {
            // Errors of the server beside answers come with the load.
            let parts: &[u64] = if status < 500 {
                &[10_000, 6_000]
            } else {
                &[10_000]
            };
            for &number in parts {
                let record = most_ended(transport, status, number);
                let many = if number == 6_000 { "6,000" } else { "10,000" };
                let evidence = format!("HTTP {name} to POST /wrong for {many} of 10,000 queries");
                let verdict = judged(&record, Limit::Unknown, &evidence, cure);
                let told = verdict.evidence.iter().filter(|it| it.contains("HTTP"));
                assert!(told.count() <= 2, "{verdict:#?}");
            }
        }
    }
}

#[test]
fn http_429_for_most_queries_is_a_limit_on_the_rate() {
    let record = most_ended(Transport::Doh2, 429, 6_000);
    judged(&record, Limit::Server, "6,000 HTTP 429", "--local-address");
}

#[test]
fn errors_of_the_server_beside_answers_are_its_limit() {
    for status in [500, 502, 503, 504] {
        let record = most_ended(Transport::Doh3, status, 6_000);
        judged(&record, Limit::Server, &format!("6,000 HTTP {status}"), "");
    }
}

#[test]
fn other_method_is_advised_where_get_was_refused() {
    let mut record = most_ended(Transport::Doh2, 414, 10_000);
    record.scenario.http.as_mut().unwrap().method = HttpMethod::Get;
    judged(
        &record,
        Limit::Unknown,
        "414 URI Too Long to GET",
        "--doh-method post",
    );
}
