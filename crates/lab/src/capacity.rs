//! How much a target can take: trials, one after the other, until a search has what it looks for.
//!
//! What is tried next is decided by [`measure::capacity::search`]; here are the time that trials
//! take and the ways in which they end. Each trial is a whole run: it ends when its last query has
//! been answered or has timed out, so that the next one meets no backlog of its making.

use std::time::{Duration, Instant};

use measure::capacity::search::{Aim, Next, Search};
use measure::capacity::{
    Answer, Capacity, CapacityPlan, EndedBy, Found, LATENCY_SHARES, Purpose, Sought, Trial,
    TrialOutcome,
};
use measure::facts::CpuUse;
use measure::scenario::DriverKind;
use measure::{RunRecord, record};

use crate::host::CpuReading;

/// A trial to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt {
    /// Its position among all trials, from 1.
    pub position: usize,
    /// What it is made for.
    pub purpose: Purpose,
    /// Rate or clients.
    pub value: f64,
    /// How long it offers load.
    pub length: Duration,
}

/// A trial that was made.
pub struct Made {
    /// What it measured.
    pub record: RunRecord,
    /// The file that keeps the record.
    pub file: Option<String>,
}

/// What a search asks of its surroundings.
pub trait Bench {
    /// Why a trial cannot be made.
    type Error;

    /// Makes a trial.
    ///
    /// # Errors
    /// It could not be started, or its record not be kept: the search ends there.
    fn make(&mut self, attempt: Attempt) -> Result<Made, Self::Error>;

    /// Who has used the CPUs of this host until now; none if nothing is measured on it.
    fn read_cpu(&mut self) -> Option<CpuReading>;

    /// This host as it was before the first trial, which was made.
    fn show_host(&mut self, before: &CpuUse);

    /// A trial has ended.
    fn show(&mut self, attempt: Attempt, trial: &Trial);

    /// True if nothing more is to be tried.
    fn is_interrupted(&self) -> bool;

    /// An error in words.
    fn words(error: &Self::Error) -> String;
}

/// Searches for what `plan` asks.
///
/// # Errors
/// The first trial could not be made, or was interrupted.
pub fn find<B: Bench>(
    plan: &CapacityPlan,
    bench: &mut B,
) -> Result<Option<Capacity>, <B as Bench>::Error> {
    let mut session = Session {
        plan,
        bench,
        started: Instant::now(),
        virtual_ns: None,
        overhead: OVERHEAD,
        trials: Vec::new(),
        first: None,
        refusal: None,
        before: None,
    };
    session.look_at_host();
    let mut search = plan.search();
    let ended_by = session.search(&mut search)?;
    let Some(first) = session.first.clone() else {
        return Ok(None);
    };
    let found = |session: &mut Session<'_, B>, trials| Found {
        search: &search,
        first: &first,
        trials,
        ended_by,
        elapsed_ns: nanos(session.elapsed()),
        refusal: session.refusal.clone(),
        before: session.before.clone(),
    };
    let trials = session.trials.clone();
    let answer = Answer::of(plan, &found(&mut session, trials));
    if let Some(value) = answer.value.filter(|_| ended_by != EndedBy::Interrupted) {
        session.measure_latency(value)?;
    }
    let trials = std::mem::take(&mut session.trials);
    Ok(Some(Capacity::new(plan, found(&mut session, trials))))
}

/// What a trial is taken to need beside offering load before one was made: connections and drain.
const OVERHEAD: Duration = Duration::from_millis(200);

struct Session<'a, B: Bench> {
    plan: &'a CapacityPlan,
    bench: &'a mut B,
    started: Instant,
    /// How long all trials took in virtual time, if they are simulated.
    virtual_ns: Option<u64>,
    /// What the longest trial took beside offering load.
    overhead: Duration,
    trials: Vec<Trial>,
    first: Option<RunRecord>,
    refusal: Option<String>,
    before: Option<CpuUse>,
}

/// How long the host is looked at before the first trial.
const LOOK: Duration = Duration::from_millis(300);

/// How a trial ended for the session.
enum Step {
    Made,
    Ends(EndedBy),
}

impl<B: Bench> Session<'_, B> {
    /// What else runs here, before anything of ours does.
    fn look_at_host(&mut self) {
        let Some(first) = self.bench.read_cpu() else {
            return;
        };
        crate::host::pause(LOOK);
        if let Some(second) = self.bench.read_cpu() {
            self.before = Some(first.until(&second, &[]));
        }
    }

    /// Tries until the search has ended; why it has.
    fn search(&mut self, search: &mut Search) -> Result<EndedBy, B::Error> {
        loop {
            let value = match search.next() {
                Next::Done(ending) => return Ok(ending.into()),
                Next::Try(value) => value,
            };
            let some_passed = !search.rounds().is_empty() || search.so_far().0.is_some();
            let reserved = match some_passed {
                true => LATENCY_SHARES.len(),
                false => 0,
            };
            let purpose = match search.aim() {
                Aim::Limit => Purpose::Search,
                Aim::BelowLimit => Purpose::Latency,
                Aim::ForLonger => Purpose::Confirmation,
            };
            if !self.trials.is_empty() && !self.has_time_for(purpose, reserved) {
                let ending = search.forgo_long_trials();
                return Ok(ending.map_or(EndedBy::Time, EndedBy::from));
            }
            match self.make(purpose, value)? {
                Step::Ends(ended_by) => return Ok(ended_by),
                Step::Made => {}
            }
            if let Some(trial) = self.trials.last() {
                search.learn(trial.outcome(&self.plan.search));
            }
        }
    }

    /// Latency at shares of `value`, as far as time allows.
    fn measure_latency(&mut self, value: f64) -> Result<(), B::Error> {
        for share in LATENCY_SHARES {
            let value = match self.plan.search.sought {
                Sought::Rate => share * value,
                Sought::Clients => (share * value).round().max(1.0),
            };
            if self.has_latency_at(value) {
                continue;
            }
            if !self.has_time_for(Purpose::Latency, 0) {
                return Ok(());
            }
            if let Step::Ends(_) = self.make(Purpose::Latency, value)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// True if a trial that confirmed the limit has measured it already; values are rounded.
    fn has_latency_at(&self, value: f64) -> bool {
        self.trials.iter().any(|trial| {
            trial.purpose == Purpose::Latency
                && trial.outcome == TrialOutcome::Passed
                && (trial.value / value - 1.0).abs() < 0.002
        })
    }

    fn make(&mut self, purpose: Purpose, value: f64) -> Result<Step, B::Error> {
        if self.bench.is_interrupted() {
            return Ok(Step::Ends(EndedBy::Interrupted));
        }
        let attempt = Attempt {
            position: self.trials.len() + 1,
            purpose,
            value,
            length: self.length_of(purpose),
        };
        let before = self.elapsed();
        let Made { record, file } = match self.bench.make(attempt) {
            Ok(made) => made,
            Err(_) if self.bench.is_interrupted() => {
                return Ok(Step::Ends(EndedBy::Interrupted));
            }
            Err(error) if self.trials.is_empty() => return Err(error),
            Err(error) => {
                self.refusal = Some(B::words(&error));
                return Ok(Step::Ends(EndedBy::Refused));
            }
        };
        if record.ended_by == record::EndedBy::Interrupted {
            return Ok(Step::Ends(EndedBy::Interrupted));
        }
        // Not sooner: what is refused is refused without another word.
        if let Some(before) = self.before.as_ref().filter(|_| self.trials.is_empty()) {
            self.bench.show_host(before);
        }
        self.count_time(&record);
        let took = self.elapsed().saturating_sub(before);
        let beside = took.saturating_sub(attempt.length);
        self.overhead = self.overhead.max(beside);
        let about = (purpose, value);
        let trial = Trial::new(about, &record, &self.plan.objective, file);
        self.bench.show(attempt, &trial);
        self.trials.push(trial);
        if self.first.is_none() {
            self.first = Some(record);
        }
        Ok(Step::Made)
    }

    fn count_time(&mut self, record: &RunRecord) {
        if record.driver == DriverKind::Sim {
            let phases = &record.phases;
            let all = phases.connect_ns + phases.warmup_ns + phases.run_ns + phases.drain_ns;
            *self.virtual_ns.get_or_insert(0) += all;
        }
    }

    /// Since the first trial began, on the clock that the trials go by.
    fn elapsed(&self) -> Duration {
        match self.virtual_ns {
            Some(ns) => Duration::from_nanos(ns),
            None => self.started.elapsed(),
        }
    }

    fn length_of(&self, purpose: Purpose) -> Duration {
        Duration::from_nanos(self.plan.search.length_ns(purpose))
    }

    /// True if a trial, and this number of trials for the latency after it, would end in time.
    fn has_time_for(&self, purpose: Purpose, latencies: usize) -> bool {
        let latencies = u32::try_from(latencies).unwrap_or(u32::MAX);
        let after = (self.length_of(Purpose::Latency) + self.overhead) * latencies;
        let needed = self.length_of(purpose) + self.overhead + after;
        self.elapsed() + needed <= Duration::from_nanos(self.plan.search.time_max_ns)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
