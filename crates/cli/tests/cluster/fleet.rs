//! One load from pods: the same questions as from one process, losses, and what a cluster may
//! refuse. Each test has a namespace that takes only restricted pods, and looks that nothing is
//! left in it.

use std::fs;
use std::path::Path;

use measure::RunRecord;
use measure::record::EndedBy;

use crate::bed::{Cluster, IMAGE};
use crate::manifests::restricted;
use crate::process::{Finished, THRONG};

/// A namespace, and the flags of a run in it.
struct Fleet {
    cluster: &'static Cluster,
    namespace: &'static str,
    flags: String,
}

impl Fleet {
    fn new(namespace: &'static str) -> Fleet {
        let cluster = Cluster::shared();
        restricted(cluster, namespace);
        let names = cluster.path(&format!("{namespace}-names"));
        let lines = (0..50).map(|it| format!("name-{it}.cluster.local A\n"));
        fs::write(&names, lines.collect::<String>()).unwrap();
        let flags = format!(
            "--server kube-dns.kube-system.svc:53 --names {names} --kubernetes \
             --namespace {namespace} --image {IMAGE} --agent-cpus 0.2 --agent-memory 256Mi"
        );
        Fleet {
            cluster,
            namespace,
            flags,
        }
    }

    /// A command of the shell, in which `$RUN` is a run of this fleet, and `$told` is where it says
    /// something that `seen` waits for.
    fn shell(&self, line: &str) -> Finished {
        let Fleet {
            namespace, flags, ..
        } = self;
        let record = self.record_path();
        let told = self.cluster.path(&format!("{namespace}-told"));
        let run = format!("{THRONG} run {flags} --record {record}");
        let names = format!("RUN='{run}' THRONG={THRONG} NAMESPACE={namespace} told={told}\n");
        // Waits for what a run tells, for as long as the command may take.
        let wait = "seen() { until grep -q \"$1\" $told 2>/dev/null; do \
                    [ ! -e $told.over ] || exit 9; done; }\n";
        let clear = "rm -f $told $told.over\n";
        self.cluster.shell(&(names + wait + clear + line), "")
    }

    fn record_path(&self) -> String {
        self.cluster
            .path(&format!("{}-record.json", self.namespace))
    }

    fn record(&self) -> RunRecord {
        RunRecord::from_json(&fs::read_to_string(self.record_path()).unwrap()).unwrap()
    }

    fn assert_nothing_is_left(&self) {
        let kinds = "jobs,pods,services,secrets,configmaps --no-headers --output=name";
        let left = format!("get {kinds} --namespace {}", self.namespace);
        let left = self.cluster.kubectl(&left);
        let own = |line: &&str| !line.ends_with("kube-root-ca.crt");
        assert_eq!(left.lines().find(own), None, "{left}");
    }
}

const POPULATION: &str =
    "--clients 30 --per-client poisson:10 --duration 3s --timeout 20s --seed 5";

#[test]
fn pods_ask_what_one_process_asks_and_nothing_is_left() {
    let fleet = Fleet::new("fleet-exact");
    fleet
        .shell(&format!("exec $RUN --agents 3 --workers 3 {POPULATION}"))
        .succeeded();
    let divided = fleet.record();
    fleet.assert_nothing_is_left();
    let (alone, _) = fleet.flags.split_once(" --kubernetes").unwrap();
    let alone = alone.replace("kube-dns.kube-system.svc", "10.96.0.10");
    let alone = fleet
        .cluster
        .throng(&format!("run --quiet --format json {alone} {POPULATION}"));
    let alone = RunRecord::from_json(&alone.succeeded()).unwrap();
    let counts = |record: &RunRecord| {
        let counts = &record.total.counts;
        (counts.offered, counts.sent, counts.responses)
    };
    assert_eq!(counts(&divided), counts(&alone));
    let queries = |record: &RunRecord| record.experience().unwrap().queries;
    assert_eq!(queries(&divided), queries(&alone));
    assert_eq!((divided.generators, divided.processes), (3, 3));
    let names = divided.agents.iter().map(|it| it.name.clone().unwrap());
    let mut nodes: Vec<String> = names.map(|it| it[it.len() - 2..].to_owned()).collect();
    nodes.sort();
    assert_eq!(nodes, ["n0", "n1", "n2"]);
    assert_eq!(divided.hosts.len(), 3, "{:?}", divided.hosts);
    // One of them has CoreDNS beside it.
    let warned = divided.warnings.iter().any(|it| it.contains("shares node"));
    assert!(warned, "{:?}", divided.warnings);
}

#[test]
fn the_experiment_of_this_repository_in_a_cluster_runs_in_its_short_form() {
    let cluster = Cluster::shared();
    let experiment =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/cluster/experiment.toml");
    let output = cluster.path("experiment");
    let experiment = experiment.display();
    cluster
        .throng(&format!(
            "experiment run {experiment} --short --output {output}"
        ))
        .succeeded();
    let records = fs::read_dir(format!("{output}/records")).unwrap();
    let records: Vec<RunRecord> = records
        .map(|entry| {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            RunRecord::from_json(&text).unwrap()
        })
        .collect();
    assert_eq!(records.len(), 4);
    for record in &records {
        assert!(record.total.counts.responses > 0);
        assert_eq!(record.agents.len(), 3);
        assert!(record.servers()[0].queries >= record.total.counts.sent as f64);
    }
}

#[test]
fn a_command_that_is_killed_leaves_its_run_and_another_one_follows_it() {
    let fleet = Fleet::new("fleet-attached");
    let line = "$RUN --agents 2 --rate 100 --duration 15s --interval 500ms 2>$told & run=$!
        seen ' s  sent '
        kill -s KILL $run
        fleet=$(sed -n 's/^fleet `\\([^`]*\\)`.*/\\1/p' $told)
        $THRONG fleet list --namespace $NAMESPACE | grep -q \"^$fleet .*runs$\"
        $THRONG fleet status $fleet --namespace $NAMESPACE
        $THRONG fleet attach $fleet --namespace $NAMESPACE --record RECORD >/dev/null
        $THRONG fleet fetch $fleet --namespace $NAMESPACE --record RECORD.again >/dev/null
        cmp RECORD RECORD.again
        $THRONG fleet end $fleet --namespace $NAMESPACE";
    let line = format!("set -e\n{}", line.replace("RECORD", &fleet.record_path()));
    let ended = fleet.shell(&line);
    let told = ended.stderr.clone();
    let shown = ended.succeeded();
    assert!(shown.contains("run 1 is going on, on 2 agents"), "{shown}");
    let record = fleet.record();
    assert_eq!(record.ended_by, EndedBy::Duration);
    assert_eq!(record.total.counts.offered, 1_500);
    // No gap, and none twice.
    let ends: Vec<String> = told
        .lines()
        .filter_map(|line| Some(line.split_once(" s  sent ")?.0.trim().to_owned()))
        .collect();
    let expected: Vec<String> = (1..=30)
        .map(|it| format!("{:.1}", f64::from(it) / 2.0))
        .collect();
    assert_eq!(ends, expected, "{told}");
    assert_eq!(record.intervals.len(), 30);
    fleet.assert_nothing_is_left();
}

#[test]
fn a_manifest_is_enough_and_its_run_is_fetched_by_whoever_may() {
    let fleet = Fleet::new("fleet-manifest");
    let flags = &fleet.flags;
    let line = format!(
        "set -e
        $THRONG fleet manifest {flags} --agents 2 --rate 100 --duration 1s >$told
        kubectl apply -f $told >/dev/null
        fleet=$(sed -n 's/.*app.kubernetes.io\\/instance: *\"*\\([^\"]*\\)\"*$/\\1/p;T;q' $told)
        until $THRONG fleet attach $fleet --namespace $NAMESPACE --record {record} >/dev/null
        do :; done
        $THRONG fleet end $fleet --namespace $NAMESPACE",
        record = fleet.record_path()
    );
    fleet.shell(&line).succeeded();
    assert_eq!(fleet.record().total.counts.offered, 100);
    fleet.assert_nothing_is_left();
}

#[test]
fn an_agent_whose_pod_goes_costs_what_came_after_the_last_checkpoint() {
    let fleet = Fleet::new("fleet-loss");
    let line = "$RUN --agents 3 --rate 300 --duration 20s --interval 200ms 2>$told & run=$!
        seen '   8.0 s  sent '
        kubectl --namespace $NAMESPACE delete pod --grace-period=0 --force --wait=false \
            -l batch.kubernetes.io/job-completion-index=1 >/dev/null 2>&1
        wait $run";
    let ended = fleet.shell(line);
    let told = ended.ended_with(1);
    let record = fleet.record();
    assert_eq!(record.ended_by, EndedBy::AgentLost, "{told}");
    let degraded = record.degraded.as_ref().unwrap();
    assert_eq!((degraded.lost.len(), degraded.survivors), (1, 2));
    assert_eq!(degraded.lost[0].process, 2);
    // It costs a few seconds of the run.
    assert!(degraded.lost[0].noticed_ns - record.measured_ns <= 6_000_000_000);
    fleet.assert_nothing_is_left();
}

#[test]
fn a_lead_whose_pod_goes_is_told_and_an_interrupted_run_has_a_result() {
    let fleet = Fleet::new("fleet-ends");
    let run = "$RUN --agents 2 --rate 100 --duration 60s --interval 200ms 2>$told & run=$!
        seen ' s  sent '\n";
    let lost = "kubectl --namespace $NAMESPACE delete pod --grace-period=0 --force --wait=false \
                -l throng.role=lead >/dev/null 2>&1; wait $run; code=$?; cat $told; exit $code";
    let told = fleet.shell(&format!("{run}{lost}")).ended_with(1);
    assert!(told.contains("error: the lead was lost"), "{told}");
    fleet.assert_nothing_is_left();
    let interrupted = "kill -s INT $run; wait $run";
    fleet.shell(&format!("{run}{interrupted}")).ended_with(130);
    assert_eq!(fleet.record().ended_by, EndedBy::Interrupted);
    fleet.assert_nothing_is_left();
}

#[test]
fn what_a_cluster_refuses_is_told_with_its_cure_and_nothing_is_left() {
    let fleet = Fleet::new("fleet-refused");
    let short = "--quiet --rate 10 --duration 1s";
    let other = |flag: &str, rest: &str| {
        let other = format!("RUN=$(echo $RUN | sed '{flag}'); exec $RUN {short} {rest}");
        fleet.shell(&other)
    };
    let missing = other("s,localhost/throng:1,localhost/none:1,", "");
    missing.refused_with("localhost/none:1", "--image");
    fleet.assert_nothing_is_left();
    let huge = other("s/--agent-cpus 0.2/--agent-cpus 500/", "--agents 2");
    huge.refused_with("Insufficient cpu", "--agent-cpus");
    fleet.assert_nothing_is_left();
    let quota = "kubectl --namespace $NAMESPACE create quota few --hard=pods=2 >/dev/null";
    let few = fleet.shell(&format!("{quota}; exec $RUN {short} --agents 2"));
    few.refused_with("exceeded quota", "--agents");
    fleet.assert_nothing_is_left();
    let enough = format!("exec $RUN {short} --agents 2 --min-agents 1");
    fleet.shell(&enough).succeeded();
    assert_eq!(fleet.record().processes, 1);
    // Somebody who may look at pods and no more.
    let nobody = "kubectl --namespace $NAMESPACE create serviceaccount nobody >/dev/null
        kubectl --namespace $NAMESPACE create rolebinding nobody --clusterrole=view \
            --serviceaccount=$NAMESPACE:nobody >/dev/null
        token=$(kubectl --namespace $NAMESPACE create token nobody)
        sed \"s/user: {client-cert.*/user: {token: $token}}]/\" $KUBECONFIG >$told.config
        export KUBECONFIG=$told.config\n";
    let refused = fleet.shell(&format!("{nobody}exec $RUN {short}"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    for told in ["create jobs", "hint: ", "kind: Role"] {
        assert!(refused.stderr.contains(told), "{told}: {}", refused.stderr);
    }
}
