use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::scenario::Transport;

fn balanced() -> Counts {
    let mut counts = Counts {
        offered: 121,
        sent: 116,
        responses: 100,
        timeouts: 3,
        connection_losses: 2,
        exchange_failures: ExchangeFailures {
            media_type: 1,
            malformed: 2,
            not_processed: 1,
            ..ExchangeFailures::default()
        },
        not_sent: NotSent {
            no_free_id: 1,
            run_ended: 4,
            ..NotSent::default()
        },
        ..Counts::default()
    };
    (0..60).for_each(|_| counts.rcodes.record(0));
    (0..30).for_each(|_| counts.rcodes.record(3));
    (0..9).for_each(|_| counts.rcodes.record(12));
    counts.rcodes.record(4_095);
    counts.exchange_failures.http_status.record_many(429, 4);
    counts.exchange_failures.http_status.record(503);
    counts.exchange_failures.stream_reset.record_many(0x7, 2);
    counts
}

#[test]
fn responses_over_tcp_come_in_a_later_interval_than_the_truncated_ones() {
    let mut later = Counts::default();
    later.tcp_fallback.rcodes.record_many(0, 5);
    assert_eq!((later.goodput(&[0]), later.failures(&[0])), (5, 0));
    let all = balanced();
    assert_eq!(all.failures(&[0, 3]), 10);
}

#[test]
fn rcodes_are_a_map_of_names_without_zeroes() {
    let json = serde_json::to_string(&balanced().rcodes).expect("serializes");
    assert_eq!(
        json,
        r#"{"NOERROR":60,"NXDOMAIN":30,"RCODE12":9,"other":1}"#
    );
    let back: Rcodes = serde_json::from_str(&json).expect("reads its own output");
    assert_eq!(back, balanced().rcodes);
}

#[test]
fn unknown_rcode_name_is_refused() {
    let error = serde_json::from_str::<Rcodes>(r#"{"NOEROR":1}"#).expect_err("misspelt");
    assert!(
        error
            .to_string()
            .contains("`NOEROR` is not the name of an RCODE")
    );
}

#[test]
fn identity_holds_for_balanced_counts() {
    assert_eq!(balanced().check_identity(), Ok(()));
    assert_eq!(balanced().lost(), 21);
    assert_eq!(balanced().exchange_failures.turned_away(), 5);
}

#[test]
fn broken_identity_names_both_sides_with_numbers() {
    let mut counts = balanced();
    counts.timeouts = 4;
    let expected = "sent 116 is not responses 100 + timeouts 4 + connection_losses 2 + \
                    exchange_failures 11 + interrupted 0 = 117";
    assert_eq!(counts.check_identity(), Err(expected.into()));
    let mut counts = balanced();
    counts.offered = 122;
    let expected = "offered 122 is not sent 116 + not_sent 5 = 121";
    assert_eq!(counts.check_identity(), Err(expected.into()));
    let mut counts = balanced();
    counts.tcp_fallback.sent = 1;
    assert!(
        counts
            .check_identity()
            .expect_err("one is missing")
            .starts_with("tcp_fallback.sent 1")
    );
}

#[test]
fn goodput_counts_the_allowed_rcodes_only() {
    assert_eq!(balanced().goodput(&[0, 3]), 90);
    assert_eq!(balanced().goodput(&[0]), 60);
    assert_eq!(balanced().goodput(&[4_095]), 0);
}

impl Counts {
    /// The JSON form of counts without a zero: it has each counter, and one name or code of each
    /// group of them.
    pub(crate) fn json_without_zero() -> serde_json::Value {
        fn fill(value: &mut serde_json::Value, next: &mut u64) {
            match value {
                serde_json::Value::Object(map) => map.values_mut().for_each(|v| fill(v, next)),
                number => {
                    *next += 1;
                    *number = (*next).into();
                }
            }
        }
        let mut counts = balanced();
        counts.unexpected.queries = 1;
        counts.exchange_failures.media_type_dns = 1;
        let connections = &mut counts.connections;
        connections.ended_by_goaway.record(0);
        connections.closed_for_violation.record("a rule");
        // Left out while it is zero.
        connections.given_up_by_kernel = 1;
        connections.ended_after.record(3);
        counts.not_sent.send_failed_for.other = 1;
        connections.quic_application.record(5);
        connections.quic_transport.record(10);
        connections.failed.tls_alert.record("unknown_ca");
        connections.failed.quic_transport.record(2);
        connections.failed.quic_application.record(4);
        let mut json = serde_json::to_value(counts).expect("serializes");
        fill(&mut json, &mut 0);
        json
    }
}

#[test]
fn adding_doubles_every_number_at_every_depth() {
    fn double(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(map) => map.values_mut().for_each(double),
            number => *number = (2 * number.as_u64().expect("counts are numbers")).into(),
        }
    }
    let mut json = Counts::json_without_zero();
    let counts: Counts = serde_json::from_value(json.clone()).expect("same structure");
    let mut sum = counts.clone();
    sum.add(&counts);
    double(&mut json);
    assert_eq!(serde_json::to_value(&sum).expect("serializes"), json);
}

#[test]
fn rcode_names_follow_the_registry() {
    let names = [0, 2, 5, 11, 15, 16, 23, 24].map(rcode_name);
    let expected = [
        "NOERROR",
        "SERVFAIL",
        "REFUSED",
        "DSOTYPENI",
        "RCODE15",
        "BADVERS",
        "BADCOOKIE",
        "other",
    ];
    assert_eq!(names, expected);
}

/// Codes as a peer may send them: mostly few, sometimes anything.
fn any_codes() -> impl Strategy<Value = Vec<u64>> {
    vec(prop_oneof![0_u64..90, any::<u64>()], 0..200)
}

fn of(codes: &[u64]) -> Codes {
    let mut counted = Codes::default();
    codes.iter().for_each(|&code| counted.record(code));
    counted
}

proptest! {
    #[test]
    fn merged_codes_are_those_of_all_events_in_any_order(
        a in any_codes(), b in any_codes(), c in any_codes(),
    ) {
        let two = |a: &Codes, b: &Codes| {
            let mut sum = a.clone();
            sum.add(b);
            sum
        };
        let all = of(&[a.clone(), b.clone(), c.clone()].concat());
        let (a, b, c) = (of(&a), of(&b), of(&c));
        prop_assert_eq!(&two(&two(&a, &b), &c), &all);
        prop_assert_eq!(&two(&a, &two(&c, &b)), &all);
        prop_assert_eq!(all.total(), a.total() + b.total() + c.total());
    }

    #[test]
    fn codes_are_bounded_and_survive_json(codes in any_codes()) {
        let counted = of(&codes);
        prop_assert!(counted.named().count() <= CODES_MAX + 1);
        prop_assert_eq!(counted.total(), codes.len() as u64);
        let json = serde_json::to_string(&counted).expect("serializes");
        let back: Codes = serde_json::from_str(&json).expect("reads its own output");
        prop_assert_eq!(back, counted);
    }
}

#[test]
fn codes_are_a_map_in_json_and_nonsense_is_refused() {
    let json = serde_json::to_string(&of(&[429, 503, 429])).expect("serializes");
    assert_eq!(json, r#"{"429":2,"503":1}"#);
    for (json, message) in [
        (r#"{"0x7":1}"#, "`0x7` is not a code in decimal"),
        (r#"{"07":1}"#, "`07` is not a code in decimal"),
        (r#"{"7":1,"other":1}"#, "`other` only beside as many"),
    ] {
        let error = serde_json::from_str::<Codes>(json).expect_err(json);
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn failures_of_every_cause_add_up() {
    let json = serde_json::to_value(ConnectionFailures::default()).expect("serializes");
    let causes = json.as_object().expect("has a field for each cause");
    for cause in causes.keys() {
        let mut one = json.clone();
        one[cause] = match cause.as_str() {
            "tls_alert" => serde_json::json!({"unknown_ca": 1}),
            "quic_transport" | "quic_application" => serde_json::json!({"2": 1}),
            _ => 1.into(),
        };
        let failed: ConnectionFailures = serde_json::from_value(one).expect("same structure");
        assert_eq!(failed.total(), 1, "{cause}");
        assert_eq!(failed.by_cause(Transport::Doq).len(), 1, "{cause}");
    }
}

#[test]
fn causes_are_named_in_the_words_of_their_protocol() {
    let mut failed = ConnectionFailures {
        refused: 3,
        tls_alpn: 1,
        ..ConnectionFailures::default()
    };
    failed.tls_alert.record("unknown_ca");
    failed.quic_transport.record(2);
    failed.quic_application.record_many(4, 2);
    let expected = [
        ("refused", 3),
        ("no common protocol (ALPN)", 1),
        ("TLS alert unknown_ca", 1),
        ("QUIC application error DOQ_EXCESSIVE_LOAD", 2),
        ("QUIC transport error CONNECTION_REFUSED", 1),
    ];
    let expected = expected.map(|(cause, count)| (cause.to_owned(), count));
    assert_eq!(failed.by_cause(Transport::Doq), expected);
    assert_eq!((failed.total(), failed.handshakes()), (8, 5));
    let expected = [
        ("HTTP 429 Too Many Requests", 4),
        ("HTTP 503 Service Unavailable", 1),
        ("streams reset with REFUSED_STREAM", 2),
        ("another media type", 1),
        ("malformed", 2),
        ("not processed by the target", 1),
    ];
    let expected = expected.map(|(cause, count)| (cause.to_owned(), count));
    assert_eq!(
        balanced().exchange_failures.by_cause(Transport::Doh2),
        expected
    );
}

#[test]
fn each_refused_certificate_is_in_one_cause() {
    let mut failed = ConnectionFailures {
        tls_certificate: 3,
        ..ConnectionFailures::default()
    };
    let causes = |failed: &ConnectionFailures| {
        let causes = failed.by_cause(Transport::Dot).into_iter();
        causes
            .map(|(cause, count)| format!("{cause}: {count}"))
            .collect::<Vec<String>>()
    };
    assert_eq!(causes(&failed), ["TLS certificate refused: 3"]);
    failed.tls_certificate_faults.expired = 2;
    let expected = [
        "TLS certificate refused (expired): 2",
        "TLS certificate refused: 1",
    ];
    assert_eq!(causes(&failed), expected);
    let mut doubled = failed.clone();
    doubled.add(&failed);
    assert_eq!(doubled.tls_certificate_faults.expired, 4);
    assert_eq!(doubled.total(), 6);
}
