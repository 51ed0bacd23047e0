//! A pod by the kubelet of its node, which has cAdvisor: directly, or through an API server.
//!
//! cAdvisor tells of a pod, of each of its containers, and of the one that holds its network: only
//! containers with a name count, or everything would be added up twice. It looks every ten seconds
//! or so and says when it did.

use super::{Access, Origin, Profile, Row};

/// Its exposition of containers.
pub const KUBELET: Profile = Profile {
    name: "kubelet",
    product: "",
    access: Access::Pod("/metrics/cadvisor"),
    place: "https://api:6443/api/v1/nodes/NODE/proxy/metrics/cadvisor,pod=NAMESPACE/NAME",
    rows: ROWS,
    version: Origin::None,
    started: Origin::None,
    programs: &[],
    set_up: "`token=` and `ca=` of a service account that may `get` `nodes/proxy`",
};

const ROWS: &[Row] = &[
    Row::counter(
        "group.cpu",
        "seconds",
        &["container_cpu_usage_seconds_total{container!=\"\"}"],
        "CPU time of the pod's containers",
    ),
    Row::counter(
        "group.cpu_user",
        "seconds",
        &["container_cpu_user_seconds_total{container!=\"\"}"],
        "CPU time outside the kernel",
    ),
    Row::counter(
        "group.cpu_system",
        "seconds",
        &["container_cpu_system_seconds_total{container!=\"\"}"],
        "CPU time within the kernel",
    ),
    Row::gauge(
        "group.quota",
        "cpus",
        &["container_spec_cpu_quota{container!=\"\"}"],
        "CPUs' worth of time that it may use, in periods of 100 ms",
    )
    .times(1e-5),
    Row::counter(
        "group.periods",
        "periods",
        &["container_cpu_cfs_periods_total{container!=\"\"}"],
        "periods of the quota in which it ran",
    ),
    Row::counter(
        "group.throttled_periods",
        "periods",
        &["container_cpu_cfs_throttled_periods_total{container!=\"\"}"],
        "periods in which it had used up the quota",
    ),
    Row::counter(
        "group.throttled_time",
        "seconds",
        &["container_cpu_cfs_throttled_seconds_total{container!=\"\"}"],
        "time for which it was not allowed to run",
    ),
    Row::gauge(
        "group.memory",
        "bytes",
        &["container_memory_working_set_bytes{container!=\"\"}"],
        "memory in use",
    ),
    Row::gauge(
        "group.memory_limit",
        "bytes",
        &["container_spec_memory_limit_bytes{container!=\"\"}"],
        "memory that it may have; 0 without a limit",
    ),
    Row::counter(
        "group.killed",
        "processes",
        &["container_oom_events_total{container!=\"\"}"],
        "processes of it that the kernel killed for lack of memory",
    ),
    Row::counter(
        "group.receive_dropped",
        "packets",
        &["container_network_receive_packets_dropped_total"],
        "packets to the pod that its network interface dropped",
    ),
];
