//! Command lines of `throng dnsperf`, `resperf` and `queryperf` for which Debian has no program to
//! compare them with.

use crate::call::throng;

/// Debian's 2.10 takes an empty value for one; what 2.14 says is ours.
#[test]
fn an_empty_value_of_a_long_option_is_refused_as_by_2_14() {
    for program in ["dnsperf", "resperf"] {
        let finished = throng(&format!("{program} -O suppress="));
        assert_eq!(finished.code, Some(1), "{}", finished.stderr);
        let start = "invalid long option: suppress=\n";
        assert!(finished.stderr.starts_with(start), "{}", finished.stderr);
    }
}

#[test]
fn queryperf_refuses_a_number_that_is_none_with_its_usage() {
    let finished = throng("queryperf -q x");
    let stderr = finished.stderr;
    assert_eq!(finished.code, Some(255), "{stderr}");
    let start = "Option requires a positive integer value: -q x\n";
    assert!(stderr.starts_with(start), "{stderr}");
    let usage = "\nUsage: queryperf [-d datafile]";
    assert!(stderr.contains(usage), "{stderr}");
}
