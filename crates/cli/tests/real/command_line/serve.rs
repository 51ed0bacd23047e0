//! `throng serve`: the pages of real records, and how the command begins and ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{ChildStderr, Command, Stdio};
use std::time::Duration;

use testing::folder::Folder;
use testing::program::{Running, signal};

use crate::process::{THRONG, throng};

/// Waits of a test that would fail otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// A `throng serve`, killed when dropped.
struct Serving {
    child: Running,
    stderr: BufReader<ChildStderr>,
    url: String,
}

impl Serving {
    fn start(flags: &str) -> Serving {
        let mut command = Command::new(THRONG);
        command.arg("serve").args(flags.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = Running(command.stderr(Stdio::piped()).spawn().unwrap());
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let (_, rest) = line.split_once(" at ").expect(&line);
        let (url, _) = rest.split_once("; ").expect(&line);
        Serving {
            url: url.to_owned(),
            child,
            stderr,
        }
    }

    /// The status and the body of a page.
    fn get(&self, target: &str) -> (u16, String) {
        let rest = self.url.strip_prefix("http://").unwrap();
        let (address, _) = rest.split_once('/').unwrap();
        let at: SocketAddr = address.parse().unwrap();
        let mut stream = TcpStream::connect_timeout(&at, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!("GET {target} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        let response = String::from_utf8(response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// What is printed until the records are read, which is the next thing.
    fn read(&mut self) -> String {
        let mut printed = String::new();
        while !printed
            .lines()
            .any(|line| line.contains(" run record") && line.contains(" in "))
        {
            assert!(
                self.stderr.read_line(&mut printed).unwrap() > 0,
                "{printed}"
            );
        }
        printed
    }

    /// Sends a signal; the exit code, and what was printed after the address.
    fn end(mut self, name: &str) -> (i32, String) {
        signal(&self.child, name);
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code().unwrap(), rest)
    }
}

/// Makes a record in a folder.
fn make(folder: &Folder, file: &str, flags: &str) {
    let record = folder.path(file);
    let flags = format!("--driver sim --quiet --duration 1s --rate 500 {flags}");
    throng(&format!("run {flags} --record {record}")).succeeded();
}

#[test]
fn report_of_a_run_is_the_page_that_the_report_command_writes() {
    let folder = Folder::new("serve-report");
    make(&folder, "a.json", "--label version=1");
    let mut serving = Serving::start(&folder.path(""));
    assert!(serving.read().contains("1 run record in "));
    let (status, list) = serving.get("/");
    assert_eq!(status, 200, "{list}");
    assert!(list.contains("1 run, the newest first"), "{list}");
    let expected = throng(&format!("report {} --format html", folder.path("a.json")));
    assert_eq!(serving.get("/record/1"), (200, expected.succeeded()));
    let (status, trend) = serving.get("/trend?metric=qps&by=version");
    assert_eq!(status, 200);
    assert!(trend.contains("500.0 qps"), "{trend}");
    assert_eq!(serving.get("/record/2").0, 404);
    let (code, rest) = serving.end("INT");
    assert_eq!(code, 0, "{rest}");
}

#[test]
fn comparison_says_what_the_compare_command_says() {
    let folder = Folder::new("serve-compare");
    make(&folder, "a.json", "");
    make(&folder, "b.json", "");
    let (a, b) = (folder.path("a.json"), folder.path("b.json"));
    let text = throng(&format!("compare {a} {b}")).succeeded();
    let headline = text.lines().next().unwrap();
    let serving = Serving::start(&folder.path(""));
    let (status, page) = serving.get("/compare?a=1&b=2");
    assert_eq!(status, 200, "{page}");
    let title = format!("<h1>{}</h1>", report::html::escape(headline));
    assert!(page.contains(&title), "{headline} {page}");
}

#[test]
fn signals_end_it_with_exit_code_0_also_while_records_are_read() {
    let folder = Folder::new("serve-signals");
    make(&folder, "a.json", "");
    let record = std::fs::read(folder.path("a.json")).unwrap();
    for number in 0..500 {
        folder.write(&format!("{number}.json"), &record);
    }
    // It has printed its address, and reads records from then on.
    let (code, rest) = Serving::start(&folder.path("")).end("INT");
    assert_eq!(code, 0, "{rest}");
    let (code, rest) = Serving::start(&folder.path("")).end("TERM");
    assert_eq!(code, 0, "{rest}");
    // The index is whole.
    let list = throng(&format!("history list --records {}", folder.path("")));
    assert_eq!(list.succeeded().lines().count(), 502);
}

#[test]
fn empty_folder_and_files_that_are_no_records_are_said() {
    let folder = Folder::new("serve-empty");
    let serving = Serving::start(&folder.path(""));
    let (status, page) = serving.get("/");
    assert_eq!(status, 200, "{page}");
    assert!(page.contains("no run records"), "{page}");
    assert_eq!(serving.end("INT").0, 0);
    folder.write("no.json", "{}");
    let serving = Serving::start(&folder.path(""));
    let (_, page) = serving.get("/");
    assert!(page.contains("no.json: "), "{page}");
    let (code, rest) = serving.end("INT");
    assert_eq!(code, 0, "{rest}");
    assert!(
        rest.contains("warning: no.json is not a run record"),
        "{rest}"
    );
}

#[test]
fn missing_folder_and_taken_port_end_it_at_once() {
    let folder = Folder::new("serve-refused");
    throng(&format!("serve {}", folder.path("none"))).refused_with("none", "run records");
    let file = folder.write("run.json", "{}");
    throng(&format!("serve {file}")).refused_with("run.json", "give a folder");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let line = format!("serve {} --web {address}", folder.path(""));
    throng(&line).refused_with(&address.to_string(), "give another port");
}
