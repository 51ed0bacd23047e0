//! Knot Resolver, by its module `http` (5) or its management (6), which puts `resolver_` before
//! the names and leaves those of its workers out. Its buckets of latency begin at 1 ms, so they
//! are left out.

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
    set_up: "`modules.load('http')`, `net.listen('127.0.0.1', 8453, { kind = 'webmgmt' })`, \
             `http.config({ tls = false })`, or `management:` from version 6 on",
};

const ROWS: &[Row] = &[
    Row::counter(
        "queries",
        "queries",
        // Its total has queries that it asks itself.
        &[
            "request_udp",
            "request_tcp",
            "request_dot",
            "request_doh",
            "request_xdp",
            "resolver_request_udp",
            "resolver_request_tcp",
            "resolver_request_dot",
            "resolver_request_doh",
            "resolver_request_xdp",
        ],
        "queries of clients",
    ),
    Row::counter(
        "queries.udp",
        "queries",
        &["request_udp", "resolver_request_udp"],
        "over UDP",
    ),
    Row::counter(
        "queries.tcp",
        "queries",
        &["request_tcp", "resolver_request_tcp"],
        "over TCP",
    ),
    Row::counter(
        "queries.dot",
        "queries",
        &["request_dot", "resolver_request_dot"],
        "over TLS",
    ),
    Row::counter(
        "queries.doh",
        "queries",
        &["request_doh", "resolver_request_doh"],
        "over HTTPS",
    ),
    Row::counter(
        "responses",
        "responses",
        &["answer_total", "resolver_answer_total"],
        "responses",
    ),
    Row::counter(
        "responses.cached",
        "responses",
        &["answer_cached", "resolver_answer_cached"],
        "responses from the cache",
    ),
    Row::counter(
        "responses.noerror",
        "responses",
        &["answer_noerror", "resolver_answer_rcode_noerror"],
        "responses with RCODE NOERROR",
    ),
    Row::counter(
        "responses.nxdomain",
        "responses",
        &["answer_nxdomain", "resolver_answer_rcode_nxdomain"],
        "responses with RCODE NXDOMAIN",
    ),
    Row::counter(
        "responses.servfail",
        "responses",
        &["answer_servfail", "resolver_answer_rcode_servfail"],
        "responses with RCODE SERVFAIL",
    ),
    Row::counter(
        "queries.dropped",
        "queries",
        &["worker_dropped"],
        "queries that it dropped",
    ),
    Row::counter(
        "upstream.queries",
        "queries",
        &["worker_udp", "worker_tcp", "worker_tls"],
        "queries to other servers",
    ),
    Row::counter(
        "upstream.timeouts",
        "queries",
        &["worker_timeout"],
        "of them without answer in time",
    ),
    Row::counter(
        "cpu.user",
        "seconds",
        &["worker_usertime"],
        "CPU time outside the kernel",
    ),
    Row::counter(
        "cpu.system",
        "seconds",
        &["worker_systime"],
        "CPU time within the kernel",
    ),
    Row::gauge("memory", "bytes", &["worker_rss"], "resident memory"),
];
