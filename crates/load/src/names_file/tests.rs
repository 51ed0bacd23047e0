use std::net::IpAddr;

use hickory_proto::op::{Message, MessageType, OpCode};
use hickory_proto::rr::rdata::opt::{EdnsCode, EdnsOption};
use hickory_proto::rr::{DNSClass, Name, RecordType};
use proptest::prelude::*;
use proto::query::{Edns, PADDING_BLOCK_OCTETS};

use super::*;

fn parse(text: &str) -> QuestionSet {
    parse_text(text.as_bytes(), &QueryOptions::default()).unwrap()
}

fn fault(text: &str) -> String {
    parse_text(text.as_bytes(), &QueryOptions::default())
        .unwrap_err()
        .to_string()
}

/// The one query of `line`, as hickory-proto reads it.
fn read_one(line: &str, defaults: &QueryOptions) -> Message {
    let set = parse_text(line.as_bytes(), defaults).unwrap();
    assert_eq!(set.len(), 1);
    Message::from_vec(set.get(0).message).unwrap()
}

fn questions(set: &QuestionSet) -> Vec<(String, RecordType, DNSClass)> {
    set.iter()
        .map(|template| {
            let message = Message::from_vec(template.message).unwrap();
            assert_eq!(message.metadata.id, 0);
            assert_eq!(message.metadata.message_type, MessageType::Query);
            assert_eq!(message.metadata.op_code, OpCode::Query);
            let [question] = &message.queries[..] else {
                panic!("one question")
            };
            assert_eq!(template.message.len(), 12 + template.question_octets);
            (
                question.name().to_string(),
                question.query_type(),
                question.query_class(),
            )
        })
        .collect()
}

#[test]
fn lines_become_queries_in_their_order() {
    let set = parse("www.example.com A\nExample.ORG. mx\n. NS\n_dns.x.test TYPE64\n");
    let expected = [
        ("www.example.com.", RecordType::A),
        ("Example.ORG.", RecordType::MX),
        (".", RecordType::NS),
        ("_dns.x.test.", RecordType::SVCB),
    ];
    let read = questions(&set);
    assert_eq!(read.len(), expected.len());
    for ((name, qtype, qclass), (expected_name, expected_type)) in read.iter().zip(expected) {
        assert_eq!((&**name, *qtype), (expected_name, expected_type));
        assert_eq!(*qclass, DNSClass::IN);
    }
}

#[test]
fn comments_blank_lines_line_ends_and_a_byte_order_mark_count_for_nothing() {
    let text = "\u{feff}; a comment\r\n\r\n  # another\n \t \na.test A ; trailing\r\nb.test\tAAAA \
                # trailing\n\nc.test TXT";
    let names: Vec<String> = questions(&parse(text)).into_iter().map(|q| q.0).collect();
    assert_eq!(names, ["a.test.", "b.test.", "c.test."]);
    let latin1 = [b"; caf\xe9\n".as_slice(), b"a.test A\n"].concat();
    let set = parse_text(&latin1, &QueryOptions::default()).unwrap();
    assert_eq!(set.len(), 1);
}

#[test]
fn a_class_may_stand_on_either_side_of_the_type() {
    let cases = [
        ("version.bind CH TXT", RecordType::TXT, DNSClass::CH),
        ("version.bind TXT CH", RecordType::TXT, DNSClass::CH),
        ("a.test any", RecordType::ANY, DNSClass::IN),
        ("a.test ANY A", RecordType::A, DNSClass::ANY),
        ("a.test A ANY", RecordType::A, DNSClass::ANY),
        ("a.test ANY IN", RecordType::ANY, DNSClass::IN),
        ("a.test class4 a +do", RecordType::A, DNSClass::HS),
    ];
    for (line, qtype, qclass) in cases {
        let message = read_one(line, &QueryOptions::default());
        let question = &message.queries[0];
        assert_eq!(
            (question.query_type(), question.query_class()),
            (qtype, qclass),
            "{line}"
        );
    }
}

#[test]
fn faults_name_the_line_and_quote_it() {
    let cases = [
        (
            "a.test A\n\nfoo.example. AAAAA\n",
            "line 3: unknown type `AAAAA` in `foo.example. AAAAA`",
        ),
        (
            "foo.example.",
            "line 1: no type after the name in `foo.example.`",
        ),
        ("a IN BB", "line 1: unknown type `BB` in `a IN BB`"),
        ("a BB IN", "line 1: unknown type `BB` in `a BB IN`"),
        ("a A extra", "line 1: unexpected `extra` in `a A extra`"),
        (
            "a IN A extra",
            "line 1: unexpected `extra` in `a IN A extra`",
        ),
        ("a 300 IN A", "line 1: unknown type `300` in `a 300 IN A`"),
        (
            "a A +do x",
            "line 1: unexpected `x` after the type in `a A +do x`",
        ),
        (
            "a A +dnssec",
            "line 1: unknown option `+dnssec` in `a A +dnssec`",
        ),
        ("a +do", "line 1: no type after the name in `a +do`"),
    ];
    for (text, expected) in cases {
        assert_eq!(fault(text), expected);
    }
    assert!(fault("a..test A").contains("empty label"));
    assert!(fault(&format!("{}.test A", "a".repeat(64))).contains("63 bytes"));
    assert!(fault(&format!("{} A", "a.".repeat(128))).contains("255 bytes"));
    assert!(fault("a\\256.test A").contains("backslash"));
    let error = parse_text(b"a A\nb AA\n", &QueryOptions::default()).unwrap_err();
    assert_eq!(error.place, FilePosition::Line { line: 2, column: 3 });
    assert!(!error.hint.is_empty());
}

#[test]
fn files_without_a_question_and_files_of_another_kind_are_faults() {
    for text in ["", "\n\n", "; nothing\r\n", "\u{feff}"] {
        let error = parse_text(text.as_bytes(), &QueryOptions::default()).unwrap_err();
        assert_eq!(error.place, FilePosition::Whole);
        assert_eq!(error.to_string(), "it has no questions");
    }
    let stream = b"\0\x1d\0\0\x01\0\0\x01";
    let error = parse_text(stream, &QueryOptions::default()).unwrap_err();
    assert!(error.what.starts_with("control character 0x00"), "{error}");
    let error = parse_text(b"a A\nb\xff A", &QueryOptions::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("line 2: byte 0xff is not UTF-8"),
        "{error}"
    );
    assert_eq!(error.place, FilePosition::Line { line: 2, column: 2 });
}

#[test]
fn header_options_override_the_defaults_of_the_run_for_their_line_only() {
    let defaults = QueryOptions::default();
    let message = read_one("a.test A +CD +ad -rd", &defaults);
    let metadata = &message.metadata;
    assert!(metadata.checking_disabled && metadata.authentic_data);
    assert!(!metadata.recursion_desired && message.edns.is_none());
    let set = parse("a.test A -rd\na.test A\n");
    let next = Message::from_vec(set.get(1).message).unwrap();
    assert!(next.metadata.recursion_desired);
    let reversed = QueryOptions {
        recursion_desired: false,
        checking_disabled: true,
        authentic_data: true,
        edns: Some(Edns::default()),
        ..QueryOptions::default()
    };
    let message = read_one("a.test A +rd -cd -ad +noedns", &reversed);
    let metadata = &message.metadata;
    assert!(!metadata.checking_disabled && !metadata.authentic_data);
    assert!(metadata.recursion_desired && message.edns.is_none());
}

#[test]
fn edns_options_add_and_change_the_opt_record() {
    let none = QueryOptions::default();
    let some = QueryOptions {
        edns: Some(Edns {
            udp_payload_octets: 4096,
            dnssec_ok: true,
            options: vec![(8, vec![0, 1, 8, 0, 10]), (10, vec![1; 8])],
            ..Edns::default()
        }),
        ..QueryOptions::default()
    };
    let cases = [
        ("+edns", &none, 1232, false, 0),
        ("+do", &none, 1232, true, 0),
        ("+edns=512", &none, 512, false, 0),
        ("+edns=512 -do", &some, 512, false, 2),
        ("+edns", &some, 4096, true, 2),
        ("+opt=65001:c0FFee +opt=65002:", &none, 1232, false, 2),
        ("+ecs=192.0.2.0/24", &some, 4096, true, 2),
    ];
    for (options, defaults, size, dnssec_ok, count) in cases {
        let message = read_one(&format!("a.test A {options}"), defaults);
        let edns = message.edns.unwrap();
        assert_eq!(edns.max_payload(), size, "{options}");
        assert_eq!(edns.flags().dnssec_ok, dnssec_ok, "{options}");
        assert_eq!(edns.options().as_ref().len(), count, "{options}");
    }
    assert!(read_one("a.test A -edns", &some).edns.is_none());
    assert!(read_one("a.test A -do", &none).edns.is_none());
}

/// Length and options of the query of a line, where `--edns-padding 128` is the default or not.
fn padded(options: &str, by_default: bool) -> (usize, Vec<u16>) {
    let defaults = QueryOptions {
        edns: by_default.then(|| Edns {
            padding_block_octets: Some(PADDING_BLOCK_OCTETS),
            ..Edns::default()
        }),
        ..QueryOptions::default()
    };
    let line = format!("a.test A {options}");
    let set = parse_text(line.as_bytes(), &defaults).unwrap();
    let edns = Message::from_vec(set.get(0).message).unwrap().edns;
    let codes: Vec<u16> = edns.map_or(Vec::new(), |edns| {
        let options = edns.options().as_ref();
        options.iter().map(|(code, _)| u16::from(*code)).collect()
    });
    let uses = EdnsUses {
        padding: codes.contains(&12),
        keepalive: codes.contains(&11),
        nsid: false,
    };
    assert_eq!(set.edns_uses(), uses, "{options}");
    (set.get(0).message.len(), codes)
}

#[test]
fn rfc8467_padding_of_a_line_replaces_that_of_the_run() {
    for (options, by_default, octets, codes) in [
        ("", true, 128, &[12][..]),
        ("+padding", false, 128, &[12]),
        ("+padding=100", true, 100, &[12]),
        ("+padding=1 +opt=65001:00", false, 44, &[65_001, 12]),
        ("-padding", true, 35, &[]),
        ("-padding", false, 24, &[]),
        ("+noedns", true, 24, &[]),
        ("+opt=12:0000", true, 41, &[12]),
        ("+opt=12:0000 +padding", false, 128, &[12]),
    ] {
        let read = padded(options, by_default);
        assert_eq!(read, (octets, codes.to_vec()), "`{options}` {by_default}");
    }
}

#[test]
fn rfc7828_section_3_2_keepalive_in_queries_is_empty_and_given_once() {
    for (options, octets, codes) in [
        ("+keepalive", 39, &[11][..]),
        ("+keepalive +KEEPALIVE", 39, &[11]),
        ("+keepalive -keepalive", 35, &[]),
        ("+keepalive +padding", 128, &[11, 12]),
    ] {
        assert_eq!(
            padded(options, false),
            (octets, codes.to_vec()),
            "{options}"
        );
    }
}

#[test]
fn client_subnets_and_raw_options_arrive_as_written() {
    let line = "a.test A +ecs=192.0.2.77/24 +opt=65001:0aFF";
    let edns = read_one(line, &QueryOptions::default()).edns.unwrap();
    let Some(EdnsOption::Subnet(subnet)) = edns.option(EdnsCode::Subnet) else {
        panic!("a client subnet")
    };
    assert_eq!(subnet.addr(), "192.0.2.0".parse::<IpAddr>().unwrap());
    assert_eq!((subnet.source_prefix(), subnet.scope_prefix()), (24, 0));
    let option = edns.option(EdnsCode::from(65001)).unwrap();
    assert_eq!(Vec::<u8>::try_from(option).unwrap(), [0x0a, 0xff]);
    let edns = read_one("a.test A +ecs=2001:db8::1", &QueryOptions::default())
        .edns
        .unwrap();
    let Some(EdnsOption::Subnet(subnet)) = edns.option(EdnsCode::Subnet) else {
        panic!("a client subnet")
    };
    assert_eq!(subnet.source_prefix(), 128);
}

#[test]
fn bad_options_say_what_is_wrong_with_their_value() {
    let cases = [
        (
            "+edns=",
            "`` is not a size from 0 to 65535 in option `+edns=`",
        ),
        ("+edns=65536", "`65536` is not a size"),
        ("+edns=+5", "`+5` is not a size"),
        ("+ecs=example", "`example` is not an IPv4 or IPv6 address"),
        ("+ecs=192.0.2.0/33", "needs a prefix length from 0 to 32"),
        ("+ecs=::/300", "needs a prefix length from 0 to 128"),
        ("+opt=10", "`10` is not of the form CODE:HEX"),
        ("+opt=x:00", "`x` is not a code from 0 to 65535"),
        (
            "+opt=10:abc",
            "`abc` is not an even number of hexadecimal digits",
        ),
        ("+do=1", "unknown option `+do=1`"),
        ("+padding=0", "`0` is not a block of 1 to 65535 bytes"),
        ("+padding=65536", "`65536` is not a block"),
        ("-padding=1", "unknown option `-padding=1`"),
        ("+keepalive=5", "unknown option `+keepalive=5`"),
        ("+ecs", "unknown option `+ecs`"),
        ("+do +noedns", "`+noedns` contradicts `+do`"),
        ("-edns +edns=512", "`-edns` contradicts `+edns=512`"),
    ];
    for (options, expected) in cases {
        let fault = fault(&format!("a.test A {options}"));
        assert!(fault.contains(expected), "{options}: {fault}");
    }
    let long = format!(
        "a.test A +opt=1:{} +opt=2:{}",
        "00".repeat(40_000),
        "00".repeat(40_000)
    );
    let fault = fault(&long);
    assert!(
        fault.contains("a query of more than 65,535 bytes"),
        "{fault}"
    );
    assert!(fault.len() < 200, "long lines are cut: {fault}");
}

#[test]
fn escapes_put_any_octet_into_a_name() {
    let set = parse("a\\032b\\.c\\\\.test A\na\\ b.test A");
    assert_eq!(set.get(0).message[12..20], *b"\x06a b.c\\\x04");
    assert_eq!(&set.get(1).message[12..16], b"\x03a b");
}

fn stream(messages: &[&[u8]]) -> Vec<u8> {
    let mut stream = Vec::new();
    for message in messages {
        proto::framing::write_message(message, &mut stream);
    }
    stream
}

#[test]
fn stream_messages_keep_everything_but_their_id() {
    let set = parse("a.test A +cd -rd\nb.test TXT +do +opt=10:0102030405060708\n");
    let mut messages: Vec<Vec<u8>> = set.iter().map(|t| t.message.to_vec()).collect();
    messages[1][..2].copy_from_slice(&[0xab, 0xcd]);
    let slices: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let read = parse_stream(&stream(&slices)).unwrap();
    assert!(read.iter().eq(set.iter()));
}

#[test]
fn stream_faults_name_message_and_octet() {
    let query = parse("a.test A").get(0).message.to_vec();
    let changed = |at: usize, octet: u8| {
        let mut query = query.clone();
        query[at] = octet;
        query
    };
    let cases = [
        (
            stream(&[&query, &changed(2, 0x80)]),
            "message 2 at byte 26: a response (QR is 1)",
        ),
        (
            stream(&[&changed(5, 2)]),
            "message 1 at byte 0: 2 questions, not one",
        ),
        (
            stream(&[&query, &query[..11]]),
            "message 2 at byte 26: 11 bytes are too few",
        ),
        (
            stream(&[&changed(12, 0xc0)]),
            "its question holds no whole domain name",
        ),
        (stream(&[&query[..22]]), "cut off within the question"),
        (
            stream(&[&query, &[]]),
            "message 2 at byte 26: 0 bytes are too few",
        ),
        (
            [stream(&[&query]), vec![0]].concat(),
            "byte 26: cut off within the length prefix",
        ),
        (
            stream(&[&query])[..20].to_vec(),
            "byte 0: cut off: 18 of 24 bytes are there",
        ),
        (Vec::new(), "it has no questions"),
    ];
    for (bytes, expected) in cases {
        let fault = parse_stream(&bytes).unwrap_err().to_string();
        assert!(
            fault.contains(expected),
            "{fault} should contain {expected}"
        );
    }
}

#[test]
fn a_hundred_thousand_lines_are_read_whole() {
    let text: String = (0..100_000)
        .map(|number| format!("name-{number}.example.com A\n"))
        .collect();
    let set = parse(&text);
    assert_eq!(set.len(), 100_000);
    let last = Message::from_vec(set.get(99_999).message).unwrap();
    assert_eq!(
        last.queries[0].name().to_string(),
        "name-99999.example.com."
    );
}

proptest! {
    #[test]
    fn no_octets_make_the_parsers_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = parse_text(&bytes, &QueryOptions::default());
        let _ = parse_stream(&bytes);
    }

    #[test]
    fn no_near_miss_makes_the_text_parser_panic(
        text in r"([a.\\+ ;#=:/0-9-]|A|\+do|\+ecs=|\n){0,80}",
    ) {
        let _ = parse_text(text.as_bytes(), &QueryOptions::default());
    }

    #[test]
    fn any_name_and_type_reads_back_the_same(
        labels in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 1..8),
        number in 1u16..=40,
        checking_disabled: bool,
        dnssec_ok: bool,
    ) {
        let text: String = labels
            .iter()
            .flat_map(|label| label.iter().map(|octet| format!("\\{octet:03}")).chain([".".into()]))
            .collect();
        let cd = if checking_disabled { " +cd" } else { "" };
        let dnssec = if dnssec_ok { " +do" } else { "" };
        let line = format!("{text} TYPE{number}{cd}{dnssec}");
        let message = read_one(&line, &QueryOptions::default());
        let question = &message.queries[0];
        let expected = Name::from_labels(labels.iter().map(Vec::as_slice)).unwrap();
        prop_assert!(question.name().eq_case(&expected));
        prop_assert_eq!(u16::from(question.query_type()), number);
        prop_assert_eq!(message.metadata.checking_disabled, checking_disabled);
        prop_assert_eq!(message.edns.is_some_and(|edns| edns.flags().dnssec_ok), dnssec_ok);
    }
}
