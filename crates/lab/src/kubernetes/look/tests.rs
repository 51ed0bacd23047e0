//! What is made of `kubectl get -o json`, as a cluster of version 1.36 prints it.

use serde_json::json;

use super::*;

const RUN: &str = "throng-a1b2c3";
const SECONDS_0: Duration = Duration::ZERO;

fn jobs(agents: u32, agents_min: u32) -> Vec<Value> {
    let job = |role: &str, more: Value| {
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": format!("{RUN}-{role}"),
                "namespace": "load",
                "annotations": {"throng/agents-min": agents_min.to_string()},
            },
            "spec": more,
            "status": {"active": 1, "ready": 0, "terminating": 0},
        })
    };
    vec![
        job("lead", json!({"completions": 1, "parallelism": 1})),
        job(
            "agents",
            json!({"completions": agents, "parallelism": agents}),
        ),
    ]
}

/// A pod with a status; `name` is of the role, its index and what the cluster appends.
fn pod(name: &str, made_at: &str, status: Value) -> Value {
    let (role, index) = match name.split('-').collect::<Vec<_>>()[..] {
        ["agents", index, _] => ("agent", json!(index)),
        _ => ("lead", Value::Null),
    };
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("{RUN}-{name}"),
            "namespace": "load",
            "creationTimestamp": made_at,
            "labels": {"app.kubernetes.io/instance": RUN, "throng.role": role},
        },
        "spec": {"nodeName": "n1", "restartPolicy": "Never"},
        "status": status,
    });
    if role == "agent" {
        pod["metadata"]["annotations"] = json!({INDEX: index});
    }
    pod
}

fn running() -> Value {
    json!({
        "phase": "Running",
        "podIP": "10.244.1.7",
        "conditions": [
            {"type": "PodReadyToStartContainers", "status": "True"},
            {"type": "Initialized", "status": "True"},
            {"type": "Ready", "status": "True"},
            {"type": "ContainersReady", "status": "True"},
            {"type": "PodScheduled", "status": "True"},
        ],
        "containerStatuses": [{
            "name": "agent", "ready": true, "started": true, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-11-25T02:00:01Z"}}, "lastState": {},
        }],
    })
}

fn unschedulable(message: &str) -> Value {
    json!({
        "phase": "Pending",
        "qosClass": "Guaranteed",
        "conditions": [{
            "lastProbeTime": null, "lastTransitionTime": "2026-11-25T02:00:00Z",
            "message": message,
            "reason": "Unschedulable", "status": "False", "type": "PodScheduled",
        }],
    })
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({
        "phase": "Pending",
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "ContainersNotReady",
             "message": "containers with unready status: [agent]"},
            {"type": "PodScheduled", "status": "True"},
        ],
        "containerStatuses": [{
            "name": "agent", "ready": false, "started": false, "restartCount": 0,
            "state": {"waiting": {"reason": reason, "message": message}}, "lastState": {},
        }],
    })
}

fn terminated(reason: &str, code: i32, message: &str) -> Value {
    json!({
        "phase": if code == 0 { "Succeeded" } else { "Failed" },
        "conditions": [{"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [{
            "name": "agent", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": code, "reason": reason, "message": message}},
        }],
    })
}

fn disrupted(reason: &str, message: &str) -> Value {
    let mut status = terminated("Error", 137, "");
    status["conditions"] = json!([
        {"type": "PodScheduled", "status": "True"},
        {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message},
    ]);
    status
}

fn refused(role: &str, at: &str, message: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "type": "Warning",
        "reason": "FailedCreate",
        "message": message,
        "involvedObject": {
            "apiVersion": "batch/v1", "kind": "Job", "name": format!("{RUN}-{role}"),
        },
        "firstTimestamp": at, "lastTimestamp": at, "eventTime": null, "count": 1,
    })
}

/// The lead runs, and so do agents with these states.
fn with_agents(agents: &[Value]) -> Look {
    let made_at = "2026-11-25T02:00:00Z";
    let of = |(index, status): (usize, &Value)| {
        pod(&format!("agents-{index}-x7k2p"), made_at, status.clone())
    };
    let mut pods = vec![pod("lead-9xk4d", made_at, running())];
    pods.extend(agents.iter().enumerate().map(of));
    let count = u32::try_from(agents.len()).unwrap();
    Look::of(RUN, &jobs(count, count), &pods, &[])
}

#[test]
fn a_fleet_that_runs_has_its_lead_and_each_agent_with_node_and_address() {
    let look = with_agents(&[running(), running()]);
    let lead = look.lead.as_ref().unwrap();
    assert_eq!(lead.name.to_string(), "throng-a1b2c3-lead-9xk4d");
    assert_eq!((lead.index, &lead.state), (None, &State::Runs));
    let agent = &look.pods[1];
    assert_eq!((agent.index, agent.node.as_deref()), (Some(1), Some("n1")));
    assert_eq!(agent.address, "10.244.1.7".parse().ok());
    assert_eq!((look.running(), look.agents, look.agents_min), (2, 2, 2));
    assert_eq!(look.why(), None);
    assert!(!look.is_hopeless(PATIENCE * 10));
}

/// The state of one agent that has this status: what is told of it, with the cure, and whether it
/// is given up at once and in the end.
fn check(status: Value, says: &str, cure: &str, at_once: bool, in_the_end: bool) {
    let look = with_agents(&[running(), status]);
    let why = look.why().unwrap();
    assert!(
        why.starts_with("1 of 2 agents do not run: agent 2: "),
        "{why}"
    );
    let (why, hint) = why.split_once("\nhint: ").unwrap_or((&why, ""));
    let says = says.trim_end_matches('.');
    assert!(why.contains(says), "{says}: {why}");
    assert!(hint.contains(cure), "{cure}: {hint}");
    assert_eq!(hint.is_empty(), cure.is_empty(), "{why}: {hint}");
    assert!(!why.contains('\n'), "{why}");
    let over = [SECONDS_0, PATIENCE].map(|waited| look.is_hopeless(waited));
    assert_eq!(over, [at_once, in_the_end], "{why}");
}

#[test]
fn agents_that_wait_for_a_node_are_given_up_in_the_end() {
    for (message, cure) in [
        (
            "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 \
             No preemption victims found for incoming pod.",
            "--agent-cpus",
        ),
        (
            "0/3 nodes are available: 3 node(s) had untolerated taint(s).",
            "--toleration",
        ),
        (
            "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
            "--node-selector",
        ),
        (
            "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.",
            "--away-from",
        ),
    ] {
        let says = message.split(". ").next().unwrap();
        check(unschedulable(message), says, cure, false, true);
    }
    let mut silent = running();
    silent["conditions"][2]["status"] = json!("False");
    check(silent, "its node says nothing", "", false, true);
}

#[test]
fn agents_that_never_can_run_are_given_up_at_once() {
    let not_found = "failed to pull and unpack image \"registry.example/throng:1\": not found";
    let as_root = "container has runAsNonRoot and image will run as root (pod: \"x\", container: \
                   agent)";
    for (reason, message, cure) in [
        ("ErrImagePull", not_found, "push the image"),
        (
            "ImagePullBackOff",
            "Back-off pulling image \"x\"",
            "push the image",
        ),
        (
            "InvalidImageName",
            "Failed to apply default image tag",
            "name the image",
        ),
        (
            "ErrImageNeverPull",
            "Container image is not present",
            "load the image",
        ),
        ("CreateContainerConfigError", as_root, "deploy/image"),
        (
            "RunContainerError",
            "exec: \"/throng\": stat /throng: no such file or directory",
            "/throng",
        ),
    ] {
        check(waiting(reason, message), reason, cure, true, true);
    }
}

#[test]
fn agents_that_were_ended_say_by_what() {
    let mut evicted = terminated("Error", 137, "");
    evicted["reason"] = json!("Evicted");
    evicted["message"] = json!("The node was low on resource: memory. ");
    let preempted = "default-scheduler: preempting to accommodate a higher priority pod";
    for (status, says, cure) in [
        (evicted, "Evicted: The node was low on resource: memory", ""),
        (
            disrupted("PreemptionByScheduler", preempted),
            "higher priority",
            "",
        ),
        (
            disrupted("EvictionByEvictionAPI", "Eviction API: evicting"),
            "evicted",
            "",
        ),
        (
            disrupted(
                "DeletionByTaintManager",
                "Taint manager: deleting due to NoExecute taint",
            ),
            "its node, which is lost",
            "",
        ),
        (
            disrupted("DeletionByPodGC", "PodGC: node no longer exists"),
            "node is no more",
            "",
        ),
        (
            terminated("OOMKilled", 137, ""),
            "OOMKilled exit code 137",
            "--agent-memory",
        ),
        (
            terminated("Error", 4, "error: the run has begun\n"),
            "it came too late: error: ",
            "",
        ),
        (terminated("Error", 5, ""), "the lead refused it", ""),
        (
            terminated("Error", 1, "first\nerror: no such host\n"),
            "its container ended (exit code 1): error: no such host",
            "",
        ),
    ] {
        check(status, says, cure, true, true);
    }
}

#[test]
fn agents_that_are_being_started_or_have_ended_by_themselves_are_no_loss() {
    check(
        waiting("ContainerCreating", ""),
        "still being started",
        "",
        false,
        false,
    );
    check(
        json!({"phase": "Pending"}),
        "still being started",
        "",
        false,
        false,
    );
    let ended = terminated("Completed", 0, "");
    let look = with_agents(&[ended.clone(), ended]);
    assert_eq!((look.why(), look.running()), (None, 0));
    assert!(!look.is_hopeless(PATIENCE));
}

#[test]
fn pods_that_are_never_made_are_explained_by_the_last_event_of_their_job() {
    let quota = "Error creating: pods \"throng-a1b2c3-agents-2-kx2lp\" is forbidden: exceeded \
                 quota: small, requested: limits.cpu=1, used: limits.cpu=3, limited: limits.cpu=3";
    let policy = "Error creating: pods \"throng-a1b2c3-agents-0-b2v5q\" is forbidden: violates \
                  PodSecurity \"restricted:latest\": host namespaces (hostNetwork=true)";
    let limits = "Error creating: pods \"throng-a1b2c3-agents-0-b2v5q\" is forbidden: maximum cpu \
                  usage per Container is 500m, but limit is 1";
    for (message, cure, at_once) in [
        (quota, "raise the quota", false),
        (policy, "--host-network", true),
        (limits, "--agent-cpus", true),
    ] {
        let lead = pod("lead-9xk4d", "2026-11-25T02:00:00Z", running());
        let one = pod("agents-1-x7k2p", "2026-11-25T02:00:00Z", running());
        let events = [
            refused("agents", "2026-11-25T02:00:09Z", message),
            refused("agents", "2026-11-25T02:00:02Z", "Error creating: Timeout"),
            refused(
                "lead",
                "2026-11-25T02:00:30Z",
                "Error creating: another one",
            ),
        ];
        let look = Look::of(RUN, &jobs(4, 4), &[lead, one], &events);
        let why = look.why().unwrap();
        assert!(
            why.starts_with("3 of 4 agents do not run: agents 1, 3, 4: "),
            "{why}"
        );
        assert!(why.contains(message) && why.contains(cure), "{why}");
        assert_eq!(look.is_hopeless(SECONDS_0), at_once, "{why}");
        assert!(look.is_hopeless(PATIENCE), "{why}");
    }
}

#[test]
fn a_run_that_begins_with_fewer_agents_is_hopeless_only_below_those() {
    let pull = waiting("ErrImagePull", "not found");
    let mut look = with_agents(&[running(), running(), pull.clone(), pull]);
    assert!(look.is_hopeless(SECONDS_0));
    look.agents_min = 2;
    assert!(!look.is_hopeless(PATIENCE));
    assert!(look.why().is_some());
}

#[test]
fn a_pod_in_the_place_of_another_counts_in_its_stead() {
    let lost = disrupted("EvictionByEvictionAPI", "Eviction API: evicting");
    let pods = [
        pod("agents-0-zzzzz", "2026-11-25T02:00:00Z", lost),
        pod("agents-0-aaaaa", "2026-11-25T02:00:40Z", running()),
        pod("lead-9xk4d", "2026-11-25T02:00:00Z", running()),
    ];
    let look = Look::of(RUN, &jobs(1, 1), &pods, &[]);
    assert_eq!(look.pods.len(), 1);
    assert_eq!(
        look.pods[0].name.to_string(),
        "throng-a1b2c3-agents-0-aaaaa"
    );
    assert_eq!(look.why(), None);
}

#[test]
fn a_lead_that_does_not_run_is_told_before_anything_else() {
    let pull = waiting("ErrImagePull", "not found");
    let lead = pod("lead-9xk4d", "2026-11-25T02:00:00Z", pull);
    let look = Look::of(RUN, &jobs(3, 1), &[lead], &[]);
    let why = look.why().unwrap();
    assert!(
        why.starts_with("the lead does not run: ErrImagePull: not found\nhint: "),
        "{why}"
    );
    assert!(look.is_hopeless(SECONDS_0));
    // One that is on its way says less than agents that never will run.
    let lead = pod(
        "lead-9xk4d",
        "2026-11-25T02:00:00Z",
        json!({"phase": "Pending"}),
    );
    let pull = waiting("ErrImagePull", "not found");
    let agent = pod("agents-0-x7k2p", "2026-11-25T02:00:00Z", pull);
    let why = Look::of(RUN, &jobs(1, 1), &[lead.clone(), agent], &[])
        .why()
        .unwrap();
    assert!(
        why.starts_with("1 of 1 agents do not run: agent 1: ErrImagePull"),
        "{why}"
    );
    let why = Look::of(RUN, &jobs(1, 1), &[lead], &[]).why().unwrap();
    assert_eq!(why, "the lead does not run: it is still being started");
    // Nothing is there, or no more.
    let look = Look::of(RUN, &[], &[], &[]);
    let why = "the lead does not run: there is no Job `throng-a1b2c3-lead`";
    assert_eq!(look.why().unwrap(), why);
    assert!(look.is_hopeless(SECONDS_0));
    // Its pod is gone, and its Job says so.
    let mut jobs = jobs(3, 3);
    jobs[0]["status"]["conditions"] = json!([{
        "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
        "message": "Job has reached the specified backoff limit",
    }]);
    let why = Look::of(RUN, &jobs, &[], &[]).why().unwrap();
    assert!(
        why.contains("BackoffLimitExceeded: Job has reached"),
        "{why}"
    );
}

#[test]
fn many_agents_with_many_reasons_are_told_in_few_words() {
    let of_code = |code: i32| terminated("Error", code, "");
    let mut agents = vec![of_code(1); 5];
    agents.extend([2, 3, 6, 7].map(of_code));
    agents.extend([running(), of_code(2)]);
    let why = with_agents(&agents).why().unwrap();
    let says = "10 of 11 agents do not run: agents 1-5: its container ended (exit code 1); agents \
                6, 11: its container ended (exit code 2); agent 7: its container ended (exit code \
                3); and others for 2 more reasons";
    assert_eq!(why, says);
}
