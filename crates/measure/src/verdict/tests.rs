use super::*;
use crate::example::{SECOND, cap_tcp_clients, interval, record, serve};
use crate::experience::{ClientExperience, ClientFigures};
use crate::facts::{TcpFacts, WorkerFacts};
use crate::histogram::Histogram;
use crate::interval::Interval;
use crate::scenario::{Arrival, Process, Transport};
use crate::timeline::Timeline;

mod encrypted;
mod without_queries;

const MS: u64 = 1_000_000;

/// A run of ten intervals with 10,000 responses each, full at 100 places: `latencies` in ns and
/// their share in thousandths.
fn run(latencies: &[(u64, u64)]) -> RunRecord {
    let scaled: Vec<_> = latencies
        .iter()
        .map(|&(ns, share)| (ns, 10 * share))
        .collect();
    record((0..10).map(|index| interval(index, &scaled)).collect())
}

/// Closed loop with all 100 places in use: 10,000 qps x 10 ms; a queue of 10 ms over 0.2 ms.
fn saturated() -> RunRecord {
    run(&[(200_000, 1), (10 * MS, 999)])
}

fn open_loop(latencies: &[(u64, u64)], rate_qps: f64) -> RunRecord {
    let mut record = run(latencies);
    record.scenario.arrival = Arrival::Open {
        rate_qps,
        process: Process::Constant,
        burst: 1,
    };
    record
}

/// Turns responses that never came into time-outs: `number` more queries, all lost.
fn lose(record: &mut RunRecord, number: u64) {
    change_last(record, |interval| {
        interval.counts.offered += number;
        interval.counts.sent += number;
        interval.counts.timeouts += number;
    });
}

fn change_last(record: &mut RunRecord, change: impl Fn(&mut Interval)) {
    change(record.intervals.last_mut().expect("has intervals"));
    record.total = Interval::total(&record.intervals);
}

fn busy(record: &mut RunRecord, share: f64) {
    let wall_ns = record.measured_ns;
    record.workers[0].cpu_ns = (share * wall_ns as f64) as u64;
    record.workers[0].wall_ns = wall_ns;
}

fn late(record: &mut RunRecord, lateness_ns: u64) {
    change_last(record, |interval| {
        interval
            .distributions
            .send_lateness
            .record_many(lateness_ns, 10_000);
    });
}

/// Checks limit, a part of the first evidence and a part of the first advice.
fn check(record: &RunRecord, limit: Limit, evidence: &str, advice: &str) -> Verdict {
    let verdict = judge(record);
    assert_eq!(verdict.limit, limit, "{verdict:#?}");
    assert!(verdict.evidence[0].contains(evidence), "{verdict:#?}");
    assert!(
        verdict.advice.iter().any(|line| line.contains(advice)),
        "{verdict:#?}"
    );
    verdict
}

#[test]
fn northflank_latency_is_the_default_of_100_outstanding() {
    let per_interval = [(300_000, 1_000), (6_497_400, 9_193_742)];
    let mut record = record(vec![interval(0, &per_interval)]);
    // The article's 600 s in one interval: 15,324.57 qps, mean 6.497 ms.
    record.measured_ns = 600 * SECOND;
    record.intervals[0].end_ns = 600 * SECOND;
    let evidence = "99.6 of at most 100 queries were in flight, with CPU time to spare here, while \
                    queries queued at the target: p50 6.4";
    let verdict = check(&record, Limit::Server, evidence, "--rate 10727");
    let law = "mean latency 6.497 ms x 15,324.6 qps = 99.6 in flight of 100: latency was set by \
               --outstanding, not by the target (run with --rate for honest latency)";
    assert!(
        verdict.evidence.iter().any(|line| line == law),
        "{verdict:#?}"
    );
}

#[test]
fn red_hat_udp_run_had_590_of_1000_places_held_by_lost_queries() {
    let mut record = record(vec![interval(
        0,
        &[(100_000, 1_000), (1_150_000, 36_510_000)],
    )]);
    lose(&mut record, 14_163);
    record.measured_ns = 120 * SECOND;
    record.intervals[0].end_ns = 120 * SECOND;
    record.intervals[0].in_flight_ns += 14_163 * 5 * u128::from(SECOND);
    record.scenario.arrival = Arrival::Closed {
        outstanding: 1_000,
        rate_qps_max: None,
    };
    let evidence = "590 of 1,000 places were held by lost queries (14,163 timed out after \
                    5.000 s each)";
    // Queries waited at the target: of those that fit in, no more came than before.
    let verdict = check(&record, Limit::Outstanding, evidence, "--outstanding 175");
    assert!(
        !verdict
            .advice
            .iter()
            .any(|it| it.contains("--outstanding 2000"))
    );
    let law = "mean latency 1.150 ms x 304,258 qps = 349.9 in flight of 1,000: latency was set by";
    let says = |line: &String| line.starts_with(law);
    assert!(verdict.evidence.iter().any(says), "{verdict:#?}");
}

#[test]
fn places_held_by_what_full_buffers_drop_need_fewer_queries_and_of_a_path_more() {
    let mut record = record(
        (0..4)
            .map(|at| interval(at, &[(MS, 10), (10 * MS, 39_990)]))
            .collect(),
    );
    lose(&mut record, 600);
    let last = record.intervals.last_mut().expect("has intervals");
    last.in_flight_ns += 600 * 4 * u128::from(SECOND);
    record.total = Interval::total(&record.intervals);
    record.scenario.arrival = Arrival::Closed {
        outstanding: 1_000,
        rate_qps_max: None,
    };
    record.scenario.target = "127.0.0.1:53".into();
    record.scenario.timeout_ns = 4 * SECOND;
    let kernel = &mut record.network.kernel;
    kernel.insert("Udp.RcvbufErrors".into(), 600);
    let mut timeline = Timeline::new();
    (0..600).for_each(|at| timeline.lose(at * 6 * MS, 1));
    record.timeline = Some(timeline);
    let evidence = "600 of 1,000 places were held by lost queries (600 timed out after 4.000 s \
                    each), all along (17 were asked in the first 0.1 s), and the target's receive \
                    buffers were full: they dropped 600 datagrams";
    for cure in ["--outstanding 200", "rmem_default=16777216", "so-rcvbuf"] {
        check(&record, Limit::Outstanding, evidence, cure);
    }
    // All at once, and nothing that waits: a path that loses a burst.
    let mut timeline = Timeline::new();
    timeline.lose(5 * MS, 600);
    record.timeline = Some(timeline);
    record.network.kernel.clear();
    let mut record_of_path = record;
    record_of_path.intervals.iter_mut().for_each(|it| {
        it.distributions.service = Histogram::new();
        it.distributions.service.record_many(MS, 40_000);
    });
    record_of_path.total = Interval::total(&record_of_path.intervals);
    let evidence = "each), nearly all in the burst with which the run began (600 were asked in the";
    for cure in ["--timeout 1s", "--outstanding 2000"] {
        check(&record_of_path, Limit::Outstanding, evidence, cure);
    }
}

#[test]
fn saturated_target_with_an_idle_generator_is_the_servers_limit() {
    let evidence = "99.9 of at most 100 queries were in flight, with CPU time to spare here, while";
    check(&saturated(), Limit::Server, evidence, "--rate 7000");
}

#[test]
fn path_delay_with_all_places_in_use_is_the_outstanding_limit() {
    let record = run(&[(9_900_000, 1), (10 * MS, 999)]);
    let evidence = "but nothing queued: p50 9.9";
    check(&record, Limit::Outstanding, evidence, "--outstanding 400");
}

#[test]
fn queue_that_stood_since_the_warm_up_is_still_a_queue() {
    let mut record = run(&[(9_900_000, 1), (10 * MS, 999)]);
    record.warmup.distributions.service.record(150_000);
    check(
        &record,
        Limit::Server,
        "against the shortest 150.0 us",
        "--rate 7000",
    );
}

#[test]
fn single_outstanding_query_is_always_the_outstanding_limit() {
    let mut record = record(
        (0..10)
            .map(|i| interval(i, &[(MS / 10, 100), (MS, 990)]))
            .collect(),
    );
    record.scenario.arrival = Arrival::Closed {
        outstanding: 1,
        rate_qps_max: None,
    };
    check(
        &record,
        Limit::Outstanding,
        "1.0 of at most 1 queries were in flight",
        "--outstanding 4",
    );
}

#[test]
fn busy_worker_in_closed_loop_is_the_generators_limit() {
    let mut record = saturated();
    busy(&mut record, 0.985);
    let evidence = "worker 0 used 98.5 % of its CPU: this tool, not the target, set the rate";
    check(
        &record,
        Limit::Generator,
        evidence,
        "give the generator another worker: --workers 2",
    );
    record.hosts[0].cores = Some(1);
    check(
        &record,
        Limit::Generator,
        evidence,
        "run from a second machine",
    );
}

#[test]
fn worker_that_waits_for_its_cpu_is_the_generators_limit() {
    let mut record = saturated();
    busy(&mut record, 0.5);
    record.workers[0].cpu_wait_ns = Some(48 * record.measured_ns / 100);
    let evidence = "worker 0 waited for its CPU 48.0 % of the time: something else runs on it";
    check(&record, Limit::Generator, evidence, "--cpus");
}

#[test]
fn closed_loop_worker_that_often_waits_for_its_cpu_is_the_generators_limit_though_not_busy() {
    let mut record = saturated();
    busy(&mut record, 0.5);
    record.workers[0].cpu_wait_ns = Some(12 * record.measured_ns / 100);
    let evidence = "worker 0 waited for its CPU 12.0 % of the time: something else runs on it";
    check(&record, Limit::Generator, evidence, "--cpus");
}

#[test]
fn open_loop_worker_that_is_late_and_busy_is_the_generators_limit() {
    let mut record = open_loop(&[(MS, 1_000)], 10_000.0);
    late(&mut record, 4 * MS);
    busy(&mut record, 0.92);
    let evidence = "worker 0 used 92.0 % of its CPU and queries left up to 4.00";
    check(&record, Limit::Generator, evidence, "--workers 2");
}

#[test]
fn busy_open_loop_worker_that_is_on_time_is_not_the_limit() {
    let mut record = open_loop(&[(MS, 1_000)], 10_000.0);
    busy(&mut record, 0.99);
    check(
        &record,
        Limit::Rate,
        "100.00 % of the queries offered at 10,000.0 qps",
        "raise --rate",
    );
}

#[test]
fn population_that_was_answered_on_time_is_to_grow() {
    let mut record = open_loop(&[(MS, 1_000)], 10_000.0);
    let rate_qps = Some(10_000.0);
    record.scenario.arrival = Arrival::Clients { rate_qps };
    let evidence = "100.00 % of the queries offered at 10,000.0 qps";
    check(&record, Limit::Rate, evidence, "raise --clients");
}

#[test]
fn stalled_host_is_the_generators_limit() {
    let mut record = open_loop(&[(MS, 1_000)], 10_000.0);
    late(&mut record, 4 * MS);
    check(
        &record,
        Limit::Generator,
        "the host stalled them",
        "other load",
    );
}

#[test]
fn exhausted_message_ids_are_the_generators_limit() {
    let mut record = saturated();
    change_last(&mut record, |interval| {
        interval.counts.offered += 1_000;
        interval.counts.not_sent.no_free_id += 1_000;
    });
    check(
        &record,
        Limit::Generator,
        "1,000 queries (0.99 % of those offered) were not sent: some of the 10 clients had used up",
        "--clients 20",
    );
}

#[test]
fn refused_sends_are_the_generators_limit_unless_the_kernel_counted_drops() {
    let mut record = saturated();
    change_last(&mut record, |interval| {
        interval.counts.offered += 1_000;
        interval.counts.not_sent.send_failed += 1_000;
    });
    check(
        &record,
        Limit::Generator,
        "the kernel did not take them",
        "net.core.wmem_max",
    );
    record
        .network
        .kernel
        .insert("Udp.SndbufErrors".into(), 1_000);
    check(
        &record,
        Limit::Network,
        "dropped 1,000 datagrams on sending",
        "net.core.wmem_max",
    );
    // More than this run missed are those of others.
    record
        .network
        .kernel
        .insert("Udp.SndbufErrors".into(), 90_000);
    assert_ne!(judge(&record).limit, Limit::Network);
}

#[test]
fn too_few_descriptors_are_the_generators_limit() {
    let mut record = saturated();
    change_last(&mut record, |i| {
        i.counts.connections.failed.no_resources = 24
    });
    check(
        &record,
        Limit::Generator,
        "24 connection attempts failed",
        "ulimit -n",
    );
}

#[test]
fn full_receive_buffers_that_explain_the_losses_are_the_networks_limit() {
    let mut record = saturated();
    lose(&mut record, 100);
    record.network.receive_drops = 60;
    let evidence = "dropped 60 datagrams, 60.00 % of the 100 without response";
    check(&record, Limit::Network, evidence, "net.core.rmem_max");
    record.network.receive_drops = 40;
    // Those of other sockets of this host have nothing to do with it.
    record.network.kernel.insert("Udp.RcvbufErrors".into(), 100);
    assert_ne!(judge(&record).limit, Limit::Network);
}

#[test]
fn receive_drops_of_a_target_on_the_same_host_are_the_targets() {
    let mut record = open_loop(&[(MS, 1_000)], 10_000.0);
    lose(&mut record, 1_000);
    record.scenario.target = "127.0.0.1:53".into();
    record
        .network
        .kernel
        .insert("Udp.RcvbufErrors".into(), 1_000);
    let verdict = check(
        &record,
        Limit::Server,
        "0.99 % of the offered queries",
        "--rate 8000",
    );
    let evidence = "dropped 1,000 datagrams: the target did not read them in time";
    let says = |line: &String| line.contains(evidence);
    assert!(verdict.evidence.iter().any(says), "{verdict:#?}");
}

#[test]
fn segments_that_our_own_connections_lost_are_the_networks_limit() {
    let mut record = saturated();
    record.scenario.transport = Transport::Tcp.into();
    // Those of the host are of everybody who uses it.
    let host = [("Tcp.RetransSegs", 2_000), ("Tcp.OutSegs", 100_000)];
    let host = host.map(|(name, count)| (name.to_owned(), count));
    record.network.kernel.extend(host);
    assert_eq!(judge(&record).limit, Limit::Server);
    let mut tcp = TcpFacts {
        segments_sent: 100_000,
        segments_repeated: 2_000,
        ..TcpFacts::default()
    };
    record.network.tcp = Some(tcp.clone());
    let evidence = "2.00 % of the TCP segments of this run's connections (2,000) were lost";
    check(&record, Limit::Network, evidence, "drops on the way");
    // What the target had already was not lost.
    tcp.segments_repeated_in_vain = 1_500;
    record.network.tcp = Some(tcp);
    assert_eq!(judge(&record).limit, Limit::Server);
}

#[test]
fn connections_that_we_had_to_close_are_no_limit_of_the_server() {
    let mut record = saturated();
    record.scenario.transport = Transport::Doq.into();
    change_last(&mut record, |interval| {
        let rules = &mut interval.counts.connections.closed_for_violation;
        (0..50).for_each(|_| rules.record("STOP_SENDING from a server (RFC 9250)"));
    });
    let evidence =
        "this tool closed 50 connections because the target broke a rule: 50 STOP_SENDING";
    check(
        &record,
        Limit::Generator,
        evidence,
        "--doq-allow-stop-sending",
    );
}

#[test]
fn cap_on_tcp_clients_is_named_with_its_number() {
    let mut record = saturated();
    cap_tcp_clients(&mut record, 150);
    let evidence = "the target serves no more than 150 TCP clients at once: 50 of 200 got no \
                    response at all (refused or reset)";
    let verdict = check(&record, Limit::Server, evidence, "tcp-clients 1000;");
    let said = verdict.evidence.iter().filter(|line| *line == evidence);
    assert_eq!(said.count(), 1);
}

#[test]
fn clients_without_any_answer_are_told_before_a_generator_that_waits_for_its_cpu() {
    let mut record = saturated();
    record.scenario.target = "127.0.0.1:53".into();
    record.scenario.transport = Transport::Tcp.into();
    record.scenario.clients = 200;
    serve(&mut record, 150, 50);
    lose(&mut record, 1_000);
    record.workers[0].cpu_wait_ns = Some(30 * record.measured_ns / 100);
    let unserved = "50 of 200 got no response at all (left waiting)";
    check(&record, Limit::Server, unserved, "tcp-clients 1000;");
    let waited = "worker 0 waited for its CPU";
    // What came late was read late, and a worker without time to spare may not have read at all.
    let mut late = record.clone();
    change_last(&mut late, |interval| interval.counts.late += 900);
    check(&late, Limit::Generator, waited, "--cpus");
    record.workers[0].cpu_wait_ns = Some(70 * record.measured_ns / 100);
    check(&record, Limit::Generator, waited, "--cpus");
    // It is no reason for others to refuse connections.
    change_last(&mut record, |interval| {
        interval.counts.connections.failed.refused += 60;
    });
    let refused = "50 of 200 got no response at all (refused or reset)";
    check(&record, Limit::Server, refused, "tcp-clients 1000;");
}

#[test]
fn clients_that_lost_their_few_queries_by_chance_are_no_cap() {
    let mut record = open_loop(&[(MS, 1_000)], 10_000.0);
    record.scenario.transport = Transport::Tcp.into();
    let mut experience = ClientExperience::default();
    for client in 0..10_000 {
        let mut figures = ClientFigures {
            queries: 1,
            ..ClientFigures::default()
        };
        if client % 20 != 0 {
            figures.respond(MS, 0);
        }
        experience.record(&figures, SECOND);
    }
    record.groups[0].experience = Some(experience);
    lose(&mut record, 5_300);
    assert!(!judge(&record).evidence[0].contains("serves no more"));
}

#[test]
fn target_that_closes_connections_after_some_queries_is_reported() {
    let mut record = saturated();
    record.scenario.transport = Transport::Tcp.into();
    change_last(&mut record, |interval| {
        interval.connections_open = 10;
        interval.counts.connections.closed_by_target = 781;
    });
    let line =
        "the target ended 781 connections (781 closed in order), after 128 queries each on average";
    assert!(
        judge(&record)
            .evidence
            .iter()
            .any(|evidence| evidence == line)
    );
}

#[test]
fn losses_while_queries_wait_are_the_servers_limit() {
    let mut record = open_loop(&[(200_000, 100), (10 * MS, 900)], 10_000.0);
    lose(&mut record, 5_000);
    let evidence = "4.76 % of the offered queries got no response, while 88 queries waited at the \
                    target on average: p50 9.994 ms against the shortest 200.0 us";
    let verdict = check(&record, Limit::Server, evidence, "--rate 8000");
    let said = "5,000 of 105,000 queries got no response (4.76 %): 5,000 timed out";
    assert!(verdict.evidence.iter().any(|it| it == said), "{verdict:#?}");
}

#[test]
fn losses_without_a_sign_of_load_are_not_blamed_on_the_server() {
    let mut record = open_loop(&[(MS, 1_000)], 10_000.0);
    lose(&mut record, 5_000);
    let evidence = "4.76 % of the offered queries got no response, and nothing shows that the load";
    check(
        &record,
        Limit::Unknown,
        evidence,
        "a tenth of the rate to find out: --rate 1000;",
    );
}

#[test]
fn responses_of_no_use_are_said_first_unless_they_are_named_as_good() {
    let mut record = open_loop(&[(MS, 1_000)], 10_000.0);
    for (rcode, name, cure) in [
        (5, "REFUSED", "allow-query"),
        (2, "SERVFAIL", "rndc zonestatus"),
        (1, "FORMERR", "without EDNS"),
        (4, "NOTIMP", "--goodput NOTIMP"),
    ] {
        record.total.counts.rcodes = Default::default();
        record.total.counts.rcodes.record_many(rcode, 100_000);
        let evidence = format!("100.00 % of the responses were {name} (100,000): the figures say");
        check(&record, Limit::Unknown, &evidence, cure);
        record.scenario.goodput_rcodes = vec![rcode];
        assert_eq!(judge(&record).limit, Limit::Rate);
        record.scenario.goodput_rcodes = vec![0, 3];
    }
}

#[test]
fn late_generator_is_not_blamed_for_what_others_lost() {
    let mut record = open_loop(&[(MS, 1_000)], 10_000.0);
    late(&mut record, 4 * MS);
    lose(&mut record, 50_000);
    assert_ne!(judge(&record).limit, Limit::Generator);
    // What this host dropped on the way back explains it.
    record.network.receive_drops = 50_000;
    assert_eq!(judge(&record).limit, Limit::Generator);
    // So does what it had no time to send, if that is most of what is missing.
    record.network.receive_drops = 0;
    change_last(&mut record, |interval| {
        interval.counts.offered += 50_000;
        interval.counts.not_sent.run_ended += 50_000;
    });
    assert_eq!(judge(&record).limit, Limit::Generator);
}

#[test]
fn a_worker_that_waited_for_its_cpu_is_not_said_to_have_had_enough() {
    let mut record = open_loop(&[(MS, 1_000)], 10_000.0);
    late(&mut record, 4 * MS);
    busy(&mut record, 0.3);
    record.workers[0].cpu_wait_ns = Some(34 * record.measured_ns / 100);
    let evidence = "worker 0 waited for its CPU 34.0 % of the time: something else runs on it, and";
    check(&record, Limit::Generator, evidence, "--cpus");
    // The share is never more than all of the time.
    record.workers[0].cpu_wait_ns = Some(2 * record.measured_ns);
    check(&record, Limit::Generator, "100.0 % of the time", "--cpus");
}

#[test]
fn a_few_queries_tell_nothing() {
    for queries in [3, 40, 298] {
        let mut record = record(vec![interval(0, &[(MS, queries)])]);
        record.scenario.arrival = open_loop(&[(MS, 1_000)], queries as f64).scenario.arrival;
        let verdict = check(&record, Limit::Unknown, "too few to tell", "--duration");
        assert!(!verdict.evidence[0].contains("fell behind"));
    }
}

#[test]
fn growing_latency_in_open_loop_is_the_servers_limit() {
    let mut record = record(
        (0..9)
            .map(|i| interval(i, &[((1 + i) * 10 * MS, 1_000)]))
            .collect(),
    );
    record.scenario.arrival = Arrival::Open {
        rate_qps: 1_000.0,
        process: Process::Constant,
        burst: 1,
    };
    check(
        &record,
        Limit::Server,
        "latency grew from 19.99 ms to 79.95 ms",
        "--rate 800",
    );
}

#[test]
fn rate_that_was_held_is_the_limit() {
    let verdict = check(
        &open_loop(&[(MS, 1_000)], 10_000.0),
        Limit::Rate,
        "100.00 % of the queries offered at 10,000.0 qps were answered and sent on time (p99 10.0",
        "raise --rate",
    );
    assert!(
        !verdict
            .evidence
            .iter()
            .any(|line| line.contains("in flight of"))
    );
}

#[test]
fn rate_cap_of_the_closed_loop_is_the_limit() {
    let mut record = run(&[(MS, 1_000)]);
    record.scenario.arrival = Arrival::Closed {
        outstanding: 100,
        rate_qps_max: Some(10_000.0),
    };
    let verdict = check(
        &record,
        Limit::Rate,
        "rate cap of 10,000.0 qps",
        "raise the cap",
    );
    assert_eq!(
        verdict.evidence[1],
        "mean latency 1.000 ms x 10,000.0 qps = 10.0 in flight of 100"
    );
}

#[test]
fn unused_places_without_a_cause_are_not_blamed_on_the_target() {
    let evidence =
        "only 10.0 of at most 100 queries were in flight on average, though no worker was";
    check(
        &run(&[(MS, 1_000)]),
        Limit::Unknown,
        evidence,
        "run for longer",
    );
}

#[test]
fn run_without_a_response_is_not_judged() {
    let mut record = record(vec![interval(0, &[])]);
    lose(&mut record, 1_234);
    change_last(&mut record, |interval| {
        interval.counts.connections.failed.refused = 7
    });
    let evidence =
        "no response to 1,234 queries: 1,234 timed out, 7 connection attempts failed: refused";
    check(
        &record,
        Limit::Unknown,
        evidence,
        "answers at 192.0.2.1:53 over udp",
    );
}

#[test]
fn short_run_is_not_judged() {
    let mut record = saturated();
    record.measured_ns = 400 * MS;
    check(
        &record,
        Limit::Unknown,
        "only 400.0 ms were measured",
        "--duration 10s",
    );
}

#[test]
fn self_test_says_that_it_measures_this_tool() {
    let mut record = saturated();
    record.self_test = true;
    let verdict = check(
        &record,
        Limit::Server,
        "queries were in flight",
        "--server HOST",
    );
    let last = verdict.evidence.last().expect("has evidence");
    assert!(
        last.contains("the result measures this tool, not a server"),
        "{last}"
    );
}

#[test]
fn judging_leaves_out_of_account_what_the_record_said_before() {
    let mut record = saturated();
    record.verdict = Verdict {
        limit: Limit::Rate,
        ..Verdict::default()
    };
    record.workers.push(WorkerFacts::default());
    assert_eq!(judge(&record).limit, Limit::Server);
    assert_eq!(
        serde_json::to_string(&Limit::Server).expect("serializes"),
        "\"server\""
    );
}
