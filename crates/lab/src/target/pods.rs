//! A server in a pod: Kubernetes starts and limits it. `kubectl` talks to Kubernetes, with the
//! calling user's context and rights.
//!
//! Each start has its own namespace with a Service, a Secret (configuration, zone and keys, mounted
//! in the pod at their local path) and a Deployment of one pod. The namespace is in the list of
//! running servers before it is made, and all of it goes with it.
//!
//! Other users share the cluster: the namespace has an unpredictable name, is created and never
//! adopted, and objects are deleted by UID.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Resources;
use super::change::Saved;
use super::folder::TempFolder;
use super::kubelet::KubeletProxy;
use super::running_list::Listed;
use super::service::Endpoints;
use crate::files;
use crate::kubernetes::kubectl;

/// Name of all objects created.
const NAME: &str = "server";
/// Octets that a Secret may have: the API server takes 1 MiB of data.
const FILES_OCTETS_MAX: u64 = 1_000_000;
/// How long a pod may take to run, including pulling its image, and how often it is checked.
const START_MAX: Duration = Duration::from_secs(180);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long an unschedulable pod is waited for: nodes may be added.
const UNSCHEDULED_MAX: Duration = Duration::from_secs(60);
/// Label of namespaces created by Throng.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "throng");
/// Characters that the name of a namespace may have (RFC 1123).
const NAMESPACE_CHARS_MAX: usize = 63;
/// The API server's errors for an object that is gone, and for one that has another UID by now or
/// is being removed.
const GONE: [&str; 2] = ["(NotFound)", "(Conflict)"];
/// The first of the ports in a pod; all are above the privileged ones.
const PORT_FIRST: u16 = 5300;

/// Our objects in Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Held {
    /// A namespace, removed with all its contents.
    Namespace {
        /// The context of `kubectl`.
        context: String,
        name: String,
        /// Its UID; none before it is made.
        #[serde(default)]
        uid: Option<String>,
        /// The UID of the Deployment in it; none before it is made.
        #[serde(default)]
        deployment: Option<String>,
    },
    /// An existing object, to be restored.
    Changed(Saved),
}

/// The program of a container.
#[derive(Debug)]
pub(super) struct InImage<'a> {
    pub(super) image: &'a str,
    /// Its path, if it is not the image's entry point.
    pub(super) path: Option<&'a Path>,
    pub(super) arguments: Vec<String>,
}

/// A namespace with one server, gone when dropped.
#[derive(Debug)]
pub struct Pods {
    /// The context of `kubectl`.
    context: String,
    namespace: String,
    /// UIDs of namespace and Deployment, once they are made.
    uid: Option<String>,
    deployment: Option<String>,
    /// The proxy to its kubelet.
    proxy: Option<KubeletProxy>,
    /// The server's own address, node and pod.
    address: Option<IpAddr>,
    node: String,
    pod: String,
    is_kept: bool,
}

/// Checks that a cluster can be reached and that namespaces may be created in it.
///
/// # Errors
/// What `kubectl` says.
pub fn check_cluster() -> anyhow::Result<()> {
    let context = context()?;
    // A refusal has its own exit code, with the answer as text.
    let asked = kubectl(&context, &["auth", "can-i", "create", "namespaces"], None);
    asked.map(drop).with_context(|| {
        format!(
            "the cluster of `{context}` cannot be used\nhint: it takes the rights to create \
             namespaces, and in them services, secrets and deployments"
        )
    })
}

pub(super) fn context() -> anyhow::Result<String> {
    let asked = run(&["config", "current-context"], None);
    let context = asked.context("kubectl knows no cluster\nhint: set KUBECONFIG")?;
    Ok(context.trim().to_owned())
}

/// What `kubectl` prints for that cluster.
pub(super) fn kubectl(
    context: &str,
    words: &[&str],
    stdin: Option<&str>,
) -> anyhow::Result<String> {
    run(&[&["--context", context], words].concat(), stdin)
}

fn run(words: &[&str], stdin: Option<&str>) -> anyhow::Result<String> {
    let mut command = Command::new("kubectl");
    command.args(["--request-timeout=30s"]).args(words);
    let output = kubectl::output(&mut command, stdin.map(str::as_bytes)).context(
        "cannot run `kubectl`\nhint: install it, and name the cluster by KUBECONFIG or \
         ~/.kube/config",
    )?;
    let said = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = match said.trim() {
        "" => text.trim(),
        said => said,
    };
    anyhow::ensure!(
        output.status.success(),
        "kubectl {}: {said}",
        words.last().unwrap_or(&"")
    );
    Ok(text)
}

impl Held {
    /// The context of `kubectl`.
    pub(super) fn context(&self) -> &str {
        match self {
            Held::Namespace { context, .. } => context,
            Held::Changed(saved) => &saved.context,
        }
    }

    /// Removes it with all that is in it, or restores it.
    pub(super) fn remove(&self) -> anyhow::Result<()> {
        let (context, name, uid, deployment) = match self {
            Held::Namespace {
                context,
                name,
                uid,
                deployment,
            } => (context, name, uid, deployment),
            Held::Changed(saved) => return saved.restore(),
        };
        let uid = match uid {
            Some(uid) => uid.clone(),
            // The command was killed before it stored the UID.
            None => match made(context, name)? {
                Some(uid) => uid,
                None => return Ok(()),
            },
        };
        // Delete the pod first and wait for its end, or it would run beside the next one.
        if let Some(deployment) = deployment {
            let path = format!("/apis/apps/v1/namespaces/{name}/deployments/{NAME}");
            if delete(context, &path, deployment, "Foreground")? {
                let of = ["--namespace", name, "wait", "--for=delete", "--timeout=60s"];
                let what = format!("deployment/{NAME}");
                unless_gone(kubectl(context, &[&of[..], &[&what]].concat(), None))?;
            }
        }
        let path = format!("/api/v1/namespaces/{name}");
        delete(context, &path, &uid, "Background").map(drop)
    }
}

/// Deletes the object at that path of the API if it has that UID; false if it is gone, even if
/// another object has its name by now.
fn delete(context: &str, path: &str, uid: &str, propagation: &str) -> anyhow::Result<bool> {
    let options = json!({
        "kind": "DeleteOptions", "apiVersion": "v1",
        "preconditions": {"uid": uid}, "propagationPolicy": propagation,
    });
    let words = ["delete", "--filename=-", "--raw", path];
    unless_gone(kubectl(context, &words, Some(&options.to_string())))
}

/// Maps the error for an object that is gone to false.
fn unless_gone(asked: anyhow::Result<String>) -> anyhow::Result<bool> {
    let is_gone = |error: &anyhow::Error| {
        let said = format!("{error:#}");
        GONE.iter().any(|it| said.contains(it))
    };
    match asked {
        Ok(_) => Ok(true),
        Err(error) if is_gone(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The UID of a namespace that Throng created; none if there is none of that name, or if it is not
/// ours.
fn made(context: &str, name: &str) -> anyhow::Result<Option<String>> {
    let words = [
        "get",
        "namespace",
        name,
        "--ignore-not-found",
        "--output=json",
    ];
    let text = kubectl(context, &words, None)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let found: Value = serde_json::from_str(&text)?;
    let metadata = &found["metadata"];
    let is_made = metadata["labels"][MANAGED_BY.0] == MANAGED_BY.1;
    let uid = metadata["uid"].as_str().filter(|_| is_made);
    Ok(uid.map(str::to_owned))
}

/// A name that another user of the cluster can neither predict nor take in advance.
fn namespace_for(folder: &TempFolder) -> anyhow::Result<String> {
    let random = files::random_name().context("no random numbers")?;
    let name = folder.name().replace(['.', '_'], "-").to_lowercase();
    let chars_max = NAMESPACE_CHARS_MAX - 1 - random.len();
    let name: String = name.chars().take(chars_max).collect();
    Ok(format!("{}-{random}", name.trim_end_matches('-')))
}

impl Pods {
    /// A name for the namespace of a server with this folder; nothing is created yet.
    pub(super) fn new(folder: &TempFolder) -> anyhow::Result<Pods> {
        Ok(Pods {
            context: context()?,
            namespace: namespace_for(folder)?,
            uid: None,
            deployment: None,
            proxy: None,
            address: None,
            node: String::new(),
            pod: String::new(),
            is_kept: false,
        })
    }

    /// For the list of running servers.
    pub(super) fn held(&self) -> Held {
        Held::Namespace {
            context: self.context.clone(),
            name: self.namespace.clone(),
            uid: self.uid.clone(),
            deployment: self.deployment.clone(),
        }
    }

    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Ports in the pod: of UDP and TCP, of services, and others.
    pub(super) fn ports(count: usize) -> Vec<u16> {
        (PORT_FIRST..).take(count).collect()
    }

    /// Creates the namespace, which must not exist.
    pub(super) fn make_namespace(&mut self) -> anyhow::Result<()> {
        let (label, value) = MANAGED_BY;
        let uid = self.create(&json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": self.namespace, "labels": {label: value}},
        }))?;
        self.uid = Some(uid);
        Ok(())
    }

    /// Creates the Service; returns its cluster IP address.
    pub(super) fn make_service(&self, inside: &Endpoints) -> anyhow::Result<IpAddr> {
        let namespace = &self.namespace;
        let ports: Vec<Value> = ports(inside)
            .map(|(name, port, protocol)| json!({"name": name, "port": port, "protocol": protocol}))
            .collect();
        self.create(&json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": NAME, "namespace": namespace},
            "spec": {"selector": {"app": NAME}, "ports": ports},
        }))?;
        let address = self.get("service", "{.spec.clusterIP}")?;
        let address = address.trim().parse();
        address.with_context(|| format!("the Service in `{namespace}` has no address"))
    }

    /// Starts the pod with the files of that folder, and waits until its container runs.
    pub(super) fn start(
        &mut self,
        folder: &Path,
        program: &InImage<'_>,
        resources: &Resources,
    ) -> anyhow::Result<()> {
        let files = files(folder)?;
        let namespace = &self.namespace;
        let names: Vec<String> = files.keys().cloned().collect();
        self.create(&json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": NAME, "namespace": namespace},
            "stringData": files,
        }))?;
        let container = container(folder, program, resources, &names);
        let uid = self.create(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": NAME, "namespace": namespace},
            "spec": {
                "selector": {"matchLabels": {"app": NAME}},
                "template": {
                    "metadata": {"labels": {"app": NAME}},
                    "spec": {
                        "automountServiceAccountToken": false,
                        "enableServiceLinks": false,
                        "terminationGracePeriodSeconds": 0,
                        "containers": [container],
                        "volumes": [
                            {"name": "folder", "emptyDir": {}},
                            {"name": "files", "secret": {"secretName": NAME}},
                        ],
                    },
                },
            },
        }))?;
        self.deployment = Some(uid);
        self.wait_until_running()?;
        self.proxy = Some(KubeletProxy::start(&self.context, folder));
        Ok(())
    }

    fn wait_until_running(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let state = self.state()?;
            if let State::Runs { pod, node, address } = state {
                (self.pod, self.node, self.address) = (pod, node, address.parse().ok());
                return Ok(());
            }
            let patience = match &state {
                State::Fails(_) => Duration::ZERO,
                State::Waits(_) => UNSCHEDULED_MAX,
                _ => START_MAX,
            };
            if began.elapsed() >= patience {
                let log = self.kubectl(&["logs", "--selector=app=server", "--tail=20"], None);
                let log = log.unwrap_or_default();
                let log = match log.trim() {
                    "" => String::new(),
                    log => format!("; it logged:\n{log}"),
                };
                anyhow::bail!("the pod does not run: {}{log}", state.why());
            }
            thread::park_timeout(LOOK_EVERY);
        }
    }

    /// Fails if the pod has ended since, or its container was restarted.
    pub(super) fn check_alive(&self) -> anyhow::Result<()> {
        let state = self.state()?;
        let is_same = matches!(&state, State::Runs { pod, .. } if *pod == self.pod);
        anyhow::ensure!(
            is_same,
            "the pod `{}` runs no more: {}",
            self.pod,
            state.why()
        );
        Ok(())
    }

    fn state(&self) -> anyhow::Result<State> {
        let asked = ["get", "deployment,replicaset,pod", "--output=json"];
        let all: Value = serde_json::from_str(&self.kubectl(&asked, None)?)?;
        Ok(State::of(&all))
    }

    /// Sources to observe it, for a product with an exposition on that port.
    pub fn observed(&self, exposition: Option<(&str, u16)>) -> Vec<String> {
        let Pods { node, pod, .. } = self;
        let namespace = &self.namespace;
        let proxy = self.proxy.iter();
        let kubelet = proxy.map(|proxy| proxy.source(node, &format!("{namespace}/{pod}")));
        let exposition = exposition
            .zip(self.address)
            .map(|((product, port), address)| {
                let at = std::net::SocketAddr::new(address, port);
                format!("{product}=http://{at}/metrics")
            });
        kubelet.chain(exposition).collect()
    }

    /// The arguments of the command that follows its log.
    pub(super) fn log_words(&self) -> Vec<String> {
        let words = ["--context", &self.context, "--namespace", &self.namespace];
        let of_log = ["logs", "--follow", &self.pod];
        words
            .iter()
            .chain(&of_log)
            .map(|&it| it.to_owned())
            .collect()
    }

    /// Puts a namespace that could not be removed into the list of running servers for the next
    /// command, since the server's folder is removed with this.
    fn leave(&self) {
        let Ok(mut folder) = TempFolder::new("pods") else {
            return;
        };
        let mut listed = Listed::new("kubectl", [&None, &None], &folder);
        listed.kubernetes = Some(self.held());
        if listed.write().is_ok() {
            folder.keep();
        }
    }

    /// Creates an object that must not exist; returns its UID.
    fn create(&self, manifest: &Value) -> anyhow::Result<String> {
        let kind = manifest["kind"].as_str().unwrap_or_default();
        let words = [
            "create",
            "--filename=-",
            "--output=jsonpath={.metadata.uid}",
        ];
        let created = kubectl(&self.context, &words, Some(&manifest.to_string()));
        let uid = created.and_then(|uid| {
            let uid = uid.trim();
            anyhow::ensure!(!uid.is_empty(), "the cluster says no UID of it");
            Ok(uid.to_owned())
        });
        uid.with_context(|| {
            let namespace = &self.namespace;
            format!("cannot make the {kind} of `{namespace}` in Kubernetes")
        })
    }

    fn get(&self, kind: &str, path: &str) -> anyhow::Result<String> {
        self.kubectl(
            &["get", kind, NAME, &format!("--output=jsonpath={path}")],
            None,
        )
    }

    fn kubectl(&self, words: &[&str], stdin: Option<&str>) -> anyhow::Result<String> {
        let Pods {
            context, namespace, ..
        } = self;
        kubectl(
            context,
            &[&["--namespace", namespace], words].concat(),
            stdin,
        )
    }
}

impl Drop for Pods {
    fn drop(&mut self) {
        // Before the folder of its socket is removed.
        self.proxy = None;
        if !self.is_kept && self.held().remove().is_err() {
            self.leave();
        }
    }
}

/// Name, port and protocol of each endpoint.
fn ports(inside: &Endpoints) -> impl Iterator<Item = (String, u16, &'static str)> {
    let do53 = inside.do53_port;
    let udp = inside.has_udp.then(|| ("udp".to_owned(), do53, "UDP"));
    let services = inside.services.iter().map(|(service, port)| {
        let protocol = if service.is_quic() { "UDP" } else { "TCP" };
        (service.word().to_owned(), *port, protocol)
    });
    let tcp = ("tcp".to_owned(), do53, "TCP");
    udp.into_iter().chain([tcp]).chain(services)
}

/// The files of a folder with their texts.
fn files(folder: &Path) -> anyhow::Result<serde_json::Map<String, Value>> {
    let mut files = serde_json::Map::new();
    let mut octets = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !entry.file_type()?.is_file() || name.starts_with("server.json") {
            continue;
        }
        let text = fs::read_to_string(entry.path())
            .with_context(|| format!("cannot read `{}`", entry.path().display()))?;
        octets += text.len() as u64;
        files.insert(name, text.into());
    }
    anyhow::ensure!(
        octets <= FILES_OCTETS_MAX,
        "configuration and zone have {octets} bytes, Kubernetes takes {FILES_OCTETS_MAX} for a \
         pod\nhint: serve fewer names"
    );
    Ok(files)
}

/// The container: each file at its local path, in a writable folder.
fn container(
    folder: &Path,
    program: &InImage<'_>,
    resources: &Resources,
    files: &[String],
) -> Value {
    let own = json!({"name": "folder", "mountPath": folder});
    let mounts = files.iter().map(|file| {
        json!({"name": "files", "mountPath": folder.join(file), "subPath": file, "readOnly": true})
    });
    let mounts: Vec<Value> = std::iter::once(own).chain(mounts).collect();
    let limits = resources.limits_in_kubernetes();
    json!({
        "name": NAME,
        "image": program.image,
        "imagePullPolicy": "IfNotPresent",
        "command": program.path.iter().collect::<Vec<_>>(),
        "args": program.arguments,
        "workingDir": folder,
        "resources": {"limits": limits, "requests": limits},
        "volumeMounts": mounts,
    })
}

/// State of a pod.
#[derive(Debug, PartialEq, Eq)]
enum State {
    Runs {
        pod: String,
        node: String,
        address: String,
    },
    /// It is starting.
    Starts,
    /// No node can run it; the reason.
    Waits(String),
    /// It will never run; the reason.
    Fails(String),
}

impl State {
    fn of(all: &Value) -> State {
        let items = all["items"].as_array().map_or(&[][..], Vec::as_slice);
        let conditions = items.iter().flat_map(|it| {
            let conditions = it["status"]["conditions"].as_array();
            conditions.into_iter().flatten()
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for condition in conditions {
            let has = |kind: &str, status: &str| {
                condition["type"] == kind && condition["status"] == status
            };
            if has("ReplicaFailure", "True") {
                return State::Fails(text(&condition["message"]));
            }
            if has("PodScheduled", "False") {
                return State::Waits(text(&condition["message"]));
            }
        }
        let Some(pod) = items.iter().find(|it| it["kind"] == "Pod") else {
            return State::Starts;
        };
        let container = &pod["status"]["containerStatuses"][0];
        let (waiting, last) = (&container["state"]["waiting"], &container["lastState"]);
        let reason = text(&waiting["reason"]);
        let ended = [&container["state"]["terminated"], &last["terminated"]];
        if let Some(ended) = ended.into_iter().find(|it| it.is_object()) {
            let how = [
                text(&ended["reason"]),
                format!("exit code {}", ended["exitCode"]),
            ];
            return State::Fails(format!("its container ended ({})", how.join(" ").trim()));
        }
        if !["", "ContainerCreating", "PodInitializing"].contains(&reason.as_str()) {
            return State::Fails(format!("{reason}: {}", text(&waiting["message"])));
        }
        match container["state"]["running"].is_object() {
            true => State::Runs {
                pod: text(&pod["metadata"]["name"]),
                node: text(&pod["spec"]["nodeName"]),
                address: text(&pod["status"]["podIP"]),
            },
            false => State::Starts,
        }
    }

    fn why(&self) -> &str {
        match self {
            State::Waits(why) | State::Fails(why) => why,
            State::Runs { .. } => "another was started in its place",
            State::Starts => "it is still being started",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(state: &Value) -> Value {
        json!({"items": [{
            "kind": "Pod",
            "metadata": {"name": "server-1"},
            "spec": {"nodeName": "n1"},
            "status": {"podIP": "10.1.2.3", "containerStatuses": [{"state": state}]},
        }]})
    }

    #[test]
    fn namespaces_have_names_that_cannot_be_foretold() {
        let folder = TempFolder::new(&format!("Long_{}", "name.".repeat(12))).unwrap();
        let names = [(); 2].map(|()| namespace_for(&folder).unwrap());
        assert_ne!(names[0], names[1]);
        for name in names {
            assert!(name.len() <= NAMESPACE_CHARS_MAX, "{name}");
            let is_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.chars().all(is_label), "{name}");
            let (_, random) = name.rsplit_once('-').unwrap();
            assert!(random.len() == 16 && u64::from_str_radix(random, 16).is_ok());
        }
    }

    #[test]
    fn list_of_an_earlier_version_has_no_uid() {
        let text = r#"{"namespace": {"context": "c", "name": "throng-nsd-7-0"}}"#;
        let held: Held = serde_json::from_str(text).unwrap();
        assert!(matches!(held, Held::Namespace { uid: None, .. }));
    }

    #[test]
    fn what_kubernetes_says_of_a_pod_is_understood() {
        let none = json!({"items": []});
        assert_eq!(State::of(&none), State::Starts);
        let creating = json!({"waiting": {"reason": "ContainerCreating"}});
        assert_eq!(State::of(&pod(&creating)), State::Starts);
        let running = State::of(&pod(&json!({"running": {}})));
        assert!(matches!(running, State::Runs { .. }), "{running:?}");
        let pull = json!({"waiting": {"reason": "ErrImagePull", "message": "not found"}});
        assert_eq!(State::of(&pod(&pull)).why(), "ErrImagePull: not found");
        let ended = State::of(&pod(&json!({"terminated": {"exitCode": 1}})));
        assert_eq!(ended.why(), "its container ended (exit code 1)");
        let mut again = pod(&json!({"waiting": {"reason": "CrashLoopBackOff"}}));
        let last = json!({"terminated": {"reason": "OOMKilled", "exitCode": 137}});
        again["items"][0]["status"]["containerStatuses"][0]["lastState"] = last;
        let told = "its container ended (OOMKilled exit code 137)";
        assert_eq!(State::of(&again).why(), told);
        for (kind, status) in [("PodScheduled", "False"), ("ReplicaFailure", "True")] {
            let condition = json!({"type": kind, "status": status, "message": "too little"});
            let state = State::of(&json!({"items": [{"status": {"conditions": [condition]}}]}));
            assert_eq!(state.why(), "too little", "{kind}");
        }
    }
}
