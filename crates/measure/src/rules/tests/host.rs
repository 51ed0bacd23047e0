//! A busy host is named before the target is blamed.

use crate::facts::{CpuUse, ProcessUse, QuotaUse};
use crate::rules::situations::*;
use crate::timeline::Bin;

/// A target on this host that others kept waiting for a CPU.
pub(super) fn starved(waited: f64, others: f64) -> RunRecord {
    let mut record = saturated();
    let seconds = |of: f64| (of * 10.0 * SECOND as f64) as u64;
    record.host_use = Some(CpuUse {
        wall_ns: 10 * SECOND,
        own_ns: seconds(0.3),
        is_target_here: true,
        target_ns: Some(seconds(0.6)),
        target_wait_ns: Some(seconds(waited)),
        target_threads_waiting: None,
        target_udp_drops: None,
        target_quota: None,
        others_ns: seconds(others),
        stolen_ns: 0,
        busiest: vec![ProcessUse {
            name: "sh".into(),
            pid: 4711,
            cpu_ns: seconds(others),
        }],
    });
    record
}

#[test]
fn a_target_that_other_processes_kept_from_its_cpu_is_the_hosts_limit() {
    let evidence = "the target on this host waited for a CPU 0.40 s in each second: other \
                    processes kept 0.98 CPUs busy: sh (4711) 98.0 %";
    judged(&starved(0.4, 0.98), Limit::Generator, evidence, "taskset");
    // Its own threads waited for each other, or hardly at all.
    assert_eq!(judge(&starved(3.0, 0.2)).limit, Limit::Server);
    assert_eq!(judge(&starved(0.01, 0.98)).limit, Limit::Server);
    // It kept up nevertheless.
    let mut in_time = in_time(10_000.0);
    in_time.host_use = starved(0.4, 0.98).host_use;
    assert_eq!(judge(&in_time).limit, Limit::Rate);
    assert!(found_on(&in_time, "target's CPU").is_some());
}

#[test]
fn many_threads_wait_for_others_longer_than_for_each_other() {
    // 16 threads, and how many CPUs they, the generator and others used.
    let of_threads = |target: f64, own: f64, others: f64| {
        let mut record = starved(14.0, others);
        let host = record.host_use.as_mut().unwrap();
        host.target_threads_waiting = Some(16);
        host.target_ns = Some((target * 1e10) as u64);
        host.own_ns = (own * 1e10) as u64;
        record
    };
    let evidence = "the target on this host waited for a CPU 14.00 s in each second";
    let idle = of_threads(0.2, 0.23, 1.9);
    judged(&idle, Limit::Generator, evidence, "taskset");
    // They may have waited for each other or for the generator, and longer than others ran.
    for (target, own, others) in [(0.2, 0.24, 1.9), (0.24, 0.2, 1.9), (0.2, 0.2, 0.43)] {
        let busy = of_threads(target, own, others);
        assert_eq!(judge(&busy).limit, Limit::Server, "{target} {own} {others}");
    }
    let mut unknown = of_threads(0.2, 0.2, 1.9);
    unknown.host_use.as_mut().unwrap().target_threads_waiting = None;
    assert_eq!(judge(&unknown).limit, Limit::Server);
    // Its quota stops all of its threads at once.
    let mut stopped = of_threads(0.2, 0.2, 1.9);
    stopped.host_use.as_mut().unwrap().target_quota = Some(QuotaUse {
        periods: 100,
        throttled: 60,
        throttled_ns: 600 * MS,
    });
    assert_eq!(judge(&stopped).limit, Limit::Server);
}

#[test]
fn a_target_that_its_own_quota_stops_is_not_kept_from_its_cpu_by_others() {
    let stopped_in = |throttled, throttled_ns| {
        let mut record = starved(0.8, 1.82);
        busy(&mut record, 0.3);
        let host = record.host_use.as_mut().unwrap();
        host.target_quota = Some(QuotaUse {
            periods: 100,
            throttled,
            throttled_ns,
        });
        record
    };
    let evidence = "the CPU quota of the target on this host was used up in 98 of 100 periods, and \
                    stopped it for 7.840 s in total";
    judged(
        &stopped_in(98, 7_840 * MS),
        Limit::Server,
        evidence,
        "limits.cpu",
    );
    // Beside others, which kept it from using up all of it.
    assert_eq!(judge(&stopped_in(80, 6_000 * MS)).limit, Limit::Server);
    let few = stopped_in(30, 2_400 * MS);
    assert_eq!(judge(&few).limit, Limit::Generator);
    assert!(found_on(&few, "target's quota").is_some());
    assert!(found_on(&stopped_in(1, 80 * MS), "target's quota").is_none());
    let mut in_time = in_time(10_000.0);
    in_time.host_use = stopped_in(98, 7_840 * MS).host_use;
    assert_eq!(judge(&in_time).limit, Limit::Rate);
}

/// Losses at 50,000 qps on a host that sends late.
fn late_and_lossy(lateness_ns: u64, waited: Option<f64>) -> RunRecord {
    let mut record = in_time(50_000.0);
    record.scenario.target = "127.0.0.1:53".into();
    late(&mut record, lateness_ns);
    busy(&mut record, 0.3);
    let ns = |share: f64| (share * record.measured_ns as f64) as u64;
    record.workers[0].cpu_wait_ns = waited.map(ns);
    lose(&mut record, 20_000);
    record
}

#[test]
fn a_target_on_a_host_that_sends_late_is_not_blamed_for_losses() {
    for waited in [Some(0.13), Some(0.06), None] {
        let record = late_and_lossy(7 * MS, waited);
        assert_eq!(judge(&record).limit, Limit::Generator, "{waited:?}");
    }
    // Elsewhere, what leaves late leaves as a burst that fills buffers; a small burst does not.
    let mut elsewhere = late_and_lossy(85 * MS, Some(0.01));
    elsewhere.scenario.target = "192.0.2.1:53".into();
    assert_eq!(judge(&elsewhere).limit, Limit::Generator);
    let mut few = late_and_lossy(2 * MS, Some(0.01));
    few.scenario.target = "192.0.2.1:53".into();
    assert_ne!(judge(&few).limit, Limit::Generator);
}

/// `late_and_lossy` on a host whose kernel counted datagrams, and dropped as many.
fn dropped_by_buffers(drops: u64) -> RunRecord {
    let mut record = late_and_lossy(7 * MS, Some(0.13));
    let kernel = &mut record.network.kernel;
    kernel.insert("Udp.InDatagrams".into(), 100_000);
    kernel.insert("Udp.RcvbufErrors".into(), drops);
    record
}

#[test]
fn a_host_is_not_blamed_for_losses_that_none_of_its_buffers_dropped() {
    assert_eq!(judge(&dropped_by_buffers(15_000)).limit, Limit::Generator);
    assert_ne!(judge(&dropped_by_buffers(300)).limit, Limit::Generator);
    // The same where the target alone waited for its CPU.
    let mut waited = dropped_by_buffers(300);
    waited.host_use = starved(0.1, 0.98).host_use;
    assert_ne!(judge(&waited).limit, Limit::Generator);
    waited.network.kernel.clear();
    assert_eq!(judge(&waited).limit, Limit::Generator);
}

#[test]
fn a_host_is_not_blamed_for_connections_that_the_target_ended() {
    let mut record = saturated();
    record.scenario.transport = Transport::Tcp.into();
    record.host_use = starved(0.4, 0.98).host_use;
    change_last(&mut record, |interval| {
        interval.connections_open = 10;
        interval.counts.connections.closed_by_target = 781;
        interval.counts.offered += 5_000;
        interval.counts.sent += 5_000;
        interval.counts.connection_losses += 5_000;
    });
    judged(&record, Limit::Server, "ended 781 connections", "idle time");
    // Queries that timed out may have waited for the target.
    change_last(&mut record, |interval| {
        interval.counts.timeouts += 5_000;
        interval.counts.connection_losses = 0;
    });
    assert_eq!(judge(&record).limit, Limit::Generator);
}

#[test]
fn an_outage_is_the_targets_unless_it_may_have_waited_for_its_cpu_in_it() {
    let mut down = limited(|bin| if (300..800).contains(&bin) { 0 } else { 10 });
    down.host_use = starved(0.06, 0.98).host_use;
    let advice = "check why the target stopped";
    judged(&down, Limit::Server, "an outage of 5.00 s", advice);
    down.host_use = starved(0.5, 0.98).host_use;
    judged(&down, Limit::Unknown, "no response for 5.00 s", advice);
    // A generator that waited as long, and no longer in that time, ran in it.
    for interval in &mut down.intervals {
        let lateness = &mut interval.distributions.send_lateness;
        lateness.record(5 * MS);
    }
    down.workers[0].cpu_wait_ns = Some(5 * SECOND);
    judged(&down, Limit::Server, "an outage of 5.00 s", advice);
    down.workers[0].cpu_wait_ns = Some(SECOND);
    judged(&down, Limit::Unknown, "no response for 5.00 s", advice);
}

#[test]
fn an_outage_in_which_its_quota_may_have_stopped_the_target_is_not_laid_to_others() {
    let down_by = |throttled_ns| {
        let mut down = limited(|bin| if (300..800).contains(&bin) { 0 } else { 10 });
        down.host_use = starved(0.5, 0.98).host_use;
        down.host_use.as_mut().unwrap().target_quota = Some(QuotaUse {
            periods: 100,
            throttled: 60,
            throttled_ns,
        });
        down
    };
    let seen = "the target stopped, or its CPU quota stopped it, as it did for 0.45 s in each";
    let stopped = down_by(4_500 * MS);
    judged(&stopped, Limit::Unknown, seen, "raise the quota");
    let all = judge(&stopped);
    let all = [all.evidence, all.advice].concat().join("\n");
    assert!(!all.contains("other processes"), "{all}");
    // It stopped it for a small part of that time.
    let seen = "or other processes kept it from its CPU";
    judged(
        &down_by(400 * MS),
        Limit::Unknown,
        seen,
        "stop the other processes",
    );
}

#[test]
fn drops_of_sockets_that_are_not_the_targets_do_not_excuse_a_loss() {
    let judged_of = |drops| {
        let mut record = dropped_by_buffers(15_000);
        record.host_use = starved(0.01, 0.98).host_use;
        record.host_use.as_mut().unwrap().target_udp_drops = drops;
        judge(&record).limit
    };
    // Those of a back-end, while the target dropped none.
    assert_ne!(judged_of(Some(0)), Limit::Generator);
    assert_eq!(judged_of(Some(15_000)), Limit::Generator);
    assert_eq!(judged_of(None), Limit::Generator);
}

#[test]
fn a_target_that_refuses_is_down_however_long_it_waited_for_its_cpu() {
    let judged_of = |refused| {
        let mut down = limited(|bin| if bin < 500 { 10 } else { 0 });
        down.host_use = starved(0.5, 0.98).host_use;
        let what = Bin {
            refused,
            ..Bin::default()
        };
        let timeline = down.timeline.as_mut().unwrap();
        (500..1_000).for_each(|bin| timeline.add(bin * 10 * MS, &what));
        judge(&down)
    };
    let refused = judged_of(9);
    assert_eq!(refused.limit, Limit::Server, "{refused:#?}");
    let seen = "the target refused everything";
    assert!(refused.evidence[0].contains(seen), "{refused:#?}");
    assert_eq!(judged_of(0).limit, Limit::Unknown);
}
