//! The memory of an observed server: its limit, what the kernel killed for it, and pages that had
//! to be read from a disk.

use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::interval::per;
use crate::notation::{counted, decimal, percent};
use crate::observation::ProgramUse;

use super::{Figures, Finding};

/// From this share of its limit on, memory is short.
const FULL: f64 = 0.95;
/// So many pages a second are waited for where memory is short.
const PAGES_MIN: f64 = 10.0;
const MIB: f64 = 1_048_576.0;

pub(super) fn found(figures: &Figures<'_>) -> Vec<Finding> {
    let programs = figures.record.programs();
    programs.iter().filter_map(of_program).collect()
}

fn of_program(program: &ProgramUse<'_>) -> Option<Finding> {
    let memory = &program.memory;
    let both = memory.bytes_max.zip(memory.limit_bytes);
    let full = both.filter(|(most, limit)| per(*most, *limit) >= FULL);
    let mut seen = Vec::new();
    if memory.killed > 0 {
        let times = counted(memory.killed, "time");
        seen.push(format!(
            "the kernel killed processes of it for lack of memory, {times}"
        ));
    }
    if memory.pages_per_second >= PAGES_MIN {
        let pages = decimal(memory.pages_per_second, 0);
        seen.push(format!("it waited for {pages} pages a second from a disk"));
    }
    if let Some((most, limit)) = full {
        seen.push(format!(
            "its control group had up to {} of {} MiB ({})",
            decimal(most / MIB, 1),
            decimal(limit / MIB, 1),
            percent(per(most, limit))
        ));
    }
    if seen.is_empty() {
        return None;
    }
    let state = match memory.killed > 0 || memory.pages_per_second >= PAGES_MIN {
        true => State::Problem,
        false => State::Warning,
    };
    let seen = format!("memory of {}: {}", program.name(), seen.join("; "));
    let matters = "a server without memory waits for a disk or is killed; what the kernel caches \
                   for it counts too, and is given up first";
    let diagnosis = Diagnosis::new("memory of the server", state, seen, matters);
    Some(Finding::met(diagnosis.cures(cures(memory.limit_bytes))).beside())
}

fn cures(limit_bytes: Option<f64>) -> Vec<Cure> {
    let more = "give it more memory: memory.max of its control group, limits.memory in Kubernetes, \
                --memory of a container";
    let mut cures = vec![Cure::words(more)];
    if let Some(limit) = limit_bytes {
        let half = (limit / 2.0 / MIB).floor().max(1.0);
        let quarter = (limit / 4.0 / MIB).floor().max(1.0);
        cures.push(Cure::named(format!("max-cache-size {half:.0}m;")));
        let unbound = format!("rrset-cache-size: {quarter:.0}m");
        cures.push(Cure::new(Place::UnboundConf, unbound));
    }
    cures
}

#[cfg(test)]
mod tests {
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
        let told = told_of(30.0, &killed).expect("is told");
        assert!(told.contains("for lack of memory, 2 times"), "{told}");
        let pages = [("faults.major", SeriesKind::Counter, 500.0)];
        let told = told_of(30.0, &pages).expect("is told");
        assert!(told.contains("it waited for 500 pages a second"), "{told}");
    }
}
