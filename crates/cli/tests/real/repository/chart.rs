//! The Helm chart, and what `kubectl` makes of the kustomizations beside it: the same objects, of
//! the same files, which fit the pods that `throng fleet` makes. `tests/real/cluster` installs it.

use std::fs;

use serde_json::{Value, json};
use testing::folder::Folder;
use testing::program::{Finished, execute};
use testing::{prepared, yaml};

const THRONG: &str = env!("CARGO_BIN_EXE_throng");
const VERSION: &str = env!("CARGO_PKG_VERSION");
const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/helm/throng");

/// Everything that is not on already.
const ALL: &str = "--set podMonitor.enabled=true,podMonitor.labels.release=prometheus \
                   --set prometheusRule.enabled=true,prometheusRule.labels.release=prometheus \
                   --set networkPolicy.enabled=true \
                   --set networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.name=watch \
                   --set networkPolicy.egress[0].to[0].ipBlock.cidr=192.0.2.0/24 \
                   --set dashboards.annotations.grafana_folder=Throng";
const NONE: &str = "--set rbac.enabled=false --set dashboards.enabled=false";

fn helm(arguments: &str) -> Finished {
    let helm = prepared::path("helm/helm");
    execute(&format!("{} {arguments}", helm.display()))
}

fn rendered(flags: &str) -> String {
    helm(&format!(
        "template load-tests {CHART} --namespace load {flags}"
    ))
    .succeeded()
}

/// What `kubectl` makes of a kustomization.
fn kustomized(folder: &str) -> Vec<Value> {
    let kubectl = prepared::path("kubernetes/kubectl");
    let line = format!("{} kustomize {DEPLOY}/{folder}", kubectl.display());
    yaml::documents(&execute(&line).succeeded())
}

fn kinds(objects: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = objects
        .iter()
        .map(|it| it["kind"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    kinds
}

/// The only object of its kind.
fn only<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let mut found = objects.iter().filter(|it| it["kind"] == kind);
    let object = found.next().unwrap_or_else(|| panic!("no {kind}"));
    assert!(found.next().is_none(), "more than one {kind}");
    object
}

#[test]
fn chart_makes_what_its_values_ask_for_and_no_pods() {
    for (flags, expected) in [
        (NONE, &[][..]),
        ("", &["ConfigMap", "Role", "RoleBinding"]),
        ("--set-json rbac.subjects=[]", &["ConfigMap", "Role"]),
        (
            ALL,
            &[
                "ConfigMap",
                "NetworkPolicy",
                "NetworkPolicy",
                "PodMonitor",
                "PrometheusRule",
                "Role",
                "RoleBinding",
            ],
        ),
    ] {
        helm(&format!("lint --strict {CHART} {flags}")).succeeded();
        let text = rendered(flags);
        // OpenShift gives each namespace a range of its own.
        assert!(!text.contains("runAsUser"), "{text}");
        let objects = yaml::documents(&text);
        assert_eq!(kinds(&objects), expected, "{flags}");
        for object in &objects {
            let metadata = &object["metadata"];
            assert_eq!(metadata["namespace"], "load", "{metadata}");
            let name = metadata["name"].as_str().unwrap();
            assert!(name.starts_with("load-tests"), "{name}");
            // Objects that `throng` manages are runs to `throng fleet`.
            let manager = &metadata["labels"]["app.kubernetes.io/managed-by"];
            assert_eq!(manager, "Helm", "{metadata}");
        }
    }
    let objects = yaml::documents(&rendered(ALL));
    for kind in ["PodMonitor", "PrometheusRule"] {
        let labels = &only(&objects, kind)["metadata"]["labels"];
        assert_eq!(labels["release"], "prometheus", "{kind}");
    }
    let annotations = &only(&objects, "ConfigMap")["metadata"]["annotations"];
    assert_eq!(annotations["grafana_folder"], "Throng");
}

#[test]
fn chart_and_kustomizations_have_the_same_content() {
    let chart = yaml::documents(&rendered(ALL));
    for (folder, kind, field) in [
        ("kubernetes", "Role", "rules"),
        ("kubernetes", "RoleBinding", "subjects"),
        ("grafana", "ConfigMap", "data"),
        ("prometheus", "PodMonitor", "spec"),
    ] {
        let base = kustomized(folder);
        let expected = &only(&base, kind)[field];
        assert!(!expected.is_null(), "{kind}");
        assert_eq!(&only(&chart, kind)[field], expected, "{kind}");
    }
    let label = |objects: &[Value]| {
        only(objects, "ConfigMap")["metadata"]["labels"]["grafana_dashboard"].clone()
    };
    assert_eq!(label(&chart), label(&kustomized("grafana")));
    let alerts = fs::read_to_string(format!("{DEPLOY}/prometheus/alerts.yml")).unwrap();
    let rule = &only(&chart, "PrometheusRule")["spec"];
    assert_eq!(rule, &yaml::document(&alerts));
}

/// True if a selector's labels are among those.
fn selects(selector: &Value, labels: &Value) -> bool {
    let wanted = selector["matchLabels"].as_object().unwrap();
    !wanted.is_empty() && wanted.iter().all(|(name, value)| labels[name] == *value)
}

#[test]
fn policies_and_monitor_fit_the_pods_of_a_fleet() {
    let folder = Folder::new("chart-fleet");
    let names = folder.write("names.txt", "a.example A\n");
    let fleet = execute(&format!(
        "{THRONG} fleet manifest --image throng:1 --agents 2 -- \
         run --server 192.0.2.1 --names {names} --rate 100 --metrics 0.0.0.0:9350"
    ));
    let fleet = yaml::documents(&fleet.succeeded());
    let jobs: Vec<&Value> = fleet.iter().filter(|it| it["kind"] == "Job").collect();
    let labels = |job: &Value| job["spec"]["template"]["metadata"]["labels"].clone();
    let [lead, agent] = [labels(jobs[0]), labels(jobs[1])];

    let chart = yaml::documents(&rendered(ALL));
    let of_lead = |selector: &Value| selects(selector, &lead) && !selects(selector, &agent);
    let of_agent = |selector: &Value| selects(selector, &agent) && !selects(selector, &lead);
    let monitor = &only(&chart, "PodMonitor")["spec"];
    assert!(of_lead(&monitor["selector"]), "{monitor}");
    let policies = chart.iter().filter(|it| it["kind"] == "NetworkPolicy");
    let [lead_policy, agent_policy] = policies.collect::<Vec<_>>()[..] else {
        panic!("{:?}", kinds(&chart));
    };
    let (lead_policy, agent_policy) = (&lead_policy["spec"], &agent_policy["spec"]);
    assert!(of_lead(&lead_policy["podSelector"]), "{lead_policy}");
    assert!(of_agent(&agent_policy["podSelector"]), "{agent_policy}");
    assert!(agent_policy["ingress"].is_null(), "{agent_policy}");
    let [agents, metrics] = [&lead_policy["ingress"][0], &lead_policy["ingress"][1]];
    let service = &only(&fleet, "Service")["spec"]["ports"][0]["port"];
    assert_eq!(&agents["ports"][0]["port"], service);
    assert!(of_agent(&agents["from"][0]["podSelector"]), "{agents}");
    // Prometheus discovers ports that containers declare, and no others.
    let container = &jobs[0]["spec"]["template"]["spec"]["containers"][0];
    let scraped = &monitor["podMetricsEndpoints"][0]["port"];
    let declared = container["ports"].as_array().unwrap();
    let declared = declared.iter().find(|it| it["name"] == *scraped);
    let declared =
        &declared.unwrap_or_else(|| panic!("no {scraped}: {container}"))["containerPort"];
    assert_eq!(declared, 9350);
    assert_eq!(&metrics["ports"][0]["port"], declared);
    let watch = json!([{"namespaceSelector": {"matchLabels": {"name": "watch"}}}]);
    assert_eq!(metrics["from"], watch);
    for policy in [lead_policy, agent_policy] {
        let [own, given] = [&policy["egress"][0], &policy["egress"][1]];
        let own = &own["to"][0]["podSelector"];
        assert!(selects(own, &lead) && selects(own, &agent), "{policy}");
        assert_eq!(given["to"][0]["ipBlock"]["cidr"], "192.0.2.0/24");
    }
}

#[test]
fn wrong_values_are_refused_by_their_names() {
    for (flags, named) in [
        ("--set dashboard.enabled=false", "dashboard"),
        ("--set rbac.enabled=maybe", "/rbac/enabled"),
        ("--set rbac.subjects=me", "/rbac/subjects"),
        ("--set rbac.subjects[0].kind=Team", "/rbac/subjects/0"),
        (
            "--set dashboards.labels.grafana_dashboard=1",
            "/dashboards/labels",
        ),
        ("--set podMonitor.interval=1s", "/podMonitor"),
        ("--set prometheusRule.labels=a", "/prometheusRule/labels"),
        ("--set networkPolicy.egress=none", "/networkPolicy/egress"),
    ] {
        let refused = helm(&format!("template load-tests {CHART} {flags}"));
        assert_eq!(refused.code, Some(1), "{flags}: {}", refused.stdout);
        let is_named = |line: &str| line.starts_with("- at ") && line.contains(named);
        assert!(
            refused.stderr.lines().any(is_named),
            "{flags}: {}",
            refused.stderr
        );
    }
}

#[test]
fn chart_has_the_version_of_the_program() {
    let chart = yaml::document(&helm(&format!("show chart {CHART}")).succeeded());
    assert_eq!(chart["version"], VERSION);
    assert_eq!(chart["appVersion"], VERSION);
}
