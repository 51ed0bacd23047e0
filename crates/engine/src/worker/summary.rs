//! The final report of a worker.

use std::ops::Range;

use driver::{CpuTime, DriverStats};
use measure::instances::Instances;
use measure::losses_by_question::WorkerLosses;
use measure::{ClientExperience, Interval, ScriptRecord};
use proto::Instant;
use proto::tls::Negotiated;

/// Why a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndedBy {
    /// The duration asked for has passed.
    #[default]
    Duration,
    /// The number of queries asked for has been offered.
    Queries,
    /// No more connections could be opened, and only queries would have ended the run.
    TargetGone,
    /// The first queries had all failed, which ends a run that gives up.
    NoAnswer,
    /// It was stopped.
    Interrupted,
}

/// When one worker entered its phases.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timeline {
    /// Connection set-up began.
    pub opened_at: Instant,
    /// Warm-up, or without it the measured run, began.
    pub started_at: Instant,
    /// The measured run began.
    pub run_started_at: Instant,
    /// Offering ended.
    pub run_ended_at: Instant,
    /// The last open query had ended.
    pub drained_at: Instant,
}

/// The final report of one worker, without its intervals.
#[derive(Clone, Debug, Default)]
pub struct WorkerSummary {
    /// When its phases began.
    pub timeline: Timeline,
    /// Everything scheduled during warm-up.
    pub warmup: Interval,
    /// Bins of 10 ms, from the start of the measured run on.
    pub bins: measure::Timeline,
    /// The responses of the measured window.
    pub window: Window,
    /// Why offering ended.
    pub ended_by: EndedBy,
    /// The driver's counters.
    pub stats: DriverStats,
    /// TLS details beside counts.
    pub tls: TlsNotes,
    /// Lowest limit of concurrent streams that the target has set; none if it has set none.
    pub streams_max: Option<u64>,
    /// Delay of its first query, in nanoseconds, from its due time, or from when the clients join
    /// if time makes none due. None if it sent none.
    pub first_late_ns: Option<u64>,
    /// CPU time in the measured window.
    pub cpu_in_window: CpuTime,
    /// Queries without a response, by question.
    pub losses: WorkerLosses,
    /// Responses by server instance; none unless queries asked for its identifier.
    pub instances: Option<Instances>,
    /// The record of its scripts; none without a script.
    pub script: Option<ScriptRecord>,
    /// Distributions over its clients; none if no statistics of single clients were kept.
    pub experience: Option<ClientExperience>,
    /// Outcomes of queries at each server: counts and latencies; empty unless clients have several
    /// servers.
    pub servers: Vec<Interval>,
}

/// The responses received within the measured window, whenever their queries were scheduled.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Its end (exclusive); that of a run by queries reaches to its last response.
    pub end: Instant,
    /// How many there were.
    pub responses: u64,
    /// When the last response came, within the window or not; zero if none came.
    pub last_response_at: Instant,
}

impl Default for Window {
    fn default() -> Self {
        Window {
            end: Instant::FAR_FUTURE,
            responses: 0,
            last_response_at: Instant::ZERO,
        }
    }
}

/// A worker's TLS details beside counts.
#[derive(Clone, Debug, Default)]
pub struct TlsNotes {
    /// Distinct reasons of failures, at most eight.
    pub failures: Vec<String>,
    /// What the first completed handshake agreed on.
    pub negotiated: Option<Negotiated>,
}

impl WorkerSummary {
    /// Books the times in which nothing could leave for the target.
    pub(crate) fn cut_off(&mut self, each: &[Range<Instant>]) {
        let (start, end) = (self.timeline.run_started_at, self.timeline.drained_at);
        for cut in each {
            let (from, until) = (cut.start.max(start), cut.end.min(end));
            if from < until {
                let since_start = |at: Instant| at.nanos_since(start);
                self.bins.cut_off(since_start(from), since_start(until));
            }
        }
    }
}
