//! Decides which runs are conclusive about their target, for results of experiments, claims,
//! comparisons of transports and reports on several runs.
//!
//! A run that the generator limited measured the generator, and a run that its host disturbed
//! measured the host: neither its rate nor its latencies nor its losses are the target's. Such a
//! run is left out by name. A run that held its rate on time, or used all of its slots, is data:
//! its latencies are those under that load.

use crate::limit::Limit;
use crate::record::RunRecord;
use crate::rules;

impl RunRecord {
    /// Why the figures of this run are no data about its target; none if they are. It judges the
    /// run: ask once a run.
    pub fn why_left_out(&self) -> Option<String> {
        let evidence = self.verdict.evidence.first();
        match self.verdict.limit {
            Limit::Generator => Some(match evidence {
                Some(evidence) => format!("limit generator: {evidence}"),
                None => "limit generator".to_owned(),
            }),
            Limit::Rate | Limit::Outstanding => None,
            Limit::Server | Limit::Policy | Limit::Network | Limit::Unknown => {
                let disturbance = rules::host_disturbance(self);
                disturbance.map(|seen| format!("disturbed by its host: {seen}"))
            }
        }
    }
}

/// A lower bound of a target's rate if none of its runs counts: the highest of their rates, in
/// queries a second; none if a run counts, or without any. Each run has the reason for its
/// exclusion.
pub fn rate_at_least<'a>(
    runs: impl IntoIterator<Item = (&'a RunRecord, Option<&'a String>)>,
) -> Option<f64> {
    let rate = |(run, left_out): (&RunRecord, Option<_>)| left_out.map(|_| run.achieved_qps());
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
        let others = [Limit::Server, Limit::Policy, Limit::Network];
        for limit in [
            &others[..],
            &[Limit::Outstanding, Limit::Rate, Limit::Unknown],
        ]
        .concat()
        {
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
    fn target_can_do_at_least_what_its_best_run_did_if_none_counts() {
        let (run, mut slower) = (with_limit(Limit::Generator), with_limit(Limit::Generator));
        slower.measured_ns *= 2;
        let why = "a reason".to_owned();
        let out = |run| (run, Some(&why));
        let fastest = Some(run.achieved_qps());
        assert_eq!(rate_at_least([out(&slower), out(&run)]), fastest);
        assert_eq!(rate_at_least([out(&slower), (&run, None)]), None);
        assert_eq!(rate_at_least([]), None);
    }
}
