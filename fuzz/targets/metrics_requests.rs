//! What scrapers accept: any text is a choice of a format.

#![no_main]

use exporter::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(accept) = std::str::from_utf8(input) {
        Format::negotiate(accept);
    }
});
