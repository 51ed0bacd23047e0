//! A run in parts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use driver::clock::Clock;
use engine::{Control, Gathering, PartOfRun, Progress, RunOptions};
use load::Plan;
use measure::{Interval, RunRecord};
use proto::Instant;
use settings::OnAgentLoss;

use super::agents::Agents;
use super::checkpoints::{Checkpoints, Loss};
use super::child;
use super::clocks::Clocks;
use super::fate::sent_max;
use super::parent::{Event, Parts, PartsError};
use super::serve::serve_parts;
use crate::host::HostWatch;
use crate::run::{RunError, RunRequest, note_responder};
use crate::run::{inputs, own_cpus, own_driver, record, setup_error};

/// How often the parent looks whether the run shall stop.
const STOP_POLL: Duration = Duration::from_millis(20);
/// How often the parent says that it is there.
const BEAT_EVERY: Duration = Duration::from_millis(500);
/// How long a part has to be silent, at least, before it is ended.
const SILENCE_MIN: Duration = Duration::from_secs(10);

/// Runs one part, and tells the parent of it.
///
/// # Errors
/// [`RunError`] if it could not be started.
pub fn run_part(
    groups: &[RunRequest],
    part: PartOfRun,
    is_elsewhere: bool,
) -> Result<(), RunError> {
    let inputs = inputs(groups);
    let clock = part.clock;
    let workers = engine::ThreadWorkers::workers_on(&inputs, part.threads.clone());
    let tells = engine::PartEvents {
        on_ready: || child::say("ready", ""),
        on_vain: || child::say("vain", ""),
    };
    let control = Arc::new(Control::of_part(workers, tells));
    let heard = Arc::clone(&control);
    let stopped = Arc::clone(&control);
    let on_line = move |word: &str, text: &str| match (word, text.parse()) {
        ("clock", _) => child::say("clock", &format!("{text} {}", clock.now().as_nanos())),
        ("start", Ok(ns)) => heard.start_at(proto::Instant::from_nanos(ns)),
        ("stop", _) => heard.stop(),
        ("interrupt", _) => heard.interrupt(),
        ("give-up", _) => heard.give_up(),
        _ => {}
    };
    child::watch_beats(on_line, move || stopped.interrupt());
    // Raises the soft limit.
    driver::cpu::open_files_max();
    let options = RunOptions {
        cpus: own_cpus(groups),
        driver: own_driver(groups),
        part: Some(part),
    };
    let groups = by_position(groups);
    // Those of its parent's host are read there, once.
    let kernel_before = is_elsewhere.then(crate::host::counters);
    let surroundings = record::Surroundings {
        simulation: None,
        started: record::Started::now(),
        host: crate::host::facts(),
        kernel: BTreeMap::new(),
    };
    let surroundings = || record::Surroundings {
        kernel: kernel_before.as_ref().map_or_else(BTreeMap::new, |before| {
            crate::host::difference(before, &crate::host::counters())
        }),
        ..surroundings.clone()
    };
    let tell = |progress: &Progress| {
        let interval = serde_json::to_string(&progress.interval);
        child::say("interval", &interval.unwrap_or_default());
        if let Some(outcome) = &progress.checkpoint {
            let outcome = outcome.as_ref().clone();
            let record = record::of_part(&groups, outcome, surroundings());
            child::say("checkpoint", &record.to_json());
        }
    };
    let outcome =
        engine::run(&inputs, &options, &control, tell).map_err(|error| setup_error(&error))?;
    let record = record::of_part(&groups, outcome, surroundings());
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
/// when all parts have ended it. The parts are gone afterwards. If one was lost, the result is the
/// last checkpoint of all.
///
/// # Errors
/// A part could not start, or it was lost before the first checkpoint, or that was to end the run
/// without a result.
pub fn run_parts(
    groups: &[RunRequest],
    (parts, responders): (Parts, Option<Parts>),
    (clock, control): (Clock, &Control),
    on_progress: impl FnMut(&Progress),
) -> Result<RunRecord, PartsError> {
    let observing = crate::observing::begin(groups, control)?;
    let watch = HostWatch::begin(groups);
    let count = parts.count() as usize;
    let first = groups.first().map(|request| &request.asked.generator);
    let mut leading = Leading {
        groups,
        responders,
        clock,
        clocks: Clocks::of(&parts),
        kernel_before: crate::host::counters(),
        run_start: None,
        agents: None,
        ready: 0,
        vain: 0,
        on_loss: first.and_then(|it| it.on_agent_loss).unwrap_or_default(),
        gives_up: control.gives_up(),
        stop_said: false,
        interrupt_said: false,
        silent: vec![Duration::ZERO; count],
        silent_max: silence_max(groups),
        beaten_at: std::time::Instant::now(),
        records: vec![None; count],
        gathering: Gathering::at((0..count).map(place), 1),
        checkpoints: Checkpoints::new(count),
        parts,
        on_progress,
    };
    leading.lead(control)?;
    let responders = leading.responders.take();
    let mut record = leading.result()?;
    if record.hosts.len() == 1 {
        watch.end(&mut record);
    }
    if let Some(observing) = observing {
        observing.end(&mut record);
    }
    record.conclude();
    if let Some(responders) = responders {
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
struct Leading<'a, F> {
    groups: &'a [RunRequest],
    parts: Parts,
    /// The target of a self-test, if it is in parts too.
    responders: Option<Parts>,
    clock: Clock,
    clocks: Clocks,
    kernel_before: BTreeMap<String, u64>,
    /// When the measured run started, or will.
    run_start: Option<Instant>,
    /// What is known of them, from the start on.
    agents: Option<Agents>,
    ready: usize,
    /// Parts whose first queries have all failed.
    vain: usize,
    on_loss: OnAgentLoss,
    gives_up: bool,
    stop_said: bool,
    interrupt_said: bool,
    /// For how long each part has said nothing, as far as the parent itself was at work.
    silent: Vec<Duration>,
    silent_max: Duration,
    /// When it said last that it is there.
    beaten_at: std::time::Instant,
    records: Vec<Option<RunRecord>>,
    /// The intervals that the parts have told.
    gathering: Gathering,
    checkpoints: Checkpoints,
    on_progress: F,
}

/// Where the intervals of a part are gathered: as those of one worker.
fn place(part: usize) -> (usize, usize) {
    (part, 0)
}

impl<F: FnMut(&Progress)> Leading<'_, F> {
    fn lead(&mut self, control: &Control) -> Result<(), PartsError> {
        while (0..self.records.len()).any(|part| self.is_at_work(part)) {
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
            self.ask_clocks();
            self.beat();
            let Some((index, event)) = next else {
                continue;
            };
            self.silent[index] = Duration::ZERO;
            match event {
                // What a lost part had said before is of no use any more.
                Event::Said(..) if self.checkpoints.is_lost(index) => {}
                Event::Said(word, text) => self.hear(index, &word, &text)?,
                Event::Clock(exchange) => {
                    self.clocks.note(index, exchange);
                    self.start_when_ready();
                }
                Event::Ended if self.is_at_work(index) => {
                    let error = self.parts.died(index);
                    let how = self.parts.end_of(index);
                    self.lose(index, how, error)?;
                }
                Event::Ended => {}
            }
            self.gathering.settle(&mut self.on_progress);
        }
        Ok(())
    }

    /// True if a part has more to tell.
    fn is_at_work(&self, part: usize) -> bool {
        self.records[part].is_none() && !self.checkpoints.is_lost(part)
    }

    /// Asks clocks of other hosts: one after the other before the start, now and then later.
    fn ask_clocks(&mut self) {
        let is_before = self.run_start.is_none() && self.ready == self.records.len();
        for part in 0..self.records.len() {
            if self.is_at_work(part) && self.clocks.is_due(part, is_before) {
                self.parts.ask_clock(part);
            }
        }
    }

    /// Says that it is there to those whose clocks it does not ask.
    fn beat(&mut self) {
        if self.beaten_at.elapsed() < BEAT_EVERY {
            return;
        }
        self.beaten_at = std::time::Instant::now();
        for part in 0..self.records.len() {
            if self.parts.host(part).is_none() && self.is_at_work(part) {
                self.parts.say(part, "beat");
            }
        }
    }

    /// All begin at once: at the same instant of the parent's clock, which each is told by its own.
    fn start_when_ready(&mut self) {
        let is_ready = self.ready == self.records.len() && self.clocks.are_known();
        if !is_ready || self.run_start.is_some() {
            return;
        }
        let start = self.clock.now() + self.clocks.start_delay();
        for part in 0..self.records.len() {
            let theirs = self.clocks.theirs(part, start.as_nanos());
            self.parts.say(part, &format!("start {theirs}"));
        }
        let warmups = self.groups.iter().map(|request| request.plan.warmup);
        let run_start = start + warmups.max().unwrap_or_default();
        self.run_start = Some(run_start);
        let now = self.clock.now();
        let began = Clock::unix_time() + Duration::from_nanos(run_start.nanos_since(now));
        let agents = Agents::at_start(&self.parts, &self.clocks, began, now.as_nanos());
        self.agents = Some(agents);
    }

    /// A part says nothing more, though its run is not over.
    fn lose(&mut self, part: usize, how: String, error: PartsError) -> Result<(), PartsError> {
        let has_result = self.checkpoints.is_there() && self.on_loss != OnAgentLoss::Fail;
        let Some(run_start) = self.run_start.filter(|_| has_result) else {
            return Err(error);
        };
        let noticed_ns = self.clock.now().nanos_since(run_start);
        // One of another host goes on until it misses its lead.
        let goes_on = match self.parts.host(part) {
            Some(_) => child::DEAD_MAN + child::STOP_MAX,
            None => Duration::ZERO,
        };
        let until = Duration::from_nanos(noticed_ns) + goes_on;
        let known = self.checkpoints.known(part, until)?;
        let how = match self.parts.host(part) {
            Some(host) => format!("{how} on {host}"),
            None => how,
        };
        let plans: Vec<&Plan> = self.groups.iter().map(|request| &request.plan).collect();
        let loss = Loss {
            how,
            noticed_ns,
            sent_unknown_max: sent_max(&plans, self.records.len(), &known),
        };
        self.checkpoints.lose(part, loss);
        self.gathering.end(place(part));
        if self.on_loss == OnAgentLoss::End && !self.stop_said {
            self.stop_said = true;
            self.parts.say_to_all("stop");
        }
        Ok(())
    }

    /// What the parts that were not lost have measured together; or if one was, what all had until
    /// their last checkpoint.
    fn result(mut self) -> Result<RunRecord, PartsError> {
        let nothing = || PartsError::refused("there is no result of all processes");
        let mut agents = self.agents.take().ok_or_else(nothing)?;
        agents.look(&self.clocks, self.clock.now().as_nanos());
        if self.checkpoints.has_losses() {
            return self.checkpoints.result(self.groups, &agents);
        }
        let records: Vec<RunRecord> = self.records.drain(..).flatten().collect();
        let kernel = crate::host::difference(&self.kernel_before, &crate::host::counters());
        let mut record = agents.merged(records, kernel).ok_or_else(nothing)?;
        let (intervals, _) = self.gathering.finish();
        record::finish(&mut record, self.groups, intervals);
        Ok(record)
    }

    /// A part at work ends an interval now and then, and tells of it. Time in which the parent was
    /// stopped itself does not count.
    fn note_silence(&mut self, passed: Duration) -> Result<(), PartsError> {
        if self.ready < self.records.len() && !self.clocks.are_elsewhere() {
            return Ok(());
        }
        for index in 0..self.records.len() {
            self.silent[index] += passed.min(2 * STOP_POLL);
            if self.is_at_work(index) && self.silent[index] > self.silent_max {
                let silence = self.silent[index];
                let error = self.parts.silent(index, silence);
                self.parts.end(index);
                let how = format!("said nothing for {:.0} s", silence.as_secs_f64());
                self.lose(index, how, error)?;
            }
        }
        Ok(())
    }

    fn hear(&mut self, index: usize, word: &str, text: &str) -> Result<(), PartsError> {
        match word {
            "ready" => {
                self.ready += 1;
                self.start_when_ready();
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
                self.checkpoints.add(index, &interval);
                self.gathering.add(place(index), interval);
            }
            "checkpoint" => {
                self.gathering.settle(&mut self.on_progress);
                let intervals = || self.gathering.so_far();
                let now = || crate::host::counters();
                let kernel = || crate::host::difference(&self.kernel_before, &now());
                self.checkpoints.note(index, text, (intervals, kernel));
            }
            "record" => {
                let record = RunRecord::from_json(text);
                let record = record.map_err(|reason| Parts::nonsense(index, reason))?;
                self.records[index] = Some(record);
                self.checkpoints.end(index, text);
                self.gathering.end(place(index));
            }
            "failed" => return Err(self.parts.failed(index, text)),
            _ => return Err(Parts::nonsense(index, word)),
        }
        Ok(())
    }
}
