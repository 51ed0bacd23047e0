//! The image of Throng in pods.

use measure::RunRecord;
use serde_json::Value;
use testing::wait;

use crate::Case;
use crate::bed::Cluster;

pub(crate) const CASES: &[Case] = &[(
    "the image runs as any user where pods have no rights and cannot write",
    restricted_pods,
)];

/// A namespace with the strictest standard of Kubernetes, and the image as a random user, as
/// OpenShift has it, and as its own. They ask their built-in server: another case restarts the
/// cluster's DNS.
const PODS: &str = r#"
apiVersion: v1
kind: Namespace
metadata:
  name: restricted
  labels: { pod-security.kubernetes.io/enforce: restricted }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: names, namespace: restricted }
data: { names: "kubernetes.default.svc.cluster.local A" }
---
apiVersion: v1
kind: Pod
metadata: { name: random, namespace: restricted }
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000650000
    runAsGroup: 1000650000
    seccompProfile: { type: RuntimeDefault }
  containers:
    - name: throng
      image: throng:VERSION
      imagePullPolicy: Never
      args: [run, --quiet, --format, json, --duration, 1s, --rate, "100",
             --names, /names/names]
      volumeMounts: [{ name: names, mountPath: /names }]
      resources: { limits: { cpu: "1", memory: 200Mi } }
      securityContext:
        allowPrivilegeEscalation: false
        capabilities: { drop: [ALL] }
        readOnlyRootFilesystem: true
  volumes: [{ name: names, configMap: { name: names } }]
"#;

/// The self-test of a third pod, instead.
const TRANSPORTS: &str = "compare-transports, --transports, 'udp,tcp,dot,doh2,doh3,doq', \
                          --queries, '300', --quiet, --format, json";

fn restricted_pods(cluster: &Cluster) {
    let random = PODS.replace("VERSION", env!("CARGO_PKG_VERSION"));
    let (_, pod) = random.rsplit_once("---\n").unwrap();
    let user = "    runAsUser: 1000650000\n    runAsGroup: 1000650000\n";
    let own = pod.replace(user, "").replace("name: random", "name: own");
    let (before, rest) = pod.split_once("args: [").unwrap();
    let (_, after) = rest.split_once(']').unwrap();
    let transports = format!("{before}args: [{TRANSPORTS}]{after}");
    let transports = transports.replace("name: random", "name: transports");
    cluster.apply(
        &[&random, &own, &transports]
            .map(String::as_str)
            .join("---\n"),
    );
    let logs_of = |pod: &str| {
        let pod = format!("--namespace restricted pod/{pod}");
        let ended = "--for=jsonpath={.status.containerStatuses[0].state.terminated}";
        let waited = cluster.shell(&format!("kubectl wait {ended} {pod} --timeout=300s"), "");
        assert_eq!(waited.code, Some(0), "{}", waited.stderr);
        // What it printed last may be written after it is known to have ended.
        let mut logs = String::new();
        let is_whole = wait::is_soon(|| {
            logs = cluster.kubectl(&format!("logs {pod}"));
            serde_json::from_str::<Value>(&logs).is_ok()
        });
        let code = "get --output=jsonpath={.status.containerStatuses[0].state.terminated.exitCode}";
        let code = || cluster.kubectl(&format!("{code} {pod}"));
        assert!(is_whole, "{pod}, exit code {}: {logs}", code());
        logs
    };
    for pod in ["random", "own"] {
        let logs = logs_of(pod);
        let record = RunRecord::from_json(&logs).unwrap_or_else(|_| panic!("{pod}: {logs}"));
        let counts = &record.total.counts;
        assert!(counts.responses > 0, "{counts:?}");
    }
    let logs = logs_of("transports");
    let compared: Value = serde_json::from_str(&logs).unwrap_or_else(|_| panic!("{logs}"));
    let compared = compared["transports"].as_array().unwrap();
    assert_eq!(compared.len(), 6, "{logs}");
    for transport in compared {
        let achieved = transport["median"]["achieved_qps"].as_f64();
        assert!(achieved.is_some_and(|qps| qps > 0.0), "{transport}");
    }
    cluster.kubectl("delete namespace restricted --wait=false");
}
