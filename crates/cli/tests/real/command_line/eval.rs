//! `throng eval`: servers side by side.

use measure::Evaluation;
use measure::evaluation::{Row, Versus};
use testing::folder::Folder;
use testing::ports::{ClosedUdpPort, Listener};

use crate::dnsperf::bind;
use crate::process::{Responder, throng};

const QUICK: &str = "--interval 10ms --timeout 20s";

fn evaluated(flags: &str) -> Evaluation {
    let json = throng(&format!("eval {flags} --format json")).succeeded();
    serde_json::from_str(&json).unwrap()
}

fn received(row: &Row) -> u64 {
    row.statistics
        .as_ref()
        .map_or(0, |statistics| statistics.received)
}

#[test]
fn servers_are_asked_as_often_and_one_that_is_gone_is_a_row() {
    let fast = Responder::start("udp:127.0.0.1:0", "--delay 1ms");
    let slow = Responder::start("udp:127.0.0.1:0", "--delay 20ms --rcodes NXDOMAIN=1");
    let gone = ClosedUdpPort::new();
    let servers = format!(
        "--server {} --server {} --server {} --server no-such-host.invalid",
        slow.address(),
        gone.address(),
        fast.address()
    );
    let evaluation = evaluated(&format!("a.example {servers} --count 12 {QUICK}"));
    let rows = &evaluation.rows;
    assert_eq!(
        rows.iter().map(received).collect::<Vec<_>>(),
        [12, 0, 12, 0]
    );
    assert_eq!(
        rows[0].statistics.as_ref().unwrap().rcodes,
        [("NXDOMAIN".to_owned(), 12)]
    );
    let problem = |row: &Row| row.problem.clone().unwrap_or_default();
    assert!(
        problem(&rows[1]).contains("nothing is listening"),
        "{rows:?}"
    );
    let fastest = rows.iter().filter(|row| row.versus == Versus::Fastest);
    assert_eq!(fastest.count(), 1);
    assert!(problem(&rows[3]).contains("cannot be resolved"), "{rows:?}");
    // All were asked as often.
    assert_eq!(fast.counters().get("queries received"), 12);
    assert_eq!(slow.counters().get("queries received"), 12);
}

/// How many of the other's responses come within the timeout is not asked.
#[test]
fn a_server_that_is_silent_is_asked_as_often_and_has_no_response() {
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let silent = Listener::new();
    let servers = format!(
        "--server {} --server {}",
        silent.address(),
        responder.address()
    );
    let line = format!("eval a.example {servers} --count 12 --interval 10ms --timeout 2s");
    let evaluation = throng(&format!("{line} --format json")).stdout;
    let evaluation: Evaluation = serde_json::from_str(&evaluation).unwrap();
    let row = &evaluation.rows[0];
    assert_eq!(row.statistics.as_ref().unwrap().lost, 12);
    assert_eq!(row.versus, Versus::NoResponse);
    assert_eq!(silent.received().len(), 12);
    assert_eq!(responder.counters().get("queries received"), 12);
}

#[test]
fn the_same_server_twice_is_not_told_apart() {
    let responder = Responder::start("tcp:[::1]:0", "--delay 5ms");
    let address = responder.address();
    // Too few responses for a difference, however the machine is disturbed.
    let flags = format!("a.example --transport tcp --server {address} --server {address}");
    let evaluation = evaluated(&format!("{flags} --count 5 {QUICK}"));
    let names: Vec<&str> = evaluation
        .rows
        .iter()
        .map(|row| row.server.as_str())
        .collect();
    assert_eq!(names, [address.to_string(), format!("{address} (2)")]);
    let is_undecided = |row: &Row| matches!(row.versus, Versus::CannotTell { .. });
    assert_eq!(
        evaluation
            .rows
            .iter()
            .filter(|row| is_undecided(row))
            .count(),
        1
    );
    assert!(
        evaluation.notes[0].starts_with("`cannot tell`"),
        "{:?}",
        evaluation.notes
    );
}

#[test]
fn all_forms_show_the_servers_of_a_file() {
    let bind = bind(|options| options);
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let folder = Folder::new("eval-file");
    let (one, other) = (bind.endpoints().do53(), responder.address());
    let file = folder.write("servers.txt", format!("# ours\n{one}  # BIND\n\n{other}\n"));
    let record = folder.path("record.json");
    let flags = format!("--servers {file} --count 6 --record {record} {QUICK}");
    let line = format!("eval test-record-1.lab.test --type A,AAAA {flags}");
    let text = throng(&line).succeeded();
    let head = "test-record-1.lab.test A, test-record-1.lab.test AAAA over udp from 2 servers";
    assert!(text.starts_with(head), "{text}");
    assert!(
        text.contains("\n  server ") && text.contains("  fastest\n"),
        "{text}"
    );
    let csv = throng(&format!("{line} --format csv")).succeeded();
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 3, "{csv}");
    assert!(
        rows[1].starts_with(&format!("{one},{one},,6,6,0,0.0000,")),
        "{csv}"
    );
    let markdown = throng(&format!("{line} --format markdown --sorted")).succeeded();
    assert!(
        markdown.contains(&format!("| {other} | 6 | 0 % |")),
        "{markdown}"
    );
    let shown = throng(&format!("report {record}")).succeeded();
    assert!(shown.contains(&other.to_string()), "{shown}");
}

#[test]
fn an_evaluation_without_any_response_ends_with_exit_code_1() {
    let port = ClosedUdpPort::new();
    let gone = port.address();
    let line = format!("eval a.example --server {gone} {QUICK}");
    let text = throng(&line).ended_with(1);
    assert!(text.contains("  not asked\n"), "{text}");
    assert!(
        text.contains(&format!("\n{gone}: nothing is listening on")),
        "{text}"
    );
}
