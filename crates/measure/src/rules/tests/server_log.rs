//! A log of queries that an observed server writes: by how much its files grew for each query.
//!
//! The log's share of CPU time, or its waits for a disk, are in no kernel counter; a run without it
//! shows them.

use crate::observation::SeriesKind;
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

fn writing(bytes_per_second: f64) -> String {
    let written = [("files.written", SeriesKind::Counter, bytes_per_second)];
    let mut program = program(1.96, 0.99, &written);
    program.facts.product = Some("BIND".into());
    let record = observing(saturated(), &[program]);
    let diagnosis = found_on(&record, "log of the server");
    diagnosis.map_or_else(String::new, |it| {
        let cures = it.cures.iter().map(|cure| cure.how.as_str());
        assert!(cures.clone().any(|how| how == "querylog no;"), "{it:#?}");
        assert!(
            cures.clone().all(|how| !how.contains("log-queries")),
            "{it:#?}"
        );
        it.seen
    })
}

#[test]
fn a_server_whose_files_grow_with_each_query_logs_queries() {
    let queries = saturated().total.counts.sent as f64 / 10.0;
    let seen = writing(110.0 * queries);
    assert!(
        seen.contains("named wrote 110 bytes to files for each query"),
        "{seen}"
    );
    // A line a second.
    assert_eq!(writing(100.0), "");
}
