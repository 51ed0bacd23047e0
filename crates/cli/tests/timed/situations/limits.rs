//! Limits of a BIND that is observed: one thread, its listen queue, its TCP clients, its memory,
//! and what its log of queries takes; each by its own evidence, with BIND's statements as cures.

use anyhow::{Context, Result, ensure};
use lab::target::{BindOptions, BindTarget};
use measure::doctor::of_run;
use proto::Transport;

use super::on_quiet_host;
use super::servers::{Group, has_evidence, load, observed};
use crate::bench::{Load, Ran, ms};
use crate::target::zone;

/// BIND with more statements in its options.
fn bind(statements: &str) -> BindTarget {
    let options = BindOptions {
        extra_options: statements.to_owned(),
        ..BindOptions::new(zone())
    };
    BindTarget::start(&options).unwrap()
}

/// The diagnosis of that topic has that cure, and none for other products.
fn has_cure(ran: &Ran, topic: &str, how: &str) -> Result<()> {
    let all = of_run(&ran.record);
    let found = all.iter().find(|it| it.topic == topic);
    let found = found.with_context(|| format!("no {topic}: {all:#?}"))?;
    let mut cures = found.cures.iter().map(|it| it.how.as_str());
    ensure!(cures.any(|it| it.contains(how)), "{found:#?}");
    let others = ["Unbound, unbound.conf", "Knot DNS, knot.conf"];
    for sentence in found.cures.iter().map(|it| it.sentence()) {
        let is_of_another = others.iter().any(|it| sentence.starts_with(it));
        ensure!(!is_of_another, "{found:#?}");
    }
    Ok(())
}

#[test]
fn a_server_with_one_thread_leaves_other_cpus_unused() {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 {
        eprintln!("left out: this host has one CPU");
        return;
    }
    let target = bind("");
    on_quiet_host(
        || observed(&target, load(100)),
        |ran| {
            let program = &ran.record.programs()[0];
            assert_eq!(program.cpus_allowed, Some(cpus as f64));
            // The generator may have had its CPU.
            let busy = "one of its threads was busy";
            let either = [busy, "had to wait for a CPU", "waited for its CPU"];
            has_evidence(ran, &either)?;
            match ran.record.verdict.evidence.join(" ").contains(busy) {
                true => has_cure(ran, "CPU of the server", &format!("named -n {cpus}")),
                false => Ok(()),
            }
        },
    );
}

#[test]
fn a_listen_queue_that_is_too_short_is_told_with_its_length() {
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
    on_quiet_host(
        || observed(&target, load()),
        |ran| {
            has_evidence(ran, &["the listen queue of named"])?;
            // Where the kernel tells.
            if ran.record.programs()[0].listen_queue.is_some() {
                has_evidence(ran, &["its own has room for 10"])?;
            }
            has_cure(ran, "listen queue of the server", "tcp-listen-queue 4096;")
        },
    );
}

#[test]
fn binds_own_count_of_tcp_clients_is_evidence_of_its_limit() {
    let target = bind("  tcp-listen-queue 4096;");
    let load = || {
        let load = Load::over(Transport::Tcp).clients(200).rate(2_000.0);
        load.plan(|plan| {
            plan.duration = Some(ms(1_500));
            plan.timeout = ms(500);
        })
    };
    on_quiet_host(
        || observed(&target, load()),
        |ran| {
            let own = "BIND had no more than 150 TCP clients at once by its own count, of 200";
            has_evidence(ran, &[own])?;
            has_cure(ran, "TCP clients of the server", "tcp-clients 1000;")
        },
    );
}

#[test]
fn a_log_of_queries_is_told_by_what_is_written_for_each() {
    let target = bind("  querylog yes;");
    on_quiet_host(
        || observed(&target, load(100)),
        |ran| {
            let log = "bytes to files for each query, as a log of queries does";
            has_evidence(ran, &[log])?;
            has_cure(ran, "log of the server", "querylog no;")?;
            has_cure(ran, "log of the server", "rndc querylog off")
        },
    );
}

/// Less than the log of the run below, by version 1 and by version 2.
const FOUR_MIB: [(&str, &str, &str); 2] = [
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "4194304"),
    ("/sys/fs/cgroup", "memory.max", "4194304"),
];

#[test]
fn memory_that_is_used_up_is_told_with_its_limit() {
    let run = || {
        // What the kernel keeps of the log it writes is the group's memory too.
        let target = bind("  querylog yes;");
        let group = Group::of(target.process_id(), FOUR_MIB)?;
        let load = load(50).plan(|plan| {
            plan.duration = None;
            plan.queries_max = Some(100_000);
            plan.timeout = ms(2_000);
        });
        let ran = observed(&target, load);
        // The group is removed after its last process.
        drop(target);
        drop(group);
        Some(ran)
    };
    let Some(mut first) = run().map(Some) else {
        return;
    };
    on_quiet_host(
        || first.take().or_else(run).unwrap(),
        |ran| {
            has_evidence(ran, &["of 4.0 MiB"])?;
            let topic = "memory of the server";
            has_cure(ran, topic, "memory.max of its control group")?;
            has_cure(ran, topic, "max-cache-size 2m;")
        },
    );
}
