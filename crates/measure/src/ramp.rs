//! A ramp: a rate that grows from nothing until the target cannot follow, or a limit is met.
//!
//! Each point of a ramp is one interval of its run. Responses count when they came; losses count
//! when the lost queries were due, once all have been answered or given up. During a ramp that is
//! not known yet: it is stopped by responses missing at the end of a point. (resperf counts
//! responses where their queries were sent, after waiting for all of them.)

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::{Interval, per};
use crate::limit::Verdict;
use crate::notation::latency;
use crate::outcome::ConditionRecord;
use crate::record::RunRecord;
use crate::scenario::{DriverKind, ScenarioRecord};

#[cfg(test)]
mod tests;

/// Version of the document's JSON form; changes when an older reader could misread it.
pub const RAMP_VERSION: &str = "1";

/// The result of a ramp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// Version of this form: [`RAMP_VERSION`].
    #[schemars(extend("const" = RAMP_VERSION))]
    pub ramp_version: String,
    /// Version of the binary that ran it.
    pub throng_version: String,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// What sent and received the data.
    pub driver: DriverKind,
    /// The target was the responder built into this binary.
    pub self_test: bool,
    /// The scenario as run.
    pub scenario: ScenarioRecord,
    /// What was asked for.
    pub plan: RampPlan,
    /// Why it ended.
    pub ended_by: Stop,
    /// The point with the most responses a second, of those before too many were lost; none
    /// without a response.
    pub peak: Option<Peak>,
    /// Queries sent, responses, and queries sent without response, all of the ramp.
    pub sent: u64,
    /// Responses to them, those that came after the ramp included.
    pub responses: u64,
    /// Queries sent that got no response in time.
    pub lost: u64,
    /// What limited it, by the verdict of its run.
    pub verdict: Verdict,
    /// The points measured, in order.
    pub points: Vec<Point>,
    /// Whether the result says what it was measured for: passed where it does, else undecided.
    #[serde(default)]
    pub decisions: Vec<ConditionRecord>,
    /// What a reader must know, one sentence each.
    pub notes: Vec<String>,
}

/// The settings of a ramp.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RampPlan {
    /// The highest rate, queries a second.
    pub rate_qps_max: f64,
    /// How long the rate grows.
    pub ramp_ns: u64,
    /// How long it then stays.
    pub sustain_ns: u64,
    /// Length of one point; of a ramp of more than 1,024 of them, several are merged into one.
    pub point_ns: u64,
    /// The ramp stops when that number of queries is outstanding.
    pub outstanding_max: u64,
    /// The ramp stops when that number of queries that are due has not been sent; none for no
    /// limit.
    pub behind_max: Option<u64>,
    /// The ramp stops, and the peak is looked for before, when more than this share of the queries
    /// of a point stays without response, 0 to 1.
    pub lost_share_max: f64,
    /// The ramp continues whatever is lost.
    pub ignores_losses: bool,
}

/// Why a ramp ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It had reached its end.
    Completed,
    /// That number of queries was outstanding.
    Outstanding(u64),
    /// That number of queries that were due had not been sent.
    Behind(u64),
    /// This share of the queries of a point, and of the one before too many, had no response.
    Lost(f64),
    /// The questions were used up.
    Questions,
    /// The user interrupted it.
    Interrupted,
}

/// The point with the most responses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peak {
    /// When it began, nanoseconds since the start.
    pub start_ns: u64,
    /// Responses a second.
    pub responses_qps: f64,
    /// Share of its queries without response then.
    pub lost_share: f64,
}

/// One point of a ramp.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// When it began, nanoseconds since the start.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// The rate wanted in its middle, queries a second.
    pub target_qps: f64,
    /// Queries sent a second.
    pub sent_qps: f64,
    /// Responses a second.
    pub responses_qps: f64,
    /// Responses a second with an RCODE outside of the goodput set.
    pub failures_qps: f64,
    /// Share of the queries due in it that got no response. In records without a timeline: that
    /// had none when it ended, less those of before that got theirs in it.
    pub lost_share: f64,
    /// Mean time from sending to response, nanoseconds; none without a response.
    pub service_mean_ns: Option<f64>,
    /// Median latency from the scheduled instant, nanoseconds; none without a response.
    pub latency_p50_ns: Option<u64>,
    /// Its 99th percentile.
    pub latency_p99_ns: Option<u64>,
    /// Connections established a second.
    pub connections_per_second: f64,
    /// Their mean set-up time, nanoseconds; none without one.
    pub connect_mean_ns: Option<f64>,
}

impl RampPlan {
    /// The rate wanted at that time since the start, queries a second.
    pub fn rate_qps_at(&self, at_ns: u64) -> f64 {
        match at_ns < self.ramp_ns {
            true => self.rate_qps_max * at_ns as f64 / self.ramp_ns as f64,
            false => self.rate_qps_max,
        }
    }

    /// Queries due until then.
    pub fn due_until(&self, at_ns: u64) -> f64 {
        let ramp_ns = at_ns.min(self.ramp_ns);
        let end_ns = self.ramp_ns + self.sustain_ns;
        let growing = self.rate_qps_at(ramp_ns.min(self.ramp_ns.saturating_sub(1))) / 2.0;
        let constant_ns = at_ns.min(end_ns) - ramp_ns;
        (growing * ramp_ns as f64 + self.rate_qps_max * constant_ns as f64) / 1e9
    }

    /// Length of the whole ramp.
    pub fn length_ns(&self) -> u64 {
        self.ramp_ns + self.sustain_ns
    }
}

/// Observes a ramp in progress, and decides when it has to stop.
#[derive(Clone, Debug)]
pub struct Watch {
    plan: RampPlan,
    counted: Interval,
    /// Counts of the current point.
    point: Interval,
    is_lossy: bool,
}

/// A point of fewer queries says nothing about losses.
const QUERIES_MIN: u64 = 100;

impl Watch {
    /// For a ramp that has not begun.
    pub fn new(plan: RampPlan) -> Self {
        Watch {
            plan,
            counted: Interval::default(),
            point: Interval::default(),
            is_lossy: false,
        }
    }

    /// Takes in the next interval; why the ramp has to stop, if it has.
    pub fn look(&mut self, interval: &Interval) -> Option<Stop> {
        let plan = self.plan;
        self.counted.counts.add(&interval.counts);
        let counts = &self.counted.counts;
        let ended = counts.responses
            + counts.timeouts
            + counts.connection_losses
            + counts.exchange_failures.total();
        let outstanding = counts.sent.saturating_sub(ended);
        if outstanding >= plan.outstanding_max || counts.not_sent.no_free_id > 0 {
            return Some(Stop::Outstanding(outstanding));
        }
        if interval.start_ns >= plan.length_ns() {
            return None;
        }
        let dealt_with = counts.sent + counts.not_sent.total();
        let behind = plan.due_until(interval.end_ns) - dealt_with as f64;
        if plan.behind_max.is_some_and(|most| behind >= most as f64) {
            return Some(Stop::Behind(behind as u64));
        }
        self.lost(interval)
    }

    /// Two points in succession that lose too many: the responses of one may come in the next.
    fn lost(&mut self, interval: &Interval) -> Option<Stop> {
        if self.point.end_ns == 0 {
            self.point.start_ns = interval.start_ns;
        }
        self.point.append_in_time(interval);
        if self.point.length_ns() < self.plan.point_ns {
            return None;
        }
        let share = lost_share(&self.point);
        let is_lossy = share > self.plan.lost_share_max
            && self.point.counts.sent >= QUERIES_MIN
            && !self.plan.ignores_losses;
        let stops = is_lossy && self.is_lossy;
        self.is_lossy = is_lossy;
        self.point = Interval::default();
        stops.then_some(Stop::Lost(share))
    }
}

/// Share of an interval's queries that are missing among its responses.
fn lost_share(interval: &Interval) -> f64 {
    let counts = &interval.counts;
    let missing = counts.sent.saturating_sub(counts.responses);
    per(missing as f64, counts.sent as f64)
}

/// The points of a ramp: whole ones only, up to when it stopped.
pub fn points(plan: &RampPlan, intervals: &[Interval], goodput_rcodes: &[u16]) -> Vec<Point> {
    let mut points = Vec::new();
    let mut next: Option<Interval> = None;
    for interval in intervals {
        if interval.end_ns > plan.length_ns() {
            break;
        }
        let merged = match next.take() {
            None => interval.clone(),
            Some(mut merged) => {
                merged.append_in_time(interval);
                merged
            }
        };
        match merged.length_ns() >= plan.point_ns {
            true => points.push(point(plan, &merged, goodput_rcodes)),
            false => next = Some(merged),
        }
    }
    points
}

fn point(plan: &RampPlan, interval: &Interval, goodput_rcodes: &[u16]) -> Point {
    let (counts, times) = (&interval.counts, &interval.distributions);
    let middle_ns = (interval.start_ns + interval.end_ns) / 2;
    let connect = &times.connections.tcp_connect;
    Point {
        start_ns: interval.start_ns,
        end_ns: interval.end_ns,
        target_qps: plan.rate_qps_at(middle_ns),
        sent_qps: interval.per_second(counts.sent),
        responses_qps: interval.per_second(counts.responses),
        failures_qps: interval.per_second(counts.failures(goodput_rcodes)),
        lost_share: lost_share(interval),
        service_mean_ns: times.service.mean_ns(),
        latency_p50_ns: times.latency.percentile(0.5),
        latency_p99_ns: times.latency.percentile(0.99),
        connections_per_second: interval.per_second(counts.connections.established),
        connect_mean_ns: connect.mean_ns(),
    }
}

/// The point with the most responses before one loses more than `lost_share_max`.
pub fn peak(points: &[Point], lost_share_max: f64) -> Option<Peak> {
    let kept = points.iter();
    let kept = kept.take_while(|point| point.lost_share <= lost_share_max);
    let most = kept.max_by(|a, b| a.responses_qps.total_cmp(&b.responses_qps));
    let most = most.filter(|point| point.responses_qps > 0.0);
    most.map(|point| Peak {
        start_ns: point.start_ns,
        responses_qps: point.responses_qps,
        lost_share: point.lost_share,
    })
}

impl Ramp {
    /// What `record` showed; `stop` is why the ramp was stopped, if it was.
    pub fn new(plan: &RampPlan, record: &RunRecord, stop: Option<Stop>) -> Self {
        let mut watch = Watch::new(*plan);
        // Where nothing could be stopped on the way, all that comes after the stop is left out.
        let stopped = record
            .intervals
            .iter()
            .position(|it| watch.look(it).is_some());
        let kept = stopped.map_or(record.intervals.len(), |index| index + 1);
        let found = stopped.and_then(|index| {
            let mut watch = Watch::new(*plan);
            let looks = record.intervals[..=index].iter();
            looks.filter_map(|it| watch.look(it)).last()
        });
        let mut points = points(
            plan,
            &record.intervals[..kept],
            &record.scenario.goodput_rcodes,
        );
        if let Some(timeline) = &record.timeline {
            let each = points.iter_mut();
            each.for_each(|point| {
                point.lost_share = timeline.lost_share(point.start_ns, point.end_ns)
            });
        }
        let counts = &record.total.counts;
        let ended_by = stop.or(found).unwrap_or(match record.ended_by {
            crate::record::EndedBy::Interrupted => Stop::Interrupted,
            crate::record::EndedBy::Queries => Stop::Questions,
            _ => Stop::Completed,
        });
        Ramp {
            ramp_version: RAMP_VERSION.into(),
            throng_version: record.throng_version.clone(),
            started_at: record.started_at.clone(),
            driver: record.driver,
            self_test: record.self_test,
            scenario: record.scenario.clone(),
            plan: *plan,
            ended_by,
            peak: peak(&points, plan.lost_share_max),
            sent: counts.sent,
            responses: counts.responses,
            lost: counts.lost() - counts.not_sent.total(),
            verdict: record.verdict.clone(),
            decisions: vec![decision(&record.verdict)],
            notes: notes(plan, record),
            points,
        }
    }

    /// The document as JSON with one field a line.
    pub fn to_json_pretty(&self) -> String {
        serde_json::to_string_pretty(self).expect("all keys are strings and memory takes it")
    }

    /// Its JSON Schema (2020-12).
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Ramp).to_value()
    }
}

/// Whether the ramp says something about the target.
fn decision(verdict: &Verdict) -> ConditionRecord {
    let limit = (verdict.limit, verdict.evidence.as_slice());
    ConditionRecord::of_limit(
        "the ramp found a limit",
        !verdict.limit.is_doubtful(),
        limit,
    )
}

fn notes(plan: &RampPlan, record: &RunRecord) -> Vec<String> {
    let mut notes = vec![
        "a ramp is at every rate for a moment only: it shows where to look; `throng capacity` \
         says what is sustained"
            .to_owned(),
    ];
    if record.driver == DriverKind::Sim {
        notes.push("SIMULATION: no server was measured".into());
    }
    if record.interval_ns() > plan.point_ns {
        notes.push(format!(
            "the ramp is so long that its points were merged: each is of {}",
            latency(record.interval_ns() as f64)
        ));
    }
    notes.extend(record.warnings.iter().cloned());
    notes
}
