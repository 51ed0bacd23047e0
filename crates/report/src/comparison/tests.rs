use measure::comparison::Cell;
use measure::{Comparison, RunRecord, Transport, judge};

use super::*;
use crate::example;

/// Runs of `times` records over three transports, the rates of which differ by run.
fn runs(times: u64) -> Vec<RunRecord> {
    let mut records = Vec::new();
    for run in 0..times {
        for (transport, responses) in [
            (Transport::Udp, 300_000),
            (Transport::Tcp, 250_000),
            (Transport::Dot, 190_000),
        ] {
            records.push(example::full(transport, responses + 1_000 * run));
        }
    }
    records
}

fn compare(records: &[RunRecord]) -> Comparison {
    let files: Vec<String> = (0..records.len()).map(|i| format!("{i}.json")).collect();
    let cells: Vec<Cell<'_>> = records
        .iter()
        .zip(&files)
        .map(|(record, file)| Cell {
            record,
            file: Some(file),
        })
        .collect();
    Comparison::new(&cells).expect("has runs")
}

/// Compares line by line, so that a difference is easy to find.
fn check(text: &str, expected: &str) {
    for (number, (line, wanted)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(line, wanted, "line {} of\n{text}", number + 1);
    }
    assert_eq!(text, expected);
}

#[test]
fn one_run_of_each_transport_reads_as_expected() {
    check(&text(&compare(&runs(1))), include_str!("expected/one.txt"));
}

#[test]
fn several_runs_show_their_spread_and_a_run_that_measured_the_generator() {
    let mut records = runs(3);
    let busy = &mut records[4];
    busy.workers[0].cpu_ns = busy.measured_ns;
    busy.workers[0].wall_ns = busy.measured_ns;
    busy.verdict = judge(busy);
    check(
        &text(&compare(&records)),
        include_str!("expected/three.txt"),
    );
}

#[test]
fn transports_that_held_the_rate_asked_for_have_no_factor() {
    let mut records = vec![example::udp_self_test(), example::udp_self_test()];
    records[1].scenario.transport = Transport::Doq.into();
    let text = text(&compare(&records));
    let why = "no factor: udp held the rate asked for (1 of 1 run), doq held the\n";
    let lines = format!(
        "    achieved      0.0 qps  0.0 %  {why}{:34}rate asked for",
        ""
    );
    assert!(text.contains(&lines), "{text}");
    assert!(text.starts_with("Self-test. No factor between the transports: the rate was given"));
    let header = "\n\nthrong 0.1.0: self-test, udp, doq compared, 1 run each";
    assert!(text.contains(header), "{text}");
}

#[test]
fn csv_has_a_row_for_each_run_and_three_for_each_transport() {
    let csv = csv(&compare(&runs(3)));
    let rows: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(rows.len(), 1 + 3 * (3 + 3));
    for row in &rows {
        assert_eq!(row.split(',').count(), CSV_COLUMNS.len(), "{row}");
    }
    assert!(rows[0].starts_with("transport,run,achieved_qps,achieved_of_first_percent,"));
    assert!(
        rows[1].starts_with("udp,1,300000.000,99.668,,0.000,"),
        "{}",
        rows[1]
    );
    assert!(rows[1].ends_with(",server"), "{}", rows[1]);
    assert!(rows[8].starts_with("tcp,5,251000.000,"), "{}", rows[8]);
    assert!(
        rows[10].starts_with("tcp,median,251000.000,83.389,1.199,"),
        "{}",
        rows[10]
    );
}

#[test]
fn json_is_the_whole_comparison_with_the_files_of_its_records() {
    let comparison = compare(&runs(2));
    let json = json(&comparison);
    let value: serde_json::Value = serde_json::from_str(&json).expect("is JSON");
    assert_eq!(value["transports"][2]["runs"][1]["record"], "5.json");
    assert_eq!(value["costs"][2]["to"], "dot");
    assert!(json.ends_with("}\n"));
}
