//! CPU time stolen by the hypervisor during the run.

use crate::rules::situations::*;

#[test]
fn cpu_time_that_the_hypervisor_took_is_a_share_of_all() {
    let mut record = in_time(10_000.0);
    let kernel = [("Cpu.All", 1_000), ("Cpu.Steal", 80)];
    let kernel = kernel.map(|(name, count)| (name.to_owned(), count));
    record.network.kernel.extend(kernel);
    told(&record, "CPU steal").problem("took 8.0 %", "dedicated CPUs");
}
