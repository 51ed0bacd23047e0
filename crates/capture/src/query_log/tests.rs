//! Lines as the servers write them.

use super::*;
use crate::tests::{Outcome, address, read as read_file};

const S: u64 = 1_000_000_000;
/// 2026-11-21 10:00:00 UTC.
const TEN: u64 = 1_795_255_200 * S;

fn log(text: &str) -> Outcome {
    read_file(text.as_bytes())
}

fn one(text: &str) -> Observed {
    let outcome = log(text);
    assert_eq!(outcome.observed.len(), 1, "{text}");
    assert_eq!(
        (outcome.skipped.is_empty(), outcome.end),
        (true, None),
        "{text}"
    );
    outcome.observed.into_iter().next().unwrap()
}

#[test]
fn bind_says_who_asked_what_with_which_flags() {
    let tail = "client @0x7f64 192.0.2.1#5353 (www.Example.com): query: www.Example.com IN AAAA \
                +E(0)TDCK (192.0.2.53)\n";
    let observed = one(&format!("21-Nov-2026 10:00:00.250 queries: info: {tail}"));
    assert_eq!(observed.at_ns, TEN + S / 4);
    assert_eq!(observed.client, address("192.0.2.1:5353"));
    assert_eq!(observed.server, Some(address("192.0.2.53:0")));
    assert_eq!(observed.transport, Transport::Tcp);
    assert_eq!(&observed.question.name[..], b"\x03www\x07example\x03com\0");
    assert_eq!((observed.question.qtype, observed.question.qclass), (28, 1));
    let flags = QueryFlags {
        recursion_desired: true,
        checking_disabled: true,
        edns: true,
        dnssec_ok: true,
    };
    assert_eq!((observed.flags, observed.response), (flags, None));
    for time in ["2026-11-21T10:00:00.250Z", "2026-11-21T11:00:00.250+01:00"] {
        assert_eq!(one(&format!("{time} {tail}")).at_ns, TEN + S / 4, "{time}");
    }
    let syslog = one(&format!("Nov 21 10:00:00 ns1 named[12]: {tail}"));
    let next_day = one(&format!("Nov 22 10:00:01 ns1 named[12]: {tail}"));
    assert_eq!(next_day.at_ns - syslog.at_ns, 86_401 * S);
}

#[test]
fn variants_of_binds_lines_are_understood() {
    for client in [
        "client 2001:db8::1#5353 (.): query",
        "client @0x1 2001:db8::1#5353/key k1 (.): query",
        "client @0x1 2001:db8::1%eth0#5353 (.): view internal: query",
    ] {
        let observed = one(&format!(
            "21-Nov-2026 10:00:00.250 {client}: . IN NS -S (::1)\n"
        ));
        assert_eq!(observed.client, address("[2001:db8::1]:5353"));
        assert_eq!(&observed.question.name[..], b"\0");
        assert!(!observed.flags.recursion_desired);
        assert_eq!(observed.transport, Transport::Udp);
    }
}

#[test]
fn unbound_says_only_what_was_asked_or_also_what_became_of_it() {
    let asked = "[1795255200] unbound[7:0] info: 192.0.2.1 example.com. A IN\n";
    let observed = one(asked);
    assert_eq!(
        (observed.at_ns, observed.client),
        (TEN, address("192.0.2.1:0"))
    );
    assert_eq!(observed.response, None);

    let answered = "[1795255202] unbound[7:0] info: 192.0.2.1 example.com. A IN NXDOMAIN \
                    1.500000 0 45\n";
    let observed = one(answered);
    assert_eq!(observed.at_ns, TEN + S / 2, "when it was asked");
    let response = observed.response.unwrap();
    assert_eq!(
        (response.rcode, response.latency_ns),
        (3, Some(1_500_000_000))
    );

    let both = one(&format!("{asked}{answered}"));
    assert_eq!((both.at_ns, both.response), (TEN, Some(response)));

    let tagged = "2026-11-21T10:00:02.000+00:00 unbound[7:0] reply: 2001:db8::1 example.com. \
                  HTTPS IN NOERROR 0.000000 1 45 on dot 2001:db8::53 853\n";
    let observed = one(tagged);
    assert_eq!(observed.transport, Transport::Dot);
    assert_eq!(observed.server, Some(address("[2001:db8::53]:853")));
    assert_eq!((observed.at_ns, observed.question.qtype), (TEN + 2 * S, 65));
}

#[test]
fn the_same_question_again_is_another_query_in_a_log_without_ids() {
    let asked = "[1795255200] unbound[7:0] info: 192.0.2.1 example.com. A IN\n";
    assert_eq!(log(&asked.repeat(3)).observed.len(), 3);
}

#[test]
fn coredns_says_everything_but_the_time_which_others_write_before_it() {
    let line = "[INFO] [2001:db8::1]:5353 - 29008 \"A IN example.org. udp 41 true 1232\" \
                NXDOMAIN qr,aa,rd 68 0.250000000s\n";
    let observed = one(&format!("2026-11-21T10:00:00.5Z {line}"));
    assert_eq!(observed.at_ns, TEN + S / 4);
    assert_eq!(observed.client, address("[2001:db8::1]:5353"));
    let flags = QueryFlags {
        recursion_desired: true,
        edns: true,
        dnssec_ok: true,
        ..QueryFlags::default()
    };
    assert_eq!(observed.flags, flags);
    let response = observed.response.unwrap();
    assert_eq!((response.rcode, response.latency_ns), (3, Some(S / 4)));

    let blank =
        "[INFO] 127.0.0.1:4 - 1 \"TYPE65280 IN a\\ b.example. tcp 33 false 512\" - - 0 0.1s\n";
    let observed = one(&format!("2026-11-21T10:00:00Z {blank}"));
    assert_eq!(&observed.question.name[..], b"\x03a b\x07example\0");
    assert_eq!(
        (observed.transport, observed.response),
        (Transport::Tcp, None)
    );

    let untimed = log(line);
    assert_eq!((untimed.observed.len(), untimed.observed[0].at_ns), (1, 0));
    untimed.assert_skipped(&[(Skip::WithoutTime, 1)]);
}

#[test]
fn other_lines_and_broken_ones_are_counted_apart() {
    let text = "\
starting BIND 9.18.49
21-Nov-2026 10:00:00.000 client @0x1 192.0.2.1#5 (a): query: a IN A + (::1)\r
21-Nov-2026 10:00:00.000 client @0x1 192.0.2.1#5 (a): query: a IN
21-Nov-2026 10:00:00.000 client @0x1 192.0.2.1#5 (a): query: a..b IN A + (::1)
21-Nov-2026 10:00:00.000 client @0x1 192.0.2.1#5 (a): query (cache) 'a/A/IN' denied
21-Nov-2026 10:00:00.000 client @0x1 somewhere (a): query: a IN A + (::1)
last line without an end";
    let outcome = log(text);
    assert_eq!(outcome.names(), ["a"]);
    outcome.assert_skipped(&[(Skip::OtherLine, 3), (Skip::MalformedLine, 3)]);
    let mut octets = text.as_bytes().to_vec();
    octets.extend(b"\n\xff\xfe\n");
    assert_eq!(read_file(&octets).skipped.get(Skip::MalformedLine), 4);
}

#[test]
fn times_are_read_in_every_form_and_nothing_else_is() {
    for (text, seconds) in [
        ("1970-01-01T00:00:00Z", Some(0)),
        ("2000-02-29 12:00:00", Some(951_825_600)),
        ("2026/11/21 10:00:00 ", Some(1_795_255_200)),
        ("2026-11-21T05:30:00-0430", Some(1_795_255_200)),
        ("[1795255200]", Some(1_795_255_200)),
        ("1795255200.0", Some(1_795_255_200)),
        ("  Jan  1 00:00:00 host", Some(946_684_800)),
        ("", None),
        ("hello", None),
        ("2026-13-01T00:00:00Z", None),
        ("2026-11-21T25:00:00Z", None),
        ("2026-11-21", None),
        ("1969-12-31T23:59:59Z", None),
        ("99999999999999999999", None),
        ("[", None),
    ] {
        assert_eq!(
            time::read(text),
            seconds.map(|seconds: u64| seconds * S),
            "{text}"
        );
    }
}
