//! A stream of DoQ, as it grows.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::doq::{StreamState, Violation, parse_stream, write_stream};

fuzz_target!(|octets: &[u8]| {
    let mut before = Ok(StreamState::Incomplete);
    for length in 0..=octets.len().min(300) {
        let state = parse_stream(&octets[..length], false);
        match (before, state) {
            // What is broken stays broken, and a message is never taken back.
            (Err(Violation::MoreThanOneMessage), after) => assert_eq!(after, before),
            (Ok(StreamState::Message(_)), after) => {
                assert_eq!(after, Err(Violation::MoreThanOneMessage));
            }
            _ => {}
        }
        before = state;
    }
    for finished in [false, true] {
        if let Ok(StreamState::Message(message)) = parse_stream(octets, finished) {
            assert_eq!(message, &octets[2..]);
            let mut written = Vec::new();
            write_stream(message, &mut written);
            assert_eq!(written, octets);
        }
    }
    if octets.len() <= 65_535 {
        let mut written = Vec::new();
        write_stream(octets, &mut written);
        assert_eq!(written.len(), octets.len() + 2);
    }
});
