//! A profile, as somebody may have changed it: refused in words, or the same when it is written,
//! and clients can be drawn from it.

#![no_main]

mod shared;

use libfuzzer_sys::fuzz_target;
use load::Profile;

fuzz_target!(|octets: &[u8]| {
    let Ok(text) = std::str::from_utf8(octets) else {
        return;
    };
    match Profile::from_toml(text) {
        Ok(profile) => {
            let written = profile.to_toml().expect("what was read can be written");
            let again = Profile::from_toml(&written).expect("and read again");
            assert_eq!(again.to_toml().as_ref(), Ok(&written), "as the same");
            shared::profiles::draw(&profile);
        }
        Err(error) => {
            // The reason shows the line of TOML and points at it.
            assert!(!error.what.is_empty() && !error.hint.is_empty());
            if let Some(line) = shared::faults::line_in(&error.what) {
                shared::faults::check_line(line, octets);
            }
        }
    }
});
