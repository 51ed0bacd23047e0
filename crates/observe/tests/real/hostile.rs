//! Endpoints that are closed, slow, huge, lying, garbled, or that change: each is a note and a gap,
//! and the run goes on.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use measure::Observation;
use measure::observation::{NoValue, ObservationMode, Sample};
use observe::{Asked, Observer, PERIOD_MIN, Settings};
use testing::folder::Folder;
use testing::ports::ClosedTcpPort;

/// Waits of a test that would hang otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that does one deed to each connection in turn, and the last deed to all further ones.
struct Endpoint {
    address: String,
    served: Receiver<usize>,
    thread: Option<JoinHandle<()>>,
}

/// What is done to a connection.
type Deed = fn(&mut TcpStream);

impl Endpoint {
    fn new(deeds: &'static [Deed]) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (to, served) = mpsc::channel();
        let thread = thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let mut request = [0; 4_096];
                let octets = stream.read(&mut request).unwrap_or(0);
                // The test's own connection, with which it ends the server.
                if octets == 0 {
                    return;
                }
                deeds[number.min(deeds.len() - 1)](&mut stream);
                if to.send(number).is_err() {
                    return;
                }
            }
        });
        Endpoint {
            address,
            served,
            thread: Some(thread),
        }
    }

    /// Waits until `connections` connections were served.
    fn wait_for(&self, connections: usize) {
        while self.served.recv_timeout(PATIENCE).unwrap() + 1 < connections {}
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        drop(TcpStream::connect(&self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn say(stream: &mut TcpStream, text: &str) {
    // The client may have gone, which is what some tests are about.
    let _ = write!(stream, "HTTP/1.1 200 OK\r\n\r\n{text}");
}

fn observed(endpoint: &Endpoint, settings: &str, scrapes: usize) -> Observation {
    let asked = format!(
        "prometheus=http://{}/m,allow=q*{settings}",
        endpoint.address
    );
    let asked = Asked::parse(&asked).unwrap();
    let observer = Observer::start(&[asked], Instant::now(), settings_of()).unwrap();
    endpoint.wait_for(scrapes);
    let mut observations = observer.finish();
    let observation = observations.pop().unwrap();
    assert_eq!(observation.check(), Ok(()));
    observation
}

fn settings_of() -> Settings {
    Settings {
        mode: ObservationMode::During,
        period: PERIOD_MIN,
        thread_cpu_time: || Duration::ZERO,
    }
}

fn notes(observation: &Observation) -> String {
    let notes = observation.notes.iter().map(|note| note.text.as_str());
    notes.collect::<Vec<_>>().join("; ")
}

#[test]
fn a_closed_endpoint_is_said_once_and_every_scrape_is_a_gap() {
    let closed = ClosedTcpPort::new();
    let asked = Asked::parse(&format!("coredns={}", closed.address())).unwrap();
    let observer = Observer::start(&[asked], Instant::now(), settings_of()).unwrap();
    let observation = observer.finish().remove(0);
    assert!(observation.scrapes.len() >= 2);
    assert!(
        observation
            .scrapes
            .iter()
            .all(|scrape| scrape.failed == scrape.number)
    );
    assert_eq!(observation.notes.len(), 1, "{}", notes(&observation));
    let note = &observation.notes[0];
    assert!(note.text.contains("no answer from") && note.text.contains("prometheus 127.0.0.1"));
    assert_eq!(note.times as usize, observation.scrapes.len());
}

#[test]
fn a_slow_endpoint_a_huge_one_and_garbage_are_gaps_between_good_scrapes() {
    static DEEDS: &[Deed] = &[
        |stream| say(stream, "# TYPE q counter\nq_total 5\n"),
        |stream| {
            // Sends an octet every 50 ms, until the connection ends.
            stream
                .set_read_timeout(Some(Duration::from_millis(50)))
                .unwrap();
            let _ = write!(stream, "HTTP/1.1 200 OK\r\n\r\n");
            while stream.write_all(b"#").is_ok() {
                // Ends the wait: an octet that never comes, or the end of the connection.
                if matches!(stream.read(&mut [0]), Ok(0)) {
                    return;
                }
            }
        },
        |stream| {
            let _ = write!(stream, "HTTP/1.1 200 OK\r\n\r\n");
            let line = "q_total 5\n".repeat(10_000);
            // 50 MB, if somebody takes them.
            for _ in 0..500 {
                if stream.write_all(line.as_bytes()).is_err() {
                    return;
                }
            }
        },
        |stream| say(stream, "\u{1f980}\u{0} <html>\n"),
        |stream| {
            let _ = stream.write_all(b"HTTP/1.1 503 Busy\r\n\r\nq_total 7\n");
        },
        |stream| say(stream, "q_total 7"),
        |stream| say(stream, "# TYPE q counter\nq_total 9\n"),
    ];
    let endpoint = Endpoint::new(DEEDS);
    let observation = observed(&endpoint, ",timeout=5s", DEEDS.len());
    let text = notes(&observation);
    for what in [
        "no complete answer within 5s",
        "more than 4194304 bytes",
        "line 1: it does not begin with a name",
        "HTTP status 503",
        "the last line is cut off",
    ] {
        assert!(text.contains(what), "{what}: {text}");
    }
    let series = observation.series("q_total").unwrap();
    let missing = Sample::Without(NoValue::Missing);
    assert_eq!(series.samples[0], Sample::Value(5.0));
    assert_eq!(series.samples[1..6], [missing; 5]);
    assert_eq!(series.samples[6], Sample::Value(9.0));
    assert_eq!(series.growth, Some(4.0));
    // What fell due in the five seconds is counted, not made up for.
    assert!(observation.overflow.scrapes > 0);
}

#[test]
fn an_endpoint_that_lies_begins_again_or_repeats_itself_is_told() {
    static DEEDS: &[Deed] = &[
        |stream| say(stream, "q_total 100 5000000000000\nqueue 1\n"),
        |stream| say(stream, "q_total 100 5000000000000\nqueue NaN\n"),
        |stream| say(stream, "q_total 3 5000000001000\nqueue 2\n"),
        |stream| say(stream, "unrelated 1\n"),
        |stream| say(stream, "q_total 8 5000000002000\nqueue 3\n"),
    ];
    let endpoint = Endpoint::new(DEEDS);
    let observation = observed(&endpoint, "", DEEDS.len());
    let samples = &observation.series("q_total").unwrap().samples;
    assert_eq!(samples[1], Sample::Without(NoValue::Stale));
    assert_eq!(samples[2], Sample::Reset { reset: 3.0 });
    assert_eq!(samples[3], Sample::Without(NoValue::Missing));
    assert_eq!(samples[4], Sample::Value(8.0));
    let queue = &observation.series("queue").unwrap().samples;
    assert_eq!(queue[1], Sample::Without(NoValue::Missing));
    assert!(
        notes(&observation).contains("none of the series"),
        "{}",
        notes(&observation)
    );
}

#[test]
fn a_token_is_read_from_its_file_and_is_nowhere_in_what_is_kept() {
    static DEEDS: &[Deed] = &[|stream| say(stream, "q_total 1\n")];
    let endpoint = Endpoint::new(DEEDS);
    let folder = Folder::new("observe-token");
    let file = folder.write("token", "s3cret\n");
    let observation = observed(&endpoint, &format!(",token={file}"), 1);
    std::fs::remove_file(&file).unwrap();
    let kept = format!("{observation:?}");
    assert!(
        !kept.contains("s3cret") && !kept.contains("observe-token"),
        "{kept}"
    );
    // Without its file nothing is sent, and the reason is said.
    let asked = format!("prometheus={},allow=q*,token={file}", endpoint.address,);
    let asked = Asked::parse(&asked).unwrap();
    let observer = Observer::start(&[asked], Instant::now(), settings_of()).unwrap();
    let observation = observer.finish().remove(0);
    assert!(
        notes(&observation).contains("the token cannot be read"),
        "{}",
        notes(&observation)
    );
}

#[test]
fn a_server_that_speaks_no_tls_is_a_gap() {
    static DEEDS: &[Deed] = &[|stream| say(stream, "q_total 1\n")];
    let endpoint = Endpoint::new(DEEDS);
    let asked = Asked::parse(&format!("prometheus=https://{},allow=q*", endpoint.address));
    let observer = Observer::start(&[asked.unwrap()], Instant::now(), settings_of()).unwrap();
    let observation = observer.finish().remove(0);
    assert!(observation.scrapes.iter().all(|scrape| scrape.failed > 0));
    assert!(!observation.notes.is_empty());
}

#[test]
fn around_is_two_scrapes_and_off_is_none() {
    static DEEDS: &[Deed] = &[|stream| say(stream, "q_total 1\n")];
    let endpoint = Endpoint::new(DEEDS);
    let observation = observed(&endpoint, ",mode=around", 1);
    assert_eq!(observation.scrapes.len(), 2);
    assert_eq!(observation.mode, ObservationMode::Around);
    let asked = format!("prometheus={},allow=q*,mode=off", endpoint.address);
    let asked = Asked::parse(&asked).unwrap();
    let observer = Observer::start(&[asked], Instant::now(), settings_of()).unwrap();
    assert_eq!(observer.finish(), []);
}

/// Every kind of source that is asked over a connection, and where; `{}` is the endpoint.
const KINDS: [&str; 4] = [
    "prometheus=http://{}/m,allow=q*",
    "bind=http://{}/",
    "unbound=tcp://{}",
    "prometheus-api=http://{},query=q,step=1s",
];

/// What each of them is answered with, and what is said of it.
const ANSWERS: [(Deed, &str); 4] = [
    (
        // Nothing, until the one who asks goes.
        |stream| while stream.read(&mut [0; 64]).is_ok_and(|octets| octets > 0) {},
        "no complete answer within 1s",
    ),
    (
        |stream| {
            say(stream, "");
            let line = "q_total 5\n".repeat(10_000);
            for _ in 0..500 {
                if stream.write_all(line.as_bytes()).is_err() {
                    return;
                }
            }
        },
        "bytes, the rest was not read",
    ),
    (
        |stream| say(stream, "\u{1f980}\u{0} <html>\n"),
        "not understood",
    ),
    (
        // An alert, as of a server that takes TLS alone.
        |stream| drop(stream.write_all(&[21, 3, 1, 0, 2, 2, 70])),
        "",
    ),
];

#[test]
fn every_kind_of_source_says_what_was_wrong_and_has_no_value() {
    static DEEDS: [&[Deed]; 4] = [
        &[ANSWERS[0].0],
        &[ANSWERS[1].0],
        &[ANSWERS[2].0],
        &[ANSWERS[3].0],
    ];
    for kind in KINDS {
        for (deeds, (_, said)) in DEEDS.into_iter().zip(ANSWERS) {
            let endpoint = Endpoint::new(deeds);
            // One second is for what never ends; what does end may take a busy host longer.
            let timeout = if said.contains("within 1s") { 1 } else { 60 };
            let asked = kind.replace("{}", &endpoint.address);
            let asked = format!("{asked},timeout={timeout}s,mode=around");
            let observer = Observer::start(
                &[Asked::parse(&asked).unwrap()],
                Instant::now(),
                settings_of(),
            );
            let observation = observer.unwrap().finish().remove(0);
            assert_eq!(observation.check(), Ok(()), "{kind}");
            assert!(observation.series.is_empty(), "{kind}: {observation:?}");
            let all_failed = observation.scrapes.iter().all(|scrape| scrape.failed > 0);
            assert!(all_failed, "{kind}: {observation:?}");
            // What it is asked after the run says in a first line whose samples they are.
            let own = observation.notes.iter();
            let own = own.filter(|note| !note.text.starts_with("as observed by"));
            let texts: Vec<&str> = own.map(|note| note.text.as_str()).collect();
            let is_said = texts.iter().any(|text| text.contains(said));
            assert!(is_said, "{kind}, {said}: {texts:?}");
        }
    }
}
