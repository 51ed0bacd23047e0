//! Situations on real sockets and real servers: the verdict on each, what `throng doctor` says, and
//! what becomes of the verdict when its advice is followed. Those that need neither kernel nor
//! server are in `crates/lab/tests/pure/simulated/verdicts/suite.rs`.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use measure::Limit;
use measure::doctor::{Cure, of_run};
use testing::quiet::Quiet;
use testing::timed::{self, Attempt};

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
    /// Runs it, then with the advice followed, after which the limit is one of these.
    #[track_caller]
    fn check(&self, run: impl Fn() -> Ran, follow: impl Fn() -> Ran, then: &[Limit]) {
        let name = self.name;
        assert!(!then.contains(&self.limit), "{name}: nothing would change");
        let Some((ran, cure)) = self.judged(run, |_| Ok(())) else {
            return;
        };
        let mut after = None;
        on_quiet_host(follow, |followed| {
            let verdict = &followed.record.verdict;
            let is_expected = then.contains(&verdict.limit);
            ensure!(is_expected, "{name}, advice followed: {verdict:#?}");
            after = Some(verdict.limit);
            Ok(())
        });
        if after.is_some() {
            rows::print(name, &ran.record.verdict, &cure, after);
        }
    }

    /// The same where the advice is to look at something.
    #[track_caller]
    fn check_alone(&self, run: impl Fn() -> Ran) {
        self.check_with(run, |_| Ok(()));
    }

    /// As [`Expected::check_alone`], with more that is expected of the run.
    #[track_caller]
    fn check_with(&self, run: impl Fn() -> Ran, more: impl Fn(&Ran) -> Result<()>) {
        if let Some((ran, cure)) = self.judged(run, more) {
            rows::print(self.name, &ran.record.verdict, &cure, None);
        }
    }

    /// A run with the expected verdict, and the expected cure; none if it is inconclusive.
    #[track_caller]
    fn judged(
        &self,
        run: impl Fn() -> Ran,
        more: impl Fn(&Ran) -> Result<()>,
    ) -> Option<(Ran, String)> {
        let mut judged = None;
        on_quiet_host(run, |ran| {
            more(ran)?;
            judged = Some((ran.clone(), self.judge(ran)?));
            Ok(())
        });
        judged
    }

    /// The cure that was looked for.
    fn judge(&self, ran: &Ran) -> Result<String> {
        let name = self.name;
        let verdict = &ran.record.verdict;
        ensure!(verdict.limit == self.limit, "{name}: {verdict:#?}");
        let decisive = &verdict.evidence[0];
        ensure!(decisive.contains(self.evidence), "{name}: {verdict:#?}");
        let all = of_run(&ran.record);
        let found = all.iter().find(|it| it.topic == self.topic);
        let found = found.with_context(|| format!("{name}: no {}: {all:#?}", self.topic))?;
        let advice = verdict.advice.join("\n");
        let is_misled = self.topic == "outage" && advice.contains("--rate");
        ensure!(!is_misled, "{name}: {advice}");
        let mut cures = found.cures.iter().map(Cure::sentence);
        let cure = cures.find(|it| it.contains(self.cure));
        ensure!(&all[0].seen == decisive, "{name}: {all:#?}");
        cure.with_context(|| format!("{name}: {found:#?}"))
    }
}

/// Runs and judges until a run is as expected; fails if one is not and the host was quiet.
#[track_caller]
pub(crate) fn on_quiet_host(
    mut run: impl FnMut() -> Ran,
    mut judge: impl FnMut(&Ran) -> Result<()>,
) {
    timed::on_quiet_host(Quiet::VERDICT, || {
        let ran = run();
        Attempt {
            disturbance: ran.disturbance(),
            outcome: judge(&ran).map_err(|it| it.to_string()),
        }
    });
}

/// Situations that wait more than they work, beside each other. What one takes from another one
/// is in the records of both, like any other disturbance.
fn together(situations: &[&(dyn Fn() + Sync)]) {
    std::thread::scope(|scope| {
        for situation in situations {
            scope.spawn(situation);
        }
    });
}

/// Sends a signal to a process.
pub(crate) fn signal(process: u32, name: &str) {
    let status = Command::new("kill")
        .args(["-s", name, &process.to_string()])
        .status();
    assert!(status.unwrap().success(), "SIG{name} to {process}");
}
