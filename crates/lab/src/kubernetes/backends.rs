//! Which pods answer at an address of a cluster, as far as the user may know.

use std::net::IpAddr;

use serde_json::Value;

use super::cluster::{Cluster, TIMEOUT};

/// Only a pod that runs answers.
const RUNNING: &str = "status.phase=Running";

/// A pod that answers at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// Its namespace and its name: `kube-system/coredns-x`.
    pub name: String,
    /// Its node.
    pub node: String,
}

impl Backend {
    fn of(pod: &Value) -> Option<Backend> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (metadata, spec) = (&pod["metadata"], &pod["spec"]);
        // Pods in the network of their node have its address in common.
        if spec["hostNetwork"] == true {
            return None;
        }
        Some(Backend {
            name: format!(
                "{}/{}",
                text(&metadata["namespace"])?,
                text(&metadata["name"])?
            ),
            node: text(&spec["nodeName"])?,
        })
    }
}

impl Cluster {
    /// The pod with this address, or those of the Service with it. None of an address outside of
    /// the cluster, and where the user may list neither pods and Services of all namespaces nor
    /// those of this one.
    pub fn backends(&self, address: IpAddr) -> Vec<Backend> {
        let of_all = self.backends_in(&["--all-namespaces"], address);
        let found = of_all.or_else(|| self.backends_in(&[], address));
        found.unwrap_or_default()
    }

    /// The same of these namespaces; none if they may not be listed.
    fn backends_in(&self, namespaces: &[&str], address: IpAddr) -> Option<Vec<Backend>> {
        let with_address = format!("--field-selector=status.podIP={address},{RUNNING}");
        let pods = self.list("pods", &[&[with_address.as_str()], namespaces].concat())?;
        let backends: Vec<Backend> = pods.iter().filter_map(Backend::of).collect();
        if !backends.is_empty() {
            return Some(backends);
        }
        let with_address = format!("--field-selector=spec.clusterIP={address}");
        let services = self.list("services", &[&[with_address.as_str()], namespaces].concat())?;
        let Some(service) = services.first() else {
            return Some(Vec::new());
        };
        let labels = service["spec"]["selector"].as_object()?.iter();
        let labels = labels.filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)));
        let labels = labels.collect::<Vec<_>>().join(",");
        let (selector, running) = (
            format!("--selector={labels}"),
            format!("--field-selector={RUNNING}"),
        );
        let namespace = ["--namespace", service["metadata"]["namespace"].as_str()?];
        let pods = self.list(
            "pods",
            &[&[selector.as_str(), &running], &namespace[..]].concat(),
        )?;
        Some(pods.iter().filter_map(Backend::of).collect())
    }

    /// Objects of a kind; none if they may not be listed.
    pub(super) fn list(&self, kind: &str, flags: &[&str]) -> Option<Vec<Value>> {
        let words = [&[TIMEOUT, "get", kind, "--output=json"], flags].concat();
        self.ask_objects(&words, None).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_in_the_network_of_their_node_are_no_backends() {
        let pod = |is_of_node: bool| {
            json!({
                "metadata": {"namespace": "dns", "name": "server-x"},
                "spec": {"nodeName": "node-7", "hostNetwork": is_of_node},
            })
        };
        let backend = Backend {
            name: "dns/server-x".to_owned(),
            node: "node-7".to_owned(),
        };
        assert_eq!(Backend::of(&pod(false)), Some(backend));
        assert_eq!(Backend::of(&pod(true)), None);
    }
}
