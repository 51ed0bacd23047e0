//! Responses that came after their queries had timed out: the target answers, later than is waited
//! for.

use crate::doctor::{Cure, Diagnosis, State};
use crate::interval::per;
use crate::limit::Limit;
use crate::notation::{counted, latency, share};

use super::{Figures, Finding, Stage};

/// From this share of the queries that timed out on, the timeout is what lost them.
const MOST: f64 = 0.5;
/// How much longer to wait.
const LONGER: u64 = 4;

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let counts = figures.counts;
    if per(counts.late as f64, counts.timeouts as f64) < MOST {
        return None;
    }
    let timeout_ns = figures.record.scenario.timeout_ns;
    let seen = format!(
        "{} came after the timeout of {} ({} of the queries that timed out): the target answers, \
            but too late",
        counted(counts.late, "response"),
        latency(timeout_ns as f64),
        share(counts.late, counts.timeouts)
    );
    let matters = "a query that times out is lost, even if a response comes later: latency beyond \
        the timeout is not in the figures";
    let longer = timeout_ns.saturating_mul(LONGER);
    let cure = Cure::throng(format!("--timeout {}ms", longer.div_ceil(1_000_000)));
    let diagnosis = Diagnosis::new("timeout", State::Problem, seen, matters);
    let found = Finding::met(diagnosis.cure(cure)).beside();
    let is_all = counts.responses == 0;
    Some(
        found
            .limits(Stage::TooLittle, Limit::Server)
            .only_if(is_all),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::situations::*;

    #[test]
    fn most_of_what_timed_out_came_later_or_it_is_not_told() {
        let mut record = in_time(10_000.0);
        lose(&mut record, 1_000);
        change_last(&mut record, |interval| interval.counts.late += 499);
        assert!(found(&Figures::of(&record)).is_none());
        change_last(&mut record, |interval| interval.counts.late += 1);
        let found = found(&Figures::of(&record)).expect("is found");
        assert_eq!(found.limit(), None);
        let seen = "500 responses came after the";
        found.diagnosis.problem(seen, "--timeout 20000ms");
    }

    #[test]
    fn responses_that_are_all_too_late_are_the_servers_limit() {
        let mut record = record((0..10).map(|index| interval(index, &[])).collect());
        lose(&mut record, 1_000);
        change_last(&mut record, |interval| interval.counts.late += 900);
        judged(&record, Limit::Server, "900 responses", "--timeout");
    }
}
