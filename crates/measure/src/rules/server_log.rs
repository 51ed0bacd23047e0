//! A log of queries that an observed server writes: by how much its files grew for each query.
//!
//! What the log took of its CPU, or for how long it waited for a disk, no counter of the kernel
//! tells; a run without it does.

use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::interval::per;
use crate::notation::decimal;

use super::{Figures, Finding, server_counts};

/// From so many bytes a query on, its files have something of each: a name and an address take
/// more.
const LOGGED_BYTES_MIN: f64 = 20.0;
/// Of fewer queries a line now and then, or what it says of its start, would be as much.
const QUERIES_MIN: u64 = 100;

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let programs = figures.record.programs();
    let program = programs.first()?;
    let queries = server_counts::sent(figures);
    let each = per(program.written_bytes?, queries as f64);
    if each < LOGGED_BYTES_MIN || queries < QUERIES_MIN {
        return None;
    }
    let seen = format!(
        "{} wrote {} bytes to files for each query, as a log of queries does",
        program.name(),
        decimal(each, 0)
    );
    let matters = "a log takes CPU time, and a lock where threads share it; a slow disk stops the \
                   server. How much it takes shows when the same runs without";
    let diagnosis = Diagnosis::new("log of the server", State::Warning, seen, matters);
    let mut cures = vec![
        Cure::named("querylog no;"),
        Cure::new(Place::UnboundConf, "log-queries: no"),
        Cure::new(Place::UnboundConf, "log-replies: no"),
    ];
    if program.product() == "BIND" {
        cures.push(Cure::new(Place::Server, "rndc querylog off"));
    }
    cures.push(Cure::words(
        "switch its log of queries off (CoreDNS: remove the plugin log), and compare",
    ));
    Some(Finding::met(diagnosis.cures(cures)).beside())
}

#[cfg(test)]
mod tests {
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
}
