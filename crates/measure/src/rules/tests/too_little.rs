//! Figures that no conclusion may be drawn from: nothing was answered, less than a second was
//! measured, or a few queries.

use crate::rules::situations::*;

#[test]
fn a_few_queries_tell_nothing() {
    for queries in [3, 40, 298] {
        let mut record = record(vec![interval(0, &[(MS, queries)])]);
        record.scenario.arrival = open_loop(&[(MS, 1_000)], queries as f64).scenario.arrival;
        let verdict = judged(&record, Limit::Unknown, "too few to tell", "--duration");
        assert!(!verdict.evidence[0].contains("fell behind"));
    }
}

#[test]
fn run_without_a_response_is_not_judged() {
    let mut record = record(vec![interval(0, &[])]);
    lose(&mut record, 1_234);
    change_last(&mut record, |interval| {
        interval.counts.connections.failed.refused = 7
    });
    let evidence =
        "no response to 1,234 queries: 1,234 timed out, 7 connection attempts failed: refused";
    judged(
        &record,
        Limit::Unknown,
        evidence,
        "answers at 192.0.2.1:53 over udp",
    );
}

#[test]
fn short_run_is_not_judged() {
    let mut record = saturated();
    record.measured_ns = 400 * MS;
    judged(
        &record,
        Limit::Unknown,
        "only 400.0 ms were measured",
        "--duration 10s",
    );
}

#[test]
fn failed_handshakes_are_named_by_their_cause() {
    let mut record = record(vec![interval(0, &[])]);
    record.scenario.transport = Transport::Doq.into();
    let failed = &mut record.warmup.counts.connections.failed;
    failed.tls_alert.record("no_application_protocol");
    failed.quic_transport.record(2);
    let evidence = "no query could be sent: 1 connection attempts failed: TLS alert \
                    no_application_protocol, 1 connection attempts failed: QUIC transport \
                    error CONNECTION_REFUSED";
    judged(
        &record,
        Limit::Unknown,
        evidence,
        "check port and transport: what listens there speaks another protocol (ALPN)",
    );
    // Most attempts did not get that far.
    record.warmup.counts.connections.failed.timed_out = 7;
    let elsewhere = "answers at 192.0.2.1:53 over doq";
    judged(
        &record,
        Limit::Unknown,
        "7 connection attempts failed",
        elsewhere,
    );
}

#[test]
fn where_no_handshake_succeeded_its_cure_is_the_advice() {
    type Refuse = fn(&mut crate::counts::ConnectionFailures);
    let refusals: [(Refuse, &str); 5] = [
        (
            |it| it.tls_alpn = 9,
            "what listens there speaks another protocol",
        ),
        (|it| it.tls_pin = 9, "give throng --tls-pin PIN"),
        (
            |it| {
                it.tls_certificate = 9;
                it.tls_certificate_faults.expired = 9;
            },
            "renew the certificate of the server",
        ),
        (
            |it| it.tls_alert.record("certificate_required"),
            "give throng --tls-cert FILE --tls-key FILE",
        ),
        (
            |it| it.tls_alert.record("handshake_failure"),
            "answers at 192.0.2.1:53 over dot",
        ),
    ];
    for (refuse, cure) in refusals {
        let mut record = record(vec![interval(0, &[])]);
        record.scenario.transport = Transport::Dot.into();
        refuse(&mut record.warmup.counts.connections.failed);
        judged(&record, Limit::Unknown, "no query could be sent", cure);
    }
}
