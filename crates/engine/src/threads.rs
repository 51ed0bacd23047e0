//! Running plans on threads with drivers of their own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};

use driver::clock::Clock;
use driver::kernel::{Chosen, DriverChoice, KernelDriver, Load};
use driver::ways::{Watch, Way};
use driver::{Driver, SocketOptions, cpu};
use measure::timeline::Bin;
use measure::{Interval, Intervals};

use crate::collected::Collected;
use crate::gathering::{Gathering, Progress, WorkerId};
use crate::watchdog::{Beat, LOOK_EVERY, Watchdog};
use crate::worker::{RunInputs, WorkerSummary};
use crate::{Control, SetupError, ThreadWorkers};

/// How a run uses the machine.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// CPU of each thread of the run; fewer than threads leaves the rest to the scheduler.
    pub cpus: Vec<usize>,
    /// The driver to use.
    pub driver: DriverChoice,
    /// This process's share of the run, if it is one of several agents.
    pub share: Option<AgentShare>,
}

/// The share of one of several agents of a run.
#[derive(Clone, Debug)]
pub struct AgentShare {
    /// Its threads among those of the run.
    pub threads: Range<u32>,
    /// The clock that all agents share.
    pub clock: Clock,
}

impl RunOptions {
    /// The threads of this process.
    fn threads(&self, groups: &[RunInputs]) -> Range<u32> {
        match &self.share {
            Some(share) => share.threads.clone(),
            None => 0..ThreadWorkers::threads(groups),
        }
    }
}

/// One worker's part of a finished run.
#[derive(Clone, Debug)]
pub struct WorkerOutcome {
    /// Its group, by position in the run.
    pub group: usize,
    /// Its thread, from 0.
    pub thread: usize,
    /// CPU that the thread was pinned to, if any.
    pub cpu: Option<usize>,
    /// The driver of its thread; none in a simulation.
    pub driver: Option<Chosen>,
    /// Phases, warm-up, driver counters. Figures of the whole thread are in the summary of its
    /// first worker.
    pub summary: WorkerSummary,
    /// All its intervals together.
    pub total: Interval,
}

impl WorkerOutcome {
    /// Its thread and its group.
    pub(crate) fn place(&self) -> WorkerId {
        (self.thread, self.group)
    }

    /// Closes the counts of a worker that is still running: open queries count as interrupted,
    /// unsent ones as not sent.
    pub(crate) fn cut_off(&mut self) {
        let warmup = self.summary.warmup.counts.cut_off();
        self.summary.warmup.counts.add(&warmup);
        let Some(rest) = Interval::rest_of(&self.total.counts, self.total.end_ns) else {
            return;
        };
        let last_ns = self.total.end_ns.saturating_sub(1);
        let bins = &mut self.summary.bins;
        bins.add(last_ns, &Bin::of(&rest));
        bins.lose(last_ns, rest.counts.not_sent.run_ended);
        self.total.append_in_time(&rest);
    }
}

/// What a run has measured.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Merged over workers; the last one is the drain if anything happened in it.
    pub intervals: Intervals,
    /// The total of each group, by its position in the run.
    pub totals: Vec<Interval>,
    /// One entry a worker: one of each group on each thread.
    pub workers: Vec<WorkerOutcome>,
    /// Threads that did not end with the run, such as one in a function that does not return; they
    /// are still running. The summaries of their workers are incomplete.
    pub left_behind: Vec<usize>,
    /// The run is still in progress: this is what it has measured so far.
    pub is_checkpoint: bool,
}

impl Outcome {
    /// The workers of one group.
    pub fn of_group(&self, group: usize) -> impl Iterator<Item = &WorkerOutcome> {
        let workers = self.workers.iter();
        workers.filter(move |worker| worker.group == group)
    }

    /// Puts together what the workers measured.
    pub fn new(gathering: Gathering, workers: Vec<WorkerOutcome>) -> Self {
        let (intervals, totals) = gathering.finish();
        Outcome {
            intervals,
            totals,
            workers,
            left_behind: Vec::new(),
            is_checkpoint: false,
        }
    }
}

enum Report {
    /// An interval has ended; with what the worker has measured so far, if that is a checkpoint.
    Interval(WorkerId, Box<(Interval, Option<WorkerOutcome>)>),
    /// No more intervals of this worker; with what it contributes to all later checkpoints.
    Ended(WorkerId, Option<Box<WorkerOutcome>>),
    /// All workers of a thread.
    Finished(Vec<WorkerOutcome>),
    /// The thread could not begin.
    Failed(usize, SetupError),
}

/// Runs one plan for each group of clients to its end; `on_progress` is called as each interval is
/// complete. A thread that takes no more turns once the run is over is left behind.
///
/// # Errors
/// [`SetupError`] if a worker could not open its sockets; nothing was sent then.
pub fn run(
    groups: &[RunInputs],
    options: &RunOptions,
    control: &Arc<Control>,
    on_progress: impl FnMut(&Progress),
) -> Result<Outcome, SetupError> {
    let shared = options.share.as_ref().map(|share| share.clock);
    let clock = shared.unwrap_or_else(Clock::start);
    let (threads, driver) = (options.threads(groups), options.driver);
    let count = threads.len() as u32;
    let ways: Vec<Vec<Way>> = groups.iter().map(ways).collect();
    let watch = Watch::start(clock, &ways);
    let shared: Arc<[RunInputs]> = groups.into();
    let (sender, receiver) = channel();
    let mut handles = BTreeMap::new();
    let mut beats = BTreeMap::new();
    for index in threads.start as usize..threads.end as usize {
        let cpu = options.cpus.get(index).copied();
        let (control, sender) = (Arc::clone(control), sender.clone());
        let (groups, beat) = (Arc::clone(&shared), Arc::new(Beat::default()));
        beats.insert(index, Arc::clone(&beat));
        let handle = thread::spawn(move || {
            let report = run_thread(
                &groups,
                (index, cpu, &beat),
                (clock, driver, count),
                (&control, &sender),
            );
            drop(groups);
            // The receiver is gone only if the run has failed already, or has left this one behind.
            let _ = sender.send(report.unwrap_or_else(|error| Report::Failed(index, error)));
        });
        handles.insert(index, handle);
    }
    drop((sender, shared));
    let watchdog = Watchdog::new(groups, Arc::clone(control), clock, beats);
    let outcome = collect(&receiver, (groups, threads), watchdog, on_progress);
    join(handles, &outcome);
    let cuts = watch.map(Watch::end).unwrap_or_default();
    outcome.map(|mut outcome| {
        for worker in &mut outcome.workers {
            let of_group = cuts.get(worker.group);
            worker.summary.cut_off(of_group.map_or(&[], Vec::as_slice));
        }
        outcome
    })
}

/// Joins the threads, except those left behind.
fn join(handles: BTreeMap<usize, JoinHandle<()>>, outcome: &Result<Outcome, SetupError>) {
    for (index, handle) in handles {
        let is_left_behind = outcome
            .as_ref()
            .is_ok_and(|it| it.left_behind.contains(&index));
        if !is_left_behind {
            // A panic has ended the process.
            let _ = handle.join();
        }
    }
}

/// The local and remote addresses that a group uses.
fn ways(inputs: &RunInputs) -> Vec<Way> {
    let plan = &inputs.plan;
    let servers = match &plan.stub {
        Some(stub) => stub.servers.clone(),
        None => vec![plan.target],
    };
    let from = |to: SocketAddr| {
        let mut own = plan.local_addresses.iter().copied();
        own.find(|it| it.is_ipv4() == to.is_ipv4())
    };
    servers.into_iter().map(|to| (to, from(to))).collect()
}

fn run_thread(
    groups: &[RunInputs],
    (index, cpu, beat): (usize, Option<usize>, &Beat),
    (clock, choice, threads): (Clock, DriverChoice, u32),
    (control, sender): (&Arc<Control>, &Sender<Report>),
) -> Result<Report, SetupError> {
    if let Some(cpu) = cpu {
        cpu::pin(cpu).map_err(|error| SetupError::Cpu { cpu, error })?;
    }
    cpu::sharpen_timers();
    beat.belong_to_this_thread();
    let first = groups.first().map(|inputs| &inputs.plan);
    let options = first.map_or_else(SocketOptions::default, |plan| plan.sockets);
    let load = load(groups, (index as u32, threads));
    let opened = KernelDriver::open(choice, load, clock, options);
    let (mut driver, chosen) = opened.map_err(SetupError::Driver)?;
    let mut workers = ThreadWorkers::new(groups, index as u32, control);
    workers.open(&mut driver)?;
    let outcome = |group, summary| WorkerOutcome {
        group,
        thread: index,
        cpu,
        driver: Some(chosen.clone()),
        summary,
        // Its intervals are reported one by one.
        total: Interval::default(),
    };
    while !workers.is_finished() {
        beat.count();
        let until = workers.step(&mut driver);
        while let Some((group, interval)) = workers.poll_interval() {
            let place = (index, group);
            let checkpoint = workers.poll_checkpoint(group);
            let checkpoint = checkpoint.map(|summary| outcome(group, summary));
            let _ = sender.send(Report::Interval(place, Box::new((interval, checkpoint))));
        }
        while let Some(group) = workers.poll_finished() {
            let last = match control.tells_checkpoints() {
                true => workers.last_checkpoint(group, &mut driver),
                false => None,
            };
            let last = last.map(|summary| Box::new(outcome(group, summary)));
            let _ = sender.send(Report::Ended((index, group), last));
        }
        if !workers.is_finished() {
            driver.wait(until);
        }
    }
    let summaries = workers.summaries(&mut driver).into_iter();
    let outcomes = summaries.map(|(group, summary)| outcome(group, summary));
    Ok(Report::Finished(outcomes.collect()))
}

/// What a thread's sockets are for.
fn load(groups: &[RunInputs], (thread, threads): (u32, u32)) -> Load {
    let streams = |inputs: &RunInputs| match inputs.plan.transport.is_stream() {
        true => inputs.plan.worker_clients(thread),
        false => 0,
    };
    Load {
        streams: groups.iter().map(streams).sum(),
        thread,
        threads,
    }
}

/// Merges what the workers report until each has finished or is stuck.
fn collect(
    receiver: &Receiver<Report>,
    (groups, threads): (&[RunInputs], Range<u32>),
    mut watchdog: Watchdog,
    mut on_progress: impl FnMut(&Progress),
) -> Result<Outcome, SetupError> {
    let mut collected = Collected::of(groups, &threads);
    let mut failure = None;
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(Report::Failed(index, error)) => {
                watchdog.control.stop();
                watchdog.forget(index);
                failure.get_or_insert(error);
            }
            Ok(Report::Interval(place, told)) => {
                let (interval, checkpoint) = *told;
                collected.add(place, interval);
                if let Some(checkpoint) = checkpoint {
                    collected.note_checkpoint(checkpoint);
                }
            }
            Ok(Report::Ended(place, last)) => {
                if let Some(last) = last {
                    collected.note_last_checkpoint(*last);
                }
                collected.end(place);
            }
            Ok(Report::Finished(workers)) => {
                for worker in workers {
                    watchdog.forget(worker.thread);
                    collected.finish(worker);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        collected.settle(&mut on_progress);
        if watchdog.all_are_stuck() {
            break;
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(collected.outcome(&watchdog, on_progress)),
    }
}
