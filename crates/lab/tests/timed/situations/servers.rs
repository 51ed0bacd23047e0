//! Real servers that are observed: what kept them from answering more, by their own evidence.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use lab::target::{BindOptions, BindTarget, UnboundOptions, UnboundTarget};
use load::names_file;
use measure::RunRecord;
use measure::notation::count;
use proto::Transport;
use proto::query::QueryOptions;
use responder::Delay;

use crate::bench::{Load, Responder, beside, ms};
use crate::servers::zone;

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

pub(super) fn observed(target: &BindTarget, load: Load) -> RunRecord {
    let period = format!("process={},period=100ms", target.process_id());
    let load = load.observe(&["auto", &period]);
    load.run_at(target.endpoints().do53()).record
}

/// The verdict tells one of these.
#[track_caller]
pub(super) fn tells(record: &RunRecord, either: &[&str]) {
    let evidence = &record.verdict.evidence;
    let is_told = |words: &&str| evidence.iter().any(|it| it.contains(words));
    assert!(
        either.iter().any(is_told),
        "none of {either:?}: {:#?} {:#?}",
        record.verdict,
        record.programs()
    );
}

#[test]
fn a_server_on_one_cpu_has_used_it_up_or_others_had_it() {
    let _beside = beside();
    let target = bind();
    let record = observed(&target, load(100));
    tells(&record, &["of its 1.00 CPUs"]);
    tells(&record, &["its CPU is the limit", "had to wait for a CPU"]);
    let evidence = record.verdict.evidence.join("\n");
    assert!(!evidence.contains("a log of queries"), "{evidence}");
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
        // A group is empty a moment after its last process has ended.
        for _ in 0..1_000 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::park_timeout(ms(10));
        }
    }
}

#[test]
fn a_server_with_a_quota_is_stopped_by_it() {
    let _beside = beside();
    let target = bind();
    let Some(quota) = Group::of(target.process_id(), A_FIFTH) else {
        return;
    };
    let record = observed(&target, load(100));
    drop(target);
    drop(quota);
    tells(&record, &["its CPU quota stopped it in"]);
    tells(&record, &["of its 0.20 CPUs"]);
}

#[test]
fn a_server_whose_receive_buffer_is_full_counts_what_it_dropped() {
    let _beside = beside();
    let target = bind();
    // Ten sockets of ours are one of BIND's, which has room for 277 queries.
    let record = observed(&target, load(2_000));
    tells(&record, &["the UDP sockets of named had no room for"]);
    if let Some(octets) = record.programs()[0].udp_buffer_bytes {
        let room = format!("; the smallest takes {} bytes", count(octets));
        tells(&record, &[&room]);
    }
    tells(&record, &["fewer: its sockets had no room for"]);
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
    let _beside = beside();
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
    let target = UnboundTarget::start(&options).unwrap();
    let run = || {
        let load = questions_of_upstream().observe(&["auto"]);
        load.run_at(target.endpoints().do53())
    };
    let cold = run();
    cold.assert_all_answered(UPSTREAM);
    tells(&cold.record, &["on average: it waited for them"]);
    let servers = cold.record.servers();
    let asked = servers[0].upstream_queries.unwrap();
    assert!(asked >= UPSTREAM as f64, "{asked}");
    assert_eq!(servers[0].cache_hit_share, Some(0.0));

    let warm = run();
    warm.assert_all_answered(UPSTREAM);
    assert_eq!(warm.record.servers()[0].cache_hit_share, Some(1.0));
    let verdict = &warm.record.verdict;
    let mut evidence = verdict.evidence.iter();
    assert!(
        !evidence.any(|it| it.contains("it waited for them")),
        "{verdict:#?}"
    );
}
