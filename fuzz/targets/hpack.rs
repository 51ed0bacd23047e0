//! HPACK: blocks of one connection from a peer, and our own blocks back to the same fields.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::hpack::{Decoder, Encoder, Field, NumberField};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Option<Fields> {
    let mut fields = Fields::new();
    let decoded = decoder.decode(block, |name, value| {
        fields.push((name.to_vec(), value.to_vec()));
    });
    decoded.ok().map(|()| fields)
}

/// The first octet of each block says how long it is.
fn decode_blocks(octets: &[u8]) {
    let mut decoder = Decoder::default();
    let mut rest = octets;
    while let Some((&length, after)) = rest.split_first() {
        let (block, after) = after.split_at(after.len().min(usize::from(length)));
        rest = after;
        if length == 255 {
            let limit = block.first().copied().unwrap_or_default();
            decoder.set_table_limit(u32::from(limit) * 16);
        } else if decode(&mut decoder, block).is_none() {
            return;
        }
    }
}

/// Each three octets are one block with one number, or a change of the table's limit.
fn encode_blocks(octets: &[u8]) {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    let shared = Field::new("accept", "application/dns-message");
    for step in octets.chunks_exact(3) {
        let value = u32::from(u16::from_be_bytes([step[1], step[2]]));
        if step[0] > 250 {
            encoder.set_table_limit(value);
            continue;
        }
        let (field, name, text) = match step[0] % 2 {
            0 => (
                NumberField::CONTENT_LENGTH,
                "content-length",
                value.to_string(),
            ),
            _ => (
                NumberField::MAX_AGE,
                "cache-control",
                format!("max-age={value}"),
            ),
        };
        let mut block = Vec::new();
        encoder.start_block(&mut block);
        encoder.field(0, shared.borrowed(), &mut block);
        encoder.number(field, value, &mut block);
        let decoded = decode(&mut decoder, &block).expect("our own block can be decoded");
        assert_eq!(decoded[0].1, b"application/dns-message");
        assert_eq!(decoded[1], (name.into(), text.into()));
    }
}

fuzz_target!(|octets: &[u8]| {
    decode_blocks(octets);
    encode_blocks(octets);
});
