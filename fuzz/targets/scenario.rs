//! A scenario: refused with a line that is in it, or runs whose every group has flags that parse.

#![no_main]

mod shared;

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use shared::faults::{check_line, line_in};

fuzz_target!(|octets: &[u8]| {
    let Ok(text) = std::str::from_utf8(octets) else {
        return;
    };
    // Profiles are read at once, from whatever file it is.
    if text.contains("profile") {
        return;
    }
    match cli::fuzzing::scenario(Path::new("s.toml"), text) {
        Ok(groups) => assert!(groups > 0, "a run has clients"),
        Err(error) => {
            assert!(!error.is_empty());
            if error.starts_with("s.toml, line ")
                && let Some(line) = line_in(&error)
            {
                check_line(line, octets);
            }
        }
    }
});
