//! `--metrics`: scrapes of real runs, by a client of HTTP and by Prometheus of Debian.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

use measure::RunRecord;
use observe::{Reading, exposition};
use testing::folder::Folder;
use testing::program::{Running, signal};
use testing::wait;

use crate::process::{THRONG, throng};
use crate::query_logs::log;

/// Waits of a test that would fail otherwise.
const PATIENCE: Duration = Duration::from_secs(60);
/// A query for the addresses of a.example.
const QUERY: &[u8] = b"\0\x01\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x01\0\x01";
/// Starts of Prometheus, when another process took its port first.
const ATTEMPTS_MAX: usize = 5;

/// A command with metrics, killed when dropped. Its standard output is a pipe that holds 64 KiB,
/// and its result is longer: it waits for the reader of the pipe, and is scraped until then.
pub(crate) struct Watched {
    child: Running,
    pub(crate) at: SocketAddr,
    /// Keeps standard error open.
    _stderr: BufReader<std::process::ChildStderr>,
}

impl Watched {
    pub(crate) fn start(line: &str) -> Watched {
        let mut command = Command::new(THRONG);
        command.args(line.split_whitespace()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Running(command.spawn().unwrap());
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut shown = String::new();
        while !shown.contains("metrics at ") {
            shown.clear();
            assert!(stderr.read_line(&mut shown).unwrap() > 0, "no address");
        }
        let (_, address) = shown.trim().split_once("http://").unwrap();
        let at = address.strip_suffix("/metrics").unwrap().parse().unwrap();
        Watched {
            child,
            at,
            _stderr: stderr,
        }
    }

    fn scrape(&self) -> Reading {
        let response = get(self.at, "/metrics").unwrap();
        exposition::parse(&response, |_| true).unwrap()
    }

    /// The first scrape in which a value is as expected.
    fn wait_for(&self, series: &str, is_expected: impl Fn(f64) -> bool) -> Reading {
        wait::for_some(series, || {
            let reading = self.scrape();
            sum(&reading, series)
                .is_some_and(&is_expected)
                .then_some(reading)
        })
    }

    /// The last scrape, after the end of the run.
    fn last(&self) -> Reading {
        self.wait_for(r#"throng_run_phase{phase="ended"}"#, |value| value == 1.0)
    }

    /// The result, for which the command has waited to end.
    fn result(self) -> String {
        self.result_with(0)
    }

    /// The result of a command that ends with this exit code.
    pub(crate) fn result_with(mut self, exit_code: i32) -> String {
        let mut text = String::new();
        let mut stdout = self.child.stdout.take().unwrap();
        stdout.read_to_string(&mut text).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(exit_code));
        text
    }

    /// Ends it early, and waits until the processes that it has started are over too: a run that is
    /// left behind writes its record after the folder of the test is gone.
    fn end(mut self) {
        self.interrupt();
        let mut text = String::new();
        let mut stdout = self.child.stdout.take().unwrap();
        stdout.read_to_string(&mut text).unwrap();
        self.child.wait().unwrap();
    }

    /// Interrupts the run, which ends with a complete record.
    pub(crate) fn interrupt(&self) {
        signal(&self.child, "INT");
    }
}

fn get(at: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {at}\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    head.contains(" 200 OK").then(|| body.to_owned())
}

/// The sum of a series over all its labels, or of the one series whose labels are given.
fn sum(reading: &Reading, series: &str) -> Option<f64> {
    let of_series = reading
        .samples
        .iter()
        .filter(|sample| sample.name == series || sample.full_name() == series);
    of_series.map(|sample| sample.value).reduce(|a, b| a + b)
}

/// The counts of a scrape are those of the record.
fn assert_counts(scraped: &Reading, record: &RunRecord) {
    let total = &record.total;
    let counts = &total.counts;
    for (series, expected) in [
        ("throng_queries_offered_total", counts.offered),
        ("throng_queries_sent_total", counts.sent),
        ("throng_queries_not_sent_total", counts.not_sent.total()),
        ("throng_responses_total", counts.responses),
        ("throng_queries_timed_out_total", counts.timeouts),
        ("throng_sent_bytes_total", counts.sent_octets),
        ("throng_received_bytes_total", counts.received_octets),
        (
            "throng_messages_unexpected_total",
            counts.unexpected.total(),
        ),
        (
            "throng_latency_seconds_count",
            total.distributions.latency.count(),
        ),
        (
            "throng_service_time_seconds_count",
            total.distributions.service.count(),
        ),
    ] {
        assert_eq!(sum(scraped, series), Some(expected as f64), "{series}");
    }
    let latency = total.distributions.latency.sum_ns() as f64 / 1e9;
    let scraped = sum(scraped, "throng_latency_seconds_sum");
    assert_eq!(scraped, Some(latency));
}

#[test]
fn run_is_scraped_in_its_midst_and_its_last_scrape_equals_its_record() {
    for more in ["", "--transport tcp", "--agents 2"] {
        let watched = Watched::start(&format!(
            "run --duration 2s --interval 100ms --rate 1k --format json \
             --metrics 127.0.0.1:0 {more}"
        ));
        let midst = watched.wait_for("throng_responses_total", |value| value > 0.0);
        assert!(sum(&midst, "throng_queries_sent_total") > Some(0.0));
        let last = watched.last();
        let record = RunRecord::from_json(&watched.result()).unwrap();
        assert!(record.total.counts.responses > 0);
        assert_counts(&last, &record);
        assert_eq!(sum(&last, "throng_snapshots_missed_total"), Some(0.0));
    }
}

#[test]
fn simulated_run_with_groups_of_clients_is_scraped_as_it_is_recorded() {
    let folder = Folder::new("metrics-groups");
    let scenario = folder.write(
        "s.toml",
        "driver = 'sim'\nduration = '5s'\n[[clients]]\nname = 'a'\nrate = '300'\n\
         [[clients]]\nname = 'b'\nrate = '200'\ntransport = 'dot'\n",
    );
    let watched = Watched::start(&format!(
        "run {scenario} --format json --metrics 127.0.0.1:0"
    ));
    let last = watched.last();
    let record = RunRecord::from_json(&watched.result()).unwrap();
    assert_counts(&last, &record);
    for group in &record.groups {
        let series = format!("throng_group_responses_total{{group=\"{}\"}}", group.name);
        let expected = group.total.counts.responses as f64;
        assert_eq!(sum(&last, &series), Some(expected), "{series}");
    }
    let mixed = r#"throng_queries_sent_total{transport="mixed"}"#;
    assert!(sum(&last, mixed) > Some(0.0));
}

#[test]
fn port_that_is_taken_ends_the_command_before_any_query() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for line in [
        "run --duration 1s",
        "ramp --to 100 --over 1s --sustain 0s",
        "capacity --trial-duration 1s",
        "compare-transports --transports udp,tcp --duration 1s",
    ] {
        let line = format!("{line} --metrics {address}");
        throng(&line).refused_with(&address.to_string(), "give another port");
    }
    let folder = Folder::new("metrics-taken");
    let records = folder.path("records");
    let sides = format!("compare --records {records} --b=-l1s");
    let line = format!("{sides} --a=-l1s --serve-metrics {address}");
    throng(&line).refused_with(&address.to_string(), "give another port");
    for (flag, of_all) in [
        ("--metrics=127.0.0.1:0", "--serve-metrics"),
        ("--tui", "--tui"),
        ("--web=127.0.0.1:0", "--web"),
        ("--grafana=http://127.0.0.1:1", "--grafana"),
    ] {
        let cure = format!("give {of_all} to");
        throng(&format!("{sides} --a={flag}")).refused_with("of a comparison", &cure);
    }
}

#[test]
fn ramp_is_scraped_as_it_grows() {
    let watched = Watched::start(
        "ramp --to 1k --over 2s --sustain 1s --interval 100ms --format json --metrics 127.0.0.1:0",
    );
    let midst = watched.wait_for("throng_responses_total", |value| value > 0.0);
    assert_eq!(sum(&midst, "throng_runs"), Some(1.0));
    watched.result();
}

#[test]
fn responder_exposes_what_it_counts() {
    let mut responder = Watched::start("responder --listen udp:127.0.0.1:0 --metrics 127.0.0.1:0");
    let events = r#"throng_responder_events_total{event="queries"}"#;
    assert_eq!(sum(&responder.scrape(), events), Some(0.0));
    let mut stdout = BufReader::new(responder.child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("listening on udp:").unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.send_to(QUERY, address).unwrap();
    let counted = responder.wait_for(events, |value| value > 0.0);
    assert_eq!(sum(&counted, events), Some(1.0));
    let taken = responder.at;
    let line = format!("responder --listen udp:127.0.0.1:0 --metrics {taken}");
    throng(&line).refused_with(&taken.to_string(), "give another port");
    let line = format!("{line} --processes 2");
    throng(&line).refused_with("--metrics", "leave out --processes");
}

#[test]
fn commands_of_several_forms_are_scraped_in_their_midst() {
    let folder = Folder::new("metrics-commands");
    let log = folder.write("query.log", log());
    for (command, line) in [
        ("replay", format!("replay {log} --interval 100ms")),
        ("capacity", "capacity --trial-duration 2s".to_owned()),
        (
            "compare-transports",
            "compare-transports --transports udp,tcp --duration 5s --repeat 1".to_owned(),
        ),
    ] {
        let watched = Watched::start(&format!("{line} --metrics 127.0.0.1:0"));
        let midst = watched.wait_for("throng_responses_total", |value| value > 0.0);
        assert!(
            sum(&midst, "throng_queries_sent_total") > Some(0.0),
            "{line}"
        );
        let label = format!("command=\"{command}\"");
        let mut samples = midst.samples.iter();
        let is_info = |name: &str| name.starts_with("throng_run_info") && name.contains(&label);
        assert!(samples.any(|it| is_info(&it.full_name())), "{line}");
        watched.end();
    }
}

/// Each run of these is a process, whose snapshots come to the command.
#[test]
fn comparisons_and_experiments_add_up_their_runs() {
    let folder = Folder::new("metrics-turns");
    let experiment = folder.write(
        "e.toml",
        "name = 'e'\nrepetitions = 1\n[run]\nduration = '3s'\nrate = '200'\n\
         [matrix]\ntransport = ['udp', 'tcp']\n",
    );
    let b = folder.write("b.toml", "duration = '3s'\ntransport = 'tcp'\n");
    let records = folder.path("records");
    for line in [
        format!("compare --a=-l1s --b={b} --repeat 1 --records {records} --serve-metrics"),
        format!("experiment run {experiment} --output {records}-e --metrics"),
    ] {
        let watched = Watched::start(&format!("{line} 127.0.0.1:0"));
        let second = watched.wait_for("throng_run_number", |value| value == 2.0);
        assert_eq!(sum(&second, "throng_runs"), Some(2.0), "{line}");
        let tcp = r#"throng_queries_sent_total{transport="tcp"}"#;
        let both = watched.wait_for(tcp, |value| value > 0.0);
        let udp = r#"throng_queries_sent_total{transport="udp"}"#;
        assert!(sum(&both, udp) > Some(0.0), "{line}");
        watched.end();
    }
}

/// Prometheus, which scrapes a command each second.
pub(crate) struct Prometheus {
    _child: Running,
    at: SocketAddr,
}

/// The flag with which Prometheus has native histograms beside the classic ones.
pub(crate) const NATIVE: &str = "--enable-feature=native-histograms";

impl Prometheus {
    pub(crate) fn start(folder: &Folder, of: SocketAddr, flags: &[&str]) -> Prometheus {
        // The configuration of the documents, but for the address.
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let read = |name| fs::read_to_string(format!("{root}/deploy/prometheus/{name}")).unwrap();
        let text = read("scrape.yaml").replace("127.0.0.1:9350", &of.to_string());
        let config = folder.write("prometheus.yml", &text);
        folder.write("alerts.yml", read("alerts.yml"));
        for _ in 0..ATTEMPTS_MAX {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let at = listener.local_addr().unwrap();
            drop(listener);
            let data = folder.path(&format!("data-{}", at.port()));
            let mut command = Command::new("prometheus");
            command.arg(format!("--config.file={config}"));
            command.arg(format!("--storage.tsdb.path={data}"));
            command.arg(format!("--web.listen-address={at}"));
            command.args(flags);
            command.stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = Running(command.spawn().unwrap());
            let is_ready = wait::for_some("Prometheus", || match child.try_wait().unwrap() {
                Some(_) => Some(false),
                None => get(at, "/-/ready").map(|_| true),
            });
            if is_ready {
                return Prometheus { _child: child, at };
            }
        }
        panic!("`prometheus` does not start");
    }

    /// The value of an expression, once it has one.
    fn value(&self, expression: &str) -> Option<f64> {
        self.values(expression).first().copied()
    }

    /// The values of all series that an expression has now.
    ///
    /// # Panics
    ///
    /// If Prometheus refuses the expression.
    pub(crate) fn values(&self, expression: &str) -> Vec<f64> {
        let encoded: String = expression
            .bytes()
            .map(|byte| format!("%{byte:02X}"))
            .collect();
        let json = self.api(&format!("query?query={encoded}"));
        let json = json.unwrap_or_else(|| panic!("refused: {expression}"));
        let series = json["data"]["result"].as_array().unwrap();
        // That of a histogram is none of `value`.
        let values = series.iter().filter_map(|it| it["value"][1].as_str());
        values.map(|value| value.parse().unwrap()).collect()
    }

    /// The answer of its API to a request; none if it is an error.
    pub(crate) fn api(&self, request: &str) -> Option<serde_json::Value> {
        let text = get(self.at, &format!("/api/v1/{request}"))?;
        Some(serde_json::from_str(&text).unwrap())
    }
}

#[test]
fn prometheus_has_exact_counts_and_the_native_p99_of_the_record() {
    let folder = Folder::new("metrics-prometheus");
    let watched = Watched::start(
        "run --driver sim --duration 30s --rate 2k --clients 10 --delay \
         exponential:20ms --format json --metrics 127.0.0.1:0",
    );
    // Of a simulation, what is scraped is already whole.
    watched.last();
    let prometheus = Prometheus::start(&folder, watched.at, &[NATIVE]);
    let count = wait::for_some("a native histogram", || {
        prometheus.value("histogram_count(throng_latency_seconds)")
    });
    let at = |q: f64| {
        let expression = format!("histogram_quantile({q}, throng_latency_seconds)");
        prometheus.value(&expression).unwrap()
    };
    let quantiles = [0.5, 0.9, 0.99].map(|q| (q, at(q)));
    let sent = prometheus.value("throng_queries_sent_total").unwrap();
    let responses = prometheus.value("sum(throng_responses_total)").unwrap();
    let seconds = prometheus
        .value("histogram_sum(throng_latency_seconds)")
        .unwrap();
    let record = RunRecord::from_json(&watched.result()).unwrap();
    let total = &record.total;
    let latency = &total.distributions.latency;
    assert_eq!(count, latency.count() as f64);
    assert_eq!(sent, total.counts.sent as f64);
    assert_eq!(responses, total.counts.responses as f64);
    assert_eq!(seconds, latency.sum_ns() as f64 / 1e9);
    for (q, scraped) in quantiles {
        let recorded = latency.percentile(q).unwrap() as f64 / 1e9;
        let off = (scraped / recorded - 1.0).abs();
        assert!(off < 0.006, "{q}: {scraped} s, recorded {recorded} s");
    }
}
