//! A zone file: refused with a line that is in it, or loaded; then every answer is whole.

#![no_main]

mod shared;

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use proto::query::{Edns, QueryOptions, write_query};
use responder::Zone;
use responder::answer::{Answered, Instead, Limit, answer};
use responder::zone::ZoneError;
use shared::faults::{check_line, check_words};
use shared::messages::check_sections;

/// Questions for each name: the types with rules of their own, one that few have, and ANY.
const QTYPES: [u16; 9] = [1, 2, 5, 6, 15, 28, 43, 255, 65_280];
/// Names that are asked for.
const NAMES_MAX: usize = 12;
const DATAGRAM_OCTETS_MAX: u16 = 1_232;

/// The words of the text that are names, as they are and below the origin, and one that is none
/// of its names.
fn names(text: &str) -> BTreeSet<Vec<u8>> {
    let words = text.split_whitespace().chain(["nobody.example"]);
    let mut names = BTreeSet::new();
    for word in words {
        for text in [word.to_owned(), format!("{word}.example")] {
            let mut wire = Vec::new();
            if names.len() < NAMES_MAX && proto::name::parse(&text, &mut wire).is_ok() {
                names.insert(wire);
            }
        }
    }
    names
}

fn ask(zone: &Zone, qname: &[u8], qtype: u16) {
    let options = QueryOptions {
        edns: Some(Edns::default()),
        ..QueryOptions::default()
    };
    let mut query = Vec::new();
    write_query(qname, qtype, 1, &options, &mut query).expect("a name and EDNS fit");
    for (limit, octets_max) in [
        (Limit::Stream, usize::from(u16::MAX)),
        (
            Limit::Datagram(DATAGRAM_OCTETS_MAX),
            DATAGRAM_OCTETS_MAX.into(),
        ),
    ] {
        let mut response = Vec::new();
        let answered = answer(zone, &query, limit, Instead::Nothing, &mut response);
        assert!(matches!(
            answered,
            Answered::Response {
                malformed: false,
                ..
            }
        ));
        assert!(response.len() <= octets_max, "{} octets", response.len());
        assert_eq!(check_sections(&response), check_sections(&query));
    }
}

fuzz_target!(|octets: &[u8]| {
    let Ok(text) = std::str::from_utf8(octets) else {
        return;
    };
    match Zone::from_text(text, Some("example")) {
        Ok(zone) => {
            assert!(
                zone.names().is_some_and(|names| names > 0),
                "the apex at least"
            );
            for name in names(text) {
                QTYPES
                    .into_iter()
                    .for_each(|qtype| ask(&zone, &name, qtype));
            }
        }
        Err(error) => {
            check_words(&error.to_string());
            if let ZoneError::Syntax { line, .. } = error {
                check_line(line, octets);
            }
        }
    }
});
