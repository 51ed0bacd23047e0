//! Observed programs that were stopped by a signal: they answer nothing until they are continued.

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
