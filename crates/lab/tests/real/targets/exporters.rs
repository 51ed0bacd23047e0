//! Programs that observe others already, as sources: node_exporter and Prometheus of Debian.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};

use std::time::{Duration, Instant};

use lab::target::products;
use measure::Observation;
use measure::observation::{ObservationMode, Series};
use observe::{Asked, Observer, PERIOD_MIN, Settings, profiles};
use testing::program::Running;

use testing::wait;

use crate::query::ask_udp;
use crate::zone;

/// Waits of a test that would fail otherwise.
const PATIENCE: Duration = Duration::from_secs(60);
/// Starts, when another process took the port first.
const ATTEMPTS_MAX: usize = 5;

/// A program that serves HTTP, gone when dropped.
struct Exporter {
    child: Running,
    at: SocketAddr,
}

impl Exporter {
    /// Starts it at a free port and waits until its own metrics have `own`.
    fn start(program: &str, own: &str, arguments: &[String]) -> Exporter {
        for _ in 0..ATTEMPTS_MAX {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let at = listener.local_addr().unwrap();
            drop(listener);
            let mut command = Command::new(program);
            command.arg(format!("--web.listen-address={at}"));
            command.args(arguments).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let child = Running(command.spawn().unwrap());
            let mut exporter = Exporter { child, at };
            if exporter.tells("/metrics", own) {
                return exporter;
            }
        }
        panic!("`{program}` does not start");
    }

    /// Waits until what it says at that path has `part`; false if it ended before.
    fn tells(&mut self, path: &str, part: &str) -> bool {
        wait::for_some(&format!("{part} in {}{path}", self.at), || {
            if self.child.try_wait().unwrap().is_some() {
                return Some(false);
            }
            let text = get(self.at, path);
            text.is_some_and(|it| it.contains(part)).then_some(true)
        })
    }
}

/// What a good answer has.
fn get(at: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {at}\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.starts_with("HTTP/1.0 200").then_some(text)
}

/// What a source says of a run in which nothing is sent.
fn observed(asked: &str) -> Observation {
    let asked = Asked::parse(asked).unwrap_or_else(|error| panic!("{asked}: {error}"));
    let settings = Settings {
        mode: ObservationMode::During,
        period: PERIOD_MIN,
        thread_cpu_time: driver::clock::Clock::thread_cpu_time,
    };
    let observer = Observer::start(&[asked], Instant::now(), settings).unwrap();
    let observation = observer.finish().remove(0);
    assert_eq!(observation.check(), Ok(()));
    observation
}

#[test]
fn node_exporter_has_the_series_of_its_profile() {
    let exporter = Exporter::start("prometheus-node-exporter", "node_exporter_build_info", &[]);
    let observation = observed(&format!("node={}", exporter.at));
    assert_eq!(observation.notes, []);
    assert!(observation.scrapes.len() >= 2);
    for row in profiles::NODE.rows {
        let of_row = |it: &&Series| it.name.split('{').next() == Some(row.name);
        let series = observation.series.iter().find(of_row);
        let series = series.unwrap_or_else(|| panic!("no {}", row.name));
        assert!(
            series.samples.iter().all(|it| it.value().is_some()),
            "{series:?}"
        );
    }
    let most = |name: &str| observation.series(name).unwrap().highest;
    assert!(most("memory.available") < most("memory.total"));
}

#[test]
fn prometheus_is_asked_after_the_run_for_what_it_knows_of_it() {
    const QUERIES: u32 = 50;
    let server = products::COREDNS.start(&zone()).unwrap();
    let folder = server.folder();
    let configuration = folder.join("prometheus.yml");
    let text = format!(
        "global: {{ scrape_interval: 1s }}\nscrape_configs:\n- job_name: dns\n  \
         static_configs: [ {{ targets: [ '127.0.0.1:{}' ] }} ]\n",
        server.other_ports()[0]
    );
    std::fs::write(&configuration, text).unwrap();
    for _ in 0..QUERIES {
        ask_udp(server.endpoints().do53(), "test-record-1.lab.test");
    }
    let arguments = [
        format!("--config.file={}", configuration.display()),
        format!("--storage.tsdb.path={}", folder.join("data").display()),
    ];
    let mut exporter = Exporter::start("prometheus", "prometheus_build_info", &arguments);
    // With the query that found the server ready.
    let known = format!("\"{}\"]", QUERIES + 1);
    let path = "/api/v1/query?query=sum(coredns_dns_requests_total)";
    assert!(exporter.tells(path, &known));
    let query = "sum(coredns_dns_requests_total)";
    let observation = observed(&format!(
        "prometheus-api=http://{},query={query},step=1s",
        exporter.at
    ));
    let [series] = observation.series.as_slice() else {
        panic!("{observation:#?}");
    };
    assert_eq!(series.name, query);
    assert!(!series.samples.is_empty());
    let values = series.samples.iter().map(|it| it.value());
    for value in values {
        assert_eq!(value, Some(f64::from(QUERIES + 1)));
    }
    // It is said that others observed it, and nothing else is to be said.
    assert_eq!(observation.notes.len(), 1, "{:?}", observation.notes);
}
