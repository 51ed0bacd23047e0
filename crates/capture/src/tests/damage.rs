//! Files that end too early, that are damaged, or that are something else.

use proptest::prelude::*;

use super::writer::*;
use super::*;

fn packets() -> Vec<(u64, Vec<u8>)> {
    let asked = framed(&query(9, "c.example"));
    vec![
        (START, udp(CLIENT, SERVER, &query(7, "a.example"))),
        (
            START + 1,
            udp(SERVER, CLIENT, &response(7, "a.example", 0, 60)),
        ),
        (
            START + 2,
            udp(
                "[2001:db8::1]:9",
                "[2001:db8::53]:53",
                &query(8, "b.example"),
            ),
        ),
        (START + 3, tcp(CLIENT, SERVER, (1, 0), SYN, b"")),
        (START + 4, tcp(CLIENT, SERVER, (2, 0), ACK, &asked)),
    ]
}

fn pcapng() -> Vec<u8> {
    let mut file = [section(true), interface(true, 101, (9, 0))].concat();
    for (at_ns, packet) in packets() {
        file.extend(enhanced(true, 0, at_ns, &packet));
    }
    file
}

const LOGS: &str = "\
21-Nov-2026 10:00:00.123 client @0x7f0 192.0.2.1#5353 (a.example): query: a.example IN A +E(0)K \
(192.0.2.53)
[1795255200] unbound[7:0] info: 192.0.2.1 b.example. A IN
[INFO] 192.0.2.1:5353 - 1 \"A IN c.example. udp 41 false 4096\" NOERROR qr,rd 68 0.03s
";

fn samples() -> Vec<Vec<u8>> {
    vec![
        RAW.write(&packets()),
        pcapng(),
        dnstap::sample(),
        LOGS.as_bytes().to_vec(),
    ]
}

#[test]
fn a_file_cut_off_anywhere_gives_what_is_there_and_says_where_it_ends() {
    for file in &samples()[..3] {
        let mut queries = 0;
        for octets in 0..file.len() {
            match read_with(&file[..octets], &Options::default()) {
                Ok(outcome) => {
                    assert!(
                        outcome.observed.len() >= queries,
                        "queries are not taken back"
                    );
                    queries = outcome.observed.len();
                    if let Some(error) = outcome.end {
                        let CaptureError::CutOff { offset } = error else {
                            panic!("{error} at {octets}");
                        };
                        assert!(offset < octets as u64);
                    }
                }
                Err(error) => {
                    let is_known = matches!(
                        error,
                        CaptureError::Empty
                            | CaptureError::UnknownFormat
                            | CaptureError::CutOff { .. }
                            | CaptureError::UnknownVariant { .. }
                    );
                    assert!(is_known, "{error} at {octets}");
                    assert!(!error.cure().is_empty());
                }
            }
        }
        assert!(queries > 0);
    }
}

#[test]
fn records_of_impossible_length_end_the_reading_where_they_are() {
    let mut file = RAW.write(&packets());
    let good = read(&file);
    let at = file.len() as u64;
    file.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0]);
    let outcome = read(&file);
    assert_eq!(outcome.observed, good.observed);
    let what = "a packet of more than 1 MiB";
    assert_eq!(
        outcome.end,
        Some(CaptureError::Garbage { offset: at, what })
    );

    for (garbage, what) in [
        (
            &[6, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0][..],
            "a block of impossible length",
        ),
        (
            &[6, 0, 0, 0, 12, 0, 0, 0, 16, 0, 0, 0],
            "a block with two different lengths",
        ),
        (
            &block(true, 6, &[0; 8]),
            "a packet that is longer than its block",
        ),
        (
            &block(true, 6, &[9; 32]),
            "a packet of an interface that was not described",
        ),
        (
            &block(true, 1, &[0; 4]),
            "an interface description that is too short",
        ),
        (
            &block(true, 0x0a0d_0d0a, &[0; 16]),
            "a section without byte order",
        ),
    ] {
        let mut file = pcapng();
        let offset = file.len() as u64;
        file.extend(garbage);
        assert_eq!(
            read(&file).end,
            Some(CaptureError::Garbage { offset, what })
        );
    }
}

#[test]
fn changed_pcap_is_refused_by_name() {
    let mut file = RAW.write(&[]);
    file[..4].copy_from_slice(&[0x34, 0xcd, 0xb2, 0xa1]);
    let error = read_with(&file, &Options::default()).err().unwrap();
    assert!(error.to_string().contains("a1b2cd34"), "{error}");
}

#[test]
fn a_reader_that_fails_is_an_error_with_the_place() {
    struct Failing<'a>(&'a [u8]);
    impl std::io::Read for Failing<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(std::io::Error::other("disk gone")),
                octets => Ok(octets),
            }
        }
    }
    // Longer than the sample from which the format is detected.
    let mut file = RAW.write(&packets());
    let record = file.split_off(24);
    while file.len() < 200_000 {
        file.extend(&record);
    }
    let mut capture = Capture::new(Failing(&file), &Options::default()).unwrap();
    assert!(capture.by_ref().count() > 100);
    let CaptureError::Unreadable { offset, reason } = capture.end().unwrap() else {
        panic!("not unreadable");
    };
    assert_eq!((*offset, &reason[..]), (file.len() as u64, "disk gone"));
}

proptest! {
    #[test]
    fn any_octets_are_survived(octets: Vec<u8>) {
        let _ = read_with(&octets, &Options::default());
    }

    #[test]
    fn any_damage_is_survived(
        sample in 0_usize..4,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut file = samples().swap_remove(sample);
        for (index, octet) in changes {
            let place = index.index(file.len());
            file[place] = octet;
        }
        let _ = read_with(&file, &Options::default());
    }
}
