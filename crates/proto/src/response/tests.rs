//! Matching and RCODEs, with hickory-proto as the oracle for valid messages.

use super::*;
use crate::name;
use crate::query::{Edns as OurEdns, QueryOptions, write_query};
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, CNAME};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use proptest::prelude::*;

/// A query with ID 0 and the octets of its question.
fn query(text: &str, qtype: u16) -> (Vec<u8>, usize) {
    let (mut qname, mut message) = (Vec::new(), Vec::new());
    name::parse(text, &mut qname).unwrap();
    let options = QueryOptions {
        edns: Some(OurEdns::default()),
        ..QueryOptions::default()
    };
    write_query(&qname, qtype, 1, &options, &mut message).unwrap();
    (message, qname.len() + 4)
}

/// The query with the QR bit set: the least a response can be.
fn response(text: &str, qtype: u16) -> Vec<u8> {
    let mut message = query(text, qtype).0;
    message[2] |= 0x80;
    message
}

fn header_only(opcode: u8, rcode: u8) -> Vec<u8> {
    vec![0, 0, 0x80 | opcode << 3, rcode, 0, 0, 0, 0, 0, 0, 0, 0]
}

#[test]
fn a_question_is_repeated_if_no_octet_of_it_and_its_count_differs() {
    for label in [0, 1, 8, 11, 12, 13, 27, 28, 29, 60] {
        let text = if label == 0 {
            ".".to_owned()
        } else {
            format!("{}.", "x".repeat(label))
        };
        let (sent, octets) = query(&text, 1);
        let answer = response(&text, 1);
        assert!(repeats_question(&sent, octets, &answer), "{text}");
        assert!(question_matches(&sent, octets, &answer), "{text}");
        // QDCOUNT and the question; what is between them are other counts.
        for octet in (4..6).chain(12..12 + octets) {
            let mut changed = answer.clone();
            changed[octet] ^= 1;
            assert!(
                !repeats_question(&sent, octets, &changed),
                "{text}: byte {octet}"
            );
        }
        let cut_off = &answer[..12 + octets - 1];
        assert!(!repeats_question(&sent, octets, cut_off), "{text}");
    }
}

#[test]
fn same_question_matches_whatever_its_case() {
    let (sent, octets) = query("www.Example.com", 1);
    for text in ["www.Example.com", "www.example.com", "WWW.EXAMPLE.COM"] {
        assert!(
            question_matches(&sent, octets, &response(text, 1)),
            "{text}"
        );
    }
}

#[test]
fn other_questions_do_not_match() {
    let (sent, octets) = query("www.example.com", 1);
    for (text, qtype) in [
        ("www.example.com", 2),
        ("www.example.net", 1),
        ("www.example", 1),
        ("www.example.com.au", 1),
        (r"www\.example.com", 1),
        (".", 1),
    ] {
        assert!(
            !question_matches(&sent, octets, &response(text, qtype)),
            "{text} {qtype}"
        );
    }
    // `[` and `{` differ in the bit that tells cases apart, but are no letters.
    let (sent, octets) = query("a[b", 1);
    assert!(!question_matches(&sent, octets, &response("a{b", 1)));
}

#[test]
fn type_differing_in_the_case_bit_does_not_match() {
    let (sent, octets) = query("a", 0x41);
    assert!(!question_matches(&sent, octets, &response("a", 0x61)));
}

#[test]
fn cut_off_responses_do_not_match() {
    let (sent, octets) = query("www.example.com", 1);
    let received = response("www.example.com", 1);
    for end in 0..12 + octets {
        assert!(!question_matches(&sent, octets, &received[..end]), "{end}");
    }
    assert!(question_matches(&sent, octets, &received[..12 + octets]));
}

#[test]
fn second_question_in_the_response_does_not_match() {
    let (sent, octets) = query("www.example.com", 1);
    let mut received = response("www.example.com", 1);
    received[5] = 2;
    assert!(!question_matches(&sent, octets, &received));
}

#[test]
fn header_alone_matches_if_it_reports_an_error() {
    let (sent, octets) = query("www.example.com", 1);
    assert!(question_matches(&sent, octets, &header_only(0, 1)));
    assert!(!question_matches(&sent, octets, &header_only(0, 0)));
}

#[test]
fn header_alone_matches_an_update() {
    let (mut sent, octets) = query("example.com", 6);
    sent[2] = 5 << 3;
    assert!(question_matches(&sent, octets, &header_only(5, 0)));
    assert!(question_matches(&sent, octets, &header_only(5, 9)));
    assert!(question_matches(&sent, octets, &response("example.com", 6)));
}

#[test]
fn impossible_question_lengths_do_not_match() {
    let (sent, _) = query("a", 1);
    let received = response("b", 1);
    for octets in [2, 3, 400, usize::MAX] {
        assert!(!question_matches(&sent, octets, &received), "{octets}");
    }
}

#[test]
fn reserved_label_types_fall_back_to_the_header() {
    let mut message = response("example.com", 1);
    message[3] = 2;
    let opt_at = message.len() - 11;
    message[opt_at + 5] = 1;
    assert_eq!(extended_rcode(&message), 0x12);
    message[12] = 0x80;
    assert_eq!(extended_rcode(&message), 2);
}

/// A message from hickory with compressed names, and the RCODE in it.
fn valid_message() -> impl Strategy<Value = (Vec<u8>, u16)> {
    let sections = (0_usize..4, 0_usize..3, 0_usize..3);
    ("[a-z]{1,9}\\.example", 0_u16..4096, any::<bool>(), sections).prop_map(
        |(owner, rcode, with_edns, (answers, authorities, additionals))| {
            let rcode = if with_edns { rcode } else { rcode & 0x0f };
            let owner = Name::from_ascii(&owner).unwrap();
            let mut message = Message::new(7, MessageType::Response, OpCode::Query);
            message.metadata.response_code =
                ResponseCode::from((rcode >> 4) as u8, (rcode & 0x0f) as u8);
            message.add_query(Query::query(owner.clone(), RecordType::A));
            let address = |_| Record::from_rdata(owner.clone(), 5, RData::A(A::new(192, 0, 2, 1)));
            let alias =
                |_| Record::from_rdata(owner.clone(), 5, RData::CNAME(CNAME(owner.clone())));
            message.add_answers((0..answers).map(alias));
            message.add_authorities((0..authorities).map(address));
            message.add_additionals((0..additionals).map(address));
            if with_edns {
                message.set_edns(Edns::new());
            }
            (message.to_vec().unwrap(), rcode)
        },
    )
}

proptest! {
    #[test]
    fn extended_rcode_is_the_one_hickory_reads((message, rcode) in valid_message()) {
        let theirs = Message::from_vec(&message).unwrap().metadata.response_code;
        prop_assert_eq!(u16::from(theirs), rcode);
        prop_assert_eq!(extended_rcode(&message), rcode);
    }

    #[test]
    fn mutated_and_cut_messages_are_survived(
        (message, _) in valid_message(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        end in any::<prop::sample::Index>(),
    ) {
        let (sent, octets) = query("abc.example", 1);
        let mut message = message;
        for (at, octet) in changes {
            let at = at.index(message.len());
            message[at] = octet;
        }
        message.truncate(end.index(message.len() + 1));
        question_matches(&sent, octets, &message);
        let low_bits = message.get(3).map_or(0, |octet| u16::from(octet & 0x0f));
        if message.len() >= 12 {
            prop_assert_eq!(extended_rcode(&message) & 0x0f, low_bits);
        }
    }

    #[test]
    fn arbitrary_octets_are_survived(
        sent in any::<Vec<u8>>(), received in any::<Vec<u8>>(), octets in 0_usize..300,
    ) {
        question_matches(&sent, octets, &received);
        extended_rcode(&received);
        Header::parse(&received);
    }
}
