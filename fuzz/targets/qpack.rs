//! Field sections without a dynamic table, and the streams that go with them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::qpack::{
    DecoderInstructions, check_encoder_instructions, decode, start_section, write_field,
};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn fields(section: &[u8]) -> Option<Fields> {
    let mut found = Vec::new();
    let decoded = decode(section, &mut Vec::new(), |name, value| {
        found.push((name.to_vec(), value.to_vec()));
    });
    let octets: usize = found.iter().map(|(name, value)| name.len() + value.len()).sum();
    assert!(octets < 200_000, "a section is bounded");
    decoded.ok().map(|()| found)
}

fn check(section: &[u8]) {
    let Some(found) = fields(section) else {
        return;
    };
    let mut written = Vec::new();
    start_section(&mut written);
    for (name, value) in &found {
        let (Ok(name), Ok(value)) = (std::str::from_utf8(name), std::str::from_utf8(value)) else {
            return;
        };
        write_field(name, value, &mut written);
    }
    assert_eq!(fields(&written), Some(found));
}

fuzz_target!(|octets: &[u8]| {
    check(octets);
    check(&[&[0, 0], octets].concat());
    let whole = DecoderInstructions::default().check(octets);
    let mut pieces = DecoderInstructions::default();
    assert_eq!(octets.chunks(1).all(|octet| pieces.check(octet)), whole);
    assert_eq!(octets.iter().all(|&octet| octet == 0x20), check_encoder_instructions(octets));
});
