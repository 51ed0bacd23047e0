//! Queries that left late though no worker was short of CPU: the host stalled them.

use crate::doctor::{Cure, Diagnosis, State};
use crate::limit::Limit;
use crate::notation::{latency, percent};
use crate::scenario::Arrival;

use super::figures::LATENESS_MAX_NS;
use super::{Figures, Finding, Stage, processor};

/// With fewer queries, the p99 is the lateness of one of them.
const LATENESS_QUERIES_MIN: u64 = 200;

/// UDP queries leave when they are due unless the host stalls the worker: over connections they
/// may have to wait for one, which is not the generator's fault.
pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let scenario = &figures.record.scenario;
    let open = !matches!(scenario.arrival, Arrival::Closed { .. });
    let sent = figures.record.total.distributions.send_lateness.count();
    let is_late = figures.lateness_p99_ns > LATENESS_MAX_NS && sent >= LATENESS_QUERIES_MIN;
    let is_known = processor::out_of_cpu(figures).is_some();
    if !open || scenario.transport.has_connections() || !is_late || is_known {
        return None;
    }
    let (_, busy) = figures.busiest_worker().unwrap_or((0, 0.0));
    let (_, waited) = processor::longest_wait(figures);
    let seen = format!(
        "queries were sent up to {} late (p99) although the busiest worker used {} of its CPU and \
         waited for it {} of the time: the host stalled them",
        latency(figures.lateness_p99_ns as f64),
        percent(busy),
        percent(waited)
    );
    let matters = "what is sent late is answered late: part of the latency is this host's";
    let advice = "look for other load on this host, or CPU steal by the hypervisor";
    let diagnosis = Diagnosis::new("lateness", State::Problem, seen, matters)
        .cure(Cure::words(advice))
        .cure(Cure::busiest_processes());
    Some(
        Finding::met(diagnosis)
            .advising(advice)
            .limits(Stage::Generator, Limit::Generator)
            .only_if(processor::explains_losses(figures)),
    )
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn stalled_host_is_the_generators_limit() {
        let mut record = in_time(10_000.0);
        late(&mut record, 4 * MS);
        judged(
            &record,
            Limit::Generator,
            "the host stalled them",
            "other load",
        );
    }

    #[test]
    fn late_generator_is_not_blamed_for_what_others_lost() {
        let mut record = in_time(10_000.0);
        late(&mut record, 4 * MS);
        lose(&mut record, 50_000);
        assert_ne!(judge(&record).limit, Limit::Generator);
        // What this host dropped on the way back explains it.
        record.network.receive_drops = 50_000;
        assert_eq!(judge(&record).limit, Limit::Generator);
        // So does what it had no time to send, if that is most of what is missing.
        record.network.receive_drops = 0;
        change_last(&mut record, |interval| {
            interval.counts.offered += 50_000;
            interval.counts.not_sent.run_ended += 50_000;
        });
        assert_eq!(judge(&record).limit, Limit::Generator);
    }

    #[test]
    fn a_host_that_stalls_its_workers_is_to_be_looked_at() {
        let mut record = in_time(10_000.0);
        late(&mut record, 4 * MS);
        told(&record, "lateness").problem("the host stalled them", "ps -eo pcpu");
    }
}
