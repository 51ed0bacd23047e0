//! The image of Throng in pods.

use crate::Case;
use crate::bed::Cluster;

pub(crate) const CASES: &[Case] = &[(
    "the image runs as any user where pods have no rights and cannot write",
    restricted_pods,
)];

/// A namespace with the strictest standard of Kubernetes, and the image as a random user, as
/// OpenShift has it, and as its own. They ask their built-in server, because another case restarts
/// the cluster's DNS, and their exit codes are read: containerd loses the end of the log of a
/// container that ends on a busy machine (https://github.com/containerd/containerd/issues/7289).
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
data:
  names: "kubernetes.default.svc.cluster.local A"
  script: |
    function client(c)
      for i = 1, 10 do c:query("host" .. i .. ".example.test", "AAAA") end
    end
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
      args: [run, --quiet, --require, responses > 0, ARGUMENTS]
      volumeMounts: [{ name: names, mountPath: /names }]
      resources: { limits: { cpu: "1", memory: 200Mi }, requests: { cpu: 100m } }
      securityContext:
        allowPrivilegeEscalation: false
        capabilities: { drop: [ALL] }
        readOnlyRootFilesystem: true
  volumes: [{ name: names, configMap: { name: names } }]
"#;

fn restricted_pods(cluster: &Cluster) {
    let all = PODS.replace("VERSION", env!("CARGO_PKG_VERSION"));
    let (before, containers) = all.split_once("    - name: throng\n").unwrap();
    let (container, volumes) = containers.split_once("  volumes: ").unwrap();
    let transports = ["udp", "tcp", "dot", "doh2", "doh3", "doq"].map(|transport| {
        let names = "--names, /names/names, --queries, '300'";
        (transport, format!("{names}, --transport, {transport}"))
    });
    // So many streams that io_uring is used if the seccomp profile allows it; and LuaJIT.
    let streams = "--transport, tcp, --clients, '40', --queries, '500'".to_owned();
    let script = "--script, /names/script, --clients, '20'".to_owned();
    let others = [("streams", streams), ("script", script)];
    let each = transports.iter().chain(&others).map(|(name, arguments)| {
        let container = container.replace("ARGUMENTS", arguments);
        format!("    - name: {name}\n{container}")
    });
    let each: Vec<String> = each.collect();
    let random = format!("{before}{}  volumes: {volumes}", each.concat());
    let (_, begin) = before.rsplit_once("---\n").unwrap();
    let user = "    runAsUser: 1000650000\n    runAsGroup: 1000650000\n";
    assert!(begin.contains(user));
    let begin = begin.replace(user, "").replace("name: random", "name: own");
    let own = format!("{begin}{}  volumes: {volumes}", each[0]);
    cluster.apply(&format!("{random}---\n{own}"));
    for pod in ["random", "own"] {
        let pod = format!("--namespace restricted pod/{pod}");
        let wait = "kubectl wait --for=jsonpath={.status.phase}=Succeeded --timeout=600s";
        let logs = "kubectl logs --all-containers --prefix";
        let show = format!("{{ kubectl get --output=yaml {pod}; {logs} {pod}; exit 1; }}");
        cluster
            .shell(&format!("{wait} {pod} || {show}"), "")
            .succeeded();
    }
    cluster.kubectl("delete namespace restricted --wait=false");
}
