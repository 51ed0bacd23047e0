//! CoreDNS, by its plugin `prometheus`.

use super::{Access, Origin, Profile, Row};

/// Its exposition.
pub const COREDNS: Profile = Profile {
    name: "coredns",
    product: "CoreDNS",
    access: Access::Exposition("/metrics"),
    place: "http://127.0.0.1:9153/metrics",
    rows: ROWS,
    version: Origin::Label("coredns_build_info", "version"),
    started: Origin::Value("process_start_time_seconds"),
    programs: &["coredns"],
    set_up: "`prometheus 127.0.0.1:9153` in each server block",
};

const ROWS: &[Row] = &[
    Row::counter(
        "queries",
        "queries",
        &["coredns_dns_requests_total"],
        "queries of clients",
    )
    .or_zero("coredns_build_info"),
    Row::counter(
        "queries.udp",
        "queries",
        &["coredns_dns_requests_total{proto=\"udp\"}"],
        "over UDP",
    )
    .or_zero("coredns_build_info"),
    Row::counter(
        "queries.tcp",
        "queries",
        &["coredns_dns_requests_total{proto=\"tcp\"}"],
        "over TCP and TLS",
    )
    .or_zero("coredns_build_info"),
    Row::counter(
        "queries.doh2",
        "queries",
        &["coredns_dns_requests_total{proto=\"https\"}"],
        "over HTTP/2",
    )
    .or_zero("coredns_build_info"),
    Row::counter(
        "queries.doh3",
        "queries",
        &["coredns_dns_requests_total{proto=\"https3\"}"],
        "over HTTP/3",
    )
    .or_zero("coredns_build_info"),
    Row::counter(
        "queries.doq",
        "queries",
        &["coredns_dns_requests_total{proto=\"quic\"}"],
        "over QUIC",
    )
    .or_zero("coredns_build_info"),
    Row::counter(
        "responses.noerror",
        "responses",
        &["coredns_dns_responses_total{rcode=\"NOERROR\"}"],
        "responses with RCODE NOERROR",
    )
    .or_zero("coredns_build_info"),
    Row::counter(
        "responses.nxdomain",
        "responses",
        &["coredns_dns_responses_total{rcode=\"NXDOMAIN\"}"],
        "responses with RCODE NXDOMAIN",
    )
    .or_zero("coredns_build_info"),
    Row::counter(
        "responses.servfail",
        "responses",
        &["coredns_dns_responses_total{rcode=\"SERVFAIL\"}"],
        "responses with RCODE SERVFAIL",
    )
    .or_zero("coredns_build_info"),
    Row::counter(
        "responses.refused",
        "responses",
        &["coredns_dns_responses_total{rcode=\"REFUSED\"}"],
        "responses with RCODE REFUSED",
    )
    .or_zero("coredns_build_info"),
    Row::counter(
        "response_time",
        "seconds",
        &["coredns_dns_request_duration_seconds_sum"],
        "time from query to response, added up",
    ),
    Row::counter(
        "cache.hits",
        "lookups",
        &["coredns_cache_hits_total"],
        "queries that the cache answered",
    )
    .or_zero("coredns_build_info"),
    Row::counter(
        "cache.misses",
        "lookups",
        &["coredns_cache_misses_total"],
        "queries that it could not answer",
    )
    .or_zero("coredns_build_info"),
    Row::counter(
        "upstream.queries",
        "queries",
        &["coredns_proxy_request_duration_seconds_count"],
        "queries to other servers",
    )
    .or_zero("coredns_build_info"),
    Row::counter(
        "upstream.time",
        "seconds",
        &["coredns_proxy_request_duration_seconds_sum"],
        "time that they took, in total",
    )
    .or_zero("coredns_build_info"),
    Row::counter(
        "upstream.checks_failed",
        "checks",
        &["coredns_proxy_healthcheck_failures_total"],
        "health checks of other servers that failed",
    )
    .or_zero("coredns_build_info"),
    Row::counter(
        "upstream.rejected",
        "queries",
        &["coredns_forward_max_concurrent_rejects_total"],
        "queries that were not forwarded because too many were",
    ),
    Row::counter("panics", "panics", &["coredns_panics_total"], "panics"),
    Row::counter("cpu", "seconds", &["process_cpu_seconds_total"], "CPU time"),
    Row::gauge(
        "memory",
        "bytes",
        &["process_resident_memory_bytes"],
        "resident memory",
    ),
    Row::gauge("files", "files", &["process_open_fds"], "open files"),
    Row::gauge(
        "goroutines",
        "goroutines",
        &["go_goroutines"],
        "goroutines: queries in progress, and a few more",
    ),
];
