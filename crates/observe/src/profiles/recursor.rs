//! PowerDNS Recursor, by its web server.

use super::{Access, Origin, Profile, Row};

/// Its exposition.
pub const RECURSOR: Profile = Profile {
    name: "pdns-recursor",
    product: "PowerDNS Recursor",
    access: Access::Exposition("/metrics"),
    place: "http://127.0.0.1:8082/metrics",
    rows: ROWS,
    version: Origin::Label("pdns_recursor_info", "version"),
    started: Origin::None,
    programs: &["pdns_recursor", "pdns-recursor"],
    set_up: "`webserver=yes`",
};

const ROWS: &[Row] = &[
    Row::counter(
        "queries",
        "queries",
        &["pdns_recursor_questions"],
        "queries of clients",
    ),
    Row::counter(
        "queries.tcp",
        "queries",
        &["pdns_recursor_tcp_questions"],
        "over TCP",
    ),
    Row::counter(
        "responses.noerror",
        "responses",
        &["pdns_recursor_noerror_answers"],
        "responses with RCODE NOERROR",
    ),
    Row::counter(
        "responses.nxdomain",
        "responses",
        &["pdns_recursor_nxdomain_answers"],
        "responses with RCODE NXDOMAIN",
    ),
    Row::counter(
        "responses.servfail",
        "responses",
        &["pdns_recursor_servfail_answers"],
        "responses with RCODE SERVFAIL",
    ),
    Row::counter(
        "cache.hits",
        "lookups",
        &["pdns_recursor_packetcache_hits", "pdns_recursor_cache_hits"],
        "queries that a cache answered",
    ),
    Row::counter(
        "cache.misses",
        "lookups",
        &["pdns_recursor_cache_misses"],
        "queries that no cache could answer",
    ),
    Row::counter(
        "queries.dropped",
        "queries",
        &[
            "pdns_recursor_over_capacity_drops",
            "pdns_recursor_policy_drops",
            "pdns_recursor_unauthorized_udp",
            "pdns_recursor_unauthorized_tcp",
        ],
        "queries that it dropped",
    ),
    Row::gauge(
        "clients.recursive",
        "queries",
        &["pdns_recursor_concurrent_queries"],
        "queries that wait for recursion",
    ),
    Row::counter(
        "upstream.queries",
        "queries",
        &["pdns_recursor_all_outqueries"],
        "queries to other servers",
    ),
    Row::counter(
        "upstream.timeouts",
        "queries",
        &["pdns_recursor_outgoing_timeouts"],
        "of them without answer in time",
    ),
    Row::counter(
        "cpu.user",
        "seconds",
        &["pdns_recursor_user_msec"],
        "CPU time outside the kernel",
    )
    .times(0.001),
    Row::counter(
        "cpu.system",
        "seconds",
        &["pdns_recursor_sys_msec"],
        "CPU time within the kernel",
    )
    .times(0.001),
    Row::gauge(
        "memory",
        "bytes",
        &["pdns_recursor_real_memory_usage"],
        "resident memory",
    ),
    Row::gauge("files", "files", &["pdns_recursor_fd_usage"], "open files"),
];
