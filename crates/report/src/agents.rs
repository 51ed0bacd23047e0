//! The agents of a run that was led on several hosts, a row each: text, pages and Markdown.

use measure::notation::{count, latency, percent};
use measure::{RunRecord, WorkerFacts};

/// The columns; the first two are words, all others figures.
pub(crate) const COLUMNS: [&str; 8] = [
    "agent",
    "node",
    "began late by",
    "sent",
    "late by (p99)",
    "busiest worker",
    "clock known to",
    "clock drifted",
];

/// A row for each agent, those that were latest first; none if it was led on one host.
pub(crate) fn rows(record: &RunRecord) -> Vec<[String; 8]> {
    let named = record.agents.iter().enumerate();
    let named = named.filter(|(_, agent)| agent.name.is_some());
    let mut rows: Vec<(u64, [String; 8])> = named
        .map(|(position, agent)| {
            let of_agent = |worker: &&WorkerFacts| worker.agent == Some(position as u64);
            let workers: Vec<&WorkerFacts> = record.workers.iter().filter(of_agent).collect();
            let sent = workers.iter().map(|worker| worker.queries).sum();
            let late = workers
                .iter()
                .filter_map(|it| it.send_lateness_p99_ns)
                .max();
            let busy = workers.iter().map(|it| it.busy_share()).fold(0.0, f64::max);
            let host = record.hosts.get(agent.host as usize);
            let node = host.and_then(|host| Some(host.identity.as_ref()?.node.clone()));
            let clock = agent.clock;
            let row = [
                agent.name.clone().unwrap_or_default(),
                node.unwrap_or_else(|| "-".to_owned()),
                latency(agent.start_late_ns as f64),
                count(sent),
                late.map_or_else(|| "-".to_owned(), |ns| latency(ns as f64)),
                percent(busy),
                clock.map_or_else(dash, |clock| latency(clock.start_bound_ns as f64)),
                clock.map_or_else(dash, |clock| {
                    let sign = if clock.drift_ns < 0 { "-" } else { "" };
                    format!("{sign}{}", latency(clock.drift_ns.unsigned_abs() as f64))
                }),
            ];
            (late.unwrap_or_default(), row)
        })
        .collect();
    rows.sort_by_key(|(late, _)| std::cmp::Reverse(*late));
    rows.into_iter().map(|(_, row)| row).collect()
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use measure::record::{Agent, AgentClock};

    use super::*;

    #[test]
    fn agents_are_listed_with_the_latest_first() {
        let mut record = crate::example::udp_self_test();
        assert_eq!(rows(&record), Vec::<[String; 8]>::new());
        let (agent, worker) = (
            Agent {
                id: "1".into(),
                start_late_ns: 250_000,
                host: 0,
                began_us: 0,
                window_us: 1,
                clock_error_us: None,
                name: None,
                clock: Some(AgentClock {
                    start_bound_ns: 18_000,
                    end_bound_ns: 20_000,
                    drift_ns: -1_500,
                }),
            },
            record.workers[0].clone(),
        );
        (record.agents, record.workers) = (Vec::new(), Vec::new());
        for (position, late_ns) in [200_000, 41_000_000].into_iter().enumerate() {
            record.agents.push(Agent {
                name: Some(format!("node-{position}")),
                ..agent.clone()
            });
            record.workers.push(WorkerFacts {
                agent: Some(position as u64),
                send_lateness_p99_ns: Some(late_ns),
                ..worker.clone()
            });
        }
        let rows = rows(&record);
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0][0].as_str(), rows[0][4].as_str()),
            ("node-1", "41.00 ms")
        );
        assert_eq!(
            (rows[1][0].as_str(), rows[1][7].as_str()),
            ("node-0", "-1.500 us")
        );
    }
}
