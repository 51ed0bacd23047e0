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
    let matters = "a virtual CPU that is taken away stalls every query on it";
    let diagnosis = Diagnosis::new("CPU steal", state, seen, matters);
    Some(Finding::met(diagnosis.cure(Cure::dedicated_cpus())))
}
