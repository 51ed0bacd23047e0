//! The articles' experiments in Kubernetes, in their short form: servers and agents in pods.

use std::fs;

use measure::RunRecord;

use crate::Case;
use crate::bed::Cluster;

/// One after the other: the first asks the DNS of the cluster, the others change it.
pub(crate) const CASES: &[Case] = &[
    (
        "a fleet with its target on one node says so",
        crate::fleet::beside_target,
    ),
    (
        "Northflank's experiment has limits of CoreDNS, and names of three kinds",
        northflank,
    ),
    (
        "Red Hat's experiment asks BIND from four pods, directly and through CoreDNS",
        red_hat,
    ),
    (
        "an experiment over a fleet refuses what agents in pods cannot do",
        refused,
    ),
];

/// The records that the script of an experiment made, by the value of what it varies.
fn records(cluster: &Cluster, name: &str, label: &str) -> Vec<(String, RunRecord)> {
    let output = cluster.path(name);
    let script = format!(
        "{}/../../experiments/cluster-{name}/run",
        env!("CARGO_MANIFEST_DIR")
    );
    let throng = crate::process::THRONG;
    let line = format!(
        "THRONG={throng} {script} --short --output {output}; code=$?\n\
         kubectl get jobs,pods --namespace {name} --output=name >&2\n\
         kubectl delete namespace {name} --wait=false >&2\n\
         exit $code"
    );
    let finished = cluster.shell(&line, "");
    let said = finished.stderr;
    // A busy host may spoil a run, which the same command would make once more.
    let is_made = [Some(0), Some(1)].contains(&finished.code);
    assert!(is_made, "{:?}: {said}", finished.code);
    for left in ["job.batch/", "pod/"] {
        assert!(!said.contains(&format!("\n{left}")), "{said}");
    }
    let claims = script.replace("/run", "/claims.toml");
    let claims = cluster.throng(&format!("experiment claims {output} {claims}"));
    let claims = claims.succeeded();
    assert!(claims.contains("inconclusive here"), "{claims}");
    let files = fs::read_dir(format!("{output}/records")).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|it| it == "json"));
    let records = files.map(|path| {
        let record = RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap();
        (record.scenario.labels[label].clone(), record)
    });
    let mut records: Vec<_> = records.collect();
    records.sort_by(|a, b| a.0.cmp(&b.0));
    records
}

/// The cells that have records.
fn cells(records: &[(String, RunRecord)]) -> Vec<&str> {
    let mut cells: Vec<&str> = records.iter().map(|(label, _)| label.as_str()).collect();
    cells.dedup();
    cells
}

fn northflank(cluster: &Cluster) {
    let records = records(cluster, "northflank", "quota");
    assert_eq!(cells(&records), ["0.25", "1.0"]);
    for (quota, record) in &records {
        assert_eq!(record.agent_count, 2);
        let placed = record.agents.iter().filter(|it| it.placement.is_some());
        assert_eq!(placed.count(), 2, "{:?}", record.agents);
        let counts = &record.total.counts;
        // 500 of 1,100 names are missing, and each client asks all of them in turn. On a busy host
        // the resolver of the 100 external names may be late: SERVFAIL.
        let missing = counts.rcodes.of(&[3]) as f64 / counts.rcodes.of(&[0, 3]) as f64;
        assert!((0.4..0.55).contains(&missing), "{:?}", counts.rcodes);
        assert_eq!(counts.rcodes.of(&[0, 2, 3]), counts.responses);
        let observed = record.observations.iter().map(|it| it.profile.as_str());
        let observed: Vec<&str> = observed.collect();
        assert_eq!(observed, ["kubelet", "coredns"]);
        let limit = record.programs().first().and_then(|pod| pod.cpus_allowed);
        // The kubelet looks at its pods every ten seconds: a short run may fall in between.
        assert!(
            limit.is_none_or(|it| it.to_string().parse() == quota.parse::<f64>()),
            "{limit:?}"
        );
    }
}

fn red_hat(cluster: &Cluster) {
    let records = records(cluster, "red-hat", "server");
    let (direct, through) = ("BIND, UDP", "CoreDNS, DoT to BIND");
    assert_eq!(cells(&records), [direct, through]);
    for (_, record) in &records {
        let counts = &record.total.counts;
        assert_eq!(record.agent_count, 4);
        // On a busy host BIND may answer CoreDNS too late: SERVFAIL.
        assert!(counts.rcodes.of(&[0]) > 0, "{counts:?}");
        assert_eq!(counts.rcodes.of(&[0, 2]), counts.responses);
    }
}

fn refused(cluster: &Cluster) {
    let file = cluster.path("here.toml");
    let fleet = format!("fleet run --image throng:1 --agents 2 -- experiment run {file}");
    for (text, told) in [
        (
            "[run]\nduration = \"1s\"\n[[server]]\nproduct = \"coredns\"\ndata = \"zone:10\"\n",
            "agents in pods do not reach a server that is started on this host",
        ),
        (
            "[run]\nserver = \"10.96.0.10\"\nagents = 3\n",
            "`agents` is decided by the fleet",
        ),
    ] {
        fs::write(&file, text).unwrap();
        let refused = cluster.throng(&fleet);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains(told), "{}", refused.stderr);
    }
    for (arguments, told) in [
        (
            "run --image throng:1 --agents 2 -- experiment plan",
            "makes no runs",
        ),
        (
            "manifest --image throng:1 --agents 2 -- experiment run",
            "is led from here",
        ),
    ] {
        let refused = cluster.throng(&format!("fleet {arguments} {file}"));
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains(told), "{}", refused.stderr);
    }
}
