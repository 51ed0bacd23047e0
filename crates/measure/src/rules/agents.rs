//! Agents that were late, beside others that were not: who they are, and what they cost.

use crate::doctor::{Cure, Diagnosis, State};
use crate::facts::WorkerFacts;
use crate::notation::{counted, latency, percent};

use super::figures::LATENESS_MAX_NS;
use super::{Figures, Finding};

/// Agents that are named in a sentence.
const NAMED_MAX: usize = 5;
/// An agent is later than the others from so many times their lateness on.
const TIMES: u64 = 4;

/// How late the queries of an agent left, and how busy it was, by its worst worker.
#[derive(Clone, Default)]
struct Worst {
    lateness_ns: u64,
    busy: f64,
    waited: f64,
}

impl Worst {
    fn add(&mut self, worker: &WorkerFacts) {
        let lateness_ns = worker.send_lateness_p99_ns.unwrap_or_default();
        self.lateness_ns = self.lateness_ns.max(lateness_ns);
        self.busy = self.busy.max(worker.busy_share());
        self.waited = self.waited.max(worker.cpu_wait_share());
    }
}

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let record = figures.record;
    let mut each = vec![Worst::default(); record.agents.len()];
    for worker in &record.workers {
        each.get_mut(worker.agent? as usize)?.add(worker);
    }
    let mut sorted: Vec<u64> = each.iter().map(|it| it.lateness_ns).collect();
    sorted.sort_unstable();
    let usual_ns = *sorted.get((sorted.len().checked_sub(1)?) / 2)?;
    let limit_ns = LATENESS_MAX_NS.max(TIMES * usual_ns);
    let is_late = |worst: &Worst| worst.lateness_ns > limit_ns;
    let late = each.iter().enumerate().filter(|(_, it)| is_late(it));
    let mut late: Vec<(usize, &Worst)> = late.collect();
    if late.is_empty() || each.len() < 2 {
        return None;
    }
    late.sort_by_key(|(_, it)| std::cmp::Reverse(it.lateness_ns));
    let others = each.iter().filter(|it| !is_late(it));
    let others = others.map(|it| it.lateness_ns).max().unwrap_or_default();
    let told = late.iter().take(NAMED_MAX).map(|(agent, worst)| {
        let name = record.agents[*agent].name.as_deref().unwrap_or("?");
        let (busy, waited) = (percent(worst.busy), percent(worst.waited));
        format!(
            "{name} by {} (p99; a worker used {busy} of its CPU and waited for it {waited} of the \
             time)",
            latency(worst.lateness_ns as f64)
        )
    });
    let told: Vec<String> = told.collect();
    let more = match late.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let seen = format!(
        "{} of {} sent late: {}{more}; the others by at most {}",
        late.len(),
        counted(each.len() as u64, "agent"),
        told.join(", "),
        latency(others as f64)
    );
    let matters = "what a slow host sends late is answered late: its part of the latency is not \
                   the target's";
    let cure = "leave it out of --hosts, or look there with `throng doctor`";
    let diagnosis = Diagnosis::new("agents", State::Warning, seen, matters);
    Some(Finding::met(diagnosis.cure(Cure::words(cure))).beside())
}

#[cfg(test)]
mod tests {
    use crate::record::Agent;
    use crate::rules::situations::*;

    /// A run of agents whose queries left so late.
    fn fleet(lateness_ns: &[u64]) -> RunRecord {
        let mut record = in_time(10_000.0);
        let (agent, worker) = (record.agents[0].clone(), record.workers[0].clone());
        (record.agents, record.workers) = (Vec::new(), Vec::new());
        for (position, lateness_ns) in lateness_ns.iter().enumerate() {
            record.agents.push(Agent {
                name: Some(format!("node-{position}")),
                ..agent.clone()
            });
            let mut worker = worker.clone();
            worker.send_lateness_p99_ns = Some(*lateness_ns);
            worker.agent = Some(position as u64);
            record.workers.push(worker);
        }
        record.generators = lateness_ns.len() as u64;
        record
    }

    #[test]
    fn the_agents_that_were_late_are_named() {
        let found = told(&fleet(&[100_000, 41 * MS, 200_000]), "agents");
        for words in ["1 of 3 agents", "node-1 by 41.00 ms", "at most 200.0 us"] {
            assert!(found.seen.contains(words), "{words}: {}", found.seen);
        }
        assert!(found.cures[0].how.contains("--hosts"), "{found:?}");
    }

    #[test]
    fn agents_that_are_alike_are_not_told_apart() {
        for lateness_ns in [
            &[100_000, 900_000][..],
            &[5 * MS, 6 * MS, 7 * MS],
            &[9 * MS],
        ] {
            assert_eq!(found_on(&fleet(lateness_ns), "agents"), None);
        }
    }
}
