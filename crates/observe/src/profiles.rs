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

/// What is no product: it has no version that it tells, and nothing to switch on.
const NO_PRODUCT: Profile = Profile {
    name: "",
    product: "",
    access: Access::Host,
    place: "",
    rows: &[],
    version: Origin::None,
    started: Origin::None,
    programs: &[],
    set_up: "",
};

/// Rows, and others behind them; `N` is how many they are together.
const fn joined<const N: usize>(first: &[Row], then: &[Row]) -> [Row; N] {
    let mut all = [first[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = match at < first.len() {
            true => first[at],
            false => then[at - first.len()],
        };
        at += 1;
    }
    all
}

/// Any exposition; series are those of an allow-list.
pub const PROMETHEUS: Profile = Profile {
    name: "prometheus",
    access: Access::Exposition("/metrics"),
    place: "http://host:port/metrics,allow=NAME|NAME*",
    ..NO_PRODUCT
};

/// A Prometheus that observes already; asked when the run is over.
pub const PROMETHEUS_API: Profile = Profile {
    name: "prometheus-api",
    access: Access::QueryApi,
    place: "http://host:9090,query=EXPRESSION,step=15s",
    ..NO_PRODUCT
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

/// True if `version.bind` is the version of that product or program itself, and not of a server
/// behind a proxy: it is a DNS server with a profile, which answers such questions itself, or the
/// text names it, as in `NSD 4.6.1`.
pub fn names_itself(product: &str, version_bind: Option<&str>) -> bool {
    let servers = [
        &BIND,
        &UNBOUND,
        &KNOT,
        &KNOT_RESOLVER,
        &RECURSOR,
        &PDNS_AUTH,
    ];
    let is_server = servers.iter().any(|profile| profile.product == product);
    let named = version_bind.map(|text| text.to_lowercase().contains(&product.to_lowercase()));
    is_server || named.unwrap_or(false)
}

/// What `throng schema observations` prints before the tables.
const TABLES_HEAD: &str = "\
# What is observed

Made by `throng schema observations`. [The guide](observing.md) says how to use it.
";

/// All of them with their series, as Markdown.
pub fn tables() -> String {
    let mut text = String::from(TABLES_HEAD);
    for profile in ALL {
        let Profile {
            name,
            product,
            place,
            set_up,
            rows,
            ..
        } = profile;
        text.push_str(&format!("\n## `{name}`"));
        if !product.is_empty() {
            text.push_str(&format!(": {product}"));
        }
        let place = if place.is_empty() {
            String::new()
        } else {
            format!("={place}")
        };
        text.push_str(&format!(
            "\n\nAsked for as `{name}{}`",
            place.replace('`', "")
        ));
        if !set_up.is_empty() {
            text.push_str(&format!("; its configuration takes {set_up}"));
        }
        text.push_str(".\n");
        if rows.is_empty() {
            text.push_str("Its series are those that you name.\n");
            continue;
        }
        text.push_str("\nseries | unit | what it is\n---|---|---\n");
        for Row {
            name,
            unit,
            each,
            meaning,
            ..
        } in *rows
        {
            let each = each.map_or(String::new(), |label| format!(", for each {label}"));
            text.push_str(&format!("`{name}` | {unit} | {meaning}{each}\n"));
        }
    }
    text
}

/// Their names.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|profile| profile.name).collect()
}

#[cfg(test)]
mod tests;
