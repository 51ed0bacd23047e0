//! HTTP requests of scrapers: the same request whatever the split, and whatever follows it.

#![no_main]

use exporter::{Format, REQUEST_BYTES_MAX, parse_request};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(accept) = std::str::from_utf8(input) {
        Format::negotiate(accept);
    }
    let input = &input[..input.len().min(REQUEST_BYTES_MAX - 1)];
    let whole = parse_request(input);
    for end in 0..input.len() {
        if let Some(request) = parse_request(&input[..end]) {
            assert_eq!(Some(request), whole);
        }
    }
});
