//! Observed programs that a signal had stopped: they answer nothing until they may go on.

use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::notation::{count, counted};

use super::{Figures, Finding};

pub(super) fn found(figures: &Figures<'_>) -> Vec<Finding> {
    let programs = figures.record.programs();
    let stopped = programs.iter().enumerate();
    let stopped = stopped.filter(|(_, program)| program.stopped.0 > 0);
    let finding = |(position, program): (usize, &crate::observation::ProgramUse<'_>)| {
        let (with, all) = program.stopped;
        let behind = match position {
            0 => "",
            _ => ", behind the target,",
        };
        let seen = format!(
            "{}{behind} had been stopped by a signal at {} of {}",
            program.name(),
            count(with),
            counted(all, "scrape")
        );
        let matters = "a program that is stopped answers nothing, and queries wait in its sockets";
        let diagnosis = Diagnosis::new("stopped server", State::Problem, seen, matters);
        let process = program.observation().facts.process_id;
        let resume = process.map(|pid| Cure::new(Place::Server, format!("kill -CONT {pid}")));
        let look = Cure::words("find out who stopped it: a debugger, a supervisor, a snapshot");
        Finding::met(diagnosis.cures(resume.into_iter().chain([look]))).beside()
    };
    stopped.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use crate::observation::{Sample, SeriesKind};
    use crate::rules::observed_situations::*;
    use crate::rules::situations::*;

    #[test]
    fn a_program_that_was_stopped_is_told_with_its_scrapes() {
        let stopped = [("processes.stopped", SeriesKind::Gauge, 0.0)];
        let mut behind = program(0.1, 0.1, &stopped);
        let target = program(0.2, 0.1, &stopped);
        let record = observing(saturated(), &[target.clone(), behind.clone()]);
        assert!(!said(&record).contains("stopped by a signal"));
        let series = behind.series.last_mut().expect("has series");
        series.samples[4..6].fill(Sample::Value(1.0));
        let record = observing(saturated(), &[target, behind]);
        let seen = "named, behind the target, had been stopped by a signal at 2 of 12 scrapes";
        tells(&record, &[seen]);
    }
}
