//! One look at a fleet: which of its pods run, and why the others do not.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::manifest::{AGENTS_MIN, ROLE, agents_name, lead_name};
use super::state::{State, cure, text};

/// How long a node, or a quota, is waited for: there may be more in a moment.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Set by Kubernetes on each pod of an indexed Job.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Reasons that are told at once.
const REASONS_MAX: usize = 3;

/// The name of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodName(pub String);

/// A pod of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    /// Its name.
    pub name: PodName,
    /// Which agent it is; none of the lead.
    pub index: Option<u32>,
    /// Its node, once it has one.
    pub node: Option<String>,
    /// Its address, once it has one.
    pub address: Option<IpAddr>,
    /// How far it has come.
    pub state: State,
}

/// A fleet at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// How many agents there are to be; 0 if their Job is no more.
    pub agents: u32,
    /// With how many of them the run begins.
    pub agents_min: u32,
    /// The pod of the lead.
    pub lead: Option<Pod>,
    /// Why there is none.
    pub lead_not_made: Option<State>,
    /// The pods of agents by their index, the latest of each.
    pub pods: Vec<Pod>,
    /// Why there are not as many as agents.
    pub not_made: Option<State>,
}

impl fmt::Display for PodName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Look {
    /// From what `kubectl` prints of the run's Jobs, its pods, and events about its Jobs.
    pub(super) fn of(run: &str, jobs: &[Value], pods: &[Value], events: &[Value]) -> Look {
        let named = |name: &str| jobs.iter().find(|job| job["metadata"]["name"] == name);
        let job = named(&agents_name(run));
        let agents = count(job.map(|job| &job["spec"]["completions"])).unwrap_or_default();
        let min = job.map(|job| &job["metadata"]["annotations"][AGENTS_MIN]);
        let with_role = |role: &'static str| {
            let is_it = move |pod: &&Value| pod["metadata"]["labels"][ROLE] == role;
            pods.iter().filter(is_it)
        };
        let pods = latest(with_role("agent").map(Pod::of));
        let lead = latest(with_role("lead").map(Pod::of)).pop();
        let has_all = pods.len() >= agents as usize;
        let agents_not_made = || not_made(job, &agents_name(run), events);
        let lead_job = named(&lead_name(run));
        let lead_not_made = || match lead_job {
            Some(_) => not_made(lead_job, &lead_name(run), events),
            None => Some(State::Stuck(format!(
                "there is no Job `{}`",
                lead_name(run)
            ))),
        };
        Look {
            agents,
            agents_min: count(min).unwrap_or(agents),
            lead_not_made: if lead.is_some() {
                None
            } else {
                lead_not_made()
            },
            not_made: if has_all { None } else { agents_not_made() },
            lead,
            pods,
        }
    }

    /// How many agents run.
    pub fn running(&self) -> u32 {
        let running = self.pods.iter().filter(|it| it.state == State::Runs);
        u32::try_from(running.count()).unwrap_or(u32::MAX)
    }

    /// Whether there will never be as many agents as the run takes to begin, when so long was
    /// waited: what may come is given up after [`PATIENCE`].
    pub fn is_hopeless(&self, waited: Duration) -> bool {
        let is_over = |state: &State| state.is_over(waited >= PATIENCE);
        if self.lead_state().is_some_and(is_over) {
            return true;
        }
        let lost = self.missing().filter(|(_, state)| is_over(state)).count();
        self.agents > 0 && lost as u64 > u64::from(self.agents.saturating_sub(self.agents_min))
    }

    /// Whether some agents are missing, and none of them will come.
    pub fn is_settled(&self, waited: Duration) -> bool {
        let mut missing = self.missing().peekable();
        missing.peek().is_some() && missing.all(|(_, state)| state.is_over(waited >= PATIENCE))
    }

    /// A sentence on what does not run and why, with the cure if one is known; none if all runs or
    /// has ended by itself.
    pub fn why(&self) -> Option<String> {
        let lead = self.lead_state().filter(|lead| {
            // One that is on its way says less than agents that are not.
            **lead != State::Starts || self.missing().all(|(_, agent)| *agent == State::Starts)
        });
        if let Some(why) = lead.and_then(State::why) {
            return Some(with_cure(format!("the lead does not run: {why}"), &[why]));
        }
        let mut reasons: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (index, state) in self.missing() {
            let why = state.why().unwrap_or_default();
            reasons.entry(why).or_default().push(index);
        }
        let missing: usize = reasons.values().map(Vec::len).sum();
        if missing == 0 {
            return None;
        }
        let mut told: Vec<(&str, Vec<u32>)> = reasons.into_iter().collect();
        // What most of them have in common first.
        told.sort_by_key(|(_, agents)| std::cmp::Reverse(agents.len()));
        let others = told.split_off(told.len().min(REASONS_MAX)).len();
        let mut sentences: Vec<String> = told.iter().map(|(why, of)| sentence(why, of)).collect();
        if others > 0 {
            sentences.push(format!("and others for {others} more reasons"));
        }
        let (agents, sentences) = (self.agents, sentences.join("; "));
        let text = format!("{missing} of {agents} agents do not run: {sentences}");
        let reasons: Vec<&str> = told.iter().map(|(why, _)| *why).collect();
        Some(with_cure(text, &reasons))
    }

    fn lead_state(&self) -> Option<&State> {
        let made = self.lead.as_ref().map(|it| &it.state);
        made.or(self.lead_not_made.as_ref())
    }

    /// Agents that neither run nor have ended by themselves, with what is known of each.
    fn missing(&self) -> impl Iterator<Item = (u32, &State)> {
        let made: BTreeMap<u32, &State> = self
            .pods
            .iter()
            .filter_map(|it| Some((it.index?, &it.state)))
            .collect();
        let not_made = self.not_made.as_ref().unwrap_or(&State::Starts);
        (0..self.agents)
            .map(move |index| (index, made.get(&index).copied().unwrap_or(not_made)))
            .filter(|(_, state)| !matches!(state, State::Runs | State::Ended))
    }
}

impl Pod {
    /// With the time at which it was made, by which the latest is found.
    fn of(pod: &Value) -> (String, Pod) {
        let metadata = &pod["metadata"];
        let index = [&metadata["annotations"][INDEX], &metadata["labels"][INDEX]];
        let owned = |value: &Value| value.as_str().map(str::to_owned);
        let read = Pod {
            name: PodName(text(&metadata["name"]).to_owned()),
            index: index.into_iter().find_map(|it| count(Some(it))),
            node: owned(&pod["spec"]["nodeName"]),
            address: text(&pod["status"]["podIP"]).parse().ok(),
            state: State::of(pod),
        };
        (text(&metadata["creationTimestamp"]).to_owned(), read)
    }
}

/// One pod of each index: the one that was made last.
fn latest(pods: impl Iterator<Item = (String, Pod)>) -> Vec<Pod> {
    let mut pods: Vec<(String, Pod)> = pods.collect();
    pods.sort_by(|(a, one), (b, other)| (a, &one.name).cmp(&(b, &other.name)));
    let by_index: BTreeMap<Option<u32>, Pod> =
        pods.into_iter().map(|(_, pod)| (pod.index, pod)).collect();
    by_index.into_values().collect()
}

/// Why a Job has made no pod: what it says last in events, or that it has failed.
fn not_made(job: Option<&Value>, name: &str, events: &[Value]) -> Option<State> {
    let conditions = job.and_then(|job| job["status"]["conditions"].as_array());
    let mut conditions = conditions.into_iter().flatten();
    let failed = conditions.find(|it| it["type"] == "Failed" && it["status"] == "True");
    if let Some(failed) = failed {
        let (reason, message) = (text(&failed["reason"]), text(&failed["message"]));
        return Some(State::Stuck(format!(
            "its Job has failed: {reason}: {message}"
        )));
    }
    let time = |event: &Value| {
        let times = [&event["lastTimestamp"], &event["eventTime"]];
        times
            .into_iter()
            .find_map(|it| it.as_str().map(str::to_owned))
    };
    let is_it =
        |it: &&Value| it["reason"] == "FailedCreate" && it["involvedObject"]["name"] == name;
    let last = events.iter().filter(is_it).max_by_key(|event| time(event));
    last.map(|event| State::of_refusal(text(&event["message"])))
}

/// A number, or a text that is one.
fn count(value: Option<&Value>) -> Option<u32> {
    let value = value?;
    let number = value.as_u64().and_then(|it| it.try_into().ok());
    number.or_else(|| value.as_str()?.parse().ok())
}

fn sentence(why: &str, agents: &[u32]) -> String {
    let word = if agents.len() == 1 { "agent" } else { "agents" };
    format!("{word} {}: {}", ranges(agents), why.trim_end_matches('.'))
}

/// Ascending indices as people count them, from 1: `1, 5-8`.
pub(super) fn ranges(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let written = ranges.iter().map(|&(first, last)| {
        let (length, first, last) = (last - first, u64::from(first) + 1, u64::from(last) + 1);
        match length {
            0 => first.to_string(),
            1 => format!("{first}, {last}"),
            _ => format!("{first}-{last}"),
        }
    });
    written.collect::<Vec<_>>().join(", ")
}

fn with_cure(text: String, reasons: &[&str]) -> String {
    match reasons.iter().find_map(|reason| cure(reason)) {
        Some(cure) => format!("{text}\nhint: {cure}"),
        None => text,
    }
}

#[cfg(test)]
mod tests;
