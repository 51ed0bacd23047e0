//! `throng dnsperf` beside dnsperf itself, against BIND and the built-in responder.
//!
//! Needs BIND and dnsperf installed; `./test` sees to it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use lab::run::{Serving, SocketUse, serve};
use lab::target::{BindOptions, BindTarget, DOH_PATH, Service, TsigKey, Zone};
use load::name_sets::RecordSet;
use proto::Transport;
use responder::certificate::{SelfSigned, self_signed};
use responder::{Behaviour, Delay, ResponderConfig};
use testing::folder::Folder;
use testing::ports::{ClosedTcpPort, ClosedUdpPort};
use testing::program::signal;

use crate::process::THRONG;

const RECORDS: u32 = 100;

pub(crate) const ZONE: &str = "lab.test";

/// A names file of the records of the zone.
pub(crate) fn names_in(folder: &Folder) -> String {
    let mut text = String::new();
    records().write_names(&mut text).unwrap();
    folder.write("names.txt", text)
}

fn records() -> RecordSet {
    RecordSet::new(ZONE, RECORDS, 1).unwrap()
}

pub(crate) fn bind(change: impl FnOnce(BindOptions) -> BindOptions) -> BindTarget {
    let mut text = String::new();
    records().write_zone(&mut text).unwrap();
    let zone = Zone {
        origin: format!("{ZONE}."),
        text,
    };
    BindTarget::start(&change(BindOptions::new(zone))).unwrap()
}

pub(crate) fn responder(transport: Transport, behaviour: Behaviour) -> (Serving, SocketAddr) {
    let identity = self_signed(&SelfSigned::default()).unwrap();
    let config = ResponderConfig {
        listen: vec![(transport, "127.0.0.1:0".parse().unwrap())],
        tls: Some(Arc::clone(&identity.server_config)),
        behaviour,
        ..ResponderConfig::default()
    };
    let serving = serve(&config, &[], SocketUse::default()).unwrap();
    let address = serving.address(transport).unwrap();
    (serving, address)
}

/// A command with the words of `line`, `throng` as dnsperf or dnsperf itself.
fn command(program: &str, line: &str) -> Command {
    let mut command = match program {
        "throng" => {
            let mut command = Command::new(THRONG);
            command.arg("dnsperf");
            command
        }
        _ => Command::new(program),
    };
    command.args(line.split_whitespace()).stdin(Stdio::null());
    command.env_remove("THRONG_ALLOW_PUBLIC");
    command
}

fn throng(line: &str) -> Output {
    command("throng", line).output().unwrap()
}

/// Standard output of a run that succeeded.
fn succeed(program: &str, line: &str) -> String {
    let output = command(program, line).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{program} {line}\n{stdout}\n{stderr}"
    );
    stdout
}

/// One line with every number replaced by `#`, so that only labels and layout are left.
pub(crate) fn shape(line: &str) -> String {
    let mut shape = String::new();
    let mut in_number = false;
    for letter in line.chars() {
        let part = letter.is_ascii_digit() || (in_number && letter == '.');
        match (part, in_number) {
            (true, false) => shape.push('#'),
            (true, true) => {}
            (false, _) => shape.push(letter),
        }
        in_number = part;
    }
    shape
}

/// The lines of an output that do not depend on the program, the time or a histogram's values.
fn shapes(stdout: &str) -> Vec<String> {
    let own = |line: &&str| {
        !["Version ", "[Status] Command line:", "[Status] Started at:"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    stdout.lines().filter(own).map(shape).collect()
}

/// The number after a label, such as `Queries sent:`.
fn number(stdout: &str, label: &str) -> f64 {
    let line = stdout
        .lines()
        .rev()
        .find(|line| line.trim_start().starts_with(label));
    let line = line.unwrap_or_else(|| panic!("no `{label}` in\n{stdout}"));
    let value = line.trim_start()[label.len()..]
        .split_whitespace()
        .next()
        .unwrap();
    value.parse().unwrap()
}

fn completed(stdout: &str) -> (f64, f64) {
    (
        number(stdout, "Queries sent:"),
        number(stdout, "Queries completed:"),
    )
}

#[test]
fn output_over_udp_has_the_lines_of_dnsperf() {
    let target = bind(|options| options);
    let folder = Folder::new("udp-lines");
    let port = target.endpoints().do53().port();
    for options in [
        "",
        "-n 3",
        "-l 60.5 -n 2",
        "-c 4 -T 2 -q 20",
        "-e -D",
        "-f inet",
    ] {
        let line = format!("-p {port} -d {} {options}", names_in(&folder));
        let (theirs, ours) = (succeed("dnsperf", &line), succeed("throng", &line));
        assert_eq!(shapes(&ours), shapes(&theirs), "{line}");
        assert_eq!(completed(&ours), completed(&theirs), "{line}");
    }
}

#[test]
fn output_over_tcp_has_the_lines_of_dnsperf_but_for_the_attempts_of_2_14() {
    let target = bind(|options| options);
    let folder = Folder::new("tcp-lines");
    let port = target.endpoints().do53().port();
    let line = format!("-m tcp -c 3 -p {port} -d {}", names_in(&folder));
    let theirs = shapes(&succeed("dnsperf", &line));
    let ours = shapes(&succeed("throng", &line));
    // Until 2.13 the line counted reconnections alone.
    let attempts = "  Connection attempts:  # (# successful, #%)";
    let theirs: Vec<_> = theirs
        .into_iter()
        .map(|line| match line.starts_with("  Reconnections:") {
            true => attempts.to_owned(),
            false => line,
        })
        .collect();
    assert_eq!(ours, theirs);
}

/// BIND that answers over HTTP/2, with TLS or without.
fn bind_over_http(service: Service) -> (BindTarget, u16) {
    let target = bind(|options| BindOptions {
        services: vec![service],
        ..options
    });
    let port = target.endpoints().service(service).unwrap().port();
    (target, port)
}

#[test]
fn output_over_https_has_the_lines_of_dnsperf_but_for_the_attempts_of_2_14() {
    let (_target, port) = bind_over_http(Service::Doh2);
    let folder = Folder::new("https-lines");
    let names = names_in(&folder);
    let uri = format!("-O doh-uri=https://localhost{DOH_PATH}");
    let line = format!("-m doh -c 2 -q 10 -p {port} -d {names} {uri}");
    let theirs = shapes(&succeed("dnsperf", &line));
    let ours = succeed("throng", &line);
    let attempts = "  Connection attempts:  # (# successful, #%)";
    let theirs: Vec<_> = theirs
        .into_iter()
        .map(|line| match line.starts_with("  Reconnections:") {
            true => attempts.to_owned(),
            false => line,
        })
        .collect();
    assert_eq!(shapes(&ours), theirs);
    assert_eq!(completed(&ours), (100.0, 100.0), "{ours}");
    assert!(
        ours.contains("  HTTP/2 return codes:  200: 100\n"),
        "{ours}"
    );
}

#[test]
fn requests_over_http_are_made_as_their_options_say() {
    let folder = Folder::new("http-options");
    let names = names_in(&folder);
    let (_target, port) = bind_over_http(Service::Doh2);
    for (method, path, code) in [
        ("GET", DOH_PATH, 200),
        ("POST", DOH_PATH, 200),
        ("GET", "/nothing", 404),
    ] {
        let line = format!(
            "-m doh -p {port} -q 1 -d {names} -O doh-uri=https://dns.test{path} \
             -O doh-method={method} -O tls-sni=dns.test"
        );
        let stdout = succeed("throng", &line);
        let answered = if code == 200 { 100.0 } else { 0.0 };
        assert_eq!(completed(&stdout), (100.0, answered), "{line}\n{stdout}");
        // After some requests for nothing BIND closes the connection, with one in flight.
        let times = if code == 200 { "100\n" } else { "9" };
        let codes = format!("  HTTP/2 return codes:  {code}: {times}");
        assert!(stdout.contains(&codes), "{line}\n{stdout}");
    }
}

#[test]
fn equivalent_run_over_https_names_the_same_requests() {
    let (_target, port) = bind_over_http(Service::Doh2);
    let folder = Folder::new("https-equivalent");
    let names = names_in(&folder);
    let line = format!("-m doh -p {port} -d {names} -O doh-uri=https://dns.test{DOH_PATH}");
    let stderr = String::from_utf8(throng(&line).stderr).unwrap();
    let command = format!(
        "throng run --server 127.0.0.1:{port} --transport doh2 --doh-method get --doh-authority \
         dns.test --doh-path {DOH_PATH} --names {names}"
    );
    assert!(stderr.contains(&command), "{stderr}");
    assert!(stderr.contains(" --tls-insecure"), "{stderr}");
}

#[test]
fn a_run_without_responses_has_the_lines_of_dnsperf() {
    // Bound and never read: whatever is sent there is lost.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let folder = Folder::new("lost-lines");
    let names = folder.write("names.txt", "lost.lab.test A\n");
    let line = format!("-p {port} -d {names} -t 0.2");
    let (theirs, ours) = (succeed("dnsperf", &line), succeed("throng", &line));
    assert_eq!(shapes(&ours), shapes(&theirs));
    assert_eq!(number(&ours, "Queries lost:"), 1.0);
}

#[test]
fn header_and_interval_lines_have_the_form_of_dnsperf() {
    let (serving, address) = responder(Transport::Udp, Behaviour::default());
    let folder = Folder::new("intervals");
    let line = format!(
        "-p {} -d {} -l 1 -S 0.25 -q 5 -Q 400",
        address.port(),
        names_in(&folder)
    );
    let stdout = succeed("throng", &line);
    drop(serving);
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[0], "DNS Performance Testing Tool");
    assert!(lines[1].starts_with("Version 2.14.0 (throng "), "{stdout}");
    assert_eq!(lines[3], format!("[Status] Command line: dnsperf {line}"));
    assert_eq!(lines[4], format!("[Status] Sending queries (to {address})"));
    let started = lines[5].strip_prefix("[Status] Started at: ").unwrap();
    assert_eq!(started.len(), "Sun Nov 30 01:41:40 2025".len(), "{started}");
    assert_eq!(lines[6], "[Status] Stopping after 1.000000 seconds");
    let rates: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| shape(line) == "#: #")
        .collect();
    // The fourth would end with the run.
    assert_eq!(rates.len(), 3, "{stdout}");
    for rate in rates {
        let (time, qps) = rate.split_once(": ").unwrap();
        assert!(time.parse::<f64>().unwrap() > 1.6e9, "{rate}");
        assert_eq!(time.split_once('.').unwrap().1.len(), 6, "{rate}");
        // All queries of the run in one interval: one that starts late catches up.
        assert!(qps.parse::<f64>().unwrap() <= 400.0 / 0.25, "{rate}");
    }
    assert!(stdout.contains("[Status] Testing complete (time limit)\n\nStatistics:\n\n"));
}

/// The number of `Interval Statistics:` blocks, and of lines that are histogram buckets.
fn blocks_and_buckets(stdout: &str) -> (usize, usize) {
    let blocks = stdout
        .lines()
        .filter(|line| *line == "Interval Statistics:")
        .count();
    let buckets = stdout
        .lines()
        .filter(|line| shape(line) == "  # - #:  #")
        .count();
    (blocks, buckets)
}

#[test]
fn the_four_commands_of_the_article_run_with_their_redirection() {
    let article = bind(|options| options);
    let tuned = bind(|options| BindOptions {
        tcp_clients_max: Some(1_000),
        ..options
    });
    let folder = Folder::new("article");
    let names = names_in(&folder);
    let redirected = folder.folder().join("dnsperf-result.txt");
    for (mode, target, load) in [
        ("tcp", &article, "-T 4 -c 4"),
        ("tcp", &article, "-T 4 -c 200"),
        ("tcp", &tuned, "-T 4 -c 200 -q 1000"),
        ("udp", &tuned, "-T 4 -c 200 -q 1000"),
    ] {
        let port = target.endpoints().do53().port();
        let line = format!(
            "-f inet -m {mode} -s localhost -p {port} {load} -l 2 -d {names} \
             -O latency-histogram -O verbose-interval-stats -S 1 -O suppress=timeout,unexpected"
        );
        let file = File::create(&redirected).unwrap();
        let output = command("throng", &line).stdout(file).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}\n{stderr}");
        let stdout = fs::read_to_string(&redirected).unwrap();
        let (sent, answered) = completed(&stdout);
        assert!(answered > 0.0 && answered <= sent, "{line}\n{stdout}");
        let (blocks, buckets) = blocks_and_buckets(&stdout);
        assert!(blocks == 1 && buckets > blocks, "{line}\n{stdout}");
        assert_eq!(
            stdout.contains("Connection Statistics:"),
            mode == "tcp",
            "{stdout}"
        );
        assert!(
            stdout.contains("  Latency bucket (s):   answer count\n"),
            "{stdout}"
        );
        let last = stderr.lines().last().unwrap();
        let start = format!("equivalent: throng run --server 127.0.0.1:{port} --transport {mode} ");
        assert!(last.starts_with(&start), "{last}");
        assert!(
            last.contains(" --duration 2s ") && last.ends_with("--interval 1s --no-preflight"),
            "{last}"
        );
    }
}

#[test]
fn queries_over_tls_are_answered_and_its_connections_shown() {
    let (serving, address) = responder(Transport::Dot, Behaviour::default());
    let folder = Folder::new("dot");
    let line = format!(
        "-m dot -c 3 -p {} -d {} -n 2",
        address.port(),
        names_in(&folder)
    );
    for sni in ["", "-O tls-sni=dns.lab.test"] {
        let stdout = succeed("throng", &format!("{line} {sni}"));
        assert_eq!(completed(&stdout), (200.0, 200.0), "{stdout}");
        let attempts = "  Connection attempts:  3 (3 successful, 100.00%)\n";
        assert!(stdout.contains(attempts), "{stdout}");
    }
    drop(serving);
}

#[test]
fn connections_are_closed_after_the_queries_asked_for() {
    let (serving, address) = responder(Transport::Tcp, Behaviour::default());
    let folder = Folder::new("per-connection");
    let line = format!(
        "-m tcp -p {} -d {} -q 1 -O num-queries-per-conn=10",
        address.port(),
        names_in(&folder)
    );
    let stdout = succeed("throng", &line);
    drop(serving);
    assert_eq!(completed(&stdout), (100.0, 100.0), "{stdout}");
    assert!(number(&stdout, "Connection attempts:") >= 10.0, "{stdout}");
}

#[test]
fn dynamic_updates_signed_with_a_key_are_carried_out() {
    let key = TsigKey {
        name: "lab-key".to_owned(),
        algorithm: "hmac-sha256".to_owned(),
        secret_base64: "c2VjcmV0IG9mIHRoZSBsYWI=".to_owned(),
    };
    let target = bind(|options| BindOptions {
        update_key: Some(key.clone()),
        ..options
    });
    let folder = Folder::new("updates");
    let added = RecordSet::new(ZONE, RECORDS + 20, 7).unwrap();
    let mut text = String::new();
    added.write_updates(&mut text).unwrap();
    let file = folder.write("updates.txt", &text);
    let before = target.statistics().unwrap();
    let port = target.endpoints().do53().port();
    let signed = format!("{}:{}:{}", key.algorithm, key.name, key.secret_base64);
    let output = throng(&format!("-u -y {signed} -p {port} -d {file} -t 50"));
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stdout}\n{stderr}");
    assert!(
        stdout.contains("[Status] Sending updates (to 127.0.0.1:"),
        "{stdout}"
    );
    assert_eq!(number(&stdout, "Updates sent:"), 120.0, "{stdout}");
    assert!(
        stdout.contains("  Response codes:       NOERROR 120 (100.00%)\n"),
        "{stdout}"
    );
    assert!(stdout.contains("  Updates per second:   "), "{stdout}");
    assert_eq!(
        target.statistics().unwrap().since(&before).updates_done,
        120
    );
    let secret = &key.secret_base64;
    assert!(
        !stdout.contains(secret) && !stderr.contains(secret),
        "{stdout}\n{stderr}"
    );
}

#[test]
fn responses_that_dnsperf_matches_by_their_id_alone_are_completed_by_both() {
    let qr = |behaviour: &mut Behaviour| behaviour.faults.wrong_qr = 1.0;
    let question = |behaviour: &mut Behaviour| behaviour.faults.wrong_question = 1.0;
    let media_type = |behaviour: &mut Behaviour| behaviour.faults.wrong_media_type = 1.0;
    type Change<'a> = &'a dyn Fn(&mut Behaviour);
    let cases: [(Transport, &str, Change<'_>); 5] = [
        (Transport::Udp, "udp", &qr),
        (Transport::Udp, "udp", &question),
        (Transport::Tcp, "tcp", &qr),
        (Transport::Doh2, "doh", &qr),
        (Transport::Doh2, "doh", &media_type),
    ];
    let folder = Folder::new("by-id");
    for (transport, mode, change) in cases {
        let mut behaviour = Behaviour::default();
        change(&mut behaviour);
        let (serving, address) = responder(transport, behaviour);
        let (port, names) = (address.port(), names_in(&folder));
        let uri = match transport {
            Transport::Doh2 => format!(" -O doh-uri=https://127.0.0.1:{port}/dns-query"),
            _ => String::new(),
        };
        let line = format!("-p {port} -d {names} -n 1 -q 1 -m {mode}{uri}");
        for program in ["throng", "dnsperf"] {
            let stdout = succeed(program, &line);
            let (sent, answered) = completed(&stdout);
            assert!(sent > 0.0, "{program}: {stdout}");
            assert_eq!(sent, answered, "{program}: {stdout}");
        }
        drop(serving);
    }
}

#[test]
fn the_binary_form_is_read_from_standard_input_too() {
    let (serving, address) = responder(Transport::Udp, Behaviour::default());
    let folder = Folder::new("binary");
    let mut stream = Vec::new();
    let questions =
        load::names_file::parse_text(b"a.example A\nb.example AAAA\n", &Default::default());
    for template in questions.unwrap().iter() {
        stream.extend_from_slice(&u16::try_from(template.message.len()).unwrap().to_be_bytes());
        stream.extend_from_slice(template.message);
    }
    let path = folder.folder().join("names.bin");
    fs::write(&path, stream).unwrap();
    let output = command("throng", &format!("-B -n 5 -p {}", address.port()))
        .stdin(File::open(&path).unwrap())
        .output()
        .unwrap();
    drop(serving);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(completed(&stdout), (10.0, 10.0), "{stdout}");
    assert!(
        stdout.contains("[Status] Stopping after 5 runs through file\n"),
        "{stdout}"
    );
}

#[test]
fn the_wait_for_late_responses_counts_into_the_run_time() {
    let delay = Delay::Constant(Duration::from_millis(300));
    let behaviour = Behaviour {
        delay,
        ..Behaviour::default()
    };
    let (serving, address) = responder(Transport::Udp, behaviour);
    let folder = Folder::new("run-time");
    let stdout = succeed(
        "throng",
        &format!(
            "-p {} -d {} -l 0.2 -t 60",
            address.port(),
            names_in(&folder)
        ),
    );
    drop(serving);
    let (sent, answered) = completed(&stdout);
    assert_eq!(sent, answered, "{stdout}");
    let run_time = number(&stdout, "Run time (s):");
    // The responses are waited for, and not their timeout.
    assert!((0.3..60.0).contains(&run_time), "{stdout}");
    let rate = number(&stdout, "Queries per second:");
    assert!((rate * run_time - answered).abs() < 0.01, "{stdout}");
    assert!(number(&stdout, "Average Latency (s):") >= 0.3, "{stdout}");
}

#[test]
fn an_interrupt_ends_the_run_with_its_statistics() {
    let (serving, address) = responder(Transport::Udp, Behaviour::default());
    let folder = Folder::new("interrupt");
    let line = format!(
        "-p {} -d {} -l 60 -S 0.1 -Q 1000",
        address.port(),
        names_in(&folder)
    );
    let mut child = command("throng", &line)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    while !printed.lines().any(|line| shape(line) == "#: #") {
        assert_ne!(stdout.read_line(&mut printed).unwrap(), 0, "{printed}");
    }
    signal(&child, "INT");
    stdout.read_to_string(&mut printed).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{printed}");
    drop(serving);
    assert!(
        printed.contains("[Status] Testing complete (interruption)\n"),
        "{printed}"
    );
    let (sent, answered) = completed(&printed);
    assert!(sent > 0.0 && sent == answered, "{printed}");
}

#[test]
fn nobody_listening_is_a_loss_and_the_statistics_come() {
    let (udp, tcp) = (ClosedUdpPort::new(), ClosedTcpPort::new());
    let folder = Folder::new("nobody");
    let names = folder.write("names.txt", "a.lab.test A\n");
    let line = |port: u16| format!("-p {port} -d {names} -t 0.2");
    let over_tcp = line(tcp.address().port());
    let stdout = succeed("throng", &format!("-m tcp -l 0.5 {over_tcp}"));
    assert!(
        stdout.contains("  Queries completed:    0 (0.00%)\n"),
        "{stdout}"
    );
    assert!(stdout.contains("  Connection attempts:  "), "{stdout}");
    let stdout = succeed("throng", &line(udp.address().port()));
    assert!(
        stdout.contains("  Queries lost:         1 (100.00%)\n"),
        "{stdout}"
    );
}

#[test]
fn warnings_go_to_standard_error_or_with_w_to_standard_output() {
    let (serving, address) = responder(Transport::Udp, Behaviour::default());
    let folder = Folder::new("warnings");
    let line = format!("-p {} -d {} -T 4", address.port(), names_in(&folder));
    let warning = "Warning: requested number of threads (-T 4) exceeds number of clients (-c 1), \
                   lowering number of threads";
    let output = throng(&line);
    let (stdout, stderr) = texts(&output);
    assert!(
        stderr.contains(warning) && !stdout.contains("Warning:"),
        "{stderr}"
    );
    let output = throng(&format!("{line} -W"));
    let (stdout, stderr) = texts(&output);
    assert!(
        stdout.contains(warning) && !stderr.contains("Warning:"),
        "{stdout}"
    );
    drop(serving);
}

pub(crate) fn texts(output: &Output) -> (String, String) {
    let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_binary_called_dnsperf_is_dnsperf() {
    let folder = Folder::new("called");
    let link: &Path = &folder.folder().join("dnsperf");
    std::os::unix::fs::symlink(THRONG, link).unwrap();
    let output = Command::new(link).arg("-h").output().unwrap();
    let (stdout, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stdout.starts_with("DNS Performance Testing Tool\n"),
        "{stdout}"
    );
    assert!(
        stderr.starts_with("Usage: dnsperf [-f family] [-m mode]"),
        "{stderr}"
    );
    let output = Command::new(link).arg("-H").output().unwrap();
    assert!(texts(&output).1.contains("  latency-histogram: "));
}
