//! `throng responder`: what it prints, and that everybody's tools are answered by it.

use std::process::Command;

use measure::RunRecord;
use testing::folder::Folder;
use testing::program::execute;
use testing::wait;

use crate::process::{Counters, Responder, THRONG, measured, throng};

/// What is counted of connections that are not answered.
const IGNORED: &str = "QUIC initials ignored";
const ALL: &str = "udp:127.0.0.1:0,tcp:127.0.0.1:0,dot:127.0.0.1:0";

#[test]
fn its_counters_are_those_of_the_run() {
    let folder = Folder::new("counters");
    let names = folder.write("names.txt", "a.example A\nbb.example AAAA +do\n");
    for transport in ["udp", "tcp", "dot"] {
        let certificate = folder.path("certificate.pem");
        let flags = match transport {
            "dot" => format!("--write-certificate {certificate}"),
            _ => String::new(),
        };
        let responder = Responder::start(&format!("{transport}:127.0.0.1:0"), &flags);
        let (shown, address) = &responder.addresses[0];
        assert_eq!(shown, transport);
        let verified = match transport {
            "dot" => format!("--tls-ca {certificate}"),
            _ => String::new(),
        };
        let flags = format!("--queries 2000 --clients 4 --transport {transport} {verified}");
        let record = measured(&format!("--server {address} --names {names} {flags}"));
        let counters = responder.counters();
        let counts = &record.total.counts;
        let text = &counters.0;
        assert_eq!(counts.responses, 2000, "{transport}");
        assert_eq!(counters.get("queries received"), counts.sent, "{text}");
        assert_eq!(counters.get("responses sent"), counts.responses, "{text}");
        assert_eq!(counters.get("NOERROR"), counts.rcodes.by_rcode[0], "{text}");
        // Each message over TCP follows its length in two octets (RFC 1035, section 4.2.2).
        let framing = if transport == "tcp" { 2 * 2000 } else { 0 };
        if transport != "dot" {
            assert_eq!(
                counters.get("bytes received"),
                counts.sent_octets + framing,
                "{text}"
            );
            assert_eq!(
                counters.get("bytes sent"),
                counts.received_octets + framing,
                "{text}"
            );
        }
        let handshakes = if transport == "dot" { 4 } else { 0 };
        assert!(
            counters.get("TLS handshakes completed") >= handshakes,
            "{text}"
        );
        assert!(text.contains(&format!("{transport} 2000")), "{text}");
    }
}

/// A run against a responder with these faults, and what the responder counted.
fn run_with(folder: &Folder, faults: &str, flags: &str) -> (RunRecord, Counters) {
    let names = folder.write("names.txt", "a.example A\n");
    let responder = Responder::start("udp:127.0.0.1:0", faults);
    let server = format!("--server {} --names {names}", responder.address());
    let record = measured(&format!("{server} --queries 3000 --clients 40 {flags}"));
    let counters = responder.counters();
    assert_eq!(counters.get("queries received"), 3000, "{}", counters.0);
    let counts = &record.total.counts;
    assert_eq!(counts.responses + counts.timeouts, 3000);
    (record, counters)
}

/// Responses that came after the timeout, as they do on a busy host, or after the end; checks that
/// all queries without a response in time are these and those that the responder did not answer.
#[track_caller]
fn too_late(record: &RunRecord, unanswered: u64) -> u64 {
    let counts = &record.total.counts;
    let too_late = counts.timeouts.checked_sub(unanswered);
    assert!(too_late >= Some(counts.late), "{unanswered}: {counts:?}");
    too_late.unwrap_or(0)
}

#[test]
fn faults_are_counted_alike_at_both_ends() {
    let folder = Folder::new("faults");
    let faults = "--loss 0.1 --rcodes SERVFAIL=0.2,NXDOMAIN=0.1 --truncate 0.1";
    let (record, counters) = run_with(&folder, faults, "--outstanding 300 --timeout 2s");
    let (counts, text) = (&record.total.counts, &counters.0);
    let lost = counters.get("responses lost on purpose");
    let sent = counters.get("responses sent");
    assert_eq!(sent + lost, 3000, "{text}");
    let too_late = too_late(&record, lost);
    for (rcode, name) in [(0, "NOERROR"), (2, "SERVFAIL"), (3, "NXDOMAIN")] {
        let there = counters.get(name);
        let here = there.saturating_sub(too_late)..=there;
        assert!(here.contains(&counts.rcodes.by_rcode[rcode]), "{text}");
    }
    // Those that came too late may have been truncated.
    assert!(counts.truncated + too_late > 180, "{counts:?}\n{text}");
    assert!(counts.truncated < 420, "{counts:?}\n{text}");
    for (count, share) in [
        (lost, 0.1),
        (counters.get("SERVFAIL"), 0.2),
        (counters.get("NXDOMAIN"), 0.1),
    ] {
        let found = count as f64 / 3000.0;
        assert!(
            (found - share).abs() < 0.04,
            "{found} instead of {share}\n{text}"
        );
    }
}

#[test]
fn duplicates_and_spoilt_responses_are_told_apart_from_responses() {
    let folder = Folder::new("duplicates");
    let (record, counters) = run_with(&folder, "--duplicate 0.2", "");
    let (counts, text) = (&record.total.counts, &counters.0);
    let duplicated = counters.get("responses duplicated on purpose");
    assert!((450..750).contains(&duplicated), "{text}");
    assert_eq!(counters.get("responses sent"), 3000 + duplicated, "{text}");
    // Copies of the very last responses may come after the run has ended.
    assert!(
        (duplicated - 100..=duplicated).contains(&counts.duplicate),
        "{text}"
    );

    let spoilt = "--wrong-id 0.05 --wrong-question 0.05 --garbage 0.05";
    let (record, counters) = run_with(&folder, spoilt, "--outstanding 300 --timeout 2s");
    let counts = &record.total.counts;
    let unexpected = &counts.unexpected;
    too_late(&record, counters.get("responses corrupted on purpose"));
    assert!(
        unexpected.wrong_id > 0 && unexpected.wrong_question > 0,
        "{unexpected:?}"
    );
}

#[test]
fn dig_and_kdig_are_answered_over_every_transport() {
    let folder = Folder::new("dig");
    let certificate = folder.path("certificate.pem");
    let responder = Responder::start(ALL, &format!("--write-certificate {certificate}"));
    let port = |index: usize| responder.addresses[index].1.port();
    let (udp, tcp, dot) = (port(0), port(1), port(2));
    let verified = format!("+tls +tls-ca={certificate} +tls-hostname=localhost");
    for line in [
        format!("dig +tries=1 +time=5 +notcp -p {udp}"),
        format!("dig +tries=1 +time=5 +tcp -p {tcp}"),
        format!("dig +tries=1 +time=5 +notcp +dnssec +bufsize=1232 -p {udp}"),
        format!("kdig +retry=0 +time=5 -p {udp}"),
        format!("kdig +retry=0 +time=5 +tcp -p {tcp}"),
        format!("kdig +retry=0 +time=5 +tls -p {dot}"),
        format!("kdig +retry=0 +time=5 {verified} -p {dot}"),
    ] {
        let line = format!("{line} @127.0.0.1 www.example.test A");
        let shown = execute(&line).succeeded();
        assert!(shown.contains("NOERROR"), "{line}\n{shown}");
        let is_answer = |shown: &&str| shown.starts_with("www.example.test.");
        let answer: Vec<&str> = shown.lines().filter(is_answer).collect();
        let words: Vec<&str> = answer.last().unwrap().split_whitespace().collect();
        assert_eq!(words[1..4], ["60", "IN", "A"], "{line}\n{shown}");
    }
    let wrong = format!("+tls +tls-ca={certificate} +tls-hostname=wrong.example");
    let line = format!("kdig +retry=0 +time=5 {wrong} -p {dot} @127.0.0.1 www.example.test A");
    assert_ne!(execute(&line).code, Some(0));
    assert_eq!(responder.counters().get("queries received"), 7);
}

#[test]
fn kdig_meets_with_the_faults_of_quic_connections() {
    let folder = Folder::new("kdig-faults");
    let file = folder.path("counters.json");
    for (faults, is_answered, count) in [
        ("--quic-retry 1", true, "QUIC retries"),
        ("--quic-refuse 1", false, "connections refused"),
        (
            "--quic-version-negotiation 1",
            false,
            "QUIC version negotiations",
        ),
        ("--quic-ignore 1", false, IGNORED),
        ("--end-after 1:error=4", true, "connections closed"),
        ("--reset-streams 1", false, "streams reset on purpose"),
    ] {
        let flags = format!("{faults} --counters {file}");
        let responder = Responder::start("doq:127.0.0.1:0", &flags);
        let port = responder.address().port();
        // One that is ignored waits for all of it.
        let seconds = if count == IGNORED { 1 } else { 20 };
        let line =
            format!("kdig +retry=0 +time={seconds} +quic -p {port} @127.0.0.1 www.example.test A");
        let asked = execute(&line);
        assert_eq!(asked.stdout.contains("NOERROR"), is_answered, "{faults}");
        if count == IGNORED {
            // What it has sent may still be unread.
            wait::until(count, || {
                so_far(&responder, &file)["quic_ignored"].as_u64() > Some(0)
            });
        }
        let counters = responder.counters();
        assert!(counters.get(count) > 0, "{faults}: {}", counters.0);
        assert_eq!(
            counters.get("responses sent"),
            u64::from(is_answered),
            "{faults}"
        );
    }
}

#[test]
fn a_zone_file_is_answered_from() {
    let folder = Folder::new("zone");
    let zone = "@ 300 IN SOA ns hostmaster 1 3600 600 86400 30\n@ IN 300 NS ns\nns 300 IN A \
                192.0.2.53\nwww 77 IN A 192.0.2.80\n";
    let with_origin = folder.write("with-origin.zone", format!("$ORIGIN lab.test.\n{zone}"));
    let without = folder.write("without-origin.zone", zone);
    for flags in [
        format!("--zone {with_origin}"),
        format!("--zone {without} --origin lab.test"),
    ] {
        let responder = Responder::start("udp:127.0.0.1:0", &flags);
        let port = responder.address().port();
        let ask = |what: &str| {
            let line = format!("dig +tries=1 +time=5 -p {port} @127.0.0.1 {what}");
            execute(&line).succeeded()
        };
        assert_eq!(ask("www.lab.test A +short"), "192.0.2.80\n");
        assert!(
            ask("www.lab.test A +noall +answer").contains("\t77\t"),
            "TTL of the zone"
        );
        assert!(ask("missing.lab.test A").contains("NXDOMAIN"));
        let nodata = ask("www.lab.test AAAA");
        assert!(
            nodata.contains("NOERROR") && nodata.contains("ANSWER: 0"),
            "{nodata}"
        );
        assert!(ask("www.other.test A").contains("REFUSED"));
    }
}

#[test]
fn an_address_that_is_taken_or_that_no_interface_has_is_refused() {
    let responder = Responder::start("udp:127.0.0.1:0,tcp:127.0.0.1:0", "");
    for (transport, address) in &responder.addresses {
        throng(&format!("responder --listen {transport}:{address}")).refused_with(
            &format!("cannot listen for {transport} on {address}"),
            "port 0 for any free one",
        );
    }
    for transport in ["udp", "doq"] {
        let (error, _) = throng(&format!("responder --listen {transport}:192.0.2.1:0")).refused();
        let expected = format!("cannot listen for {transport} on 192.0.2.1:0");
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn it_listens_for_doh_with_tls_and_without_and_says_which_is_which() {
    let listen = "doh2+http:127.0.0.1:0,doh2:127.0.0.1:0,udp:127.0.0.1:0";
    let flags = "--doh-path /q --doh-streams 5 --http-statuses 503=0.1 --end-after 5:goaway";
    let responder = Responder::start(listen, flags);
    let names: Vec<&str> = { responder.addresses.iter() }
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["doh2", "udp", "doh2+http"]);
    assert_eq!(responder.counters().get("queries received"), 0);
}

#[test]
fn it_ends_by_itself_after_its_duration() {
    let text = throng("responder --listen udp:127.0.0.1:0 --duration 50ms").succeeded();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("listening on udp:127.0.0.1:"),
        "{text}"
    );
    assert!(lines[1].starts_with("queries received  "), "{text}");
    assert!(lines[1].ends_with(" 0"), "{text}");
}

#[test]
fn a_certificate_of_ones_own_is_used() {
    let folder = Folder::new("own-certificate");
    let (certificate, key) = (folder.path("certificate.pem"), folder.path("key.pem"));
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let names = folder.write("names.txt", "a.example A\n");
    let flags = format!("--tls-cert {certificate} --tls-key {key}");
    let responder = Responder::start("dot:127.0.0.1:0", &flags);
    let server = format!("--server {} --transport dot", responder.address());
    let run = format!("{server} --tls-ca {certificate} --names {names} --queries 100");
    let record = measured(&run);
    assert_eq!(record.total.counts.responses, 100);
    let tls = record.scenario.tls.unwrap();
    assert!(tls.verified && tls.version.is_some(), "{tls:?}");
    drop(responder);

    let responder = Responder::start("dot:127.0.0.1:0", "");
    let server = format!("--server {} --transport dot", responder.address());
    let run = format!("{server} --tls-insecure --names {names} --queries 100");
    assert!(!measured(&run).scenario.tls.unwrap().verified);
}

#[test]
fn connections_that_find_no_descriptor_are_counted_and_the_others_served() {
    let folder = Folder::new("descriptors");
    let names = folder.write("names.txt", "a.example A\n");
    for driver in ["epoll", "uring"] {
        // A few are for the program itself.
        let mut command = Command::new("prlimit");
        command.args(["--nofile=40:40", THRONG]);
        let flags = format!("--driver {driver}");
        let responder = Responder::start_by(command, "tcp:127.0.0.1:0", &flags);
        let load = format!(
            "run --quiet --format json --server {} --names {names} --transport tcp --clients 100 \
             --rate 1000 --queries 100 --timeout 2s",
            responder.address()
        );
        let record = RunRecord::from_json(&throng(&load).stdout).unwrap();
        let counts = &record.total.counts;
        assert!(counts.responses > 0, "{driver}: {counts:?}");
        assert!(counts.timeouts > 0, "{driver}: {counts:?}");
        let counters = responder.counters();
        let failed = counters.get("connections that could not be accepted");
        assert!(failed > 0, "{driver}: {}", counters.0);
    }
}

/// What it has counted so far, of one with `--counters`.
fn so_far(responder: &Responder, file: &str) -> serde_json::Value {
    std::fs::remove_file(file).unwrap();
    responder.signal("USR1");
    let text = wait::for_some("the counters", || std::fs::read_to_string(file).ok());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn its_counters_so_far_are_written_when_a_signal_asks_for_them() {
    let folder = Folder::new("counters-file");
    let file = folder.path("counters.json");
    let names = folder.write("names.txt", "a.example A\n");
    let responder = Responder::start("udp:127.0.0.1:0", &format!("--counters {file}"));
    let address = responder.address();
    measured(&format!("--server {address} --names {names} --queries 50"));
    let counters = so_far(&responder, &file);
    assert_eq!(counters["queries"], counters["responses"], "{counters}");
    assert!(counters["queries"].as_u64() >= Some(50), "{counters}");
    assert_eq!(counters["lost"], 0, "{counters}");
    // It goes on.
    measured(&format!("--server {address} --names {names} --queries 50"));
    let queries = responder.counters().get("queries received");
    let at_end = std::fs::read_to_string(&file).unwrap();
    let at_end: serde_json::Value = serde_json::from_str(&at_end).unwrap();
    assert_eq!(at_end["queries"], queries);
}
