//! Queries that waited because connections may carry only so many at once.

use crate::doctor::{Cure, Diagnosis, State};
use crate::notation::{count, counted, share};
use crate::scenario::Transport;

use super::{Figures, Finding};

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let waited = figures.counts.waited_for_stream;
    let (all, each) = figures.carried_max().filter(|_| waited > 0)?;
    let clients = figures.record.scenario.clients;
    let seen = format!(
        "{} of the queries waited until their connection had carried others: {} with {} queries \
         at once carry {}",
        share(waited, figures.counts.offered),
        counted(clients, "connection"),
        count(each),
        count(all)
    );
    let matters = "latency from the scheduled instant includes that wait";
    let cure = Cure::throng(format!("--clients {}", 4 * clients));
    let diagnosis = Diagnosis::new("streams", State::Warning, seen, matters).cure(cure);
    let statement = Cure::named("http-streams-per-connection 1000;");
    let is_http2 = figures.record.scenario.transport == Transport::Doh2;
    let diagnosis = diagnosis.cures(is_http2.then_some(statement));
    Some(Finding::met(diagnosis).beside())
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn queries_that_waited_for_a_stream_are_told_beside_the_verdict() {
        let record = limited_by_streams(&[(9_900_000, 1), (10 * MS, 999)]);
        let verdict = judge(&record);
        let waited = "50.00 % of the queries waited until their connection had carried others: 10 \
                      connections with 10 queries at once carry 100";
        assert!(
            verdict.evidence.iter().any(|line| line == waited),
            "{verdict:#?}"
        );
    }
}
