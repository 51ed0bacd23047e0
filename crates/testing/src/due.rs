//! Queries that are due by time, as they are counted on any host.
//!
//! Those due in a run are its rate times its duration, whatever the host does. A worker that has no
//! CPU for long at the end of the run, or of its warm-up, gives up those that were due by then:
//! they are offered, and not sent because the run ended. With `--queries` instead of a duration a
//! run has no such end.

use measure::RunRecord;

/// Checks that this many queries were due in the measured run, and that the end of the run is all
/// that kept any of them from being sent.
#[track_caller]
pub fn assert_offered(record: &RunRecord, due: u64) {
    let counts = &record.total.counts;
    assert_eq!(counts.offered, due, "{counts:?}");
    let not_sent = counts.not_sent.total();
    assert_eq!(not_sent, counts.not_sent.run_ended, "{counts:?}");
    assert_eq!(counts.sent + not_sent, due, "{counts:?}");
}

/// The same where everything that was sent is answered.
#[track_caller]
pub fn assert_answered(record: &RunRecord, due: u64) {
    assert_offered(record, due);
    let counts = &record.total.counts;
    let warnings = &record.warnings;
    assert_eq!(counts.responses, counts.sent, "{counts:?} {warnings:?}");
}

/// What the target received, warm-up included, if nothing was lost on the way there.
pub fn sent(record: &RunRecord) -> u64 {
    record.warmup.counts.sent + record.total.counts.sent
}

/// True if nothing that was due was given up.
pub fn are_all_sent(record: &RunRecord) -> bool {
    let all = [&record.warmup.counts, &record.total.counts];
    all.iter().all(|counts| counts.not_sent.total() == 0)
}
