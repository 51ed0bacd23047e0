//! `throng compare-transports`: the same load over several transports in simulation, the forms of
//! the result, and what is refused.

use std::fs;

use measure::comparison::{Comparison, Figures};
use measure::{RunRecord, Transport, Transports};
use testing::folder::Folder;

use crate::call::throng;

const COMPARE: &str = "compare-transports --quiet";

fn compared(flags: &str) -> Comparison {
    let stdout = throng(&format!("{COMPARE} --format json {flags}")).succeeded();
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn each_cell_is_the_figures_of_its_own_record() {
    let folder = Folder::new("compare-records");
    let records = folder.path("records");
    let flags = format!("--driver sim --queries 500 --repeat 2 --records {records}");
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
fn all_six_transports_are_compared_by_one_command() {
    let all = "udp,tcp,dot,doh2,doh3,doq";
    let comparison = compared(&format!("--driver sim --queries 500 --transports {all}"));
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
    let expected = "  load       open loop, 1,000 qps equally spaced; 10 clients, 1 worker
  questions  test-record-1..1000.throng.test A, 1,000 questions

Transports
                          udp        tcp
  achieved          1,000 qps  1,000 qps
  lost                    0 %        0 %
  mean latency       6.000 ms   6.000 ms
  p50 latency        6.000 ms   6.000 ms
  p95 latency        6.000 ms   6.000 ms
  p99 latency        6.000 ms   6.000 ms
  TCP connect, p50          -   6.000 ms
  limit                  rate       rate

Costs
  udp -> tcp
    achieved      0.0 qps  0.0 %  no factor: udp held the rate asked for (1 of 1 run), tcp held the
                                  rate asked for (1 of 1 run)
    mean latency     0 ns  0.0 %
    p50 latency      0 ns  0.0 %
    p95 latency      0 ns  0.0 %
    p99 latency      0 ns  0.0 %

Verdicts
  udp  rate  1 of 1 run  100 % of the queries offered at 1,000 qps were answered and sent on time
                         (p99 0 ns late)
  tcp  rate  1 of 1 run  100 % of the queries offered at 1,000 qps were answered and sent on time
                         (p99 0 ns late)

note: one run of a transport shows no spread: --repeat 5
note: the target is the responder built into this tool: the costs are those of both, not of a server
";

    for _ in 0..2 {
        let text = throng(&format!("{COMPARE} {flags}")).succeeded();
        let (conclusion, result) = text.split_once("\n\n").unwrap();
        assert_eq!(
            conclusion,
            "Self-test. No factor between the transports: the rate was given, which is no \
             capacity; leave out\n  --rate to compare capacities"
        );
        let (header, rest) = result.split_once('\n').unwrap();
        assert!(
            header.ends_with(": self-test, udp, tcp compared, 1 run each in turn"),
            "{header}"
        );
        assert_eq!(rest, expected, "{rest}");
    }
}

#[test]
fn result_begins_with_the_servers_that_each_transport_needs() {
    let flags = "--driver sim --transports udp,tcp --outstanding 100 --duration 1s \
                 --sim-service-time 50us --sim-accept-time 10us";
    let text = throng(&format!("{COMPARE} {flags}")).succeeded();
    let first = "Self-test. Servers for the same rate, against udp: tcp 1.00 times\n\nthrong ";
    assert!(text.starts_with(first), "{text}");
    let long = text.lines().find(|line| line.chars().count() > 100);
    assert_eq!(long, None);
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
    check("--transports udp,doo", "unknown transport `doo`", "udp");
    check(
        "--transports tcp,udp,tcp",
        "--transports names tcp twice",
        "--repeat",
    );
    check("--transport tcp", "several", "use --transports");
    check("--record a.json", "several", "--records FOLDER");
    check("--repeat 0", "invalid value '0' for '--repeat", "1 or more");
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
        &format!("--driver sim --records {file}"),
        &format!("cannot create the folder {file}"),
        "--records",
    );
    check(
        &format!("--driver sim --records {file}/below"),
        &format!("cannot create the folder {file}/below"),
        "--records",
    );
    fs::create_dir_all(folder.folder().join("records/dot-1.json")).unwrap();
    let records = folder.path("records");
    check(
        &format!("--driver sim --records {records}"),
        "cannot write to",
        "--records",
    );
    assert_eq!(fs::read_dir(&records).unwrap().count(), 1);
}
