//! The profiles: a file for each product. One that is added is a file and a line of [`ALL`].

use crate::profile::{Access, Origin, Profile, Row};

mod bind;
mod cgroup;
mod coredns;
mod dnsdist;
mod haproxy;
mod host;
mod knot;
mod knot_resolver;
mod kubelet;
mod node;
mod pdns_auth;
mod process;
mod recursor;
mod unbound;

pub use bind::BIND;
pub use cgroup::CGROUP;
pub use coredns::COREDNS;
pub use dnsdist::DNSDIST;
pub use haproxy::HAPROXY;
pub use host::HOST;
pub use knot::KNOT;
pub use knot_resolver::KNOT_RESOLVER;
pub use kubelet::KUBELET;
pub use node::NODE;
pub use pdns_auth::PDNS_AUTH;
pub use process::PROCESS;
pub use recursor::RECURSOR;
pub use unbound::UNBOUND;

/// Any exposition; series are those of an allow-list.
pub const PROMETHEUS: Profile = Profile {
    name: "prometheus",
    product: "",
    access: Access::Exposition("/metrics"),
    place: "http://host:port/metrics,allow=NAME|NAME*",
    rows: &[],
    version: Origin::None,
    started: Origin::None,
    programs: &[],
    set_up: "",
};

/// A Prometheus that observes already; asked when the run is over.
pub const PROMETHEUS_API: Profile = Profile {
    name: "prometheus-api",
    product: "",
    access: Access::QueryApi,
    place: "http://host:9090,query=EXPRESSION,step=15s",
    rows: &[],
    version: Origin::None,
    started: Origin::None,
    programs: &[],
    set_up: "",
};

/// All of them, as help lists them.
pub const ALL: [&Profile; 16] = [
    &PROCESS,
    &CGROUP,
    &HOST,
    &BIND,
    &UNBOUND,
    &KNOT,
    &KNOT_RESOLVER,
    &COREDNS,
    &DNSDIST,
    &RECURSOR,
    &PDNS_AUTH,
    &HAPROXY,
    &NODE,
    &KUBELET,
    &PROMETHEUS,
    &PROMETHEUS_API,
];

/// The profile of that name.
pub fn by_name(name: &str) -> Option<&'static Profile> {
    ALL.into_iter().find(|profile| profile.name == name)
}

/// Their names.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|profile| profile.name).collect()
}

#[cfg(test)]
mod tests;
