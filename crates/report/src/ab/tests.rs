use measure::ab::{Settings, Side};
use measure::{AbComparison, RunRecord, Transport};

use super::*;
use crate::example;

/// Six runs of a side with a little noise, `more` responses in each.
fn runs(more: u64, first_second: u64) -> Vec<RunRecord> {
    let run = |index: u64| {
        let responses = 20_000 + more + 10 * ((index * 5 + more) % 7);
        let mut record = example::full(Transport::Udp, responses);
        record.started_at = format!("2026-01-28T09:00:{:02}Z", first_second + 2 * index);
        record
    };
    (0..6).map(run).collect()
}

fn compared(more: u64) -> AbComparison {
    let (a, b) = (runs(0, 0), runs(more, 1));
    let side = |label: &str, records| -> Side<'static> {
        let records: Vec<RunRecord> = records;
        let runs = records.into_iter().enumerate();
        Side {
            label: label.into(),
            runs: runs
                .map(|(index, record)| -> (String, &'static RunRecord) {
                    (format!("{label}/{index}.json"), Box::leak(Box::new(record)))
                })
                .collect(),
        }
    };
    AbComparison::new(&side("old", a), &side("new", b), &[], &Settings::default())
}

#[test]
fn faster_side_reads_as_expected() {
    let text = text(&compared(4_000));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("B is faster than A: qps +"), "{text}");
    assert!(lines[2].starts_with("  A  old  6 runs of "), "{text}");
    let heads = "A  B  change  95 % interval  noise  p  B is";
    let words = |line: &str| line.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert_eq!(words(lines[6]), words(heads), "{text}");
    let rate = lines
        .iter()
        .find(|line| line.starts_with("  qps"))
        .expect("a row");
    assert!(rate.ends_with("faster"), "{rate}");
    assert!(text.contains("medians of runs that alternate"), "{text}");
}

#[test]
fn same_sides_say_so_in_every_form() {
    let same = compared(0);
    assert!(text(&same).starts_with("B is the same as A: no difference above 2.0 %\n"));
    assert!(markdown(&same).starts_with("### B is the same as A"));
    let back: AbComparison = serde_json::from_str(&json(&same)).expect("it is JSON");
    assert_eq!(back.metrics.len(), same.metrics.len());
}

#[test]
fn markdown_is_a_table_that_github_reads() {
    let mut found = compared(4_000);
    found.a.label = "a|b*c".into();
    let text = markdown(&found);
    assert!(text.contains("* **A**: a\\|b\\*c ("), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows[1], "|:--|--:|--:|--:|--:|--:|--:|:--|");
    for row in &rows {
        let cells = row.replace("\\|", "").matches('|').count();
        assert_eq!(cells, 9, "{row}");
    }
}

#[test]
fn csv_has_a_cell_for_every_column() {
    let csv = csv(&compared(4_000));
    let widths = csv
        .split_terminator("\r\n")
        .map(|row| row.split(',').count());
    assert!(
        widths.clone().all(|width| width == CSV_COLUMNS.len()),
        "{csv}"
    );
    assert!(widths.count() > 4, "{csv}");
    assert!(csv.starts_with("metric,a_median,"));
}

#[test]
fn what_cannot_be_judged_is_the_first_line_of_every_text() {
    let mut found = compared(4_000);
    for run in &mut found.b.runs {
        run.limit = measure::Limit::Generator;
    }
    let first = "Inconclusive: B measured the generator, not the target";
    assert!(text(&found).starts_with(&format!("{first}\n")));
    assert!(markdown(&found).starts_with(&format!("### {first}\n")));
}
