//! What is found in records that are made up, each with its evidence and its cure.

use super::*;
use crate::doctor::{State, worst};
use crate::example::{SECOND, cap_tcp_clients, interval, record};
use crate::facts::XdpFacts;
use crate::interval::Interval;
use crate::scenario::{Arrival, Process, Transport};
use crate::verdict::judge;

const MS: u64 = 1_000_000;

/// Ten seconds of 10,000 queries each, all 100 places in use at a queue.
fn run() -> RunRecord {
    let latencies = [(200_000, 10), (10 * MS, 9_990)];
    let mut record = record((0..10).map(|index| interval(index, &latencies)).collect());
    record.verdict = judge(&record);
    record
}

fn open_loop(rate_qps: f64) -> RunRecord {
    let mut record = record(
        (0..10)
            .map(|index| interval(index, &[(MS, 10_000)]))
            .collect(),
    );
    record.scenario.arrival = Arrival::Open {
        rate_qps,
        process: Process::Constant,
        burst: 1,
    };
    record.verdict = judge(&record);
    record
}

/// Changes the last interval, and judges again.
fn change(record: &mut RunRecord, change: impl Fn(&mut Interval)) {
    change(record.intervals.last_mut().expect("has intervals"));
    record.total = Interval::total(&record.intervals);
    record.verdict = judge(record);
}

fn lose(record: &mut RunRecord, number: u64) {
    change(record, |interval| {
        interval.counts.offered += number;
        interval.counts.sent += number;
        interval.counts.timeouts += number;
    });
}

/// The diagnosis on `topic`, after checking its state, a part of it and a part of its cures.
#[track_caller]
fn check(record: &RunRecord, topic: &str, state: State, seen: &str, cure: &str) -> Diagnosis {
    let all = of_run(record);
    let found = all.iter().find(|it| it.topic == topic);
    let found = found.unwrap_or_else(|| panic!("nothing on {topic}: {all:#?}"));
    assert_eq!(found.state, state, "{found:#?}");
    assert!(found.seen.contains(seen), "{found:#?}");
    let mut cures = found.cures.iter().map(Cure::sentence);
    assert!(cures.any(|it| it.contains(cure)), "{found:#?}");
    found.clone()
}

#[test]
fn the_limit_comes_first_with_the_advice_of_the_verdict() {
    let found = of_run(&run());
    assert_eq!((found.len(), found[0].topic.as_str()), (1, "limit: server"));
    let cures: Vec<String> = found[0].cures.iter().map(Cure::sentence).collect();
    assert!(cures[0].contains("--rate 7000"), "{cures:?}");
    assert!(
        cures.iter().any(|it| it.contains("rndc status")),
        "{cures:?}"
    );
    assert_eq!(worst(&found), State::Ok);

    let found = of_run(&open_loop(10_000.0));
    assert_eq!((found.len(), found[0].topic.as_str()), (1, "limit: rate"));
    assert!(found[0].cures[0].how.contains("raise --rate"), "{found:?}");
}

/// So many of 200 TCP clients are served, and the others refused or reset.
fn capped(served: u64) -> RunRecord {
    let mut record = run();
    cap_tcp_clients(&mut record, served);
    record.verdict = judge(&record);
    record
}

#[test]
fn binds_cap_on_tcp_clients_has_binds_statements() {
    let record = capped(150);
    let seen = "no more than 150 TCP clients at once: 50 of 200";
    for cure in [
        "tcp-clients 1000;",
        "tcp-listen-queue 4096;",
        "incoming-num-tcp: 1000",
    ] {
        let found = check(&record, "TCP clients", State::Problem, seen, cure);
        assert!(
            found.matters.contains("150 is what BIND allows"),
            "{found:?}"
        );
    }
    assert_eq!(of_run(&record)[0].topic, "TCP clients");
    // Another number is not BIND's.
    let seen = "no more than 90 TCP clients";
    let cure = "tcp-clients 1000;";
    let found = check(&capped(90), "TCP clients", State::Problem, seen, cure);
    assert!(!found.matters.contains("BIND"), "{found:?}");
}

#[test]
fn a_listen_queue_that_overflows_is_seen_in_three_ways() {
    let mut record = run();
    record.scenario.transport = Transport::Tcp.into();
    change(&mut record, |it| it.counts.connections.failed.timed_out = 3);
    let queue = "tcp-listen-queue 4096;";
    let state = State::Warning;
    check(
        &record,
        "listen queue",
        state,
        "3 connection attempts timed out",
        queue,
    );
    change(&mut record, |interval| {
        let times = &mut interval.distributions.connections.tcp_connect;
        times.record_many(200_000, 10);
        times.record(1_030 * MS);
    });
    check(
        &record,
        "listen queue",
        state,
        "as when a SYN is sent again",
        "somaxconn=4096",
    );
    record.scenario.target = "127.0.0.1:53".into();
    let overflows = ("TcpExt.ListenOverflows".to_owned(), 12);
    record.network.kernel.extend([overflows]);
    check(
        &record,
        "listen queue",
        state,
        "12 SYNs found",
        "tcp_max_syn_backlog=8192",
    );
}

#[test]
fn buffers_that_overflowed_are_told_apart() {
    let mut record = open_loop(10_000.0);
    lose(&mut record, 1_000);
    record.network.receive_drops = 900;
    record.verdict = judge(&record);
    let seen = "dropped 900 datagrams, 90.00 % of the 1,000";
    check(
        &record,
        "receive buffers",
        State::Problem,
        seen,
        "rmem_max=16777216",
    );
    assert_eq!(of_run(&record)[0].topic, "receive buffers");
    record.network.receive_drops = 9;
    record.verdict = judge(&record);
    let seen = "dropped 9 datagrams";
    check(
        &record,
        "receive buffers",
        State::Warning,
        seen,
        "--socket-buffer",
    );

    record.scenario.target = "127.0.0.1:53".into();
    record.network.kernel.insert("Udp.RcvbufErrors".into(), 800);
    let topic = "receive buffers of the target";
    check(
        &record,
        topic,
        State::Warning,
        "791 datagrams",
        "reuseport yes;",
    );
    record.network.kernel.insert("Softnet.Dropped".into(), 50);
    record.hosts[0]
        .sysctls
        .insert("net.core.netdev_max_backlog".into(), "8192".into());
    let larger = "netdev_max_backlog=32768";
    check(
        &record,
        "packet backlog",
        State::Problem,
        "dropped 50 packets",
        larger,
    );
}

#[test]
fn flows_that_conntrack_refused_are_named() {
    let mut record = run();
    record.network.kernel.insert("Conntrack.Dropped".into(), 5);
    let rule = "--dport 53 -j NOTRACK";
    check(
        &record,
        "conntrack",
        State::Problem,
        "refused 5 new flows",
        rule,
    );
    check(
        &record,
        "conntrack",
        State::Problem,
        "",
        "nf_conntrack_max=1048576",
    );
}

#[test]
fn what_the_generator_lacked_is_named() {
    let mut record = run();
    record.workers[0].cpu_ns = 99 * record.measured_ns / 100;
    record.verdict = judge(&record);
    let seen = "worker 0 used 99.0 % of its CPU";
    check(
        &record,
        "generator's CPU",
        State::Problem,
        seen,
        "--workers 2",
    );
    record.workers[0].cpu_ns = 92 * record.measured_ns / 100;
    record.verdict = judge(&record);
    let seen = "worker 0 used 92.0 % of its CPU";
    check(
        &record,
        "generator's CPU",
        State::Warning,
        seen,
        "--workers 2",
    );

    let mut record = open_loop(10_000.0);
    change(&mut record, |interval| {
        let lateness = &mut interval.distributions.send_lateness;
        lateness.record_many(4 * MS, 10_000);
    });
    check(
        &record,
        "lateness",
        State::Problem,
        "the host stalled them",
        "ps -eo pcpu",
    );

    let kernel = [
        ("Cpu.All", 1_000),
        ("Cpu.Steal", 80),
        ("Cgroup.Throttled", 4),
    ];
    let kernel = kernel.map(|(name, count)| (name.to_owned(), count));
    record.network.kernel.extend(kernel);
    check(
        &record,
        "CPU steal",
        State::Problem,
        "took 8.0 %",
        "dedicated CPUs",
    );
    check(
        &record,
        "CPU quota",
        State::Problem,
        "used up 4 times",
        "limits.cpu",
    );
}

#[test]
fn files_and_ports_that_ran_out_have_their_commands() {
    let mut record = run();
    change(&mut record, |it| {
        it.counts.connections.failed.no_resources = 24
    });
    let seen = "24 connection attempts failed";
    check(
        &record,
        "open files",
        State::Problem,
        seen,
        "prlimit --pid $$ --nofile=1044:1044",
    );
    change(&mut record, |interval| {
        interval.counts.connections.failed.no_resources = 0;
        interval.counts.connections.failed.no_local_port = 24;
    });
    check(
        &record,
        "source ports",
        State::Problem,
        "local ports",
        "--local-address",
    );
    check(
        &record,
        "source ports",
        State::Problem,
        "local ports",
        "tcp_tw_reuse=1",
    );
}

#[test]
fn queries_not_sent_are_told_by_reason() {
    let mut record = run();
    change(&mut record, |interval| {
        interval.counts.offered += 1_110;
        interval.counts.not_sent.no_free_id += 1_000;
        interval.counts.not_sent.timed_out_waiting += 100;
        interval.counts.not_sent.send_failed += 10;
    });
    let reasons: Vec<Diagnosis> = of_run(&record)
        .into_iter()
        .filter(|it| it.topic == "queries not sent")
        .collect();
    let states: Vec<State> = reasons.iter().map(|it| it.state).collect();
    assert_eq!(states, [State::Warning, State::Warning]);
    assert!(reasons[1].cures[0].how.contains("wmem_max"), "{reasons:#?}");
    let seen = "had used up their message IDs";
    check(&record, "message IDs", State::Problem, seen, "--clients 20");
}

#[test]
fn losses_without_a_queue_are_not_called_overload() {
    let mut record = open_loop(10_000.0);
    lose(&mut record, 1_000);
    let topic = "losses without a queue";
    check(
        &record,
        topic,
        State::Warning,
        "got no response, and nothing shows that the load is the cause",
        "a tenth of the rate to find out: --rate 1000",
    );
    // Where queries waited first, the server could not keep up.
    let mut record = run();
    lose(&mut record, 1_000);
    assert!(of_run(&record).iter().all(|it| it.topic != topic));
}

#[test]
fn places_held_by_lost_queries_are_named() {
    let mut record = run();
    lose(&mut record, 400);
    change(&mut record, |it| {
        it.in_flight_ns += 400 * 5 * u128::from(SECOND)
    });
    let topic = "places held by lost queries";
    check(
        &record,
        topic,
        State::Problem,
        "of 100 places were held by lost queries",
        "--timeout 1s",
    );
}

#[test]
fn connections_that_the_target_ends_are_a_habit_or_a_loss() {
    let mut record = run();
    record.scenario.transport = Transport::Tcp.into();
    change(&mut record, |interval| {
        interval.connections_open = 10;
        interval.counts.connections.closed_by_target = 781;
    });
    let seen = "ended 781 connections (781 closed in order), after 128 queries each";
    let topic = "closed connections";
    check(
        &record,
        topic,
        State::Warning,
        seen,
        "--queries-per-connection 102",
    );
    check(&record, topic, State::Warning, seen, "miekg/dns");
    change(&mut record, |interval| {
        interval.counts.offered += 5_000;
        interval.counts.sent += 5_000;
        interval.counts.connection_losses += 5_000;
    });
    check(
        &record,
        topic,
        State::Problem,
        "5,000 queries (4.76 %",
        "tcp-idle-timeout",
    );
}

#[test]
fn rcodes_that_are_no_use_are_named_with_the_servers_settings() {
    let mut record = run();
    change(&mut record, |interval| {
        interval.counts.rcodes.by_rcode[0] -= 3_000;
        interval.counts.rcodes.by_rcode[2] += 1_500;
        interval.counts.rcodes.by_rcode[5] += 1_500;
        interval.counts.truncated += 2_000;
    });
    check(
        &record,
        "SERVFAIL",
        State::Warning,
        "1.50 % of the responses",
        "recursive-clients 10000;",
    );
    check(
        &record,
        "REFUSED",
        State::Warning,
        "(1,500)",
        "allow-query { any; };",
    );
    check(
        &record,
        "truncated responses",
        State::Warning,
        "2.00 %",
        "--edns-size 1232",
    );
    lose(&mut record, 5_000);
    check(
        &record,
        "truncated responses",
        State::Warning,
        "2.00 %",
        "exempt-clients",
    );
}

fn labelled(key: &str, value: &str, qps: u64) -> RunRecord {
    let mut record = record(vec![interval(0, &[(MS, qps)])]);
    record.scenario.labels.insert(key.into(), value.into());
    record
}

#[test]
fn query_logging_is_blamed_only_where_runs_without_it_are_faster() {
    let (on, off) = (
        labelled("querylog", "on", 10_000),
        labelled("querylog", "off", 15_000),
    );
    let found = of_runs(&[&on, &off]);
    assert_eq!((found.len(), found[0].state), (1, State::Problem));
    let seen = "10,000.0 qps with querylog=on, 15,000.0 qps with querylog=off: 50.0 % more";
    assert_eq!(found[0].seen, seen);
    let cures: Vec<&str> = found[0].cures.iter().map(|it| it.how.as_str()).collect();
    assert_eq!(cures[..2], ["rndc querylog off", "querylog no;"]);

    let same = labelled("querylog", "off", 10_100);
    let found = of_runs(&[&on, &same]);
    assert_eq!((found[0].state, found[0].cures.len()), (State::Ok, 0));
    // Runs that overlap show nothing either.
    let slow = labelled("querylog", "off", 9_000);
    assert_eq!(of_runs(&[&on, &off, &slow])[0].state, State::Ok);
    // One value, or another load, is no comparison.
    assert!(of_runs(&[&on, &on]).is_empty());
    let mut other = off;
    other.scenario.clients = 99;
    assert!(of_runs(&[&on, &other]).is_empty());
}

#[test]
fn busy_polling_caps_and_threads_are_compared_by_their_labels() {
    let runs = [
        labelled("busy_poll", "0", 250_000),
        labelled("busy_poll", "50", 260_000),
    ];
    let found = of_runs(&[&runs[0], &runs[1]]);
    assert_eq!(
        (found[0].topic.as_str(), found[0].state),
        ("busy polling", State::Problem)
    );
    assert_eq!(found[0].cures[0].how, "sysctl -w net.core.busy_read=50");

    let runs = [
        labelled("tcp-clients", "1000", 155_000),
        labelled("tcp-clients", "150", 114_000),
    ];
    let found = of_runs(&[&runs[0], &runs[1]]);
    assert_eq!(found[0].cures[0].how, "tcp-clients 1000;");

    let runs = [
        labelled("threads", "1", 10_000),
        labelled("threads", "4", 35_000),
    ];
    let found = of_runs(&[&runs[0], &runs[1]]);
    assert_eq!(found[0].cures[0].how, "named -n 4");
}

#[test]
fn the_same_share_lost_at_two_rates_is_the_paths() {
    let at = |rate_qps: f64, lost: u64| {
        let mut record = open_loop(rate_qps);
        lose(&mut record, lost);
        record
    };
    let (slow, fast) = (at(10_000.0, 2_000), at(20_000.0, 2_000));
    let found = of_runs(&[&fast, &slow]);
    assert_eq!(
        (found[0].topic.as_str(), found[0].state),
        ("path", State::Problem)
    );
    assert!(
        found[0].cures[0]
            .how
            .contains("mtr --report --udp 192.0.2.1"),
        "{found:?}"
    );
    assert!(of_runs(&[&slow, &at(20_000.0, 20_000)]).is_empty());
    assert!(of_runs(&[&slow, &at(12_000.0, 2_000)]).is_empty());
}

#[test]
fn waiting_in_the_generators_host_is_told_from_the_rest_by_timestamps() {
    let mut record = run();
    change(&mut record, |interval| {
        let path = &mut interval.distributions.path;
        path.generator.record_many(3 * MS, 1_000);
        path.network.record_many(4 * MS, 1_000);
        path.reader.record_many(3 * MS, 1_000);
    });
    let seen = "60.0 % of the latency was waiting in this host: 30.0 % until queries left, 30.0 %";
    check(
        &record,
        "waiting in this host",
        State::Warning,
        seen,
        "--outstanding",
    );
    change(&mut record, |interval| {
        interval
            .distributions
            .path
            .network
            .record_many(4 * MS, 1_000);
    });
    assert!(waits(&record).is_none(), "{:?}", waits(&record));
}

#[test]
fn full_queues_of_an_interface_are_told_from_full_buffers() {
    let mut record = open_loop(10_000.0);
    lose(&mut record, 1_000);
    let found =
        |record: &RunRecord, topic: &str| of_run(record).into_iter().find(|it| it.topic == topic);
    // Of 900 that came, AF_XDP itself dropped 500, and counts them itself.
    record.network.receive_drops = 500;
    record.network.xdp = Some(XdpFacts {
        receive_dropped: 500,
        interface_received_dropped: 600,
        peer_sent_dropped: 300,
        ..XdpFacts::default()
    });
    record.verdict = judge(&record);
    let seen = "full receive queues of the interface dropped 900 frames, 90.00 % of the 1,000";
    let topic = "receive queues";
    check(&record, topic, State::Problem, seen, "--outstanding");
    assert_eq!(of_run(&record)[0].topic, topic);
    assert_eq!(record.verdict.limit, Limit::Network);
    assert_eq!(found(&record, "receive buffers"), None);

    // What nobody misses is none of ours.
    let mut whole = open_loop(10_000.0);
    whole.network.xdp = Some(XdpFacts {
        interface_received_dropped: 3,
        peer_received_dropped: 3,
        ..XdpFacts::default()
    });
    assert_eq!(found(&whole, topic), None);
    assert_eq!(found(&whole, "queues beyond the interface"), None);

    record.network.receive_drops = 0;
    record.network.xdp = Some(XdpFacts {
        interface_sent_dropped: 1,
        peer_received_dropped: 900,
        ..XdpFacts::default()
    });
    record.verdict = judge(&record);
    let seen = "900 frames dropped at the other end of the veth pair, where nobody read them in \
                time; 1 frame dropped on leaving";
    let topic = "queues beyond the interface";
    let beyond = check(&record, topic, State::Warning, seen, "--rate");
    assert!(
        record.verdict.evidence.contains(&beyond.seen),
        "{record:#?}"
    );
    assert_eq!(found(&record, "receive queues"), None);
}

fn waits(record: &RunRecord) -> Option<Diagnosis> {
    let mut all = of_run(record).into_iter();
    all.find(|it| it.topic == "waiting in this host")
}

/// 100,000 responses of which 2 % waited for so long in the generator, and for so long to be read,
/// beside `network` on the way.
fn stamped(generator: u64, network: u64, reader: u64) -> RunRecord {
    let slow = generator + network + reader;
    let usual = 10_000 + MS + 10_000;
    let latencies = [(usual, 9_800), (slow, 200)];
    let mut record = record((0..10).map(|index| interval(index, &latencies)).collect());
    let parts = |interval: &mut Interval| {
        let path = &mut interval.distributions.path;
        for (part, usual, slow) in [
            (&mut path.generator, 10_000, generator),
            (&mut path.network, MS, network),
            (&mut path.reader, 10_000, reader),
        ] {
            part.record_many(usual, 9_800);
            part.record_many(slow, 200);
        }
    };
    record.intervals.iter_mut().for_each(parts);
    change(&mut record, |_| ());
    record
}

#[test]
fn a_tail_that_was_made_in_the_generators_host_is_told_by_timestamps() {
    let late = stamped(3 * MS, 2 * MS, 10_000);
    let seen = "60.0 % of the p99 was made in this host: it is 4.997 ms, that of wire and server \
                alone 2.000 ms (until queries left 3.000 ms, until responses were read 10.00 us)";
    let found = check(
        &late,
        "waiting in this host",
        State::Warning,
        seen,
        "--rate",
    );
    assert!(found.cures[0].sentence().contains("--rate"), "{found:#?}");
    assert!(found.matters.contains("wire.p99"), "{found:#?}");

    let unread = stamped(10_000, 2 * MS, 3 * MS);
    let seen = "60.0 % of the p99 was made in this host";
    let cure = "net.core.busy_poll";
    let found = check(&unread, "waiting in this host", State::Warning, seen, cure);
    let more = found.cures[0].sentence();
    assert!(more.contains("--workers"), "{found:#?}");
}

#[test]
fn a_tail_of_the_targets_is_none_of_this_hosts() {
    // Below a quarter.
    for (generator, network) in [(10_000, 5 * MS), (MS, 4 * MS)] {
        let found = waits(&stamped(generator, network, 10_000));
        assert!(found.is_none(), "{found:#?}");
    }
    // Many without stamps: nobody knows where the slow ones were.
    let mut record = stamped(3 * MS, 2 * MS, 10_000);
    change(&mut record, |interval| {
        let of_tail = 0.02 * interval.counts.responses as f64;
        interval.counts.offered += of_tail as u64;
        interval.counts.sent += of_tail as u64;
        interval.counts.responses += of_tail as u64;
        interval
            .distributions
            .latency
            .record_many(9 * MS, of_tail as u64);
    });
    assert!(waits(&record).is_none(), "{:#?}", waits(&record));
}
