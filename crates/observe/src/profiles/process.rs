//! One program of this host, by /proc: all of its processes added up, and the control group of
//! the first.

use super::cgroup::GROUP_ROWS;
use super::{Access, NO_PRODUCT, Profile, Row, joined};

/// A program by its number, its name or the port that it serves.
pub const PROCESS: Profile = Profile {
    name: "process",
    access: Access::Process,
    place: "PID, a name, `:port` or `address:port`",
    rows: &joined::<{ OWN.len() + GROUP_ROWS.len() }>(OWN, GROUP_ROWS),
    ..NO_PRODUCT
};

const OWN: &[Row] = &[
    Row::counter(
        "cpu.user",
        "seconds",
        &["cpu.user"],
        "CPU time outside the kernel",
    ),
    Row::counter(
        "cpu.system",
        "seconds",
        &["cpu.system"],
        "CPU time within the kernel",
    ),
    Row::gauge(
        "cpu.busiest_thread",
        "cpus",
        &["cpu.busiest_thread"],
        "CPU that the busiest thread had since the scrape before",
    ),
    Row::counter(
        "cpu.wait",
        "seconds",
        &["run_queue"],
        "time that threads were ready to run but waited for a CPU",
    ),
    Row::counter(
        "switches.voluntary",
        "switches",
        &["switches.voluntary"],
        "how often threads waited for something",
    ),
    Row::counter(
        "switches.involuntary",
        "switches",
        &["switches.involuntary"],
        "how often a CPU was taken from threads",
    ),
    Row::gauge(
        "threads",
        "threads",
        &["threads"],
        "threads of all its processes",
    ),
    Row::gauge(
        "processes",
        "processes",
        &["processes"],
        "processes that are observed as one",
    ),
    Row::gauge(
        "processes.stopped",
        "processes",
        &["processes.stopped"],
        "of them, those that a signal had stopped",
    ),
    Row::gauge("memory", "bytes", &["memory"], "resident memory"),
    Row::counter(
        "faults.major",
        "pages",
        &["faults.major"],
        "pages of memory for which it waited until they were read from a disk",
    ),
    Row::gauge("files", "files", &["files"], "open files"),
    Row::counter(
        "files.written",
        "bytes",
        &["files.written"],
        "length of the files that it has open for writing: logs, as a rule",
    ),
    Row::gauge(
        "udp.waiting",
        "bytes",
        &["udp.waiting"],
        "what waits in its UDP sockets, with what the kernel needs for it",
    ),
    Row::gauge(
        "udp.waiting_most",
        "bytes",
        &["udp.waiting_most"],
        "what waits in the fullest of them",
    ),
    Row::gauge(
        "udp.room",
        "bytes",
        &["udp.room"],
        "what its UDP sockets at this port have room for, that of the smallest",
    )
    .each("port"),
    Row::counter(
        "udp.drops",
        "datagrams",
        &["udp.drops"],
        "datagrams that its UDP sockets had no room for",
    ),
    Row::gauge(
        "tcp.waiting",
        "connections",
        &["tcp.waiting"],
        "connections that wait to be accepted",
    ),
    Row::gauge(
        "tcp.room",
        "connections",
        &["tcp.room"],
        "connections that its listen queues at this port have room for, that of the shortest",
    )
    .each("port"),
    Row::counter(
        "listen.overflows",
        "connections",
        &["listen.overflows"],
        "connections for which a listen queue was full, of its network namespace",
    ),
    Row::counter(
        "listen.drops",
        "connections",
        &["listen.drops"],
        "connections that were dropped before they were accepted, of its network namespace",
    ),
];
