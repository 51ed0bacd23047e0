//! A host by node_exporter.

use super::{Access, Origin, Profile, Row};

/// Its exposition.
pub const NODE: Profile = Profile {
    name: "node",
    product: "node_exporter",
    access: Access::Exposition("/metrics"),
    place: "http://host:9100/metrics",
    rows: ROWS,
    version: Origin::Label("node_exporter_build_info", "version"),
    started: Origin::Value("node_boot_time_seconds"),
    programs: &[],
    set_up: "node_exporter with its collectors `cpu`, `meminfo`, `netstat`, `softnet`",
};

const ROWS: &[Row] = &[
    Row::counter(
        "cpu.user",
        "seconds",
        &[
            "node_cpu_seconds_total{mode=\"user\"}",
            "node_cpu_seconds_total{mode=\"nice\"}",
        ],
        "CPU time outside the kernel, of all CPUs",
    ),
    Row::counter(
        "cpu.system",
        "seconds",
        &[
            "node_cpu_seconds_total{mode=\"system\"}",
            "node_cpu_seconds_total{mode=\"irq\"}",
        ],
        "CPU time within the kernel and its interrupts",
    ),
    Row::counter(
        "cpu.softirq",
        "seconds",
        &["node_cpu_seconds_total{mode=\"softirq\"}"],
        "CPU time in deferred interrupts",
    ),
    Row::counter(
        "cpu.idle",
        "seconds",
        &[
            "node_cpu_seconds_total{mode=\"idle\"}",
            "node_cpu_seconds_total{mode=\"iowait\"}",
        ],
        "time in which CPUs had nothing to do",
    ),
    Row::counter(
        "cpu.steal",
        "seconds",
        &["node_cpu_seconds_total{mode=\"steal\"}"],
        "time that the hypervisor took",
    ),
    Row::counter(
        "each_cpu.idle",
        "seconds",
        &[
            "node_cpu_seconds_total{mode=\"idle\"}",
            "node_cpu_seconds_total{mode=\"iowait\"}",
        ],
        "time in which this CPU had nothing to do",
    )
    .each("cpu"),
    Row::counter(
        "each_cpu.softirq",
        "seconds",
        &["node_cpu_seconds_total{mode=\"softirq\"}"],
        "time of this CPU in deferred interrupts",
    )
    .each("cpu"),
    Row::counter(
        "softnet.packets",
        "packets",
        &["node_softnet_processed_total"],
        "packets that were received",
    ),
    Row::counter(
        "softnet.dropped",
        "packets",
        &["node_softnet_dropped_total"],
        "packets for which the backlog of a CPU was full",
    ),
    Row::counter(
        "softnet.squeezed",
        "times",
        &["node_softnet_times_squeezed_total"],
        "how often a CPU stopped to receive with more to do",
    ),
    Row::gauge(
        "memory.total",
        "bytes",
        &["node_memory_MemTotal_bytes"],
        "memory",
    ),
    Row::gauge(
        "memory.available",
        "bytes",
        &["node_memory_MemAvailable_bytes"],
        "memory that could be had without swapping",
    ),
    Row::counter(
        "udp.receive_errors",
        "datagrams",
        &[
            "node_netstat_Udp_RcvbufErrors",
            "node_netstat_Udp6_RcvbufErrors",
        ],
        "datagrams for which a socket had no room",
    ),
    Row::counter(
        "listen.overflows",
        "connections",
        &["node_netstat_TcpExt_ListenOverflows"],
        "connections for which a listen queue was full",
    ),
    Row::counter(
        "listen.drops",
        "connections",
        &["node_netstat_TcpExt_ListenDrops"],
        "connections that were dropped before they were accepted",
    ),
    Row::counter(
        "tcp.retransmissions",
        "segments",
        &["node_netstat_Tcp_RetransSegs"],
        "segments that were sent again",
    ),
];
