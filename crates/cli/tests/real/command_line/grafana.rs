//! `--grafana`: annotations of real runs, posted to a stand-in for Grafana, and the warning where
//! it does not take them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use measure::RunRecord;
use serde_json::Value;
use testing::folder::Folder;
use testing::ports::ClosedTcpPort;
use testing::program::Finished;

use crate::process::{Responder, THRONG};

/// What stands in for a token.
const TOKEN: &str = "glsa_of_a_test";

/// A request: its head, and the JSON of its body.
type Posted = (String, Value);

/// Answers every request with that status until the test ends; what was posted, by a channel.
fn grafana(status: &'static str) -> (SocketAddr, Receiver<Posted>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, posted) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            answer(&stream.unwrap(), status, &sender);
        }
    });
    (address, posted)
}

fn answer(mut stream: &TcpStream, status: &str, posted: &Sender<Posted>) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let from = head.len();
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        if let Some(octets) = head[from..].strip_prefix("Content-Length: ") {
            length = octets.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let json = serde_json::from_slice(&body).unwrap();
    // The test may be over.
    let _ = posted.send((head, json));
    let answer = r#"{"message":"as the test has it"}"#;
    let length = answer.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n");
    stream
        .write_all(format!("{head}\r\n{answer}").as_bytes())
        .unwrap();
}

fn throng(line: &str) -> Finished {
    let mut command = Command::new(THRONG);
    command
        .args(line.split_whitespace())
        .env("GRAFANA_TOKEN", TOKEN);
    Finished::new(line, command.output().unwrap())
}

fn texts(posted: &[Posted]) -> Vec<&str> {
    let texts = posted.iter().map(|(_, json)| json["text"].as_str());
    texts.map(Option::unwrap).collect()
}

#[test]
fn run_is_annotated_with_its_verdict_and_what_ended_it() {
    let responder = Responder::start("udp:127.0.0.1:0", "--stall at=3s,for=3000s");
    let server = responder.address();
    let (grafana, posted) = grafana("200 OK");
    let folder = Folder::new("grafana-run");
    let record = folder.path("run.json");
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let before = now();
    throng(&format!(
        "run --server {server} --random-labels example. --rate 500 --clients 4 --timeout 2s \
         --duration 600s --interval 200ms --abort-if loss>90% --quiet --record {record} \
         --grafana http://{grafana}/sub/"
    ))
    .ended_with(4);
    let after = now();
    let posted: Vec<Posted> = posted.try_iter().collect();
    let texts = texts(&posted);
    let text = std::fs::read_to_string(&record).unwrap();
    let record = RunRecord::from_json(&text).unwrap();
    let first = format!("throng run: {}", report::summary::first_line(&record));
    assert!(texts[0].starts_with(&first), "{texts:?}");
    let aborted = record.aborted.as_ref().unwrap().sentence();
    let expected = format!("throng run: {aborted}");
    assert_eq!(texts.last().unwrap(), &expected.as_str());
    for (head, json) in &posted {
        assert!(
            head.starts_with("POST /sub/api/annotations HTTP/1."),
            "{head}"
        );
        let authorization = format!("Authorization: Bearer {TOKEN}\r\n");
        assert!(head.contains(&authorization), "{head}");
        let [from, until] = ["time", "timeEnd"].map(|key| json[key].as_u64().unwrap());
        assert!(from <= until, "{json}");
        assert!(u128::from(from) >= before.as_millis(), "{json}");
        assert!(u128::from(until) <= after.as_millis(), "{json}");
    }
    // The token and the URL are no part of the result.
    assert!(!text.contains(TOKEN) && !text.contains("/sub/"));
}

#[test]
fn every_run_of_a_command_is_annotated() {
    let folder = Folder::new("grafana-others");
    let experiment = folder.write(
        "e.toml",
        "name = 'e'\nrepetitions = 1\n[run]\nduration = '1s'\nrate = '200'\n\
         [matrix]\ntransport = ['udp', 'tcp']\n",
    );
    let [records, sides] = ["records", "sides"].map(|name| folder.path(name));
    for (line, command, least) in [
        (
            "capacity --driver sim --sim-service-time 100us --trial-duration 1s".to_owned(),
            "capacity",
            3,
        ),
        (
            "ramp --to 1k --over 2s --sustain 1s --interval 500ms".to_owned(),
            "ramp",
            1,
        ),
        (
            format!("compare --a=-l1s --b=-l1s --repeat 1 --records {sides}"),
            "compare",
            2,
        ),
        (
            format!("experiment run {experiment} --output {records}"),
            "experiment",
            2,
        ),
    ] {
        let (grafana, posted) = grafana("200 OK");
        throng(&format!("{line} --grafana http://{grafana}")).succeeded();
        let posted: Vec<Posted> = posted.try_iter().collect();
        let runs = posted
            .iter()
            .filter(|(_, json)| json["tags"].as_array().unwrap().len() == 2);
        assert!(runs.count() >= least, "{line}: {posted:?}");
        for (_, json) in &posted {
            assert_eq!(json["tags"][0], "throng", "{json}");
            assert_eq!(json["tags"][1], command, "{json}");
        }
    }
}

/// A run with a Grafana that fails has its result, and one warning with the cure.
fn check_failure(url: &str, what: &str, cure: &str) {
    let flags = "--rate 200 --duration 1s --interval 500ms --quiet --format json";
    let finished = throng(&format!("run {flags} --grafana {url}"));
    let stderr = finished.stderr.clone();
    let record = RunRecord::from_json(&finished.succeeded()).unwrap();
    assert!(record.total.counts.responses > 0);
    assert_eq!(
        stderr.matches("warning: --grafana: ").count(),
        1,
        "{stderr}"
    );
    assert!(stderr.contains(what), "{stderr}");
    assert!(stderr.contains(&format!("hint: {cure}")), "{stderr}");
    assert!(!stderr.contains(TOKEN), "{stderr}");
}

#[test]
fn wrong_token_is_a_warning_with_its_cure() {
    let (grafana, _posted) = grafana("401 Unauthorized");
    let what = "refused: HTTP status 401: as the test has it";
    check_failure(&format!("http://{grafana}"), what, "set GRAFANA_TOKEN to");
}

#[test]
fn wrong_path_is_a_warning_with_its_cure() {
    let (grafana, _posted) = grafana("404 Not Found");
    let cure = "give the URL of Grafana's first page";
    check_failure(&format!("http://{grafana}"), "HTTP status 404", cure);
}

#[test]
fn grafana_that_is_down_or_never_answers_is_a_warning() {
    let cure = "check that Grafana runs";
    let closed = ClosedTcpPort::new();
    let url = format!("http://{}", closed.address());
    check_failure(&url, "no answer from", cure);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    check_failure(&format!("http://{address}"), "no complete answer", cure);
}

#[test]
fn url_that_cannot_be_one_is_refused_before_the_run() {
    for (url, what) in [
        ("ftp://127.0.0.1", "`ftp` is neither http nor https"),
        ("http://admin:secret@127.0.0.1", "no password here"),
    ] {
        throng(&format!("run --duration 1s --grafana {url}")).refused_with(what, "GRAFANA_TOKEN");
    }
}
