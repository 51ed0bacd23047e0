//! CPU time stolen by the hypervisor during the run.

use crate::rules::situations::*;

/// A run on a host whose hypervisor took `ticks` of 1,000.
fn stolen(ticks: u64) -> RunRecord {
    let mut record = saturated();
    let kernel = [("Cpu.All", 1_000), ("Cpu.Steal", ticks)];
    let kernel = kernel.map(|(name, count)| (name.to_owned(), count));
    record.network.kernel.extend(kernel);
    record
}

#[test]
fn cpu_time_that_the_hypervisor_took_is_a_share_of_all() {
    told(&stolen(80), "CPU steal").problem("took 8.0 %", "dedicated CPUs");
    told(&stolen(10), "CPU steal").warning("took 1.0 %", "dedicated CPUs");
}

#[test]
fn little_stolen_time_is_not_reported_and_none_names_the_limit() {
    assert_eq!(found_on(&stolen(9), "CPU steal"), None);
    for ticks in [9, 80] {
        assert_eq!(judge(&stolen(ticks)).limit, Limit::Server, "{ticks}");
    }
}
