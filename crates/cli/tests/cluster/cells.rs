//! Servers in pods: `throng lab up --topology kubernetes`, and cells of experiments.

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use measure::RunRecord;

use crate::bed::Cluster;

/// Held by each test, so that what is left is its own.
static ALONE: Mutex<()> = Mutex::new(());

/// One that fails leaves the others their turn.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nothing runs in a namespace that `throng` has made.
fn assert_nothing_left(cluster: &Cluster) {
    let made = "get namespaces --selector=app.kubernetes.io/managed-by=throng --no-headers";
    let made = cluster.kubectl(made);
    assert!(
        made.lines().all(|line| line.contains("Terminating")),
        "{made}"
    );
    let listed = cluster.throng("lab list").succeeded();
    assert_eq!(listed, "no server runs\n");
}

/// CoreDNS at two limits of CPU time, over two transports.
const EXPERIMENT: &str = r#"
name = "pods"
[run]
outstanding = 20
duration = "2s"
[matrix]
transport = ["udp", "dot"]
[lab]
topology = "kubernetes"
starts = 2
[[server]]
product = "coredns"
image = "localhost/coredns:1"
data = "zone:100,ttl=1h"
[server.resources]
quota = [0.25, 0.5]
memory = "200M"
"#;

fn write(cluster: &Cluster, name: &str, text: &str) -> String {
    let path = cluster.path(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn cells_are_pods_with_requests_and_limits_and_nothing_is_left() {
    let (cluster, _alone) = (Cluster::shared(), alone());
    let file = write(cluster, "pods.toml", EXPERIMENT);
    let output = cluster.path("pods-records");
    let run = format!("experiment run {file} --output {output}");
    cluster.throng(&run).succeeded();
    let mut quotas = Vec::new();
    for entry in fs::read_dir(format!("{output}/records")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let record = RunRecord::from_json(&text).unwrap();
        let counts = &record.total.counts;
        assert!(counts.responses > 0, "{counts:?}");
        let quota = record.scenario.labels.get("quota");
        quotas.push(quota.unwrap().to_owned());
        let sources = record.observations.iter();
        let sources: Vec<&str> = sources.map(|it| it.source.as_str()).collect();
        assert!(sources[0].starts_with("pod throng-coredns-"), "{sources:?}");
        // CoreDNS counted what it was asked, the gate's questions before the run.
        let counted = record.servers()[0].queries;
        assert!(counted >= counts.sent as f64, "{counted}: {counts:?}");
    }
    quotas.sort();
    assert_eq!(
        quotas,
        ["0.25", "0.25", "0.25", "0.25", "0.5", "0.5", "0.5", "0.5"]
    );
    let results = cluster
        .throng(&format!("experiment results {output}"))
        .succeeded();
    assert!(results.contains("quota=0.5"), "{results}");
}

#[test]
fn a_pod_that_ends_in_mid_run_is_told_and_the_next_start_goes_on() {
    let (cluster, _alone) = (Cluster::shared(), alone());
    let text = EXPERIMENT
        .replace("[\"udp\", \"dot\"]", "[\"udp\"]")
        .replace("[0.25, 0.5]", "0.5")
        .replace("\"2s\"", "\"12s\"");
    let file = write(cluster, "ends.toml", &text);
    let output = cluster.path("ends-records");
    // The log of a run is there when it begins.
    let line = format!(
        "{} experiment run {file} --output {output} & run=$!\n\
         until ls {output}/logs/*r1.txt 2>/dev/null; do kill -0 $run || exit 9; sleep 0.1; done\n\
         sleep 3\n\
         made=$(kubectl get namespaces -o name -l app.kubernetes.io/managed-by=throng)\n\
         for it in $made; do\n\
         kubectl delete pod --all --namespace ${{it#*/}} --force --grace-period=0; done\n\
         wait $run",
        crate::process::THRONG
    );
    let finished = cluster.shell(&line, "");
    let (printed, said) = (&finished.stdout, &finished.stderr);
    assert_eq!(finished.code, Some(1), "{printed}\n{said}");
    for told in ["runs no more", "1 run failed"] {
        assert!(said.contains(told), "{printed}\n{said}");
    }
    let records = fs::read_dir(format!("{output}/records")).unwrap();
    let names = records.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let complete: Vec<String> = names.filter(|name| name.ends_with(".json")).collect();
    assert_eq!(complete.len(), 1, "{complete:?}");
    assert_nothing_left(cluster);
}

#[test]
fn a_server_in_a_pod_is_left_running_listed_and_ended() {
    let (cluster, _alone) = (Cluster::shared(), alone());
    let up = "lab up coredns --name in-pod --topology kubernetes --image localhost/coredns:1 \
              --quota 0.5 --data zone:10,ttl=1h";
    let said = cluster.throng(up).succeeded();
    let of_udp = |line: &&str| line.contains("--transport udp");
    let line = said
        .lines()
        .find(of_udp)
        .unwrap()
        .trim()
        .strip_prefix("throng ")
        .unwrap();
    cluster
        .throng(&format!("{line} --quiet --duration 1s --rate 100"))
        .succeeded();
    let deployments = "get deployments --all-namespaces --selector= --output=json";
    let all = cluster.kubectl(deployments);
    assert!(all.contains("\"cpu\": \"500m\""), "{all}");
    let log = cluster.throng("lab logs in-pod").succeeded();
    assert!(log.contains("CoreDNS-"), "{log}");
    cluster.throng("lab down in-pod").succeeded();
    assert_nothing_left(cluster);
}

#[test]
fn what_kubernetes_cannot_start_is_told_in_its_own_words() {
    let (cluster, _alone) = (Cluster::shared(), alone());
    let up = |more: &str| {
        let line = format!("lab up coredns --name wrong --topology kubernetes {more}");
        let ended = cluster.throng(&line);
        assert_ne!(ended.code, Some(0), "{}", ended.stdout);
        ended.stderr
    };
    let image = "--image localhost/coredns:1";
    for (more, says) in [
        (String::new(), "no image of CoreDNS"),
        (format!("{image} --cpus 1"), "no list of CPUs"),
        (
            format!("{image} --set behind=udp"),
            "alone can be in Kubernetes",
        ),
        ("--image localhost/nobody:1".to_owned(), "ErrImagePull"),
        (
            format!("{image} --set options=no-such-plugin"),
            "no-such-plugin",
        ),
        (format!("{image} --quota 1000"), "Insufficient cpu"),
        (
            format!("{image} --data zone:100000,ttl=1h"),
            "serve fewer names",
        ),
    ] {
        let said = up(&more);
        assert!(said.contains(says), "{more}: {said}");
    }
    assert_nothing_left(cluster);
}

#[test]
fn a_cluster_that_cannot_be_used_is_told_before_anything_runs() {
    let (cluster, _alone) = (Cluster::shared(), alone());
    let file = write(cluster, "unused.toml", EXPERIMENT);
    let output = cluster.path("unused-records");
    let closed = "apiVersion: v1\nkind: Config\ncurrent-context: closed\n\
        clusters: [{name: closed, cluster: {server: \"https://127.0.0.1:1\"}}]\n\
        users: [{name: nobody, user: {token: none}}]\n\
        contexts: [{name: closed, context: {cluster: closed, user: nobody}}]\n";
    let closed = write(cluster, "closed.kubeconfig", closed);
    cluster.kubectl("create serviceaccount powerless");
    let token = cluster.kubectl("create token powerless");
    let admin = fs::read_to_string(cluster.path("pki/admin.kubeconfig")).unwrap();
    let (before, _) = admin.split_once("users:").unwrap();
    let powerless = format!(
        "{before}users: [{{name: user, user: {{token: {token}}}}}]\n\
         contexts: [{{name: cluster, context: {{cluster: cluster, user: user}}}}]\n\
         current-context: cluster\n"
    );
    let powerless = write(cluster, "powerless.kubeconfig", &powerless);
    for (configuration, says) in [
        (
            closed.as_str(),
            "connection to the server 127.0.0.1:1 was refused",
        ),
        (powerless.as_str(), "rights to create namespaces"),
        ("/no/such/file", "set KUBECONFIG"),
    ] {
        let throng = crate::process::THRONG;
        let line = format!(
            "KUBECONFIG={configuration} exec {throng} experiment run {file} --output {output}"
        );
        let ended = cluster.shell(&line, "");
        assert_eq!(ended.code, Some(2), "{configuration}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(says),
            "{configuration}: {}",
            ended.stderr
        );
    }
    let records = fs::read_dir(format!("{output}/records")).unwrap();
    assert_eq!(records.count(), 0);
}

/// Something that a cluster runs already.
const EXISTING: &str = r#"
apiVersion: v1
kind: Namespace
metadata: { name: existing }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: dns, namespace: existing }
data:
  Corefile: |
    .:53 {
        template IN A example.test {
            answer "{{ .Name }} 60 IN A 192.0.2.1"
        }
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: dns, namespace: existing, annotations: { owner: somebody } }
spec:
  selector: { matchLabels: { app: dns } }
  template:
    metadata: { labels: { app: dns } }
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: dns
          image: localhost/coredns:1
          imagePullPolicy: Never
          args: [-conf, /configuration/Corefile]
          resources: { limits: { cpu: 300m, memory: 100Mi }, requests: { cpu: 10m } }
          volumeMounts: [{ name: configuration, mountPath: /configuration }]
      volumes: [{ name: configuration, configMap: { name: dns } }]
---
apiVersion: v1
kind: Service
metadata: { name: dns, namespace: existing }
spec:
  clusterIP: 10.96.0.99
  selector: { app: dns }
  ports: [{ name: dns, port: 53, protocol: UDP }]
"#;

const CHANGES: &str = r#"
name = "changes"
[run]
server = "10.96.0.99"
names = "existing-names"
outstanding = 10
duration = "2s"
[lab]
starts = 1
[[server]]
label = "dns"
change = "existing/deployment/dns"
[server.factors]
replicas = [1, 2]
[server.resources]
quota = 0.5
"#;

#[test]
fn what_a_cluster_runs_is_changed_if_that_is_allowed_and_restored_also_after_sigkill() {
    let (cluster, _alone) = (Cluster::shared(), alone());
    cluster.apply(EXISTING);
    write(cluster, "existing-names", "www.example.test A\n");
    let file = write(cluster, "changes.toml", CHANGES);
    let manifest = write(cluster, "existing.yaml", EXISTING);
    let spec = || cluster.kubectl("get deployment -n existing dns -o jsonpath={.spec}");
    let before = spec();
    let assert_restored = || {
        assert_eq!(spec(), before);
        assert_eq!(cluster.kubectl(&format!("diff -f {manifest}")), "");
        assert_nothing_left(cluster);
    };
    let output = cluster.path("changes-records");
    let run = format!("experiment run {file} --output {output}");
    let refused = cluster.throng(&run);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("--allow-change"),
        "{}",
        refused.stderr
    );
    cluster.throng(&format!("{run} --allow-change")).succeeded();
    assert_eq!(
        fs::read_dir(format!("{output}/records")).unwrap().count(),
        2
    );
    // Saved as it was, under the name of each cell.
    let saved = fs::read_dir(format!("{output}/manifests")).unwrap();
    for entry in saved {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(text.contains("300m") && text.contains("somebody"), "{text}");
    }
    assert_restored();
    // In mid-run: whoever comes next restores it.
    let throng = crate::process::THRONG;
    let killed = format!(
        "rm -r {output}; {throng} {run} --allow-change & until kubectl get deployment -n existing \
         dns -o jsonpath='{{.spec}}' | grep -q 500m; do :; done; kill -9 $!; wait $!; \
         {throng} lab list; {throng} lab down --all"
    );
    let told = cluster.shell(&killed, "").succeeded();
    assert!(told.contains("left over"), "{told}");
    assert_restored();
}
