//! `throng compare-transports`: the same load over several transports, and what each step costs.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use lab::target::{BindOptions, DOH_PATH, Service};
use measure::comparison::{Comparison, Figures};
use measure::{HttpMethod, RunRecord, Transport, Transports};
use testing::folder::Folder;
use testing::ports::{ClosedTcpPort, Listener};
use testing::program::signal;

use crate::dnsperf::{bind, names_in};
use crate::process::{Responder, THRONG, throng};

const COMPARE: &str = "compare-transports --quiet";

fn compared(flags: &str) -> Comparison {
    let stdout = throng(&format!("{COMPARE} --format json {flags}")).succeeded();
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn each_cell_is_the_figures_of_its_own_record() {
    let folder = Folder::new("compare-records");
    let records = folder.path("records");
    let flags = format!("--queries 500 --repeat 2 --records {records}");
    let comparison = compared(&flags);
    assert!(comparison.self_test);
    let transports: Vec<Transports> = comparison
        .transports
        .iter()
        .map(|it| it.transport)
        .collect();
    assert_eq!(transports, [Transport::Udp, Transport::Tcp, Transport::Dot]);
    // The second time in reverse order.
    let expected = [[1, 6], [2, 5], [3, 4]];
    for (contender, positions) in comparison.transports.iter().zip(expected) {
        let found: Vec<u64> = contender.runs.iter().map(|run| run.position).collect();
        assert_eq!(found, positions);
        for (run, round) in contender.runs.iter().zip(1..) {
            let file = run.record.as_deref().unwrap();
            assert!(
                file.ends_with(&format!("{}-{round}.json", contender.transport)),
                "{file}"
            );
            let record = RunRecord::from_json(&fs::read_to_string(file).unwrap()).unwrap();
            assert_eq!(record.scenario.transport, contender.transport);
            assert_eq!(record.total.counts.responses, 500);
            assert_eq!(run.figures, Figures::of(&record));
            assert_eq!(run.limit, record.verdict.limit);
            assert_eq!(run.evidence, record.verdict.evidence[0]);
        }
    }
    assert_eq!(fs::read_dir(&records).unwrap().count(), 6);
}

#[test]
fn all_six_transports_of_the_built_in_responder_are_compared_by_one_command() {
    let all = "udp,tcp,dot,doh2,doh3,doq";
    let comparison = compared(&format!("--queries 500 --transports {all}"));
    let transports = comparison.transports.iter();
    let names: Vec<String> = transports.map(|it| it.transport.to_string()).collect();
    assert_eq!(names.join(","), all);
    for contender in &comparison.transports {
        let [run] = &contender.runs[..] else {
            panic!("{contender:?}");
        };
        assert!(run.figures.achieved_qps > 0.0, "{contender:?}");
        assert_eq!(run.figures.lost_share, 0.0, "{contender:?}");
    }
    // One step after the other, and each transport against the first.
    assert_eq!(comparison.costs.len(), 5 + 4);
    for command in ["run", "compare-transports"] {
        let help = throng(&format!("{command} --help")).succeeded();
        assert!(help.contains("<udp|tcp|dot|doh2|doh3|doq"), "{help}");
    }
}

#[test]
fn simulated_comparison_is_the_same_every_time_and_reads_as_expected() {
    let flags = "--driver sim --transports udp,tcp --rate 1000 --duration 2s --sim-delay 3ms \
                 --timeout 1s";
    let expected = "  load       open loop, 1,000.0 qps equally spaced; 10 clients, 1 worker
  questions  test-record-1..1000.throng.test A, 1,000 questions

Transports
                            udp          tcp
  achieved          1,000.0 qps  1,000.0 qps
  lost                   0.00 %       0.00 %
  mean latency         6.000 ms     6.000 ms
  p50 latency          6.000 ms     6.000 ms
  p95 latency          6.000 ms     6.000 ms
  p99 latency          6.000 ms     6.000 ms
  TCP connect, p50            -     6.000 ms
  limit                    rate         rate

Costs
  udp -> tcp
    achieved      0.0 qps  0.0 %  no factor: udp held the rate asked for (1 of 1 run), tcp held \
the rate asked for (1 of 1 run)
    mean latency     0 ns  0.0 %
    p50 latency      0 ns  0.0 %
    p95 latency      0 ns  0.0 %
    p99 latency      0 ns  0.0 %

Verdicts
  udp  rate  1 of 1 run  100.00 % of the queries offered at 1,000.0 qps were answered and sent on \
time (p99 0 ns late)
  tcp  rate  1 of 1 run  100.00 % of the queries offered at 1,000.0 qps were answered and sent on \
time (p99 0 ns late)

note: one run of a transport shows no spread: --repeat 5
note: the target is the responder built into this tool: the costs are those of both, not of a \
server
";
    for _ in 0..2 {
        let text = throng(&format!("{COMPARE} {flags}")).succeeded();
        let (first, rest) = text.split_once('\n').unwrap();
        assert!(
            first.ends_with(": self-test, udp, tcp compared, 1 run each in turn"),
            "{first}"
        );
        assert_eq!(rest, expected, "{rest}");
    }
}

#[test]
fn servers_on_different_ports_get_their_own_queries() {
    let folder = Folder::new("compare-ports");
    let names = folder.write("names.txt", "a.example A\nb.example A\n");
    let responder = Responder::start("udp:127.0.0.1:0,tcp:127.0.0.1:0,dot:127.0.0.1:0", "");
    let ports: Vec<String> = responder
        .addresses
        .iter()
        .map(|(transport, address)| format!("{transport}={}", address.port()))
        .collect();
    let flags = format!(
        "--server 127.0.0.1 --port {} --names {names} --queries 300 --clients 3 --tls-insecure",
        ports.join(",")
    );
    let comparison = compared(&flags);
    assert!(!comparison.self_test);
    for (contender, (transport, address)) in comparison.transports.iter().zip(&responder.addresses)
    {
        assert_eq!(&contender.transport.to_string(), transport);
        assert_eq!(contender.target, address.to_string());
    }
    let counters = responder.counters();
    assert_eq!(counters.get("queries received"), 900, "{}", counters.0);
}

#[test]
fn bind_is_compared_over_all_that_it_speaks() {
    let folder = Folder::new("compare-bind");
    let names = names_in(&folder);
    let target = bind(|options| BindOptions {
        services: vec![Service::Dot, Service::Doh2],
        ..options
    });
    let transports = ["udp", "tcp", "dot", "doh2"];
    let ports = transports.map(|name| {
        let address = target.endpoints().address(name.parse().unwrap()).unwrap();
        format!("{name}={}", address.port())
    });
    let comparison = compared(&format!(
        "--transports {} --server 127.0.0.1 --port {} --names {names} --queries 400 --clients 4 \
         --outstanding 40 --tls-insecure --doh-method get --records {}",
        transports.join(","),
        ports.join(","),
        folder.path("records")
    ));
    assert_eq!(comparison.costs.len(), 3 + 2);
    let file = |name: &str| folder.path(&format!("records/{name}-1.json"));
    let record =
        |name: &str| RunRecord::from_json(&fs::read_to_string(file(name)).unwrap()).unwrap();
    for name in transports {
        let record = record(name);
        assert_eq!(record.total.counts.rcodes.by_rcode[0], 400, "{name}");
        let has_tls = ["dot", "doh2"].contains(&name);
        let handshakes = if has_tls { 4 } else { 0 };
        assert_eq!(record.connections().handshakes.full, handshakes, "{name}");
        assert_eq!(record.scenario.tls.is_some(), has_tls);
    }
    let scenario = record("doh2").scenario;
    let http = scenario.http.unwrap();
    assert_eq!(
        (http.method, http.path.as_str()),
        (HttpMethod::Get, DOH_PATH)
    );
    let tls = scenario.tls.unwrap();
    assert_eq!(
        (tls.alpn.as_deref(), tls.version.as_deref()),
        (Some("h2"), Some("TLS 1.3"))
    );
    assert_eq!((tls.verified, tls.settings.alpn.len()), (false, 1));
    assert!(tls.group.is_some() && tls.cipher_suite.is_some());
}

#[test]
fn csv_has_a_row_for_each_run() {
    let flags = "--driver sim --transports tcp,udp --queries 100 --repeat 3 --format csv";
    let csv = throng(&format!("{COMPARE} {flags}")).succeeded();
    let firsts: Vec<String> = csv
        .lines()
        .map(|row| row.split(',').take(2).collect::<Vec<&str>>().join(" "))
        .collect();
    let expected = [
        "transport run",
        "tcp 1",
        "tcp 4",
        "tcp 5",
        "tcp median",
        "tcp min",
        "tcp max",
        "udp 2",
        "udp 3",
        "udp 6",
        "udp median",
        "udp min",
        "udp max",
    ];
    assert_eq!(firsts, expected);
}

/// Checks that a comparison is refused with these parts in its error and its hint.
fn check(flags: &str, error_part: &str, hint_part: &str) {
    throng(&format!("{COMPARE} {flags}")).refused_with(error_part, hint_part);
}

#[test]
fn transports_and_servers_that_make_no_comparison_are_refused() {
    check("--transports udp,doo", "unknown transport `doo`", "--help");
    check(
        "--transports tcp,udp,tcp",
        "--transports names tcp twice",
        "--repeat",
    );
    check("--transport tcp", "use --transports", "--help");
    check("--record a.json", "use --records FOLDER", "--help");
    check("--repeat 0", "invalid value '0' for '--repeat", "--help");
    check(
        "--port udp=53",
        "--port has no effect on the built-in responder",
        "--server",
    );
    check(
        "--server dot=a --transports udp,tcp",
        "is for dot, which is not compared",
        "add dot",
    );
    check(
        "--server udp=a,tcp=b",
        "--server names none for dot",
        "add dot=HOST",
    );
    check(
        "--server udp=a,udp=b",
        "--server names udp twice",
        "leave out",
    );
    check(
        "--server a,b",
        "two servers for all transports",
        "udp=192.0.2.1",
    );
    check(
        "--server a:5300",
        "one port for transports that have different ones",
        "--port",
    );
    check(
        "--server a --port udp=0",
        "--port udp=0: not a transport and its port",
        "dot=8853",
    );
    check(
        "--server a --port 53",
        "--port 53: not a transport and its port",
        "dot=8853",
    );
    check(
        "--server udp=a:1,b --port udp=2",
        "udp has two ports",
        "leave out one",
    );
    check(
        "--transports udp,tcp --tls-insecure",
        "udp: --tls-insecure has no effect",
        "dot",
    );
    check("--rate 0", "udp: --rate", "rates go from");
    check(
        "--queries-per-connection 0",
        "queries are compared, and this sends none",
        "throng run",
    );
}

#[test]
fn folder_that_cannot_keep_records_is_refused_before_anything_starts() {
    let folder = Folder::new("compare-folder");
    let file = folder.write("file", "");
    check(
        &format!("--records {file}"),
        &format!("cannot create the folder {file}"),
        "--records",
    );
    check(
        &format!("--records {file}/below"),
        &format!("cannot create the folder {file}/below"),
        "--records",
    );
    fs::create_dir_all(folder.folder().join("records/dot-1.json")).unwrap();
    let records = folder.path("records");
    check(
        &format!("--records {records}"),
        "cannot write to",
        "--records",
    );
    assert_eq!(fs::read_dir(&records).unwrap().count(), 1);
}

#[test]
fn one_transport_that_nobody_serves_is_named_before_anything_is_sent() {
    let folder = Folder::new("compare-unreachable");
    let names = folder.write("names.txt", "a.example A\n");
    let udp = Listener::new();
    let port = ClosedTcpPort::new();
    let closed = port.address();
    check(
        &format!(
            "--server udp={},tcp={closed} --transports udp,tcp --names {names}",
            udp.address()
        ),
        &format!("tcp: nothing is listening on {closed} over TCP"),
        "check address and port",
    );
    assert_eq!(udp.received(), []);
}

#[test]
fn interrupt_ends_the_comparison_and_its_record_is_kept() {
    let folder = Folder::new("compare-interrupt");
    let records = folder.path("records");
    let mut command = Command::new(THRONG);
    command.args([
        "compare-transports",
        "--duration",
        "60s",
        "--interval",
        "50ms",
    ]);
    command
        .args(["--rate", "100", "--records", &records])
        .stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("0.1 s  sent ") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0);
    }
    signal(&child, "INT");
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(
        rest.contains("interrupted: 0 of 3 runs are compared"),
        "{rest}"
    );
    assert!(
        rest.contains("error: interrupted within the first run"),
        "{rest}"
    );
    let kept = fs::read_to_string(format!("{records}/udp-1.json")).unwrap();
    assert!(RunRecord::from_json(&kept).is_ok());
}
