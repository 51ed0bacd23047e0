//! Operations in mid-run: what is done to the server while a run asks it, when, and what is written
//! of it into the run's record.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use lab::target::{Operation, RunningServer, Topology};
use measure::around::{Around, Part};
use measure::notation::{count, latency};
use measure::statistics::median;
use measure::{Event, RunRecord};
use settings::Run;

use super::cells::Turn;
use super::servers::ServerCell;
use crate::child::LOOK_EVERY;
use crate::failure::Failure;

/// What a cell has without an operation.
pub(super) const NONE: &str = "none";

/// When operations are done, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) at: At,
    /// Of an outage.
    pub(super) outage: Duration,
}

/// When something is done in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum At {
    /// After this share of the measured run.
    Share(f64),
    /// After that time of it.
    Time(Duration),
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            at: At::Share(0.5),
            outage: Duration::from_secs(2),
        }
    }
}

impl At {
    /// Reads `40%` or a time such as `4s`.
    pub(super) fn parse(text: &str) -> Option<At> {
        if let Some(percent) = text.strip_suffix('%') {
            let percent = percent.trim().parse().ok();
            let percent = percent.filter(|it| (0.0..100.0).contains(it));
            return percent.map(|it: f64| At::Share(it / 100.0));
        }
        let time = ::responder::behaviour::parse_duration(text);
        time.ok().map(At::Time)
    }

    /// How long after the load of the run has begun; none if nothing tells how long it is.
    fn after(self, run: &Run) -> Option<Duration> {
        let of_run = match self {
            At::Share(share) => run.limits.duration?.mul_f64(share),
            At::Time(time) => time,
        };
        Some(run.limits.warmup + of_run)
    }
}

/// Refuses an operation that the server of a cell does not have, or that the run would not see.
pub(super) fn check(
    turn: &Turn,
    server: Option<&ServerCell>,
    (run, timing): (&Run, Timing),
) -> Result<(), Failure> {
    let Some(operation) = turn.operation else {
        return Ok(());
    };
    let Some(server) = server else {
        return Err(Failure::usage(
            format!("operation {operation}: there is no server for it"),
            "write [[server]]: what is done is done to servers that the experiment starts itself",
        ));
    };
    if turn.topology == Topology::Kubernetes {
        return Err(Failure::usage(
            format!("operation {operation}: what is in a pod is the cluster's to start and to end"),
            "give it another topology, or leave the operation out",
        ));
    }
    server.cell().check_operation(operation)?;
    let duration = run.limits.duration;
    match (timing.at, duration) {
        (At::Share(_), None) => Err(Failure::usage(
            format!("operation {operation} has no time"),
            "give the runs a duration, or write a time, as in at = \"4s\"",
        )),
        (At::Time(at), Some(duration)) if at >= duration => Err(Failure::usage(
            format!("operation {operation} is at {at:?}, and the runs take {duration:?}"),
            "write an earlier time, or a share of the run, as in at = \"40%\"",
        )),
        (_, Some(duration)) if operation == Operation::UpstreamOutage => {
            let outage = timing.outage;
            let ends_after = timing.at.after(run).unwrap_or_default() + outage;
            match ends_after > run.limits.warmup + duration {
                true => Err(Failure::usage(
                    format!("an outage of {outage:?} does not end in a run of {duration:?}"),
                    "write a shorter `outage`, an earlier `at`, or a longer duration",
                )),
                false => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// What was done, by the wall clock.
pub(super) struct Performed {
    began: SystemTime,
    ended: SystemTime,
    operation: Operation,
    result: Result<Option<Duration>, String>,
}

/// Does the operation of a cell to its server once the load of the run has begun; none if the run
/// is over before. What has begun goes to its end, unless somebody interrupts it.
pub(super) fn perform(
    (server, operation): (&ServerCell, Operation),
    started: &mut RunningServer,
    (run, timing, begun): (&Run, Timing, &AtomicBool),
    (is_over, is_interrupted): (&dyn Fn() -> bool, &dyn Fn() -> bool),
) -> Option<Performed> {
    wait(is_over, || begun.load(Ordering::Acquire))?;
    let begun_at = Instant::now();
    let due_at = begun_at + timing.at.after(run)?;
    wait(is_over, || Instant::now() >= due_at)?;
    let began = SystemTime::now();
    let done = server
        .cell()
        .operate(started, operation, (timing.outage, is_interrupted));
    Some(Performed {
        began,
        ended: SystemTime::now(),
        operation,
        result: done
            .map(|done| done.down)
            .map_err(|error| format!("{error:#}")),
    })
}

/// Waits until that is so; none if everything is over before.
fn wait(is_over: &dyn Fn() -> bool, mut is_so: impl FnMut() -> bool) -> Option<()> {
    while !is_so() {
        if is_over() {
            return None;
        }
        std::thread::park_timeout(LOOK_EVERY.min(Duration::from_millis(1)));
    }
    Some(())
}

impl Performed {
    /// Adds it to the record of its run, on whose clock it is then.
    ///
    /// # Errors
    /// The server did not do it, and why.
    pub(super) fn note(self, record: &mut RunRecord) -> Result<(), String> {
        let start_us = record.agents.first().map_or(0, |agent| agent.began_us);
        let start = SystemTime::UNIX_EPOCH + Duration::from_micros(start_us);
        let ns = |at: SystemTime| {
            let since = at.duration_since(start).unwrap_or_default();
            u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
        };
        let down = self.result.as_ref().ok().copied().flatten();
        let began_ns = ns(self.began);
        record.events.push(Event {
            name: self.operation.name().to_owned(),
            began_ns,
            // The wall clock may have been set back meanwhile.
            ended_ns: ns(self.ended).max(began_ns),
            down_ns: down.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
            error: self.result.as_ref().err().cloned(),
        });
        let name = self.operation;
        let failed = |why: String| format!("operation {name}: {why}");
        self.result.map(drop).map_err(failed)
    }
}

/// How the operation of a cell went in these runs: medians, and all losses; none without any.
pub(super) fn summary<'a>(records: impl Iterator<Item = &'a RunRecord>) -> Option<String> {
    let events: Vec<(&Event, Around)> = records.filter_map(RunRecord::first_event).collect();
    let median_of = |of: &dyn Fn(&(&Event, Around)) -> Option<u64>| {
        let values: Vec<f64> = events.iter().filter_map(of).map(|ns| ns as f64).collect();
        median(&values).map_or_else(|| "-".to_owned(), latency)
    };
    let first = events.first()?.0;
    let took = median_of(&|(event, _)| Some(event.length_ns()));
    let down = match first.down_ns {
        Some(_) => format!(" (down for {})", median_of(&|(event, _)| event.down_ns)),
        None => String::new(),
    };
    let silence = events.iter().map(|(_, found)| found.silence_ns).max()?;
    let part = |of: fn(&Around) -> Part| {
        let parts = || events.iter().map(|(_, found)| of(found));
        let lost: u64 = parts().map(|part| part.lost).sum();
        let due: u64 = parts().map(|part| part.due).sum();
        let p99 = median_of(&|(_, found)| of(found).p99_ns);
        format!("{} of {}, p99 {p99}", count(lost), count(due))
    };
    Some(format!(
        "took {took}{down}; longest time without a response {}; lost before {}; around {}; \
         after {}",
        latency(silence as f64),
        part(|it| it.before),
        part(|it| it.around),
        part(|it| it.after)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_shares_of_a_run_or_times() {
        for (text, at) in [
            ("40%", Some(At::Share(0.4))),
            ("0%", Some(At::Share(0.0))),
            ("1.5s", Some(At::Time(Duration::from_millis(1_500)))),
            ("100%", None),
            ("-1%", None),
            ("half", None),
            ("", None),
        ] {
            assert_eq!(At::parse(text), at, "{text}");
        }
    }
}
