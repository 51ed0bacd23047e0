//! Transports compared: the same load over each in turn, and what each step costs.
//!
//! Every figure of a run is taken from its own record. Of several runs of a transport the figure is
//! what it is everywhere ([`OverRuns`]), with the least and the greatest that a run has measured.
//! Means and medians of latency are kept apart throughout.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::per;
use crate::limit::Limit;
use crate::metric::Metric;
use crate::outcome::ConditionRecord;
use crate::over_runs::OverRuns;
use crate::record::RunRecord;
use crate::scenario::{Arrival, ScenarioRecord, Transports};

mod cost;
#[cfg(test)]
mod tests;

pub use cost::{Change, Cost};

/// Version of the comparison's JSON form; changes when an older reader could misread it.
pub const COMPARISON_VERSION: &str = "1";

/// One run of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'a> {
    /// What it measured.
    pub record: &'a RunRecord,
    /// The file that keeps the record; none if none does.
    pub file: Option<&'a str>,
}

/// The same load over several transports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Version of this form: [`COMPARISON_VERSION`].
    #[schemars(extend("const" = COMPARISON_VERSION))]
    pub comparison_version: String,
    /// Version of the binary that ran it.
    pub throng_version: String,
    /// The target was the responder built into this binary.
    pub self_test: bool,
    /// The scenario of the first run; those of the others differ in the transport and what
    /// belongs to it.
    pub scenario: ScenarioRecord,
    /// The transports in the order in which they were named, each once.
    pub transports: Vec<Contender>,
    /// From each transport to the next, then from the first to each that is not next to it.
    pub costs: Vec<Cost>,
    /// Whether the figures decide what each transport costs against the first: passed where they
    /// do, else undecided.
    #[serde(default)]
    pub decisions: Vec<ConditionRecord>,
    /// What a reader must know before believing the figures, one sentence each.
    pub notes: Vec<String>,
}

/// One transport with its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contender {
    /// The transport.
    pub transport: Transports,
    /// Address and port it was measured at.
    pub target: String,
    /// Its runs in the order in which they were made.
    pub runs: Vec<ComparedRun>,
    /// The figures of the runs together ([`OverRuns`]): medians, but losses of all their queries.
    /// Runs that are left out have no part in it, nor in the least and the greatest. Where all are,
    /// there is a rate alone.
    pub median: Figures,
    /// The least of the runs, of each figure by itself.
    pub min: Figures,
    /// The greatest of the runs, of each figure by itself.
    pub max: Figures,
}

/// One run of one transport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedRun {
    /// Its position among all runs of the comparison, from 1.
    pub position: u64,
    /// The file that keeps its record; none if none does.
    pub record: Option<String>,
    /// What it measured.
    pub figures: Figures,
    /// What limited it.
    pub limit: Limit,
    /// The decisive evidence for that.
    pub evidence: String,
    /// Why its figures say nothing about the target and are left out of those of the runs
    /// together; none if they count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// The figures that are compared. A latency without a response is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Responses a second, as a run's record counts them.
    pub achieved_qps: f64,
    /// True if the target can do that at least: all runs were left out, and this is the highest of
    /// their rates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub achieved_is_at_least: bool,
    /// Share of the offered queries that got no response, 0 to 1; without meaning where
    /// `achieved_is_at_least`.
    pub lost_share: f64,
    /// Mean latency from the scheduled instant, nanoseconds.
    pub latency_mean_ns: Option<f64>,
    /// Its median.
    pub latency_p50_ns: Option<f64>,
    /// Its 95th percentile.
    pub latency_p95_ns: Option<f64>,
    /// Its 99th percentile.
    pub latency_p99_ns: Option<f64>,
    /// TLS or QUIC handshakes a second within the window; none without any.
    pub handshakes_per_second: Option<f64>,
    /// Median of TCP connection set-up; none without TCP.
    pub tcp_connect_p50_ns: Option<f64>,
    /// Median of full TLS or QUIC handshakes; none without any.
    pub handshake_p50_ns: Option<f64>,
}

impl Figures {
    /// The figures of one record.
    pub fn of(record: &RunRecord) -> Self {
        let latency = &record.total.distributions.latency;
        let times = record.connection_times();
        let handshakes = record.handshakes_per_second();
        let whole = |ns: Option<u64>| ns.map(|ns| ns as f64);
        let handshake = times.tls_handshake.percentile(0.5);
        Figures {
            achieved_qps: record.achieved_qps(),
            achieved_is_at_least: false,
            lost_share: record.lost_share(),
            latency_mean_ns: latency.mean_ns(),
            latency_p50_ns: whole(latency.percentile(0.5)),
            latency_p95_ns: whole(latency.percentile(0.95)),
            latency_p99_ns: whole(latency.percentile(0.99)),
            handshakes_per_second: (handshakes > 0.0).then_some(handshakes),
            tcp_connect_p50_ns: whole(times.tcp_connect.percentile(0.5)),
            handshake_p50_ns: whole(handshake.or_else(|| times.quic_handshake.percentile(0.5))),
        }
    }

    /// One value of each figure, chosen from what it is over the runs.
    fn choose(runs: &[ComparedRun], choice: impl Fn(OverRuns) -> f64) -> Self {
        let counted = runs.iter().filter(|run| run.left_out.is_none());
        let counted: Vec<&ComparedRun> = counted.collect();
        if counted.is_empty() {
            let rates = runs.iter().map(|run| run.figures.achieved_qps);
            return Figures {
                achieved_qps: rates.reduce(f64::max).unwrap_or(0.0),
                achieved_is_at_least: true,
                ..Figures::default()
            };
        }
        let of = |figure: fn(&Figures) -> Option<f64>| {
            let values = counted.iter().filter_map(|run| figure(&run.figures));
            OverRuns::median(values).map(&choice)
        };
        Figures {
            achieved_qps: of(|it| Some(it.achieved_qps)).unwrap_or(0.0),
            achieved_is_at_least: false,
            lost_share: of(|it| Some(it.lost_share)).unwrap_or(0.0),
            latency_mean_ns: of(|it| it.latency_mean_ns),
            latency_p50_ns: of(|it| it.latency_p50_ns),
            latency_p95_ns: of(|it| it.latency_p95_ns),
            latency_p99_ns: of(|it| it.latency_p99_ns),
            handshakes_per_second: of(|it| it.handshakes_per_second),
            tcp_connect_p50_ns: of(|it| it.tcp_connect_p50_ns),
            handshake_p50_ns: of(|it| it.handshake_p50_ns),
        }
    }
}

impl Contender {
    fn new(transport: Transports, target: String, runs: Vec<ComparedRun>) -> Self {
        Contender {
            transport,
            target,
            median: Figures::choose(&runs, |it| it.value),
            min: Figures::choose(&runs, |it| it.min),
            max: Figures::choose(&runs, |it| it.max),
            runs,
        }
    }

    /// Runs that `limit` limited.
    pub fn limited_by(&self, limit: Limit) -> usize {
        self.runs.iter().filter(|run| run.limit == limit).count()
    }

    /// The limit of some of its runs that may not be the target's, in words.
    fn doubtful_limit(&self) -> Option<String> {
        let mut limits = self.runs.iter().map(|run| run.limit);
        let limit = limits.find(|limit| limit.is_doubtful())?;
        let (some, all) = (self.limited_by(limit), runs(self.runs.len()));
        let (transport, limit) = (self.transport, limit.name());
        Some(format!(
            "{transport}: the limit is {limit} in {some} of {all}"
        ))
    }
}

impl Comparison {
    /// Compares the runs, given in the order in which they were made. The first transport is what
    /// the others are compared with. None without a run.
    pub fn new(cells: &[Cell<'_>]) -> Option<Comparison> {
        let first = cells.first()?.record;
        let mut names: Vec<Transports> = Vec::new();
        for cell in cells {
            let transport = cell.record.scenario.transport;
            if !names.contains(&transport) {
                names.push(transport);
            }
        }
        let transports: Vec<Contender> = names
            .into_iter()
            .map(|transport| contender(transport, cells))
            .collect();
        let mut comparison = Comparison {
            comparison_version: COMPARISON_VERSION.into(),
            throng_version: first.throng_version.clone(),
            self_test: cells.iter().any(|cell| cell.record.self_test),
            scenario: first.scenario.clone(),
            costs: cost::all(
                &transports,
                cells.iter().any(|cell| has_rate(&cell.record.scenario)),
            ),
            transports,
            decisions: Vec::new(),
            notes: Vec::new(),
        };
        comparison.decisions = comparison.decide();
        comparison.notes = notes(&comparison, cells);
        Some(comparison)
    }

    /// Its JSON Schema (2020-12).
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Comparison).to_value()
    }

    /// Not decided where a limit was the generator or is unknown, nor where the ranges of the rates
    /// overlap.
    fn decide(&self) -> Vec<ConditionRecord> {
        let Some((first, others)) = self.transports.split_first() else {
            return Vec::new();
        };
        let against = |other: &Contender| {
            let mut costs = self.costs.iter();
            let cost = costs.find(|it| (it.from, it.to) == (first.transport, other.transport));
            let overlap = cost.is_some_and(|it| it.ranges_overlap == Some(true));
            let overlap = (overlap && !self.has_rate()).then(|| "the rates overlap".to_owned());
            let doubt = [first, other]
                .into_iter()
                .find_map(Contender::doubtful_limit);
            let doubt = doubt.or(overlap);
            ConditionRecord::of_result(
                format!("{} against {}", other.transport, first.transport),
                doubt.is_none(),
                doubt.unwrap_or_else(|| "the runs are of the target".to_owned()),
            )
        };
        others.iter().map(against).collect()
    }

    /// True if the rate was given: then what was achieved is no capacity, and has no factors.
    pub fn has_rate(&self) -> bool {
        has_rate(&self.scenario)
    }

    /// The comparison as JSON with one field a line.
    pub fn to_json_pretty(&self) -> String {
        serde_json::to_string_pretty(self).expect("all keys are strings and memory takes it")
    }
}

/// True if queries came at a rate that was given, whatever the target can take.
fn has_rate(scenario: &ScenarioRecord) -> bool {
    match scenario.arrival {
        Arrival::Open { .. } => true,
        Arrival::Clients { rate_qps } => rate_qps.is_some(),
        Arrival::Closed { .. } => false,
    }
}

fn contender(transport: Transports, cells: &[Cell<'_>]) -> Contender {
    let mut target = String::new();
    let mut runs = Vec::new();
    let mut counted = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let record = cell.record;
        if record.scenario.transport != transport {
            continue;
        }
        target.clone_from(&record.scenario.target);
        let left_out = record.why_left_out();
        if left_out.is_none() {
            counted.push(record);
        }
        runs.push(ComparedRun {
            position: index as u64 + 1,
            record: cell.file.map(str::to_owned),
            figures: Figures::of(record),
            limit: record.verdict.limit,
            evidence: record.verdict.evidence.first().cloned().unwrap_or_default(),
            left_out,
        });
    }
    let mut contender = Contender::new(transport, target, runs);
    if let Some(loss) = Metric::Loss.over_runs(counted) {
        contender.median.lost_share = loss.value;
    }
    contender
}

/// Share of the places from which on all of them are in use, and latency is theirs.
const FULL: f64 = 0.9;

fn notes(comparison: &Comparison, cells: &[Cell<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    for contender in &comparison.transports {
        let left_out = contender.runs.iter().filter(|run| run.left_out.is_some());
        let left_out = left_out.count();
        if left_out > 0 {
            notes.push(format!(
                "{} measured the generator or its host, not the target, in {left_out} of {}: left \
                 out of the figures",
                contender.transport,
                runs(contender.runs.len())
            ));
        }
    }
    let is_full = |record: &RunRecord| match record.scenario.arrival {
        Arrival::Closed { outstanding, .. } => {
            per(record.mean_in_flight(), outstanding as f64) >= FULL
        }
        Arrival::Open { .. } | Arrival::Clients { .. } => false,
    };
    if cells.iter().any(|cell| is_full(cell.record)) {
        notes.push(
            "closed loop with all outstanding queries in use: mean latency is outstanding / rate, \
                so it says the same as the rate; for the latency of each transport run with --rate"
                .into(),
        );
    }
    let fewest = comparison.transports.iter().map(|each| each.runs.len());
    if fewest.min() < Some(2) {
        notes.push("one run of a transport shows no spread: --repeat 5".into());
    }
    if comparison.self_test {
        notes.push(
            "the target is the responder built into this tool: the costs are those of both, not \
             of a server"
                .into(),
        );
    }
    notes
}

fn runs(number: usize) -> String {
    crate::notation::counted(number as u64, "run")
}
