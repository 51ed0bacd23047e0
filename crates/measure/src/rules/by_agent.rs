//! Which rule concerns which of several agents.

use super::Judgement;
use crate::record::RunRecord;
use crate::symptoms::host::SomeHosts;
use crate::symptoms::{Symptom, Symptoms};

/// For each agent of several, the first rule of the table that names it.
pub(crate) fn rules_of_agents(record: &RunRecord) -> Vec<Option<&'static str>> {
    let mut found = vec![None; record.agents.len()];
    if found.len() < 2 {
        return found;
    }
    let judgement = Judgement::of(record);
    for spoken in &judgement.spoken {
        let shows = spoken.rule.shows.iter();
        for agent in shows.flat_map(|it| agents_of(&judgement.symptoms, *it)) {
            if let Some(rule @ None) = found.get_mut(agent) {
                *rule = Some(spoken.rule.name);
            }
        }
    }
    found
}

/// The agents by position that show a symptom by themselves.
fn agents_of(symptoms: &Symptoms<'_>, symptom: Symptom) -> Vec<usize> {
    let record = symptoms.figures.record;
    let own = |agents: Option<&Vec<usize>>| agents.cloned().unwrap_or_default();
    // Figures of a host with all agents do not distinguish them.
    let at = |hosts: Option<&SomeHosts>| match (record.hosts.len(), hosts) {
        (0 | 1, _) | (_, None) => Vec::new(),
        (_, Some(hosts)) => hosts.agents(record),
    };
    match symptom {
        Symptom::LossesOfOneAgent => {
            let it = symptoms.losses_of_one_agent.as_ref();
            it.map(|it| it.agent).into_iter().collect()
        }
        Symptom::NoResources => own(symptoms.no_resources.as_ref().map(|it| &it.agents)),
        Symptom::OutOfCpu => own(symptoms.out_of_cpu.as_ref().map(|it| &it.agents)),
        Symptom::LateSends => own(symptoms.late_sends.as_ref().map(|it| &it.agents)),
        Symptom::LateAgents => {
            let late = symptoms.late_agents.iter().flat_map(|it| &it.late);
            late.map(|(agent, _)| *agent).collect()
        }
        Symptom::WaitsInHost => own(symptoms.waits_in_host.as_ref().map(|it| &it.agents)),
        Symptom::NoRoute => own(symptoms.no_route.as_ref().map(|it| &it.0.agents)),
        Symptom::PortClosed => own(symptoms.port_closed.as_ref().map(|it| &it.0.agents)),
        Symptom::SendsRefused => {
            own((symptoms.sends_refused.as_ref()).map(|it| &it.queries.agents))
        }
        Symptom::OwnReceiveDrops => own(symptoms.own_receive_drops.as_ref().map(|it| &it.agents)),
        Symptom::FramesDroppedBeyond => {
            own(symptoms.frames_dropped_beyond.as_ref().map(|it| &it.agents))
        }
        Symptom::Retransmissions => own(symptoms.retransmissions.as_ref().map(|it| &it.agents)),
        Symptom::QuotaUsed => at(symptoms.quota_used.as_ref().map(|it| &it.at)),
        Symptom::Steal => at(symptoms.steal.as_ref().map(|it| &it.at)),
        Symptom::OwnSendDrops => at(symptoms.own_send_drops.as_ref().map(|it| &it.at)),
        Symptom::BacklogDrops => at(symptoms.backlog_drops.as_ref().map(|it| &it.at)),
        Symptom::FlowsRefused => at(symptoms.flows_refused.as_ref().map(|it| &it.at)),
        _ => Vec::new(),
    }
}
