//! HAProxy, by its Prometheus exporter.

use super::{Access, Origin, Profile, Row};

/// Its exposition.
pub const HAPROXY: Profile = Profile {
    name: "haproxy",
    product: "HAProxy",
    access: Access::Exposition("/metrics"),
    place: "http://127.0.0.1:8404/metrics",
    rows: ROWS,
    version: Origin::Label("haproxy_process_build_info", "version"),
    started: Origin::Value("haproxy_process_start_time_seconds"),
    programs: &["haproxy"],
    set_up: "`http-request use-service prometheus-exporter if { path /metrics }`, `mode http`",
};

const ROWS: &[Row] = &[
    Row::counter(
        "connections",
        "connections",
        &["haproxy_process_connections_total"],
        "connections of clients",
    ),
    Row::gauge(
        "clients.tcp",
        "connections",
        &["haproxy_process_current_connections"],
        "connections of clients now",
    ),
    Row::gauge(
        "clients.tcp_most",
        "connections",
        &["haproxy_process_max_connections"],
        "most connections at once that it takes",
    ),
    Row::gauge(
        "idle",
        "percent",
        &["haproxy_process_idle_time_percent"],
        "share of its time in which it waited",
    ),
    Row::gauge(
        "threads",
        "threads",
        &["haproxy_process_nbthread"],
        "threads",
    ),
    Row::counter(
        "frontend.connections",
        "connections",
        &["haproxy_frontend_connections_total"],
        "connections of this frontend",
    )
    .each("proxy"),
    Row::gauge(
        "frontend.sessions",
        "sessions",
        &["haproxy_frontend_current_sessions"],
        "sessions of this frontend now",
    )
    .each("proxy"),
    Row::counter(
        "frontend.errors",
        "requests",
        &["haproxy_frontend_request_errors_total"],
        "requests that were in error",
    )
    .each("proxy"),
    Row::counter(
        "frontend.received",
        "bytes",
        &["haproxy_frontend_bytes_in_total"],
        "bytes from clients",
    )
    .each("proxy"),
    Row::counter(
        "frontend.sent",
        "bytes",
        &["haproxy_frontend_bytes_out_total"],
        "bytes to clients",
    )
    .each("proxy"),
    Row::gauge(
        "backend.queue",
        "requests",
        &["haproxy_backend_current_queue"],
        "requests that wait for a server",
    )
    .each("proxy"),
    Row::counter(
        "backend.errors",
        "connections",
        &["haproxy_backend_connection_errors_total"],
        "connections to servers that failed",
    )
    .each("proxy"),
    Row::counter(
        "backend.retries",
        "connections",
        &["haproxy_backend_retry_warnings_total"],
        "connections to servers that were tried again",
    )
    .each("proxy"),
    Row::gauge(
        "backend.connect_time",
        "seconds",
        &["haproxy_backend_connect_time_average_seconds"],
        "mean time of the last 1,024 connections to be set up",
    )
    .each("proxy"),
    Row::gauge(
        "memory",
        "bytes",
        &["haproxy_process_pool_allocated_bytes"],
        "memory of its pools",
    ),
];
