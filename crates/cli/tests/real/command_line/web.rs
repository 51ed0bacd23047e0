//! `--web`: events of real runs, until the report.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use testing::folder::Folder;
use testing::program::Running;

use crate::process::{Responder, THRONG, throng};

/// Waits of a test that would fail otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// The lines of events of a command, read until it has ended.
fn events_of(line: &str) -> (String, i32) {
    let mut command = Command::new(THRONG);
    command.args(line.split_whitespace()).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = Running(command.spawn().unwrap());
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut shown = String::new();
    while !shown.contains("live page at ") {
        shown.clear();
        assert!(stderr.read_line(&mut shown).unwrap() > 0, "no address");
    }
    let (_, address) = shown.trim().split_once("http://").unwrap();
    let at: SocketAddr = address.strip_suffix('/').unwrap().parse().unwrap();
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET /events HTTP/1.1\r\nHost: {at}\r\n\r\n").unwrap();
    let mut events = Vec::new();
    stream.read_to_end(&mut events).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let code = child.wait().unwrap().code().unwrap();
    (String::from_utf8(events).unwrap(), code)
}

/// The numbers of the events.
fn numbers(events: &str) -> Vec<u64> {
    let lines = events.lines().filter_map(|it| it.strip_prefix("id: "));
    lines.map(|it| it.parse().unwrap()).collect()
}

/// The text of the last event, which is the report.
fn report(events: &str) -> String {
    let (_, report) = events.split_once("event: report\n").expect("a report");
    let lines = report.lines().filter_map(|it| it.strip_prefix("data: "));
    lines.collect::<Vec<_>>().join("\n")
}

/// The events of a run, the last of which is the report that `throng report` makes of its record.
fn events_until_report(name: &str, flags: &str) -> String {
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let server = responder.addresses[0].1;
    let folder = Folder::new(name);
    let record = folder.path("run.json");
    let line = format!(
        "run --server {server} --random-labels example. --rate 1k --duration 3s --interval 500ms \
         --quiet --record {record} --web 127.0.0.1:0 {flags}"
    );
    let (events, code) = events_of(&line);
    assert_eq!(code, 0, "{events}");
    let numbers = numbers(&events);
    assert!(numbers.len() >= 3, "{numbers:?}");
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let html = folder.path("run.html");
    throng(&format!("report {record} -o {html}")).succeeded();
    let expected = std::fs::read_to_string(html).unwrap();
    assert_eq!(report(&events).trim_end(), expected.trim_end());
    events
}

#[test]
fn run_sends_each_snapshot_and_then_its_report() {
    let events = events_until_report("web-run", "");
    for words in [
        "id=\"tiles\"",
        "<svg class=\"chart\"",
        "Queries",
        "throng run",
    ] {
        assert!(events.contains(words), "{words}");
    }
}

#[test]
fn run_of_two_agents_shows_both() {
    let events = events_until_report("web-agents", "--agents 2");
    for words in ["2 agents: 2 at work, 0 lost", ">0 on ", ">1 on "] {
        assert!(events.contains(words), "{words}");
    }
}

#[test]
fn other_commands_end_with_their_reports_too() {
    let folder = Folder::new("web-others");
    let experiment = folder.write(
        "e.toml",
        "name = 'e'\nrepetitions = 1\n[run]\nduration = '1s'\nrate = '200'\n\
         [matrix]\ntransport = ['udp', 'tcp']\n",
    );
    let records = folder.path("records");
    for (line, words) in [
        (
            "capacity --driver sim --sim-service-time 100us --trial-duration 1s".to_owned(),
            "Runs of this command",
        ),
        (
            "ramp --to 1k --over 2s --sustain 1s --interval 500ms".to_owned(),
            "throng ramp",
        ),
        (
            "compare-transports --transports udp,tcp --duration 1s --repeat 1".to_owned(),
            "2: tcp",
        ),
        (
            format!("experiment run {experiment} --output {records}"),
            "Runs of this command",
        ),
    ] {
        let (events, code) = events_of(&format!("{line} --web 127.0.0.1:0"));
        assert_eq!(code, 0, "{line}");
        assert!(events.contains(words), "{line}: {words}");
        assert!(report(&events).contains("</html>"), "{line}");
    }
}

#[test]
fn port_that_is_taken_ends_the_command_before_any_query() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let server = responder.addresses[0].1;
    let line = format!(
        "run --server {server} --random-labels example. --duration 1s --quiet --web {address}"
    );
    throng(&line).refused_with(&address.to_string(), "give another port");
    throng(&format!("run --server {server} --web here")).ended_with(2);
}
