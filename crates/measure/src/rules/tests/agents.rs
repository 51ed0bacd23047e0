//! Agents that were late, beside others that were not: who they are, and what they cost.

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
