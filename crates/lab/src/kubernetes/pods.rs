//! How far the pods of a fleet are, from what the API server says of them.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::cluster::{ClusterError, cure};

/// How long a pod may wait for what can come by itself: a node that is added, an image that is
/// pulled again.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a pod may be refused that will be refused again.
const REFUSED_MAX: Duration = Duration::from_secs(5);
/// How long the start of a container may take, its image among it.
const START_MAX: Duration = Duration::from_mins(10);
/// The annotation of an agent's pod with the number of agents that are enough.
pub(super) const MIN_AGENTS: &str = "throng/min-agents";
/// That of a pod of an indexed Job with its index.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Why a pod is refused, where waiting longer does not help much: by a quota, by the rules for pods
/// or for their size in its namespace, or by a webhook.
const LASTING: [&str; 5] = [
    "exceeded quota",
    "failed quota",
    "violates PodSecurity",
    " usage per ",
    "denied the request",
];
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
    /// Its Job, which has this UID, has not made it yet.
    Unmade(String),
    /// Its Job cannot make it; why.
    Refused(String),
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
    /// Those among objects, and those that Jobs have not: the lead, and agents of a Job that goes
    /// on.
    pub fn all(objects: &[Value]) -> Vec<Pod> {
        let of_kind = |kind: &'static str| objects.iter().filter(move |it| it["kind"] == kind);
        let mut pods: Vec<Pod> = of_kind("Pod").map(Pod::of).collect();
        for job in of_kind("Job") {
            let missing = Pod::missing(job, &pods);
            pods.extend(missing);
        }
        pods
    }

    /// The pods that a Job has not, by the name of the Job.
    fn missing(job: &Value, pods: &[Pod]) -> Vec<Pod> {
        let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
        let mut ends = conditions.filter(|it| it["type"] == "Failed" || it["type"] == "Complete");
        let is_over = ends.any(|it| it["status"] == "True");
        let uid = job["metadata"]["uid"].as_str().unwrap_or_default();
        let template = &job["spec"]["template"]["metadata"]["annotations"];
        let missing = Pod {
            state: match is_over {
                true => PodState::Gone,
                false => PodState::Unmade(uid.to_owned()),
            },
            min_agents: number(template, MIN_AGENTS),
            ..Pod::of(job)
        };
        let is_like = |it: &&Pod| it.component == missing.component && it.run == missing.run;
        let made: Vec<&Pod> = pods.iter().filter(is_like).collect();
        if missing.component == "lead" {
            return Vec::from_iter(made.is_empty().then_some(missing));
        }
        let goes_on = !is_over && job["metadata"]["deletionTimestamp"].is_null();
        let wanted = job["spec"]["completions"].as_u64().filter(|_| goes_on);
        let made: BTreeSet<u32> = made.iter().filter_map(|it| it.index).collect();
        let wanted = 0..u32::try_from(wanted.unwrap_or(0)).unwrap_or(u32::MAX);
        let indexes = wanted.filter(|index| !made.contains(index));
        let with_index = |index| Pod {
            index: Some(index),
            ..missing.clone()
        };
        indexes.map(with_index).collect()
    }

    fn of(pod: &Value) -> Pod {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let label = |name: &str| text(&pod["metadata"]["labels"][name]);
        let annotations = &pod["metadata"]["annotations"];
        Pod {
            name: text(&pod["metadata"]["name"]),
            component: label("app.kubernetes.io/component"),
            run: label("app.kubernetes.io/instance"),
            node: text(&pod["spec"]["nodeName"]),
            index: number(annotations, INDEX),
            min_agents: number(annotations, MIN_AGENTS),
            state: PodState::of(&pod["status"]),
        }
    }

    /// Why there will be no run, if this pod has been so for that long.
    pub fn trouble(&self, since: Duration) -> Option<ClusterError> {
        let (name, seconds) = (&self.name, since.as_secs());
        let (what, hint) = match &self.state {
            PodState::Waits(why) if since > PATIENCE => (
                format!("pod {name} waits for {seconds} s: {why}"),
                NO_NODE_HINT,
            ),
            // Many agents are made one after the other.
            PodState::Unmade(_) if since > PATIENCE && self.index.is_none() => (
                format!("Job {name} has made no pod for {seconds} s"),
                JOB_HINT,
            ),
            PodState::Refused(why) if since > PodState::refused_max(why) => (
                match self.index {
                    Some(index) => format!("Job {name} cannot make agent {}: {why}", index + 1),
                    None => format!("Job {name} cannot make its pod: {why}"),
                },
                cure(why).unwrap_or(JOB_HINT),
            ),
            PodState::Starts(why) if since > START_MAX => (
                format!("pod {name} starts for {seconds} s: {why}"),
                POD_HINT,
            ),
            PodState::Fails(why) if since > PATIENCE / 6 => (
                format!("pod {name} cannot start: {why}"),
                match why.split(':').any(|it| it.contains("Image")) {
                    true => IMAGE_HINT,
                    false => POD_HINT,
                },
            ),
            _ => return None,
        };
        Some(ClusterError {
            what,
            hint: hint.to_owned(),
        })
    }
}

const NO_NODE_HINT: &str = "free or add nodes, or give less --cpus or --memory, another \
                            --node-selector, or a --toleration";
const IMAGE_HINT: &str =
    "give --image one that the nodes can pull; `kubectl describe pod` says more";
const POD_HINT: &str = "fix it and start the run again; `kubectl describe pod` says more";
const JOB_HINT: &str = "fix it and start the run again; `kubectl describe job` says more";

/// The number in an annotation.
fn number(annotations: &Value, name: &str) -> Option<u32> {
    annotations[name].as_str()?.parse().ok()
}

impl PodState {
    /// How long a pod may be refused for this reason.
    fn refused_max(why: &str) -> Duration {
        match LASTING.iter().any(|it| why.contains(it)) {
            true => REFUSED_MAX,
            false => PATIENCE,
        }
    }

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
        let unmade = PodState::Unmade(String::new());
        assert_eq!(leads(&[job.clone(), agents]), [unmade]);
        let pod = object("Pod", "lead", json!({"phase": "Running"}));
        assert_eq!(leads(&[job.clone(), pod]), [PodState::Runs]);
        let failed = json!({"conditions": [{"type": "Failed", "status": "True"}]});
        assert_eq!(leads(&[object("Job", "lead", failed)]), [PodState::Gone]);
        let unmade = &Pod::all(&[job])[0];
        assert_eq!(unmade.trouble(PATIENCE), None);
        let trouble = unmade.trouble(2 * PATIENCE).unwrap();
        assert_eq!(trouble.what, "Job x-lead has made no pod for 120 s");
    }

    /// Of four agents, two of whom are enough, the first and the third have pods.
    #[test]
    fn agents_without_a_pod_are_known_by_their_job_until_it_has_ended() {
        let labels = json!({
            "app.kubernetes.io/component": "agent", "app.kubernetes.io/instance": "x",
        });
        let pod = |index: u32| {
            let annotations = json!({INDEX: index.to_string()});
            let metadata = json!({"name": "x", "labels": labels, "annotations": annotations});
            json!({"kind": "Pod", "metadata": metadata, "status": {"phase": "Running"}})
        };
        let job = |status: Value| {
            let template = json!({"metadata": {"annotations": {MIN_AGENTS: "2"}}});
            json!({
                "kind": "Job",
                "metadata": {"name": "x-agents", "uid": "number-1", "labels": labels},
                "spec": {"completions": 4, "template": template},
                "status": status,
            })
        };
        let all = Pod::all(&[job(json!({})), pod(0), pod(2)]);
        let unmade = |it: &&Pod| it.state == PodState::Unmade("number-1".to_owned());
        let missing: Vec<&Pod> = all.iter().filter(unmade).collect();
        let indexes: Vec<Option<u32>> = missing.iter().map(|it| it.index).collect();
        assert_eq!((all.len(), indexes), (4, vec![Some(1), Some(3)]));
        assert!(missing.iter().all(|it| it.min_agents == Some(2)));
        let failed = json!({"conditions": [{"type": "Failed", "status": "True"}]});
        assert_eq!(Pod::all(&[job(failed), pod(0), pod(2)]).len(), 2);
        // One that is made late is no trouble, one that is refused is it soon, with the cure.
        assert_eq!(missing[0].trouble(2 * PATIENCE), None);
        let refused = |why: &str, since: Duration| {
            let state = PodState::Refused(why.to_owned());
            let pod = Pod {
                state,
                ..missing[0].clone()
            };
            pod.trouble(since)
        };
        let quota = "exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2";
        let trouble = refused(quota, 2 * REFUSED_MAX).unwrap();
        let what = format!("Job x-agents cannot make agent 2: {quota}");
        assert_eq!(trouble.what, what);
        assert!(
            trouble.hint.starts_with("ask for a larger quota"),
            "{trouble:?}"
        );
        let unknown = "error looking up service account x/default: not found";
        assert_eq!(refused(unknown, 2 * REFUSED_MAX), None);
        assert!(refused(unknown, 2 * PATIENCE).is_some());
    }
}
