//! How long the path to the target takes while a run is under way, whatever the server there does.

use std::sync::{Mutex, PoisonError};

use driver::echo::Watch;
use measure::RunRecord;
use measure::facts::EchoFacts;

use super::RunRequest;
use crate::host::is_of_this_host;

/// ICMP echo requests to a target elsewhere.
pub(super) struct PathWatch {
    watch: Watch,
    /// What came back until the last look.
    seen: Mutex<EchoFacts>,
}

impl PathWatch {
    /// From now on. A run that is to send nothing but its queries has none, and so has one with
    /// several targets, whose paths differ.
    pub(super) fn begin(groups: &[RunRequest]) -> Option<PathWatch> {
        let first = groups.first()?;
        let target = first.plan.target.ip();
        let has_one = groups.iter().all(|it| {
            let stub = it.plan.stub.as_ref();
            let servers = stub.map(|stub| stub.servers.iter()).into_iter().flatten();
            it.plan.target.ip() == target && servers.into_iter().all(|it| it.ip() == target)
        });
        let is_watched = has_one && first.preflight && !is_of_this_host(target);
        let local = first.plan.local_addresses.first();
        let watch = is_watched.then(|| Watch::start(target, local.copied()));
        watch.flatten().map(|watch| PathWatch {
            watch,
            seen: Mutex::default(),
        })
    }

    /// What came back until now.
    pub(super) fn note(&self, record: &mut RunRecord) {
        let mut facts = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let echoes = self.watch.news();
        facts.sent += echoes.sent;
        for time in echoes.times {
            let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            facts.times.record(time_ns);
        }
        record.network.echo = (facts.sent > 0).then(|| facts.clone());
    }
}
