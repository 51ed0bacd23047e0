//! Where this process is: its node as an orchestrator calls it, and the addresses of its host.

use std::net::{IpAddr, UdpSocket};

use measure::record::Placement;

/// Variables that a manifest of Kubernetes sets by the downward API.
const NODE: &str = "THRONG_NODE";
const ZONE: &str = "THRONG_ZONE";
const POD: &str = "THRONG_POD";
const HOST_IP: &str = "THRONG_HOST_IP";
/// Longest name of a node, a zone or a pod in Kubernetes.
const NAME_MAX: usize = 253;

/// Where a run is made; nothing is known of a simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Site {
    pub(crate) placement: Option<Placement>,
    /// Address of the node.
    host_ip: Option<IpAddr>,
    /// This host has interfaces.
    is_real: bool,
}

impl Site {
    /// That of this process.
    pub(crate) fn own() -> Site {
        Site::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Site {
        let is_name = |name: &String| {
            let is_printable = |it: char| it.is_ascii_graphic();
            (1..=NAME_MAX).contains(&name.len()) && name.chars().all(is_printable)
        };
        let name = |of: &str| variable(of).filter(is_name);
        let placement = Placement {
            node: name(NODE),
            zone: name(ZONE),
            pod: name(POD),
        };
        Site {
            placement: Some(placement).filter(|it| *it != Placement::default()),
            host_ip: variable(HOST_IP).and_then(|it| it.parse().ok()),
            is_real: true,
        }
    }

    /// A warning if a target with this address is on the node of this process.
    pub(super) fn shared_with(&self, target: IpAddr) -> Option<String> {
        let target = target.to_canonical();
        let node = self.placement.as_ref().and_then(|it| it.node.as_deref());
        let place = match node {
            _ if !self.is_real => return None,
            Some(node) if self.host_ip == Some(target) => format!("node {node} ({target})"),
            None if self.host_ip == Some(target) => format!("the node {target}"),
            _ if is_own(target) => format!("the host with the address {target}"),
            _ => return None,
        };
        Some(format!(
            "generator and target share {place}: they compete for its CPUs, and no network is \
             between them"
        ))
    }
}

/// True if an interface of this network namespace has the address: only these can be bound to.
fn is_own(address: IpAddr) -> bool {
    !address.is_unspecified() && UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(variables: &[(&str, &str)]) -> Site {
        Site::from_variables(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn placement_is_what_the_environment_says() {
        assert_eq!(site(&[]).placement, None);
        let found = site(&[(NODE, "node-7"), (ZONE, ""), (POD, "agents-3-x\u{1b}[1m")]);
        let expected = Placement {
            node: Some("node-7".to_owned()),
            ..Placement::default()
        };
        assert_eq!(found.placement, Some(expected));
    }

    #[test]
    fn target_on_the_node_of_an_agent_is_warned_of() {
        let on_node = site(&[(NODE, "node-7"), (HOST_IP, "192.0.2.7")]);
        let target: IpAddr = "192.0.2.7".parse().unwrap();
        let warning = on_node.shared_with(target).unwrap();
        assert!(
            warning.contains("share node node-7 (192.0.2.7)"),
            "{warning}"
        );
        let mapped = "::ffff:192.0.2.7".parse().unwrap();
        assert!(on_node.shared_with(mapped).is_some());
        assert_eq!(on_node.shared_with("192.0.2.8".parse().unwrap()), None);
        // An address of an interface here.
        let own = "127.0.0.1".parse().unwrap();
        let warning = site(&[]).shared_with(own).unwrap();
        assert!(warning.contains("share the host with the address 127.0.0.1"));
        assert_eq!(Site::default().shared_with(own), None);
    }
}
