//! Which runs say something about their target: decided here alone, for results of experiments,
//! claims, comparisons of transports and reports on several runs.
//!
//! A run that the generator limited measured the generator, and a run that its host disturbed
//! measured the host: neither its rate nor its latencies nor its losses are the target's. Such a
//! run is left out by name. A run that held its rate on time, or used all of its slots, is data:
//! its latencies are those under that load.

use crate::limit::Limit;
use crate::metric::Metric;
use crate::record::RunRecord;
use crate::rules;

impl RunRecord {
    /// Why the figures of this run are no data about its target; none if they are.
    pub fn why_left_out(&self) -> Option<String> {
        let evidence = self.verdict.evidence.first();
        match self.verdict.limit {
            Limit::Generator => Some(match evidence {
                Some(evidence) => format!("limit generator: {evidence}"),
                None => "limit generator".to_owned(),
            }),
            Limit::Rate | Limit::Outstanding => None,
            Limit::Server | Limit::Network | Limit::Unknown => {
                let disturbance = rules::host_disturbance(self);
                disturbance.map(|seen| format!("disturbed by its host: {seen}"))
            }
        }
    }
}

impl Metric {
    /// True if this run counts where the metric of several runs is stated. What a metric says about
    /// the load or the generator is so in every run.
    pub fn counts_run(self, record: &RunRecord) -> bool {
        !self.is_of_target() || record.why_left_out().is_none()
    }
}

/// What a target can do at least, where none of its runs counts: the highest rate of them, in
/// queries a second; none where a run counts, or without any.
pub fn rate_at_least<'a>(runs: impl IntoIterator<Item = &'a RunRecord>) -> Option<f64> {
    let rate = |run: &RunRecord| run.why_left_out().map(|_| run.achieved_qps());
    let rates: Option<Vec<f64>> = runs.into_iter().map(rate).collect();
    rates?.into_iter().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use crate::facts::CpuUse;
    use crate::limit::Verdict;
    use crate::rules::situations::*;

    use super::*;

    fn with_limit(limit: Limit) -> RunRecord {
        let mut record = saturated();
        record.verdict = Verdict {
            limit,
            evidence: vec!["a worker used 99 % of its CPU".into()],
            ..Verdict::default()
        };
        record
    }

    #[test]
    fn run_limited_by_the_generator_says_nothing_about_its_target() {
        let run = with_limit(Limit::Generator);
        let why = "limit generator: a worker used 99 % of its CPU";
        assert_eq!(run.why_left_out().as_deref(), Some(why));
        let of_target = [Metric::Qps, Metric::P99, Metric::Loss];
        assert!(of_target.iter().all(|metric| !metric.counts_run(&run)));
        assert!(Metric::Cpu.counts_run(&run));
        let others = [Limit::Server, Limit::Network, Limit::Outstanding];
        for limit in [&others[..], &[Limit::Rate, Limit::Unknown]].concat() {
            assert_eq!(with_limit(limit).why_left_out(), None, "{limit:?}");
        }
    }

    #[test]
    fn run_whose_target_waited_for_cpus_of_others_counts_only_if_it_kept_up() {
        let starved = |limit| {
            let mut record = with_limit(limit);
            record.host_use = Some(CpuUse {
                wall_ns: 10 * SECOND,
                is_target_here: true,
                target_ns: Some(6 * SECOND),
                target_wait_ns: Some(4 * SECOND),
                others_ns: 9 * SECOND,
                ..CpuUse::default()
            });
            record.why_left_out()
        };
        let why = starved(Limit::Server).expect("the host disturbed it");
        assert!(
            why.contains("the target on this host waited for a CPU"),
            "{why}"
        );
        assert_eq!(starved(Limit::Rate), None);
        assert_eq!(starved(Limit::Outstanding), None);
    }

    #[test]
    fn figure_of_several_runs_is_that_of_the_runs_that_count() {
        let server = with_limit(Limit::Server);
        let mut slower = server.clone();
        slower.measured_ns *= 2;
        slower.verdict.limit = Limit::Generator;
        let of = |metric: Metric, runs: &[&RunRecord]| {
            let figure = metric.over_runs(runs.iter().copied());
            figure.map(|figure| (figure.min, figure.max))
        };
        let alone = of(Metric::Qps, &[&server]);
        assert_ne!(Metric::Qps.of(&server), Metric::Qps.of(&slower));
        assert_eq!(of(Metric::Qps, &[&server, &slower]), alone);
        assert_eq!(of(Metric::Qps, &[&slower]), None);
        assert_eq!(of(Metric::Loss, &[&slower]), None);
        assert!(of(Metric::Offered, &[&slower]).is_some());
        assert_eq!(rate_at_least([&slower]), Metric::Qps.of(&slower));
        assert_eq!(rate_at_least([&server, &slower]), None);
        assert_eq!(rate_at_least([]), None);
    }
}
