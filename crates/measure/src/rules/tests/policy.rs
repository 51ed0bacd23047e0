//! Drops by policy are neither capacity nor an outage.

use crate::observation::SeriesKind;
use crate::rules::observed_situations::*;
use crate::rules::situations::*;
use crate::timeline::Bin;

#[test]
fn a_fixed_rate_of_responses_is_a_limit_whatever_its_bucket_is() {
    let evidence = "the target admits a fixed rate, or answers 1 of 2 in turn: 500.0 qps were \
                    answered all the time, 50.00 %";
    // One after the other, and at once at the beginning of each second.
    judged(&limited(|_| 5), Limit::Server, evidence, "exempt-clients");
    let bucket = limited(|bin| if bin % 100 < 50 { 10 } else { 0 });
    judged(&bucket, Limit::Server, evidence, "exempt-clients");
}

#[test]
fn a_share_as_of_turns_is_not_distinguished_from_a_rate_and_another_rate_shows_it() {
    let evidence = "the target admits a fixed rate, or answers 9 of 10 in turn: 900.0 qps";
    judged(&limited(|_| 9), Limit::Server, evidence, "--rate 700");
    // No number of servers that take turns answers 52.5 %.
    let other = limited(|bin| 5 + u64::from(bin % 4 == 0));
    let verdict = judged(
        &other,
        Limit::Server,
        "a fixed rate: 525.0",
        "exempt-clients",
    );
    assert!(
        !verdict.advice.join("; ").contains("--rate 700"),
        "{verdict:#?}"
    );
}

#[test]
fn a_target_whose_buffers_were_full_admits_no_fixed_rate() {
    let mut record = limited(|_| 7);
    record.scenario.target = "127.0.0.1:53".into();
    record
        .network
        .kernel
        .insert("Udp.RcvbufErrors".into(), 2_000);
    let verdict = judge(&record);
    assert!(!verdict.evidence[0].contains("fixed rate"), "{verdict:#?}");
}

#[test]
fn truncation_beside_drops_at_a_fixed_rate_is_one_limit() {
    let mut record = limited(|_| 5);
    change_last(&mut record, |interval| interval.counts.truncated = 2_500);
    let evidence = "50.00 % of the responses were truncated, as RRL sends them";
    let verdict = judged(&record, Limit::Server, evidence, "exempt-clients");
    let of_truncation = verdict
        .evidence
        .iter()
        .filter(|it| it.contains("truncated"));
    assert_eq!(of_truncation.count(), 1, "{verdict:#?}");
    // Without a fixed rate, truncation is a separate finding.
    let mut random = limited(|bin| 10 - (scattered(bin) % 8).min(10));
    change_last(&mut random, |interval| interval.counts.truncated = 2_500);
    assert_eq!(judge(&random).limit, Limit::Unknown);
}

#[test]
fn losses_at_random_are_no_limit_on_the_rate() {
    let random = limited(|bin| 10 - (scattered(bin) % 8).min(10));
    let verdict = judge(&random);
    assert!(!verdict.evidence[0].contains("fixed rate"), "{verdict:#?}");
    // Nor is a target that is down for half of the time, nor one at which queries wait.
    let down = limited(|bin| if bin < 500 { 10 } else { 0 });
    let verdict = judge(&down);
    assert!(!verdict.evidence[0].contains("fixed rate"), "{verdict:#?}");
    let mut waiting = limited(|_| 5);
    change_last(&mut waiting, |interval| {
        interval
            .distributions
            .service
            .record_many(200 * MS, 100_000);
    });
    let verdict = judge(&waiting);
    assert!(!verdict.evidence[0].contains("fixed rate"), "{verdict:#?}");
}

#[test]
fn what_a_server_dropped_by_its_own_count_is_named_by_the_counter() {
    for (counter, words, cure) in [
        (
            "queries.dropped",
            "by a rate limit, a rule or an access list",
            "exempt-clients",
        ),
        (
            "requestlist.exceeded",
            "because its request list was full",
            "num-queries-per-thread",
        ),
        (
            "requestlist.overwritten",
            "to make room in its request list",
            "num-queries-per-thread",
        ),
    ] {
        let mut record = in_time(10_000.0);
        lose(&mut record, 50_000);
        let drops = server(15_000.0, &[(counter, SeriesKind::Counter, 5_000.0)]);
        let mut drops = observing(record.clone(), &[drops]);
        if counter.starts_with("requestlist") {
            drops.observations[0].facts.product = Some("Unbound".to_owned());
        }
        let evidence = format!("dropped by its own count: 50,000 {words} ({counter})");
        judged(&drops, Limit::Server, &evidence, cure);

        // A few of them explain nothing.
        let few = server(15_000.0, &[(counter, SeriesKind::Counter, 5.0)]);
        let few = observing(record, &[few]);
        assert!(!few.verdict.evidence[0].contains("dropped by its own count"));
        assert!(said(&few).contains("50 "), "{}", said(&few));
    }
}

/// Counters of observed servers that mean loss, or that queries waited for others.
const LOSSES: [&str; 6] = [
    "queries.dropped",
    "requestlist.exceeded",
    "requestlist.overwritten",
    "connections.failed",
    "upstream.timeouts",
    "upstream.checks_failed",
];

#[test]
fn no_counter_of_losses_is_left_out_of_the_verdict() {
    for counter in LOSSES {
        let mut record = in_time(10_000.0);
        lose(&mut record, 50_000);
        let more = [
            (counter, SeriesKind::Counter, 5_000.0),
            ("upstream.queries", SeriesKind::Counter, 10_000.0),
        ];
        let more: Vec<_> = more
            .into_iter()
            .filter(|(name, ..)| counter.starts_with("upstream") || *name == counter)
            .collect();
        let observed = observing(record, &[server(15_000.0, &more)]);
        let told = said(&observed);
        assert!(told.contains("50,000 "), "{counter}: {told}");
        assert!(!told.contains("dropped nothing"), "{counter}: {told}");
    }
    for (counter, topic) in [
        ("udp.drops", "receive buffers of the server"),
        ("listen.overflows", "listen queue of the server"),
    ] {
        let program = program(0.3, 0.2, &[(counter, SeriesKind::Counter, 700.0)]);
        let mut record = saturated();
        if counter == "listen.overflows" {
            record.scenario.transport = Transport::Tcp.into();
        }
        let observed = observing(record, &[program]);
        told(&observed, topic).problem("7,000", "net.core");
    }
}

/// A generator that is late sends what was due in a bin with what is due in the next; a token
/// bucket has more tokens for these.
#[test]
fn a_fixed_rate_is_seen_between_the_sends_of_a_generator_that_was_late() {
    let is_late = |bin: u64| scattered(bin / 3) < 5;
    let mut record = limited(|bin| if is_late(bin) { scattered(bin) } else { 3 });
    let timeline = record.timeline.as_mut().unwrap();
    for bin in (0..1_000).filter(|bin| is_late(*bin)) {
        timeline.add(
            bin * 10_000_000,
            &Bin {
                sent: 3,
                ..Bin::default()
            },
        );
    }
    let evidence =
        "the target admits a fixed rate, or answers 2 of 5 in turn: 300.0 qps were answered";
    judged(&record, Limit::Server, evidence, "exempt-clients");
}

#[test]
fn losses_in_bursts_are_no_limit_on_the_rate() {
    for (length, lost) in [(20, 4), (20, 9), (50, 8), (7, 3)] {
        let is_burst = |bin: u64| scattered(bin / length) < lost;
        let bursts = limited(|bin| if is_burst(bin) { 0 } else { 10 });
        let verdict = judge(&bursts);
        let text = verdict.evidence.join("\n");
        assert!(
            !text.contains("fixed rate"),
            "{length}, {lost}: {verdict:#?}"
        );
    }
}

#[test]
fn an_outage_beside_many_more_losses_is_not_what_limits() {
    let mut record = limited(|bin| match bin {
        400..425 => 0,
        _ => 10 - (scattered(bin) % 8),
    });
    let timeline = record.timeline.as_mut().unwrap();
    for bin in 400..425 {
        let frozen_us = 10_000;
        timeline.add(
            bin * 10_000_000,
            &Bin {
                frozen_us,
                ..Bin::default()
            },
        );
    }
    let verdict = judge(&record);
    assert_eq!(verdict.limit, Limit::Unknown, "{verdict:#?}");
    assert!(
        verdict.evidence[0].contains("got no response"),
        "{verdict:#?}"
    );
}
