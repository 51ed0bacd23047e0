//! What `throng run` asks: options on the lines of names files, EDNS, flags and signatures, by the
//! octets of the queries.

use measure::RunRecord;
use testing::folder::Folder;

use crate::call::{simulated, throng, throng_with};

/// Octets of the query `a.example A`: header 12, QNAME 11, QTYPE and QCLASS 4 (RFC 1035).
const QUERY_OCTETS: u64 = 27;

/// Octets of an OPT record without options (RFC 6891, section 6.1.2).
const OPT_OCTETS: u64 = 11;

const SECRET: &str = "c2VjcmV0IG9mIHRoZSBsYWI=";

/// Octets of each query of a self-test that asks `line` over and over.
fn octets_of(folder: &Folder, line: &str, flags: &str) -> u64 {
    let names = folder.write("names.txt", format!("{line}\n"));
    let record = simulated(&format!("--names {names} --queries 40 {flags}"));
    let counts = &record.total.counts;
    assert_eq!((counts.sent, counts.responses), (40, 40), "{line} {flags}");
    assert_eq!(counts.sent_octets % 40, 0, "{line} {flags}");
    counts.sent_octets / 40
}

#[test]
fn edns_flags_change_the_octets_as_the_rfcs_say() {
    let folder = Folder::new("edns-flags");
    for (flags, more) in [
        ("", 0),
        ("--no-recursion", 0),
        ("--edns-size 1232", OPT_OCTETS),
        ("--dnssec", OPT_OCTETS),
        ("--dnssec --edns-size 4096", OPT_OCTETS),
        ("--edns-option 65001:010203", OPT_OCTETS + 4 + 3),
        (
            "--edns-option 65001: --edns-option 10:0011223344556677",
            OPT_OCTETS + 4 + 4 + 8,
        ),
        ("--edns-padding --allow-plain-padding", 128 - QUERY_OCTETS),
        ("--edns-padding=50 -t dot", 50 - QUERY_OCTETS),
        ("--edns-keepalive -t tcp", OPT_OCTETS + 4),
    ] {
        let octets = octets_of(&folder, "a.example A", flags);
        assert_eq!(octets, QUERY_OCTETS + more, "{flags}");
    }
}

#[test]
fn options_on_a_line_change_its_query_alone() {
    let folder = Folder::new("line-options");
    // RFC 7871, section 6: family, two prefix lengths, and the octets of the address that count.
    let subnet = 4 + 4;
    for (line, flags, octets) in [
        ("a.example A +do", "", OPT_OCTETS),
        ("a.example A +edns=512", "", OPT_OCTETS),
        ("a.example A +cd -rd", "", 0),
        ("a.example A +ecs=192.0.2.0/24", "", OPT_OCTETS + subnet + 3),
        (
            "a.example A +ecs=2001:db8::/32",
            "",
            OPT_OCTETS + subnet + 4,
        ),
        ("a.example A +opt=65001:aabb", "", OPT_OCTETS + 4 + 2),
        ("a.example A +noedns", "--dnssec", 0),
        ("a.example A", "--dnssec", OPT_OCTETS),
    ] {
        let sent = octets_of(&folder, line, flags);
        assert_eq!(sent, QUERY_OCTETS + octets, "{line} {flags}");
    }
    let names = folder.write("names.txt", "a.example A +do\nb.example A\n");
    let record = simulated(&format!("--names {names} --queries 40"));
    let expected = 40 * QUERY_OCTETS + 20 * OPT_OCTETS;
    assert_eq!(record.total.counts.sent_octets, expected);
}

#[test]
fn names_are_read_from_standard_input_too() {
    let line = "run --driver sim --quiet --format json --names - --loops 20";
    let json = throng_with(line, b"a.example A\nb.example AAAA +do\n").succeeded();
    let record = RunRecord::from_json(&json).unwrap();
    assert_eq!(record.scenario.questions.source, "standard input");
    assert_eq!(record.scenario.questions.count, 2);
    let counts = &record.total.counts;
    assert_eq!(counts.responses, 40);
    assert_eq!(counts.sent_octets, 40 * QUERY_OCTETS + 20 * OPT_OCTETS);
}

#[test]
fn whole_messages_are_read_from_standard_input() {
    // ID 4,660, RD and CD set, one question: a.example MX.
    let message = b"\x12\x34\x01\x10\0\x01\0\0\0\0\0\0\x01\x61\x07example\0\0\x0f\0\x01";
    let stream = [&[0, 27], message.as_slice(), &[0, 27], message].concat();
    let stdin = "run --driver sim --quiet --format json --names - --names-format stream --loops 5";
    let json = throng_with(stdin, &stream).succeeded();
    let counts = RunRecord::from_json(&json).unwrap().total.counts;
    assert_eq!(
        (counts.responses, counts.sent_octets),
        (10, 10 * QUERY_OCTETS)
    );
}

#[test]
fn queries_are_signed_with_the_key_on_the_command_line_or_in_a_file() {
    let folder = Folder::new("tsig");
    // RFC 8945, section 4.2: owner name 10, fixed part 10, algorithm 13, time and fudge 8,
    // MAC size 2, MAC, original ID, error and other length 6.
    let signature = |mac: u64| 10 + 10 + 13 + 8 + 2 + mac + 6;
    let short = format!("--tsig key.test:{SECRET}");
    let long = format!("--tsig hmac-sha512:key.test:{SECRET}");
    let key = "key \"key.test\" {\n\talgorithm hmac-sha256;\n\tsecret \"SECRET\";\n};\n";
    let file = folder.write("key.conf", key.replace("SECRET", SECRET));
    for (flags, mac) in [
        (short.clone(), 32),
        (long, 64),
        (format!("--tsig-file {file}"), 32),
    ] {
        let octets = octets_of(&folder, "a.example A", &flags);
        assert_eq!(octets, QUERY_OCTETS + signature(mac), "{flags}");
    }
    let record = simulated(&format!("--queries 10 {short}"));
    assert_eq!(
        record.scenario.tsig_algorithm.as_deref(),
        Some("hmac-sha256")
    );
    assert!(!record.to_json().contains(SECRET));
}

#[test]
fn a_key_on_the_command_line_is_warned_of_once() {
    let folder = Folder::new("visible-key");
    let names = folder.write("names.txt", "a.example A\n");
    let key = "key \"k\" {\n\talgorithm hmac-sha256;\n\tsecret \"c2VjcmV0\";\n};\n";
    let file = folder.write("key.conf", key);
    let scenario = folder.write("run.toml", "tsig = \"k:c2VjcmV0\"\n");
    let flags = format!("--driver sim --quiet --names {names} --queries 10");
    let short = "--ceiling 2000 --max 40 --repeat 1";
    for (line, warnings) in [
        (format!("run {flags} --tsig k:c2VjcmV0"), 1),
        (format!("run {flags} --tsig=k:c2VjcmV0"), 1),
        (
            format!("capacity --driver sim --quiet --names {names} {short} --tsig k:c2VjcmV0"),
            1,
        ),
        (format!("run {flags} --tsig-file {file}"), 0),
        (format!("run {scenario} {flags}"), 0),
        (
            format!("dnsperf -d {names} -s 127.0.0.1 -y c2VjcmV0 -q no-number"),
            0,
        ),
    ] {
        let finished = throng(&line);
        let warned = finished
            .stderr
            .matches("warning: --tsig: other users")
            .count();
        assert_eq!(warned, warnings, "{line}: {}", finished.stderr);
        let cure = finished.stderr.contains("--tsig-file FILE");
        assert_eq!(cure, warnings == 1, "{line}: {}", finished.stderr);
        assert!(
            !finished.stderr.contains("c2VjcmV0"),
            "{line}: {}",
            finished.stderr
        );
    }
}
