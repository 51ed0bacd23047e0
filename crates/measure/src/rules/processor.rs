//! Workers without CPU time to spare: generator-bound results read as limits of the server.

use crate::doctor::{Cure, Diagnosis, State};
use crate::limit::Limit;
use crate::notation::{decimal, latency, percent};
use crate::scenario::Arrival;

use super::figures::{BUSY_SHARE_WHEN_LATE, LATENESS_MAX_NS};
use super::{Figures, Finding, Stage, losses};

/// Above this share of a CPU a closed-loop worker has no headroom.
const BUSY_SHARE_MAX: f64 = 0.97;
/// From this share of its CPU on, a worker may soon be the limit.
const BUSY_WARNING: f64 = 0.9;
/// Share of the time that a closed loop's worker may wait for its CPU before it shapes the result.
const CPU_WAIT_SHARE_MAX: f64 = 0.10;
/// Share of the time from which on waiting for its CPU accounts for queries that left late.
const CPU_WAIT_SHARE_LATE: f64 = 0.05;

const TOPIC: &str = "generator's CPU";
const MATTERS: &str =
    "a generator without CPU time to spare measures itself: rate and latency are its own";

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    if let Some(finding) = out_of_cpu(figures) {
        return Some(finding.only_if(explains_losses(figures)));
    }
    let (worker, busy) = figures.busiest_worker().filter(|it| it.1 >= BUSY_WARNING)?;
    let worker = figures.record.worker_name(worker);
    let seen = format!("{worker} used {} of its CPU", percent(busy));
    let cure = Cure::words(more_cpu(figures));
    let diagnosis = Diagnosis::new(TOPIC, State::Warning, seen, MATTERS);
    Some(Finding::met(diagnosis.cure(cure)))
}

/// A generator that is late sends late, and may fail to read what came: it does not make others
/// lose what it sent. A target on the same host may be kept from its CPU by the same.
pub(super) fn explains_losses(figures: &Figures<'_>) -> bool {
    let is_host = figures.target_shares_cpus() && longest_wait(figures).1 >= CPU_WAIT_SHARE_MAX;
    is_host || !losses::are_beyond_this_tool(figures)
}

/// Position of the worker that waited longest for its CPU, and the share of the time.
pub(super) fn longest_wait(figures: &Figures<'_>) -> (usize, f64) {
    let shares = figures.record.workers.iter().map(|it| it.cpu_wait_share());
    let longest = shares.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
    longest.unwrap_or((0, 0.0))
}

fn decided(seen: String, advice: &str) -> Finding {
    let diagnosis = Diagnosis::new(TOPIC, State::Problem, seen, MATTERS);
    Finding::met(diagnosis.cure(Cure::words(advice))).limits(Stage::Generator, Limit::Generator)
}

/// A worker that had no CPU left, or had to share it, as a finding that decides.
pub(super) fn out_of_cpu(figures: &Figures<'_>) -> Option<Finding> {
    let closed = matches!(figures.record.scenario.arrival, Arrival::Closed { .. });
    let late = figures.lateness_p99_ns > LATENESS_MAX_NS;
    let limit = match (closed, late) {
        (true, _) => BUSY_SHARE_MAX,
        (false, true) => BUSY_SHARE_WHEN_LATE,
        (false, false) => return None,
    };
    let (worker, busy) = figures.busiest_worker()?;
    if busy >= limit {
        let lateness = if closed {
            String::new()
        } else {
            let p99 = latency(figures.lateness_p99_ns as f64);
            format!(" and queries were sent up to {p99} late (p99)")
        };
        let worker = figures.record.worker_name(worker);
        let evidence = format!(
            "{worker} used {} of its CPU{}{lateness}: this tool, not the target, set the \
             rate",
            percent(busy),
            for_handshakes(figures)
        );
        return Some(decided(evidence, &more_cpu(figures)));
    }
    let (worker, waited) = longest_wait(figures);
    let busy = figures.record.workers.get(worker)?.busy_share();
    let short_of_cpu = waited >= CPU_WAIT_SHARE_LATE && busy + waited >= limit;
    // In a closed loop every wait holds up the next query, however idle the worker is otherwise;
    // in an open loop those that it held up left late.
    let hindered = waited >= CPU_WAIT_SHARE_MAX || late && waited >= CPU_WAIT_SHARE_LATE;
    if !short_of_cpu && !hindered {
        return None;
    }
    let worker = figures.record.worker_name(worker);
    let evidence = format!(
        "{worker} waited for its CPU {} of the time: something else runs on it{}",
        percent(waited),
        match late && !closed {
            true => format!(
                ", and queries were sent up to {} late (p99)",
                latency(figures.lateness_p99_ns as f64)
            ),
            false => String::new(),
        }
    );
    let advice = "run the target on other cores or another machine: --cpus LIST";
    Some(decided(evidence, advice))
}

/// From one handshake in that many queries on, handshakes cost more CPU than the queries: over 200
/// us each with a certificate, against some 5 us a query.
const QUERIES_PER_HANDSHAKE_MAX: u64 = 40;

/// What a busy worker was busy with, where connections are short-lived.
fn for_handshakes(figures: &Figures<'_>) -> String {
    if figures.record.asks_nothing() {
        let opened = decimal(figures.record.opened_per_second(), 1);
        return format!(", with {opened} connections a second");
    }
    let handshakes = figures.counts.connections.handshakes.total();
    if handshakes == 0 || figures.counts.sent / handshakes > QUERIES_PER_HANDSHAKE_MAX {
        return String::new();
    }
    format!(
        ", with {} handshakes a second beside the queries",
        decimal(figures.record.handshakes_per_second(), 1)
    )
}

/// How to get more CPU: another worker where a core is left, another machine where none is.
pub(super) fn more_cpu(figures: &Figures<'_>) -> String {
    let workers = figures.record.scenario.workers;
    let cores: u64 = figures
        .record
        .hosts
        .iter()
        .filter_map(|host| host.cores)
        .sum();
    let clients = figures.record.scenario.clients;
    if workers >= clients {
        format!(
            "allow more workers than {workers}: --clients {0} --workers {0}",
            workers + 1
        )
    } else if cores == 0 || workers < cores {
        format!(
            "give the generator another worker: --workers {}",
            workers + 1
        )
    } else {
        "no core is left here: run from a second machine too and merge the records".into()
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn busy_worker_in_closed_loop_is_the_generators_limit() {
        let mut record = saturated();
        busy(&mut record, 0.985);
        let evidence = "worker 0 used 98.5 % of its CPU: this tool, not the target, set the rate";
        judged(
            &record,
            Limit::Generator,
            evidence,
            "give the generator another worker: --workers 2",
        );
        record.hosts[0].cores = Some(1);
        judged(
            &record,
            Limit::Generator,
            evidence,
            "run from a second machine",
        );
    }

    #[test]
    fn worker_that_waits_for_its_cpu_is_the_generators_limit() {
        let mut record = saturated();
        busy(&mut record, 0.5);
        record.workers[0].cpu_wait_ns = Some(48 * record.measured_ns / 100);
        let evidence = "worker 0 waited for its CPU 48.0 % of the time: something else runs on it";
        judged(&record, Limit::Generator, evidence, "--cpus");
    }

    #[test]
    fn closed_loop_worker_that_often_waits_for_its_cpu_is_the_generators_limit_though_not_busy() {
        let mut record = saturated();
        busy(&mut record, 0.5);
        record.workers[0].cpu_wait_ns = Some(12 * record.measured_ns / 100);
        let evidence = "worker 0 waited for its CPU 12.0 % of the time: something else runs on it";
        judged(&record, Limit::Generator, evidence, "--cpus");
    }

    #[test]
    fn open_loop_worker_that_is_late_and_busy_is_the_generators_limit() {
        let mut record = in_time(10_000.0);
        late(&mut record, 4 * MS);
        busy(&mut record, 0.92);
        let evidence = "worker 0 used 92.0 % of its CPU and queries were sent up to 4.00";
        judged(&record, Limit::Generator, evidence, "--workers 2");
    }

    #[test]
    fn busy_open_loop_worker_that_is_on_time_is_not_the_limit() {
        let mut record = in_time(10_000.0);
        busy(&mut record, 0.99);
        judged(
            &record,
            Limit::Rate,
            "100.00 % of the queries offered at 10,000.0 qps",
            "raise --rate",
        );
    }

    #[test]
    fn a_worker_that_waited_for_its_cpu_is_not_said_to_have_had_enough() {
        let mut record = in_time(10_000.0);
        late(&mut record, 4 * MS);
        busy(&mut record, 0.3);
        record.workers[0].cpu_wait_ns = Some(34 * record.measured_ns / 100);
        let evidence =
            "worker 0 waited for its CPU 34.0 % of the time: something else runs on it, and";
        judged(&record, Limit::Generator, evidence, "--cpus");
        // The share is never more than all of the time.
        record.workers[0].cpu_wait_ns = Some(2 * record.measured_ns);
        judged(&record, Limit::Generator, "100.0 % of the time", "--cpus");
    }

    #[test]
    fn busy_worker_with_short_lived_connections_is_told_from_one_with_queries() {
        let mut record = churn(&[(90 * MS, 1_000)]);
        busy(&mut record, 0.985);
        let evidence = "worker 0 used 98.5 % of its CPU, with 1,000.0 handshakes a second beside \
                        the queries: this tool, not the target, set the rate";
        judged(&record, Limit::Generator, evidence, "--workers 2");
    }

    #[test]
    fn a_worker_that_is_nearly_busy_is_warned_of() {
        let mut record = saturated();
        busy(&mut record, 0.99);
        let topic = "generator's CPU";
        told(&record, topic).problem("worker 0 used 99.0 % of its CPU", "--workers 2");
        busy(&mut record, 0.92);
        told(&record, topic).warning("worker 0 used 92.0 % of its CPU", "--workers 2");
    }
}
