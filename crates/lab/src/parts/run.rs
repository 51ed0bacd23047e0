//! A run in parts.

use std::sync::Arc;
use std::time::Duration;

use driver::clock::Clock;
use engine::{Control, Gathering, PartOfRun, Progress, RunOptions};
use measure::{Interval, RunRecord};

use super::child;
use super::parent::{Event, Parts, PartsError};
use super::serve::serve_parts;
use crate::run::{RunError, RunRequest, note_responder};
use crate::run::{inputs, own_cpus, own_driver, record, setup_error};

/// How often the parent looks whether the run shall stop.
const STOP_POLL: Duration = Duration::from_millis(20);
/// Time between the moment when the last part is ready and the common start: as long as it may
/// take until all parts have heard of it, on a host whose CPUs are busy.
const START_DELAY: Duration = Duration::from_millis(50);

/// How long a part has to be silent, at least, before it is ended.
const SILENCE_MIN: Duration = Duration::from_secs(10);

/// Runs one part, and tells the parent of it.
///
/// # Errors
/// [`RunError`] if it could not be started.
pub fn run_part(groups: &[RunRequest], part: PartOfRun) -> Result<(), RunError> {
    let inputs = inputs(groups);
    let workers = engine::ThreadWorkers::workers_on(&inputs, part.threads.clone());
    let tells = engine::PartEvents {
        on_ready: || child::say("ready", ""),
        on_vain: || child::say("vain", ""),
    };
    let control = Arc::new(Control::of_part(workers, tells));
    let heard = Arc::clone(&control);
    child::watch_parent(move |word, text| match (word, text.parse()) {
        ("start", Ok(ns)) => heard.start_at(proto::Instant::from_nanos(ns)),
        ("stop", _) => heard.stop(),
        ("interrupt", _) => heard.interrupt(),
        ("give-up", _) => heard.give_up(),
        _ => {}
    });
    // Raises the soft limit.
    driver::cpu::open_files_max();
    let options = RunOptions {
        cpus: own_cpus(groups),
        driver: own_driver(groups),
        part: Some(part),
    };
    let started = record::Started::now();
    let tell = |progress: &Progress| {
        let interval = serde_json::to_string(&progress.interval);
        child::say("interval", &interval.unwrap_or_default());
    };
    let outcome =
        engine::run(&inputs, &options, &control, tell).map_err(|error| setup_error(&error))?;
    let surroundings = record::Surroundings {
        simulation: None,
        started,
        host: crate::host::facts(),
        // The host's, which the parent reads once.
        kernel: std::collections::BTreeMap::new(),
    };
    let mut record = record::from_outcome(&by_position(groups), outcome, surroundings);
    record.groups.retain(|group| group.clients > 0);
    record::leave_out_intervals(&mut record);
    child::say("record", &record.to_json());
    Ok(())
}

/// For how long a part may say nothing: it tells each interval, and waits for responses at the end.
fn silence_max(groups: &[RunRequest]) -> Duration {
    let longest = groups
        .iter()
        .map(|group| group.plan.interval.max(group.plan.timeout));
    SILENCE_MIN + 2 * longest.max().unwrap_or_default()
}

/// The groups, named by their positions: other than their own names, these are unique.
fn by_position(groups: &[RunRequest]) -> Vec<RunRequest> {
    let mut groups = groups.to_vec();
    for (position, group) in groups.iter_mut().enumerate() {
        group.group = position.to_string();
    }
    groups
}

/// Leads the parts through the run and merges what they measured; `on_progress` sees each interval
/// when all parts have ended it. The parts are gone afterwards.
///
/// # Errors
/// A part could not start, or it died: there is no result then.
pub fn run_parts(
    groups: &[RunRequest],
    (parts, responders): (Parts, Option<Parts>),
    (clock, control): (Clock, &Control),
    on_progress: impl FnMut(&Progress),
) -> Result<RunRecord, PartsError> {
    let observing = crate::observing::begin(groups, control)?;
    let kernel_before = crate::host::counters();
    let count = parts.count() as usize;
    let mut leading = Leading {
        parts,
        responders,
        clock,
        ready: 0,
        vain: 0,
        gives_up: control.gives_up(),
        stop_said: false,
        interrupt_said: false,
        silent: vec![Duration::ZERO; count],
        silent_max: silence_max(groups),
        records: vec![None; count],
        gathering: Gathering::at((0..count).map(place), 1),
        on_progress,
    };
    leading.lead(control)?;
    let records: Vec<RunRecord> = leading.records.drain(..).flatten().collect();
    let kernel = crate::host::difference(&kernel_before, &crate::host::counters());
    let merged = measure::merge::merge_parts(records);
    let mut record = merged.ok_or_else(|| PartsError::refused("there are no parts"))?;
    record.network.kernel = kernel;
    record.network.kernel_of_hosts.clear();
    let (intervals, _) = leading.gathering.finish();
    record::finish(&mut record, groups, intervals);
    if let Some(observing) = observing {
        observing.end(&mut record);
    }
    if let Some(responders) = leading.responders.take() {
        match serve_parts(responders, |_| true) {
            Ok(counted) => note_responder(&mut record, &counted, None),
            // The run itself is over and complete.
            Err(PartsError::Refused(error) | PartsError::Broken(error)) => {
                let warning = format!("what the built-in responder counted is lost: {error}");
                record.warnings.push(warning);
            }
        }
    }
    Ok(record)
}

/// The parts of a run, and what they have reported so far.
struct Leading<F> {
    parts: Parts,
    /// The target of a self-test, if it is in parts too.
    responders: Option<Parts>,
    clock: Clock,
    ready: usize,
    /// Parts whose first queries have all failed.
    vain: usize,
    gives_up: bool,
    stop_said: bool,
    interrupt_said: bool,
    /// For how long each part has said nothing, as far as the parent itself was at work.
    silent: Vec<Duration>,
    silent_max: Duration,
    records: Vec<Option<RunRecord>>,
    /// The intervals that the parts have told.
    gathering: Gathering,
    on_progress: F,
}

/// Where the intervals of a part are gathered: as those of one worker.
fn place(part: usize) -> (usize, usize) {
    (part, 0)
}

impl<F: FnMut(&Progress)> Leading<F> {
    fn lead(&mut self, control: &Control) -> Result<(), PartsError> {
        while self.records.iter().any(Option::is_none) {
            if control.is_stopped() && !self.stop_said {
                self.stop_said = true;
                self.parts.say_to_all("stop");
            }
            if control.is_interrupted() && !self.interrupt_said {
                self.interrupt_said = true;
                self.parts.say_to_all("interrupt");
            }
            if let Some(responders) = &mut self.responders {
                responders.check()?;
            }
            let asked = std::time::Instant::now();
            let next = self.parts.next(STOP_POLL);
            self.note_silence(asked.elapsed())?;
            let Some((index, event)) = next else {
                continue;
            };
            self.silent[index] = Duration::ZERO;
            match event {
                Event::Said(word, text) => self.hear(index, &word, &text)?,
                Event::Ended if self.records[index].is_none() => {
                    return Err(self.parts.died(index));
                }
                Event::Ended => {}
            }
            self.gathering.settle(&mut self.on_progress);
        }
        Ok(())
    }

    /// A part at work ends an interval now and then, and tells of it. Time in which the parent was
    /// stopped itself does not count.
    fn note_silence(&mut self, passed: Duration) -> Result<(), PartsError> {
        if self.ready < self.records.len() {
            return Ok(());
        }
        for index in 0..self.records.len() {
            self.silent[index] += passed.min(2 * STOP_POLL);
            if self.records[index].is_none() && self.silent[index] > self.silent_max {
                return Err(self.parts.silent(index, self.silent[index]));
            }
        }
        Ok(())
    }

    fn hear(&mut self, index: usize, word: &str, text: &str) -> Result<(), PartsError> {
        match word {
            "ready" => {
                self.ready += 1;
                if self.ready == self.records.len() {
                    let start = self.clock.now() + START_DELAY;
                    self.parts
                        .say_to_all(&format!("start {}", start.as_nanos()));
                }
            }
            "vain" => {
                self.vain += 1;
                if self.vain == self.records.len() && self.gives_up {
                    self.parts.say_to_all("give-up");
                }
            }
            "interval" => {
                let interval: Interval =
                    serde_json::from_str(text).map_err(|error| Parts::nonsense(index, error))?;
                self.gathering.add(place(index), interval);
            }
            "record" => {
                let record = RunRecord::from_json(text);
                let record = record.map_err(|reason| Parts::nonsense(index, reason))?;
                self.records[index] = Some(record);
                self.gathering.end(place(index));
            }
            "failed" => return Err(Parts::failed(index, text)),
            _ => return Err(Parts::nonsense(index, word)),
        }
        Ok(())
    }
}
