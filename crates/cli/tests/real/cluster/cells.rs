//! Servers in pods: `throng lab up --topology kubernetes`, and cells of experiments.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use measure::RunRecord;

use crate::Case;
use crate::bed::Cluster;

/// One after the other, so that what is left is of the last one.
pub(crate) const CASES: &[Case] = &[
    (
        "cells are pods with requests and limits, and nothing is left",
        cells_are_pods,
    ),
    (
        "a pod that ends in mid-run fails its run, and the next start goes on",
        pod_ends_in_mid_run,
    ),
    (
        "a server in a pod is left running, listed and ended",
        server_is_left_running,
    ),
    (
        "a namespace that somebody else made under the same name is not removed",
        namespace_of_another_stays,
    ),
    (
        "what Kubernetes cannot start is reported in its own words",
        servers_that_cannot_start,
    ),
    (
        "a cluster that cannot be used is reported before anything runs",
        unusable_clusters,
    ),
    (
        "what a cluster runs is changed if that is allowed, and restored also after SIGKILL",
        changes_are_restored,
    ),
];

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

/// CoreDNS at two limits of CPU time, over two transports, with [`OUTSTANDING`] queries in flight.
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

const OUTSTANDING: u64 = 20;

fn write(cluster: &Cluster, name: &str, text: &str) -> String {
    let path = cluster.path(name);
    fs::write(&path, text).unwrap();
    path
}

fn cells_are_pods(cluster: &Cluster) {
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
        // CoreDNS counts a query after it has answered it, and its quota of CPU time may have
        // stopped it in between when the run ended.
        let counted = record.servers()[0].queries;
        let least = counts.sent.saturating_sub(OUTSTANDING);
        assert!(counted >= least as f64, "{counted}: {counts:?}");
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
    assert_nothing_left(cluster);
}

/// Ends when the first run of an experiment has sent some thousands of queries to its pod. By then
/// its kubelet is asked at a socket that no other user can reach.
const UNTIL_IN_THE_MIDDLE: &str = r#"
    until compgen -G "OUTPUT/logs/*r1.txt" >/dev/null; do kill -0 $run; done
    server=$(pgrep -n -f "coredns.*throng-coredns")
    datagrams=0
    until test $datagrams -gt 5000; do
        kill -0 $run
        while read -r protocol received _; do
            case $protocol$received in Udp:[0-9]*) datagrams=$received;; esac
        done </proc/$server/net/snmp
    done
    pgrep -f "proxy --unix-sock[e]t" >/dev/null
    for socket in ${TMPDIR:-/tmp}/throng-coredns-*/kubelet.sock; do
        test -S "$socket"
        test "$(stat -c %a "${socket%/*}")" = 700
    done
"#;

fn pod_ends_in_mid_run(cluster: &Cluster) {
    // A run of ten seconds, which is seen in its middle also by a host that is busy.
    let text = EXPERIMENT
        .replace("[\"udp\", \"dot\"]", "[\"udp\"]")
        .replace("[0.25, 0.5]", "0.5")
        .replace("outstanding = 20", "rate = 2_000")
        .replace("duration = \"2s\"", "queries = 20_000");
    assert!(text.contains("rate") && text.contains("queries"), "{text}");
    let file = write(cluster, "ends.toml", &text);
    let output = cluster.path("ends-records");
    // The log of a run is there when it begins, and it is in the middle when the server has got
    // more datagrams than what is asked before a run. It does not go on, and so cannot end, until
    // its pod is gone.
    let line = format!(
        "{} experiment run {file} --output {output} & run=$!\n\
         export run; bash -ec '{}' || exit 9\n\
         pkill -STOP -P $run throng\n\
         made=$(kubectl get namespaces -o name -l app.kubernetes.io/managed-by=throng)\n\
         for it in $made; do\n\
         kubectl delete pod --all --namespace ${{it#*/}} --force --grace-period=0; done\n\
         pkill -CONT -P $run throng\n\
         wait $run",
        crate::process::THRONG,
        UNTIL_IN_THE_MIDDLE.replace("OUTPUT", &output),
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

fn server_is_left_running(cluster: &Cluster) {
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
    // As after SIGKILL, before the answer of the cluster was written down.
    let unknown = "server=$(echo ${TMPDIR:-/tmp}/throng-coredns-*/server.json)\n\
                   sed -i -E 's/\"(uid|deployment)\": \"[^\"]+\"/\"\\1\": null/' $server\n\
                   cat $server";
    let listed = cluster.shell(unknown, "").succeeded();
    assert!(listed.contains("\"uid\": null"), "{listed}");
    cluster.throng("lab down in-pod").succeeded();
    assert_nothing_left(cluster);
}

fn namespace_of_another_stays(cluster: &Cluster) {
    let up = "lab up coredns --name taken --topology kubernetes --image localhost/coredns:1 \
              --data zone:10,ttl=1h";
    cluster.throng(up).succeeded();
    let made = "get namespaces --selector=app.kubernetes.io/managed-by=throng --output=name \
                --field-selector=status.phase=Active";
    let made = cluster.kubectl(made);
    let name = made.strip_prefix("namespace/").unwrap();
    let (_, random) = name.rsplit_once('-').unwrap();
    assert!(random.len() == 16, "{name}");
    cluster.kubectl(&format!("delete namespace {name}"));
    cluster.kubectl(&format!("create namespace {name}"));
    let deployment = format!("--namespace {name} deployment server");
    let image = "--image=localhost/coredns:1 --replicas=0";
    cluster.kubectl(&format!("create {deployment} {image}"));
    cluster.throng("lab down taken").succeeded();
    // Neither removed, nor to be.
    let marked = "--output=jsonpath={.metadata.deletionTimestamp}{.metadata.name}";
    for (what, is) in [(format!("namespace {name}"), name), (deployment, "server")] {
        assert_eq!(cluster.kubectl(&format!("get {what} {marked}")), is);
    }
    cluster.kubectl(&format!("delete namespace {name}"));
    assert_nothing_left(cluster);
}

fn servers_that_cannot_start(cluster: &Cluster) {
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

fn unusable_clusters(cluster: &Cluster) {
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

fn changes_are_restored(cluster: &Cluster) {
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
        let path = entry.unwrap().path();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = fs::read_to_string(path).unwrap();
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
