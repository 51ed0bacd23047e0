//! How far the pods of a fleet are, from what the API server says of them.

use std::time::Duration;

use serde_json::Value;

/// How long a pod may wait for what can come by itself: a node that is added, an image that is
/// pulled again.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the start of a container may take, its image among it.
const START_MAX: Duration = Duration::from_mins(10);
/// The annotation of an agent's pod with the number of agents that are enough.
pub(super) const MIN_AGENTS: &str = "throng/min-agents";
/// That of a pod of an indexed Job with its index.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Why a container waits, where waiting longer does not help much.
const WRONG: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
];

/// One pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// `lead` or `agent`.
    pub component: String,
    /// The run that it belongs to.
    pub run: String,
    /// Its node; empty before it has one.
    pub node: String,
    /// Its index, if it is an agent's.
    pub index: Option<u32>,
    /// How many agents are enough, if it is an agent's and not all are needed.
    pub min_agents: Option<u32>,
    /// How far it is.
    pub state: PodState,
}

/// How far a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodState {
    /// It has no node; why.
    Waits(String),
    /// Its Job has not made it yet.
    Unmade,
    /// Its Job has ended, and the pod was deleted, or its node was.
    Gone,
    /// Its container is made ready to start; how far that is.
    Starts(String),
    /// Its container cannot be started as things are; why.
    Fails(String),
    /// It runs.
    Runs,
    /// It ran when its node was heard last.
    Unheard,
    /// It has ended with exit code 0.
    Succeeded,
    /// It has ended otherwise; how.
    Failed(String),
}

impl Pod {
    /// Those among objects, and the lead that a Job has no pod for.
    pub fn all(objects: &[Value]) -> Vec<Pod> {
        let of_kind = |kind: &'static str| objects.iter().filter(move |it| it["kind"] == kind);
        let mut pods: Vec<Pod> = of_kind("Pod").map(Pod::of).collect();
        let leads = of_kind("Job").map(Pod::of_job);
        let leads = leads.filter(|it| it.component == "lead");
        for lead in leads.collect::<Vec<_>>() {
            let is_there = |it: &Pod| it.component == "lead" && it.run == lead.run;
            if !pods.iter().any(is_there) {
                pods.push(lead);
            }
        }
        pods
    }

    /// The pod that a Job has not, by the name of the Job.
    fn of_job(job: &Value) -> Pod {
        let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
        let mut ends = conditions.filter(|it| it["type"] == "Failed" || it["type"] == "Complete");
        Pod {
            state: match ends.any(|it| it["status"] == "True") {
                true => PodState::Gone,
                false => PodState::Unmade,
            },
            ..Pod::of(job)
        }
    }

    fn of(pod: &Value) -> Pod {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let label = |name: &str| text(&pod["metadata"]["labels"][name]);
        let annotations = &pod["metadata"]["annotations"];
        let number = |name: &str| annotations[name].as_str()?.parse().ok();
        Pod {
            name: text(&pod["metadata"]["name"]),
            component: label("app.kubernetes.io/component"),
            run: label("app.kubernetes.io/instance"),
            node: text(&pod["spec"]["nodeName"]),
            index: number(INDEX),
            min_agents: number(MIN_AGENTS),
            state: PodState::of(&pod["status"]),
        }
    }

    /// Why there will be no run, if this pod has been so for that long.
    pub fn trouble(&self, since: Duration) -> Option<String> {
        let name = &self.name;
        match &self.state {
            PodState::Waits(why) if since > PATIENCE => {
                Some(format!("pod {name} waits for {} s: {why}", since.as_secs()))
            }
            PodState::Unmade if since > PATIENCE => Some(format!(
                "Job {name} has made no pod for {} s: `kubectl describe job {name}` says why",
                since.as_secs()
            )),
            PodState::Starts(why) if since > START_MAX => Some(format!(
                "pod {name} starts for {} s: {why}",
                since.as_secs()
            )),
            PodState::Fails(why) if since > PATIENCE / 6 => {
                Some(format!("pod {name} cannot start: {why}"))
            }
            _ => None,
        }
    }
}

impl PodState {
    fn of(status: &Value) -> PodState {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let container = &status["containerStatuses"][0]["state"];
        let reasons = |of: &Value| {
            let (reason, message) = (text(&of["reason"]), text(&of["message"]));
            match message.is_empty() {
                true => reason,
                false => format!("{reason}: {message}"),
            }
        };
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let unmet = |kind: &str| {
            let mut all = conditions.clone();
            all.find(|it| it["type"] == kind && it["status"] == "False")
        };
        match status["phase"].as_str() {
            Some("Succeeded") => PodState::Succeeded,
            Some("Failed") => {
                let ended = &container["terminated"];
                let code = ended["exitCode"].as_i64();
                let how = match (status["reason"].as_str(), code) {
                    // Such as an eviction, which says why.
                    (Some(_), _) => reasons(status),
                    (None, Some(code)) => format!("{}, exit code {code}", reasons(ended)),
                    (None, None) => "its container has ended".to_owned(),
                };
                PodState::Failed(how)
            }
            // These pods are ready as long as they run, until their node is silent for a while.
            Some("Running") if !container["running"].is_null() && unmet("Ready").is_some() => {
                PodState::Unheard
            }
            Some("Running") => PodState::Runs,
            _ => {
                let waiting = &container["waiting"];
                let is_wrong = waiting["reason"]
                    .as_str()
                    .is_some_and(|it| WRONG.contains(&it));
                let unscheduled = unmet("PodScheduled");
                match (unscheduled, is_wrong) {
                    (Some(condition), _) => PodState::Waits(reasons(condition)),
                    (None, true) => PodState::Fails(reasons(waiting)),
                    (None, false) => PodState::Starts(match reasons(waiting) {
                        reason if reason.is_empty() => "it has no container yet".to_owned(),
                        reason => reason,
                    }),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(status: Value) -> PodState {
        PodState::of(&status)
    }

    #[test]
    fn what_keeps_a_pod_from_running_is_in_the_words_of_kubernetes() {
        let waiting = |reason: &str| {
            let waiting = json!({"waiting": {"reason": reason, "message": "m"}});
            json!({"phase": "Pending", "containerStatuses": [{"state": waiting}]})
        };
        let wrong = PodState::Fails("ImagePullBackOff: m".to_owned());
        assert_eq!(state(waiting("ImagePullBackOff")), wrong);
        let starts = PodState::Starts("ContainerCreating: m".to_owned());
        assert_eq!(state(waiting("ContainerCreating")), starts);
        let condition = json!({
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes are available",
        });
        let unscheduled = state(json!({"phase": "Pending", "conditions": [condition]}));
        let why = "Unschedulable: 0/3 nodes are available";
        assert_eq!(unscheduled, PodState::Waits(why.to_owned()));
        let running = |is_ready: &str| {
            let ready = json!({"type": "Ready", "status": is_ready});
            let container = json!({"state": {"running": {}}});
            json!({
                "phase": "Running", "conditions": [ready], "containerStatuses": [container],
            })
        };
        assert_eq!(state(running("True")), PodState::Runs);
        assert_eq!(state(running("False")), PodState::Unheard);
        let killed = json!({"terminated": {"reason": "OOMKilled", "exitCode": 137}});
        let killed = json!({"phase": "Failed", "containerStatuses": [{"state": killed}]});
        assert_eq!(
            state(killed),
            PodState::Failed("OOMKilled, exit code 137".to_owned())
        );
        let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "low on disk"});
        assert_eq!(
            state(evicted),
            PodState::Failed("Evicted: low on disk".to_owned())
        );
    }

    #[test]
    fn a_lead_without_a_pod_is_known_by_its_job() {
        let object = |kind: &str, component: &str, status: Value| {
            let labels = json!({
                "app.kubernetes.io/component": component, "app.kubernetes.io/instance": "x",
            });
            let metadata = json!({"name": "x-lead", "labels": labels});
            json!({"kind": kind, "metadata": metadata, "status": status})
        };
        let leads = |objects: &[Value]| -> Vec<PodState> {
            let pods = Pod::all(objects).into_iter();
            pods.map(|it| it.state).collect()
        };
        let (job, agents) = (
            object("Job", "lead", json!({})),
            object("Job", "agent", json!({})),
        );
        assert_eq!(leads(&[job.clone(), agents]), [PodState::Unmade]);
        let pod = object("Pod", "lead", json!({"phase": "Running"}));
        assert_eq!(leads(&[job.clone(), pod]), [PodState::Runs]);
        let failed = json!({"conditions": [{"type": "Failed", "status": "True"}]});
        assert_eq!(leads(&[object("Job", "lead", failed)]), [PodState::Gone]);
        let unmade = &Pod::all(&[job])[0];
        assert_eq!(unmade.trouble(PATIENCE), None);
        let trouble = unmade.trouble(2 * PATIENCE).unwrap();
        assert!(
            trouble.starts_with("Job x-lead has made no pod for 120 s"),
            "{trouble}"
        );
    }
}
