//! How far a pod has come, by what Kubernetes says of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::manifest::FINAL_EXIT_CODES;

/// What a container waits for that comes by itself.
const ON_ITS_WAY: [&str; 3] = ["", "ContainerCreating", "PodInitializing"];

/// How far a pod has come; texts are Kubernetes's own, in one line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is on its way.
    Starts,
    /// It waits for something that may come, such as a node with room for it.
    Waits(String),
    /// It never will run as it is.
    Stuck(String),
    /// Its container runs.
    Runs,
    /// Its container ended by itself, with exit code 0.
    Ended,
    /// It was ended: taken away by the cluster, out of memory, or failed.
    Lost(String),
}

/// A cure, where a reason contains the words.
const CURES: [(&str, &str); 16] = [
    (
        "exceeded quota",
        "ask for less by --agents, --agent-cpus or --agent-memory, or raise the quota",
    ),
    ("failed quota", "raise the quota of the namespace"),
    (
        "violates PodSecurity",
        "the namespace forbids such pods: leave out --host-network, or use another --namespace",
    ),
    (
        "security context constraint",
        "leave out --host-network, or use another --namespace",
    ),
    (
        "usage per",
        "the namespace has limits for a pod: --agent-cpus and --agent-memory have to be within \
         them",
    ),
    (
        "anti-affinity",
        "--away-from keeps agents from the nodes of the target: add nodes, or begin with fewer by \
         --min-agents",
    ),
    (
        "untolerated taint",
        "tolerate the taint by --toleration, or add nodes without it",
    ),
    (
        "affinity/selector",
        "label nodes as --node-selector demands",
    ),
    (
        "Insufficient",
        "ask for less by --agents, --agent-cpus or --agent-memory, add nodes, or begin with fewer \
         by --min-agents",
    ),
    (
        "InvalidImageName",
        "name the image as nodes pull it, by --image",
    ),
    (
        "ImagePull",
        "push the image to where nodes pull it, and name it by --image",
    ),
    (
        "ErrImageNeverPull",
        "load the image into each node, and name it by --image",
    ),
    (
        "runAsNonRoot",
        "the image has to name a user by a number that is not 0: use one of deploy/image",
    ),
    ("OOMKilled", "give agents more by --agent-memory"),
    (
        "executable file not found",
        "the image has to have /throng: use one of deploy/image",
    ),
    (
        "no such file or directory",
        "the image has to have /throng: use one of deploy/image",
    ),
];

/// The cure for a reason, if there is one to be known.
pub(super) fn cure(reason: &str) -> Option<&'static str> {
    let fits = CURES.iter().find(|(words, _)| reason.contains(words));
    fits.map(|(_, cure)| *cure)
}

impl State {
    /// Of a pod as `kubectl` prints it.
    pub(super) fn of(pod: &Value) -> State {
        let status = &pod["status"];
        taken_away(pod)
            .or_else(|| ended(&status["containerStatuses"][0]["state"]["terminated"]))
            .or_else(|| unscheduled(status))
            .unwrap_or_else(|| of_container(status))
    }

    /// Why no pod was made, from the message of an event.
    pub(super) fn of_refusal(message: &str) -> State {
        let message = one_line(message);
        // Pods of an earlier run that are still being removed count for a moment.
        match message.contains("is forbidden") && !message.contains("quota") {
            true => State::Stuck(message),
            false => State::Waits(message),
        }
    }

    /// Whether it will never run, as far as that can be told.
    pub(super) fn is_over(&self, is_patience_over: bool) -> bool {
        match self {
            State::Stuck(_) | State::Lost(_) => true,
            State::Waits(_) => is_patience_over,
            State::Starts | State::Runs | State::Ended => false,
        }
    }

    /// Why it does not run; none if it runs or ended by itself.
    pub fn why(&self) -> Option<&str> {
        match self {
            State::Starts => Some("it is still being started"),
            State::Waits(why) | State::Stuck(why) | State::Lost(why) => Some(why),
            State::Runs | State::Ended => None,
        }
    }
}

/// Evicted, preempted, deleted, on a node that is gone or that took it and could not run it.
fn taken_away(pod: &Value) -> Option<State> {
    let status = &pod["status"];
    if let Some(disruption) = condition(status, "DisruptionTarget", "True") {
        let (reason, message) = (text(&disruption["reason"]), text(&disruption["message"]));
        let how = match reason {
            "PreemptionByScheduler" => "preempted by a pod of higher priority",
            "EvictionByEvictionAPI" => "evicted, as when a node is drained",
            "DeletionByTaintManager" => "taken from its node, which is lost or has a taint since",
            "DeletionByPodGC" => "removed, for its node is no more",
            "TerminationByKubelet" => "ended by its node, which lacks something or shuts down",
            other => other,
        };
        return Some(State::Lost(joined(&[how, message])));
    }
    let (reason, message) = (text(&status["reason"]), text(&status["message"]));
    if status["phase"] == "Failed" && !reason.is_empty() {
        return Some(State::Lost(joined(&[reason, message])));
    }
    let is_deleted = pod["metadata"]["deletionTimestamp"].is_string();
    is_deleted.then(|| State::Lost("it was deleted".to_owned()))
}

fn ended(terminated: &Value) -> Option<State> {
    let code = terminated["exitCode"].as_i64()?;
    if code == 0 {
        return Some(State::Ended);
    }
    let reason = match text(&terminated["reason"]) {
        "Error" => "",
        reason => reason,
    };
    let how = match i32::try_from(code) {
        Ok(code) if code == FINAL_EXIT_CODES[0] => "it came too late".to_owned(),
        Ok(code) if code == FINAL_EXIT_CODES[1] => "the lead refused it".to_owned(),
        _ => format!(
            "its container ended ({})",
            format!("{reason} exit code {code}").trim()
        ),
    };
    // What it wrote at its end.
    let said = text(&terminated["message"]).trim().lines().next_back();
    Some(State::Lost(joined(&[&how, said.unwrap_or_default()])))
}

fn unscheduled(status: &Value) -> Option<State> {
    let unscheduled = condition(status, "PodScheduled", "False")?;
    let message = match text(&unscheduled["message"]) {
        "" => text(&unscheduled["reason"]),
        message => message,
    };
    Some(State::Waits(one_line(message)))
}

fn of_container(status: &Value) -> State {
    let container = &status["containerStatuses"][0];
    let waiting = &container["state"]["waiting"];
    let reason = text(&waiting["reason"]);
    if !ON_ITS_WAY.contains(&reason) {
        return State::Stuck(joined(&[reason, text(&waiting["message"])]));
    }
    if !container["state"]["running"].is_object() {
        return State::Starts;
    }
    // Nothing of ours says whether a pod is ready: its node is marked so.
    let is_ready = condition(status, "Ready", "False").is_none();
    match is_ready || condition(status, "ContainersReady", "True").is_none() {
        true => State::Runs,
        false => State::Waits("its node says nothing any more".to_owned()),
    }
}

fn condition<'a>(status: &'a Value, kind: &str, value: &str) -> Option<&'a Value> {
    let conditions = status["conditions"].as_array()?;
    let is_it = |it: &&Value| it["type"] == kind && it["status"] == value;
    conditions.iter().find(is_it)
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn joined(parts: &[&str]) -> String {
    let parts = parts.iter().map(|it| it.trim()).filter(|it| !it.is_empty());
    one_line(&parts.collect::<Vec<_>>().join(": "))
}
