//! An observed server that fell behind although it was not busy: it waited for something.

use crate::doctor::{Cure, Diagnosis, State};
use crate::limit::Limit;

use super::{Figures, Finding, load, server_processor, server_upstream};

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let fell_behind = load::found(figures)?.limit() == Some(Limit::Server);
    let dropped = figures.record.programs().iter().any(|it| it.udp_drops > 0);
    let is_explained = dropped || server_upstream::explains(figures);
    if !fell_behind || is_explained || !server_processor::is_free(figures) {
        return None;
    }
    let seen = "the server had CPU to spare and dropped nothing: it waited for something else, a \
                lock, a disk, a log, a timer or another server, or the network did"
        .to_owned();
    let matters = "more CPU does not help a server that waits";
    let diagnosis = Diagnosis::new("idle server", State::Warning, seen, matters)
        .cure(Cure::words(
            "look where its threads wait: cat /proc/PID/task/*/wchan, or perf trace -p PID",
        ))
        .cure(Cure::words("switch its query log off"));
    Some(Finding::met(diagnosis).beside())
}

#[cfg(test)]
mod tests {
    use crate::rules::observed_situations::*;
    use crate::rules::situations::*;

    #[test]
    fn an_idle_server_that_fell_behind_waited_for_something() {
        let record = observing(saturated(), &[program(0.2, 0.1, &[])]);
        tells(
            &record,
            &["had CPU to spare and dropped nothing: it waited for something else"],
        );
        let record = observing(in_time(10_000.0), &[program(0.2, 0.1, &[])]);
        assert!(!said(&record).contains("had CPU to spare"));
    }
}
