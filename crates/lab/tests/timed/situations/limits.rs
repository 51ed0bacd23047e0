//! Limits of a BIND that is observed: one thread, its listen queue, its TCP clients, its memory,
//! and what its log of queries takes; each by its own evidence, with BIND's statements as cures.

use lab::target::{BindOptions, BindTarget};
use measure::RunRecord;
use measure::doctor::of_run;
use proto::Transport;

use super::ATTEMPTS_MAX;
use super::servers::{Group, load, observed, tells};
use crate::bench::{Load, alone, beside, ms};
use crate::servers::zone;

/// BIND with more statements in its options.
fn bind(statements: &str) -> BindTarget {
    let options = BindOptions {
        extra_options: statements.to_owned(),
        ..BindOptions::new(zone())
    };
    BindTarget::start(&options).unwrap()
}

/// What is told on that topic has that cure, and none for other products.
#[track_caller]
fn cures(record: &RunRecord, topic: &str, how: &str) {
    let all = of_run(record);
    let found = all.iter().find(|it| it.topic == topic);
    let found = found.unwrap_or_else(|| panic!("nothing on {topic}: {all:#?}"));
    let mut cures = found.cures.iter().map(|it| it.how.as_str());
    assert!(cures.any(|it| it.contains(how)), "{found:#?}");
    let sentences = found.cures.iter().map(|it| it.sentence());
    let others = ["Unbound, unbound.conf", "Knot DNS, knot.conf"];
    for sentence in sentences {
        assert!(
            !others.iter().any(|it| sentence.starts_with(it)),
            "{found:#?}"
        );
    }
}

#[test]
fn a_server_with_one_thread_leaves_other_cpus_unused() {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 {
        eprintln!("left out: this host has one CPU");
        return;
    }
    let _alone = alone();
    let target = bind("");
    let record = observed(&target, load(100));
    // The generator, or anybody else, may have had its CPU.
    tells(
        &record,
        &[
            "one of its threads was busy",
            "had to wait for a CPU",
            "waited for its CPU",
        ],
    );
    let program = &record.programs()[0];
    assert_eq!(program.cpus_allowed, Some(cpus as f64));
    if record
        .verdict
        .evidence
        .join(" ")
        .contains("one of its threads was busy")
    {
        cures(&record, "CPU of the server", &format!("named -n {cpus}"));
    }
}

#[test]
fn a_listen_queue_that_is_too_short_is_told_with_its_length() {
    let _beside = beside();
    let target = bind("  tcp-listen-queue 10;\n  tcp-clients 1000;");
    // A connection for each query: 200 clients connect at a time.
    let load = || {
        let load = Load::over(Transport::Tcp).clients(200).outstanding(200);
        load.plan(|plan| {
            plan.duration = Some(ms(2_000));
            plan.timeout = ms(5_000);
            plan.connections.queries_max = Some(1);
        })
    };
    // Who is too slow to connect fills no queue.
    let runs = (0..ATTEMPTS_MAX).map(|_| observed(&target, load()));
    let record = runs
        .reduce(|one, other| match one.programs()[0].listen_overflows {
            0 => other,
            _ => one,
        })
        .unwrap();
    tells(&record, &["the listen queue of named"]);
    // Where the kernel tells.
    if record.programs()[0].listen_queue.is_some() {
        tells(&record, &["its own has room for 10"]);
    }
    cures(
        &record,
        "listen queue of the server",
        "tcp-listen-queue 4096;",
    );
}

#[test]
fn binds_own_count_of_tcp_clients_is_evidence_of_its_limit() {
    let _beside = beside();
    let target = bind("  tcp-listen-queue 4096;");
    let load = Load::over(Transport::Tcp).clients(200).rate(2_000.0);
    let load = load.plan(|plan| {
        plan.duration = Some(ms(1_500));
        plan.timeout = ms(500);
    });
    let record = observed(&target, load);
    tells(
        &record,
        &["BIND had no more than 150 TCP clients at once by its own count, of 200"],
    );
    cures(&record, "TCP clients of the server", "tcp-clients 1000;");
}

#[test]
fn a_log_of_queries_is_told_by_what_is_written_for_each() {
    let _beside = beside();
    let target = bind("  querylog yes;");
    let record = observed(&target, load(100));
    tells(
        &record,
        &["bytes to files for each query, as a log of queries does"],
    );
    cures(&record, "log of the server", "querylog no;");
    cures(&record, "log of the server", "rndc querylog off");
}

/// Less than the log of the run below, by version 1 and by version 2.
const FOUR_MIB: [(&str, &str, &str); 2] = [
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "4194304"),
    ("/sys/fs/cgroup", "memory.max", "4194304"),
];

#[test]
fn memory_that_is_used_up_is_told_with_its_limit() {
    let _beside = beside();
    // What the kernel keeps of the log it writes is the group's memory too.
    let target = bind("  querylog yes;");
    let Some(group) = Group::of(target.process_id(), FOUR_MIB) else {
        return;
    };
    let load = load(50).plan(|plan| {
        plan.duration = None;
        plan.queries_max = Some(100_000);
        plan.timeout = ms(2_000);
    });
    let record = observed(&target, load);
    drop(target);
    drop(group);
    tells(&record, &["of 4.0 MiB"]);
    cures(
        &record,
        "memory of the server",
        "memory.max of its control group",
    );
    cures(&record, "memory of the server", "max-cache-size 2m;");
}
