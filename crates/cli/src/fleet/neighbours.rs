//! Nodes of Kubernetes that agents share with the pods of their target.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use lab::kubernetes::Backend;
use measure::RunRecord;
use measure::notation::first_few;

/// A warning for each target of which pods are on the nodes of agents. `backends` are the pods that
/// answer at an address.
pub(super) fn warnings(
    record: &RunRecord,
    mut backends: impl FnMut(IpAddr) -> Vec<Backend>,
) -> Vec<String> {
    let placements = record.agents.iter().filter_map(|it| it.placement.as_ref());
    let nodes: BTreeSet<&str> = placements.filter_map(|it| it.node.as_deref()).collect();
    if nodes.is_empty() {
        return Vec::new();
    }
    let warnings = addresses(record).into_iter().filter_map(|address| {
        let mut shared: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let backends = backends(address).into_iter();
        for Backend { name, node } in backends.filter(|it| nodes.contains(it.node.as_str())) {
            shared.entry(node).or_default().push(name);
        }
        warning(address, &shared)
    });
    warnings.collect()
}

/// The addresses of all targets, each once.
fn addresses(record: &RunRecord) -> BTreeSet<IpAddr> {
    let others = record.targets.iter().map(|it| &it.target);
    let all = others.chain([&record.scenario.target]);
    let parsed = all.filter_map(|it| it.parse::<SocketAddr>().ok());
    parsed.map(|it| it.ip().to_canonical()).collect()
}

/// `shared` has the pods of the target by the nodes where agents are too.
fn warning(address: IpAddr, shared: &BTreeMap<String, Vec<String>>) -> Option<String> {
    let nodes: Vec<&String> = shared.keys().collect();
    let pods: Vec<&String> = shared.values().flatten().collect();
    let (node, they) = match nodes.len() {
        0 => return None,
        1 => ("node", "its"),
        _ => ("nodes", "their"),
    };
    Some(format!(
        "generator and target share {node} {} (pods of {address} there: {}): they compete for \
         {they} CPUs, and no network is between them",
        first_few(&nodes),
        first_few(&pods)
    ))
}

#[cfg(test)]
mod tests {
    use measure::record::{Agent, Placement};
    use testing::example;

    use super::*;

    /// A run of agents on these nodes.
    fn record(nodes: &[&str]) -> RunRecord {
        let mut record = example::record(vec![example::interval(0, &[(1_000_000, 500)])]);
        let agents = nodes.iter().map(|node| Agent {
            placement: Some(Placement {
                node: Some((*node).to_owned()),
                ..Placement::default()
            }),
            ..record.agents[0].clone()
        });
        record.agents = agents.collect();
        record
    }

    fn backends(nodes: &[&str]) -> Vec<Backend> {
        let backend = |(number, node): (usize, &&str)| Backend {
            name: format!("dns/server-{number}"),
            node: (*node).to_owned(),
        };
        nodes.iter().enumerate().map(backend).collect()
    }

    #[test]
    fn nodes_that_agents_share_with_their_target_are_named() {
        let record = record(&["n1", "n1", "n2"]);
        let found = |nodes: &[&str]| {
            warnings(&record, |address| {
                assert_eq!(address.to_string(), "192.0.2.1");
                backends(nodes)
            })
        };
        let told = found(&["n0", "n1", "n3"]);
        assert_eq!(told.len(), 1, "{told:?}");
        let expected = "share node n1 (pods of 192.0.2.1 there: dns/server-1): they compete";
        assert!(told[0].contains(expected), "{told:?}");
        let told = found(&["n2", "n1", "n1"]);
        let expected = "share nodes n1, n2 (pods of 192.0.2.1 there: dns/server-1, dns/server-2, \
                        dns/server-0): they compete for their CPUs";
        assert!(told[0].contains(expected), "{told:?}");
        assert!(found(&["n3"]).is_empty());
        assert!(found(&[]).is_empty());
    }

    #[test]
    fn cluster_is_not_queried_for_agents_without_nodes() {
        let record = example::record(vec![example::interval(0, &[(1_000_000, 500)])]);
        let told = warnings(&record, |_| panic!("there is nothing to compare"));
        assert!(told.is_empty());
    }
}
