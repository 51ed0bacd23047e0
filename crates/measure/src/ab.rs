//! Two sides compared: is B slower than A, or is it noise?
//!
//! Each side is one run or several of the same thing. Of each metric there is the median of either
//! side, the change with its interval of confidence, a test, the effect size, the noise floor, and
//! a [`Finding`]. Rates and times are compared by their logarithms, so a change is a ratio; shares
//! by their difference.
//!
//! The comparison depends on the available data, and not on its values:
//!
//! * *six runs a side or more*: medians, a bootstrap interval (of pairs, where the runs alternate
//!   in time), the rank test of Mann and Whitney;
//! * *two to five runs a side*: Welch's interval and test, because ranks of so few decide nothing;
//! * *one run a side*: blocks of intervals, as long as neighbours have to do with each other. They
//!   show the noise within a run; that between runs comes from runs of A compared with A, or is
//!   [assumed](ASSUMED_NOISE) to be great.
//!
//! The change is that of the two medians that stand beside it, and its interval holds it. The
//! interval is no narrower than the steps of the histograms, and takes no share below 0 or above 1.
//! Where a side has measured the generator, no difference of the target is claimed.
//!
//! P-values are corrected for the number of metrics (Holm). A metric is *slower* or *faster* if the
//! test says so, the interval excludes no change, and the change exceeds the noise floor; it is
//! *same* if the whole interval is within [`Settings::same_within`]; else the runs *cannot tell*.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limit::Limit;
use crate::metric::{Metric, Unit};
use crate::outcome::ConditionRecord;
use crate::record::RunRecord;
use crate::statistics::{Bootstrap, ConfidenceInterval};

mod blocks;
mod check;
mod doubts;
mod judge;
mod sides;
#[cfg(test)]
mod tests;

pub use doubts::{Doubts, doubts};

/// Version of the comparison's JSON form; changes when an older reader could misread it.
pub const AB_VERSION: &str = "1";

/// By how much single runs of the same thing are taken to differ where no run has shown it: to the
/// double, or to half. Pairs of A and A on a host that does other things too come to lie as far
/// apart, and nothing within a run shows it.
pub const ASSUMED_NOISE: f64 = 1.0;

/// The same for tails and what they move (p90 and above, mean, maximum): to four times as much.
pub const ASSUMED_NOISE_OF_TAILS: f64 = 3.0;

/// The same for shares such as the loss, in points: 5 %.
pub const ASSUMED_NOISE_OF_SHARES: f64 = 0.05;

/// Differences of shares up to 0.01 points are no difference.
pub const SAME_SHARE: f64 = 0.000_1;

/// One side as input.
#[derive(Clone, Debug)]
pub struct Side<'a> {
    /// Its name: a file, a folder.
    pub label: String,
    /// Its runs with the files that keep them.
    pub runs: Vec<(String, &'a RunRecord)>,
}

/// How to compare.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The metrics; those that neither side measured are left out.
    pub metrics: Vec<Metric>,
    /// A change up to this share is insignificant.
    pub same_within: f64,
    /// Intervals and noise floors.
    pub bootstrap: Bootstrap,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            metrics: vec![
                Metric::Qps,
                Metric::Goodput,
                Metric::Loss,
                Metric::P50,
                Metric::P95,
                Metric::P99,
                Metric::Connect,
                Metric::Handshake,
                Metric::Cpu,
            ],
            same_within: 0.02,
            bootstrap: Bootstrap::default(),
            seed: 1,
        }
    }
}

/// The result of comparing two sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AbComparison {
    /// Version of this form: [`AB_VERSION`].
    #[schemars(extend("const" = AB_VERSION))]
    pub ab_version: String,
    /// What B is compared with.
    pub a: SideRecord,
    /// What is compared.
    pub b: SideRecord,
    /// Where intervals and tests come from.
    pub method: Method,
    /// The share up to which a change is none.
    pub same_within: f64,
    /// Coverage of the intervals; 1 minus this is the chance of a false alarm of all metrics
    /// together.
    pub level: f64,
    /// Where the noise floors come from.
    pub noise: Noise,
    /// The finding for B as a whole.
    pub finding: Finding,
    /// Metric by metric.
    pub metrics: Vec<MetricRecord>,
    /// The results of `--fail-if` and `--require`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionRecord>,
    /// What a reader must know before believing it, one sentence each.
    pub notes: Vec<String>,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SideRecord {
    /// What it is called.
    pub label: String,
    /// What its runs were, in words.
    pub what: String,
    /// Its runs.
    pub runs: Vec<SideRun>,
}

/// One run of a side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SideRun {
    /// The file that keeps its record.
    pub record: String,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// What limited it.
    pub limit: Limit,
}

/// Where intervals and tests come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Runs that alternate in time: bootstrap of pairs, rank test.
    PairedRuns,
    /// Runs of either side by themselves: bootstrap, rank test.
    Runs,
    /// Two to five runs: Welch's test.
    FewRuns,
    /// One run a side: blocks of that many intervals.
    Blocks(u64),
    /// One run a side with too few intervals, or a single run against several.
    None,
}

/// Where noise floors come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Noise {
    /// From how far the runs of a side lie apart.
    Spread,
    /// From that many runs of A compared with A.
    Measured(u64),
    /// It was not measured; see [`ASSUMED_NOISE`].
    Assumed,
}

/// The finding for a metric, or for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// B is worse.
    Slower,
    /// No difference worth telling.
    Same,
    /// B is better.
    Faster,
    /// Of several metrics: B is better in some and worse in others.
    Mixed,
    /// The runs allow no conclusion.
    #[default]
    CannotTell,
}

/// One metric on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricRecord {
    /// The metric.
    pub metric: Metric,
    /// Its values in the runs of A.
    pub a: Values,
    /// Its values in the runs of B.
    pub b: Values,
    /// By how much B lies above A: of shares their difference, of all else a share of A.
    pub change: Option<f64>,
    /// Lower end of the interval of the change.
    pub change_low: Option<f64>,
    /// Its upper end.
    pub change_high: Option<f64>,
    /// Probability of such a change by chance; none if nothing was tested.
    pub p_value: Option<f64>,
    /// The same, corrected for the number of metrics.
    pub p_value_corrected: Option<f64>,
    /// Cliff's delta of the runs, or of the blocks of one: -1 all of B below A, 1 all above.
    pub cliffs_delta: Option<f64>,
    /// Changes up to this size happen between runs of the same thing.
    pub noise_floor: Option<f64>,
    /// What was found.
    pub finding: Finding,
    /// Why the runs do not show it, or what else to know.
    pub reason: Option<String>,
}

/// A metric over the runs of a side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Values {
    /// The median.
    pub median: Option<f64>,
    /// The least.
    pub min: Option<f64>,
    /// The greatest.
    pub max: Option<f64>,
    /// All, in the order of the runs; none where a run did not measure it.
    pub runs: Vec<Option<f64>>,
}

impl Finding {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Finding::Slower => "slower",
            Finding::Same => "same",
            Finding::Faster => "faster",
            Finding::Mixed => "mixed",
            Finding::CannotTell => "cannot tell",
        }
    }
}

impl SideRecord {
    /// True if the generator limited half of the runs or more: their figures are not the target's.
    pub fn measured_generator(&self) -> bool {
        let of_generator = self.runs.iter().filter(|run| run.limit == Limit::Generator);
        let number = of_generator.count();
        number > 0 && 2 * number >= self.runs.len()
    }
}

impl MetricRecord {
    /// What was found, in the words that fit the metric.
    pub fn words(&self) -> &'static str {
        match (self.metric, self.finding) {
            (Metric::Loss, Finding::Slower) => "more lost",
            (Metric::Loss, Finding::Faster) => "less lost",
            (Metric::Cpu, Finding::Slower) => "more",
            (Metric::Cpu, Finding::Faster) => "less",
            (_, finding) => finding.words(),
        }
    }
}

/// Statistics of one metric, on the scale on which it is compared.
#[derive(Clone, Copy, Debug)]
struct Reckoned {
    difference: f64,
    interval: Option<ConfidenceInterval>,
    p_value: Option<f64>,
    delta: Option<f64>,
    floor: Option<f64>,
}

/// The scale on which values of a metric are compared: there a difference is what matters.
fn scaled(metric: Metric, value: f64) -> Option<f64> {
    match metric.unit() {
        Unit::Share => Some(value),
        _ => (value > 0.0).then(|| value.ln()),
    }
}

/// A difference on that scale as a change.
fn change_of(metric: Metric, difference: f64) -> f64 {
    match metric.unit() {
        Unit::Share => difference,
        _ => difference.exp_m1(),
    }
}

/// A change as a difference on that scale.
fn difference_of(metric: Metric, change: f64) -> f64 {
    match metric.unit() {
        Unit::Share => change,
        _ => change.ln_1p(),
    }
}

impl AbComparison {
    /// Compares B with A. `noise` are runs of one thing, which tell how far such runs lie apart.
    /// Neither side may be empty.
    pub fn new(a: &Side<'_>, b: &Side<'_>, noise: &[&RunRecord], settings: &Settings) -> Self {
        judge::compare(a, b, noise, settings)
    }

    /// The comparison as JSON with one field a line.
    pub fn to_json_pretty(&self) -> String {
        serde_json::to_string_pretty(self).expect("all keys are strings and memory takes it")
    }

    /// Its JSON Schema (2020-12).
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(AbComparison).to_value()
    }

    /// The record of a metric, if it was compared.
    pub fn of(&self, metric: Metric) -> Option<&MetricRecord> {
        self.metrics.iter().find(|each| each.metric == metric)
    }

    /// Which sides measured the generator, so that nothing is known of the target: `A and B`. None
    /// if neither did.
    pub fn of_generator(&self) -> Option<&'static str> {
        match (self.a.measured_generator(), self.b.measured_generator()) {
            (true, true) => Some("A and B"),
            (true, false) => Some("A"),
            (false, true) => Some("B"),
            (false, false) => None,
        }
    }

    /// What was found, in a sentence.
    pub fn headline(&self) -> String {
        if let Some(sides) = self.of_generator() {
            return format!("inconclusive: {sides} measured the generator, not the target");
        }
        let of = |finding: Finding| -> String {
            let metrics = self.metrics.iter();
            let found = metrics.filter(|each| each.finding == finding);
            let found = found.filter(|each| each.metric.is_of_target());
            let words = found.map(|each| {
                let change = each.change.map(|change| each.metric.show_change(change));
                format!("{} {}", each.metric.name(), change.unwrap_or_default())
            });
            words.collect::<Vec<String>>().join(", ")
        };
        let (slower, faster) = (of(Finding::Slower), of(Finding::Faster));
        match self.finding {
            Finding::Slower => format!("B is slower than A: {slower}"),
            Finding::Faster => format!("B is faster than A: {faster}"),
            Finding::Mixed => format!("B is slower in {slower}; and faster in {faster}"),
            Finding::Same => format!(
                "B is the same as A: no difference above {:.1} %",
                100.0 * self.same_within
            ),
            Finding::CannotTell => "B cannot be distinguished from A".into(),
        }
    }
}
