//! The memory of an observed server: its limit, what the kernel killed for it, and pages that had
//! to be read from a disk.

use crate::observation::SeriesKind;
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

fn told_of(memory: f64, more: &[(&str, SeriesKind, f64)]) -> Option<String> {
    const MIB: f64 = 1_048_576.0;
    let mut series = vec![
        ("group.memory", SeriesKind::Gauge, memory * MIB),
        ("group.memory_limit", SeriesKind::Gauge, 64.0 * MIB),
    ];
    series.extend(more);
    let record = observing(saturated(), &[program(0.5, 0.3, &series)]);
    found_on(&record, "memory of the server").map(|it| it.seen)
}

#[test]
fn a_server_at_its_limit_of_memory_is_told_with_what_came_of_it() {
    let full = told_of(63.0, &[]);
    let seen = "memory of named: its control group had up to 63.0 of 64.0 MiB (98.4 %)";
    assert_eq!(full.as_deref(), Some(seen));
    assert_eq!(told_of(30.0, &[]), None);
    let killed = [("group.killed", SeriesKind::Counter, 0.2)];
    let told = told_of(30.0, &killed).expect("a finding");
    assert!(told.contains("for lack of memory, 2 times"), "{told}");
    let pages = [("faults.major", SeriesKind::Counter, 500.0)];
    let told = told_of(30.0, &pages).expect("a finding");
    assert!(told.contains("it waited for 500 pages a second"), "{told}");
}
