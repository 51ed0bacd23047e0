//! `--observe kubelet`: what the kubelet tells of a pod under load, and what happens where it may
//! not be asked.

use measure::{Limit, RunRecord};
use testing::quiet::{Disturbance, Quiet};

use crate::Case;
use crate::bed::Cluster;

pub(crate) const CASES: &[Case] = &[
    (
        "the kubelet reports a pod, and the verdict knows its quota",
        pod_at_its_quota,
    ),
    (
        "a kubelet that may not be read is a note, and the run goes on",
        unreadable_kubelets,
    ),
];

/// CoreDNS with a quarter of a CPU, whoever may look at nodes, and whoever may not.
const SERVER: &str = r#"
apiVersion: v1
kind: Namespace
metadata: { name: observed }
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: observer, namespace: observed }
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: nobody, namespace: observed }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: observer }
rules: [{ apiGroups: [""], resources: [nodes/proxy, nodes/metrics], verbs: [get] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: observer }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: observer }
subjects: [{ kind: ServiceAccount, name: observer, namespace: observed }]
---
apiVersion: v1
kind: ConfigMap
metadata: { name: server, namespace: observed }
data:
  Corefile: |
    .:53 {
        prometheus :9153
        template IN A example.test {
            answer "{{ .Name }} 60 IN A 192.0.2.1"
        }
    }
---
apiVersion: v1
kind: Pod
metadata: { name: server, namespace: observed }
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: server
      image: localhost/coredns:1
      imagePullPolicy: Never
      args: [-conf, /configuration/Corefile]
      resources: { limits: { cpu: 250m, memory: 200Mi } }
      volumeMounts: [{ name: configuration, mountPath: /configuration }]
  volumes: [{ name: configuration, configMap: { name: server } }]
"#;

/// Queries in flight of the run that keeps the pod at its quota.
const OUTSTANDING: u64 = 50;

/// A busy host takes its time to answer.
const PATIENCE: &str = "timeout=60s";

/// A run against the pod, and what of it is observed.
struct Observed<'a> {
    cluster: &'a Cluster,
    address: String,
    node: String,
}

impl<'a> Observed<'a> {
    fn start(cluster: &'a Cluster) -> Observed<'a> {
        cluster.apply(SERVER);
        let pod = "-n observed pod server";
        cluster.kubectl(&format!("wait --for=condition=Ready --timeout=180s {pod}"));
        let of = |path: &str| cluster.kubectl(&format!("get {pod} -o jsonpath={{{path}}}"));
        for account in ["observer", "nobody"] {
            let token = cluster.kubectl(&format!("create token -n observed {account}"));
            std::fs::write(cluster.path(account), token).unwrap();
        }
        std::fs::write(cluster.path("wrong"), "no-token").unwrap();
        let names = cluster.path("names");
        std::fs::write(names, "www.example.test A\n").unwrap();
        Observed {
            cluster,
            address: of(".status.podIP"),
            node: of(".spec.nodeName"),
        }
    }

    /// A record of such a run, with this kubelet observed.
    fn run(&self, flags: &str, node: &str, pod: &str, credentials: &str) -> RunRecord {
        let api = "https://10.240.0.10:6443/api/v1/nodes";
        let kubelet = format!(
            "kubelet={api}/{node}/proxy/metrics/cadvisor,pod={pod},{PATIENCE}{credentials}"
        );
        let flags = format!("run --quiet --format json --observe {kubelet} {flags}");
        let json = self.cluster.throng(&flags).succeeded();
        RunRecord::from_json(&json).unwrap()
    }

    fn credentials(&self, token: &str) -> String {
        let of = |name: &str| self.cluster.path(name);
        format!(",token={},ca={}", of(token), of("pki/ca.crt"))
    }
}

fn pod_at_its_quota(cluster: &Cluster) {
    let observed = Observed::start(cluster);
    let credentials = observed.credentials("observer");
    let (address, names) = (&observed.address, observed.cluster.path("names"));
    let flags = format!(
        "--server {address} --names {names} --outstanding {OUTSTANDING} --duration 40s \
         --observe coredns=http://{address}:9153,{PATIENCE}"
    );
    let record = observed.run(&flags, &observed.node, "observed/server", &credentials);
    let programs = record.programs();
    let pod = &programs[0];
    assert_eq!(pod.name(), "pod observed/server");
    assert_eq!(pod.cpus_allowed, Some(0.25), "{pod:#?}");
    assert_eq!(pod.memory.limit_bytes, Some(200.0 * 1_048_576.0));
    assert!(pod.cpus_used > 0.0, "{pod:#?}");
    // A busy host may give the pod less than its quota. One that has it throttled has not.
    let throttled = pod.throttled_share.unwrap();
    let disturbance = Disturbance::of(&record).beyond(Quiet::VERDICT);
    if disturbance.is_none() {
        assert!(throttled > 0.5, "{pod:#?}");
        // All of it, counted once: cAdvisor has the pod and its container as well.
        assert!((0.15..0.35).contains(&pod.cpus_used), "{pod:#?}");
    }
    if throttled > 0.5 {
        let conclusion = serde_json::to_string(&record.verdict).unwrap();
        assert!(conclusion.contains("quota"), "{conclusion}");
        // The generator may have had even less of a busy host.
        let limits = match disturbance {
            None => &[Limit::Server][..],
            Some(_) => &[Limit::Server, Limit::Generator],
        };
        assert!(limits.contains(&record.verdict.limit), "{conclusion}");
    } else {
        eprintln!("the pod was not throttled: {disturbance:?}");
    }
    // Both ends counted the same, but for what was under way at the end and asked before.
    let counted = record.servers()[0].queries;
    let counts = &record.total.counts;
    let (least, most) = (
        counts.responses.saturating_sub(OUTSTANDING),
        counts.sent + 10,
    );
    assert!(
        (least as f64..=most as f64).contains(&counted),
        "{counted}: {counts:?}"
    );
}

fn unreadable_kubelets(cluster: &Cluster) {
    let observed = Observed::start(cluster);
    let (node, pod) = (observed.node.as_str(), "observed/server");
    let with = |token: &str| observed.credentials(token);
    let no_authority = format!(",token={}", observed.cluster.path("observer"));
    for (node, pod, credentials, says) in [
        (node, pod, with("wrong"), "401"),
        (
            node,
            pod,
            with("nobody"),
            "cannot get resource \"nodes/proxy\"",
        ),
        ("n9", pod, with("observer"), "nodes \"n9\" not found"),
        (
            node,
            "observed/other",
            with("observer"),
            "none of the series",
        ),
        (node, pod, no_authority, "certificate"),
    ] {
        // Not of the cluster's DNS, which other cases start anew.
        let (address, names) = (&observed.address, observed.cluster.path("names"));
        let flags = format!("--server {address} --names {names} --rate 100 --duration 1s");
        let record = observed.run(&flags, node, pod, &credentials);
        let of_pod = |it: &&measure::Observation| it.profile == "kubelet";
        let observation = record.observations.iter().find(of_pod).unwrap();
        let notes = serde_json::to_string(&observation.notes)
            .unwrap()
            .replace("\\\"", "\"");
        assert!(notes.contains(says), "{says}: {notes}");
        assert!(record.total.counts.responses > 0);
        // What may be secret is in no record.
        let json = serde_json::to_string(&record.observations).unwrap();
        assert!(!json.contains("no-token"), "{json}");
    }
}
