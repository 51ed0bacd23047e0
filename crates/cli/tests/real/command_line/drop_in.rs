//! `throng dnsperf` and `throng resperf` beside Debian's, with the same arguments and the same
//! input: messages, their streams, output and exit codes.
//!
//! Needs dnsperf installed; `./test` sees to it.

use std::fs::File;
use std::net::UdpSocket;
use std::process::{Command, Output};

use proto::Transport;
use responder::Behaviour;
use testing::folder::Folder;

use crate::dnsperf::{responder, shape, texts};
use crate::process::THRONG;

/// One command line and its input.
struct Case {
    program: &'static str,
    line: String,
    input: &'static [u8],
}

fn case(program: &'static str, line: impl Into<String>, input: &'static [u8]) -> Case {
    let line = line.into();
    Case {
        program,
        line,
        input,
    }
}

impl Case {
    fn run(&self, mut command: Command) -> Output {
        command.args(self.line.split_whitespace());
        command.env_remove("THRONG_ALLOW_PUBLIC");
        // dnsperf reads a file again for `-n`, and no pipe.
        let test = std::thread::current().name().unwrap().replace("::", "-");
        let folder = Folder::new(&format!("{test}-input"));
        let input = File::open(folder.write("input", self.input)).unwrap();
        command.stdin(input).output().unwrap()
    }

    fn theirs(&self) -> Output {
        self.run(Command::new(self.program))
    }

    fn ours(&self) -> Output {
        let mut command = Command::new(THRONG);
        command.arg(self.program);
        self.run(command)
    }

    /// Both print the same, and end with the same exit code.
    fn check(&self) {
        let (theirs, ours) = (self.theirs(), self.ours());
        let Case { program, line, .. } = self;
        let (their, our) = (texts(&theirs), texts(&ours));
        let of = format!("{program} {line}\n{their:?}\n{our:?}");
        assert_eq!(ours.status.code(), theirs.status.code(), "{of}");
        assert_eq!(normal(&our.0), normal(&their.0), "{of}");
        assert_eq!(normal(&our.1), normal(&their.1), "{of}");
    }
}

/// Lines that only we have, or that name time and version.
const OWN: [&str; 6] = [
    "hint: ",
    "limit: ",
    "equivalent: ",
    "Version ",
    "[Status] Started at: ",
    "[Status] Command line: ",
];

/// The lines without their numbers; those of single queries in any order.
fn normal(text: &str) -> Vec<String> {
    let is_single = |line: &&str| line.starts_with("> ") || line.starts_with("[Timeout]");
    let kept = text
        .lines()
        .filter(|line| !OWN.iter().any(|start| line.starts_with(start)));
    let (mut singles, rest): (Vec<&str>, Vec<&str>) = kept.partition(is_single);
    singles.sort_unstable();
    singles.into_iter().chain(rest).map(shape).collect()
}

#[test]
fn help_is_that_of_the_programs() {
    for program in ["dnsperf", "resperf"] {
        case(program, "-h", b"").check();
    }
}

#[test]
fn wrong_arguments_have_the_messages_of_the_programs() {
    for line in [
        "-O suppress",
        "-c 0",
        "-z",
        "-l",
        "-d does_not_exist",
        "-f invalid",
        "-f any -s 256.256.256.256",
        "-f inet6 -s 127.0.0.1",
        "-a 256.256.256.256",
        "-a ::1 -d /dev/null",
        "-m invalid",
        "-n 43f8h",
        "-p 12345 unexpected argument",
        "-p 65536",
        "-x 65536",
        "-q 0",
        "-Q x",
        "-t 1.2.3",
        "-T 99999999999",
        "-y test",
        "-y test:",
        "-y invalid:test:Ax42vsuHBjQ=",
        "-E invalid",
        "-E a:",
        "-E a:a",
        "-E a:aa",
        "-E 1:xx",
        "-W -E 1:xx",
        "-W -y test:",
        "-W -m invalid",
        "-B -e",
        "-m doh -O doh-uri=http://localhost/dns-query",
        "-O doh-uri=nothing",
        "-O doh-method=PUT",
        "-O suppress=nothing",
    ] {
        case("dnsperf", line, b"\n").check();
    }
    for line in [
        "-d does_not_exist",
        "-r 0 -c 0",
        "-f invalid",
        "-q 256000",
        "-m 123.45 unexpected argument",
        "-m 123..",
        "-m 123a",
        "-M invalid",
        "-C 0",
        "-n 3",
        "-E a:",
        "-L x",
    ] {
        case("resperf", line, b"\n").check();
    }
}

#[test]
fn wrong_data_has_the_messages_of_dnsperf() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    for (options, input) in [
        ("", &b""[..]),
        ("", b"; nothing\n\n"),
        ("", b"invalid\n"),
        ("-W", b"invalid invalid\na..b A\n  a.example A\n"),
        ("", b"bad\\0name.example A\n"),
        ("-v -t 0.1", b"invalid\ngood.example A\n"),
        ("-u", b"invalid\n"),
        ("-u -W", b"invalid\ninvalid\n"),
        (
            "-u",
            b"zone.test\nadd x 60 A 192.0.2.1\nrequire x A\nsend\n",
        ),
        ("-B", b""),
        ("-B", b"\0"),
        ("-B", b"\0\x05abc"),
    ] {
        case("dnsperf", format!("-p {port} {options}"), input).check();
    }
}

#[test]
fn single_queries_are_shown_as_dnsperf_shows_them() {
    let (serving, address) = responder(Transport::Udp, Behaviour::default());
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap().port();
    let names = b"a.example A\nvalid\\.label.example AAAA\n";
    let answering = address.port();
    for (port, options) in [
        (answering, "-v"),
        (answering, "-vvv -n 3"),
        (silent, "-v -t 0.1"),
        (silent, "-t 0.1"),
        (silent, "-t 0"),
        (silent, "-t 0 -v"),
        (silent, "-t 0.1 -O suppress=timeouts"),
    ] {
        case("dnsperf", format!("-p {port} {options}"), names).check();
    }
    drop(serving);
}

#[test]
fn octets_of_a_binary_file_are_sent_as_they_are() {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target
        .set_read_timeout(Some(std::time::Duration::from_secs(20)))
        .unwrap();
    let port = target.local_addr().unwrap().port();
    // Empty, one octet, short, a response, and a query with two octets too many.
    let input = b"\0\0\
        \0\x01x\
        \0\x03xyz\
        \0\x0cID\x80\0\0\0\0\0\0\0\0\0\
        \0\x13ID\x01\0\0\x01\0\0\0\0\0\0\0\0\x01\0\x01++";
    let case = case("dnsperf", format!("-B -v -n 2 -t 0.1 -p {port}"), input);
    let mut received = Vec::new();
    for output in [case.theirs(), case.ours()] {
        let stdout = texts(&output).0;
        let sent = "  Queries sent:         10\n";
        assert!(stdout.contains(sent), "{output:?}");
        assert!(stdout.contains("> T binary input\n"), "{output:?}");
        let mut octets = [0; 512];
        let mut one_run = Vec::new();
        for _ in 0..10 {
            let length = target.recv(&mut octets).unwrap();
            // The ID is the program's, where there is room for one.
            let id_octets = if length < 2 { 0 } else { 2 };
            one_run.push(octets[id_octets..length].to_vec());
        }
        one_run.sort_unstable();
        received.push(one_run);
    }
    assert_eq!(received[0], received[1]);
    let folder = Folder::new("too-long");
    let blob = folder.folder().join("long.blob");
    std::fs::write(&blob, vec![0xff; 65_537]).unwrap();
    let line = format!("-B -v -t 0.1 -p {port} -d {}", blob.display());
    let output = self::case("dnsperf", line, b"").ours();
    let (stdout, stderr) = texts(&output);
    assert!(stdout.contains("  Queries sent:         0\n"), "{stdout}");
    let warning = "Warning: failed to send packet: Message too long\n";
    assert!(stderr.contains(warning), "{stderr}");
}

#[test]
fn ports_of_zero_are_those_of_the_transport() {
    for (mode, port) in [("udp", 53), ("dot", 853), ("doh", 443)] {
        let case = case("dnsperf", format!("-p 0 -m {mode}"), b"invalid\n");
        // Over streams dnsperf waits for a connection for ever, even if there are no questions.
        let theirs = (mode == "udp").then(|| case.theirs());
        for output in theirs.into_iter().chain([case.ours()]) {
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            let to = format!("[Status] Sending queries (to 127.0.0.1:{port})\n");
            assert!(texts(&output).0.contains(&to), "{output:?}");
        }
    }
    let doh = case("dnsperf", "-m doh", b"invalid\n").ours();
    let codes = "DNS-over-HTTPS statistics:\n\n  HTTP/2 return codes:  none\n";
    assert!(texts(&doh).0.contains(codes), "{doh:?}");
}

/// The first lines of the summary without their numbers.
const QUERYPERF_LABELS: [&str; 23] = [
    "[Status] Testing complete",
    "",
    "Statistics:",
    "",
    "  Parse input file:     once",
    "  Ended due to:         reaching end of file",
    "",
    "  Queries sent:         # queries",
    "  Queries completed:    # queries",
    "  Queries lost:         # queries",
    "  Queries delayed(?):   # queries",
    "",
    "  RTT max:         \t# sec",
    "  RTT min:              # sec",
    "  RTT average:          # sec",
    "  RTT std deviation:    # sec",
    "  RTT out of range:     # queries",
    "",
    "  Returned  NOERROR:    # queries",
    "",
    "  Percentage completed: #%",
    "  Percentage lost:        #%",
    "",
];

#[test]
fn queryperf_prints_its_summary() {
    let (serving, address) = responder(Transport::Udp, Behaviour::default());
    let line = format!("-p {} -q 5 -c -v", address.port());
    let output = case(
        "queryperf",
        line,
        b"a.example A\nwrong\n#maxwait 3\nb.example AAAA\n",
    )
    .ours();
    drop(serving);
    let (stdout, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(0), "{stdout}\n{stderr}");
    let singles = ["> NOERROR a.example A\n", "> NOERROR b.example AAAA\n"];
    assert!(singles.iter().all(|line| stdout.contains(line)), "{stdout}");
    assert!(
        stderr.contains("invalid query input format: wrong\n"),
        "{stderr}"
    );
    assert!(
        stderr.contains("Ignoring configuration change: #maxwait 3\n"),
        "{stderr}"
    );
    let lines: Vec<String> = stdout.lines().map(shape).collect();
    assert!(
        lines
            .windows(QUERYPERF_LABELS.len())
            .any(|window| window == QUERYPERF_LABELS),
        "{stdout}"
    );
    assert!(
        stdout.contains("  Queries sent:         2 queries\n"),
        "{stdout}"
    );
    for label in [
        "Started at:",
        "Finished at:",
        "Ran for:",
        "Queries per second:",
    ] {
        assert!(stdout.contains(&format!("  {label}")), "{label}: {stdout}");
    }
}

/// The words after `throng` of the command that `output` says is equivalent.
fn equivalent(output: &Output) -> Vec<String> {
    let stderr = texts(output).1;
    let line = stderr
        .lines()
        .find_map(|line| line.strip_prefix("equivalent: throng "));
    let line = line.unwrap_or_else(|| panic!("no equivalent in {stderr}"));
    let command = line.split("  # ").next().unwrap();
    command.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn equivalent_command_asks_the_same_in_the_same_way() {
    let (serving, address) = responder(Transport::Udp, Behaviour::default());
    let folder = Folder::new("equivalents");
    let names = folder.write("names.txt", "a.example A\nb.example TXT\n");
    let record = folder.path("record.json");
    let port = address.port();
    for (options, outstanding, rate, timeout_s, queries) in [
        ("-Q 1000000 -q 7 -n 3", 7, Some(1e6), 5.0, 6),
        ("-n 2 -t 0.25", 100, None, 0.25, 4),
        ("-Q 300 -n 2 -c 3 -T 2 -q 9", 9, Some(300.0), 5.0, 4),
    ] {
        let line = format!("-p {port} -d {names} {options}");
        let words = equivalent(&case("dnsperf", line.as_str(), b"").ours());
        let run = Command::new(THRONG)
            .args(&words)
            .args(["--record", &record])
            .output();
        assert!(run.unwrap().status.success(), "{words:?}");
        let text = std::fs::read_to_string(&record).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        let scenario = &record["scenario"];
        let arrival = &scenario["arrival"]["closed"];
        assert_eq!(arrival["outstanding"], outstanding, "{arrival}");
        assert_eq!(arrival["rate_qps_max"].as_f64(), rate, "{arrival}");
        let timeout_ns = scenario["timeout_ns"].as_f64().unwrap();
        assert_eq!(timeout_ns, timeout_s * 1e9, "{scenario}");
        assert_eq!(record["total"]["counts"]["sent"], queries, "{line}");
    }
    drop(serving);
}
