//! Measurements: counters, histograms, intervals, the run record and its verdict.
//!
//! Does no I/O and reads no clock. [`Interval`] is what a worker writes on its hot path;
//! [`RunRecord`] is what reports, comparisons and every other rendering start from.
//!
//! # Where to look
//!
//! * `counts`: everything that is counted, and the accounting identity; `counts::wire` is what
//!   sockets took and gave, and what that is on the wire; `counts::codes` counts by codes that
//!   the peer chooses, bounded and still merged exactly.
//! * `histogram`: the one histogram layout; log-linear, from 1 ns to 68 s, a bucket at most 0.78
//!   % wide.
//! * `interval`: counts and histograms of one span of time.
//! * `timeline`: what was due, sent, answered and lost when, in at most 2,048 bins from 10 ms on,
//!   which `crates/engine/src/worker/ledger/bins.rs` fills from differences of counters;
//!   `timeline::outages` finds outages in it.
//! * `record`, `scenario`, `facts`: the run record, which is also the file format; its JSON
//!   Schema is derived from these types.
//! * `instances`: responses by the server instance that sent them (NSID).
//! * `losses_by_question`: queries without a response by the question that they asked.
//! * `experience`: distributions over clients, each client one value, and groups of clients;
//!   `client_latency`: the latencies of one client in 100 bytes.
//! * `target`: each of several targets, and that together they are the run. A client of
//!   `[[targets]]` has one, so its workers' totals are that target's; clients with several
//!   servers count ends of queries by server, in `crates/engine/src/worker/population/servers.rs`.
//! * `script`: what scripts of clients counted and observed.
//! * `simulation`: what a simulated run assumed, and what its modelled server saw.
//! * `merge`: records of several generators as one, exactly, and `merge::fitness` whether they
//!   were one load on one target.
//! * `symptoms`: what the record of a run shows, with its numbers, computed once: whether events
//!   are enough to be more than chance is decided in `symptoms::significance`.
//! * `rules`: draws conclusions from symptoms only; `rules::table` has all rules in the order in
//!   which they decide, and prints `docs/verdict.md`. Verdict, doctor and reports share its
//!   judgement.
//! * `doctor`: what stands in the way of load, as diagnoses with their cures: of a host as read
//!   (`doctor::host` and beside it, a file for each kind of check), and of runs, by all rules.
//! * `capacity`: the highest load that a target sustains: objective, trials, answer;
//!   `capacity::search` decides on the next trial and runs nothing, `capacity::history` has the
//!   evidence of all trials together, and `capacity::attribution` finds trials that are not
//!   conclusive about the target.
//! * `ramp`: a rate that grows: its points, its peak, when to stop.
//! * `comparison`: the same load over several transports, and what each costs.
//! * `metric`, `condition`: the figures of a run by name, unit and meaning, and conditions on
//!   them for scripts and CI, whose `outcome` documents keep; `summary` is all of them in the
//!   record, `over_runs` what a figure of several runs is, everywhere; `left_out` which runs
//!   say something about their target.
//! * `ab`: two sides compared, metric by metric, and whether it is noise; `ab::doubts` is what
//!   speaks against comparing them.
//! * `probe`, `evaluation`, `trace`: what a few queries showed, servers side by side, the way to
//!   a server; `line`: what a delay line did.
//! * `observation`: server and host metrics during the run, on the run's clock, in bounded memory.
//! * `agent_counts`: counts of one of several agents; `agent_series`: the same over time, in few
//!   figures; `absent`: agents that a run began without; `degraded`: the part of a run after the
//!   loss of an agent.
//! * `steady_state`: how a run began, what it sustained and whether it drifted, from the
//!   intervals of any record.
//! * `statistics`: statistics of runs and of intervals: medians, bootstrap, rank tests, trends,
//!   noise floors; the distributions are those of crate `statrs`.
//! * `notation`: how numbers are written for people; `printable`: text of others, made visible.

#![forbid(unsafe_code)]

pub mod ab;
pub mod abort;
mod aborted;
pub mod absent;
mod achieved;
mod agent_counts;
pub mod agent_series;
pub mod around;
pub mod capacity;
pub mod client_latency;
pub mod comparison;
mod conclusions;
pub mod condition;
pub mod counts;
pub mod degraded;
pub mod doctor;
pub mod evaluation;
pub mod event;
pub mod experience;
pub mod facts;
pub mod histogram;
pub mod instances;
pub mod internet;
pub mod interval;
pub mod intervals;
pub mod left_out;
mod limit;
pub mod line;
pub mod losses_by_question;
pub mod merge;
pub mod metric;
pub mod notation;
pub mod observation;
mod outages;
mod outcome;
pub mod over_runs;
mod printable;
pub mod probe;
pub mod ramp;
pub mod record;
mod rules;
pub mod scenario;
pub mod scope;
pub mod script;
pub mod simulation;
pub mod statistics;
pub mod steady_state;
pub mod summary;
mod symptoms;
pub mod target;
pub mod timeline;
pub mod trace;

#[cfg(test)]
#[path = "../tests/conforms/mod.rs"]
mod conforms;
#[cfg(test)]
pub mod example;
/// The name that other crates have for this one: `example` is a module of crate testing too.
#[cfg(test)]
extern crate self as measure;
mod zero;

pub use ab::AbComparison;
pub use aborted::Aborted;
pub use absent::AbsentAgent;
pub use agent_counts::AgentCounts;
pub use agent_series::AgentSeries;
pub use around::Around;
pub use capacity::Capacity;
pub use comparison::Comparison;
pub use counts::Counts;
pub use degraded::{Degraded, LostAgent};
pub use evaluation::Evaluation;
pub use event::Event;
pub use experience::{ClientExperience, ClientFigures, GroupRecord};
pub use facts::{HostFacts, NetworkFacts, ResponderFacts, WorkerFacts};
pub use histogram::Histogram;
pub use interval::{ConnectionTimes, Distributions, Interval, PathTimes};
pub use intervals::Intervals;
pub use limit::{Limit, Verdict};
pub use merge::merge;
pub use metric::Metric;
pub use observation::Observation;
pub use over_runs::OverRuns;
pub use printable::printable;
pub use probe::ProbeStatistics;
pub use ramp::Ramp;
pub use record::{EndedBy, Phases, RunRecord};
pub use rules::{judge, verdict_document};
pub use scenario::{
    Arrival, ConnectionPolicy, DriverKind, HttpMethod, HttpRequest, HttpScheme, Process,
    QuestionChoice, QuestionOrder, Questions, ScenarioRecord, StampSource, StubPolicy, TlsFacts,
    TlsSettings, Transport, Transports,
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
