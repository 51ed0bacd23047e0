//! Situations on real sockets and real servers: the verdict on each, what `throng doctor` says, and
//! what becomes of the verdict when its advice is followed. Those that need neither kernel nor
//! server are in `crates/lab/tests/simulated/verdicts/suite.rs`.

use measure::doctor::{Cure, Diagnosis, of_run};
use measure::{Limit, RunRecord};

use crate::bench::Ran;

mod answers;
mod clients;
mod load;
mod outages;

/// What has to be said of a situation.
struct Expected {
    name: &'static str,
    limit: Limit,
    /// A part of the decisive evidence.
    evidence: &'static str,
    /// The diagnosis, and a part of one of its cures.
    topic: &'static str,
    cure: &'static str,
}

impl Expected {
    /// Runs it, with the advice followed too, after which the limit is one of these. A host that
    /// starves the generator is no failure, if the record shows that it was.
    #[track_caller]
    fn check(&self, run: impl Fn() -> Ran, follow: impl Fn() -> Ran, then: &[Limit]) {
        let name = self.name;
        assert!(!then.contains(&self.limit), "{name}: nothing would change");
        self.check_alone(run);
        let Some(followed) = undisturbed(follow, Limit::Rate) else {
            return;
        };
        let verdict = &followed.record.verdict;
        assert!(
            then.contains(&verdict.limit),
            "{name}, advice followed: {verdict:#?}"
        );
    }

    /// The same where the advice is to look at something.
    #[track_caller]
    fn check_alone(&self, run: impl Fn() -> Ran) -> Option<Diagnosis> {
        let name = self.name;
        let ran = undisturbed(run, self.limit)?;
        let verdict = &ran.record.verdict;
        assert_eq!(verdict.limit, self.limit, "{name}: {verdict:#?}");
        let decisive = &verdict.evidence[0];
        assert!(decisive.contains(self.evidence), "{name}: {verdict:#?}");
        let all = of_run(&ran.record);
        let found = all.iter().find(|it| it.topic == self.topic);
        let found = found.unwrap_or_else(|| panic!("{name}: nothing on {}: {all:#?}", self.topic));
        let mut cures = found.cures.iter().map(Cure::sentence);
        assert!(cures.any(|it| it.contains(self.cure)), "{name}: {found:#?}");
        assert_eq!(&all[0].seen, decisive, "{name}: {all:#?}");
        Some(found.clone())
    }
}

/// How often a run is made again because this host starved it.
const ATTEMPTS_MAX: usize = 3;

/// Runs it until the verdict is about something else than a generator without CPU time; none if
/// this host has none to spare.
fn undisturbed(run: impl Fn() -> Ran, expected: Limit) -> Option<Ran> {
    for _ in 0..ATTEMPTS_MAX {
        let ran = run();
        if ran.record.verdict.limit != Limit::Generator || expected == Limit::Generator {
            return Some(ran);
        }
        assert!(is_starved(&ran.record), "{:#?}", ran.record.verdict);
    }
    eprintln!("left out: this host starved the generator {ATTEMPTS_MAX} times");
    None
}

/// The record shows that the generator had too little of its CPU, or was not let run.
fn is_starved(record: &RunRecord) -> bool {
    let mut workers = record.workers.iter();
    let lateness = &record.total.distributions.send_lateness;
    workers.any(|it| it.cpu_wait_share() >= 0.05 || it.busy_share() >= 0.9)
        || lateness.percentile(0.99) > Some(1_000_000)
}
