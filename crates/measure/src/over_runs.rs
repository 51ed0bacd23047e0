//! A figure of several runs of equal settings: the one definition of it, for every table, chart and
//! document.
//!
//! It is the median of what the runs measured, each run one value, so that one disturbed run does
//! not decide; of an even number the middle between the two in the middle. Losses and the responses
//! beside them are those of all queries of all runs together: a median would call a loss in fewer
//! than half of the runs none.

use crate::interval::per;
use crate::metric::Metric;
use crate::record::RunRecord;
use crate::statistics::{median, quantile};

/// A figure of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverRuns {
    /// The figure.
    pub value: f64,
    /// The least that a run measured.
    pub min: f64,
    /// The most that a run measured.
    pub max: f64,
}

impl OverRuns {
    /// The median of these values, each of one run; none without any.
    pub fn median(values: impl IntoIterator<Item = f64>) -> Option<OverRuns> {
        let values: Vec<f64> = values.into_iter().collect();
        Some(OverRuns {
            value: median(&values)?,
            min: quantile(&values, 0.0)?,
            max: quantile(&values, 1.0)?,
        })
    }
}

impl Metric {
    /// The figure of runs of equal settings; none if none measured it. Of runs that say nothing
    /// about their target it is for figures of the load and the generator only
    /// ([`Metric::is_of_target`]).
    pub fn over_runs<'a>(self, runs: impl IntoIterator<Item = &'a RunRecord>) -> Option<OverRuns> {
        let runs: Vec<&RunRecord> = runs.into_iter().collect();
        let each = runs.iter().filter_map(|run| self.of(run));
        let mut figure = OverRuns::median(each)?;
        let sum = |count: fn(&RunRecord) -> u64| runs.iter().map(|run| count(run)).sum::<u64>();
        let pooled = match self {
            Metric::Loss => sum(|run| run.total.counts.lost()),
            Metric::Answered => sum(|run| run.total.counts.responses),
            _ => return Some(figure),
        };
        let offered = sum(|run| run.total.counts.offered);
        figure.value = per(pooled as f64, offered as f64);
        Some(figure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    fn run(latency_ns: u64, responses: u64, lost: u64) -> RunRecord {
        let mut interval = example::interval(0, &[(latency_ns, responses)]);
        interval.counts.timeouts = lost;
        interval.counts.sent += lost;
        interval.counts.offered += lost;
        example::record(vec![interval])
    }

    #[test]
    fn figure_of_several_runs_is_the_true_median_of_theirs() {
        let runs = [run(1_000, 500, 0), run(2_000, 400, 0)];
        let of = |metric: Metric| metric.over_runs(&runs).expect("is measured");
        let mean = of(Metric::Mean);
        assert_eq!(
            (mean.value, mean.min, mean.max),
            (1_500.0, 1_000.0, 2_000.0)
        );
        assert_eq!(of(Metric::Qps).value, 450.0);
        let three = [&runs[0], &runs[1], &run(9_000, 500, 0)];
        let mean = Metric::Mean.over_runs(three).expect("is measured");
        assert_eq!((mean.value, mean.max), (2_000.0, 9_000.0));
        assert_eq!(Metric::Connect.over_runs(&runs), None);
        assert_eq!(OverRuns::median([]), None);
    }

    #[test]
    fn losses_of_one_run_of_several_are_losses_of_all() {
        let runs = [run(1_000, 500, 0), run(1_000, 500, 0), run(1_000, 400, 100)];
        let loss = Metric::Loss.over_runs(&runs).expect("is measured");
        assert_eq!((loss.min, loss.max), (0.0, 0.2));
        assert_eq!(loss.value, 100.0 / 1_500.0);
        let answered = Metric::Answered.over_runs(&runs).expect("is measured");
        assert_eq!(answered.value, 1_400.0 / 1_500.0);
    }
}
