//! From two sides to findings.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::blocks::Blocks;
use super::{
    AB_VERSION, ASSUMED_NOISE, ASSUMED_NOISE_OF_SHARES, ASSUMED_NOISE_OF_TAILS, AbComparison,
    Finding, Method, Metric, MetricRecord, Noise, Reckoned, SAME_SHARE, Settings, Side, Unit,
    Values, change_of, difference_of, scaled, sides,
};
use crate::notation::counted;
use crate::record::RunRecord;
use crate::statistics::{
    ConfidenceInterval, cliffs_delta, holm, mann_whitney, median, noise_floor, welch,
};

/// Runs a side from which on ranks decide: of six against six the least p-value is 0.002, which
/// leaves something after the correction for all metrics.
const RANKED_MIN: usize = 6;

/// Everything that the metrics have in common.
struct Basis<'a> {
    a: &'a Side<'a>,
    b: &'a Side<'a>,
    noise: &'a [&'a RunRecord],
    settings: &'a Settings,
    pairs: Option<Vec<(usize, usize)>>,
    blocks: Option<Blocks>,
}

pub(super) fn compare(
    a: &Side<'_>,
    b: &Side<'_>,
    noise: &[&RunRecord],
    settings: &Settings,
) -> AbComparison {
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(settings.seed);
    let blocks = match (a.runs.as_slice(), b.runs.as_slice()) {
        ([a], [b]) => Blocks::of((a.1, b.1), settings, &mut generator),
        _ => None,
    };
    let basis = Basis {
        a,
        b,
        noise,
        settings,
        pairs: sides::pairs(a, b),
        blocks,
    };
    let mut metrics = basis.metrics(&mut generator);
    correct(&mut metrics);
    let mut comparison = AbComparison {
        ab_version: AB_VERSION.into(),
        a: sides::record(a),
        b: sides::record(b),
        method: basis.method(),
        same_within: settings.same_within,
        level: settings.bootstrap.level,
        noise: basis.source_of_noise(),
        finding: Finding::CannotTell,
        metrics: Vec::new(),
        conditions: Vec::new(),
        notes: Vec::new(),
    };
    let of_generator = comparison.of_generator();
    for (record, reckoned) in &mut metrics {
        match of_generator.filter(|_| record.metric.is_of_target()) {
            Some(sides) => record.reason = Some(format!("{sides} measured the generator")),
            None => basis.find(record, reckoned.as_ref()),
        }
    }
    comparison.metrics = metrics.into_iter().map(|(record, _)| record).collect();
    comparison.finding = overall(&comparison.metrics);
    comparison.notes = basis.notes(&comparison);
    comparison
}

impl Basis<'_> {
    fn runs_min(&self) -> usize {
        self.a.runs.len().min(self.b.runs.len())
    }

    fn method(&self) -> Method {
        match (self.runs_min(), &self.blocks, &self.pairs) {
            (RANKED_MIN.., _, Some(_)) => Method::PairedRuns,
            (RANKED_MIN.., _, None) => Method::Runs,
            (2.., _, _) => Method::FewRuns,
            (_, Some(blocks), _) => Method::Blocks(blocks.length as u64),
            _ => Method::None,
        }
    }

    fn source_of_noise(&self) -> Noise {
        match (self.noise.len(), self.runs_min()) {
            (2.., _) => Noise::Measured(self.noise.len() as u64),
            (_, 2..) => Noise::Spread,
            _ => Noise::Assumed,
        }
    }

    /// Every metric that one of the sides measured, with what was reckoned of it.
    fn metrics(&self, generator: &mut Xoshiro256PlusPlus) -> Vec<(MetricRecord, Option<Reckoned>)> {
        let mut metrics = Vec::new();
        for (position, &metric) in self.settings.metrics.iter().enumerate() {
            let (a, b) = (sides::values(self.a, metric), sides::values(self.b, metric));
            if a.median.is_none() && b.median.is_none() || self.says_nothing_new(metric) {
                continue;
            }
            let reckoned = self.reckon((position, metric), (&a, &b), generator);
            let change = |difference| change_of(metric, difference);
            let interval = reckoned.and_then(|it| it.interval).map(|it| it.map(change));
            let record = MetricRecord {
                metric,
                change: reckoned.map(|it| change(it.difference)),
                change_low: interval.map(|it| it.low),
                change_high: interval.map(|it| it.high),
                p_value: reckoned.and_then(|it| it.p_value),
                p_value_corrected: None,
                cliffs_delta: reckoned.and_then(|it| it.delta),
                noise_floor: reckoned.and_then(|it| it.floor).map(change),
                finding: Finding::CannotTell,
                reason: None,
                a,
                b,
            };
            metrics.push((record, reckoned));
        }
        metrics
    }

    /// Goodput where every response is goodput is the rate once more, and would count twice.
    fn says_nothing_new(&self, metric: Metric) -> bool {
        let mut runs = self.a.runs.iter().chain(&self.b.runs);
        metric == Metric::Goodput
            && runs.all(|(_, run)| run.goodput() == run.total.counts.responses)
    }

    fn reckon(
        &self,
        (position, metric): (usize, Metric),
        (a, b): (&Values, &Values),
        generator: &mut Xoshiro256PlusPlus,
    ) -> Option<Reckoned> {
        let (first, second) = (sides::on_scale(metric, a)?, sides::on_scale(metric, b)?);
        // That of the figures that are shown, so that it follows from them.
        let difference = scaled(metric, b.median?)? - scaled(metric, a.median?)?;
        let level = self.settings.bootstrap.level;
        let mut reckoned = match (self.runs_min(), &self.blocks) {
            (2.., _) => self.of_runs(&first, &second, generator)?,
            (_, Some(blocks)) => blocks.reckon((position, metric), difference, level)?,
            _ => Reckoned {
                difference,
                interval: None,
                p_value: None,
                delta: None,
                floor: None,
            },
        };
        reckoned.difference = difference;
        self.add_noise(metric, &mut reckoned, (&first, &second), generator);
        self.add_steps(metric, &mut reckoned, (a, b));
        let interval = reckoned.interval.map(|it| it.extended_to(difference));
        reckoned.interval = match metric.unit() {
            Unit::Share => interval.map(|it| self.within_shares(it, metric, a)),
            _ => interval,
        };
        Some(reckoned)
    }

    /// Values in one bucket of a histogram cannot be distinguished, however often they were
    /// measured.
    fn add_steps(&self, metric: Metric, reckoned: &mut Reckoned, (a, b): (&Values, &Values)) {
        let step = |values: &Values| values.median.map_or(0.0, |ns| metric.step(ns));
        let step = (step(a) + step(b)) / 2.0;
        let (low, high) = (reckoned.difference - step, reckoned.difference + step);
        let interval = reckoned.interval;
        reckoned.interval = interval.map(|it| it.extended_to(low).extended_to(high));
        reckoned.floor = reckoned.floor.map(|floor| floor.max(step));
    }

    /// The interval of the change of a share, with what its events leave open, and without what
    /// would take it below nothing or above all.
    fn within_shares(
        &self,
        interval: ConfidenceInterval,
        metric: Metric,
        a: &Values,
    ) -> ConfidenceInterval {
        let level = interval.level;
        let by_events = sides::change_by_events((self.a, self.b), metric, level);
        let interval = by_events.map_or(interval, |it| interval.joined(&it));
        let Some((share, within)) = sides::share_within(self.a, (metric, a), level) else {
            return interval;
        };
        ConfidenceInterval {
            low: interval.low.max(-within.high.max(share)),
            high: interval.high.min(1.0 - within.low.min(share)),
            level,
        }
    }

    /// Several runs a side.
    fn of_runs(
        &self,
        a: &[f64],
        b: &[f64],
        generator: &mut Xoshiro256PlusPlus,
    ) -> Option<Reckoned> {
        let bootstrap = &self.settings.bootstrap;
        let delta = Some(cliffs_delta(a, b));
        if self.runs_min() < RANKED_MIN {
            let test = welch(a, b, bootstrap.level)?;
            return Some(Reckoned {
                difference: test.difference,
                interval: Some(test.interval),
                p_value: Some(test.p_value),
                delta,
                floor: None,
            });
        }
        let interval = match &self.pairs {
            Some(pairs) => {
                let pairs: Vec<(f64, f64)> = pairs.iter().map(|&(i, j)| (a[i], b[j])).collect();
                bootstrap.paired_difference_of_medians(&pairs, generator)
            }
            None => bootstrap.difference_of_medians(a, b, generator),
        };
        Some(Reckoned {
            difference: median(b)? - median(a)?,
            interval,
            p_value: mann_whitney(a, b).map(|test| test.p_value),
            delta,
            floor: None,
        })
    }

    /// The noise floor, and for single runs what it means for interval and test.
    fn add_noise(
        &self,
        metric: Metric,
        reckoned: &mut Reckoned,
        (a, b): (&[f64], &[f64]),
        generator: &mut Xoshiro256PlusPlus,
    ) {
        let bootstrap = &self.settings.bootstrap;
        let sizes = (a.len(), b.len());
        let noise = sides::noise_on_scale(metric, self.noise);
        let measured = noise_floor(&[&noise], sizes, bootstrap, generator);
        let of_spread = noise_floor(&[a, b], sizes, bootstrap, generator);
        reckoned.floor = match self.runs_min() {
            // Neither may be smaller than what was seen.
            2.. => measured.into_iter().chain(of_spread).reduce(f64::max),
            _ => measured.or(Some(match metric.unit() {
                Unit::Share => ASSUMED_NOISE_OF_SHARES,
                _ if metric.is_of_tail() => ASSUMED_NOISE_OF_TAILS.ln_1p(),
                _ => ASSUMED_NOISE.ln_1p(),
            })),
        };
        if self.runs_min() == 1 && measured.is_some() {
            reckoned.p_value = Some(share_as_far_apart(&noise, reckoned.difference));
        }
        if let (1, Some(interval), Some(floor)) =
            (self.runs_min(), &mut reckoned.interval, reckoned.floor)
        {
            // Adds the variation between runs to that within them.
            let reach = interval.half_width().hypot(floor);
            *interval = ConfidenceInterval {
                low: reckoned.difference - reach,
                high: reckoned.difference + reach,
                level: interval.level,
            };
        }
    }

    /// Decides on one metric.
    fn find(&self, record: &mut MetricRecord, reckoned: Option<&Reckoned>) {
        let metric = record.metric;
        let Some(reckoned) = reckoned else {
            record.reason = Some("not every run measured it".into());
            return;
        };
        let all = || record.a.runs.iter().chain(&record.b.runs);
        if self.runs_min() > 1 && all().all(|value| *value == record.a.median) {
            record.finding = Finding::Same;
            return;
        }
        let (Some(interval), Some(p_value)) = (reckoned.interval, record.p_value_corrected) else {
            record.reason = Some("too few runs and intervals to estimate the noise".into());
            return;
        };
        let margin = match metric.unit() {
            Unit::Share => SAME_SHARE,
            _ => difference_of(metric, self.settings.same_within),
        };
        let same = ConfidenceInterval {
            low: -margin,
            high: margin,
            ..interval
        };
        let is_significant = p_value < 1.0 - self.settings.bootstrap.level;
        let is_above_noise = reckoned
            .floor
            .is_none_or(|floor| reckoned.difference.abs() > floor);
        if interval.is_within(&same) {
            record.finding = Finding::Same;
        } else if is_significant && is_above_noise && !interval.contains(0.0) {
            record.finding = match (reckoned.difference > 0.0) == metric.is_better_higher() {
                true => Finding::Faster,
                false => Finding::Slower,
            };
        } else {
            record.reason = Some(match is_significant {
                true => "the change is within the noise".into(),
                false => "the change may be noise".into(),
            });
        }
    }

    fn notes(&self, comparison: &AbComparison) -> Vec<String> {
        let mut notes = Vec::new();
        let (a, b) = (self.a.runs.len(), self.b.runs.len());
        match comparison.method {
            Method::None if a.max(b) > 1 => notes.push(format!(
                "A has {} and B {}: compare one with one, or give several of each",
                counted(a as u64, "run"),
                counted(b as u64, "run")
            )),
            Method::None => notes.push(
                "one run a side with too few intervals shows no noise: make several runs \
                 (throng compare --a '...' --b '...'), or intervals of 100 ms (--interval 100ms)"
                    .into(),
            ),
            _ => {}
        }
        if comparison.noise == Noise::Assumed && comparison.method != Method::None {
            notes.push(format!(
                "one run a side does not show how much runs differ: a change counts only beyond \
                 {:.0} times as much, of tails {:.0} times; measure it (--noise FOLDER), or \
                 compare several runs",
                1.0 + ASSUMED_NOISE,
                1.0 + ASSUMED_NOISE_OF_TAILS
            ));
        }
        if comparison.noise == Noise::Measured(self.noise.len() as u64)
            && self.runs_min() == 1
            && self.noise.len() < NOISE_RUNS_MIN
        {
            notes.push(format!(
                "{} of A compared with A are too few to distinguish single runs from noise: \
                    {NOISE_RUNS_MIN} are enough",
                counted(self.noise.len() as u64, "run")
            ));
        }
        if self.runs_min() > 1 && sides::are_successive(self.a, self.b) {
            notes.push(
                "all runs of one side were made before those of the other: a host that changed \
                 meanwhile looks like a difference (throng compare --a '...' --b '...' alternates)"
                    .into(),
            );
        }
        notes.extend(self.runs_needed(comparison));
        notes
    }

    /// Number of runs that would resolve the difference, if these do not.
    fn runs_needed(&self, comparison: &AbComparison) -> Option<String> {
        let runs = self.runs_min() as f64;
        let undecided = comparison
            .metrics
            .iter()
            .filter(|each| each.finding == Finding::CannotTell && each.metric.is_of_target());
        let wanted = undecided.filter_map(|each| {
            let half = (each.change_high? - each.change_low?) / 2.0;
            let reach = match each.metric.unit() {
                Unit::Share => SAME_SHARE,
                _ => self.settings.same_within,
            };
            // Intervals shrink by the square root of the number of runs.
            Some(runs * (half / reach).powi(2))
        });
        let most = wanted.reduce(f64::max)?;
        if self.runs_min() < 2 || most <= runs || comparison.of_generator().is_some() {
            return None;
        }
        let same_within = 100.0 * self.settings.same_within;
        Some(match most {
            0.0..=1_000.0 => format!(
                "to resolve differences of {same_within:.1} % here, make about {:.0} runs a side",
                most.ceil()
            ),
            _ => format!(
                "this host is too noisy to resolve {same_within:.1} %: make longer runs, \
                    stop other load, or use a greater --same-within"
            ),
        })
    }
}

/// Runs of A compared with A whose pairs can show a p-value that is left after the correction for
/// eight metrics: 20 runs are 190 pairs.
const NOISE_RUNS_MIN: usize = 20;

/// The share of all pairs of runs of the same thing that lie at least so far apart, this one
/// included.
fn share_as_far_apart(noise: &[f64], difference: f64) -> f64 {
    let (mut pairs, mut as_far) = (1.0, 1.0);
    for (index, one) in noise.iter().enumerate() {
        for other in &noise[index + 1..] {
            pairs += 1.0;
            as_far += f64::from(u8::from((one - other).abs() >= difference.abs()));
        }
    }
    as_far / pairs
}

/// Corrects the p-values for the number of metrics that vary at all.
fn correct(metrics: &mut [(MetricRecord, Option<Reckoned>)]) {
    let varies = |record: &MetricRecord| {
        let all = record.a.runs.iter().chain(&record.b.runs);
        let first = record.a.runs.first();
        all.into_iter().any(|value| Some(value) != first)
    };
    let tested: Vec<&mut MetricRecord> = metrics
        .iter_mut()
        .map(|(record, _)| record)
        .filter(|record| record.p_value.is_some() && varies(record))
        .collect();
    let p_values: Vec<f64> = tested.iter().filter_map(|record| record.p_value).collect();
    for (record, corrected) in tested.into_iter().zip(holm(&p_values)) {
        record.p_value_corrected = Some(corrected);
    }
    for (record, _) in metrics {
        // A constant needs no correction.
        record.p_value_corrected = record.p_value_corrected.or(record.p_value);
    }
}

fn overall(metrics: &[MetricRecord]) -> Finding {
    let of_target = || metrics.iter().filter(|each| each.metric.is_of_target());
    let any = |finding| of_target().any(|each| each.finding == finding);
    match (any(Finding::Slower), any(Finding::Faster)) {
        (true, true) => Finding::Mixed,
        (true, false) => Finding::Slower,
        (false, true) => Finding::Faster,
        (false, false) if any(Finding::CannotTell) || of_target().next().is_none() => {
            Finding::CannotTell
        }
        (false, false) => Finding::Same,
    }
}
