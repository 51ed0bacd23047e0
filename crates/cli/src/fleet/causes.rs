//! What Kubernetes knows of a run and its lead does not: why agents were lost or absent, and whose
//! nodes they share.

use std::net::IpAddr;

use lab::agents::Refusal;
use lab::kubernetes::{Backend, Pod, PodState};
use measure::{RunRecord, absent};

use super::neighbours;

/// A file of a result: a run record says what became of the pods of its lost and absent agents,
/// and warns of nodes that agents share with their target. `backends` are the pods that answer at
/// an address.
pub(super) fn annotated(
    content: Vec<u8>,
    pods: &[Pod],
    backends: &mut dyn FnMut(IpAddr) -> Vec<Backend>,
) -> Vec<u8> {
    let text = std::str::from_utf8(&content).ok();
    let Some(mut record) = text.and_then(|text| RunRecord::from_json(text).ok()) else {
        return content;
    };
    let names_lost = name_lost(&mut record, pods).is_some();
    let names_absent = name_absent(&mut record, pods).is_some();
    let shared = neighbours::warnings(&record, backends);
    if !names_lost && !names_absent && shared.is_empty() {
        return content;
    }
    record.warnings.extend(shared);
    record.to_json().into_bytes()
}

/// None if it has lost no agent whose pod has failed.
fn name_lost(record: &mut RunRecord, pods: &[Pod]) -> Option<()> {
    let agents = &record.agents;
    let cause = |number: u64| {
        let position = usize::try_from(number).ok()?.checked_sub(1)?;
        let pod = agents.get(position)?.placement.as_ref()?.pod.as_ref()?;
        match &pods.iter().find(|it| it.name == *pod)?.state {
            PodState::Failed(how) => Some(how.as_str()),
            PodState::Unheard => Some("its node does not answer"),
            _ => None,
        }
    };
    let mut is_known = false;
    for lost in &mut record.degraded.as_mut()?.lost {
        let Some(cause) = cause(lost.agent) else {
            continue;
        };
        is_known = true;
        let how = format!("{}; Kubernetes: {cause}", lost.how);
        let of_agent = format!("agent {} of ", lost.agent);
        let warnings = record.warnings.iter_mut();
        for warning in warnings.filter(|it| it.starts_with(&of_agent)) {
            *warning = warning.replace(&format!("({})", lost.how), &format!("({how})"));
        }
        lost.how = how;
    }
    is_known.then_some(())
}

/// None if all agents came.
fn name_absent(record: &mut RunRecord, pods: &[Pod]) -> Option<()> {
    let present = record.agent_count;
    let before = absent::warning(&record.absent_agents, present)?;
    for agent in &mut record.absent_agents {
        agent.why = Some(absence(agent.index, pods));
    }
    let named = absent::warning(&record.absent_agents, present)?;
    let warnings = record.warnings.iter_mut();
    let old = warnings.filter(|it| **it == before);
    old.for_each(|it| it.clone_from(&named));
    Some(())
}

/// Why the agent with this index was not there when its run began.
fn absence(index: u32, pods: &[Pod]) -> String {
    let is_late = |how: &str| how.ends_with(&format!("exit code {}", Refusal::LATE_EXIT_CODE));
    let mut own = pods.iter().filter(|pod| pod.index == Some(index));
    match own.next_back().map(|pod| &pod.state) {
        None | Some(PodState::Unmade(_)) => "no pod: `kubectl describe job` shows why".to_owned(),
        Some(PodState::Refused(why)) => format!("no pod: {why}"),
        Some(PodState::Waits(why) | PodState::Starts(why) | PodState::Fails(why)) => {
            format!("pod pending: {why}")
        }
        Some(PodState::Failed(how)) if !is_late(how) => format!("pod failed: {how}"),
        Some(PodState::Unheard) => "its node does not answer".to_owned(),
        Some(_) => "pod came after the start".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use measure::AbsentAgent;
    use measure::degraded::{Degraded, LostAgent};
    use measure::record::{Agent, Placement};
    use testing::example;

    use super::*;

    /// Of three agents, each in a pod of its own, the second and the third are lost.
    fn record() -> RunRecord {
        let mut record = example::record(vec![example::interval(0, &[(1_000_000, 500)])]);
        let agent = |number: u32| Agent {
            id: number.to_string(),
            placement: Some(Placement {
                pod: Some(format!("x-agents-{number}")),
                ..Placement::default()
            }),
            ..record.agents[0].clone()
        };
        record.agents = (0..3).map(agent).collect();
        let lost = |agent| LostAgent {
            agent,
            how: "said nothing for 10 s on node-7".to_owned(),
            noticed_ns: 1,
            known_until_ns: 0,
            sent: 0,
            fate_unknown_max: 0,
        };
        let degraded = Degraded {
            lost: vec![lost(2), lost(3)],
            ..Degraded::default()
        };
        record.warnings = degraded.warnings(1_000_000_000, 3);
        record.degraded = Some(degraded);
        record
    }

    fn pod(name: &str, state: PodState) -> Pod {
        Pod {
            name: name.to_owned(),
            component: "agent".to_owned(),
            run: "x".to_owned(),
            node: "node-7".to_owned(),
            index: name.rsplit('-').next().and_then(|it| it.parse().ok()),
            min_agents: None,
            state,
        }
    }

    #[test]
    fn lost_agents_have_the_cause_that_kubernetes_names() {
        let killed = PodState::Failed("OOMKilled, exit code 137".to_owned());
        let pods = [
            pod("x-agents-0", PodState::Runs),
            pod("x-agents-1", killed),
            pod("x-agents-2", PodState::Runs),
        ];
        let mut record = record();
        name_lost(&mut record, &pods).unwrap();
        let how: Vec<&str> = (record.degraded.iter())
            .flat_map(|it| it.lost.iter().map(|lost| lost.how.as_str()))
            .collect();
        let silent = "said nothing for 10 s on node-7";
        let killed = format!("{silent}; Kubernetes: OOMKilled, exit code 137");
        assert_eq!(how, [killed.as_str(), silent]);
        let (first, second) = (&record.warnings[0], &record.warnings[1]);
        assert!(first.contains(&format!("({killed})")), "{first}");
        assert!(second.contains(&format!("({silent})")), "{second}");
    }

    /// Where the cluster knows of no target.
    fn plain(content: Vec<u8>, pods: &[Pod]) -> Vec<u8> {
        annotated(content, pods, &mut |_| Vec::new())
    }

    #[test]
    fn absent_agents_have_the_state_of_their_pods() {
        let mut record = record();
        let absent = [3, 4, 5, 6, 7].map(|index| AbsentAgent { index, why: None });
        record.absent_agents = absent.to_vec();
        record.agent_count = 3;
        record.warnings = Vec::from_iter(absent::warning(&record.absent_agents, 3));
        let unscheduled = "Unschedulable: 0/3 nodes are available";
        let failed = |code: u8| PodState::Failed(format!("Error, exit code {code}"));
        let pods = [
            pod("x-agents-0", PodState::Succeeded),
            pod("x-agents-3", PodState::Waits(unscheduled.to_owned())),
            pod("x-agents-4", failed(96)),
            pod("x-agents-6", failed(2)),
            pod(
                "x-agents-7",
                PodState::Refused("exceeded quota: small".to_owned()),
            ),
        ];
        name_absent(&mut record, &pods).unwrap();
        let causes = record.absent_agents.iter();
        let causes: Vec<&str> = causes.filter_map(|it| it.why.as_deref()).collect();
        let pending = format!("pod pending: {unscheduled}");
        let expected = [
            pending.as_str(),
            "pod came after the start",
            "no pod: `kubectl describe job` shows why",
            "pod failed: Error, exit code 2",
            "no pod: exceeded quota: small",
        ];
        assert_eq!(causes, expected);
        let [warning] = record.warnings.as_slice() else {
            panic!("{:?}", record.warnings)
        };
        assert!(
            warning.contains(&format!("3 (pod pending: {unscheduled})")),
            "{warning}"
        );
    }

    #[test]
    fn other_files_stay_as_they_are() {
        let whole = record().to_json().into_bytes();
        let failed = PodState::Failed("Evicted".to_owned());
        for pods in [
            [pod("x-agents-1", PodState::Runs)],
            [pod("x-agents-0", failed)],
        ] {
            assert_eq!(plain(whole.clone(), &pods), whole);
            for content in [&b"metric,value\n"[..], b"\xff", b""] {
                assert_eq!(plain(content.to_vec(), &pods), content);
            }
        }
    }
}
