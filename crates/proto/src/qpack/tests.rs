//! RFC 9204, clause by clause, as far as a table without capacity goes.

use super::*;
use crate::hpack::huffman;
use proptest::prelude::*;

fn fields(section: &[u8]) -> Result<Vec<(String, String)>, DecodeError> {
    let mut found = Vec::new();
    decode(section, &mut Vec::new(), |name, value| {
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        found.push((text(name), text(value)));
    })?;
    Ok(found)
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn rfc9204_b1_literal_field_line_with_name_reference() {
    // The example of appendix B.1: no reference to the dynamic table.
    let section = [
        0x00, 0x00, 0x51, 0x0b, 0x2f, 0x69, 0x6e, 0x64, 0x65, 0x78, 0x2e, 0x68, 0x74, 0x6d, 0x6c,
    ];
    assert_eq!(fields(&section), Ok(vec![pair(":path", "/index.html")]));
    let mut written = Vec::new();
    start_section(&mut written);
    write_field(":path", "/index.html", &mut written);
    assert_eq!(written, section);
}

#[test]
fn rfc9204_b2_dynamic_table_is_refused() {
    // The stream of the encoder in appendix B.2 sets a capacity, which was not allowed.
    assert!(!check_encoder_instructions(&[0x3f, 0xbd, 0x01]));
    // Its field section requires two insertions.
    let section = [0x03, 0x81, 0x10, 0x11];
    assert!(matches!(fields(&section), Err(DecodeError::Failed(_))));
}

#[test]
fn rfc9204_3_1_static_table_has_99_entries_from_0() {
    assert_eq!(entry(0), Some((":authority", "")));
    assert_eq!(entry(17), Some((":method", "GET")));
    assert_eq!(entry(25), Some((":status", "200")));
    assert_eq!(entry(30), Some(("accept", "application/dns-message")));
    assert_eq!(entry(44), Some(("content-type", "application/dns-message")));
    assert_eq!(entry(63), Some((":status", "100")));
    assert_eq!(entry(98), Some(("x-frame-options", "sameorigin")));
    assert_eq!(entry(99), None);
    let indexed = |index: u8| [0, 0, 0xff, index - 63];
    assert_eq!(
        fields(&indexed(98)),
        Ok(vec![pair("x-frame-options", "sameorigin")])
    );
    assert!(fields(&indexed(99)).is_err());
}

#[test]
fn rfc9204_4_3_encoder_stream_may_only_set_capacity_0() {
    assert!(check_encoder_instructions(&[]));
    assert!(check_encoder_instructions(&[0x20, 0x20]));
    for first in [0x00, 0x1f, 0x21, 0x3f, 0x40, 0x7f, 0x80, 0xc0, 0xff] {
        assert!(!check_encoder_instructions(&[0x20, first]), "{first:#x}");
    }
}

#[test]
fn rfc9204_4_4_decoder_stream_may_only_cancel_streams() {
    let check = |octets: &[u8]| DecoderInstructions::default().check(octets);
    assert!(check(&[0x40, 0x44, 0x7e]));
    assert!(check(&[0x7f, 0x80, 0x81, 0x01, 0x40]));
    assert!(!check(&[0x81]), "Section Acknowledgment");
    assert!(!check(&[0x01]), "Insert Count Increment");
    assert!(!check(&[0x00]), "Insert Count Increment of 0");
    let mut cut = DecoderInstructions::default();
    assert!(cut.check(&[0x7f]) && cut.check(&[0xff]) && cut.check(&[0x00]));
    assert!(!cut.check(&[0x80]), "the integer is over");
}

#[test]
fn rfc9204_4_5_1_section_that_requires_insertions_is_refused() {
    assert_eq!(fields(&[0, 0]), Ok(vec![]));
    assert_eq!(fields(&[0, 5]), Ok(vec![]), "any base of 0 or more");
    assert!(fields(&[1, 0]).is_err());
    assert!(fields(&[0, 0x80]).is_err(), "a negative base");
    assert!(fields(&[]).is_err() && fields(&[0]).is_err());
}

#[test]
fn rfc9204_4_5_references_to_the_dynamic_table_are_refused() {
    for first in [0x80, 0xbf, 0x10, 0x1f, 0x40, 0x4f, 0x00, 0x0f] {
        let section = [0, 0, first, 1, b'x', 1, b'y'];
        assert!(fields(&section).is_err(), "{first:#x}");
    }
}

#[test]
fn rfc9204_4_5_6_names_and_values_may_be_huffman_codes() {
    let mut section = vec![0, 0];
    let mut name = Vec::new();
    huffman::encode(b"x-test-name", &mut name);
    section.extend_from_slice(&[0x2f, name.len() as u8 - 7]);
    section.extend_from_slice(&name);
    let mut value = Vec::new();
    huffman::encode(b"a value", &mut value);
    section.push(0x80 | value.len() as u8);
    section.extend_from_slice(&value);
    assert_eq!(fields(&section), Ok(vec![pair("x-test-name", "a value")]));
    for cut in 2..section.len() {
        assert!(cut == 2 || fields(&section[..cut]).is_err(), "{cut}");
    }
}

#[test]
fn section_of_more_than_64_kib_is_too_long() {
    let mut section = vec![0, 0];
    for _ in 0..2_000 {
        // 85: 77 octets with their name.
        section.extend_from_slice(&[0xff, 85 - 63]);
    }
    assert_eq!(fields(&section), Err(DecodeError::TooLong));
}

#[test]
fn numbers_are_written_in_decimal() {
    for number in [0, 7, 10, 65_535, u32::MAX] {
        let mut section = vec![0, 0];
        write_number_field("content-length", number, &mut section);
        let expected = vec![pair("content-length", &number.to_string())];
        assert_eq!(fields(&section), Ok(expected));
    }
}

proptest! {
    #[test]
    fn fields_come_back_as_they_were_written(
        texts in prop::collection::vec(("[!-9;-~]{1,300}", "[ -~]{0,300}"), 0..10),
        known in prop::collection::vec(0_u32..99, 0..10),
    ) {
        let mut section = Vec::new();
        start_section(&mut section);
        let mut expected = Vec::new();
        for index in known {
            let (name, value) = entry(index).unwrap();
            write_field(name, value, &mut section);
            write_field(name, "other", &mut section);
            expected.extend([pair(name, value), pair(name, "other")]);
        }
        for (name, value) in &texts {
            write_field(name, value, &mut section);
            expected.push(pair(name, value));
        }
        prop_assert_eq!(fields(&section), Ok(expected));
    }

    #[test]
    fn random_octets_never_crash(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = fields(&octets);
        let mut section = vec![0, 0];
        section.extend(octets);
        let _ = fields(&section);
    }
}
