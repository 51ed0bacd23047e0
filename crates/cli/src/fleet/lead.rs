//! `throng fleet lead`: waits for agents, and leads them through one run after the other, whether
//! or not the command that asked for it is still there.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use driver::clock::Clock;
use lab::parts::{Files, Gate, Hello, Side, read_keys};
use serde_json::Value;

use super::status::{Phase, Status};
use super::{clients, manifest};
use crate::args::fleet::LeadArguments;
use crate::failure::Failure;
use crate::inputs;
use crate::part::{self, Setup, Work};
use crate::run;
use crate::run::agents::{Agents, adopt};
use crate::signals::{self, Interrupt};

/// How often it is looked who is there, and whether there is something to do.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Intervals that are kept for commands that come later; each has some kilobytes.
const INTERVALS_KEPT: usize = 4_096;

/// How a run ended: its record, or why there is none.
pub(super) type Outcome = Result<Arc<[u8]>, Value>;

/// What the lead knows, and what its clients want of it.
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) runs: u64,
    /// A run that is to be made.
    wanted: Option<(Setup, Files)>,
    /// Intervals of the run, as JSON, and the number of the first.
    pub(super) intervals: VecDeque<Arc<str>>,
    pub(super) first_interval: u64,
    pub(super) outcome: Option<Outcome>,
    /// Who is there, once that is settled.
    agents: Option<Vec<Option<String>>>,
    /// No more agents will come.
    pub(super) is_enough: bool,
    /// When somebody asked for something last.
    pub(super) asked_at: Instant,
    /// It is to end.
    pub(super) is_to_end: bool,
}

/// The lead, for its clients.
pub(super) struct Lead {
    state: Mutex<State>,
    pub(super) changed: Condvar,
    gate: Gate,
    pub(super) interrupt: Interrupt,
}

/// Leads until nobody wants anything any more.
pub(crate) fn execute(arguments: &LeadArguments) -> Result<ExitCode, Failure> {
    let agents_min = arguments.min_agents.unwrap_or(arguments.agents);
    if agents_min > arguments.agents {
        return Err(Failure::usage(
            format!(
                "--min-agents {agents_min} is more than --agents {}",
                arguments.agents
            ),
            "lower --min-agents",
        ));
    }
    let keys = read_keys(&arguments.keys, Side::Lead)?;
    let own = Hello::of_this(part::binary()?);
    let note = |note: String| tell!("{note}");
    let gate = Gate::open(arguments.listen, &keys, (own, arguments.agents), note)?;
    let listener = clients::listen(&arguments.name)?;
    tell!(
        "the lead `{}` waits for agents at {}",
        arguments.name,
        gate.address()
    );
    let lead = Arc::new(Lead {
        state: Mutex::new(State {
            phase: Phase::Idle,
            runs: 0,
            wanted: None,
            intervals: VecDeque::new(),
            first_interval: 0,
            outcome: None,
            agents: None,
            is_enough: false,
            asked_at: Instant::now(),
            is_to_end: false,
        }),
        changed: Condvar::new(),
        gate,
        interrupt: signals::watch(|| tell!("ending the run")),
    });
    clients::serve(listener, &lead);
    if let Some((setup, files)) = manifest::beside(&arguments.keys)? {
        lead.want(setup, files)?;
    }
    while let Some((setup, files)) = lead.next_run(arguments.keep) {
        let outcome = lead.run(setup, &files, (arguments.agents_within, agents_min));
        lead.end_run(outcome);
    }
    lead.dismiss();
    Ok(ExitCode::SUCCESS)
}

impl Lead {
    /// Ends agents that were never needed: they have not failed.
    fn dismiss(&self) {
        if self.state().agents.is_none() {
            let (mut parts, _) = self.gate.close(Clock::start());
            parts.say_to_all("end", "");
            parts.wait_for_ends();
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // Whatever panics ends the process.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn status(&self) -> Status {
        let agents = self.state().agents.clone();
        let agents = agents.unwrap_or_else(|| self.gate.present());
        let state = self.state();
        Status {
            phase: state.phase,
            runs: state.runs,
            intervals: state.first_interval + state.intervals.len() as u64,
            agents,
        }
    }

    /// Takes a run to be made; its number, from 1.
    pub(super) fn want(&self, setup: Setup, files: Files) -> Result<u64, Failure> {
        let mut state = self.state();
        if matches!(state.phase, Phase::Gathering | Phase::Running) {
            return Err(Failure::usage(
                "the lead is at a run already",
                "wait for its end (`throng fleet attach`), or end it (`throng fleet stop`)",
            ));
        }
        (state.phase, state.outcome) = (Phase::Gathering, None);
        state.intervals.clear();
        state.first_interval = 0;
        state.runs += 1;
        state.wanted = Some((setup, files));
        self.changed.notify_all();
        Ok(state.runs)
    }

    /// The next run; none if the lead is to end.
    fn next_run(&self, keep: Duration) -> Option<(Setup, Files)> {
        let mut state = self.state();
        loop {
            if let Some(wanted) = state.wanted.take() {
                return Some(wanted);
            }
            let is_forgotten = state.asked_at.elapsed() > keep;
            if state.is_to_end || is_forgotten || self.interrupt.has_come() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn run(&self, setup: Setup, files: &Files, wait: (Duration, u32)) -> Result<Vec<u8>, Failure> {
        inputs::provide_files(&setup.inputs, files);
        let Work::Run { groups, .. } = setup.work else {
            return Err(Failure::in_operation("the lead leads runs only"));
        };
        self.gather(wait)?;
        self.state().phase = Phase::Running;
        let record = run::watch_groups(&groups, &self.interrupt, &mut |progress| {
            let interval = serde_json::to_string(&progress.interval).unwrap_or_default();
            self.show(interval.into());
        })?;
        Ok(record.to_json().into_bytes())
    }

    /// Waits for agents, before the first run.
    fn gather(&self, (within, agents_min): (Duration, u32)) -> Result<(), Failure> {
        if self.state().agents.is_some() {
            return Ok(());
        }
        let began = Instant::now();
        loop {
            let present = self.gate.present();
            let count = present.iter().flatten().count();
            let is_late = began.elapsed() > within || self.state().is_enough;
            if count == present.len() || is_late && count >= agents_min as usize {
                break;
            }
            if self.interrupt.has_come() || self.state().is_to_end {
                return Err(Failure::interrupted("interrupted before the run began"));
            }
            if is_late {
                return Err(missing(&present, within));
            }
            let waited = self.changed.wait_timeout(self.state(), LOOK_EVERY);
            drop(waited);
        }
        let (parts, hellos) = self.gate.close(Clock::start());
        let count = parts.count() as usize;
        let names = (0..count).map(|index| parts.host(index).map(str::to_owned));
        self.state().agents = Some(names.collect());
        adopt(Agents { parts, hellos });
        Ok(())
    }

    /// An interval is over.
    fn show(&self, interval: Arc<str>) {
        let mut state = self.state();
        state.intervals.push_back(interval);
        if state.intervals.len() > INTERVALS_KEPT {
            state.intervals.pop_front();
            state.first_interval += 1;
        }
        self.changed.notify_all();
    }

    fn end_run(&self, outcome: Result<Vec<u8>, Failure>) {
        let mut state = self.state();
        state.phase = Phase::Over;
        state.outcome = Some(match outcome {
            Ok(record) => Ok(record.into()),
            Err(failure) => {
                let _ = failure.report();
                Err(failure.to_json())
            }
        });
        state.asked_at = Instant::now();
        self.changed.notify_all();
    }
}

/// What is told of agents that have not come.
fn missing(present: &[Option<String>], within: Duration) -> Failure {
    let here = present.iter().flatten().count();
    let missing = present.iter().enumerate().filter(|(_, it)| it.is_none());
    let numbers: Vec<String> = missing.map(|(index, _)| (index + 1).to_string()).collect();
    Failure::usage(
        format!(
            "{here} of {} agents were there within {} s; missing: {}",
            present.len(),
            within.as_secs(),
            shortened(&numbers)
        ),
        "look why the others did not start, or lower --min-agents",
    )
}

/// Numbers that are listed.
const LISTED: usize = 20;

fn shortened(numbers: &[String]) -> String {
    let listed = numbers[..numbers.len().min(LISTED)].join(", ");
    match numbers.len().saturating_sub(LISTED) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}
