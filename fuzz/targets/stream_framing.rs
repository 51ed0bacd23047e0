//! The length prefix of DNS over streams: the same messages whatever the split.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::framing::{Deframer, write_message};

fn messages(pieces: &mut dyn Iterator<Item = &[u8]>) -> (Vec<Vec<u8>>, usize) {
    let (mut deframer, mut messages) = (Deframer::default(), Vec::new());
    for piece in pieces {
        deframer.handle_bytes(piece, |message| messages.push(message.to_vec()));
    }
    (messages, deframer.partial_octets())
}

fuzz_target!(|input: &[u8]| {
    let Some((&length, octets)) = input.split_first() else {
        return;
    };
    let (whole, rest) = messages(&mut std::iter::once(octets));
    let cut = messages(&mut octets.chunks(usize::from(length).max(1)));
    assert_eq!((&whole, rest), (&cut.0, cut.1));
    let mut again = Vec::new();
    for message in &whole {
        write_message(message, &mut again);
    }
    assert_eq!(again, octets[..octets.len() - rest], "and back");
});
