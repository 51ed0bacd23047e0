use super::outages::Usual;
use super::*;

/// A small generator of numbers; the seed is in the message of whatever fails.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// A timeline of random events up to `length_ns`, and what they add up to.
fn random(numbers: &mut Numbers, length_ns: u64) -> (Timeline, Bin) {
    let (mut timeline, mut total) = (Timeline::new(), Bin::default());
    for _ in 0..200 {
        let what = Bin {
            due: numbers.below(5),
            responses: numbers.below(3),
            refused: numbers.below(2),
            ..Bin::default()
        };
        timeline.add(numbers.below(length_ns), &what);
        let lost = numbers.below(2);
        timeline.lose(numbers.below(length_ns), lost);
        total.add(&what);
        total.lost += lost;
    }
    timeline.trim();
    (timeline, total)
}

const LENGTHS_NS: [u64; 4] = [1, 2_000_000_000, 45_000_000_000, 86_400_000_000_000];

#[test]
fn doubling_the_width_loses_nothing_and_keeps_the_bins_few() {
    let mut numbers = Numbers(1);
    for length_ns in LENGTHS_NS {
        let (timeline, total) = random(&mut numbers, length_ns);
        assert_eq!(timeline.total(), total);
        assert!(timeline.bins().len() <= BINS_MAX);
        let steps = timeline.width_ns() / WIDTH_NS_MIN;
        assert!(steps.is_power_of_two(), "{length_ns}: {steps}");
    }
}

#[test]
fn losses_are_a_share_of_the_queries_of_their_time() {
    let mut timeline = Timeline::new();
    for second in 0..3 {
        let due = Bin {
            due: 10,
            ..Bin::default()
        };
        timeline.add(second * 1_000_000_000, &due);
        timeline.lose(second * 1_000_000_000, second);
    }
    let share = |from: u64, to: u64| timeline.lost_share(from * 1_000_000_000, to * 1_000_000_000);
    assert_eq!((share(0, 1), share(2, 3), share(0, 3)), (0.0, 0.2, 0.1));
    assert_eq!(share(3, 9), 0.0);
}

#[test]
fn merging_is_exact_in_whatever_order() {
    let mut numbers = Numbers(2);
    for round in 0..50 {
        let length = || LENGTHS_NS[(round % 4) as usize] / (1 + round) + 1;
        let [a, b, c] = [0, 1, 2].map(|_| random(&mut numbers, length()).0);
        let mut left = a.clone();
        left.merge(&b);
        left.merge(&c);
        let mut right = c.clone();
        right.merge(&b);
        right.merge(&a);
        assert_eq!(left, right, "round {round}");
        assert_eq!(left.workers(), 3);
        let mut sum = a.total();
        [b, c].iter().for_each(|other| sum.add(&other.total()));
        assert_eq!(left.total(), sum);
    }
}

#[test]
fn timeline_of_what_is_told_late_is_that_of_what_is_told_at_once() {
    // Bins that have been doubled and then filled are those that were filled and then doubled.
    let (mut before, mut after) = (Timeline::new(), Timeline::new());
    let what = Bin {
        due: 1,
        ..Bin::default()
    };
    let far_ns = 100_000_000_000;
    before.add(far_ns, &what);
    for at_ns in (0..20_000_000_000).step_by(7_000_000) {
        before.add(at_ns, &what);
        after.add(at_ns, &what);
    }
    after.add(far_ns, &what);
    assert_eq!(before, after);
}

#[test]
fn written_timeline_is_read_as_it_was_and_a_wrong_one_is_refused() {
    let mut numbers = Numbers(3);
    for length_ns in LENGTHS_NS {
        let (timeline, _) = random(&mut numbers, length_ns);
        let json = serde_json::to_string(&timeline).unwrap();
        assert_eq!(serde_json::from_str::<Timeline>(&json).unwrap(), timeline);
    }
    let mut short = Timeline::new();
    short.lose(25_000_000, 2);
    let json = serde_json::to_string(&short).unwrap();
    assert_eq!(json, r#"{"width_ns":10000000,"workers":1,"lost":[0,0,2]}"#);
    for wrong in [
        r#"{"width_ns":30000000,"workers":1}"#,
        r#"{"width_ns":0,"workers":1}"#,
        r#"{"width_ns":10000000,"workers":1,"unknown":[]}"#,
    ] {
        assert!(serde_json::from_str::<Timeline>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn frozen_time_is_in_the_bins_in_which_it_passed() {
    let mut timeline = Timeline::new();
    timeline.freeze(15_000_000, 40_000_000);
    let frozen: Vec<u64> = timeline.bins().iter().map(|bin| bin.frozen_us).collect();
    assert_eq!(frozen, [0, 5_000, 10_000, 10_000]);
    let span = timeline.span_of(|bin| bin.frozen_us);
    assert_eq!(span, Some((10_000_000, 40_000_000)));
    assert_eq!(timeline.span_of(|bin| bin.due), None);
}

#[test]
fn time_without_a_way_to_the_target_is_in_its_bins_and_adds_up_over_workers() {
    let mut timeline = Timeline::new();
    timeline.cut_off(15_000_000, 40_000_000);
    timeline.merge(&timeline.clone());
    let cut_off: Vec<u64> = timeline.bins().iter().map(|bin| bin.cut_off_us).collect();
    assert_eq!(cut_off, [0, 10_000, 20_000, 20_000]);
    let json = serde_json::to_string(&timeline).unwrap();
    assert_eq!(serde_json::from_str::<Timeline>(&json).unwrap(), timeline);
}

#[test]
fn points_are_rates_over_whole_bins() {
    let mut timeline = Timeline::new();
    for at_ns in (0..1_000_000_000).step_by(1_000_000) {
        let what = Bin {
            due: 1,
            responses: 1,
            latency_us: 300,
            ..Bin::default()
        };
        timeline.add(at_ns, &what);
    }
    timeline.lose(500_000_000, 5);
    let points = timeline.points(1_000_000_000, 10);
    assert_eq!(points.len(), 10);
    assert!(points.iter().all(|point| point.due_qps == 1_000.0));
    assert_eq!((points[5].at_ns, points[5].lost_qps), (550_000_000, 50.0));
    assert_eq!(points[0].latency_ns_mean, Some(300_000.0));
    // A window that ends within a bin has a rate too.
    let cut = timeline.points(995_000_000, 3);
    assert_eq!(cut.len(), 3);
    assert!(timeline.points(0, 3).is_empty());
}

/// Queries as they were due, and after how long each was answered; none if it was lost.
fn of_queries(queries: &[(u64, Option<u64>)], timeout_ns: u64) -> Timeline {
    let mut timeline = Timeline::new();
    for &(due_ns, latency_ns) in queries {
        let one = |bin: Bin| bin;
        timeline.add(
            due_ns,
            &one(Bin {
                due: 1,
                sent: 1,
                ..Bin::default()
            }),
        );
        match latency_ns {
            Some(latency_ns) => timeline.add(
                due_ns + latency_ns,
                &Bin {
                    responses: 1,
                    latency_us: latency_ns / 1_000,
                    ..Bin::default()
                },
            ),
            None => {
                timeline.lose(due_ns, 1);
                let ended = Bin {
                    unanswered: 1,
                    ..Bin::default()
                };
                timeline.add(due_ns + timeout_ns, &ended);
            }
        }
    }
    timeline
}

const MS: u64 = 1_000_000;
const WINDOW_NS: u64 = 10_000 * MS;
const TIMEOUT_NS: u64 = 5_000 * MS;

fn found_in(timeline: &Timeline, places: Option<u64>) -> Outages {
    outages(
        timeline,
        Usual {
            window_ns: WINDOW_NS,
            latency_ns: 2 * MS,
            places,
        },
    )
}

/// 1,000 queries a second for 10 s, each answered as `latency` says.
fn open_loop(mut latency: impl FnMut(u64) -> Option<u64>) -> Timeline {
    let due = (0..10_000).map(|number| number * MS);
    let queries: Vec<(u64, Option<u64>)> = due.map(|at| (at, latency(at))).collect();
    of_queries(&queries, TIMEOUT_NS)
}

/// Answered after 2 ms, but for `stall`, whose queries are answered when it is over.
fn stalled(stall: std::ops::Range<u64>) -> impl FnMut(u64) -> Option<u64> {
    move |at| match stall.contains(&at) {
        true => Some(stall.end - at + 2 * MS),
        false => Some(2 * MS),
    }
}

#[test]
fn stall_of_an_open_loop_is_an_outage_with_beginning_and_end() {
    for length_ms in [1_000, 2_000] {
        let end_ms = 3_000 + length_ms;
        let timeline = open_loop(stalled(3_000 * MS..end_ms * MS));
        let found = found_in(&timeline, None);
        let [outage] = found.each[..] else {
            panic!("{found:?}")
        };
        assert_eq!(outage.kind, OutageKind::Silence);
        assert!(
            outage.begin_ns.abs_diff(3_000 * MS) <= 10 * MS,
            "{outage:?}"
        );
        assert!(outage.end_ns.abs_diff(end_ms * MS) <= 10 * MS, "{outage:?}");
        assert_eq!((outage.lost, outage.lasts), (0, false));
        assert!(outage.late.abs_diff(length_ms) <= 10, "{outage:?}");
        assert!(outage.recovered_ns <= outage.end_ns + 20 * MS, "{outage:?}");
        // In the rest of the run the rate was sustained, and no query waited.
        assert!(
            (found.outside.responses_qps - 1_000.0).abs() < 2.0,
            "{found:?}"
        );
        assert_eq!(found.outside.latency_ns_mean, Some(2e6));
    }
}

#[test]
fn outage_of_most_of_a_run_is_one_though_its_latencies_are_the_usual_ones() {
    for (begin_ms, end_ms) in [(1_000, 7_000), (500, 9_500), (0, 8_000), (2_000, 9_000)] {
        let timeline = open_loop(stalled(begin_ms * MS..end_ms * MS));
        let mut latencies: Vec<u64> = { (0..10_000).map(|at| at * MS) }
            .map(|at| stalled(begin_ms * MS..end_ms * MS)(at).unwrap_or(0))
            .collect();
        latencies.sort_unstable();
        let found = outages(
            &timeline,
            Usual {
                window_ns: WINDOW_NS,
                latency_ns: latencies[5_000],
                places: None,
            },
        );
        let [outage] = found.each[..] else {
            panic!("{begin_ms} to {end_ms} ms: {found:?}")
        };
        assert_eq!(outage.kind, OutageKind::Silence);
        assert!(outage.begin_ns.abs_diff(begin_ms * MS) <= 10 * MS);
        assert!(outage.end_ns.abs_diff(end_ms * MS) <= 10 * MS, "{outage:?}");
        assert_eq!(found.outside.latency_ns_mean, Some(2e6));
    }
}

#[test]
fn link_that_was_gone_for_a_moment_is_not_the_reason_of_a_long_silence() {
    let mut timeline = open_loop(stalled(3_000 * MS..5_000 * MS));
    timeline.cut_off(3_000 * MS, 3_400 * MS);
    assert_eq!(found_in(&timeline, None).each[0].kind, OutageKind::Silence);
    timeline.cut_off(3_400 * MS, 3_500 * MS);
    let kind = found_in(&timeline, None).each[0].kind;
    assert_eq!(kind, OutageKind::Unsendable);
}

/// What an outage of a kind leaves in a bin.
type Mark = fn(&mut Bin);

#[test]
fn restart_loses_what_is_due_in_it_and_refusals_name_its_kind() {
    let down = 4_000 * MS..5_200 * MS;
    let mut timeline = open_loop(|at| (!down.contains(&at)).then_some(2 * MS));
    let lost = |timeline: &Timeline| found_in(timeline, None).each[0];
    let silent = lost(&timeline);
    assert_eq!(
        (silent.kind, silent.due, silent.lost),
        (OutageKind::Silence, 1_190, 1_190)
    );
    let kinds: [(OutageKind, Mark); 7] = [
        (OutageKind::Refusal, |bin| bin.refused = 1),
        (OutageKind::Reset, |bin| bin.reset = 1),
        (OutageKind::Handshakes, |bin| bin.handshakes_failed = 1),
        (OutageKind::NoResources, |bin| bin.no_resources = 1),
        (OutageKind::Unsendable, |bin| bin.send_failed = 1),
        (OutageKind::Unsendable, |bin| bin.cut_off_us = 300_000),
        (OutageKind::OwnFreeze, |bin| bin.frozen_us = 700_000),
    ];
    for (kind, count) in kinds {
        let mut what = Bin::default();
        count(&mut what);
        let mut timeline = timeline.clone();
        timeline.add(4_500 * MS, &what);
        assert_eq!(lost(&timeline).kind, kind);
    }
    // Errors are responses, but not of use.
    let errors = Bin {
        responses: 1,
        errors: 1,
        ..Bin::default()
    };
    (4_000..5_200).for_each(|at| timeline.add(at * MS, &errors));
    assert_eq!(lost(&timeline).kind, OutageKind::Errors);
}

#[test]
fn what_led_to_an_outage_names_its_kind_and_what_was_there_all_along_does_not() {
    let timeline = open_loop(|at| (at < 5_000 * MS).then_some(2 * MS));
    let kinds: [(OutageKind, Mark); 5] = [
        (OutageKind::Refusal, |bin| bin.refused = 1),
        (OutageKind::Reset, |bin| bin.reset = 1),
        (OutageKind::Handshakes, |bin| bin.handshakes_failed = 1),
        (OutageKind::NoResources, |bin| bin.no_resources = 1),
        (OutageKind::Unsendable, |bin| bin.send_failed = 1),
    ];
    for (kind, count) in kinds {
        let mut what = Bin::default();
        count(&mut what);
        let kind_of = |at_ms: &[u64]| {
            let mut timeline = timeline.clone();
            at_ms.iter().for_each(|at| timeline.add(at * MS, &what));
            found_in(&timeline, None).each[0].kind
        };
        // As often in the last moments before as in it: clients try again after longer pauses.
        let tries = [4_700, 4_800, 4_850, 4_900, 5_100, 5_700, 7_000, 9_000];
        assert_eq!(kind_of(&tries), kind);
        let all_along: Vec<u64> = (0..10_000).step_by(250).collect();
        assert_eq!(kind_of(&all_along), OutageKind::Silence, "{kind:?}");
    }
}

/// A closed loop of `places`: each query is asked when the one before in its place has ended.
fn closed_loop(places: u64, mut latency: impl FnMut(u64) -> Option<u64>) -> Timeline {
    let mut queries = Vec::new();
    for place in 0..places {
        let mut at = place * 10_000;
        while at < WINDOW_NS {
            let took = latency(at);
            queries.push((at, took));
            at += took.unwrap_or(TIMEOUT_NS);
        }
    }
    of_queries(&queries, TIMEOUT_NS)
}

#[test]
fn stall_of_a_closed_loop_is_an_outage_though_nothing_is_due_in_it() {
    for (places, length_ms) in [(1, 1_000), (10, 1_000), (100, 2_000)] {
        let end_ms = 3_000 + length_ms;
        let timeline = closed_loop(places, stalled(2_998 * MS..end_ms * MS));
        let found = found_in(&timeline, Some(places));
        let [outage] = found.each[..] else {
            panic!("{places} places: {found:?}")
        };
        assert_eq!((outage.kind, outage.lost), (OutageKind::Silence, 0));
        assert!(
            outage.length_ns().abs_diff(length_ms * MS) <= 20 * MS,
            "{outage:?}"
        );
        assert_eq!(outage.late, places);
    }
}

#[test]
fn target_that_does_not_come_back_is_an_outage_that_lasts() {
    let timeline = open_loop(|at| (at < 6_000 * MS).then_some(2 * MS));
    let found = found_in(&timeline, None);
    assert!(
        found.each[0].lasts && found.each[0].end_ns == WINDOW_NS,
        "{found:?}"
    );
    // Those due in the bin in which the last response came.
    assert_eq!(found.outside.lost, 10);
}

#[test]
fn random_loss_is_no_outage_at_any_rate() {
    let mut numbers = Numbers(4);
    for percent in [3, 20, 50] {
        let mut lossy = || (numbers.below(100) >= percent).then_some(2 * MS);
        let found = found_in(&open_loop(|_| lossy()), None);
        assert_eq!(found.each, [], "{percent} %");
        // All places of a small closed loop come to wait for their timeouts.
        for places in [1, 10, 100] {
            let found = found_in(&closed_loop(places, |_| lossy()), Some(places));
            assert_eq!(found.each, [], "{percent} %, {places} places");
        }
    }
}

#[test]
fn overload_is_no_outage() {
    // A server that answers every third of its queries, those a whole second late.
    let found = found_in(
        &open_loop(|at| {
            ((at / MS).is_multiple_of(3)).then_some(1_000 * MS * (at + MS) / WINDOW_NS)
        }),
        None,
    );
    assert_eq!(found.each, []);
}

#[test]
fn slow_patch_bursts_and_small_numbers_are_no_outage() {
    // 200 ms for each query of two seconds.
    let slow = |at: u64| {
        Some(if (3_000 * MS..5_000 * MS).contains(&at) {
            200 * MS
        } else {
            2 * MS
        })
    };
    assert_eq!(found_in(&open_loop(slow), None).each, []);
    // A hundred queries at the start of each second, some lost and some late.
    let mut numbers = Numbers(5);
    let bursts: Vec<(u64, Option<u64>)> = (0..1_000)
        .map(|number| {
            let latency = match numbers.below(30) {
                0 => None,
                1 => Some(300 * MS),
                _ => Some(2 * MS),
            };
            (number / 100 * 1_000 * MS, latency)
        })
        .collect();
    assert_eq!(found_in(&of_queries(&bursts, TIMEOUT_NS), None).each, []);
    // Five queries a second, of which three in a row are lost.
    let few: Vec<(u64, Option<u64>)> = (0..50)
        .map(|number| {
            (
                number * 200 * MS,
                (!(20..23).contains(&number)).then_some(2 * MS),
            )
        })
        .collect();
    assert_eq!(found_in(&of_queries(&few, TIMEOUT_NS), None).each, []);
    // A target that never answers has no rate outside.
    assert_eq!(found_in(&open_loop(|_| None), None).each, []);
}

/// 40 queries every second and a half: each answered as `latency` says.
fn in_bursts(latency: impl Fn(u64) -> Option<u64>) -> Timeline {
    let due = (0..7).flat_map(|burst| (0..40).map(move |_| burst * 1_500 * MS + 5 * MS));
    let queries: Vec<(u64, Option<u64>)> = due.map(|at| (at, latency(at))).collect();
    of_queries(&queries, 1_000 * MS)
}

#[test]
fn time_in_which_nothing_is_due_or_waits_is_no_outage() {
    // Answered in another bin than that in which they are due.
    let slow = in_bursts(|_| Some(30 * MS));
    assert_eq!(found_in(&slow, None).each, []);
    // What is lost waits until it times out, and not until the load goes on.
    let of_burst = |at: u64| (3_000..4_500).contains(&(at / MS));
    let lossy = in_bursts(|at| (!of_burst(at)).then_some(30 * MS));
    let lengths = |timeline: &Timeline| -> Vec<(u64, u64)> {
        let each = found_in(timeline, None).each;
        let times = each.iter().map(|it| (it.begin_ns / MS, it.end_ns / MS));
        times.collect()
    };
    assert_eq!(lengths(&lossy), [(3_000, 4_010)]);
    // What is answered late waits until then.
    let stalled = in_bursts(|at| Some(if of_burst(at) { 900 * MS } else { 30 * MS }));
    assert_eq!(lengths(&stalled), [(3_000, 3_900)]);
}

#[test]
fn queries_that_are_due_seldom_and_time_out_soon_are_in_one_outage() {
    let down = 3_000 * MS..6_000 * MS;
    let queries: Vec<(u64, Option<u64>)> = (0..200)
        .map(|number| number * 50 * MS)
        .map(|at| (at, (!down.contains(&at)).then_some(2 * MS)))
        .collect();
    let found = found_in(&of_queries(&queries, 20 * MS), None);
    let [outage] = found.each[..] else {
        panic!("{found:?}")
    };
    assert!(
        outage.length_ns().abs_diff(3_000 * MS) <= 60 * MS,
        "{outage:?}"
    );
    assert_eq!((outage.due, outage.lost), (60, 60));
}

#[test]
fn freeze_of_some_workers_is_an_outage_though_others_go_on() {
    let mut timeline = open_loop(|_| Some(2 * MS));
    timeline.merge(&Timeline::new());
    timeline.freeze(2_000 * MS, 4_000 * MS);
    let found = found_in(&timeline, None);
    let [outage] = found.each[..] else {
        panic!("{found:?}")
    };
    assert_eq!(outage.kind, OutageKind::OwnFreeze);
    assert_eq!(outage.length_ns(), 2_000 * MS);
}

/// Steps of a second each, of a load that is answered after 2 ms but for what is due in an outage,
/// which times out; and the timeline of the same run, in which the outage cannot be seen.
fn of_a_day(rate_qps: u64, outage_ms: std::ops::Range<u64>) -> (Steps, Timeline) {
    const SECONDS: u64 = 86_400;
    let (mut steps, mut timeline) = (Steps::default(), Timeline::new());
    let gap_ms = 1_000 / rate_qps;
    let is_lost = |due_ms: u64| outage_ms.contains(&due_ms);
    for second in 0..SECONDS {
        let each = (second * 1_000..(second + 1) * 1_000).step_by(gap_ms as usize);
        let mut interval = Interval {
            start_ns: second * 1_000 * MS,
            end_ns: (second + 1) * 1_000 * MS,
            ..Interval::default()
        };
        for due_ms in each {
            let counts = &mut interval.counts;
            (counts.offered, counts.sent) = (counts.offered + 1, counts.sent + 1);
            counts.timeouts += u64::from(due_ms >= 5_000 && is_lost(due_ms - 5_000));
            if !is_lost(due_ms) {
                counts.responses += 1;
                counts.rcodes.by_rcode[0] += 1;
                interval.distributions.latency.record_many(2 * MS, 1);
                interval.note_usable(due_ms * MS, due_ms * MS + 10 * MS);
            } else {
                timeline.lose(due_ms * MS, 1);
            }
        }
        timeline.add(interval.start_ns, &Bin::of(&interval));
        steps.push(&interval);
    }
    (steps, timeline)
}

fn of_a_day_usual() -> Usual {
    Usual {
        window_ns: 86_400_000 * MS,
        latency_ns: 2 * MS,
        places: None,
    }
}

#[test]
fn outage_of_two_seconds_in_a_day_has_its_instants() {
    let (begin_ms, end_ms) = (43_200_300, 43_202_300);
    let (steps, timeline) = of_a_day(20, begin_ms..end_ms);
    assert_eq!(outages(&timeline, of_a_day_usual()).each, []);
    let found = steps.outages(&timeline, of_a_day_usual(), TIMEOUT_NS);
    let found = found.expect("steps are finer");
    assert_eq!((found.step_ns, found.omitted), (1_000 * MS, 0));
    let [outage] = found.each[..] else {
        panic!("{found:?}")
    };
    assert_eq!((outage.kind, outage.lasts), (OutageKind::Silence, false));
    assert!(
        outage.begin_ns.abs_diff(begin_ms * MS) <= 60 * MS,
        "{outage:?}"
    );
    assert!(outage.end_ns.abs_diff(end_ms * MS) <= 60 * MS, "{outage:?}");
    assert!(outage.due.abs_diff(40) <= 2, "{outage:?}");
    assert!(outage.lost.abs_diff(40) <= 2, "{outage:?}");
    assert_eq!(found.check(86_400 * 20), Ok(()));
    // Without one nothing is found, however slow the run.
    for rate_qps in [1, 20] {
        let (steps, timeline) = of_a_day(rate_qps, 0..0);
        let found = steps.outages(&timeline, of_a_day_usual(), TIMEOUT_NS);
        assert_eq!(found.expect("steps are finer").each, []);
    }
}

#[test]
fn own_freeze_in_a_long_run_is_told_from_silence() {
    let (begin_ms, end_ms) = (50_000_000, 50_004_000);
    let (steps, mut timeline) = of_a_day(20, begin_ms..end_ms);
    timeline.freeze(begin_ms * MS, end_ms * MS);
    let found = steps.outages(&timeline, of_a_day_usual(), TIMEOUT_NS);
    let kinds: Vec<OutageKind> = found
        .iter()
        .flat_map(|it| &it.each)
        .map(|it| it.kind)
        .collect();
    assert_eq!(kinds, [OutageKind::OwnFreeze]);
}

#[test]
fn more_outages_than_are_kept_leave_out_the_shortest_and_say_so() {
    let mut found = FoundOutages::new(1_000 * MS);
    let kept = steps::OUTAGES_MAX as u64;
    for number in 0..kept + 5 {
        let begin_ns = number * 10_000 * MS;
        let length_ns = (1_000 + number) * MS;
        found.push(Outage {
            begin_ns,
            end_ns: begin_ns + length_ns,
            recovered_ns: begin_ns + length_ns,
            kind: OutageKind::Silence,
            due: 1,
            lost: 1,
            late: 0,
            lasts: false,
        });
    }
    assert_eq!((found.each.len() as u64, found.omitted), (kept, 5));
    assert_eq!(found.each[0].length_ns(), 1_005 * MS);
    assert!(found.each.is_sorted_by_key(|it| it.begin_ns));
    // What two generators both saw.
    let mut other = FoundOutages::new(2_000 * MS);
    other.push(Outage {
        begin_ns: 99_500 * MS,
        ..found.each[5]
    });
    let common = found.common(&other);
    assert_eq!((common.each.len(), common.omitted), (1, 5));
    assert_eq!(common.each[0].begin_ns, found.each[5].begin_ns);
    assert_eq!((common.each[0].due, common.step_ns), (2, 2_000 * MS));
    let mut wrong = found.clone();
    wrong.each[0].end_ns = 0;
    assert_eq!(found.check(1), Ok(()));
    assert!(wrong.check(1).is_err());
}

#[test]
fn steps_of_any_number_of_days_are_few_and_have_everything() {
    let mut steps = Steps::default();
    let mut interval = Interval::default();
    let number = 3 * steps::STEPS_MAX as u64;
    for second in 0..number {
        (interval.start_ns, interval.end_ns) = (second * 10, (second + 1) * 10);
        interval.counts.offered = 1;
        steps.push(&interval);
    }
    assert_eq!(steps.width_ns(), Some(40));
    let bins = steps.bins(&Timeline::new(), u64::MAX, 0);
    assert!(bins.len() <= steps::STEPS_MAX);
    assert_eq!(bins.iter().map(|bin| bin.due).sum::<u64>(), number);
}
