//! Outages: spans in which nothing came back, each with its beginning, its end and its kind. The
//! rate outside of them is what the run sustained; no rate is advised for the sake of them.

use crate::counts::SendFailures;
use crate::facts::{CpuUse, TcpFacts};
use crate::rules::Judgement;
use crate::rules::situations::*;
use crate::symptoms::{Figures, Symptoms};
use crate::timeline::outages::Outside;
use crate::timeline::{Bin, Outage, OutageKind, Outages, Timeline};

const TENTH: u64 = SECOND / 10;

/// No response came between these two tenths of a second.
pub(super) fn outage(kind: OutageKind, begin: u64, end: u64) -> Outage {
    Outage {
        begin_ns: begin * TENTH,
        end_ns: end * TENTH,
        recovered_ns: end * TENTH,
        kind,
        due: 1_000 * (end - begin),
        lost: 1_000 * (end - begin),
        late: 0,
        lasts: false,
    }
}

fn judged_of(each: &[Outage]) -> Verdict {
    judged_in(&in_time(10_000.0), each, Outside::default())
}

pub(super) fn judged_in(record: &RunRecord, each: &[Outage], outside: Outside) -> Verdict {
    let mut figures = Figures::of(record);
    figures.outages = Outages {
        each: each.to_vec(),
        outside,
        ..Outages::default()
    };
    Judgement::from_symptoms(Symptoms::of_figures(figures)).verdict()
}

#[test]
fn the_longest_outage_is_told_and_those_alike_are_added_up() {
    let silent = |begin, end| outage(OutageKind::Silence, begin, end);
    let reset = outage(OutageKind::Reset, 80, 90);
    let verdict = judged_of(&[silent(5, 15), silent(20, 50), reset]);
    let seen = &verdict.evidence[0];
    for part in ["3.00 s: from 2.00 s to 5.00 s", "30,000", "4.00 s in all"] {
        assert!(seen.contains(part), "{seen}");
    }
}

#[test]
fn an_outage_is_the_fault_of_whoever_was_in_the_way() {
    for (kind, limit) in [
        (OutageKind::OwnFreeze, Limit::Generator),
        (OutageKind::NoResources, Limit::Generator),
        (OutageKind::Unsendable, Limit::Network),
        (OutageKind::Refusal, Limit::Server),
        (OutageKind::Handshakes, Limit::Server),
        (OutageKind::Errors, Limit::Server),
        (OutageKind::Reset, Limit::Server),
        (OutageKind::Silence, Limit::Server),
    ] {
        let verdict = judged_of(&[outage(kind, 20, 50)]);
        assert_eq!(verdict.limit, limit, "{kind:?}");
    }
}

#[test]
fn an_outage_while_the_quota_was_used_up_is_the_quotas() {
    let mut record = in_time(10_000.0);
    let kernel = &mut record.network.kernel;
    kernel.insert("Cgroup.Throttled".into(), 30);
    kernel.insert("Cgroup.ThrottledMicroseconds".into(), 1_600_000);
    for (kind, is_quotas) in [
        (OutageKind::OwnFreeze, true),
        (OutageKind::NoResources, false),
    ] {
        let verdict = judged_in(&record, &[outage(kind, 20, 50)], Outside::default());
        assert_eq!(verdict.limit, Limit::Generator, "{kind:?}");
        let named = verdict.evidence[0].contains("CPU quota of this container");
        assert_eq!(named, is_quotas, "{:?}", verdict.evidence);
        let advised = verdict.advice.iter().any(|it| it.contains("limits.cpu"));
        assert_eq!(advised, is_quotas, "{:?}", verdict.advice);
    }
    // Longer than the quota explains.
    let long = judged_in(
        &record,
        &[outage(OutageKind::OwnFreeze, 20, 60)],
        Outside::default(),
    );
    assert!(!long.evidence[0].contains("quota"), "{:?}", long.evidence);
}

#[test]
fn an_outage_that_is_short_and_met_hardly_a_query_decides_nothing() {
    for (kind, limit) in [
        (OutageKind::Silence, Limit::Server),
        (OutageKind::Unsendable, Limit::Network),
        (OutageKind::OwnFreeze, Limit::Generator),
    ] {
        let mut short = outage(kind, 20, 21);
        short.end_ns = short.begin_ns + TENTH / 2;
        (short.due, short.lost) = (5, 5);
        assert_eq!(judged_of(&[short]).limit, Limit::Rate, "{kind:?}");
        short.lost = 5_000;
        assert_eq!(judged_of(&[short]).limit, limit, "{kind:?}");
    }
}

#[test]
fn an_outage_of_a_closed_loop_decides_though_little_was_sent_in_it() {
    let record = saturated();
    let mut killed = outage(OutageKind::Refusal, 60, 100);
    (killed.due, killed.lost, killed.lasts) = (0, 0, true);
    let with = |lost| {
        let outside = Outside {
            due: 70_000,
            lost,
            ..Outside::default()
        };
        judged_in(&record, &[killed], outside)
    };
    let verdict = with(record.outstanding().unwrap());
    assert_eq!(verdict.limit, Limit::Server, "{verdict:#?}");
    let seen = &verdict.evidence[0];
    assert!(seen.starts_with("an outage of 4.00 s"), "{seen}");
    let lossy = with(7_000);
    let seen = &lossy.evidence[0];
    assert!(!seen.starts_with("an outage of"), "{seen}");
}

#[test]
fn losses_that_go_on_after_a_short_outage_are_not_of_it() {
    let mut record = in_time(10_000.0);
    let short = Outage {
        recovered_ns: 100 * TENTH,
        ..outage(OutageKind::Silence, 4, 10)
    };
    let lost_after = |record: &RunRecord| judged_in(record, &[short], Outside::default());
    assert_eq!(lost_after(&record).limit, Limit::Server);
    change_last(&mut record, |interval| {
        interval.counts.offered += 40_000;
        interval.counts.not_sent.timed_out_waiting += 40_000;
    });
    let verdict = lost_after(&record);
    let seen = &verdict.evidence[0];
    assert!(!seen.starts_with("an outage of"), "{verdict:#?}");
}

#[test]
fn silence_that_a_limit_on_the_rate_may_be_is_not_said_to_be_an_outage() {
    let silent = outage(OutageKind::Silence, 20, 50);
    let outside = |lost| Outside {
        due: 70_000,
        lost,
        ..Outside::default()
    };
    let limit = "answers nothing while a limit on the rate is exceeded";
    let says = |verdict: &Verdict, is_limit: bool| {
        let (seen, advice) = (&verdict.evidence[0], verdict.advice.join("; "));
        let is_open = verdict.limit == Limit::Unknown;
        assert!(is_open || verdict.limit == Limit::Server, "{verdict:#?}");
        assert_eq!(is_open, is_limit, "{verdict:#?}");
        assert_eq!(seen.contains(limit), is_limit, "{verdict:#?}");
        assert_eq!(seen.starts_with("an outage of"), !is_limit, "{verdict:#?}");
        assert_eq!(advice.contains("lift the limit"), is_limit, "{verdict:#?}");
    };
    // In the open loop, queries are lost before and after too; a few are no sign.
    let udp = in_time(10_000.0);
    says(&judged_in(&udp, &[silent], outside(0)), false);
    says(&judged_in(&udp, &[silent], outside(70)), false);
    says(&judged_in(&udp, &[silent], outside(7_000)), true);
    let mut lasting = silent;
    lasting.lasts = true;
    says(&judged_in(&udp, &[lasting], outside(0)), true);
    // Again in the next second, or it was a stall after which all is answered.
    let again = outage(OutageKind::Silence, 60, 70);
    says(&judged_in(&udp, &[silent, again], outside(0)), true);
    let late = [silent, again].map(|it| Outage { lost: 0, ..it });
    says(&judged_in(&udp, &late, outside(0)), false);
    // In the closed loop, all in flight are lost and time out.
    let mut closed = saturated();
    says(&judged_in(&closed, &[silent], outside(0)), false);
    closed.scenario.timeout_ns = silent.length_ns();
    says(&judged_in(&closed, &[silent], outside(0)), true);
    // A target that closes its connections while the limit is exceeded.
    let mut tcp = udp;
    tcp.scenario.transport = Transport::Tcp.into();
    let reset = outage(OutageKind::Reset, 20, 50);
    says(&judged_in(&tcp, &[reset], outside(0)), false);
    says(&judged_in(&tcp, &[reset], outside(7_000)), true);
    says(&judged_in(&tcp, &[reset, again], outside(0)), true);
}

#[test]
fn clients_without_luck_under_a_limit_on_the_rate_are_no_cap_on_clients() {
    let mut record = saturated();
    cap_tcp_clients(&mut record, 150);
    let is_cap = |verdict: &Verdict| {
        let mut lines = verdict.evidence.iter();
        lines.any(|line| line.contains("150 TCP clients at once"))
    };
    let reset = |begin| outage(OutageKind::Reset, begin, begin + 10);
    let limited = judged_in(&record, &[reset(20), reset(40)], Outside::default());
    assert!(!is_cap(&limited), "{limited:#?}");
    // One outage, and then 50 that still get nothing.
    let once = judged_in(&record, &[reset(20)], Outside::default());
    assert!(is_cap(&once), "{once:#?}");
}

#[test]
fn silence_between_the_turns_of_few_served_clients_is_no_outage() {
    let of = |sent_each: u64| {
        let mut record = saturated();
        cap_tcp_clients(&mut record, 150);
        let mut timeline = Timeline::new();
        for bin in 200..500 {
            let what = Bin {
                due: 10,
                sent: sent_each,
                lost: 10,
                ..Bin::default()
            };
            timeline.add(bin * 10 * MS, &what);
        }
        record.timeline = Some(timeline);
        judged_in(
            &record,
            &[outage(OutageKind::Silence, 20, 50)],
            Outside::default(),
        )
    };
    let said = |verdict: &Verdict| verdict.evidence[0].clone();
    let unsent = said(&of(0));
    assert!(unsent.contains("150 TCP clients at once"), "{unsent}");
    let sent = said(&of(1));
    assert!(sent.starts_with("an outage of 3.00 s"), "{sent}");
}

#[test]
fn clients_that_ask_once_do_not_show_whether_the_target_stopped_or_is_full() {
    let of = |clients: u64| {
        let mut record = saturated();
        record.scenario.transport = Transport::Tcp.into();
        record.scenario.clients = clients;
        serve(&mut record, 5, clients - 5);
        record.timeline = Some(Timeline::new());
        let mut silence = outage(OutageKind::Silence, 1, 50);
        silence.lasts = true;
        judged_in(&record, &[silence], Outside::default())
    };
    let offered = saturated().total.counts.offered;
    let once = of(offered);
    assert_eq!(once.limit, Limit::Server);
    let said = &once.evidence[0];
    assert!(said.contains("at once, or stopped answering"), "{said}");
    assert!(!once.evidence.join("").contains("outage"), "{once:#?}");
    // Clients that asked again and got nothing know more.
    let twice = of(offered / 2).evidence[0].clone();
    assert!(twice.starts_with("an outage of"), "{twice}");
}

#[test]
fn silence_is_the_hosts_where_it_stopped_the_generator_and_its_target_in_it() {
    let mut record = in_time(10_000.0);
    lose(&mut record, 30_000);
    record.host_use = Some(CpuUse {
        wall_ns: 10 * SECOND,
        is_target_here: true,
        target_ns: Some(SECOND),
        target_wait_ns: Some(4 * SECOND),
        others_ns: 9 * SECOND,
        ..CpuUse::default()
    });
    let silent = [outage(OutageKind::Silence, 20, 50)];
    let mut stopped_from = |begin: u64| {
        let mut timeline = Timeline::new();
        timeline.freeze(begin * TENTH, (begin + 20) * TENTH);
        record.timeline = Some(timeline);
        judged_in(&record, &silent, Outside::default())
    };
    let starved = stopped_from(25);
    assert_eq!(starved.limit, Limit::Generator, "{starved:#?}");
    let elsewhere = stopped_from(60);
    assert_eq!(elsewhere.limit, Limit::Unknown, "{elsewhere:#?}");
    let seen = "nothing came back: the target stopped, or other processes kept it from its CPU, \
                for which it waited 0.40 s in each second of the run";
    assert!(elsewhere.evidence[0].contains(seen), "{elsewhere:#?}");
    assert!(elsewhere.advice.join("; ").contains("CPUs of its own"));
    record.host_use = None;
    let down = judged_in(&record, &silent, Outside::default());
    assert_eq!(down.limit, Limit::Server, "{down:#?}");
}

#[test]
fn silence_over_tcp_after_losses_leaves_open_whether_the_target_stopped() {
    let mut silent = outage(OutageKind::Silence, 50, 100);
    silent.lasts = true;
    let judged = |lost_before: u64, unacknowledged: u64| {
        let mut record = in_time(10_000.0);
        record.scenario.transport = Transport::Tcp.into();
        let mut timeline = Timeline::new();
        let due = Bin {
            due: 100,
            sent: 100,
            ..Bin::default()
        };
        (0..1_000).for_each(|bin| timeline.add(bin * 10 * 1_000_000, &due));
        timeline.lose(2 * SECOND, lost_before);
        record.timeline = Some(timeline);
        record.network.tcp = Some(TcpFacts {
            closed: 10,
            read: 10,
            unacknowledged,
            ..TcpFacts::default()
        });
        judged_in(&record, &[silent], Outside::default())
    };
    let verdict = judged(1_000, 10);
    assert_eq!(verdict.limit, Limit::Unknown, "{verdict:#?}");
    let seen = "after 2.00 % of the earlier queries had been lost, and 10 connections got no \
                acknowledgement either: the path drops long segments";
    assert!(verdict.evidence[0].contains(seen), "{verdict:#?}");
    let is_advised = |what: &str| verdict.advice.iter().any(|it| it.contains(what));
    assert!(is_advised("ping -M do") && is_advised("check why the target stopped"));
    let verdict = judged(1_000, 0);
    assert_eq!(verdict.limit, Limit::Unknown, "{verdict:#?}");
    assert!(
        !verdict.evidence[0].contains("acknowledgement"),
        "{verdict:#?}"
    );
    // All connections met it at once.
    assert_eq!(judged(0, 10).limit, Limit::Server);
}

#[test]
fn an_outage_of_sends_that_this_host_forbids_is_its_firewalls() {
    let of = |count: fn(&mut SendFailures)| {
        let mut record = in_time(10_000.0);
        change_last(&mut record, |interval| {
            interval.counts.offered += 1_000;
            interval.counts.not_sent.send_failed += 1_000;
            count(&mut interval.counts.not_sent.send_failed_for);
        });
        let unsendable = outage(OutageKind::Unsendable, 20, 50);
        let verdict = judged_in(&record, &[unsendable], Outside::default());
        assert_eq!(verdict.limit, Limit::Network, "{verdict:#?}");
        (verdict.evidence[0].clone(), verdict.advice.join("; "))
    };
    let (seen, advice) = of(|why| why.forbidden = 1_000);
    assert!(
        seen.contains("a firewall rule of this host forbade"),
        "{seen}"
    );
    assert!(advice.contains("nft list ruleset"), "{advice}");
    let (seen, advice) = of(|why| why.unreachable = 1_000);
    assert!(seen.contains("interface down, or no route"), "{seen}");
    assert!(!advice.contains("nft"), "{advice}");
}

#[test]
fn silence_with_rejections_is_the_paths_and_without_them_the_targets() {
    let of = |kind, messages: u64, closed: u64| {
        let mut record = in_time(10_000.0);
        lose(&mut record, 30_000);
        change_last(&mut record, |it| it.counts.port_unreachable = closed);
        let kernel = &mut record.network.kernel;
        kernel.insert("Icmp.InDestUnreachs".into(), messages + closed);
        judged_in(&record, &[outage(kind, 20, 50)], Outside::default())
    };
    let rejected = of(OutageKind::Silence, 6, 0);
    assert_eq!(rejected.limit, Limit::Network, "{rejected:#?}");
    let seen = "6 rejections (ICMP destination unreachable) came to this host";
    assert!(rejected.evidence[0].starts_with(seen), "{rejected:#?}");
    let is_said = |it: &String| it.starts_with("an outage of 3.00 s");
    assert!(rejected.evidence.iter().any(is_said), "{rejected:#?}");
    let advice = rejected.advice.join("; ");
    assert!(advice.contains("tcpdump") && !advice.contains("why the target stopped"));
    // None came, or those of the closed port of a target that is down.
    for (kind, messages, closed) in [
        (OutageKind::Silence, 0, 0),
        (OutageKind::Refusal, 0, 900),
        (OutageKind::Reset, 6, 0),
    ] {
        let down = of(kind, messages, closed);
        assert_eq!(down.limit, Limit::Server, "{down:#?}");
        let seen = &down.evidence[0];
        assert!(seen.starts_with("an outage of 3.00 s"), "{seen}");
    }
}

/// A full closed loop with such silences, in tenths of a second, and as many slow responses.
fn with_silences(silences: &[(u64, u64)], slow: u64) -> RunRecord {
    let mut record = saturated();
    let is_silent = |bin: u64| {
        silences
            .iter()
            .any(|it| (10 * it.0..10 * it.1).contains(&bin))
    };
    let mut timeline = Timeline::new();
    for bin in (0..1_000).filter(|bin| !is_silent(*bin)) {
        let more = |is_more| if is_more { 200 } else { 100 };
        let what = Bin {
            due: more(is_silent(bin + 1)),
            sent: more(is_silent(bin + 1)),
            responses: more(bin > 0 && is_silent(bin - 1)),
            latency_us: 100 * 10_000,
            ..Bin::default()
        };
        timeline.add(bin * 10 * MS, &what);
    }
    record.timeline = Some(timeline);
    change_last(&mut record, |it| {
        it.distributions.latency.record_many(700 * MS, slow)
    });
    record
}

#[test]
fn slots_that_wait_for_what_is_slow_at_other_times_too_meet_no_outage() {
    let number = |record: &RunRecord| record.outages().unwrap().each.len();
    // The target stopped once, and then answered all that waited.
    let stopped = with_silences(&[(20, 26)], 100);
    assert_eq!(number(&stopped), 1);
    let seen = &judge(&stopped).evidence[0];
    assert!(seen.starts_with("an outage of 0.60 s"), "{seen}");
    // A part of it takes 0.7 s each time.
    let slow = with_silences(&[(20, 26)], 1_000);
    assert_eq!(number(&slow), 0);
    // So do all slots, together.
    let each: Vec<(u64, u64)> = (0..13).map(|it| (7 * it + 1, 7 * it + 7)).collect();
    assert_eq!(number(&with_silences(&each, 1_300)), 0);
    assert_eq!(number(&with_silences(&each[..4], 400)), 4);
    // What is lost then did not wait.
    let mut lossy = slow;
    lossy.timeline.as_mut().unwrap().lose(19 * TENTH, 1);
    assert_eq!(number(&lossy), 1);
}
