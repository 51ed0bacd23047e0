//! The objects of a fleet: a Job of one pod for the lead, an indexed Job for the agents, a
//! Service by which these find it, a Secret with the keys and the inputs of both. All are in one
//! namespace and need no rights in the cluster; the pods have no access to the API server, and fit
//! a namespace of the Pod Security Standard `restricted`. An experiment, which is led from outside,
//! has the agents' Job alone.

use std::collections::BTreeMap;
use std::time::Duration;

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::pods::MIN_AGENTS;
use crate::agents::{Inputs, KeyFiles};

/// Where the lead listens.
const PORT: u16 = 7353;
/// Where the pods have what is mounted, and where the lead's command runs and writes.
const KEYS: &str = "/keys";
const INPUTS: &str = "/inputs";
const RESULT: &str = "/result";
/// How long agents try to reach the lead: images are pulled, nodes are added.
const PATIENCE: Duration = Duration::from_mins(30);
/// Exit codes of an agent that another attempt does not help: refused, and too late.
const FINAL: [u8; 2] = [95, 96];
/// How often an agent is started again before the run begins.
const RETRIES: u32 = 3;

/// What the lead's command reads: the lead has it in memory under these paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetInputs {
    /// The hash of each content by its path.
    pub paths: BTreeMap<String, String>,
    /// The contents.
    pub contents: Inputs,
}

/// What is asked of Kubernetes.
#[derive(Clone, Debug)]
pub struct FleetPods {
    /// The name of the run, of which the names of all objects are made.
    pub name: String,
    /// Their namespace; none for that of the context.
    pub namespace: Option<String>,
    /// The image of lead and agents.
    pub image: String,
    /// How many agents there are.
    pub agents: u32,
    /// How many of them are enough to begin, where not all are needed.
    pub min_agents: Option<u32>,
    /// CPUs of each pod, as a quantity of Kubernetes.
    pub cpus: String,
    /// Memory of each pod, likewise.
    pub memory: String,
    /// Labels that nodes must have.
    pub node_selector: BTreeMap<String, String>,
    /// Taints that the pods tolerate, as objects of Kubernetes.
    pub tolerations: Vec<Value>,
    /// The agents use the network of their nodes.
    pub host_network: bool,
    /// How long the lead keeps its result.
    pub keep: Duration,
    /// Where the lead serves metrics to other pods. Prometheus discovers declared ports alone.
    pub metrics_port: Option<u16>,
    /// What the lead does: a command of `throng` with its flags, [`FleetPods::flags`] among them.
    pub command: Vec<String>,
}

impl FleetPods {
    /// The name of the lead's Job and of its Service.
    pub fn lead(&self) -> String {
        format!("{}-lead", self.name)
    }

    /// The name of the agents' Job.
    pub fn agents_job(&self) -> String {
        format!("{}-agents", self.name)
    }

    fn labels(&self, component: &str) -> Value {
        json!({
            "app.kubernetes.io/name": "throng",
            "app.kubernetes.io/managed-by": "throng",
            "app.kubernetes.io/instance": self.name,
            "app.kubernetes.io/component": component,
        })
    }

    fn metadata(&self, name: &str, component: &str) -> Value {
        let mut metadata = json!({"name": name, "labels": self.labels(component)});
        if let Some(namespace) = &self.namespace {
            metadata["namespace"] = json!(namespace);
        }
        metadata
    }

    /// The flags of a command that leads that number of agents in its pod, or the fewest that are
    /// enough after the time that it waits for all.
    pub fn flags(agents: u32, min_agents: Option<u32>, patience: Option<Duration>) -> Vec<String> {
        let (listen, agents) = (format!("0.0.0.0:{PORT}"), agents.to_string());
        let flags = ["--listen", &listen, "--agents", &agents, "--keys", KEYS];
        let mut flags = flags.map(str::to_owned).to_vec();
        if let Some(min) = min_agents {
            flags.extend(["--min-agents".to_owned(), min.to_string()]);
        }
        if let Some(patience) = patience {
            let patience = format!("{}ms", patience.as_millis());
            flags.extend(["--barrier-timeout".to_owned(), patience]);
        }
        flags
    }

    /// The line of the lead's container.
    fn lead_arguments(&self) -> Vec<String> {
        let keep = format!("{}s", self.keep.as_secs());
        let own = ["fleet", "lead", "--keep", &keep, "--inputs", INPUTS, "--"];
        let own = own.into_iter().map(str::to_owned);
        own.chain(self.command.iter().cloned()).collect()
    }

    fn agent_arguments(&self) -> Vec<String> {
        let lead = format!("{}:{PORT}", self.lead());
        let patience = format!("{}s", PATIENCE.as_secs());
        let line = [
            "fleet",
            "agent",
            &lead,
            "--keys",
            KEYS,
            "--patience",
            &patience,
        ];
        line.into_iter().map(str::to_owned).collect()
    }

    /// A pod with one container.
    fn pod(&self, component: &str, container: &Value, volumes: &Value) -> Value {
        let mut labels = self.labels(component);
        // A side-car would outlive the container, and see its traffic.
        labels["sidecar.istio.io/inject"] = json!("false");
        let mut spec = json!({
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "securityContext": {
                "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": volumes,
        });
        if !self.node_selector.is_empty() {
            spec["nodeSelector"] = json!(self.node_selector);
        }
        if !self.tolerations.is_empty() {
            spec["tolerations"] = json!(self.tolerations);
        }
        let annotations = json!({"linkerd.io/inject": "disabled"});
        json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": spec})
    }

    /// The container of a pod, whose requests are its limits: whole CPUs of its own where the
    /// kubelet gives them (`cpu-manager-policy: static`).
    fn container(&self, name: &str, arguments: &[String], mounts: &Value) -> Value {
        let resources = json!({"cpu": self.cpus, "memory": self.memory});
        let field = |name: &str, path: &str| {
            let from = json!({"fieldRef": {"fieldPath": path}});
            json!({"name": name, "valueFrom": from})
        };
        json!({
            "name": name,
            "image": self.image,
            "args": arguments,
            "env": [
                field("THRONG_NODE", "spec.nodeName"),
                field("THRONG_HOST_IP", "status.hostIP"),
                field("THRONG_POD", "metadata.name"),
                field("THRONG_ZONE", "metadata.labels['topology.kubernetes.io/zone']"),
            ],
            "resources": {"requests": resources, "limits": resources},
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": mounts,
        })
    }

    fn lead_job(&self) -> Value {
        let mounts = json!([
            {"name": "keys", "mountPath": KEYS, "readOnly": true},
            {"name": "inputs", "mountPath": INPUTS, "readOnly": true},
            {"name": "result", "mountPath": RESULT},
        ]);
        let mut container = self.container("lead", &self.lead_arguments(), &mounts);
        container["workingDir"] = json!(RESULT);
        let metrics = self.metrics_port.map(|port| (port, "metrics"));
        let ports = [(PORT, "agents")].into_iter().chain(metrics);
        let ports = ports.map(|(port, name)| json!({"containerPort": port, "name": name}));
        container["ports"] = ports.collect();
        let volumes = json!([
            keys_volume(self, "lead"),
            {"name": "inputs", "secret": {"secretName": self.inputs_secret()}},
            {"name": "result", "emptyDir": {}},
        ]);
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": self.metadata(&self.lead(), "lead"),
            "spec": {
                "backoffLimit": 0,
                "ttlSecondsAfterFinished": self.keep.as_secs(),
                "template": self.pod("lead", &container, &volumes),
            },
        })
    }

    /// Agents that dial their lead.
    fn dialling_agents(&self) -> Value {
        let mounts = json!([{"name": "keys", "mountPath": KEYS, "readOnly": true}]);
        let container = self.container("agent", &self.agent_arguments(), &mounts);
        self.agents(&container, &json!([keys_volume(self, "agent")]))
    }

    /// Pods in which the command outside starts agents, until none has run there for as long as a
    /// lead would keep its result.
    pub fn waiting_agents(&self) -> Value {
        let idle = format!("{}s", self.keep.as_secs());
        let arguments = ["fleet", "wait", "--idle", &idle].map(str::to_owned);
        let container = self.container("agent", &arguments, &json!([]));
        self.agents(&container, &json!([]))
    }

    fn agents(&self, container: &Value, volumes: &Value) -> Value {
        let mut pod = self.pod("agent", container, volumes);
        if let Some(min) = self.min_agents {
            // By this a command that follows the run knows it.
            pod["metadata"]["annotations"][MIN_AGENTS] = json!(min.to_string());
        }
        let spec = &mut pod["spec"];
        // As evenly as the nodes allow.
        spec["topologySpreadConstraints"] = json!([{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": self.labels("agent")},
        }]);
        if self.host_network {
            spec["hostNetwork"] = json!(true);
            spec["dnsPolicy"] = json!("ClusterFirstWithHostNet");
        }
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": self.metadata(&self.agents_job(), "agent"),
            "spec": {
                "completionMode": "Indexed",
                "completions": self.agents,
                "parallelism": self.agents,
                "backoffLimitPerIndex": RETRIES,
                "podReplacementPolicy": "Failed",
                "podFailurePolicy": {"rules": [
                    {
                        "action": "FailIndex",
                        "onExitCodes": {"operator": "In", "values": FINAL},
                    },
                    {
                        "action": "Ignore",
                        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                    },
                ]},
                "ttlSecondsAfterFinished": self.keep.as_secs(),
                "template": pod,
            },
        })
    }

    fn inputs_secret(&self) -> String {
        format!("{}-inputs", self.name)
    }

    fn keys_secret(&self, side: &str) -> String {
        format!("{}-{side}-keys", self.name)
    }

    fn secret(&self, name: &str, component: &str, data: &BTreeMap<String, String>) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": self.metadata(name, component),
            "data": data,
        })
    }
}

/// The keys of one side.
fn keys_volume(pods: &FleetPods, side: &str) -> Value {
    json!({"name": "keys", "secret": {"secretName": pods.keys_secret(side)}})
}

/// All objects of a fleet, in the order in which they are made: the lead's Job first, which the
/// others can be owned by.
pub fn objects(pods: &FleetPods, keys: &KeyFiles, inputs: &FleetInputs) -> Vec<Value> {
    let encoded = |text: &[u8]| BASE64.encode(text);
    let keys_of = |side: &str| -> BTreeMap<String, String> {
        let own = keys.iter();
        let own = own.filter(|(name, _)| *name == "ca.pem" || name.starts_with(side));
        own.map(|(name, text)| (name.clone(), encoded(text.as_bytes())))
            .collect()
    };
    let content = |hash: &String| inputs.contents.get(hash).map(|it| encoded(it));
    let mut files: BTreeMap<String, String> = (inputs.contents.hashes())
        .filter_map(|hash| Some((hash.clone(), content(hash)?)))
        .collect();
    let index = serde_json::to_vec_pretty(&inputs.paths).expect("paths are text");
    files.insert("index.json".to_owned(), encoded(&index));
    vec![
        pods.lead_job(),
        pods.secret(&pods.keys_secret("lead"), "lead", &keys_of("lead")),
        pods.secret(&pods.keys_secret("agent"), "agent", &keys_of("agent")),
        pods.secret(&pods.inputs_secret(), "lead", &files),
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": pods.metadata(&pods.lead(), "lead"),
            "spec": {
                // Its address is there before the lead is: agents ask for it at once, and that a
                // headless Service has no pod yet would stay in the cache of the cluster's DNS.
                "type": "ClusterIP",
                "publishNotReadyAddresses": true,
                "selector": pods.labels("lead"),
                "ports": [{"name": "agents", "port": PORT}],
            },
        }),
        pods.dialling_agents(),
    ]
}
