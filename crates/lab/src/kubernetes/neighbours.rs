//! Agents on a node of the target: they take its CPU time, and no network is between them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::Value;

use super::kubectl::Namespace;
use super::look::{Look, ranges};
use super::state::text;

/// A pod of the target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    node: String,
    pod: String,
}

/// A warning for each pod of the target that has agents on its node. Whoever may not see the
/// target's pods gets none.
pub(super) fn warnings(namespace: &Namespace, look: &Look, targets: &[IpAddr]) -> Vec<String> {
    let mut found: Vec<Target> = targets
        .iter()
        .flat_map(|&target| {
            let pods = pods(namespace, target);
            if pods.is_empty() {
                endpoints(namespace, target)
            } else {
                pods
            }
        })
        .collect();
    found.sort();
    found.dedup();
    told(look, &found)
}

/// Pods that have the address.
fn pods(namespace: &Namespace, target: IpAddr) -> Vec<Target> {
    let field = format!("--field-selector=status.podIP={target}");
    let pods = anywhere(namespace, &["get", "pods", &field]);
    pods.iter().filter_map(of_pod).collect()
}

/// Pods behind a Service that has the address.
fn endpoints(namespace: &Namespace, target: IpAddr) -> Vec<Target> {
    let services = anywhere(namespace, &["get", "services"]);
    let Some(service) = services.iter().find(|it| has_address(it, target)) else {
        return Vec::new();
    };
    let metadata = &service["metadata"];
    let of = text(&metadata["namespace"]);
    let selector = format!(
        "--selector=kubernetes.io/service-name={}",
        text(&metadata["name"])
    );
    let words = ["get", "endpointslices", "--namespace", of, &selector];
    let slices = namespace.items(&words).unwrap_or_default();
    slices.iter().flat_map(of_slice).collect()
}

/// From all namespaces, or from this one if others are not to be seen.
fn anywhere(namespace: &Namespace, words: &[&str]) -> Vec<Value> {
    let all = namespace.items(&[words, &["--all-namespaces"]].concat());
    all.or_else(|_| namespace.items(words)).unwrap_or_default()
}

fn has_address(service: &Value, target: IpAddr) -> bool {
    let spec = &service["spec"];
    let lists = ["clusterIPs", "externalIPs"].map(|name| spec[name].as_array());
    let of_balancer = service["status"]["loadBalancer"]["ingress"].as_array();
    let mut addresses = lists
        .into_iter()
        .flatten()
        .flatten()
        .chain([&spec["clusterIP"]])
        .chain(of_balancer.into_iter().flatten().map(|it| &it["ip"]));
    addresses.any(|it| text(it).parse() == Ok(target))
}

fn of_pod(pod: &Value) -> Option<Target> {
    Some(Target {
        node: pod["spec"]["nodeName"].as_str()?.to_owned(),
        pod: text(&pod["metadata"]["name"]).to_owned(),
    })
}

fn of_slice(slice: &Value) -> Vec<Target> {
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    let targets = endpoints.filter_map(|it| {
        Some(Target {
            node: it["nodeName"].as_str()?.to_owned(),
            pod: text(&it["targetRef"]["name"]).to_owned(),
        })
    });
    targets.collect()
}

fn told(look: &Look, targets: &[Target]) -> Vec<String> {
    let mut by_node: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for pod in &look.pods {
        if let (Some(node), Some(index)) = (&pod.node, pod.index) {
            by_node.entry(node).or_default().push(index);
        }
    }
    let one = |target: &Target| {
        let agents = by_node.get(target.node.as_str())?;
        let who = match agents.len() {
            1 => format!("agent {} shares", ranges(agents)),
            _ => format!("agents {} share", ranges(agents)),
        };
        let Target { node, pod } = target;
        Some(format!(
            "{who} node {node} with the target's pod {pod}: they take CPU time from each other, \
             and what is between them is no network; --away-from LABEL keeps them apart"
        ))
    };
    targets.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kubernetes::look::{Pod, PodName};
    use crate::kubernetes::state::State;

    fn look(nodes: &[&str]) -> Look {
        let pod = |(index, node): (u32, &&str)| Pod {
            name: PodName(format!("run-agents-{index}-x")),
            index: Some(index),
            node: Some((*node).to_owned()),
            address: None,
            state: State::Runs,
        };
        Look {
            agents: 4,
            agents_min: 4,
            lead: None,
            lead_not_made: None,
            pods: (0..).zip(nodes).map(pod).collect(),
            not_made: None,
        }
    }

    #[test]
    fn agents_on_a_node_of_the_target_are_named_with_node_and_pod() {
        let slice = json!({"endpoints": [
            {"nodeName": "n1", "targetRef": {"kind": "Pod", "name": "coredns-x"}},
            {"nodeName": "n2", "targetRef": {"kind": "Pod", "name": "coredns-y"}},
            {"nodeName": "n9", "targetRef": {"kind": "Pod", "name": "coredns-z"}},
        ]});
        let told = told(&look(&["n0", "n1", "n2", "n1"]), &of_slice(&slice));
        let says = [
            "agents 2, 4 share node n1 with the target's pod coredns-x: ",
            "agent 3 shares node n2 with the target's pod coredns-y: ",
        ];
        assert_eq!(told.len(), says.len(), "{told:?}");
        for (told, says) in told.iter().zip(says) {
            assert!(told.starts_with(says), "{told}");
        }
    }

    #[test]
    fn services_are_found_by_any_of_their_addresses() {
        let service = json!({
            "spec": {"clusterIP": "10.96.0.10", "clusterIPs": ["10.96.0.10", "fd00::a"]},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
        });
        for address in ["10.96.0.10", "fd00::a", "192.0.2.1"] {
            assert!(has_address(&service, address.parse().unwrap()), "{address}");
        }
        let headless = json!({"spec": {"clusterIP": "None"}});
        for service in [&service, &headless] {
            assert!(!has_address(service, "10.96.0.11".parse().unwrap()));
        }
    }
}
