//! Situations on real sockets and real servers: the verdict on each, what `throng doctor` says, and
//! what becomes of the verdict when its advice is followed. Those that need neither kernel nor
//! server are in `crates/lab/tests/simulated/verdicts/suite.rs`.

use measure::doctor::{Cure, of_run};
use measure::{Limit, RunRecord, Verdict};

use crate::bench::Ran;
use crate::rows;

mod answers;
mod both_ends;
mod clients;
mod limits;
mod load;
mod outages;
mod path;
mod scraped;
mod servers;
mod upstream;

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
        let Some((verdict, cure)) = self.judged(run) else {
            return;
        };
        let Some(followed) = undisturbed(follow, then[0]) else {
            return rows::print(name, &verdict, &cure, Some(Limit::Generator));
        };
        let after = &followed.record.verdict;
        assert!(
            then.contains(&after.limit),
            "{name}, advice followed: {after:#?}"
        );
        rows::print(name, &verdict, &cure, Some(after.limit));
    }

    /// The same where the advice is to look at something.
    #[track_caller]
    fn check_alone(&self, run: impl Fn() -> Ran) {
        if let Some((verdict, cure)) = self.judged(run) {
            rows::print(self.name, &verdict, &cure, None);
        }
    }

    /// The verdict, and the cure that was looked for; none if this host starved the generator.
    #[track_caller]
    fn judged(&self, run: impl Fn() -> Ran) -> Option<(Verdict, String)> {
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
        let cure = cures.find(|it| it.contains(self.cure));
        let cure = cure.unwrap_or_else(|| panic!("{name}: {found:#?}"));
        assert_eq!(&all[0].seen, decisive, "{name}: {all:#?}");
        Some((verdict.clone(), cure))
    }
}

/// Situations that wait more than they work, beside each other.
fn together(situations: &[&(dyn Fn() + Sync)]) {
    std::thread::scope(|scope| {
        for situation in situations {
            scope.spawn(situation);
        }
    });
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
