//! Pods by the kubelet, which has cAdvisor: directly, or through an API server.

use super::{Access, Origin, Profile, Row};

/// Its exposition of containers.
pub const KUBELET: Profile = Profile {
    name: "kubelet",
    product: "",
    access: Access::Exposition("/metrics/cadvisor"),
    place: "https://api:6443/api/v1/nodes/NODE/proxy/metrics/cadvisor",
    rows: ROWS,
    version: Origin::None,
    started: Origin::None,
    programs: &[],
    set_up: "`token=` and `ca=` of a service account that may `get` `nodes/proxy`",
};

const ROWS: &[Row] = &[
    Row::counter(
        "container.cpu",
        "seconds",
        &["container_cpu_usage_seconds_total"],
        "CPU time of this pod",
    )
    .each("pod"),
    Row::counter(
        "container.cpu_user",
        "seconds",
        &["container_cpu_user_seconds_total"],
        "CPU time outside the kernel",
    )
    .each("pod"),
    Row::counter(
        "container.cpu_system",
        "seconds",
        &["container_cpu_system_seconds_total"],
        "CPU time within the kernel",
    )
    .each("pod"),
    Row::counter(
        "container.periods",
        "periods",
        &["container_cpu_cfs_periods_total"],
        "periods of the quota in which it ran",
    )
    .each("pod"),
    Row::counter(
        "container.throttled_periods",
        "periods",
        &["container_cpu_cfs_throttled_periods_total"],
        "periods in which it had used up the quota",
    )
    .each("pod"),
    Row::counter(
        "container.throttled_time",
        "seconds",
        &["container_cpu_cfs_throttled_seconds_total"],
        "time for which it was not allowed to run",
    )
    .each("pod"),
    Row::gauge(
        "container.memory",
        "bytes",
        &["container_memory_working_set_bytes"],
        "memory in use",
    )
    .each("pod"),
    Row::counter(
        "container.receive_dropped",
        "packets",
        &["container_network_receive_packets_dropped_total"],
        "packets to this pod that were dropped",
    )
    .each("pod"),
];
