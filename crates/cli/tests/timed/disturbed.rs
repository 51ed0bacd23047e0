//! Searches on a host that is not quiet, over real sockets: with programs that use up the CPU of
//! either side, and with either side stopped at random. Whatever the host does beside, a limit of
//! the server is within a tenth of the programmed one, and no less than what it sustains is proven.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use measure::Limit;
use measure::capacity::{Capacity, EndedBy};

use testing::quiet::Quiet;
use testing::timed::{Attempt, on_quiet_host};

use crate::host::{Host, wrong_unless};
use crate::process::{Responder, THRONG};

const CEILING: f64 = 4_000.0;

/// How long a search may take: some trials of a second.
const SEARCH: &str = "--start 1000 --max 12000 --repeat 1 --trial-duration 1s --max-duration 16s \
                      --format json --workers 1 --clients 4 --random-labels throng.test";

/// The CPU of generator or server, of those that this process may use; on a host with one CPU it is
/// the same.
fn cpu(index: usize) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mut rows = status.lines();
    let list = rows.find_map(|row| row.strip_prefix("Cpus_allowed_list:"));
    let ranges = list.unwrap().trim().split(',');
    let each = ranges.flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.parse::<usize>().unwrap()..=last.parse().unwrap()
    });
    each.take(index + 1).last().unwrap()
}

fn pinned(index: usize) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu(index).to_string()]);
    command
}

/// A program that uses up a CPU. It is no descendant of this process, which would have its CPU
/// time counted as the generator's own.
pub(crate) struct Hog(String);

impl Hog {
    pub(crate) fn begin(index: usize) -> Hog {
        let mut command = pinned(index);
        // Bounded, should this process be killed.
        let script = "timeout 600 sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!";
        let output = command.args(["sh", "-c", script]).output().unwrap();
        Hog(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        // One that cannot be killed has ended by itself.
        let _ = Command::new("kill").arg(&self.0).status();
    }
}

/// The search, pinned, with its output piped.
fn search(responder: &Responder) -> Child {
    let mut command = pinned(0);
    let server = format!("--server {}", responder.address());
    command.args([THRONG, "capacity"]);
    command.args(server.split_whitespace().chain(SEARCH.split_whitespace()));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn responder() -> Responder {
    let mut command = pinned(1);
    command.arg(THRONG);
    Responder::start_by(command, "udp:127.0.0.1:0", &format!("--ceiling {CEILING}"))
}

/// What the search found.
#[track_caller]
fn found(child: Child) -> Capacity {
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"))
}

/// What is wrong with an answer, if anything is.
fn wrong_with(capacity: &Capacity) -> Result<(), String> {
    let answer = &capacity.answer;
    let off = answer.value.map(|value| value / CEILING - 1.0);
    // A trial of a second lets pass what its queue and the objective have room for.
    let is_reached = off.is_none_or(|off| off <= 0.1);
    let is_limit = answer.limit != Limit::Server || off.is_some_and(|off| off >= -0.1);
    let is_open = answer.is_lower_bound || answer.value.is_none();
    let is_explained = !answer.evidence.is_empty() && capacity.ended_by != EndedBy::Found;
    let is_right = is_reached && is_limit && (!is_open || is_explained);
    wrong_unless(is_right, || format!("{answer:#?} {:?}", capacity.ended_by))
}

/// Checks what a search finds. The host is disturbed on purpose; beyond that, only what its
/// hypervisor takes is an excuse.
#[track_caller]
fn check(mut search: impl FnMut() -> Capacity) {
    on_quiet_host(Quiet::VERDICT, || {
        let host = Host::now();
        let outcome = wrong_with(&search());
        Attempt {
            disturbance: host.stolen(),
            outcome,
        }
    });
}

/// Stops a process for up to 100 ms and lets it go on, at random and again and again, until the
/// sender of `end` is gone.
fn stall(child: impl Fn(&str), end: &Receiver<()>, seed: u64) {
    let mut state = seed;
    let mut up_to_ms = |most: u64| {
        // Knuth's MMIX.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis((state >> 33) % most)
    };
    let is_over = |time| {
        let waited = end.recv_timeout(time);
        !matches!(waited, Err(std::sync::mpsc::RecvTimeoutError::Timeout))
    };
    while !is_over(up_to_ms(1_500)) {
        child("STOP");
        let ends = is_over(up_to_ms(100));
        child("CONT");
        if ends {
            break;
        }
    }
}

#[test]
fn hog_on_the_generators_core_makes_no_limit_of_the_server() {
    let responder = responder();
    let _hog = Hog::begin(0);
    check(|| {
        let capacity = found(search(&responder));
        assert!(capacity.before.as_ref().unwrap().wall_ns > 0);
        capacity
    });
}

#[test]
fn hog_on_the_servers_core_makes_no_limit_of_the_server() {
    let responder = responder();
    let _hog = Hog::begin(1);
    check(|| {
        let capacity = found(search(&responder));
        // From the second trial on the server is known, and told apart from what disturbs it.
        for trial in capacity.trials.iter().skip(1) {
            let cpu = trial.cpu.as_ref().unwrap();
            assert!(cpu.is_target_here && cpu.target_ns.is_some(), "{cpu:?}");
        }
        capacity
    });
}

#[test]
fn hogs_on_both_cores_make_no_limit_of_the_server() {
    let responder = responder();
    let _hogs = [Hog::begin(0), Hog::begin(1)];
    check(|| found(search(&responder)));
}

#[test]
fn stops_of_the_server_at_random_make_no_limit_of_it() {
    let responder = responder();
    check(|| {
        let child = search(&responder);
        let (ends, end) = channel::<()>();
        std::thread::scope(|scope| {
            let stop = |name: &str| responder.signal(name);
            scope.spawn(move || stall(stop, &end, 7));
            let capacity = found(child);
            drop(ends);
            assert!(!capacity.trials.is_empty());
            capacity
        })
    });
}

#[test]
fn stops_of_the_generator_at_random_make_no_limit_of_the_server() {
    let responder = responder();
    check(|| {
        let child = search(&responder);
        let (ends, end) = channel::<()>();
        let pid = child.id().to_string();
        std::thread::scope(|scope| {
            let stop = |name: &str| {
                // It may have ended meanwhile.
                let mut kill = Command::new("kill");
                kill.args(["-s", name, &pid]).stderr(Stdio::null());
                drop(kill.status());
            };
            scope.spawn(move || stall(stop, &end, 11));
            let capacity = found(child);
            drop(ends);
            capacity
        })
    });
}
