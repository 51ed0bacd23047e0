//! Drops by policy are neither capacity nor an outage.

use crate::experience::{ClientExperience, ClientFigures};
use crate::observation::{DROPS, SeriesKind, UPSTREAM_FAILURES};
use crate::rules::observed_situations::*;
use crate::rules::situations::*;
use crate::timeline::{Bin, Timeline};

/// The timeline of `limited`, each bin with other numbers of queries due and of these answered.
fn varied(record: &mut RunRecord, bins: impl Fn(u64) -> (u64, u64)) {
    let mut timeline = Timeline::new();
    for bin in 0..1_000 {
        let (due, answered) = bins(bin);
        let what = Bin {
            due,
            sent: due,
            responses: answered,
            lost: due - answered,
            ..Bin::default()
        };
        timeline.add(bin * 10_000_000, &what);
    }
    record.timeline = Some(timeline);
}

/// Ten clients lost as many queries as each other, or four of them most of theirs.
fn clients(record: &mut RunRecord, alike: bool) {
    let lost = record.total.counts.timeouts / 10;
    let mut experience = ClientExperience::default();
    for client in 0..10 {
        let mut figures = ClientFigures {
            queries: 1_000,
            ..ClientFigures::default()
        };
        let lost = match (alike, client < 4) {
            (true, _) => lost,
            (false, true) => 900,
            (false, false) => lost / 3,
        };
        figures.respond_many(100_000, 0, 1_000 - lost);
        experience.record(&figures, 10 * SECOND);
    }
    record.groups[0].experience = Some(experience);
}

const CANNOT_TELL: &str = "cannot tell a limit of 500.0 qps from the loss of a fixed share, such \
                           as 1 of 2 in turn";

#[test]
fn a_share_lost_in_turn_and_a_limit_look_alike_at_one_rate() {
    let same = limited(|_| 5);
    let evidence = format!(
        "{CANNOT_TELL}: 50.00 % of the queries were lost, as many in each second, and none waited \
         at the target: p50 100.0 us against the shortest 100.0 us"
    );
    let verdict = judged(
        &same,
        Limit::Unknown,
        &evidence,
        "half the rate, --rate 500",
    );
    let said = format!("{:#?}", (met(&same), &verdict));
    for wrong in ["admits a fixed rate", "leave no room for a queue"] {
        assert!(!said.contains(wrong), "{wrong}: {said}");
    }
    // With Poisson arrivals, one of ten servers that answers responds more where more is due.
    let mut tenth = limited(|_| 1);
    varied(&mut tenth, |bin| {
        let due = 5 * scattered(bin);
        (due, due / 5)
    });
    assert_ne!(judge(&tenth).limit, Limit::Policy, "{:#?}", judge(&tenth));
}

#[test]
fn as_many_responses_to_more_queries_and_to_fewer_are_a_limit() {
    let mut poisson = limited(|_| 5);
    varied(&mut poisson, |bin| (6 + scattered(bin) % 8, 5));
    let evidence = "the target, or a device before it, admits a fixed rate: 500.0 qps were \
                    answered all the time, 50.00 %";
    let verdict = judged(&poisson, Limit::Policy, evidence, "exempt-clients");
    assert!(
        !format!("{verdict:?}").contains("cannot tell"),
        "{verdict:#?}"
    );
    // By the second, of a bucket that is filled once in it.
    varied(&mut poisson, |bin| {
        let due = 6 + 6 * (bin / 100 % 2);
        (due, if bin % 100 < 500 / due { due } else { 0 })
    });
    judged(
        &poisson,
        Limit::Policy,
        "admits a fixed rate: 495.0",
        "exempt-clients",
    );
}

/// A bucket with room for as many queries as it gets in 20 ms.
#[test]
fn a_limit_whose_bucket_evens_out_what_comes_in_longer_times_is_found() {
    let mut record = limited(|_| 5);
    let mut bins = Vec::new();
    let mut room = 10_u64;
    for bin in 0..1_000 {
        let due = scattered(bin) + scattered(bin + 1_000) / 2;
        let answered = due.min(room);
        room = (room - answered + 5).min(10);
        bins.push((due, answered));
    }
    varied(&mut record, |bin| bins[bin as usize]);
    judged(
        &record,
        Limit::Policy,
        "admits a fixed rate",
        "exempt-clients",
    );
    // The same share of what came is none.
    varied(&mut record, |bin| {
        let due = bins[bin as usize].0;
        (due, due / 2)
    });
    assert_ne!(judge(&record).limit, Limit::Policy, "{:#?}", judge(&record));
}

#[test]
fn a_bucket_that_is_filled_each_second_is_a_limit_unless_clients_explain_it() {
    let mut bucket = limited(|bin| if bin % 100 < 50 { 10 } else { 0 });
    judged(&bucket, Limit::Unknown, CANNOT_TELL, "half the rate");
    clients(&mut bucket, true);
    judged(
        &bucket,
        Limit::Policy,
        "admits a fixed rate: 500.0",
        "exempt-clients",
    );
    clients(&mut bucket, false);
    judged(&bucket, Limit::Unknown, CANNOT_TELL, "half the rate");
}

/// A bucket that was full admits all first; so does a service of which a back-end dies then.
#[test]
fn losses_that_begin_later_are_no_sign_of_a_bucket() {
    let later = |share: fn(u64) -> u64| {
        let mut record = limited(|bin| if bin < 200 { 10 } else { share(bin) });
        clients(&mut record, true);
        record
    };
    let share = "40.00 % of the queries were lost, as many in each second from 2.00 s on";
    let evidence = format!("{CANNOT_TELL}: {share}");
    judged(&later(|_| 5), Limit::Unknown, &evidence, "half the rate");
}

#[test]
fn an_even_share_that_nothing_in_turn_has_is_a_limit() {
    // 525 and 590 of 1,000 from the beginning or later, and from all clients alike.
    let evenly = |bin: u64, of_hundred: u64| (bin + 1) * of_hundred / 10 - bin * of_hundred / 10;
    let limit = |of_hundred: u64, from: u64| {
        let full = move |bin| {
            if bin < from {
                10
            } else {
                evenly(bin, of_hundred)
            }
        };
        let mut record = limited(full);
        clients(&mut record, true);
        record
    };
    for (of_hundred, from) in [(59, 0), (59, 200), (53, 0), (18, 0)] {
        let evidence = format!("admits a fixed rate: {of_hundred}0.0 qps");
        judged(
            &limit(of_hundred, from),
            Limit::Policy,
            &evidence,
            "exempt-clients",
        );
    }
    // 4 of 7 in turn, and 2 of 3 beside losses by chance, have such shares; so have clients.
    let mut sevenths = limited(|bin| (bin + 1) * 40 / 7 - bin * 40 / 7);
    clients(&mut sevenths, true);
    judged(
        &sevenths,
        Limit::Unknown,
        "cannot tell a limit of 571",
        "half the rate",
    );
    let mut chance = limited(|bin| {
        let answered = (bin + 1) * 20 / 3 - bin * 20 / 3;
        answered - u64::from(scattered(bin) < 3).min(answered)
    });
    clients(&mut chance, true);
    assert_ne!(judge(&chance).limit, Limit::Policy, "{:#?}", judge(&chance));
    let mut some = limit(59, 0);
    clients(&mut some, false);
    assert_ne!(judge(&some).limit, Limit::Policy, "{:#?}", judge(&some));
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
    assert!(!verdict.evidence[0].contains("limit of"), "{verdict:#?}");
}

#[test]
fn truncation_beside_drops_at_a_fixed_rate_is_one_limit() {
    let mut record = limited(|_| 5);
    change_last(&mut record, |interval| interval.counts.truncated = 2_500);
    let evidence = "50.00 % of the responses were truncated, as RRL sends them";
    let verdict = judged(&record, Limit::Unknown, evidence, "exempt-clients");
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
    assert!(!verdict.evidence[0].contains("limit of"), "{verdict:#?}");
    // Nor is a target that is down for half of the time, nor one at which queries wait.
    let down = limited(|bin| if bin < 500 { 10 } else { 0 });
    let verdict = judge(&down);
    assert!(!verdict.evidence[0].contains("limit of"), "{verdict:#?}");
    let mut waiting = limited(|_| 5);
    change_last(&mut waiting, |interval| {
        interval
            .distributions
            .service
            .record_many(200 * MS, 100_000);
    });
    let verdict = judge(&waiting);
    assert!(!verdict.evidence[0].contains("limit of"), "{verdict:#?}");
}

#[test]
fn what_a_server_dropped_by_its_own_count_is_named_by_the_counter() {
    for (counter, words, cure) in [
        (
            "queries.dropped",
            "by a rate limit, a rule, an access list, or because more clients than \
             clients-per-query waited for one name",
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
        judged(&drops, Limit::Policy, &evidence, cure);

        // A few of them explain nothing.
        let few = server(15_000.0, &[(counter, SeriesKind::Counter, 5.0)]);
        let few = observing(record, &[few]);
        assert!(!few.verdict.evidence[0].contains("dropped by its own count"));
        assert!(said(&few).contains("50 "), "{}", said(&few));
    }
}

#[test]
fn no_counter_of_losses_is_left_out_of_the_verdict() {
    for counter in [DROPS, UPSTREAM_FAILURES].concat() {
        let mut record = in_time(10_000.0);
        lose(&mut record, 50_000);
        let more = [
            (counter, SeriesKind::Counter, 4_321.0),
            ("upstream.queries", SeriesKind::Counter, 10_000.0),
        ];
        let more: Vec<_> = more
            .into_iter()
            .filter(|(name, ..)| UPSTREAM_FAILURES.contains(&counter) || *name == counter)
            .collect();
        let observed = observing(record, &[server(15_000.0, &more)]);
        let told = said(&observed);
        assert!(told.contains("43,210 "), "{counter}: {told}");
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
    let evidence = "a limit of 300.0 qps from the loss of a fixed share, such as 3 of 5 in turn";
    judged(&record, Limit::Unknown, evidence, "exempt-clients");
}

#[test]
fn losses_in_bursts_are_no_limit_on_the_rate() {
    for (length, lost) in [(20, 4), (20, 9), (50, 8), (7, 3)] {
        let is_burst = |bin: u64| scattered(bin / length) < lost;
        let bursts = limited(|bin| if is_burst(bin) { 0 } else { 10 });
        let verdict = judge(&bursts);
        let text = verdict.evidence.join("\n");
        assert!(!text.contains("limit of"), "{length}, {lost}: {verdict:#?}");
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
