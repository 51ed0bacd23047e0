//! Handshakes of TLS or QUIC that were refused, by us or by the target.

use crate::rules::situations::*;

/// Three handshakes failed, and five succeeded.
fn refusing() -> RunRecord {
    let mut record = in_time(10_000.0);
    record.scenario.transport = Transport::Dot.into();
    change_last(&mut record, |interval| {
        let connections = &mut interval.counts.connections;
        connections.handshakes.full = 5;
        connections.failed.tls_certificate = 2;
        connections.failed.tls_alert.record("handshake_failure");
    });
    record
}

#[test]
fn handshakes_that_were_refused_are_told_by_their_causes() {
    let found = told(&refusing(), "handshakes");
    for part in ["3 handshakes failed", "handshake_failure", "5 succeeded"] {
        assert!(found.seen.contains(part), "{found:#?}");
    }
    assert_eq!(judge(&refusing()).limit, Limit::Rate);
    found.problem("", "--tls-ca FILE");
}

#[test]
fn they_decide_where_most_of_what_is_missing_waited_for_a_connection() {
    let mut record = refusing();
    change_last(&mut record, |interval| {
        interval.counts.offered += 1_000;
        interval.counts.not_sent.timed_out_waiting += 1_000;
    });
    judged(&record, Limit::Server, "3 handshakes failed", "--tls-ca");
    lose(&mut record, 3_000);
    assert_eq!(judge(&record).limit, Limit::Unknown);
}

#[test]
fn cure_of_a_refused_certificate_fits_its_fault() {
    type Refuse = fn(&mut crate::counts::CertificateFaults);
    let faults: [(Refuse, &str); 4] = [
        (|it| it.expired = 2, "renew the certificate of the server"),
        (|it| it.not_yet_valid = 2, "set the clock of this host"),
        (|it| it.wrong_name = 2, "--tls-name NAME"),
        (|it| it.unknown_issuer = 2, "--tls-ca FILE"),
    ];
    for (refuse, cure) in faults {
        let mut record = refusing();
        change_last(&mut record, |interval| {
            refuse(&mut interval.counts.connections.failed.tls_certificate_faults);
        });
        let found = told(&record, "handshakes");
        let others = faults.iter().map(|it| it.1).filter(|it| *it != cure);
        let said = format!("{:?}", found.cures);
        found.problem("", cure);
        others.for_each(|other| assert!(!said.contains(other), "{cure}: {said}"));
    }
}

#[test]
fn cure_of_a_refusal_of_the_target_fits_its_alert() {
    let mut record = refusing();
    for (alert, cure) in [
        ("no_application_protocol", "check port and transport"),
        ("certificate_required", "--tls-cert FILE --tls-key FILE"),
    ] {
        change_last(&mut record, |interval| {
            let failed = &mut interval.counts.connections.failed;
            failed.tls_certificate = 0;
            failed.tls_alert.record(alert);
        });
        let found = told(&record, "handshakes");
        let said = format!("{:?}", found.cures);
        assert!(said.contains("openssl s_client"), "{said}");
        assert!(!said.contains("--tls-ca"), "{said}");
        found.problem("", cure);
    }
    // The command speaks no QUIC.
    record.scenario.transport = Transport::Doq.into();
    let said = format!("{:?}", told(&record, "handshakes").cures);
    assert!(!said.contains("openssl"), "{said}");
}

#[test]
fn refused_handshakes_explain_clients_without_response_that_waited_for_a_connection() {
    for (waited, lost, is_refused) in [(1_000, 1_000, true), (900, 1_000, false)] {
        let mut record = saturated();
        record.scenario.transport = Transport::Dot.into();
        record.scenario.clients = 200;
        serve(&mut record, 150, 50);
        lose(&mut record, lost);
        change_last(&mut record, |interval| {
            let connections = &mut interval.counts.connections;
            connections.failed.tls_alert.record("handshake_failure");
            interval.counts.offered += waited;
            interval.counts.not_sent.timed_out_waiting += waited;
        });
        let verdict = judge(&record);
        let is_first = verdict.evidence[0].starts_with("1 handshake");
        assert_eq!(is_first, is_refused, "{verdict:#?}");
    }
}
