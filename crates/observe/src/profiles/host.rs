//! This host, by /proc.

use super::{Access, NO_PRODUCT, Profile, Row};

/// The whole host.
pub const HOST: Profile = Profile {
    name: "host",
    access: Access::Host,
    rows: ROWS,
    ..NO_PRODUCT
};

const ROWS: &[Row] = &[
    Row::counter(
        "cpu.user",
        "seconds",
        &["cpu.user"],
        "CPU time outside the kernel, of all CPUs",
    ),
    Row::counter(
        "cpu.system",
        "seconds",
        &["cpu.system"],
        "CPU time within the kernel and its interrupts",
    ),
    Row::counter(
        "cpu.softirq",
        "seconds",
        &["cpu.softirq"],
        "CPU time in deferred interrupts, where packets are received",
    ),
    Row::counter(
        "cpu.idle",
        "seconds",
        &["cpu.idle"],
        "time in which CPUs had nothing to do",
    ),
    Row::counter(
        "cpu.steal",
        "seconds",
        &["cpu.steal"],
        "time that the hypervisor took",
    ),
    Row::gauge(
        "cpu.busiest",
        "cpus",
        &["cpu.busiest"],
        "how much of its time the busiest CPU worked since the scrape before",
    ),
    Row::counter(
        "each_cpu.busy",
        "seconds",
        &["each_cpu.busy"],
        "time that this CPU worked",
    )
    .each("cpu"),
    Row::counter(
        "each_cpu.softirq",
        "seconds",
        &["each_cpu.softirq"],
        "time of this CPU in deferred interrupts",
    )
    .each("cpu"),
    Row::counter(
        "softnet.packets",
        "packets",
        &["softnet.packets"],
        "packets that were received",
    ),
    Row::counter(
        "softnet.dropped",
        "packets",
        &["softnet.dropped"],
        "packets for which the backlog of a CPU was full",
    ),
    Row::counter(
        "softnet.squeezed",
        "times",
        &["softnet.squeezed"],
        "how often a CPU stopped to receive with more to do",
    ),
    Row::gauge("memory.total", "bytes", &["memory.total"], "memory"),
    Row::gauge(
        "memory.available",
        "bytes",
        &["memory.available"],
        "memory that could be had without swapping",
    ),
    Row::counter(
        "udp.receive_errors",
        "datagrams",
        &["udp.receive_errors", "udp6.receive_errors"],
        "datagrams for which a socket had no room",
    ),
    Row::counter(
        "listen.overflows",
        "connections",
        &["listen.overflows"],
        "connections for which a listen queue was full",
    ),
    Row::counter(
        "listen.drops",
        "connections",
        &["listen.drops"],
        "connections that were dropped before they were accepted",
    ),
    Row::counter(
        "tcp.retransmissions",
        "segments",
        &["tcp.retransmissions"],
        "segments that were sent again",
    ),
];
