//! What `throng run` asks: names files, options on their lines, EDNS, flags and signatures.

use crate::process::queries_of;
use testing::folder::Folder;
use testing::ports::Listener;

/// The parts of a query for `a.example` that flags change, such as `rd type 1 edns 1232 do`.
fn asked(query: &[u8]) -> String {
    let number = |at: usize| u16::from_be_bytes([query[at], query[at + 1]]);
    assert_eq!(&query[12..23], b"\x01a\x07example\x00", "{query:?}");
    let mut parts = Vec::new();
    for (octet, bit, name) in [(2, 0x01, "rd"), (3, 0x20, "ad"), (3, 0x10, "cd")] {
        if query[octet] & bit != 0 {
            parts.push(name.to_owned());
        }
    }
    parts.push(format!("type {}", number(23)));
    let additional = number(10);
    if additional == 1 {
        assert_eq!(&query[27..30], [0, 0, 41], "{query:?}");
        let dnssec_ok = if query[34] & 0x80 != 0 { " do" } else { "" };
        parts.push(format!("edns {}{dnssec_ok}", number(30)));
    }
    parts.join(" ")
}

#[test]
fn header_bits_and_edns_arrive_at_the_target() {
    let listener = Listener::new();
    let folder = Folder::new("header-bits");
    for (line, flags, expected) in [
        ("a.example A", "", "rd type 1"),
        ("a.example AAAA", "", "rd type 28"),
        ("a.example TYPE65", "", "rd type 65"),
        ("a.example A", "--no-recursion", "type 1"),
        ("a.example A -rd", "", "type 1"),
        ("a.example A +rd", "--no-recursion", "rd type 1"),
        ("a.example A +cd +ad", "", "rd ad cd type 1"),
        ("a.example A", "--edns-size 1400", "rd type 1 edns 1400"),
        (
            "a.example A",
            "--edns-size 1400 --dnssec",
            "rd type 1 edns 1400 do",
        ),
        ("a.example A", "--dnssec", "rd type 1 edns 1232 do"),
        ("a.example A +edns=600 +do", "", "rd type 1 edns 600 do"),
        ("a.example A -do", "--dnssec", "rd type 1 edns 1232"),
        ("a.example A +noedns", "--dnssec", "rd type 1"),
    ] {
        let names = folder.write("names.txt", format!("{line}\n"));
        let flags = format!("--names {names} --queries 2 --clients 1 {flags}");
        let queries = queries_of(&listener, &flags);
        assert_eq!(queries.len(), 2, "{line} {flags}");
        for (_, query) in &queries {
            assert_eq!(asked(query), expected, "{line} {flags}");
        }
        assert_ne!(
            queries[0].1[..2],
            queries[1].1[..2],
            "IDs of one client differ"
        );
    }
}

#[test]
fn names_are_asked_in_order_as_often_as_told() {
    let listener = Listener::new();
    let folder = Folder::new("order");
    let names = folder.write(
        "names.txt",
        "; three\na.example A\n\nb.example A\nc.example A # c\n",
    );
    for (flags, letters) in [
        ("--loops 1", "abc"),
        ("--loops 3", "abcabcabc"),
        ("--queries 5", "abcab"),
        ("--queries 2", "ab"),
    ] {
        let queries = queries_of(&listener, &format!("--names {names} --clients 1 {flags}"));
        let first: String = queries.iter().map(|(_, query)| query[13] as char).collect();
        assert_eq!(first, letters, "{flags}");
    }
}

#[test]
fn whole_messages_are_sent_as_they_are() {
    // ID 4,660, RD and CD set, one question: a.example MX.
    let message = b"\x12\x34\x01\x10\0\x01\0\0\0\0\0\0\x01\x61\x07example\0\0\x0f\0\x01";
    let stream = [&[0, 27], message.as_slice(), &[0, 27], message].concat();
    let folder = Folder::new("stream");
    let file = folder.write("names.bin", &stream);
    let listener = Listener::new();
    let flags = format!("--names {file} --names-format stream --loops 1");
    let queries = queries_of(&listener, &flags);
    assert_eq!(queries.len(), 2);
    for (_, query) in &queries {
        assert_eq!(query[2..], message[2..]);
    }
}
