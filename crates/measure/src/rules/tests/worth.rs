//! What came back is judged before what limited the run.

use crate::experience::{ClientExperience, ClientFigures};
use crate::rules::situations::*;
use crate::timeline::{Bin, Timeline};

/// Changes the counts of an open loop that is answered in time, all at once.
fn answered(change: impl Fn(&mut crate::counts::Counts)) -> RunRecord {
    let mut record = in_time(10_000.0);
    change(&mut record.total.counts);
    record
}

#[test]
fn responses_that_are_all_truncated_are_no_rate_that_was_held() {
    let record = answered(|counts| {
        counts.truncated = 100_000;
        counts.truncated_rcodes.record_many(0, 100_000);
    });
    let evidence = "100 % of the responses were truncated (100,000), and 0 % of the queries";
    judged(&record, Limit::Unknown, evidence, "--tcp-fallback");

    let refused = answered(|counts| {
        counts.truncated = 100_000;
        counts.truncated_rcodes.record_many(0, 100_000);
        counts.tcp_fallback.sent = 100_000;
        counts.tcp_fallback.connection_losses = 100_000;
    });
    let evidence = "and 0 % of the 100,000 sent again over TCP got a response";
    judged(&refused, Limit::Unknown, evidence, "--transport tcp");

    // Over TCP they came whole.
    let whole = answered(|counts| {
        counts.truncated = 100_000;
        counts.truncated_rcodes.record_many(0, 100_000);
        counts.tcp_fallback.sent = 100_000;
        counts.tcp_fallback.responses = 100_000;
        counts.tcp_fallback.rcodes.record_many(0, 100_000);
    });
    let verdict = judge(&whole);
    assert_eq!(verdict.limit, Limit::Rate, "{verdict:#?}");
    assert!(verdict.evidence.iter().any(|it| it.contains("truncated")));
}

#[test]
fn names_or_types_that_none_has_are_no_rate_that_was_held() {
    for (name, cure) in [("NXDOMAIN", "--names"), ("NODATA", "types")] {
        let record = answered(|counts| {
            if name == "NODATA" {
                counts.nodata = 99_500;
            } else {
                counts.rcodes = Default::default();
                counts.rcodes.record_many(3, 99_500);
                counts.rcodes.record_many(0, 500);
            }
        });
        let evidence = format!("99.50 % of the responses were {name} (99,500)");
        judged(&record, Limit::Unknown, &evidence, cure);
    }
    // In a mix they are what was asked for.
    let mix = answered(|counts| {
        counts.rcodes = Default::default();
        counts.rcodes.record_many(3, 60_000);
        counts.rcodes.record_many(0, 40_000);
        counts.nodata = 20_000;
    });
    assert_eq!(judge(&mix).limit, Limit::Rate);
    // Beside another limit they are said.
    let mut slow = saturated();
    change_last(&mut slow, |interval| interval.counts.nodata = 100_000);
    slow.total.counts.nodata = slow.total.counts.responses;
    let verdict = judge(&slow);
    assert_eq!(verdict.limit, Limit::Server, "{verdict:#?}");
    assert!(verdict.evidence.iter().any(|it| it.contains("were NODATA")));
    // Slots that are all in use get the same.
    for (nodata, limit) in [(99_000, Limit::Unknown), (98_000, Limit::Outstanding)] {
        let mut slots = run(&[(10 * MS, 1_000)]);
        change_last(&mut slots, |interval| interval.counts.nodata = nodata);
        assert_eq!(judge(&slots).limit, limit, "{nodata}");
    }
    // And where NXDOMAIN is what is measured.
    let mut measured = answered(|counts| {
        counts.rcodes = Default::default();
        counts.rcodes.record_many(3, 100_000);
    });
    measured.scenario.goodput_rcodes = vec![3];
    assert_eq!(judge(&measured).limit, Limit::Rate);
}

#[test]
fn a_third_of_errors_is_said_first_and_a_fiftieth_beside() {
    let failing = |failed: u64| {
        answered(|counts| {
            counts.rcodes = Default::default();
            counts.rcodes.record_many(2, failed);
            counts.rcodes.record_many(0, 100_000 - failed);
        })
    };
    let evidence = "30.00 % of the responses were SERVFAIL (30,000)";
    judged(
        &failing(30_000),
        Limit::Unknown,
        evidence,
        "rndc zonestatus",
    );
    let verdict = judge(&failing(2_000));
    assert_eq!(verdict.limit, Limit::Rate);
    let evidence = "2.00 % of the responses were SERVFAIL (2,000)".to_owned();
    assert!(verdict.evidence.contains(&evidence), "{verdict:#?}");
}

#[test]
fn messages_that_match_no_query_are_named_by_what_differs() {
    let mut record = in_time(10_000.0);
    lose(&mut record, 50_000);
    change_last(&mut record, |interval| {
        interval.counts.unexpected.wrong_id = 50_000
    });
    let evidence = "50,000 messages matched no query: 50,000 with the ID of no query; 33.33 %";
    judged(&record, Limit::Unknown, evidence, "dig");

    let mut silent = crate::example::record(vec![interval(0, &[])]);
    lose(&mut silent, 1_000);
    change_last(&mut silent, |interval| {
        interval.counts.unexpected.wrong_source = 1_000
    });
    judged(
        &silent,
        Limit::Unknown,
        "1,000 messages matched no query",
        "interface-automatic",
    );

    // A few strays explain nothing.
    let mut few = in_time(10_000.0);
    change_last(&mut few, |interval| {
        interval.counts.unexpected.wrong_id = 50
    });
    assert_eq!(judge(&few).limit, Limit::Rate);
    assert!(found_on(&few, "messages that match no query").is_none());
}

/// 100,000 responses of 0.1 ms in ten seconds, of which `late` took a second.
fn with_tail(late: u64) -> RunRecord {
    open_loop(&[(100_000, 1_000 - late), (SECOND, late)], 10_000.0)
}

fn timeline(late_bins: impl Fn(u64) -> bool) -> Timeline {
    let mut timeline = Timeline::new();
    for bin in 0..1_000 {
        let responses = 100;
        let each_us = if late_bins(bin) { 500_000 } else { 100 };
        let what = Bin {
            due: responses,
            sent: responses,
            responses,
            latency_us: responses * each_us,
            ..Bin::default()
        };
        timeline.add(bin * 10_000_000, &what);
    }
    timeline
}

#[test]
fn responses_far_later_than_most_are_never_on_time() {
    let mut spread = with_tail(20);
    spread.groups[0].experience = None;
    let evidence = "2.00 % of the responses (2,000) took 50.00 ms or longer, against a median of \
                    100";
    let verdict = judged(&spread, Limit::Unknown, evidence, "run the names apart");
    assert!(
        verdict.evidence[0].ends_with("at all times, of all clients"),
        "{verdict:#?}"
    );

    // A timeline without latencies shows no span.
    let mut without = spread.clone();
    without.timeline = Some(Timeline::new());
    let evidence = "at all times, of all clients";
    judged(&without, Limit::Unknown, evidence, "run the names apart");

    let mut stalled = with_tail(20);
    stalled.timeline = Some(timeline(|bin| (400..440).contains(&bin)));
    let evidence = "nearly all in 1 span, from 4.00 s to 4.";
    judged(
        &stalled,
        Limit::Unknown,
        evidence,
        "check what the target did in that time",
    );

    let mut periodic = with_tail(20);
    periodic.timeline = Some(timeline(|bin| bin % 200 < 4));
    let evidence = "nearly all in 5 spans, one every 2.00 s";
    judged(&periodic, Limit::Unknown, evidence, "at that period");

    let mut of_clients = with_tail(20);
    let mut experience = ClientExperience::default();
    for client in 0..10 {
        let mut figures = ClientFigures {
            queries: 10_000,
            ..ClientFigures::default()
        };
        let latency_ns = if client < 2 { SECOND } else { 100_000 };
        figures.respond_many(100_000, 0, 9_000);
        figures.respond_many(latency_ns, 0, 1_000);
        experience.record(&figures, 10 * SECOND);
    }
    of_clients.groups[0].experience = Some(experience);
    judged(
        &of_clients,
        Limit::Unknown,
        "at 2 of 10 clients, each with its",
        "processes",
    );
}

#[test]
fn a_tail_of_cache_misses_is_on_time() {
    let misses = open_loop(&[(100_000, 900), (30 * MS, 100)], 10_000.0);
    assert_eq!(judge(&misses).limit, Limit::Rate);
    // A few late ones are said beside, and decide nothing.
    let few = with_tail(3);
    let verdict = judge(&few);
    assert_eq!(verdict.limit, Limit::Rate, "{verdict:#?}");
    let is_said = |it: &String| it.starts_with("0.30 % of the responses (300) took");
    assert!(verdict.evidence.iter().any(is_said), "{verdict:#?}");
}

#[test]
fn a_late_group_beside_a_slow_median_is_never_on_time() {
    // A third of the names is held for 100 ms; a quota makes all others slow.
    for slow_ms in [1, 5, 20] {
        let body = [(1, 100), (slow_ms, 400), (2 * slow_ms, 167)];
        let body = body.map(|(ms, number)| (ms * MS, number));
        let held = [(100 * MS, 200), (110 * MS, 133)];
        let mut record = open_loop(&[&body[..], &held[..]].concat(), 900.0);
        record.groups[0].experience = None;
        let evidence = "33.30 % of the responses (";
        judged(&record, Limit::Unknown, evidence, "run the names apart");
    }
    // Without a gap it is the tail of a queue, or of a path.
    let tail: Vec<(u64, u64)> = (0..30).map(|step| (5 * MS + step * 5 * MS, 33)).collect();
    let mut record = open_loop(&[&tail[..], &[(4 * MS, 1_000)]].concat(), 900.0);
    record.groups[0].experience = None;
    assert_eq!(judge(&record).limit, Limit::Rate);
    assert!(found_on(&record, "responses far late").is_none());
}

#[test]
fn servers_that_were_left_for_others_are_no_rate_that_was_held() {
    let record = answered(|counts| counts.stub.failovers.timed_out = 1_250);
    let evidence = "clients went on to another server 1,250 times (1.25 % of the queries)";
    judged(&record, Limit::Unknown, evidence, "each server alone");
    let few = answered(|counts| counts.stub.failovers.timed_out = 12);
    assert_eq!(judge(&few).limit, Limit::Rate);
}

#[test]
fn more_late_responses_than_a_busy_host_explains_are_not_the_hosts() {
    let mut record = open_loop(&[(100_000, 800), (200 * MS, 200)], 10_000.0);
    record.groups[0].experience = None;
    late(&mut record, 4 * MS);
    busy(&mut record, 0.3);
    record.workers[0].cpu_wait_ns = Some(8 * record.measured_ns / 100);
    let evidence = "20.00 % of the responses (";
    judged(&record, Limit::Unknown, evidence, "run the names apart");
    // Where as many queries left as late, the host held them up; not where others did.
    change_last(&mut record, |interval| {
        let lateness = &mut interval.distributions.send_lateness;
        lateness.record_many(100 * MS, 20_000);
    });
    assert_eq!(judge(&record).limit, Limit::Unknown);
    for interval in &mut record.intervals {
        let lateness = &mut interval.distributions.send_lateness;
        lateness.record_many(100 * MS, 2_000);
    }
    record.total = Interval::total(&record.intervals);
    assert_eq!(judge(&record).limit, Limit::Generator);
}
