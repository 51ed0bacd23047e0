//! Running a plan on threads with the epoll driver.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use driver::clock::Clock;
use driver::epoll::{EpollDriver, EpollOptions};
use driver::{Driver, cpu};
use measure::Interval;

use crate::worker::{RunInputs, Worker, WorkerSummary};
use crate::{Control, SetupError};

/// How a run uses the machine.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// CPU of each worker; fewer than workers leaves the rest to the scheduler.
    pub cpus: Vec<usize>,
}

/// An interval that all workers have finished.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Its place in the run, from 0.
    pub index: usize,
    /// The merged figures of all workers.
    pub interval: Interval,
}

/// One worker's part of a finished run.
#[derive(Clone, Debug)]
pub struct WorkerOutcome {
    /// CPU it was pinned to, if any.
    pub cpu: Option<usize>,
    /// Phases, warm-up, driver counters.
    pub summary: WorkerSummary,
    /// Its own intervals.
    pub intervals: Vec<Interval>,
}

/// What a finished run measured.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Merged over workers, in order; the last one is the drain if anything happened in it.
    pub intervals: Vec<Interval>,
    /// One entry a worker.
    pub workers: Vec<WorkerOutcome>,
}

enum Report {
    Interval(usize, Box<Interval>),
    Finished(usize, Box<WorkerOutcome>),
    Failed(SetupError),
}

/// Runs the plan to its end; `on_progress` is called as each interval is complete.
///
/// # Errors
/// [`SetupError`] if a worker could not open its sockets; nothing was sent then.
pub fn run(
    inputs: &RunInputs,
    options: &RunOptions,
    control: &Arc<Control>,
    on_progress: impl FnMut(&Progress),
) -> Result<Outcome, SetupError> {
    let clock = Clock::start();
    let workers = inputs.plan.workers as usize;
    thread::scope(|scope| {
        let (sender, receiver) = channel();
        for index in 0..workers {
            let cpu = options.cpus.get(index).copied();
            let (inputs, control, sender) = (inputs.clone(), Arc::clone(control), sender.clone());
            scope.spawn(move || {
                let report = run_worker(&inputs, index, cpu, (clock, control), &sender);
                // The receiver is gone only if the run has failed already.
                let _ = sender.send(report);
            });
        }
        drop(sender);
        collect(&receiver, workers, control, on_progress)
    })
}

fn run_worker(
    inputs: &RunInputs,
    index: usize,
    cpu: Option<usize>,
    (clock, control): (Clock, Arc<Control>),
    sender: &Sender<Report>,
) -> Report {
    if let Some(cpu) = cpu
        && let Err(error) = cpu::pin(cpu)
    {
        return Report::Failed(SetupError::Cpu { cpu, error });
    }
    cpu::sharpen_timers();
    let options = EpollOptions {
        offload: inputs.plan.offload,
        socket_buffer_octets: inputs.plan.socket_buffer_octets,
    };
    let mut driver = match EpollDriver::new(clock, options) {
        Ok(driver) => driver,
        Err(error) => return Report::Failed(SetupError::Driver(error)),
    };
    let mut worker = Worker::new(inputs, index as u32, control);
    if let Err(error) = worker.open(&mut driver) {
        return Report::Failed(error);
    }
    let mut intervals = Vec::new();
    while !worker.is_finished() {
        let until = worker.step(&mut driver);
        while let Some(interval) = worker.poll_interval() {
            let _ = sender.send(Report::Interval(index, Box::new(interval.clone())));
            intervals.push(interval);
        }
        if !worker.is_finished() {
            driver.wait(until);
        }
    }
    let summary = worker.summary(&driver);
    Report::Finished(
        index,
        Box::new(WorkerOutcome {
            cpu,
            summary,
            intervals,
        }),
    )
}

/// Merges what the workers report until all have finished.
fn collect(
    receiver: &Receiver<Report>,
    workers: usize,
    control: &Control,
    mut on_progress: impl FnMut(&Progress),
) -> Result<Outcome, SetupError> {
    let mut intervals: Vec<(usize, Interval)> = Vec::new();
    let mut reported = vec![0; workers];
    let mut outcomes: Vec<Option<WorkerOutcome>> = vec![None; workers];
    let mut failure = None;
    for report in receiver {
        match report {
            Report::Interval(worker, interval) => {
                let index = reported[worker];
                reported[worker] += 1;
                if intervals.len() <= index {
                    intervals.push((0, Interval::default()));
                }
                let (count, merged) = &mut intervals[index];
                *count += 1;
                match *count {
                    1 => *merged = *interval,
                    _ => merged.merge(&interval),
                }
                if *count == workers {
                    on_progress(&Progress {
                        index,
                        interval: merged.clone(),
                    });
                }
            }
            Report::Finished(worker, outcome) => outcomes[worker] = Some(*outcome),
            Report::Failed(error) => {
                control.stop();
                failure.get_or_insert(error);
            }
        }
    }
    if let Some(error) = failure {
        return Err(error);
    }
    let intervals = intervals
        .into_iter()
        .map(|(_, interval)| interval)
        .collect();
    let workers = outcomes.into_iter().flatten().collect();
    Ok(Outcome { intervals, workers })
}
