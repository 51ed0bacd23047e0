//! Upper bound of the queries that a lost agent sent and did not report.

use std::time::Duration;

use load::Plan;
use load::arrival::Arrival;
use measure::Counts;

/// More than any worker sends a second, on any machine.
const SENT_QPS_MAX: f64 = 20e6;
/// Standard deviations by which random arrivals exceed their mean in less than one of 10^15 runs.
const DEVIATIONS: f64 = 8.0;

/// What is known of a lost agent.
pub(super) struct Known {
    /// Since the last interval that it reported.
    pub(super) silence: Duration,
    /// Since the start of the measured run.
    pub(super) run: Duration,
    /// What it had counted in warm-up and measured run, as far as it reported.
    pub(super) warmup: Counts,
    pub(super) total: Counts,
}

/// Upper bound of the queries that it sent beside those reported, as one of `agents` agents: the
/// number that was due, or that can be sent in that time.
pub(super) fn sent_max(plans: &[Plan], agents: usize, known: &Known) -> u64 {
    let threads = plans.iter().map(|plan| plan.workers).max();
    let threads = u64::from(threads.unwrap_or(1)).div_ceil(agents as u64);
    let most = SENT_QPS_MAX * threads as f64 * known.silence.as_secs_f64();
    let due = plans.iter().map(|plan| due_max(plan, threads, known.run));
    let due: Option<f64> = due.sum();
    let dealt_with = [&known.warmup, &known.total].map(|counts| {
        // Queries waiting at its last report may have been sent later.
        let not_sent = counts.not_sent.total() - counts.not_sent.run_ended;
        counts.sent + not_sent
    });
    let rest = due.map(|due| due - dealt_with.iter().sum::<u64>() as f64);
    rest.map_or(most, |rest| most.min(rest.max(0.0))).ceil() as u64
}

/// Upper bound of a group's queries that were due at one agent; none if time alone does not make
/// them due, or if they may be sent more than once.
fn due_max(plan: &Plan, threads: u64, run: Duration) -> Option<f64> {
    let Arrival::Open {
        rate_qps, burst, ..
    } = plan.arrival
    else {
        return None;
    };
    if plan.stub.is_some() || plan.tcp_fallback {
        return None;
    }
    let share = threads as f64 / f64::from(plan.workers.max(1));
    let mean = rate_qps * share.min(1.0) * (plan.warmup + run).as_secs_f64();
    let bursts = f64::from(burst) * threads as f64;
    // The arrivals of bursts are random, not the queries within one.
    Some(mean + DEVIATIONS * (mean * f64::from(burst)).sqrt() + 2.0 * bursts)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use load::QuestionSet;
    use proto::Transport;
    use settings::Process;

    use super::*;

    fn counts(sent: u64, waiting: u64) -> Counts {
        let mut counts = Counts {
            sent,
            ..Counts::default()
        };
        counts.not_sent.run_ended = waiting;
        counts
    }

    fn plan(arrival: Arrival) -> Plan {
        let questions = Arc::new(QuestionSet::new());
        Plan {
            arrival,
            workers: 4,
            ..Plan::new(([127, 0, 0, 1], 53).into(), Transport::Udp, questions)
        }
    }

    #[test]
    fn a_schedule_tells_how_many_were_due_and_nothing_else_does() {
        let open = plan(Arrival::Open {
            rate_qps: 2_000.0,
            process: Process::Poisson,
            burst: 1,
        });
        let known = |silence_s, sent| Known {
            silence: Duration::from_secs(silence_s),
            run: Duration::from_secs(10),
            warmup: Counts::default(),
            total: counts(sent, 100),
        };
        // Half of the load of two agents. Due in 10 s: 10,000, and 8 times 100 for random arrivals.
        let most = |known: &Known| sent_max(std::slice::from_ref(&open), 2, known);
        let rest = most(&known(1, 9_000));
        assert!((1_800..1_810).contains(&rest), "{rest}");
        assert_eq!(most(&known(1, 90_000)), 0);
        let closed = plan(Arrival::Closed {
            outstanding: 10,
            rate_qps_max: None,
        });
        let rest = sent_max(&[open, closed], 2, &known(2, 9_000));
        assert_eq!(rest, 80_000_000);
    }
}
