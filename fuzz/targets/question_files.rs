//! Names files, as text and as a stream, and update files: refused with a place that is in them, or
//! whole messages that ask what was written.

#![no_main]

mod shared;

use libfuzzer_sys::fuzz_target;
use load::QuestionSet;
use load::names_error::{NamesError, FilePosition};
use load::{names_file, update_file};
use proto::query::{Edns, QueryOptions};
use proto::{name, rr};
use shared::faults::{check_line, check_words};
use shared::messages::check_sections;

/// RFC 1035, section 4.1.1: where the flags are, and what says that it is an update.
const OPCODE_BITS: u8 = 0x78;
const UPDATE: u8 = 5 << 3;

fn check_error(error: &NamesError, octets: &[u8]) {
    check_words(&error.to_string());
    check_words(&error.hint);
    match error.place {
        FilePosition::Whole => {}
        FilePosition::Line { line, column } => {
            check_line(line, octets);
            let text = octets.split(|&octet| octet == b'\n').nth(line - 1);
            // A byte order mark belongs to no line.
            let columns = text.map_or(0, <[u8]>::len) + 1;
            assert!(
                (1..=columns).contains(&column),
                "column {column} of {columns}"
            );
        }
        FilePosition::Message { number, offset } => {
            assert!(number > 0 && offset < octets.len(), "{number} at {offset}");
        }
    }
}

/// Every question can be written as a line, which asks the same.
fn check_questions(questions: &QuestionSet) {
    for template in questions.iter() {
        let question = check_sections(template.message);
        assert_eq!(question.len(), template.question_octets);
        let (qname, rest) = question.split_at(question.len() - 4);
        let number = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
        let (qtype, qclass) = (rr::type_to_text(number(0)), rr::class_to_text(number(2)));
        let qname = name::to_text(qname).expect("a whole name");
        // A line that begins so is a comment.
        let escape = if qname.starts_with('#') { "\\" } else { "" };
        let line = format!("{escape}{qname} {qclass} {qtype}");
        let again = names_file::parse_text(line.as_bytes(), &QueryOptions::default());
        let again = again.unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(check_sections(again.get(0).message), question, "{line}");
    }
}

fn names_text(octets: &[u8]) {
    let options = QueryOptions {
        edns: Some(Edns::default()),
        ..QueryOptions::default()
    };
    match names_file::parse_text(octets, &options) {
        Ok(questions) => check_questions(&questions),
        Err(error) => check_error(&error, octets),
    }
}

/// Whatever is read from a stream is the whole stream, but for the IDs.
fn names_stream(octets: &[u8]) {
    let strict = names_file::parse_stream(octets);
    let any = names_file::parse_any_stream(octets);
    match (&strict, &any) {
        (Ok(strict), Ok(any)) => assert_eq!(strict.len(), any.len()),
        (Ok(_), Err(error)) => panic!("queries, but no messages: {error}"),
        _ => {}
    }
    for read in [strict, any] {
        match read {
            Ok(questions) => {
                let mut stream = Vec::new();
                for index in 0..questions.len() {
                    questions.append_framed(index, 0, &mut stream);
                }
                assert_eq!(stream.len(), octets.len());
            }
            Err(error) => check_error(&error, octets),
        }
    }
}

fn update_text(octets: &[u8]) {
    let edns = Edns::default();
    for edns in [None, Some(&edns)] {
        match update_file::parse_text(octets, edns) {
            Ok(updates) => {
                for template in updates.iter() {
                    let zone = check_sections(template.message);
                    assert_eq!(zone.len(), template.question_octets);
                    assert_eq!(template.message[2] & OPCODE_BITS, UPDATE);
                }
            }
            Err(error) => check_error(&error, octets),
        }
    }
}

fuzz_target!(|octets: &[u8]| {
    names_text(octets);
    names_stream(octets);
    update_text(octets);
});
