//! Why agents were lost, as Kubernetes knows it: their lead only finds that nothing more comes.

use lab::kubernetes::{Pod, PodState};
use measure::RunRecord;

/// A file of a result: a run record says what became of the pods of its lost agents.
pub(super) fn with_causes(content: Vec<u8>, pods: &[Pod]) -> Vec<u8> {
    let has_failed = |pod: &Pod| matches!(pod.state, PodState::Failed(_));
    if !pods.iter().any(has_failed) {
        return content;
    }
    let text = std::str::from_utf8(&content).ok();
    let record = text.and_then(|text| RunRecord::from_json(text).ok());
    let record = record.and_then(|record| named(record, pods));
    record.map_or(content, |record| record.to_json().into_bytes())
}

/// None if it has lost no agent whose pod has failed.
fn named(mut record: RunRecord, pods: &[Pod]) -> Option<RunRecord> {
    let agents = &record.agents;
    let cause = |number: u64| {
        let position = usize::try_from(number).ok()?.checked_sub(1)?;
        let pod = agents.get(position)?.placement.as_ref()?.pod.as_ref()?;
        match &pods.iter().find(|it| it.name == *pod)?.state {
            PodState::Failed(how) => Some(how),
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
    is_known.then_some(record)
}

#[cfg(test)]
mod tests {
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
        let record = named(record(), &pods).unwrap();
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

    #[test]
    fn other_files_stay_as_they_are() {
        let whole = record().to_json().into_bytes();
        let failed = PodState::Failed("Evicted".to_owned());
        for pods in [
            [pod("x-agents-1", PodState::Runs)],
            [pod("x-agents-0", failed)],
        ] {
            assert_eq!(with_causes(whole.clone(), &pods), whole);
            for content in [&b"metric,value\n"[..], b"\xff", b""] {
                assert_eq!(with_causes(content.to_vec(), &pods), content);
            }
        }
    }
}
