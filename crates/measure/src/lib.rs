//! What was measured: counters, histograms, intervals, the run record and its verdict.
//!
//! Does no I/O and reads no clock. [`Interval`] is what a worker writes on its hot path;
//! [`RunRecord`] is what reports, comparisons and every other rendering start from.

#![forbid(unsafe_code)]

pub mod ab;
mod achieved;
pub mod capacity;
pub mod client_latency;
pub mod comparison;
pub mod condition;
pub mod counts;
pub mod doctor;
pub mod evaluation;
pub mod experience;
pub mod facts;
pub mod histogram;
pub mod interval;
pub mod merge;
pub mod metric;
pub mod notation;
pub mod over_runs;
pub mod probe;
pub mod ramp;
pub mod record;
pub mod scenario;
pub mod script;
pub mod simulation;
pub mod statistics;
pub mod steady_state;
pub mod summary;
pub mod target;
pub mod timeline;
pub mod trace;
pub mod verdict;

#[cfg(test)]
mod example;

pub use ab::AbComparison;
pub use capacity::Capacity;
pub use comparison::Comparison;
pub use counts::Counts;
pub use evaluation::Evaluation;
pub use experience::{ClientExperience, ClientFigures, GroupRecord};
pub use facts::{HostFacts, NetworkFacts, ResponderFacts, WorkerFacts};
pub use histogram::Histogram;
pub use interval::{ConnectionTimes, Distributions, Interval, PathTimes};
pub use merge::merge;
pub use metric::Metric;
pub use over_runs::OverRuns;
pub use probe::ProbeStatistics;
pub use ramp::Ramp;
pub use record::{EndedBy, Phases, RunRecord};
pub use scenario::{
    Arrival, ConnectionPolicy, DriverKind, HttpMethod, HttpRequest, HttpScheme, Process,
    QuestionChoice, QuestionOrder, Questions, ScenarioRecord, StampSource, TlsFacts, TlsSettings,
    Transport,
};
pub use script::ScriptRecord;
pub use simulation::{
    ModelledCache, ModelledServer, ServerActivity, SimulatedNetwork, SimulationRecord,
};
pub use steady_state::SteadyState;
pub use summary::Summary;
pub use target::TargetRecord;
pub use timeline::Timeline;
pub use trace::Trace;
pub use verdict::{Limit, Verdict, judge};
