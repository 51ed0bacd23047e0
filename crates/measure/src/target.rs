//! What each of several targets was asked, and what it did.
//!
//! Clients of `[[targets]]` have one target, and everything of theirs is that target's. Clients
//! that choose among servers ask one query of several; its end belongs to one of them: the one that
//! answered, or else the one that was asked last.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counts::{Counts, ENDS};
use crate::histogram::Histogram;
use crate::interval::Interval;
use crate::summary::Summary;

/// One of the targets of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetRecord {
    /// Its address and port; no two targets of a run have the same.
    pub target: String,
    /// The target as the user wrote it; none of the built-in responder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Clients that ask it; those with several servers are clients of each.
    pub clients: u64,
    /// Messages sent to it. A query that was sent again, or to several servers, counts here each
    /// time, and in `total` once.
    pub messages_sent: u64,
    /// Its measured queries and how they ended; those of all targets add up to the run's. Of a
    /// server that clients choose among others it has queries sent, their ends and their latencies
    /// and nothing else: queries that were never sent were no server's.
    pub total: Interval,
    /// The counts, shares and latencies of `total` by name.
    pub summary: Summary,
}

impl TargetRecord {
    /// Of what was measured of it; `goodput_rcodes` are those of the run.
    pub fn new(
        (target, server_name): (String, Option<String>),
        (clients, messages_sent): (u64, u64),
        total: Interval,
        goodput_rcodes: &[u16],
    ) -> TargetRecord {
        TargetRecord {
            summary: Summary::of_interval(&total, goodput_rcodes),
            target,
            server_name,
            clients,
            messages_sent,
            total,
        }
    }

    /// Adds the same target of other clients.
    fn merge(&mut self, other: &TargetRecord, goodput_rcodes: &[u16]) {
        self.clients += other.clients;
        self.messages_sent += other.messages_sent;
        self.total.merge(&other.total);
        self.summary = Summary::of_interval(&self.total, goodput_rcodes);
    }
}

/// Adds targets by their addresses; a new address is a new target.
pub fn merge_targets(
    targets: &mut Vec<TargetRecord>,
    others: impl IntoIterator<Item = TargetRecord>,
    goodput_rcodes: &[u16],
) {
    for other in others {
        let known = targets
            .iter_mut()
            .find(|known| known.target == other.target);
        match known {
            Some(known) => known.merge(&other, goodput_rcodes),
            None => targets.push(other),
        }
    }
}

/// Checks that the targets of a run, if it has several, are the run together.
///
/// # Errors
/// Names the target, or what does not add up, with both numbers.
pub(crate) fn check(targets: &[TargetRecord], total: &Interval) -> Result<(), String> {
    if targets.is_empty() {
        return Ok(());
    }
    let mut sum = Counts::default();
    let mut latency = Histogram::new();
    let mut messages = 0;
    for it in targets {
        let identity = it.total.counts.check_identity();
        identity.map_err(|reason| format!("target {}: {reason}", it.target))?;
        sum.add(&it.total.counts);
        latency.merge(&it.total.distributions.latency);
        messages += it.messages_sent;
    }
    let all = &total.counts;
    // Of what follows, queries that no server had are in none.
    let not_sent = |counts: &Counts| counts.not_sent.total();
    let ends = ENDS.iter().filter(|end| end.was_sent);
    let ends = ends.map(|end| (end.words, (end.count)(&sum), (end.count)(all)));
    let others = [
        ("queries sent", sum.sent, all.sent),
        ("responses", sum.responses, all.responses),
        ("responses NODATA", sum.nodata, all.nodata),
        ("messages sent", messages, all.sent + all.stub.retransmitted),
    ];
    for (what, of_targets, of_run) in others.into_iter().chain(ends) {
        if of_targets != of_run {
            return Err(format!("{of_run} {what}, but {of_targets} of its targets"));
        }
    }
    if not_sent(&sum) > not_sent(all) {
        return Err(format!(
            "{} queries not sent, but {} of its targets",
            not_sent(all),
            not_sent(&sum)
        ));
    }
    if sum.rcodes != all.rcodes {
        return Err("the RCODEs are not the sum of those of its targets".to_owned());
    }
    if latency != total.distributions.latency {
        return Err("the latencies are not the sum of those of its targets".to_owned());
    }
    Ok(())
}
