//! Knot Resolver, by its module `http` (5) or its management (6). Its buckets of latency begin at
//! 1 ms, so they are left out.

use super::{Access, Origin, Profile, Row};

/// Its exposition.
pub const KNOT_RESOLVER: Profile = Profile {
    name: "knot-resolver",
    product: "Knot Resolver",
    access: Access::Exposition("/metrics"),
    place: "http://127.0.0.1:8453/metrics",
    rows: ROWS,
    version: Origin::None,
    started: Origin::None,
    programs: &["kresd"],
    set_up: "the module `http` with its endpoint `/metrics`, or `management:` from version 6 on",
};

const ROWS: &[Row] = &[
    Row::counter(
        "queries",
        "queries",
        &["resolver_request_total"],
        "queries of clients",
    ),
    Row::counter(
        "queries.udp",
        "queries",
        &["resolver_request_udp"],
        "over UDP",
    ),
    Row::counter(
        "queries.tcp",
        "queries",
        &["resolver_request_tcp"],
        "over TCP",
    ),
    Row::counter(
        "queries.dot",
        "queries",
        &["resolver_request_dot"],
        "over TLS",
    ),
    Row::counter(
        "queries.doh",
        "queries",
        &["resolver_request_doh"],
        "over HTTPS",
    ),
    Row::counter(
        "responses",
        "responses",
        &["resolver_answer_total"],
        "responses",
    ),
    Row::counter(
        "responses.cached",
        "responses",
        &["resolver_answer_cached"],
        "responses from the cache",
    ),
    Row::counter(
        "responses.noerror",
        "responses",
        &["resolver_answer_rcode_noerror", "resolver_answer_noerror"],
        "responses that say NOERROR",
    ),
    Row::counter(
        "responses.nxdomain",
        "responses",
        &["resolver_answer_rcode_nxdomain", "resolver_answer_nxdomain"],
        "responses that say NXDOMAIN",
    ),
    Row::counter(
        "responses.servfail",
        "responses",
        &["resolver_answer_rcode_servfail", "resolver_answer_servfail"],
        "responses that say SERVFAIL",
    ),
    Row::counter(
        "upstream.queries",
        "queries",
        &["resolver_query_total"],
        "queries to other servers",
    ),
];
