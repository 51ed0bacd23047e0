use hickory_proto::op::{Message, OpCode};
use hickory_proto::rr::{DNSClass, RData, Record, RecordType};
use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> QuestionSet {
    parse_text(text.as_bytes(), None).unwrap_or_else(|error| panic!("{error}"))
}

fn fault(text: &str) -> String {
    parse_text(text.as_bytes(), None).unwrap_err().to_string()
}

/// The one update of `text`, as hickory-proto reads it.
fn read_one(text: &str) -> Message {
    let set = parse(text);
    assert_eq!(set.len(), 1);
    Message::from_vec(set.get(0).message).unwrap()
}

/// The one update record of a message with the given lines in zone `example.com`.
fn read_record(line: &str) -> Record {
    let message = read_one(&format!("example.com\n{line}\nsend\n"));
    assert_eq!(message.authorities.len(), 1, "{line}");
    message.authorities[0].clone()
}

const ALL_FORMS: &str = "; every form\nexample.com\nrequire a\nrequire a A\n\
    require a A 1.2.3.4\nprohibit x\nprohibit x A\n\nadd x 3600 A 10.1.2.3\r\n\
    delete y A 10.1.2.3\ndelete z A\n# in between\ndelete w\nsend\n";

#[test]
fn every_form_becomes_its_record_of_rfc_2136() {
    let message = read_one(ALL_FORMS);
    assert_eq!(message.metadata.op_code, OpCode::Update);
    assert_eq!(message.metadata.id, 0);
    let zone = &message.queries[0];
    assert_eq!(zone.name().to_string(), "example.com.");
    assert_eq!(
        (zone.query_type(), zone.query_class()),
        (RecordType::SOA, DNSClass::IN)
    );
    let shown = |records: &[Record]| -> Vec<String> {
        records
            .iter()
            .map(|record| {
                let data = match &record.data {
                    RData::A(address) => format!(" {}", address.0),
                    RData::Update0(_) => String::new(),
                    other => panic!("{other:?}"),
                };
                let name = record.name.to_string();
                let rtype = record.record_type();
                format!("{name} {} {} {rtype}{data}", record.ttl, record.dns_class)
            })
            .collect()
    };
    assert_eq!(
        shown(&message.answers),
        [
            "a.example.com. 0 ANY ANY",
            "a.example.com. 0 ANY A",
            "a.example.com. 0 IN A 1.2.3.4",
            "x.example.com. 0 NONE ANY",
            "x.example.com. 0 NONE A",
        ]
    );
    assert_eq!(
        shown(&message.authorities),
        [
            "x.example.com. 3600 IN A 10.1.2.3",
            "y.example.com. 0 NONE A 10.1.2.3",
            "z.example.com. 0 ANY A",
            "w.example.com. 0 ANY ANY",
        ]
    );
}

#[test]
fn the_question_of_a_template_is_its_zone_section() {
    let set = parse("example.com\nsend\nexample.org.\nadd @ 0 A 192.0.2.1\nsend");
    assert_eq!(set.len(), 2);
    for template in set.iter() {
        assert_eq!(template.question_octets, 13 + 4);
        assert_eq!(template.message[2..4], [0x28, 0]);
    }
    assert_eq!(set.get(0).message.len(), 12 + 17);
}

#[test]
fn edns_adds_one_opt_record() {
    let edns = Edns {
        udp_payload_octets: 4096,
        dnssec_ok: true,
        options: vec![(65001, vec![1, 2, 3])],
        ..Edns::default()
    };
    let set = parse_text(ALL_FORMS.as_bytes(), Some(&edns)).unwrap();
    let message = Message::from_vec(set.get(0).message).unwrap();
    let read = message.edns.unwrap();
    assert_eq!((read.max_payload(), read.flags().dnssec_ok), (4096, true));
    assert_eq!(read.options().as_ref().len(), 1);
    assert_eq!(message.authorities.len(), 4);
}

#[test]
fn names_are_relative_to_the_zone_unless_they_end_in_a_dot() {
    let cases = [
        ("@", "example.com."),
        ("a", "a.example.com."),
        ("a.b", "a.b.example.com."),
        ("a.example.org.", "a.example.org."),
        (".", "."),
    ];
    for (written, expected) in cases {
        let record = read_record(&format!("add {written} 60 CNAME {written}"));
        assert_eq!(record.name.to_string(), expected);
        let RData::CNAME(target) = record.data else {
            panic!("{written}")
        };
        assert_eq!(target.0.to_string(), expected);
    }
    let root = read_one(".\nadd a 60 NS b\nsend");
    assert_eq!(root.authorities[0].name.to_string(), "a.");
    let escaped = parse("example.com\ndelete a\\.\nsend");
    assert_eq!(&escaped.get(0).message[29..34], b"\x02a.\xc0\x0c");
}

#[test]
fn data_of_each_known_type_reads_back_the_same() {
    let cases = [
        ("A 192.0.2.1", "192.0.2.1"),
        ("AAAA 2001:db8::1", "2001:db8::1"),
        ("NS ns1", "ns1.example.com."),
        ("CNAME other.test.", "other.test."),
        ("PTR host", "host.example.com."),
        ("MX 10 mail", "10 mail.example.com."),
        ("SRV 1 2 53 target", "1 2 53 target.example.com."),
        (
            "SOA ns1 admin 1 2 3 4 4294967295",
            "ns1.example.com. admin.example.com. 1 2 3 4 4294967295",
        ),
        (
            "CAA 128 issue \"ca.test; x=y\"",
            "128 issue \"ca.test; x=y\"",
        ),
    ];
    for (written, expected) in cases {
        let record = read_record(&format!("add a 60 {written}"));
        assert_eq!(record.data.to_string(), expected, "{written}");
        assert_eq!((record.ttl, record.dns_class), (60, DNSClass::IN));
    }
}

#[test]
fn texts_may_be_quoted_and_escaped() {
    let RData::TXT(txt) = read_record(r#"add a 60 TXT "hello ; world" x;y "\"\065\\" """#).data
    else {
        panic!("a TXT record")
    };
    let texts: Vec<&[u8]> = txt.txt_data.iter().map(|text| &**text).collect();
    assert_eq!(texts, [b"hello ; world".as_slice(), b"x;y", b"\"A\\", b""]);
}

#[test]
fn generic_data_serves_known_and_unknown_types() {
    let record = read_record(r"add a 60 A \# 4 c000 0201");
    assert_eq!(record.data.to_string(), "192.0.2.1");
    let set = parse("example.com\ndelete a TYPE65280 \\# 3 ABcdef\nadd a 1 TYPE65280 \\# 0\nsend");
    let message = set.get(0).message;
    let records = &message[12 + 17..];
    assert_eq!(
        records,
        b"\x01a\xc0\x0c\xff\0\0\xfe\0\0\0\0\0\x03\xab\xcd\xef\
          \x01a\xc0\x0c\xff\0\0\x01\0\0\0\x01\0\0"
    );
}

/// Puts each line into a block and looks for the text in the fault that results.
fn check_faults(cases: &[(&str, &str)]) {
    for (line, expected) in cases {
        let fault = fault(&format!("example.com\n{line}\nsend\n"));
        assert!(
            fault.contains(expected),
            "{line}: {fault} should contain {expected}"
        );
    }
}

#[test]
fn faults_in_lines_are_named() {
    check_faults(&[
        (
            "add a 1h A 1.2.3.4",
            "the TTL `1h` is not a number from 0 to 2147483647",
        ),
        (
            "add a 2147483648 A 1.2.3.4",
            "the TTL `2147483648` is not a number",
        ),
        ("add a +1 A 1.2.3.4", "the TTL `+1` is not a number"),
        ("add a A 1.2.3.4", "the TTL `A` is not a number"),
        ("add a 60", "the type is missing"),
        ("add", "a name is missing"),
        ("add a 60 AX 1", "unknown type `AX`"),
        ("add a..b 60 A 1.2.3.4", "empty label"),
        ("prohibit a A 1.2.3.4", "unexpected `1.2.3.4`"),
        ("update add a 60 A 1.2.3.4", "unknown command `update`"),
        ("send now", "unexpected `now`"),
        (
            "delete a\nrequire b",
            "line 3: `require` after an update in `require b`",
        ),
    ]);
    let label = "a".repeat(63);
    let long = format!("example.com\ndelete {label}.{label}.{label}.{label}\nsend");
    assert!(fault(&long).contains("more than 255 bytes"));
}

#[test]
fn faults_in_data_are_named() {
    check_faults(&[
        (
            "add a 60 A",
            "line 2: the address is missing in `add a 60 A`",
        ),
        ("add a 60 A 1.2.3", "`1.2.3` is not an IPv4 address"),
        ("add a 60 AAAA 1.2.3.4", "`1.2.3.4` is not an IPv6 address"),
        ("add a 60 A 1.2.3.4 5", "unexpected `5`"),
        (
            "add a 60 HINFO x y",
            "data of type HINFO cannot be written as text here",
        ),
        (
            "add a 60 MX mail",
            "the preference `mail` is not a number from 0 to 65535",
        ),
        (
            "add a 60 CAA 0 is-sue x",
            "tag `is-sue` is not letters and digits",
        ),
        ("add a 60 TXT \"a", "a quote that is not closed"),
        ("add a 60 TXT a\\25", "bad escape in `a\\25`"),
        ("add a 60 TXT a\\256", "bad escape"),
        ("add a 60 A \\# 4 c00002", "generic data has 3 bytes, not 4"),
        (
            "add a 60 A \\# 1 c",
            "not an even number of hexadecimal digits",
        ),
    ]);
    let long = format!("example.com\nadd a 1 TXT {}\nsend", "x".repeat(256));
    assert!(fault(&long).contains("a text of more than 255 bytes"));
}

#[test]
fn faults_in_blocks_are_named() {
    let cases = [
        ("", "there is no update in it"),
        ("; nothing\n", "there is no update in it"),
        (
            "example.com\nadd a 60 A 1.2.3.4\n",
            "line 1: the block of zone `example.com` does not end",
        ),
        ("add a 60 A 1.2.3.4\nsend", "line 1: unexpected `a`"),
        (
            "example.com\nsend\nsend\n",
            "line 3: `send` before the name of a zone",
        ),
        ("www.example.com A\n", "line 1: unexpected `A`"),
    ];
    for (text, expected) in cases {
        let fault = fault(text);
        assert!(
            fault.contains(expected),
            "{fault} should contain {expected}"
        );
    }
}

#[test]
fn a_message_that_grows_too_long_is_a_fault_at_its_line() {
    let line = format!("add a 60 TXT {}\n", "x".repeat(255));
    let text = format!("example.com\n{}send\n", line.repeat(300));
    let error = parse_text(text.as_bytes(), None).unwrap_err();
    assert!(error.what.contains("more than 65,535 bytes"), "{error}");
    let FilePosition::Line { line, .. } = error.place else {
        panic!("a line")
    };
    // Each record takes 270 octets after a header and zone section of 29.
    assert_eq!(line, 1 + (65_535 - 29) / 270 + 1);
    let generic = format!(
        "example.com\nadd a 60 TYPE1000 \\# 65535 {}\nsend",
        "00".repeat(65_535)
    );
    assert!(fault(&generic).contains("more than 65,535 bytes"));
}

proptest! {
    #[test]
    fn no_octets_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse_text(&bytes, None);
        let _ = parse_text(&[b"example.com\nadd ", &*bytes].concat(), None);
    }

    #[test]
    fn no_near_miss_makes_the_parser_panic(
        lines in proptest::collection::vec(
            "(add|delete|require|prohibit|send|z) ?[a@.]{0,3} ?[0-9]{0,3} ?\
             (A|AAAA|MX|TXT|SOA|SRV|CAA|CNAME|TYPE9)? ?[a-z0-9.\\\\\"# ]{0,12}",
            0..8,
        ),
    ) {
        let text = format!("example.com\n{}\nsend", lines.join("\n"));
        if let Ok(set) = parse_text(text.as_bytes(), None) {
            prop_assert!(set.iter().all(|template| template.message.len() >= 29));
        }
    }

    #[test]
    fn any_address_and_owner_reads_back_the_same(
        owner in "[a-z0-9]{1,20}(\\.[a-z0-9]{1,20}){0,3}",
        octets: [u8; 4],
        ttl in 0u32..=TTL_MAX,
    ) {
        let address = std::net::Ipv4Addr::from(octets);
        let record = read_record(&format!("add {owner} {ttl} A {address}"));
        prop_assert_eq!(record.name.to_string(), format!("{owner}.example.com."));
        prop_assert_eq!(record.data.to_string(), address.to_string());
        prop_assert_eq!(record.ttl, ttl);
    }
}
