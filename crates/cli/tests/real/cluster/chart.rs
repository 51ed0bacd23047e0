//! The Helm chart and the kustomizations of `deploy`: taken by the API server, which knows the
//! Prometheus operator's objects, installed, changed and removed.

use testing::prepared;

use crate::Case;
use crate::bed::Cluster;

pub(crate) const CASES: &[Case] = &[(
    "the chart is installed, gives rights, is changed and removed",
    chart,
)];

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
const PAGE: &str = include_str!("../../../../../docs/kubernetes.md");

/// `INSTALL` is the command of the documents. `OPERATOR` has the definitions of the Prometheus
/// operator's objects. The API server learns of these, and of rights that were given or taken, some
/// time later.
const LINES: &str = r#"
set -eu
mkdir FOLDER && cd FOLDER
export HELM_CACHE_HOME=$PWD HELM_CONFIG_HOME=$PWD HELM_DATA_HOME=$PWD
helm() { HELM "$@" 2>>said; }
kubectl create namespace chart >/dev/null
for kind in podmonitors prometheusrules; do
    kubectl apply --server-side --filename=OPERATOR/monitoring.coreos.com_$kind.yaml >/dev/null
    await kubectl --namespace chart get $kind >/dev/null 2>&1
done
dry="kubectl --namespace chart apply --server-side --dry-run=server"
helm template throng DEPLOY/helm/throng --namespace chart --set networkPolicy.enabled=true \
    --set podMonitor.enabled=true --set prometheusRule.enabled=true >all
$dry --filename=all
for base in kubernetes grafana prometheus; do $dry --kustomize DEPLOY/$base; done
for field in scrapeTimeout annotations; do
    if sed "s/$field:/un$field:/" all | $dry --filename=- >>said 2>&1; then exit 1; fi
    grep "\.un$field: field not declared in schema" said >/dev/null
done
can() { kubectl --namespace chart auth can-i create jobs --as=user --as-group=throng >/dev/null; }
if can; then exit 1; fi
INSTALL
await can
kubectl --namespace chart get configmap throng-dashboards --output=name
helm upgrade throng DEPLOY/helm/throng --namespace chart \
    --set networkPolicy.enabled=true --set dashboards.enabled=false >/dev/null
kubectl --namespace chart get configmaps,networkpolicies --output=name
helm uninstall throng --namespace chart >/dev/null
cannot() { ! can; }
await cannot
kinds=roles,rolebindings,configmaps,networkpolicies,secrets
echo left; kubectl --namespace chart get $kinds --output=name
kubectl delete namespace chart --wait=false >/dev/null
"#;

fn chart(cluster: &Cluster) {
    let install = PAGE.lines().find(|line| line.starts_with("helm install "));
    let install = install
        .unwrap()
        .replace("--namespace load", "--namespace chart");
    let definitions = "prometheus-operator/monitoring.coreos.com_podmonitors.yaml";
    let definitions = prepared::path(definitions);
    let lines = LINES
        .replace("INSTALL", &install.replace(" deploy/", " DEPLOY/"))
        .replace("DEPLOY", DEPLOY)
        .replace("FOLDER", &cluster.path("chart"))
        .replace(
            "OPERATOR",
            &definitions.parent().unwrap().display().to_string(),
        )
        .replace(
            "HELM \"",
            &format!("{} \"", prepared::path("helm/helm").display()),
        );
    let finished = cluster.shell(&lines, "");
    if finished.code != Some(0) {
        let said = std::fs::read_to_string(cluster.path("chart/said"));
        eprintln!("{}", said.unwrap_or_default());
    }
    let printed = finished.succeeded();
    // Seven of the chart, two rights, the dashboards, a monitor.
    let taken = printed.matches(" serverside-applied (server dry run)");
    assert_eq!(taken.count(), 7 + 2 + 1 + 1, "{printed}");
    assert!(
        printed.contains("throng fleet run --namespace chart "),
        "{printed}"
    );
    let (made, left) = printed.split_once("left\n").unwrap();
    for object in [
        "configmap/throng-dashboards\n",
        "networkpolicy.networking.k8s.io/throng-lead\n",
        "networkpolicy.networking.k8s.io/throng-agent\n",
    ] {
        assert_eq!(made.matches(object).count(), 1, "{object}: {printed}");
    }
    // Kubernetes' own.
    assert_eq!(left, "configmap/kube-root-ca.crt\n");
}
