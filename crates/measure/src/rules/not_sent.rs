//! Queries that were due and did not leave, a reason each; most of those that the kernel refused
//! decide.

use crate::counts::{NotSent, SendFailures};
use crate::doctor::{Cure, Diagnosis, State};
use crate::limit::Limit;
use crate::notation::{counted, share};

use super::{Figures, Finding, Stage, enough};

/// Share of the offered queries that may be missing before it matters.
const SHORTFALL_MAX: f64 = 0.001;

pub(super) fn found(figures: &Figures<'_>) -> Vec<Finding> {
    let refused = refused(figures).into_iter();
    refused.chain(reasons(figures)).collect()
}

/// Queries that were due and that the kernel did not take.
fn refused(figures: &Figures<'_>) -> Option<Finding> {
    let counts = figures.counts;
    let send_failed = counts.not_sent.send_failed;
    // The network rule names the kernel's send buffer with its own counter.
    let is_counted = figures.record.network.kernel_counter("Udp.SndbufErrors") >= send_failed / 2;
    if !enough::is_above(send_failed, counts.offered, SHORTFALL_MAX) || is_counted {
        return None;
    }
    let (limit, why, advice) = refused_because(&counts.not_sent.send_failed_for);
    let evidence = format!(
        "{} of the queries were not sent: {why}",
        share(send_failed, counts.offered)
    );
    Some(Finding::concluded(
        Stage::Generator,
        limit,
        evidence,
        advice,
    ))
}

/// Why the kernel refused most of the datagrams that it refused.
fn refused_because(causes: &SendFailures) -> (Limit, &'static str, &'static str) {
    // Names every field, so that a new one cannot be forgotten here.
    let SendFailures {
        unreachable,
        forbidden,
        refused,
        no_resources,
        other,
    } = *causes;
    let unknown = (
        Limit::Generator,
        "the kernel did not take them",
        "raise net.core.wmem_max, or lower the rate",
    );
    let causes = [
        (
            unreachable,
            (
                Limit::Network,
                "there was no route to the target: the interface is down or gone",
                "check the interface: ip -s link; ip route",
            ),
        ),
        (
            forbidden,
            (
                Limit::Generator,
                "a firewall on this host rejects them",
                "check its rules: nft list ruleset; iptables -S OUTPUT",
            ),
        ),
        (
            refused,
            (
                Limit::Server,
                "nothing was listening on the target's port",
                "start the server again, and look at its log",
            ),
        ),
        (no_resources, unknown),
        (other, unknown),
    ];
    let most = causes.into_iter().max_by_key(|(number, _)| *number);
    most.filter(|(number, _)| *number > 0)
        .map_or(unknown, |(_, what)| what)
}

/// Why queries that were due did not leave, a reason each.
fn reasons(figures: &Figures<'_>) -> Vec<Finding> {
    let counts = figures.counts;
    // Names every field, so that a new one cannot be forgotten here.
    let NotSent {
        timed_out_waiting,
        // The rule on message IDs tells of them.
        no_free_id: _,
        send_failed,
        send_failed_for: _,
        run_ended,
    } = counts.not_sent;
    let more_clients = 2 * figures.record.scenario.clients;
    let reasons = [
        (
            timed_out_waiting,
            "timed out while they waited for their connection",
            "connections are not ready when they are needed: what the run shows is their set-up",
            Cure::throng(format!("--clients {more_clients}")),
        ),
        (
            send_failed,
            "were refused by the kernel",
            "the send buffer, or the queue of the interface, was full",
            Cure::sysctl("net.core.wmem_max", 4 << 20),
        ),
        (
            run_ended,
            "were still waiting when the run ended",
            "the target, or this tool, was behind the rate asked for",
            Cure::words("lower --rate until nothing waits"),
        ),
    ];
    let offered = counts.offered;
    let found = reasons.into_iter().filter(|reason| reason.0 > 0);
    let finding = |(number, what, matters, cure): (u64, &str, &str, Cure)| {
        let state = match number as f64 > SHORTFALL_MAX * offered as f64 {
            true => State::Problem,
            false => State::Warning,
        };
        let seen = format!(
            "{} ({} of those offered) {what}",
            counted(number, "query"),
            share(number, offered)
        );
        let diagnosis = Diagnosis::new("queries not sent", state, seen, matters);
        Finding::met(diagnosis.cure(cure))
    };
    found.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn refused_sends_are_the_generators_limit() {
        let mut record = saturated();
        change_last(&mut record, |interval| {
            interval.counts.offered += 1_000;
            interval.counts.not_sent.send_failed += 1_000;
        });
        judged(
            &record,
            Limit::Generator,
            "the kernel did not take them",
            "net.core.wmem_max",
        );
    }

    #[test]
    fn queries_not_sent_are_told_by_reason() {
        let mut record = saturated();
        change_last(&mut record, |interval| {
            interval.counts.offered += 1_110;
            interval.counts.not_sent.no_free_id += 1_000;
            interval.counts.not_sent.timed_out_waiting += 100;
            interval.counts.not_sent.send_failed += 10;
        });
        let reasons: Vec<Diagnosis> = met(&record)
            .into_iter()
            .filter(|it| it.topic == "queries not sent")
            .collect();
        let states: Vec<State> = reasons.iter().map(|it| it.state).collect();
        assert_eq!(states, [State::Warning, State::Warning]);
        assert!(reasons[1].cures[0].how.contains("wmem_max"), "{reasons:#?}");
    }
}
