//! One control group of this host, of version 2 or 1.

use super::{Access, NO_PRODUCT, Profile, Row};

/// A control group, or that of a process.
pub const CGROUP: Profile = Profile {
    name: "cgroup",
    access: Access::Group,
    place: "PID, a name, `:port` or a path below /sys/fs/cgroup",
    rows: GROUP_ROWS,
    ..NO_PRODUCT
};

/// What a control group tells, also that of a process.
pub(super) const GROUP_ROWS: &[Row] = &[
    Row::counter(
        "group.cpu",
        "seconds",
        &["group.cpu"],
        "CPU time of the control group",
    ),
    Row::counter(
        "group.cpu_user",
        "seconds",
        &["group.cpu_user"],
        "CPU time outside the kernel",
    ),
    Row::counter(
        "group.cpu_system",
        "seconds",
        &["group.cpu_system"],
        "CPU time within the kernel",
    ),
    Row::gauge(
        "group.memory",
        "bytes",
        &["group.memory"],
        "memory of the control group",
    ),
    Row::gauge(
        "group.memory_limit",
        "bytes",
        &["group.memory_limit"],
        "memory that it, or a group above it, may have",
    ),
    Row::counter(
        "group.killed",
        "processes",
        &["group.killed"],
        "processes of it that the kernel killed for lack of memory",
    ),
    Row::counter(
        "group.periods",
        "periods",
        &["group.periods"],
        "periods of the quota in which it ran",
    ),
    Row::counter(
        "group.throttled_periods",
        "periods",
        &["group.throttled_periods"],
        "periods in which it had used up the quota",
    ),
    Row::counter(
        "group.throttled_time",
        "seconds",
        &["group.throttled_time"],
        "time for which it was not allowed to run",
    ),
];
