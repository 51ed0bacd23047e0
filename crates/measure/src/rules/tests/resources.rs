//! Connections that could not be opened for lack of open files or ports.

use crate::rules::situations::*;
use crate::timeline::{Bin, Timeline};

/// Attempts to connect, 24 of which failed for lack of files.
fn short_of_files(attempted: u64) -> RunRecord {
    let mut record = saturated();
    change_last(&mut record, |it| {
        it.counts.connections.attempted = attempted;
        it.counts.connections.failed.no_resources = 24;
    });
    record
}

#[test]
fn too_few_descriptors_are_the_generators_limit() {
    let seen = "24 connection attempts failed";
    let record = short_of_files(23_000);
    judged(&record, Limit::Generator, seen, "ulimit -n");
}

#[test]
fn few_attempts_without_a_descriptor_are_not_the_limit() {
    let record = short_of_files(24_000);
    told(&record, "open files").warning("24 connection attempts failed", "prlimit");
    assert_eq!(judge(&record).limit, Limit::Server);
}

#[test]
fn files_and_ports_that_ran_out_have_their_commands() {
    let mut record = short_of_files(34);
    let seen = "24 connection attempts failed";
    told(&record, "open files").problem(seen, "prlimit --pid $$ --nofile=1044:1044");
    change_last(&mut record, |interval| {
        interval.counts.connections.failed.no_resources = 0;
        interval.counts.connections.failed.no_local_port = 24;
    });
    told(&record, "source ports").problem("local ports", "--local-address");
    told(&record, "source ports").problem("local ports", "tcp_tw_reuse=1");
}

/// Ten seconds over TCP with a connection for each query: a worker that used this share of its CPU
/// and hardly sent in this many tenths of the time, and connections with ports that were used
/// again.
fn recycled(number: u64, slow_tenths: u64, busy: f64) -> RunRecord {
    let mut record = saturated();
    record.scenario.transport = Transport::Tcp.into();
    let kernel = &mut record.network.kernel;
    kernel.insert("TcpExt.TWRecycled".into(), number);
    let worker = &mut record.workers[0];
    worker.cpu_ns = (busy * worker.wall_ns as f64) as u64;
    change_last(&mut record, |it| {
        it.counts.connections.established = 100_000
    });
    let mut timeline = Timeline::new();
    for bin in 0..1_000 {
        let sent = if bin / 10 % 10 < slow_tenths { 2 } else { 140 };
        let what = Bin {
            due: sent,
            sent,
            responses: sent,
            latency_us: 200 * sent,
            ..Bin::default()
        };
        timeline.add(bin * 10 * MS, &what);
    }
    record.timeline = Some(timeline);
    record
}

#[test]
fn ports_that_are_used_again_are_the_generators_limit() {
    let seen = "75,000 connections got a local port that an earlier one had left a moment before";
    let short = recycled(75_000, 3, 0.96);
    let verdict = judged(&short, Limit::Generator, seen, "--local-address");
    let said = format!("{verdict:?}");
    assert!(said.contains("hardly sent in 30.0 % of the time"), "{said}");
    // A worker that has no CPU left has no more with another one.
    let verdict = judged(
        &recycled(75_000, 3, 0.99),
        Limit::Generator,
        seen,
        "--local-address",
    );
    assert!(!format!("{verdict:?}").contains("--workers"), "{verdict:?}");
    // Several addresses use their ports again too, and are not slow; nor is the kernel that took a
    // few ports why a worker is.
    for other in [
        recycled(75_000, 0, 0.96),
        recycled(5_000, 3, 0.96),
        recycled(75_000, 3, 0.5),
    ] {
        let said = format!("{:?}", judge(&other));
        assert!(!said.contains("got a local port"), "{said}");
    }
}
