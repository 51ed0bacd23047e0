//! CPU time that the hypervisor took during the run.

use crate::doctor::{Cure, Diagnosis, STEAL_PROBLEM, STEAL_WARNING, State};
use crate::interval::per;
use crate::notation::percent;

use super::{Figures, Finding};

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let network = &figures.record.network;
    let (stolen, all) = (
        network.kernel_counter("Cpu.Steal"),
        network.kernel_counter("Cpu.All"),
    );
    let stolen = per(stolen as f64, all as f64);
    if stolen < STEAL_WARNING {
        return None;
    }
    let state = match stolen >= STEAL_PROBLEM {
        true => State::Problem,
        false => State::Warning,
    };
    let seen = format!(
        "the hypervisor took {} of this host's CPU time during the run",
        percent(stolen)
    );
    let matters = "while a virtual CPU is taken away, every query on it stalls";
    let diagnosis = Diagnosis::new("CPU steal", state, seen, matters);
    Some(Finding::met(diagnosis.cure(Cure::dedicated_cpus())))
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn cpu_time_that_the_hypervisor_took_is_a_share_of_all() {
        let mut record = in_time(10_000.0);
        let kernel = [("Cpu.All", 1_000), ("Cpu.Steal", 80)];
        let kernel = kernel.map(|(name, count)| (name.to_owned(), count));
        record.network.kernel.extend(kernel);
        told(&record, "CPU steal").problem("took 8.0 %", "dedicated CPUs");
    }
}
