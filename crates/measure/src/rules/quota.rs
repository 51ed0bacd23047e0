//! Time in which the control group might not run: its CPU quota was used up.

use crate::doctor::{Cure, Diagnosis, State};
use crate::notation::{count, latency};

use super::{Figures, Finding};

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let network = &figures.record.network;
    let periods = network.kernel_counter("Cgroup.Throttled");
    if periods == 0 {
        return None;
    }
    let stood = network.kernel_counter("Cgroup.ThrottledMicroseconds") as f64 * 1e3;
    let seen = format!(
        "the CPU quota of this container was used up {}, and its threads were throttled for {} in \
            total",
        match periods {
            1 => "once".to_owned(),
            _ => format!("{} times", count(periods)),
        },
        latency(stood)
    );
    let matters = "throttled threads send late and read late, which shows as the target's latency";
    let cure = "in Kubernetes: leave out limits.cpu, or set it and requests.cpu to the same whole \
                number under the static CPU manager policy";
    let diagnosis = Diagnosis::new("CPU quota", State::Problem, seen, matters)
        .cure(Cure::words(cure))
        .cure(Cure::throng("--workers 1"));
    Some(Finding::met(diagnosis))
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn a_quota_that_was_used_up_is_named_with_the_times() {
        let mut record = in_time(10_000.0);
        record.network.kernel.insert("Cgroup.Throttled".into(), 4);
        told(&record, "CPU quota").problem("used up 4 times", "limits.cpu");
    }
}
