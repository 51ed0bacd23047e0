//! What becomes of the pods of a fleet while a command waits for them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use lab::kubernetes::{Cluster, ClusterError, Pod, PodState};

use super::said::VERSION;
use crate::failure::Failure;

/// How a container has ended whose program was given what it does not know.
const USAGE: &str = "exit code 2";
/// What Kubernetes says of a container whose program is not in the image.
pub(super) const NO_PROGRAM: &str = "exec: \"";
/// How often they are looked at.
const PODS_EVERY: Duration = Duration::from_secs(2);
/// How long a pod may not have been made before its Job is asked why: most are made meanwhile.
const UNMADE_MAX: Duration = Duration::from_secs(4);
/// How long a cluster, or the lead's node, may be silent before the command ends.
const SILENCE_MAX: Duration = Duration::from_mins(5);

/// Looks now and then whether a pod cannot start.
pub(super) struct Watch {
    looked: Option<Instant>,
    /// The cluster has answered this command.
    has_answered: bool,
    /// Since when the cluster does not answer.
    silent: Option<Instant>,
    /// Since when each pod is in its state.
    since: Vec<(Pod, Instant)>,
    /// Pods that cannot start and are not needed, which the user knows of.
    noted: BTreeSet<String>,
    /// Agents that have run: what becomes of them later is the lead's to judge.
    ran: BTreeSet<u32>,
}

/// Why a run whose lead Kubernetes has removed has no result.
pub(super) fn lead_is_gone() -> Failure {
    let what = "the lead's pod is gone, and the result with it: it was deleted, or its node was";
    Failure::in_operation(what).or_hint("start the run again")
}

/// What Kubernetes says of the pods of a run.
pub(super) struct Found {
    pods: Vec<Pod>,
    /// The same, with what is known of those that are missing.
    explained: Vec<Pod>,
}

/// What was seen of the pods.
pub(super) enum Look {
    /// Nothing: it is not time to look, or the cluster does not answer.
    Nothing,
    /// These.
    Pods(Vec<Pod>),
    /// A pod that is needed cannot start, or is gone.
    Trouble(Failure),
}

impl Watch {
    /// `has_answered`: the cluster has answered this command, and is waited for if it is silent.
    pub(super) fn new(has_answered: bool) -> Watch {
        Watch {
            looked: None,
            has_answered,
            silent: None,
            since: Vec::new(),
            noted: BTreeSet::new(),
            ran: BTreeSet::new(),
        }
    }

    /// Looks at the pods of a run, if it is time for that.
    ///
    /// # Errors
    /// The cluster has not answered for long, or never will, or was not there at the first look; or
    /// the lead's node is silent for long: its pod goes on if the node is back.
    pub(super) fn look(&mut self, cluster: &Cluster, run: &str) -> Result<Look, Failure> {
        match self.is_due() {
            true => self.see(self.ask(cluster, run)),
            false => Ok(Look::Nothing),
        }
    }

    /// True if it is time to look, which is then done.
    pub(super) fn is_due(&mut self) -> bool {
        if self.looked.is_some_and(|at| at.elapsed() < PODS_EVERY) {
            return false;
        }
        self.looked = Some(Instant::now());
        true
    }

    /// Asks for the pods of a run, and why those that have been missing for a while are.
    pub(super) fn ask(&self, cluster: &Cluster, run: &str) -> Result<Found, ClusterError> {
        let pods = Pod::all(&cluster.jobs_and_pods(run)?);
        let mut explained = pods.clone();
        let is_late = |(pod, since): &(Pod, Instant)| {
            matches!(pod.state, PodState::Unmade(_))
                && since.elapsed() > UNMADE_MAX
                && pods.contains(pod)
        };
        if self.since.iter().any(is_late) {
            cluster.explain(&mut explained);
        }
        Ok(Found { pods, explained })
    }

    /// Sees these pods, or that the cluster does not answer.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub(super) fn see(&mut self, found: Result<Found, ClusterError>) -> Result<Look, Failure> {
        let Found { pods, explained } = match found {
            Ok(found) => found,
            Err(error) if error.is_final() => return Err(error.into()),
            Err(error) if !self.has_answered && error.is_unreached() => return Err(error.into()),
            Err(error) => {
                if self.silent.is_none() {
                    tell!("note: {}; trying again", error.what);
                }
                let silent = self.silent.get_or_insert_with(Instant::now);
                return match silent.elapsed() > SILENCE_MAX {
                    true => Err(error.into()),
                    false => Ok(Look::Nothing),
                };
            }
        };
        self.silent = None;
        self.has_answered = true;
        let had_lead = self.lead().is_some();
        self.note(pods);
        let is_gone = match self.lead() {
            Some((lead, _)) => lead.state == PodState::Gone,
            None => had_lead,
        };
        if is_gone {
            return Ok(Look::Trouble(lead_is_gone()));
        }
        if let Some(silent) = self.silent_lead(SILENCE_MAX) {
            return Err(silent);
        }
        if let Some(trouble) = self.trouble(&explained) {
            return Ok(Look::Trouble(trouble.into()));
        }
        let pods = self.since.iter().map(|(pod, _)| pod.clone());
        Ok(Look::Pods(pods.collect()))
    }

    /// The lead's pod, and since when it is in its state.
    fn lead(&self) -> Option<&(Pod, Instant)> {
        let mut pods = self.since.iter();
        pods.find(|(pod, _)| pod.component == "lead")
    }

    /// That the lead's node has been silent for longer than `most`.
    fn silent_lead(&self, most: Duration) -> Option<Failure> {
        let (lead, since) = self.lead()?;
        let silence = since.elapsed();
        (lead.state == PodState::Unheard && silence > most).then(|| {
            Failure::in_operation(format!(
                "node {} of the lead's pod {} has been silent for {} s",
                lead.node,
                lead.name,
                silence.as_secs()
            ))
        })
    }

    /// Why there will be no run, if that is so: pods cannot start, and the others are not enough.
    /// `explained` are all that were noted, with what is known of those that are missing.
    fn trouble(&mut self, explained: &[Pod]) -> Option<ClusterError> {
        let states = explained.iter().zip(&self.since).map(|(pod, (_, since))| {
            let has_run = pod.index.is_some_and(|index| self.ran.contains(&index));
            let trouble = (!has_run).then(|| pod.trouble(since.elapsed()));
            (pod, trouble.flatten())
        });
        let (failing, others): (Vec<_>, Vec<_>) = states.partition(|(_, it)| it.is_some());
        let agents = others.iter().filter(|(pod, _)| pod.index.is_some());
        let agents = agents.count();
        for (pod, trouble) in failing {
            let are_enough = pod.min_agents.is_some_and(|min| agents >= min as usize);
            match trouble {
                Some(trouble) if !are_enough => return Some(trouble),
                Some(trouble) if self.noted.insert(pod.name.clone()) => {
                    let what = trouble.what;
                    tell!("note: {what}; {agents} agents are enough (--min-agents)");
                }
                _ => {}
            }
        }
        None
    }

    /// Notes the states of all pods. The lead says what became of an agent, and Kubernetes why.
    fn note(&mut self, pods: Vec<Pod>) {
        let now = Instant::now();
        let before = std::mem::take(&mut self.since);
        for pod in pods {
            let known = before.iter().find(|(other, _)| *other == pod);
            let (name, node) = (&pod.name, &pod.node);
            match (&pod.state, known) {
                (PodState::Failed(how), None) => {
                    tell!("pod {name} on {node} has failed: {how}");
                    let is_other = how.ends_with(USAGE) || how.contains(NO_PROGRAM);
                    if is_other && pod.index.is_some() {
                        tell!("hint: does --image have throng {VERSION} on all nodes?");
                    }
                }
                (PodState::Unheard, None) => tell!("note: node {node} of pod {name} is silent"),
                _ => {}
            }
            if pod.state == PodState::Runs {
                self.ran.extend(pod.index);
            }
            let since = known.map_or(now, |(_, since)| *since);
            self.since.push((pod, since));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(component: &str, state: PodState) -> Pod {
        Pod {
            name: format!("x-{component}-0"),
            component: component.to_owned(),
            run: "x".to_owned(),
            node: "node-7".to_owned(),
            index: None,
            min_agents: None,
            state,
        }
    }

    #[test]
    fn a_silent_node_of_the_lead_ends_the_command_and_one_of_an_agent_does_not() {
        let silence = |pods: Vec<Pod>| {
            let mut watch = Watch::new(true);
            watch.note(pods);
            watch.silent_lead(Duration::ZERO)
        };
        let lead = silence(vec![pod("lead", PodState::Unheard)]).unwrap();
        let what = "node node-7 of the lead's pod x-lead-0 has been silent for 0 s";
        assert_eq!(lead.what(), what);
        for others in [
            vec![pod("lead", PodState::Runs), pod("agent", PodState::Unheard)],
            vec![pod("agent", PodState::Unheard)],
            Vec::new(),
        ] {
            assert!(silence(others).is_none());
        }
    }

    #[test]
    fn a_node_that_answers_again_was_not_silent_for_long() {
        let mut watch = Watch::new(true);
        watch.note(vec![pod("lead", PodState::Unheard)]);
        watch.note(vec![pod("lead", PodState::Runs)]);
        assert!(watch.silent_lead(Duration::ZERO).is_none());
        watch.note(vec![pod("lead", PodState::Unheard)]);
        assert!(watch.silent_lead(SILENCE_MAX).is_none());
    }
}
