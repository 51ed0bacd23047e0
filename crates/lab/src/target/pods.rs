//! A server in a pod: Kubernetes starts and limits it, and `kubectl` asks Kubernetes, with the
//! rights and the cluster that a shell here has.
//!
//! Each start has a namespace of its own with a Service, a Secret (configuration, zone and keys,
//! which the pod has in the folder that they have here) and a Deployment of one pod. The namespace
//! is in the list of running servers before it is made, and all of it goes with it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Resources;
use super::change::Saved;
use super::folder::TempFolder;
use super::running_list::Listed;
use super::service::Endpoints;

/// Name of all that is made.
const NAME: &str = "server";
/// Octets that a Secret may have: the API server takes 1 MiB of data.
const FILES_OCTETS_MAX: u64 = 1_000_000;
/// How long a pod may take to run, its image among it, and how often it is looked at.
const START_MAX: Duration = Duration::from_secs(180);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long one that fits on no node is waited for: nodes may be added.
const UNSCHEDULED_MAX: Duration = Duration::from_secs(60);
/// The first of the ports in a pod; all are above those that need rights.
const PORT_FIRST: u16 = 5300;

/// Where Kubernetes has something of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Held {
    /// A namespace, which goes with all that is in it.
    Namespace {
        /// The context of `kubectl`.
        context: String,
        name: String,
    },
    /// Something that was there before, and is restored.
    Changed(Saved),
}

/// What a container runs.
#[derive(Debug)]
pub(super) struct InImage<'a> {
    pub(super) image: &'a str,
    /// Its program, if it is not what the image begins with.
    pub(super) path: Option<&'a Path>,
    pub(super) arguments: Vec<String>,
}

/// A namespace with one server, gone when dropped.
#[derive(Debug)]
pub struct Pods {
    /// The context of `kubectl`.
    context: String,
    namespace: String,
    /// Serves what the kubelet tells of the pod, to this host.
    proxy: Option<(Child, String)>,
    /// The server's own address, node and pod.
    address: Option<IpAddr>,
    node: String,
    pod: String,
    is_kept: bool,
}

/// Refuses where no cluster can be asked, or namespaces may not be made in it.
///
/// # Errors
/// What `kubectl` says.
pub fn check_cluster() -> anyhow::Result<()> {
    let context = context()?;
    // A refusal is an exit code of its own, with the answer in words.
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
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().context(
        "cannot run `kubectl`\nhint: install it, and tell it the cluster by KUBECONFIG or \
         ~/.kube/config",
    )?;
    if let Some(mut input) = child.stdin.take() {
        // One that fails before it has read all says why itself.
        let _ = input.write_all(stdin.unwrap_or_default().as_bytes());
    }
    let output = child
        .wait_with_output()
        .context("cannot wait for kubectl")?;
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
        let (context, namespace) = match self {
            Held::Namespace { context, name } => (context, name),
            Held::Changed(saved) => return saved.restore(),
        };
        // The pod first and to its end, or it would run beside the next one.
        let of = ["--namespace", namespace, "delete", "deployment", NAME];
        let how = [
            "--ignore-not-found",
            "--cascade=foreground",
            "--timeout=60s",
        ];
        kubectl(context, &[&of[..], &how].concat(), None)?;
        let of = ["delete", "namespace", namespace];
        let how = ["--ignore-not-found", "--wait=false"];
        kubectl(context, &[&of[..], &how].concat(), None)?;
        Ok(())
    }
}

impl Pods {
    /// A name for a namespace of a server with this folder; nothing is made yet.
    pub(super) fn new(folder: &TempFolder) -> anyhow::Result<Pods> {
        let namespace = folder.name().replace(['.', '_'], "-").to_lowercase();
        Ok(Pods {
            context: context()?,
            namespace,
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
        }
    }

    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Ports in the pod: of UDP and TCP, of so many services, and others.
    pub(super) fn ports(count: usize) -> Vec<u16> {
        (PORT_FIRST..).take(count).collect()
    }

    /// Makes the namespace and the Service; the address that it has in the cluster.
    pub(super) fn make_service(&self, inside: &Endpoints) -> anyhow::Result<IpAddr> {
        let namespace = &self.namespace;
        self.apply(&json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace, "labels": {"app.kubernetes.io/managed-by": "throng"}},
        }))?;
        let ports: Vec<Value> = ports(inside)
            .map(|(name, port, protocol)| json!({"name": name, "port": port, "protocol": protocol}))
            .collect();
        self.apply(&json!({
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
        self.apply(&json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": NAME, "namespace": namespace},
            "stringData": files,
        }))?;
        let container = container(folder, program, resources, &names);
        self.apply(&json!({
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
        self.wait_until_running()?;
        self.serve_kubelet();
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

    /// Refuses a pod that has ended since, or whose container was started again.
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

    /// Without it the pod is not observed, which the record says.
    fn serve_kubelet(&mut self) {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "kubectl", "--context"]);
        command.args([&self.context, "proxy", "--port=0"]);
        // Nothing else is to be had from it, by nobody on this host.
        command.arg("--accept-paths=^/api/v1/nodes/[^/]+/proxy/metrics/cadvisor$");
        command.arg("--reject-methods=POST,PUT,PATCH,DELETE");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let Ok(mut child) = command.stderr(Stdio::null()).spawn() else {
            return;
        };
        let mut line = String::new();
        let stdout = child.stdout.take();
        let read = stdout.map(|stdout| BufReader::new(stdout).read_line(&mut line));
        let address = line
            .trim()
            .rsplit(' ')
            .next()
            .unwrap_or_default()
            .to_owned();
        match read {
            Some(Ok(_)) if address.contains(':') => self.proxy = Some((child, address)),
            _ => end(&mut child),
        }
    }

    /// What is to be observed of it, of a product with an exposition on that port.
    pub fn observed(&self, exposition: Option<(&str, u16)>) -> Vec<String> {
        let Pods { node, pod, .. } = self;
        let namespace = &self.namespace;
        let kubelet = self.proxy.iter().map(|(_, address)| {
            let path = format!("api/v1/nodes/{node}/proxy/metrics/cadvisor");
            format!("kubelet=http://{address}/{path},pod={namespace}/{pod}")
        });
        let exposition = exposition
            .zip(self.address)
            .map(|((product, port), address)| {
                let at = std::net::SocketAddr::new(address, port);
                format!("{product}=http://{at}/metrics")
            });
        kubelet.chain(exposition).collect()
    }

    /// The words by which its log is followed.
    pub(super) fn log_words(&self) -> Vec<String> {
        let words = ["--context", &self.context, "--namespace", &self.namespace];
        let of_log = ["logs", "--follow", &self.pod];
        words
            .iter()
            .chain(&of_log)
            .map(|&it| it.to_owned())
            .collect()
    }

    /// Puts what could not be removed into the list of running servers, for whoever comes next: the
    /// folder of the server goes with this.
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

    fn apply(&self, manifest: &Value) -> anyhow::Result<()> {
        let kind = manifest["kind"].as_str().unwrap_or_default();
        let words = ["apply", "--filename=-"];
        let applied = kubectl(&self.context, &words, Some(&manifest.to_string()));
        applied.map(drop).with_context(|| {
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
        if let Some((child, _)) = &mut self.proxy {
            end(child);
        }
        if !self.is_kept && self.held().remove().is_err() {
            self.leave();
        }
    }
}

fn end(child: &mut Child) {
    // Both fail only if it has ended, which is what they are for.
    let _ = child.kill();
    let _ = child.wait();
}

/// Name, port and protocol of everything that is asked.
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

/// The container: each file where it is here, in a folder that can be written to.
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

/// How far a pod has come.
#[derive(Debug, PartialEq, Eq)]
enum State {
    Runs {
        pod: String,
        node: String,
        address: String,
    },
    /// It is on its way.
    Starts,
    /// No node takes it, and why.
    Waits(String),
    /// It never will, and why.
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
