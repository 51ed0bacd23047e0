//! Messages that are ours: every section is as long as the header says.

use proto::name;
use proto::response::split_record;

/// Walks a message to its end; returns the octets of its one question (or zone).
pub(crate) fn check_sections(message: &[u8]) -> &[u8] {
    let (header, sections) = message.split_first_chunk::<12>().expect("a whole header");
    let count = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    assert_eq!(count(4), 1, "one question");
    let question_octets = name::wire_length(sections).expect("a whole name") + 4;
    let (question, mut rest) = sections.split_at(question_octets);
    for record in 0..u32::from(count(6)) + u32::from(count(8)) + u32::from(count(10)) {
        let split = split_record(rest);
        (_, rest) = split.unwrap_or_else(|| panic!("record {record} is whole"));
    }
    assert!(
        rest.is_empty(),
        "{} octets behind the last record",
        rest.len()
    );
    question
}
