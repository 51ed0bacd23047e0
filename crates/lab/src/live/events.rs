//! A run and what happened in it, for readers that show both on an axis of time.

use measure::RunRecord;
use measure::notation::counted;
use report::summary::first_line;
use serde::{Deserialize, Serialize};

/// Most outages of a run that are shown.
const OUTAGES_MAX: usize = 20;

/// A run, or something that happened in it. Instants are in nanoseconds since the start of the
/// measured run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownEvent {
    /// What it is.
    pub kind: EventKind,
    /// When it began.
    pub from_ns: u64,
    /// When it was over.
    pub until_ns: u64,
    /// A sentence, without full stop; of a run, its result.
    pub text: String,
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The run itself.
    Run,
    /// No response came for a time.
    Outage,
    /// A condition of `--abort-if` ended the run.
    Aborted,
}

impl ShownEvent {
    /// The run, and then its events.
    pub(super) fn of_record(record: &RunRecord) -> Vec<ShownEvent> {
        let outages = record.outages().map(|it| it.each).unwrap_or_default();
        let mut text = first_line(record);
        if let Some(evidence) = record.verdict.evidence.first() {
            text += &format!("\n{evidence}");
        }
        if let Some(omitted @ 1..) = outages.len().checked_sub(OUTAGES_MAX) {
            let omitted = counted(omitted as u64, "further outage");
            text += &format!("\n{omitted} in the record");
        }
        let run = ShownEvent {
            kind: EventKind::Run,
            from_ns: 0,
            until_ns: record.total.end_ns,
            text,
        };
        let outages = outages.iter().take(OUTAGES_MAX).map(|outage| ShownEvent {
            kind: EventKind::Outage,
            from_ns: outage.begin_ns,
            until_ns: outage.end_ns,
            text: format!(
                "outage: {}, {} lost",
                outage.kind.words(),
                counted(outage.lost, "query")
            ),
        });
        let aborted = record.aborted.iter().map(|aborted| ShownEvent {
            kind: EventKind::Aborted,
            from_ns: aborted.from_ns,
            until_ns: aborted.until_ns,
            text: aborted.sentence(),
        });
        std::iter::once(run).chain(outages).chain(aborted).collect()
    }
}

#[cfg(test)]
mod tests {
    use measure::Aborted;
    use testing::example;

    use super::*;

    #[test]
    fn run_with_its_verdict_and_the_condition_that_ended_it_are_events() {
        let mut record = example::record(vec![example::interval(0, &[(1_000_000, 500)])]);
        record.verdict.evidence = vec!["its CPU was busy".to_owned(), "more".to_owned()];
        let condition = Aborted {
            condition: "loss > 5%".to_owned(),
            value: 0.1,
            from_ns: 700,
            until_ns: 900,
        };
        record.aborted = Some(condition.clone());
        let [run, aborted] = &ShownEvent::of_record(&record)[..] else {
            panic!("not two events")
        };
        assert_eq!(
            (run.kind, run.until_ns),
            (EventKind::Run, record.total.end_ns)
        );
        let words = format!("{}\nits CPU was busy", first_line(&record));
        assert_eq!(run.text, words);
        let expected = ShownEvent {
            kind: EventKind::Aborted,
            from_ns: 700,
            until_ns: 900,
            text: condition.sentence(),
        };
        assert_eq!(*aborted, expected);
    }
}
