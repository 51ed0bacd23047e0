//! `throng dnsperf`: what it refuses before it sends anything.

use testing::folder::Folder;

use crate::call::throng;

/// Standard error of a run that did not start; nothing but the banner is printed.
fn refused(line: &str) -> String {
    let finished = throng(&format!("dnsperf {line}"));
    let stderr = finished.stderr.clone();
    let stdout = finished.ended_with(1);
    assert!(!stdout.contains("Statistics:"), "{line}: {stdout}");
    stderr
}

#[test]
fn a_misspelled_long_option_is_refused_with_the_one_meant_and_the_usage() {
    let stderr = refused("-O latency-histogramam");
    let start = "invalid long option: latency-histogramam\nhint: did you mean \
                 `latency-histogram`? `-H` lists all long options\nUsage: dnsperf [-f family]";
    assert!(stderr.starts_with(start), "{stderr}");
}

#[test]
fn our_own_refusals_say_why() {
    let folder = Folder::new("refused");
    let names = folder.write("names.txt", "a.lab.test A\n");
    for (line, part) in [
        (
            format!("-d {names} -s 8.8.8.8"),
            "Error: 8.8.8.8 is a public address\nhint: ",
        ),
        (format!("-d {names} -c 1000000"), "hint: use -c "),
    ] {
        let stderr = refused(&line);
        assert!(stderr.contains(part), "{line}: {stderr}");
    }
}
