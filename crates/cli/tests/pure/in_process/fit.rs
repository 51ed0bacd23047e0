//! `throng fit`: from captures and logs to a profile.

use std::fs;

use testing::folder::Folder;
use testing::program::Finished;

use crate::call::{throng, throng_with};
use crate::query_logs::count;

/// A query log of BIND: ten clients, of which the first asks ten times as often.
fn log() -> String {
    let mut text = String::from("21-Nov-2026 10:00:00.000 general: info: running\n");
    for tick in 0..600 {
        let client = if tick % 2 == 0 { 1 } else { 2 + tick / 2 % 9 };
        let (minute, second) = (tick / 60, tick % 60);
        let qtype = if tick % 3 == 0 { "AAAA" } else { "A" };
        let name = format!("secret{}.example.com", tick % 5);
        text += &format!(
            "21-Nov-2026 10:{minute:02}:{second:02}.000 queries: info: client @0x7f \
             192.0.2.{client}#53{client} ({name}): query: {name} IN {qtype} +E(0) (192.0.2.53)\n"
        );
    }
    text
}

/// What was said on standard error of a command that went well.
fn remarks(finished: Finished) -> String {
    let remarks = finished.stderr.clone();
    finished.succeeded();
    remarks
}

#[test]
fn a_log_becomes_a_summary_and_a_profile_without_names_and_addresses() {
    let folder = Folder::new("fit");
    let file = folder.write("query.log", log());
    let profile = folder.path("profile.toml");
    let finished = throng(&format!("fit {file} -o {profile}"));
    assert!(
        finished.stderr.contains("query.log: bind, 600 queries\n"),
        "{}",
        finished.stderr
    );
    assert!(
        finished
            .stderr
            .contains("skipped: 1 lines other than queries\n")
    );
    let text = finished.succeeded();
    for line in [
        "Population  10 clients, 1.0 qps together, seen for 600.0 s\n",
        "QTYPE       A 66.67 %, AAAA 33.33 %\n",
        "Names       5 (not kept), Zipf exponent 0; the first 5 get 100.0 % of queries\n",
        "Transport   udp 100 %\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let profile = fs::read_to_string(profile).unwrap();
    assert_eq!(
        (count(&profile, "clients"), count(&profile, "queries")),
        (10, 600)
    );
    assert_eq!((count(&profile, "A"), count(&profile, "edns")), (400, 600));
    assert!(
        !profile.contains("secret") && !profile.contains("192.0"),
        "{profile}"
    );

    let kept = throng_with("fit - --keep-names --output -", log().as_bytes()).succeeded();
    assert!(
        kept.contains("secret4.example.com.") && !kept.contains("192.0"),
        "{kept}"
    );
    let ports = throng(&format!("fit {file} {file} --client port -o -"));
    assert!(
        ports
            .stderr
            .contains("539 queries more than a minute before"),
        "{}",
        ports.stderr
    );
    assert_eq!(count(&ports.succeeded(), "clients"), 10);
}

#[test]
fn files_that_cannot_be_fitted_are_refused_with_their_cure() {
    let folder = Folder::new("fit-refused");
    let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    capture.extend([0, 0, 4, 0, 147, 0, 0, 0]);
    let file = |name: &str, content: &[u8]| folder.write(name, content);
    for (flags, error, hint) in [
        (
            folder.path("missing"),
            "cannot read",
            "check that the file exists",
        ),
        (file("empty", b""), "the file is empty", "permission"),
        (
            file("text", b"hello\nworld\n"),
            "not a capture or query log",
            "--format",
        ),
        (
            file("packed", b"\x1f\x8b\x08"),
            "compressed (gzip)",
            "gzip -dc",
        ),
        (file("radio", &capture), "link type 147", "Ethernet"),
        (file("short", &capture[..20]), "cut off", "interrupted"),
        (
            file("l.log", log().as_bytes()) + " --format pcap",
            "not pcap but bind",
            "--format bind",
        ),
        (
            file("m.log", log().as_bytes()) + " -o /nowhere/x",
            "/nowhere/x",
            "--output",
        ),
        (
            file("n.log", log().as_bytes()) + " --format zip",
            "unknown format `zip`",
            "pcapng, dnstap",
        ),
    ] {
        let finished = throng(&format!("fit {flags}"));
        let stderr = finished.stderr.clone();
        finished.ended_with(2);
        let mut lines = stderr
            .lines()
            .skip_while(|line| !line.starts_with("error: "));
        assert!(
            lines.next().is_some_and(|line| line.contains(error)),
            "{flags}: {stderr}"
        );
        assert!(
            lines.next().is_some_and(|line| line.contains(hint)),
            "{flags}: {stderr}"
        );
    }
    capture[20] = 101;
    let (error, hint) = {
        let finished = throng(&format!("fit {}", file("nothing", &capture)));
        let stderr = finished.stderr.clone();
        finished.ended_with(2);
        let lines: Vec<String> = stderr.lines().skip(1).map(str::to_owned).collect();
        (lines[0].clone(), lines[1].clone())
    };
    assert_eq!(error, "error: no query was found");
    assert!(hint.contains("--port"), "{hint}");
}

#[test]
fn a_capture_that_is_cut_off_is_read_to_there_with_a_warning() {
    let folder = Folder::new("fit-cut");
    // Two datagrams of 192.0.2.1 to port 53, and the start of a record.
    let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    capture.extend([0, 0, 4, 0, 101, 0, 0, 0]);
    for second in 1..=2 {
        let message = [
            0, second, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1,
        ];
        capture.extend([second, 0, 0, 0, 0, 0, 0, 0, 47, 0, 0, 0, 47, 0, 0, 0]);
        capture.extend([
            0x45, 0, 0, 47, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 53,
        ]);
        capture.extend([4, 0, 0, 53, 0, 27, 0, 0]);
        capture.extend(message);
    }
    capture.extend([3, 0, 0, 0, 0]);
    let remarks = remarks(throng(&format!(
        "fit {}",
        folder.write("cut.pcap", &capture)
    )));
    assert!(remarks.contains("pcap, 2 queries"), "{remarks}");
    assert!(
        remarks.contains("cut off within the record at byte 150"),
        "{remarks}"
    );
    assert!(
        remarks.contains("hint: the writer was interrupted"),
        "{remarks}"
    );
}
