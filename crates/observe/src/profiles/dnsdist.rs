//! dnsdist, by its web server. Its buckets of latency begin at 1 ms, so they are left out.

use super::{Access, Origin, Profile, Row};

/// Its exposition.
pub const DNSDIST: Profile = Profile {
    name: "dnsdist",
    product: "dnsdist",
    access: Access::Exposition("/metrics"),
    place: "http://127.0.0.1:8083/metrics",
    rows: ROWS,
    version: Origin::Label("dnsdist_info", "version"),
    started: Origin::None,
    programs: &["dnsdist"],
    set_up: "`webserver()`, `statsRequireAuthentication=false` or its API key by `token=`",
};

const ROWS: &[Row] = &[
    Row::counter(
        "queries",
        "queries",
        &["dnsdist_queries"],
        "queries of clients",
    ),
    Row::counter(
        "queries.udp",
        "queries",
        &["dnsdist_frontend_queries{proto=\"UDP\"}"],
        "over UDP",
    ),
    Row::counter(
        "queries.tcp",
        "queries",
        &["dnsdist_frontend_queries{proto=\"TCP\"}"],
        "over TCP",
    ),
    Row::counter(
        "queries.dot",
        "queries",
        &[
            "dnsdist_frontend_queries{proto=\"DoT\"}",
            "dnsdist_frontend_queries{proto=\"TCP (DNS over TLS)\"}",
        ],
        "over TLS",
    ),
    Row::counter(
        "queries.doh",
        "queries",
        &[
            "dnsdist_frontend_http_valid{type=\"doh\"}",
            "dnsdist_frontend_doh_http_version_queries",
        ],
        "over HTTPS",
    ),
    Row::counter(
        "responses",
        "responses",
        &["dnsdist_responses"],
        "responses of backends",
    ),
    Row::counter(
        "responses.own",
        "responses",
        &["dnsdist_self_answered"],
        "responses of its own rules",
    ),
    Row::counter(
        "responses.noerror",
        "responses",
        &["dnsdist_frontend_noerror"],
        "responses with RCODE NOERROR",
    ),
    Row::counter(
        "responses.nxdomain",
        "responses",
        &["dnsdist_frontend_nxdomain"],
        "responses with RCODE NXDOMAIN",
    ),
    Row::counter(
        "responses.servfail",
        "responses",
        &["dnsdist_frontend_servfail"],
        "responses with RCODE SERVFAIL",
    ),
    Row::counter(
        "cache.hits",
        "lookups",
        &["dnsdist_cache_hits"],
        "queries that the cache answered",
    ),
    Row::counter(
        "cache.misses",
        "lookups",
        &["dnsdist_cache_misses"],
        "queries that it could not answer",
    ),
    Row::counter(
        "queries.dropped",
        "queries",
        &[
            "dnsdist_acl_drops",
            "dnsdist_rule_drop",
            "dnsdist_dyn_blocked",
        ],
        "queries that it dropped: access list, rules, dynamic blocks",
    ),
    Row::counter(
        "queries.nobody",
        "queries",
        &["dnsdist_no_policy"],
        "queries for which there was no backend",
    ),
    Row::counter(
        "upstream.timeouts",
        "queries",
        &["dnsdist_downstream_timeouts"],
        "queries that no backend answered in time",
    ),
    Row::counter(
        "upstream.send_errors",
        "queries",
        &["dnsdist_downstream_send_errors"],
        "queries that could not be sent to a backend",
    ),
    Row::counter(
        "backend.queries",
        "queries",
        &["dnsdist_server_queries"],
        "queries to this backend",
    )
    .each("server"),
    Row::gauge(
        "backend.outstanding",
        "queries",
        &["dnsdist_server_outstanding"],
        "queries that this backend has not answered yet",
    )
    .each("server"),
    Row::gauge(
        "backend.latency",
        "microseconds",
        &["dnsdist_server_latency"],
        "smoothed latency of this backend",
    )
    .each("server"),
    Row::gauge(
        "backend.up",
        "1",
        &["dnsdist_server_status"],
        "1 if this backend is up",
    )
    .each("server"),
    Row::gauge(
        "clients.tcp",
        "connections",
        &["dnsdist_frontend_tcpcurrentconnections"],
        "TCP connections of clients",
    ),
    Row::counter(
        "clients.tcp_gave_up",
        "connections",
        &["dnsdist_frontend_tcpgaveup"],
        "TCP connections that it gave up",
    ),
    Row::counter(
        "cpu.user",
        "seconds",
        &["dnsdist_cpu_user_msec"],
        "CPU time outside the kernel",
    )
    .times(0.001),
    Row::counter(
        "cpu.system",
        "seconds",
        &["dnsdist_cpu_sys_msec"],
        "CPU time within the kernel",
    )
    .times(0.001),
    Row::gauge(
        "memory",
        "bytes",
        &["dnsdist_real_memory_usage"],
        "resident memory",
    ),
    Row::gauge("files", "files", &["dnsdist_fd_usage"], "open files"),
];
