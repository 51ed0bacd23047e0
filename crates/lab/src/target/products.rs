//! The products, a file for each. A new product needs a file and a line in [`ALL`].

mod bind;
mod bind_counters;
mod coredns;
mod custom;
mod knot;
mod knot_resolver;
mod nsd;
mod pdns_auth;
mod pdns_recursor;
mod proxy;
mod responder;
mod unbound;

pub use bind::{BIND, BindOptions, BindTarget};
pub use bind_counters::BindCounters;
pub use coredns::{COREDNS, coredns_in_front_of};
pub use custom::CUSTOM;
pub use knot::{KNOT, KnotOptions, KnotTarget};
pub use knot_resolver::KNOT_RESOLVER;
pub use nsd::NSD;
pub use pdns_auth::PDNS_AUTH;
pub use pdns_recursor::PDNS_RECURSOR;
pub use proxy::{DNSDIST, HAPROXY};
pub use responder::RESPONDER;
pub use unbound::{UNBOUND, UnboundOptions, UnboundTarget};

use super::Product;

/// Products with a configuration of ours.
pub const ALL: [&Product; 10] = [
    &BIND,
    &UNBOUND,
    &KNOT,
    &NSD,
    &COREDNS,
    &PDNS_AUTH,
    &PDNS_RECURSOR,
    &KNOT_RESOLVER,
    &DNSDIST,
    &HAPROXY,
];

/// Every product, those without a fixed program last.
pub fn all() -> impl Iterator<Item = &'static Product> {
    ALL.into_iter().chain([&RESPONDER, &CUSTOM])
}
