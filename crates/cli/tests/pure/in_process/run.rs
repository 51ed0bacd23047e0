//! `throng run` on the simulator: its result as text, CSV and record.

use measure::RunRecord;
use measure::scenario::DriverKind;
use testing::folder::Folder;

use crate::call::{simulated, throng};

const TRANSPORTS: [&str; 3] = ["udp", "tcp", "dot"];

/// The heading lines of a result: those that start in the first column.
fn headings(text: &str) -> Vec<&str> {
    let is_heading = |line: &&str| line.starts_with(|first: char| first.is_ascii_uppercase());
    text.lines().filter(is_heading).collect()
}

/// Whether a line begins with these words, in columns of any width.
fn has_line(text: &str, words: &str) -> bool {
    let wanted: Vec<&str> = words.split_whitespace().collect();
    text.lines().any(|line| {
        let found: Vec<&str> = line.split_whitespace().take(wanted.len()).collect();
        found == wanted
    })
}

#[test]
fn every_section_of_a_result_is_printed() {
    for transport in TRANSPORTS {
        let text = throng(&format!(
            "run --driver sim --transport {transport} --queries 2000 --details"
        ))
        .succeeded();
        let mut sections = vec!["Result", "Latency", "Course", "Clients", "RCODEs"];
        sections.extend((transport != "udp").then_some("Connections"));
        sections.extend(["Generator", "Verdict"]);
        assert_eq!(headings(&text), sections, "{text}");
        for words in [
            "load closed loop, 100 outstanding; 10 clients,",
            "offered 2,000 queries",
            "sent 2,000 queries 100 %",
            "responses 2,000 responses 100 %",
            "lost 0 queries 0 %",
            "timed out 0 queries",
            "connection lost 0 queries",
            "not sent 0 queries",
            "from scheduled service",
            "queries unanswered 0 % 0 % 0 % 0 %",
            "NOERROR 2,000 responses 100 %",
        ] {
            assert!(has_line(&text, words), "no `{words}` in {text}");
        }
        let figures = "achieved goodput min mean stddev p50 p90 p95 p99 p99.9 max limit:";
        for figure in figures.split(' ') {
            assert!(has_line(&text, figure), "no `{figure}` in {text}");
        }
        assert!(has_line(&text, "DNS sent") && has_line(&text, "on the wire, received"));
    }
}

#[test]
fn csv_has_a_header_a_row_an_interval_and_a_total() {
    let folder = Folder::new("csv");
    let file = folder.path("record.json");
    let flags = format!(
        "run --driver sim --quiet --duration 300ms --rate 2k --interval 100ms --record {file}"
    );
    let csv = throng(&format!("{flags} --format csv")).succeeded();
    let record = RunRecord::from_json(&std::fs::read_to_string(file).unwrap()).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().map(|row| row.split(',').collect()).collect();
    assert_eq!(rows.len(), record.intervals.len() + 2, "{csv}");
    // The last one is of the responses to the last queries.
    assert_eq!(record.intervals.len(), 4, "{csv}");
    let names: Vec<String> = report::csv::columns().collect();
    assert_eq!(rows[0], names);
    assert!(rows.iter().all(|row| row.len() == names.len()), "{csv}");
    let sent = names
        .iter()
        .position(|name| *name == "sent_queries")
        .unwrap();
    let (total, intervals) = rows[1..].split_last().unwrap();
    let of_row = |row: &Vec<&str>| row[sent].parse::<u64>().unwrap();
    assert_eq!(total[0], "total");
    assert_eq!(intervals.iter().map(of_row).sum::<u64>(), of_row(total));
    assert_eq!(of_row(total), record.total.counts.sent);
}

#[test]
fn a_simulation_is_repeated_to_the_octet_and_another_seed_differs() {
    for transport in TRANSPORTS {
        let simulate = |seed: u32| {
            let flags = "run --driver sim --queries 3000 --sim-loss 0.01 --sim-jitter 2ms \
                         --sim-duplicate 0.01 --sim-reorder 0.01 --timeout 1s --format json";
            let line = format!("{flags} --transport {transport} --seed {seed}");
            throng(&line).succeeded()
        };
        let (first, again, other) = (simulate(7), simulate(7), simulate(8));
        assert!(
            first == again,
            "{transport}: the same seed gave another record"
        );
        assert!(
            first != other,
            "{transport}: another seed gave the same record"
        );
        let record = RunRecord::from_json(&first).unwrap();
        assert_eq!(record.driver, DriverKind::Sim);
        assert_eq!(record.total.counts.offered, 3000, "{transport}");
        assert!(first.contains("\"seed\": 7"), "{first}");
        let times = RunRecord::from_json(&other).unwrap().total.distributions;
        assert_ne!(
            times.latency, record.total.distributions.latency,
            "{transport}"
        );
    }
}

#[test]
fn a_simulated_delay_is_the_latency() {
    let record = simulated("--queries 500 --sim-delay 10ms");
    let latency = &record.total.distributions.latency;
    assert_eq!(latency.min_ns().unwrap() / 1_000_000, 20);
    let loss = simulated("--queries 1000 --sim-loss 0.5 --timeout 100ms");
    let counts = &loss.total.counts;
    // Each way loses a half: a quarter is answered.
    assert!(
        (200..300).contains(&counts.responses),
        "{}",
        counts.responses
    );
    assert_eq!(counts.responses + counts.timeouts, 1000);
}

#[test]
fn no_response_at_all_is_exit_code_1_with_the_whole_result() {
    let text = throng("run --driver sim --quiet --queries 5 --loss 1 --timeout 50ms --details")
        .ended_with(1);
    let timed_out = text.lines().find(|line| line.starts_with("    timed out"));
    let words: Vec<&str> = timed_out.unwrap().split_whitespace().collect();
    assert_eq!(
        words,
        ["timed", "out", "5", "queries", "100", "%"],
        "{text}"
    );
    let json = throng("run --driver sim --queries 5 --sim-loss 1 --format json").ended_with(1);
    let counts = RunRecord::from_json(&json).unwrap().total.counts;
    assert_eq!((counts.sent, counts.timeouts), (5, 5));
}

/// Latency that grows is a drift: the verdict and the course of the same result say so together.
#[test]
fn verdict_and_course_agree_on_latency_that_grows() {
    let flags = "run --driver sim --quiet --details --random-labels a.test --duration 10s";
    for (rate, grows) in [(990, false), (1_002, true), (1_020, true), (1_200, true)] {
        let text = throng(&format!("{flags} --ceiling 1000 --rate {rate}")).succeeded();
        let lines = ["latency grew from", "no drift", "drift: p50 rises"];
        let said = lines.map(|line| text.contains(line));
        assert_eq!(said, [grows, !grows, grows], "{rate}: {text}");
    }
}

/// A target that answers nothing until the run is over: all slots are held from the warm-up on.
#[test]
fn slots_that_the_warm_up_holds_to_the_end_are_said_and_are_exit_code_1() {
    let flags = "run --driver sim --quiet --outstanding 1000 --warmup 1s --duration 2s";
    let said = "1,000 queries of the warm-up got no response in time, and held all slots";
    for stall in ["--timeout 5s --stall at=0s,for=4s", "--timeout 5s --loss 1"] {
        let text = throng(&format!("{flags} {stall} --format json")).ended_with(1);
        let evidence = RunRecord::from_json(&text).unwrap().verdict.evidence;
        assert!(evidence[0].contains(said), "{stall}: {evidence:#?}");
    }
}
