//! The Helm chart and the kustomizations of `deploy`: taken by the API server, installed, changed
//! and removed.

use testing::prepared;

use crate::Case;
use crate::bed::Cluster;

pub(crate) const CASES: &[Case] = &[(
    "the chart is installed, gives rights, is changed and removed",
    chart,
)];

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
const PAGE: &str = include_str!("../../../../../docs/kubernetes.md");

/// `INSTALL` is the command of the documents. The API server learns of rights some time after they
/// were given or taken.
const LINES: &str = r#"
set -eu
mkdir FOLDER && cd FOLDER
export HELM_CACHE_HOME=$PWD HELM_CONFIG_HOME=$PWD HELM_DATA_HOME=$PWD
helm() { HELM "$@" 2>>said; }
kubectl create namespace chart >/dev/null
dry="kubectl --namespace chart apply --dry-run=server"
helm template throng DEPLOY/helm/throng --namespace chart --set networkPolicy.enabled=true |
    $dry --filename=-
for base in kubernetes grafana; do $dry --kustomize DEPLOY/$base; done
can() { kubectl --namespace chart auth can-i create jobs --as=user --as-group=throng >/dev/null; }
pause() { read -t 0.1 <> <(:) || :; }
if can; then exit 1; fi
INSTALL
until can; do pause; done
kubectl --namespace chart get configmap throng-dashboards --output=name
helm upgrade throng DEPLOY/helm/throng --namespace chart \
    --set networkPolicy.enabled=true --set dashboards.enabled=false >/dev/null
kubectl --namespace chart get configmaps,networkpolicies --output=name
helm uninstall throng --namespace chart >/dev/null
while can; do pause; done
kinds=roles,rolebindings,configmaps,networkpolicies,secrets
echo left; kubectl --namespace chart get $kinds --output=name
kubectl delete namespace chart --wait=false >/dev/null
"#;

fn chart(cluster: &Cluster) {
    let install = PAGE.lines().find(|line| line.starts_with("helm install "));
    let install = install
        .unwrap()
        .replace("--namespace load", "--namespace chart");
    let lines = LINES
        .replace("INSTALL", &install.replace(" deploy/", " DEPLOY/"))
        .replace("DEPLOY", DEPLOY)
        .replace("FOLDER", &cluster.path("chart"))
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
    // Five of the chart, two rights, the dashboards.
    let taken = printed.matches(" created (server dry run)").count();
    assert_eq!(taken, 8, "{printed}");
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
