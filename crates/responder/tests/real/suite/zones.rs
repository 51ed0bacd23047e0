//! Answers, as hickory-proto reads them (RFC 1034, section 4.3.2; RFC 2308; RFC 4592; RFC 6891).

use std::sync::Arc;

use hickory_proto::op::Message;
use proto::query::Edns;
use responder::Zone;
use responder::answer::{Answered, Instead, Limit, answer};
use responder::zone::ZoneError;

use crate::network::{query, query_with};

const ZONE: &str = "
$ORIGIN example.
$TTL 300
@        IN SOA ns1 admin 7 3600 600 86400 60
@           NS  ns1
@           NS  ns.elsewhere.test.
ns1         A   192.0.2.53
www         A   192.0.2.1
www         A   192.0.2.2
www      10 AAAA 2001:db8::1
Text        TXT \"one\" \"two words\"
mail        MX  10 www
alias       CNAME www
outward     CNAME www.elsewhere.test.
broken      CNAME missing
loop        CNAME loop
twice       CNAME alias
below.empty A   192.0.2.9
*.wild      A   192.0.2.7
*.wild      TXT \"wild\"
host.wild   A   192.0.2.8
*.redirect  CNAME www
sub         NS  ns.sub
sub         NS  ns1
sub         DS  1 8 2 00
ns.sub      A   192.0.2.54
under       CNAME deep.sub
";

fn zone() -> Zone {
    Zone::from_text(ZONE, None).unwrap()
}

fn ask(zone: &Zone, query: &[u8], limit: Limit) -> Message {
    let mut octets = b"before".to_vec();
    let answered = answer(zone, query, limit, Instead::Nothing, &mut octets);
    assert!(
        matches!(answered, Answered::Response { .. }),
        "{answered:?}"
    );
    Message::from_vec(&octets[6..]).unwrap()
}

/// RCODE, then AA if set, then the records of answer, authority and additional section.
fn shown(message: &Message) -> Vec<String> {
    let mut lines = vec![format!("{:?}", message.response_code)];
    if message.authoritative {
        lines[0] += " aa";
    }
    let sections = [
        ("", &message.answers),
        ("authority: ", &message.authorities),
        ("additional: ", &message.additionals),
    ];
    for (section, records) in sections {
        lines.extend(records.iter().map(|record| format!("{section}{record}")));
    }
    lines
}

const SOA: &str = "authority: example. 60 IN SOA ns1.example. admin.example. 7 3600 600 86400 60";

#[track_caller]
fn check(question: &str, expected: &[&str]) {
    let message = ask(&zone(), &query(9, question), Limit::Stream);
    assert_eq!(shown(&message), expected, "{question}");
    assert_eq!(message.id, 9);
    assert_eq!(message.queries.len(), 1);
    assert!(message.recursion_desired && !message.recursion_available);
}

#[test]
fn records_of_a_name_are_answered_by_type() {
    check(
        "ns1.example A",
        &["NoError aa", "ns1.example. 300 IN A 192.0.2.53"],
    );
    check(
        "www.example A",
        &[
            "NoError aa",
            "www.example. 300 IN A 192.0.2.1",
            "www.example. 300 IN A 192.0.2.2",
        ],
    );
    check(
        "www.example AAAA",
        &["NoError aa", "www.example. 10 IN AAAA 2001:db8::1"],
    );
    check(
        "text.example TXT",
        &["NoError aa", "text.example. 300 IN TXT onetwo words"],
    );
    check(
        "mail.example MX",
        &["NoError aa", "mail.example. 300 IN MX 10 www.example."],
    );
    check(
        "example NS",
        &[
            "NoError aa",
            "example. 300 IN NS ns1.example.",
            "example. 300 IN NS ns.elsewhere.test.",
        ],
    );
}

#[test]
fn qname_keeps_the_case_of_the_query() {
    check(
        "WwW.eXample AAAA",
        &["NoError aa", "WwW.eXample. 10 IN AAAA 2001:db8::1"],
    );
}

#[test]
fn any_gives_all_records_of_a_name() {
    let message = ask(&zone(), &query(1, "www.example ANY"), Limit::Stream);
    assert_eq!(message.answers.len(), 3);
    let message = ask(&zone(), &query(1, "alias.example ANY"), Limit::Stream);
    assert_eq!(message.answers.len(), 1);
}

#[test]
fn missing_types_and_names_are_answered_with_soa() {
    check("www.example TXT", &["NoError aa", SOA]);
    check("empty.example A", &["NoError aa", SOA]);
    check("missing.example A", &["NXDomain aa", SOA]);
    check("a.b.missing.example A", &["NXDomain aa", SOA]);
    check("below.www.example A", &["NXDomain aa", SOA]);
}

#[test]
fn names_outside_the_zone_are_refused() {
    check("www.elsewhere.test A", &["Refused"]);
    check("test A", &["Refused"]);
    check(". NS", &["Refused"]);
    check("notexample A", &["Refused"]);
}

#[test]
fn aliases_are_followed_within_the_zone() {
    let cname = "alias.example. 300 IN CNAME www.example.";
    check(
        "alias.example AAAA",
        &["NoError aa", cname, "www.example. 10 IN AAAA 2001:db8::1"],
    );
    check("alias.example TXT", &["NoError aa", cname, SOA]);
    check("alias.example CNAME", &["NoError aa", cname]);
    check(
        "twice.example AAAA",
        &[
            "NoError aa",
            "twice.example. 300 IN CNAME alias.example.",
            cname,
            "www.example. 10 IN AAAA 2001:db8::1",
        ],
    );
    check(
        "outward.example A",
        &[
            "NoError aa",
            "outward.example. 300 IN CNAME www.elsewhere.test.",
        ],
    );
    check(
        "broken.example A",
        &[
            "NXDomain aa",
            "broken.example. 300 IN CNAME missing.example.",
            SOA,
        ],
    );
    check(
        "under.example A",
        &[
            "NoError aa",
            "under.example. 300 IN CNAME deep.sub.example.",
        ],
    );
}

#[test]
fn an_alias_loop_ends() {
    let message = ask(&zone(), &query(1, "loop.example A"), Limit::Stream);
    assert_eq!(message.answers.len(), 8);
}

#[test]
fn wildcards_stand_for_names_that_do_not_exist() {
    check(
        "a.wild.example A",
        &["NoError aa", "a.wild.example. 300 IN A 192.0.2.7"],
    );
    check(
        "a.b.wild.example TXT",
        &["NoError aa", "a.b.wild.example. 300 IN TXT wild"],
    );
    check("a.wild.example AAAA", &["NoError aa", SOA]);
    check(
        "host.wild.example A",
        &["NoError aa", "host.wild.example. 300 IN A 192.0.2.8"],
    );
    check("host.wild.example TXT", &["NoError aa", SOA]);
    check("a.host.wild.example A", &["NXDomain aa", SOA]);
    check("wild.example A", &["NoError aa", SOA]);
    check(
        "x.redirect.example AAAA",
        &[
            "NoError aa",
            "x.redirect.example. 300 IN CNAME www.example.",
            "www.example. 10 IN AAAA 2001:db8::1",
        ],
    );
}

#[test]
fn names_below_a_cut_are_referred() {
    let referral = [
        "NoError",
        "authority: sub.example. 300 IN NS ns.sub.example.",
        "authority: sub.example. 300 IN NS ns1.example.",
        "additional: ns.sub.example. 300 IN A 192.0.2.54",
        "additional: ns1.example. 300 IN A 192.0.2.53",
    ];
    check("sub.example A", &referral);
    check("ns.sub.example A", &referral);
    check("a.b.sub.example TXT", &referral);
    let message = ask(&zone(), &query(1, "sub.example DS"), Limit::Stream);
    assert_eq!((message.answers.len(), message.authoritative), (1, true));
}

#[test]
fn a_referral_with_more_addresses_than_can_be_counted_is_truncated() {
    let mut text = "$ORIGIN example.\n$TTL 300\n@ SOA ns a 1 1 1 1 1\n".to_owned();
    for server in 0..280 {
        text.push_str(&format!("sub NS ns{server}.sub\n"));
        for host in 0..250 {
            text.push_str(&format!("ns{server}.sub A 192.0.2.{host}\n"));
        }
    }
    let zone = Zone::from_text(&text, None).unwrap();
    let message = ask(&zone, &query(1, "x.sub.example A"), Limit::Stream);
    assert!(message.truncation && message.authorities.is_empty());
    assert!(!message.authoritative);
}

#[test]
fn any_name_exists_in_a_synthesised_zone() {
    let zone = Zone::synthesised(5);
    let lines = |question: &str| shown(&ask(&zone, &query(1, question), Limit::Stream));
    let a = lines("Any.name.test A");
    assert_eq!(a.len(), 2);
    assert!(a[1].starts_with("Any.name.test. 5 IN A 192.0.2."), "{a:?}");
    assert_eq!(
        a[1].to_lowercase(),
        lines("any.NAME.test A")[1].to_lowercase()
    );
    assert!(lines("x AAAA")[1].starts_with("x. 5 IN AAAA 2001:db8::"));
    assert_eq!(lines("x TXT")[1], "x. 5 IN TXT synthesised");
    assert_eq!(
        lines("x MX")[1],
        "authority: . 5 IN SOA . . 1 3600 600 86400 5"
    );
    assert!(lines(". A")[1].starts_with(". 5 IN A 192.0.2."));
    assert!(ask(&zone, &query(1, "x A"), Limit::Stream).recursion_available);
}

fn edns(udp_payload_octets: u16, dnssec_ok: bool) -> Option<Edns> {
    Some(Edns {
        udp_payload_octets,
        dnssec_ok,
        options: vec![(10, vec![1; 8])],
        ..Edns::default()
    })
}

/// A zone whose one RRset takes `records` times 16 octets.
fn large(records: usize) -> Zone {
    let mut text = "$TTL 1\n@ SOA . . 1 1 1 1 1\n".to_owned();
    for record in 0..records {
        text += &format!("large A 192.0.{}.{}\n", record / 256, record % 256);
    }
    Zone::from_text(&text, Some("test.")).unwrap()
}

#[test]
fn a_response_that_does_not_fit_is_truncated() {
    let zone = large(60);
    let cases = [
        (None, Limit::Datagram(1232), true),
        (edns(512, false), Limit::Datagram(1232), true),
        (edns(100, false), Limit::Datagram(1232), true),
        (edns(1232, false), Limit::Datagram(1232), false),
        (edns(4096, false), Limit::Datagram(700), true),
        (None, Limit::Stream, false),
    ];
    for (edns, limit, truncated) in cases {
        let message = ask(&zone, &query_with(1, "large.test A", edns.clone()), limit);
        let answers = if truncated { 0 } else { 60 };
        let seen = (
            message.truncation,
            message.answers.len(),
            message.edns.is_some(),
        );
        assert_eq!(seen, (truncated, answers, edns.is_some()), "{limit:?}");
    }
}

#[test]
fn the_longest_response_is_exactly_as_long_as_allowed() {
    // Header, question and 30 records without OPT: 12 + 16 + 480 = 508 octets.
    let message = ask(&large(30), &query(1, "large.test A"), Limit::Datagram(1232));
    assert_eq!((message.truncation, message.answers.len()), (false, 30));
    let message = ask(&large(31), &query(1, "large.test A"), Limit::Datagram(1232));
    assert!(message.truncation);
}

#[test]
fn edns_is_answered_with_edns() {
    let message = ask(
        &zone(),
        &query_with(1, "www.example A", edns(4096, true)),
        Limit::Stream,
    );
    let opt = message.edns.as_ref().unwrap();
    assert_eq!(
        (opt.version(), opt.max_payload(), opt.flags().dnssec_ok),
        (0, 1232, true)
    );
    assert_eq!(message.answers.len(), 2);
    let message = ask(&zone(), &query(1, "www.example A"), Limit::Stream);
    assert!(message.edns.is_none());
}

#[test]
fn an_unknown_edns_version_is_badvers() {
    let mut message = query_with(1, "www.example A", edns(4096, false));
    let opt = message.len() - (11 + 12);
    message[opt + 6] = 1;
    let message = ask(&zone(), &message, Limit::Stream);
    let opt = message.edns.as_ref().unwrap();
    assert_eq!(
        (opt.rcode_high(), opt.version(), message.answers.len()),
        (1, 0, 0)
    );
}

#[test]
fn malformed_queries_are_formerr_with_a_bare_header() {
    let good = query_with(0x1234, "www.example A", edns(1232, false));
    let mut two_questions = good.clone();
    two_questions[5] = 2;
    let mut no_question = good[..12].to_vec();
    no_question[5] = 0;
    let mut pointer = good.clone();
    pointer[12] = 0xc0;
    let mut twice = good.clone();
    twice.extend_from_slice(&good[good.len() - 23..]);
    twice[11] = 2;
    let cases = [
        two_questions,
        no_question,
        pointer,
        twice,
        good[..20].to_vec(),
        { good[..good.len() - 1].to_vec() },
    ];
    for case in cases {
        let mut octets = Vec::new();
        let answered = answer(
            &zone(),
            &case,
            Limit::Datagram(1232),
            Instead::Nothing,
            &mut octets,
        );
        assert_eq!(
            octets,
            [0x12, 0x34, 0x81, 0x01, 0, 0, 0, 0, 0, 0, 0, 0],
            "{case:?}"
        );
        assert_eq!(
            answered,
            Answered::Response {
                rcode: 1,
                malformed: true,
                update: false,
                octets_max: 12
            }
        );
    }
}

#[test]
fn responses_and_fragments_of_headers_are_not_answered() {
    let mut response = query(1, "www.example A");
    response[2] |= 0x80;
    for message in [&response[..], &[0; 11], &[]] {
        let mut octets = Vec::new();
        let answered = answer(
            &zone(),
            message,
            Limit::Stream,
            Instead::Nothing,
            &mut octets,
        );
        assert_eq!((answered, octets.len()), (Answered::Ignored, 0));
    }
}

#[test]
fn updates_succeed_and_other_opcodes_are_not_implemented() {
    let mut update = query(1, "example SOA");
    update[2] = 5 << 3;
    update[9] = 1;
    update.extend_from_slice(b"\x03new\xc0\x0c\0\x01\0\x01\0\0\0\x01\0\x04\xc0\0\x02\x01");
    let mut octets = Vec::new();
    let answered = answer(
        &zone(),
        &update,
        Limit::Stream,
        Instead::Nothing,
        &mut octets,
    );
    assert!(matches!(
        answered,
        Answered::Response {
            rcode: 0,
            update: true,
            ..
        }
    ));
    let zone_section = &query(1, "example SOA")[12..];
    assert_eq!(
        octets[..12],
        [0, 1, 0x80 | 5 << 3, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    );
    assert_eq!(&octets[12..], zone_section);

    let mut notify = query(1, "example SOA");
    notify[2] = 4 << 3;
    let message = ask(&zone(), &notify, Limit::Stream);
    assert_eq!(shown(&message), ["NotImp"]);
}

#[test]
fn other_classes_and_transfers_are_refused() {
    let mut chaos = query(1, "www.example TXT");
    let class = chaos.len() - 1;
    chaos[class] = 3;
    assert_eq!(shown(&ask(&zone(), &chaos, Limit::Stream)), ["Refused"]);
    check("example AXFR", &["Refused"]);
}

#[test]
fn checking_disabled_is_copied() {
    let mut message = query(1, "www.example AAAA");
    message[3] |= 0x10;
    assert!(ask(&zone(), &message, Limit::Stream).checking_disabled);
}

#[test]
fn a_zone_of_many_names_answers_each() {
    let mut text = "$ORIGIN many.test.\n$TTL 1\n@ SOA . . 1 1 1 1 1\n".to_owned();
    for number in 1..=2000 {
        text += &format!(
            "test-record-{number} A 192.0.{}.{}\n",
            number / 256,
            number % 256
        );
    }
    let zone = Zone::from_text(&text, None).unwrap();
    assert_eq!(zone.names(), Some(2001));
    for number in 1..=2000 {
        let question = format!("test-record-{number}.many.test A");
        let message = ask(&zone, &query(1, &question), Limit::Datagram(1232));
        let address = format!("192.0.{}.{}", number / 256, number % 256);
        assert_eq!(message.answers[0].data.to_string(), address);
    }
}

#[test]
fn an_rrset_that_fits_into_no_message_is_refused() {
    let host = |number: u32| format!("a 1 A 10.0.{}.{}\n", number / 256, number % 256);
    let hosts: String = (0..6_000).map(host).collect();
    let text = format!("@ 1 SOA . . 1 1 1 1 1\n{hosts}");
    let refused = Zone::from_text(&text, Some("z.test.")).unwrap_err();
    assert_eq!(refused, ZoneError::RrsetTooLong("a.z.test.".to_owned()));
}

#[test]
fn texts_in_quotes_need_no_blank_between_them() {
    let text = "@ 1 SOA . . 1 1 1 1 1\nt 1 TXT \"one\"\"two\"three\n";
    let zone = Zone::from_text(text, Some("z.test.")).unwrap();
    let message = ask(&zone, &query(1, "t.z.test TXT"), Limit::Stream);
    assert_eq!(shown(&message)[1], "t.z.test. 1 IN TXT onetwothree");
}

#[test]
fn the_root_can_be_the_apex() {
    let zone = Zone::from_text(". 5 SOA . . 1 1 1 1 1\nx. 5 A 192.0.2.1\n", None).unwrap();
    assert_eq!(
        shown(&ask(&zone, &query(1, "x A"), Limit::Stream))[1],
        "x. 5 IN A 192.0.2.1"
    );
    let missing = ask(&zone, &query(1, "y A"), Limit::Stream);
    assert_eq!(shown(&missing)[0], "NXDomain aa");
}

#[test]
fn a_text_that_is_no_zone_says_why() {
    let soa = "@ 1 SOA . . 1 1 1 1 1\n";
    let load = |text: &str| {
        Zone::from_text(text, Some("z.test."))
            .map(Arc::new)
            .unwrap_err()
    };
    assert_eq!(load("www 1 A 192.0.2.1\n"), ZoneError::NoSoa);
    assert_eq!(load(""), ZoneError::NoSoa);
    let line_2 = |line: &str| load(&format!("{soa}{line}\nnext 1 A 192.0.2.1\n")).to_string();
    assert_eq!(
        line_2("www 1 A 192.0.2"),
        "zone file, line 2: expected IPv4 address"
    );
    for line in ["www 1 A 192.0.2 ; address", "www 1 WHAT x", "www 1"] {
        assert!(
            line_2(line).starts_with("zone file, line 2: "),
            "{}",
            line_2(line)
        );
    }
    let outside = ZoneError::Outside("www.test.".to_owned(), "z.test.".to_owned());
    assert_eq!(load(&format!("{soa}www.test. 1 A 192.0.2.1\n")), outside);
    let both = format!("{soa}a 1 CNAME b\na 1 A 192.0.2.1\n");
    assert_eq!(
        load(&both),
        ZoneError::CnameNotAlone("a.z.test.".to_owned())
    );
    assert_eq!(
        load("$INCLUDE other.zone\n"),
        ZoneError::Include("other.zone".to_owned())
    );
    for (line, error) in [
        (
            "a 60 TXT ( w",
            "line 2: the parenthesis that opens here is not closed",
        ),
        (
            "a 60 TXT \"w ;",
            "line 2: the quote that begins here is not closed",
        ),
        (
            "a 60 A 192.0.2.1 )",
            "line 2: a closing parenthesis without",
        ),
        ("$INCLUDE \"a b\"@ @", "line 2: "),
    ] {
        let refused = load(&format!("{soa}{line}\nb 60 A 192.0.2.1\n")).to_string();
        assert!(refused.contains(error), "{line}: {refused}");
    }
    let two = format!("{soa}a 1 SOA . . 1 1 1 1 1\n");
    assert!(matches!(load(&two), ZoneError::TwoSoas(..)));
    assert!(
        load("@ 1 CH SOA . . 1 1 1 1 1\n")
            .to_string()
            .contains("class")
    );
    for line in ["a..b 1 A 192.0.2.1", "www 1 CNAME a..b", "www 1 MX 1 a..b"] {
        assert!(
            matches!(load(&format!("{soa}{line}\n")), ZoneError::Name(_)),
            "{line}"
        );
    }
    assert!(matches!(
        Zone::from_text(soa, Some("a..b")),
        Err(ZoneError::Origin(_))
    ));
}
