//! The objects of a fleet in a cluster, as values: nothing is asked and nothing is made here.
//!
//! All are named after the run: the Job `RUN-lead` of one pod, to which all else belongs once it is
//! made; the Secret `RUN` with the keys of this run; the headless Service `RUN`, by which agents
//! find the lead; and the indexed Job `RUN-agents`. Pods are such as the pod security standard
//! `restricted` and OpenShift's constraints of the same name demand: any user but root, nothing
//! that could be gained, files that cannot be changed but for `/tmp`, and no credentials for the
//! cluster. Needs Kubernetes 1.29: before it, one agent that fails was all that fail.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::options::{Options, Toleration};
use super::yaml;

/// Where the lead listens for agents.
pub const PORT: u16 = 7053;
/// The folder of the Secret's files in each pod.
pub const KEYS: &str = "/keys";
/// The program in the image.
pub const PROGRAM: &str = "/throng";
/// Exit codes by which an agent says that it comes too late, or was refused: it is not started
/// again, for it would come to the same.
pub const FINAL_EXIT_CODES: [i32; 2] = [4, 5];
/// How long the lead waits for agents: pods may have to wait for nodes.
const AGENTS_WITHIN: &str = "300s";

pub(super) const OF_RUN: &str = "app.kubernetes.io/instance";
pub(super) const ROLE: &str = "throng.role";
/// Says on the agents' Job with how many of them the run begins.
pub(super) const AGENTS_MIN: &str = "throng/agents-min";

/// What the two Jobs differ in.
struct Part<'a> {
    role: &'a str,
    arguments: Value,
    /// Of the container.
    resources: Value,
    /// How long it has to end in order.
    grace_seconds: u32,
}

/// The name of the lead's Job.
pub fn lead_name(run: &str) -> String {
    format!("{run}-lead")
}

/// The name of the agents' Job.
pub fn agents_name(run: &str) -> String {
    format!("{run}-agents")
}

/// The Job of the lead.
pub fn lead_job(options: &Options) -> Value {
    let (agents, min) = (options.agents.to_string(), options.agents_min.to_string());
    let listen = format!("[::]:{PORT}");
    let part = Part {
        role: "lead",
        arguments: json!([
            "fleet",
            "lead",
            "--listen",
            listen,
            "--agents",
            agents,
            "--min-agents",
            min,
            "--agents-within",
            AGENTS_WITHIN,
            "--keys",
            KEYS
        ]),
        // It merges, and sends no query: less is enough for small fleets, this for large ones.
        resources: json!({
            "requests": {"cpu": "250m", "memory": "256Mi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        }),
        grace_seconds: 30,
    };
    let mut pod = pod(options, &part);
    pod["spec"]["containers"][0]["ports"] =
        json!([{"name": "agents", "containerPort": PORT, "protocol": "TCP"}]);
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(options, lead_name(&options.name), Some("lead")),
        "spec": {
            // Another lead would know nothing of the run.
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": options.keep.as_secs(),
            "template": pod,
        },
    })
}

/// The keys of this run, and the run itself if the lead is to start it by itself.
pub fn secret(options: &Options, files: &BTreeMap<String, String>, setup: Option<&str>) -> Value {
    let setup = setup.map(|setup| ("setup".to_owned(), setup.to_owned()));
    let files: BTreeMap<String, String> = files.clone().into_iter().chain(setup).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(options, options.name.clone(), None),
        "immutable": true,
        "stringData": files,
    })
}

/// The name by which agents find the lead.
pub fn service(options: &Options) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(options, options.name.clone(), None),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": selector(options, "lead"),
            "ports": [{"name": "agents", "port": PORT, "protocol": "TCP"}],
        },
    })
}

/// The Job of the agents: one pod for each index, and another only in the place of one that the
/// cluster took away.
pub fn agents_job(options: &Options) -> Value {
    let limits = json!({"cpu": cpus(options.cpus), "memory": options.memory});
    let part = Part {
        role: "agent",
        arguments: json!([
            "fleet",
            "agent",
            "--connect",
            lead_address(options),
            "--keys",
            KEYS
        ]),
        resources: json!({"requests": limits, "limits": limits}),
        grace_seconds: 5,
    };
    let mut pod = pod(options, &part);
    place(options, &mut pod["spec"]);
    let mut metadata = metadata(options, agents_name(&options.name), Some("agent"));
    metadata["annotations"] = json!({AGENTS_MIN: options.agents_min.to_string()});
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "completionMode": "Indexed",
            "completions": options.agents,
            "parallelism": options.agents,
            "backoffLimitPerIndex": 0,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
                {
                    "action": "FailIndex",
                    "onExitCodes": {"operator": "In", "values": FINAL_EXIT_CODES},
                },
            ]},
            "ttlSecondsAfterFinished": options.keep.as_secs(),
            "template": pod,
        },
    })
}

/// The object as one that is removed with its owner, the lead's Job. It does not keep the owner
/// from being removed, which would take a right of its own where that is watched.
pub fn owned(mut object: Value, run: &str, uid: &str) -> Value {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": lead_name(run),
        "uid": uid,
    }]);
    object
}

/// All objects in YAML, of which `kubectl apply` alone makes a run. They belong to nobody, so the
/// Jobs go when they have ended and their time is over, Secret and Service stay.
pub fn yaml(options: &Options, files: &BTreeMap<String, String>, setup: Option<&str>) -> String {
    yaml::documents(&[
        secret(options, files, setup),
        service(options),
        lead_job(options),
        agents_job(options),
    ])
}

/// Where agents find the lead. Pods look names up in their own namespace first.
fn lead_address(options: &Options) -> String {
    match &options.namespace {
        Some(namespace) => format!("{}.{namespace}.svc:{PORT}", options.name),
        None => format!("{}:{PORT}", options.name),
    }
}

fn cpus(cpus: f64) -> String {
    format!("{}m", (cpus * 1e3).round())
}

fn metadata(options: &Options, name: String, role: Option<&str>) -> Value {
    let mut metadata = json!({"name": name, "labels": labels(options, role)});
    if let Some(namespace) = &options.namespace {
        metadata["namespace"] = namespace.as_str().into();
    }
    metadata
}

fn labels(options: &Options, role: Option<&str>) -> Map<String, Value> {
    let mut labels = Map::new();
    labels.insert("app.kubernetes.io/name".to_owned(), "throng".into());
    labels.insert(OF_RUN.to_owned(), options.name.as_str().into());
    labels.insert("app.kubernetes.io/managed-by".to_owned(), "throng".into());
    if let Some(role) = role {
        labels.insert(ROLE.to_owned(), role.into());
    }
    labels
}

fn selector(options: &Options, role: &str) -> Value {
    json!({OF_RUN: options.name, ROLE: role})
}

/// What both kinds of pods have in common.
fn pod(options: &Options, part: &Part<'_>) -> Value {
    let mut labels = labels(options, Some(part.role));
    labels.insert("sidecar.istio.io/inject".to_owned(), "false".into());
    json!({
        "metadata": {
            "labels": labels,
            "annotations": {
                // Another program in the pod would send our queries by way of itself.
                "sidecar.istio.io/inject": "false",
                "linkerd.io/inject": "disabled",
                // A node that goes because it has little to do takes the run with it.
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                "karpenter.sh/do-not-disrupt": "true",
            },
        },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": part.grace_seconds,
            "securityContext": {
                "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container(options, part)],
            "volumes": [
                {"name": "keys", "secret": {"secretName": options.name}},
                {"name": "tmp", "emptyDir": {}},
            ],
        },
    })
}

fn container(options: &Options, part: &Part<'_>) -> Value {
    let field = |name: &str, path: &str| {
        let source = json!({"fieldRef": {"fieldPath": path}});
        json!({"name": name, "valueFrom": source})
    };
    json!({
        "name": part.role,
        "image": options.image,
        "imagePullPolicy": "IfNotPresent",
        "args": part.arguments,
        "env": [
            field("THRONG_NODE", "spec.nodeName"),
            field("THRONG_POD", "metadata.name"),
        ],
        "resources": part.resources,
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        },
        // What it wrote last says why it ended, also to whoever may not read logs.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "keys", "mountPath": KEYS, "readOnly": true},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    })
}

/// On which nodes agents are, and in which network.
fn place(options: &Options, spec: &mut Value) {
    spec["topologySpreadConstraints"] = json!([{
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector(options, "agent")},
    }]);
    if options.host_network {
        spec["hostNetwork"] = true.into();
        spec["dnsPolicy"] = "ClusterFirstWithHostNet".into();
    }
    if !options.node_selector.is_empty() {
        spec["nodeSelector"] = json!(options.node_selector);
    }
    if !options.tolerations.is_empty() {
        let tolerations = options.tolerations.iter().map(Toleration::manifest);
        spec["tolerations"] = tolerations.collect();
    }
    if !options.away_from.is_empty() {
        let labels: BTreeMap<_, _> = options.away_from.iter().cloned().collect();
        spec["affinity"] = json!({"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": labels},
                "namespaceSelector": {},
            }],
        }});
    }
}

#[cfg(test)]
mod tests;
