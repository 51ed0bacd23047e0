//! Why a Job has not made a pod: of one that is refused, by a quota or by a rule of the namespace,
//! there is an event of the Job and nothing else.

use std::collections::BTreeMap;

use serde_json::Value;

use super::cluster::Cluster;
use super::pods::{Pod, PodState};

/// What comes before the reason in the message of such an event.
const BEFORE: [&str; 2] = [" is forbidden: ", "Error creating: "];

impl Cluster {
    /// Has pods that their Jobs could not make say why, as far as the user may know that.
    pub fn explain(&self, pods: &mut [Pod]) {
        let mut known = BTreeMap::new();
        for pod in pods {
            let PodState::Unmade(job) = &pod.state else {
                continue;
            };
            let why = known.entry(job.clone());
            if let Some(why) = why.or_insert_with(|| self.refusal(job)) {
                pod.state = PodState::Refused(why.clone());
            }
        }
    }

    /// Why the Job with this UID could not make a pod, the last time.
    fn refusal(&self, job: &str) -> Option<String> {
        let of_job = format!("--field-selector=involvedObject.uid={job},reason=FailedCreate");
        reason(&self.list("events", &[&of_job])?)
    }
}

/// That of the last event.
fn reason(events: &[Value]) -> Option<String> {
    let at = |event: &Value| {
        let times = [&event["lastTimestamp"], &event["eventTime"]];
        let time = times.into_iter().find_map(Value::as_str);
        time.unwrap_or_default().to_owned()
    };
    let last = events.iter().max_by_key(|event| at(event))?;
    let message = last["message"].as_str()?;
    let reason = BEFORE.iter().find_map(|it| message.split_once(it));
    Some(reason.map_or(message, |(_, reason)| reason).to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_event_says_why_without_the_name_of_a_pod() {
        let event = |at: &str, message: &str| json!({"lastTimestamp": at, "message": message});
        let quota = "exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2";
        let (early, late) = ("2026-11-29T10:00:00Z", "2026-11-29T10:00:07Z");
        let of_quota = format!("Error creating: pods \"x-agents-1-8w2kd\" is forbidden: {quota}");
        let of_server = "Error creating: Internal error occurred: too busy";
        for (events, expected) in [
            (vec![event(late, &of_quota), event(early, of_server)], quota),
            (
                vec![event(early, &of_quota), event(late, of_server)],
                "Internal error occurred: too busy",
            ),
        ] {
            assert_eq!(reason(&events).as_deref(), Some(expected));
        }
        assert_eq!(reason(&[]), None);
    }
}
