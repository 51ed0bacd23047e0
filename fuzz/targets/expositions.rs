//! What an exporter or a server's statistics say: any octets are read or refused, and what was read
//! of an exposition is the same when it is written.

#![no_main]

use libfuzzer_sys::fuzz_target;
use observe::{bind, control, exposition, knot};

fuzz_target!(|octets: &[u8]| {
    let _ = bind::parse_json(octets, &mut observe::Reading::default());
    let _ = bind::parse_xml(octets, &mut observe::Reading::default());
    let Ok(text) = std::str::from_utf8(octets) else {
        return;
    };
    let _ = control::parse(text);
    let _ = knot::parse(text);
    match exposition::parse(text, |_| true) {
        Err(what) => {
            // The line that it names is in the text.
            let line = what.strip_prefix("line ").and_then(|rest| rest.split(':').next());
            let line = line.and_then(|number| number.parse::<usize>().ok());
            assert!(line.is_none_or(|line| line >= 1 && line <= text.lines().count()));
        }
        Ok(reading) => {
            let line = |sample: &observe::RawSample| {
                format!("{} {:?}\n", sample.full_name(), sample.value)
            };
            let written: String = reading.samples.iter().map(line).collect();
            let again = exposition::parse(&written, |_| true).expect("what was read can be read");
            assert_eq!(again.samples.len(), reading.samples.len());
            for (first, second) in reading.samples.iter().zip(&again.samples) {
                assert_eq!((&first.name, &first.labels), (&second.name, &second.labels));
                let are_no_numbers = first.value.is_nan() && second.value.is_nan();
                assert!(are_no_numbers || first.value.to_bits() == second.value.to_bits());
            }
        }
    }
});
