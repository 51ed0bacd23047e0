//! PowerDNS Authoritative Server, by its web server.

use super::{Access, Origin, Profile, Row};

/// Its exposition.
pub const PDNS_AUTH: Profile = Profile {
    name: "pdns-auth",
    product: "PowerDNS Authoritative Server",
    access: Access::Exposition("/metrics"),
    place: "http://127.0.0.1:8081/metrics",
    rows: ROWS,
    version: Origin::Label("pdns_auth_info", "version"),
    started: Origin::None,
    programs: &["pdns_server"],
    set_up: "`webserver=yes`",
};

const ROWS: &[Row] = &[
    Row::counter(
        "queries",
        "queries",
        &["pdns_auth_udp_queries", "pdns_auth_tcp_queries"],
        "queries of clients",
    ),
    Row::counter(
        "queries.udp",
        "queries",
        &["pdns_auth_udp_queries"],
        "over UDP",
    ),
    Row::counter(
        "queries.tcp",
        "queries",
        &["pdns_auth_tcp_queries"],
        "over TCP",
    ),
    Row::counter(
        "responses",
        "responses",
        &["pdns_auth_udp_answers", "pdns_auth_tcp_answers"],
        "responses",
    ),
    Row::counter(
        "responses.servfail",
        "responses",
        &["pdns_auth_servfail_packets"],
        "responses with RCODE SERVFAIL",
    ),
    Row::counter(
        "cache.hits",
        "lookups",
        &["pdns_auth_packetcache_hit"],
        "queries that the packet cache answered",
    ),
    Row::counter(
        "cache.misses",
        "lookups",
        &["pdns_auth_packetcache_miss"],
        "queries that it could not answer",
    ),
    Row::counter(
        "queries.dropped",
        "queries",
        &["pdns_auth_overload_drops", "pdns_auth_timedout_packets"],
        "queries that it dropped",
    ),
    Row::gauge(
        "queue",
        "queries",
        &["pdns_auth_qsize_q"],
        "queries that wait for the database",
    ),
    Row::gauge(
        "latency",
        "microseconds",
        &["pdns_auth_latency"],
        "mean time from query to response",
    ),
    Row::gauge(
        "memory",
        "bytes",
        &["pdns_auth_real_memory_usage"],
        "resident memory",
    ),
    Row::gauge("files", "files", &["pdns_auth_fd_usage"], "open files"),
];
