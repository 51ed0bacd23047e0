//! An experiment: refused with a line that is in it, or a plan of runs.

#![no_main]

mod shared;

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use shared::faults::{check_line, line_in};

fuzz_target!(|octets: &[u8]| {
    let Ok(text) = std::str::from_utf8(octets) else {
        return;
    };
    match cli::fuzzing::experiment(Path::new("e.toml"), text) {
        Ok(plan) => assert!(plan.contains("throng run"), "{plan}"),
        Err(error) => {
            assert!(!error.is_empty());
            if error.starts_with("e.toml, line ")
                && let Some(line) = line_in(&error)
            {
                check_line(line, octets);
            }
        }
    }
});
