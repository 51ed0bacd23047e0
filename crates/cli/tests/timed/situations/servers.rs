//! Real servers that are observed: what kept them from answering more, by their own evidence.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, ensure};
use lab::target::{BindOptions, BindTarget, UnboundOptions, UnboundTarget};
use load::names_file;
use measure::notation::count;
use proto::Transport;
use proto::query::QueryOptions;
use responder::Delay;

use testing::wait;

use super::on_quiet_host;
use crate::bench::{Load, Ran, Responder, ms};
use crate::target::zone;

/// A closed loop for a second and a half.
pub(super) fn load(outstanding: u32) -> Load {
    let load = Load::over(Transport::Udp).outstanding(outstanding);
    load.plan(|plan| {
        plan.duration = Some(ms(1_500));
        plan.timeout = ms(400);
    })
}

fn bind() -> BindTarget {
    let options = BindOptions {
        cpu: Some(0),
        ..BindOptions::new(zone())
    };
    BindTarget::start(&options).unwrap()
}

pub(super) fn observed(target: &BindTarget, load: Load) -> Ran {
    let period = format!("process={},period=100ms", target.process_id());
    load.observe(&["auto", &period]).run_on(target)
}

/// The verdict has one of these in its evidence.
pub(super) fn has_evidence(ran: &Ran, either: &[&str]) -> Result<()> {
    let (verdict, programs) = (&ran.record.verdict, ran.record.programs());
    let is_there = |words: &&str| verdict.evidence.iter().any(|it| it.contains(words));
    let is_any = either.iter().any(is_there);
    ensure!(is_any, "none of {either:?}: {verdict:#?} {programs:#?}");
    Ok(())
}

#[test]
fn a_server_on_one_cpu_has_used_it_up_or_others_had_it() {
    let target = bind();
    on_quiet_host(
        || observed(&target, load(100)),
        |ran| {
            has_evidence(ran, &["of its 1.00 CPUs"])?;
            has_evidence(ran, &["its CPU is the limit", "had to wait for a CPU"])?;
            let evidence = ran.record.verdict.evidence.join("\n");
            ensure!(!evidence.contains("a log of queries"), "{evidence}");
            Ok(())
        },
    );
}

/// A control group of version 1 or 2 with a limit, gone when dropped.
pub(super) struct Group {
    folder: PathBuf,
}

/// A fifth of a CPU, by version 1 and by version 2.
const A_FIFTH: [(&str, &str, &str); 2] = [
    ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000"),
    ("/sys/fs/cgroup", "cpu.max", "20000 100000"),
];

impl Group {
    /// One with that process and one of these limits, each a root, a file and its value; none where
    /// this host lets nobody make groups.
    pub(super) fn of(process: u32, limits: [(&str, &str, &str); 2]) -> Option<Group> {
        let name = format!("throng-test-{process}");
        let group = limits.into_iter().find_map(|(root, file, value)| {
            let folder = PathBuf::from(root).join(&name);
            fs::create_dir(&folder).ok()?;
            let group = Group { folder };
            fs::write(group.folder.join(file), value).ok()?;
            let processes = group.folder.join("cgroup.procs");
            fs::write(processes, process.to_string()).ok()?;
            Some(group)
        });
        if group.is_none() {
            eprintln!("left out: this host lets nobody make control groups");
        }
        group
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel empties a group a moment after its last process has ended.
        wait::is_soon(|| fs::remove_dir(&self.folder).is_ok());
    }
}

#[test]
fn a_server_with_a_quota_is_stopped_by_it() {
    let target = bind();
    let Some(quota) = Group::of(target.process_id(), A_FIFTH) else {
        return;
    };
    on_quiet_host(
        || observed(&target, load(100)),
        |ran| {
            has_evidence(ran, &["its CPU quota stopped it in"])?;
            has_evidence(ran, &["of its 0.20 CPUs"])
        },
    );
    // The group is removed after its last process.
    drop(target);
    drop(quota);
}

#[test]
fn a_server_whose_receive_buffer_is_full_counts_what_it_dropped() {
    let target = bind();
    // Ten sockets of ours are one of BIND's, which has room for 277 queries.
    on_quiet_host(
        || observed(&target, load(2_000)),
        |ran| {
            has_evidence(ran, &["the UDP sockets of named had no room for"])?;
            if let Some(octets) = ran.record.programs()[0].udp_buffer_bytes {
                let room = format!("; the smallest takes {} bytes", count(octets));
                has_evidence(ran, &[&room])?;
            }
            has_evidence(ran, &["fewer: its sockets had no room for"])
        },
    );
}

/// Names that Unbound has to ask our responder for, each once.
const UPSTREAM: u64 = 300;

fn questions_of_upstream() -> Load {
    let names = (0..UPSTREAM).map(|number| format!("n{number}.up.test A\n"));
    let text: String = names.collect();
    let questions = names_file::parse_text(text.as_bytes(), &QueryOptions::default()).unwrap();
    let load = Load::over(Transport::Udp).outstanding(10).queries(UPSTREAM);
    load.plan(|plan| plan.questions = Arc::new(questions))
}

#[test]
fn a_resolver_waits_for_the_authority_until_its_cache_is_warm() {
    let authority = Responder::start(|config| {
        config.behaviour.delay = Delay::Constant(ms(20));
    });
    let upstream = authority.address(Transport::Udp);
    let options = UnboundOptions {
        extra_options: format!(
            "  extended-statistics: yes\n  do-not-query-localhost: no\n  \
             local-zone: \"up.test.\" transparent\nforward-zone:\n  name: \"up.test.\"\n  \
             forward-addr: {}@{}\n",
            upstream.ip(),
            upstream.port()
        ),
        ..UnboundOptions::new(zone())
    };
    let run = |target: &UnboundTarget| {
        let ran = questions_of_upstream().observe(&["auto"]).run_on(target);
        ran.assert_all_answered(UPSTREAM);
        ran
    };
    let mut target = None;
    let cold = || {
        let started = UnboundTarget::start(&options).unwrap();
        let ran = run(target.insert(started));
        let servers = ran.record.servers();
        let asked = servers[0].upstream_queries.unwrap();
        assert!(asked >= UPSTREAM as f64, "{asked}");
        assert_eq!(servers[0].cache_hit_share, Some(0.0));
        ran
    };
    on_quiet_host(cold, |ran| {
        has_evidence(ran, &["on average: it waited for them"])
    });
    let warm = run(&target.unwrap());
    assert_eq!(warm.record.servers()[0].cache_hit_share, Some(1.0));
    let verdict = &warm.record.verdict;
    let mut evidence = verdict.evidence.iter();
    assert!(
        !evidence.any(|it| it.contains("it waited for them")),
        "{verdict:#?}"
    );
}
