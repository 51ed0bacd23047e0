//! Agents on other hosts: over OpenSSH, and by a command that takes its place.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Instant;

use measure::RunRecord;
use measure::record::EndedBy;
use testing::due;
use testing::folder::Folder;
use testing::program::{self, execute, wait_until_ended};
use testing::same::assert_same_load;
use testing::wait;

use crate::fleet::{Fleet, record};
use crate::process::{THRONG, throng};
use crate::query_logs::log;
use crate::running::{Running, children_of, signal_and_wait};

#[test]
fn agents_divide_a_run_exactly_whatever_their_clocks_show() {
    let fleet = Fleet::new("hosts-clocks", &["here", "day", "day-2"]);
    let load = "--clients 30 --per-client poisson:20 --duration 1s --timeout 20s --seed 5";
    let divided = record(fleet.run(&format!("{load} --workers 3")));
    let (alone, _) = fleet.flags.split_once(" --hosts").unwrap();
    let together = format!("run --quiet --format json {alone} {load} --workers 3");
    let together = record(throng(&together));
    assert_same_load(&divided, &together, "by three agents");
    due::assert_answered(&divided, together.total.counts.offered);
    assert_eq!((divided.generators, divided.agent_count), (3, 3));
    assert_eq!(divided.workers.len(), 3);
    // All are on this machine.
    assert_eq!(divided.hosts.len(), 1);
    let names = divided.agents.iter().filter_map(|it| it.name.as_deref());
    assert_eq!(names.collect::<Vec<_>>(), ["here", "day", "day-2"]);
    let own = divided.agents.iter().filter_map(|it| it.counts);
    let own: Vec<u64> = own.map(|it| it.sent).collect();
    assert_eq!(own.len(), 3);
    assert_eq!(own.iter().sum::<u64>(), divided.total.counts.sent);
    for agent in &divided.agents {
        let clock = agent.clock.unwrap();
        let most = clock.start_bound_ns + clock.end_bound_ns;
        assert!(clock.drift_ns.unsigned_abs() <= most, "{clock:?}");
        assert_eq!(agent.began_us, divided.agents[0].began_us);
    }
    let received = divided.total.counts.sent + together.total.counts.sent;
    assert_eq!(fleet.received(), received);
}

/// A library whose clock is so many millionths faster, from the start of a program.
const DRIFTS: &str = "
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long began;

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (syscall(SYS_clock_gettime, clock, time) != 0) return -1;
    if (clock != CLOCK_MONOTONIC) return 0;
    long long now = time->tv_sec * 1000000000LL + time->tv_nsec;
    if (began == 0) began = now;
    now += (now - began) / 1000 * PPM / 1000;
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return 0;
}
";

#[test]
fn clocks_that_drift_are_known_as_well_as_is_said() {
    let fleet = Fleet::new("hosts-drift", &["here", "fast", "slow"]);
    let source = fleet.folder.write("drifts.c", DRIFTS);
    for (host, ppm) in [("fast", 500), ("slow", -500)] {
        let library = fleet.folder.path(&format!("{host}.so"));
        let options = format!("-shared -fPIC -DPPM={ppm}");
        execute(&format!("cc {options} -o {library} {source}")).succeeded();
    }
    let began = Instant::now();
    let load = "--clients 6 --rate 60 --duration 5s --timeout 20s --workers 3";
    let record = record(fleet.run(load));
    let at_most = began.elapsed().as_nanos() as i64 / 2_000;
    // Half of a microsecond in each millisecond: five seconds between two offsets, and longer.
    let (at_least, at_most) = (2_500_000, at_most);
    for (agent, drifts) in
        record
            .agents
            .iter()
            .zip([0..=0, at_least..=at_most, -at_most..=-at_least])
    {
        let clock = agent.clock.unwrap();
        let bound = (clock.start_bound_ns + clock.end_bound_ns) as i64;
        let known = drifts.start() - bound..=drifts.end() + bound;
        assert!(known.contains(&clock.drift_ns), "{clock:?}, {drifts:?}");
    }
    due::assert_answered(&record, 300);
    assert_eq!(fleet.received(), due::sent(&record));
}

/// The names are on their way then.
#[test]
fn a_connection_that_changes_octets_ends_the_run_before_a_query() {
    let fleet = Fleet::new("hosts-noise", &["here", "noise"]);
    let names: String = (0..200_000_u64)
        .map(|it| format!("{:x}.example. A\n", it.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
        .collect();
    fleet.folder.write("names", names);
    let finished = fleet.run("--clients 4 --rate 10 --duration 1s");
    let said = &finished.stderr;
    assert_eq!(finished.code, Some(1), "{said}");
    assert!(said.contains("agent 2 of 2 (noise)"), "{said}");
    let why = "error: the connection with the lead has ended: ";
    assert!(said.contains(why), "{said}");
    assert_eq!(fleet.received(), 0);
}

#[test]
fn agents_are_started_once_for_all_runs_of_a_command() {
    let fleet = Fleet::new("hosts-runs", &["here", "day"]);
    let records = fleet.folder.path("records");
    let transports = "--transports udp,tcp --repeat 2 --rate 200 --duration 300ms --timeout 20s";
    let line = format!("compare-transports {transports} --records {records} --quiet");
    throng(&format!("{line} {}", fleet.flags)).succeeded();
    let started = fs::read_to_string(fleet.folder.path("started")).unwrap();
    // Both at once.
    let mut started: Vec<&str> = started.lines().collect();
    started.sort_unstable();
    assert_eq!(started, ["day", "here"]);
    let files = fs::read_dir(records).unwrap().map(|it| it.unwrap().path());
    let records = files.map(|it| RunRecord::from_json(&fs::read_to_string(it).unwrap()).unwrap());
    let records: Vec<RunRecord> = records.collect();
    assert_eq!(records.len(), 4);
    assert!(records.iter().all(|it| it.generators == 2));
    let sent = records.iter().map(|it| it.total.counts.sent).sum::<u64>();
    assert_eq!(fleet.received(), sent);
}

#[test]
fn agents_replay_the_capture_that_was_read_here() {
    // On `day` there is no such file.
    let fleet = Fleet::new("hosts-replay", &["here", "day"]);
    let capture = fleet.folder.write("query.log", log());
    let names = format!(" --names {}", fleet.folder.path("names"));
    let flags = fleet.flags.replace(&names, "");
    let replay = format!("replay {capture} --quiet --format json {flags} --speed 20");
    let record = record(throng(&replay));
    due::assert_answered(&record, 600);
    assert_eq!(record.generators, 2);
    assert_eq!(fleet.received(), due::sent(&record));
}

/// An OpenSSH server of its own on loopback, for whoever has the key.
struct Sshd {
    _child: program::Running,
    /// Says how `node-1` and all others are reached.
    configuration: String,
}

impl Sshd {
    fn start(folder: &Folder) -> Sshd {
        for key in ["host", "user"] {
            let path = folder.path(key);
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &path])
                .status();
            assert!(made.unwrap().success());
        }
        let at = |name: &str| folder.path(name);
        let port = {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().port()
        };
        let (host, keys, pid) = (at("host"), at("user.pub"), at("pid"));
        let server = folder.write(
            "sshd_config",
            format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {host}\nPidFile {pid}\n\
                 AuthorizedKeysFile {keys}\nStrictModes no\nUsePAM no\n\
                 PermitRootLogin prohibit-password\nPasswordAuthentication no\n"
            ),
        );
        let user = at("user");
        let configuration = folder.write(
            "ssh_config",
            format!(
                "Host node-*\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {user}\n  \
                 IdentitiesOnly yes\n  BatchMode yes\n  UserKnownHostsFile /dev/null\n  \
                 StrictHostKeyChecking no\n  LogLevel ERROR\n"
            ),
        );
        // It wants this folder to be there.
        let _ = fs::create_dir_all("/run/sshd");
        let mut command = Command::new("/usr/sbin/sshd");
        command.args(["-D", "-e", "-f", &server]);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let child = program::Running(command.spawn().unwrap());
        wait::until("sshd to listen", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Sshd {
            _child: child,
            configuration,
        }
    }
}

#[test]
fn agents_are_started_by_openssh_and_end_with_it() {
    // By a name of its own, to be found by.
    let bin = Folder::new("hosts-ssh-program");
    let program = bin.path("throng");
    std::os::unix::fs::symlink(THRONG, &program).unwrap();
    let fleet = Fleet::with("hosts-ssh", &["node-1", "node-2", "node-3"], &program);
    let sshd = Sshd::start(&fleet.folder);
    // With the name of OpenSSH, which is called with `--` before the host.
    let reached = fleet.folder.write(
        "ssh",
        format!("#!/bin/sh\nexec ssh -T -F {} \"$@\"\n", sshd.configuration),
    );
    execute(&format!("chmod +x {reached}")).succeeded();
    let flags = fleet
        .flags
        .replace(&fleet.folder.path("elsewhere"), &reached);
    let run = format!("run --quiet --format json {flags} --clients 12 --rate 600");
    let record = record(throng(&format!("{run} --duration 2s")));
    due::assert_answered(&record, 1_200);
    assert_eq!((record.generators, record.agents.len()), (3, 3));
    // A connection that is cut ends its agent, and with it the run; nobody is left.
    let path = fleet.folder.path("cut.json");
    let mut running = Running::begin(&format!(
        "{flags} --clients 12 --rate 600 --duration 20s --interval 100ms --record {path}"
    ));
    // With the checkpoint before it, of all agents.
    running.wait_for_intervals(21);
    let connections = children_of(running.child.id());
    assert_eq!(connections.len(), 3);
    execute(&format!("kill -s KILL {}", connections[2])).succeeded();
    let (code, _, stderr) = running.ended();
    assert_eq!(code, Some(1), "{stderr}");
    let record = RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(record.ended_by, EndedBy::AgentLost);
    assert_eq!(record.degraded.as_ref().unwrap().lost[0].agent, 3);
    wait_until_ended(&connections);
    wait_until_program_ended(&program);
}

/// Returns when that program does not run any more.
fn wait_until_program_ended(program: &str) {
    let runs = || {
        Command::new("pgrep")
            .args(["-f", program])
            .output()
            .unwrap()
    };
    let what = format!("the end of {program}");
    wait::until(&what, || runs().stdout.is_empty());
}

#[test]
fn an_agent_that_is_lost_is_named() {
    let fleet = Fleet::new("hosts-lost", &["here", "there"]);
    let path = fleet.folder.path("record.json");
    // Long enough for a host that takes its time to start it.
    let mut running = Running::begin(&format!(
        "{} --clients 8 --rate 400 --arrival constant --duration 1m --interval 100ms \
         --on-agent-loss continue --details --record {path}",
        fleet.flags
    ));
    // With the checkpoint before it, of both.
    running.wait_for_intervals(51);
    let agents = children_of(running.child.id());
    signal_and_wait(agents[1], "KILL");
    running.wait_for_interval_from_now();
    running.signal("INT");
    let (code, stdout, stderr) = running.ended();
    assert_eq!(code, Some(130), "{stderr}");
    assert!(stdout.contains("agents"), "{stdout}");
    assert!(stdout.contains("2: here, there"), "{stdout}");
    let record = RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(record.ended_by, EndedBy::AgentLost);
    assert_eq!(record.agents.len(), 2);
    let degraded = record.degraded.as_ref().unwrap();
    assert_eq!(degraded.lost[0].how, "signal 9 on there");
    let known = record.total.counts.sent + degraded.total.counts.sent;
    let lost = &degraded.lost[0];
    let range = known + lost.sent..=known + lost.fate_unknown_max;
    wait_until_ended(&agents);
    let received = fleet.received();
    assert!(range.contains(&received), "{received} of {range:?}");
}

#[test]
fn another_program_is_refused_before_a_query_is_sent() {
    let other = Folder::new("hosts-program");
    let program = other.path("throng");
    crate::process::write_other_build(&program);
    let fleet = Fleet::with("hosts-other", &["here"], &program);
    fleet
        .run("--clients 4 --rate 10 --duration 1s")
        .refused_with(
            "agent 1 of 1 (here): its program is build ",
            "copy this program there",
        );
    assert_eq!(fleet.received(), 0);
}

#[test]
fn hosts_that_cannot_be_reached_are_told() {
    let load = "--clients 4 --rate 10 --duration 1s";
    let fleet = Fleet::with("hosts-none", &["here", "there"], "/nowhere/throng");
    // What ssh or the shell there says comes first.
    let finished = fleet.run(load);
    let told = finished.stderr.clone();
    finished.ended_with(2);
    assert!(
        told.contains("no agent could be started: exit code 127"),
        "{told}"
    );
    assert!(told.contains("--version` has to work"), "{told}");
    let fleet = Fleet::with("hosts-echo", &["here"], "/bin/echo");
    fleet.run(load).refused_with(
        "it printed `agent 0/1 hello`, which is not from an agent",
        "print nothing",
    );
    // What a shell there prints first may be in any encoding, and it may go on for ever.
    let scripts = Folder::new("hosts-scripts");
    let script = |name: &str, text: &str| {
        let path = scripts.write(name, format!("#!/bin/sh\n{text}\nexec cat >/dev/null\n"));
        execute(&format!("chmod +x {path}")).succeeded();
        path
    };
    let noisy = script("noisy", r"printf '\377 welcome\n'");
    Fleet::with("hosts-noisy", &["here"], &noisy)
        .run(load)
        .refused_with("welcome`, which is not from an agent", "print nothing");
    let silent = script("silent", "exec >&-");
    Fleet::with("hosts-silent", &["here"], &silent)
        .run(load)
        .refused_with("it closed its output and did not end", "has to work");
    let fleet = Fleet::new("hosts-few", &["a", "b", "c"]);
    fleet
        .run("--clients 2 --rate 10 --duration 1s")
        .refused_with("divided among 2 agents, not 3", "--clients");
}

/// What agents would do to their own hosts, or to another target than was meant, is refused.
#[test]
fn what_is_of_another_host_is_refused() {
    let load = "--clients 4 --rate 10 --duration 1s";
    let fleet = Fleet::new("hosts-loopback", &["here", "net"]);
    fleet.run(load).refused_with(
        "agent 2 of 2 (net): 127.0.0.1 is that host itself there",
        "all agents reach",
    );
    let keys = fleet.folder.path("keys");
    fleet
        .run(&format!("{load} --transport dot --tls-keylog {keys}"))
        .refused_with("--tls-keylog cannot be used with --hosts", "leave it out");
    assert_eq!(fleet.received(), 0);
}

/// One that is asked to end by its own host reports what it has done.
#[test]
fn an_agent_that_gets_sigterm_loses_nothing() {
    let fleet = Fleet::new("hosts-leaves", &["here", "there"]);
    let path = fleet.folder.path("record.json");
    let mut running = Running::begin(&format!(
        "{} --clients 8 --rate 400 --arrival constant --duration 1m --interval 100ms \
         --record {path}",
        fleet.flags
    ));
    // With a checkpoint of both.
    running.wait_for_intervals(51);
    let agents = children_of(running.child.id());
    execute(&format!("kill -s TERM {}", agents[1])).succeeded();
    let (code, _, stderr) = running.ended();
    assert_eq!(code, Some(1), "{stderr}");
    let record = RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap();
    let degraded = record.degraded.as_ref().unwrap();
    let [lost] = degraded.lost.as_slice() else {
        panic!("{degraded:?}");
    };
    assert_eq!(lost.how, "it was asked to end (SIGTERM) on there");
    assert_eq!(lost.fate_unknown_max, lost.sent);
    let known = record.total.counts.sent + degraded.total.counts.sent;
    assert_eq!(fleet.received(), known + lost.sent);
}

/// Agents of a lead that is stopped (SIGSTOP) stop sending by themselves, and end.
#[test]
fn agents_that_hear_nothing_stop_sending() {
    let fleet = Fleet::new("hosts-dead-man", &["here", "there"]);
    let path = fleet.folder.path("record.json");
    let mut running = Running::begin(&format!(
        "{} --clients 8 --rate 400 --arrival constant --duration 1m --interval 100ms \
         --record {path}",
        fleet.flags
    ));
    // With a checkpoint of both.
    running.wait_for_intervals(51);
    let agents = children_of(running.child.id());
    assert_eq!(agents.len(), 2);
    running.signal("STOP");
    wait_until_ended(&agents);
    running.signal("CONT");
    let (code, _, stderr) = running.ended();
    assert_eq!(code, Some(1), "{stderr}");
    let record = RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(record.ended_by, EndedBy::AgentLost);
    let degraded = record.degraded.as_ref().unwrap();
    let lost = &degraded.lost;
    let how = "it had heard nothing for 30 s on ";
    assert!(lost.iter().all(|it| it.how.starts_with(how)), "{lost:?}");
    let known = record.total.counts.sent + degraded.total.counts.sent;
    let told: u64 = lost.iter().map(|it| it.sent).sum();
    let most: u64 = lost.iter().map(|it| it.fate_unknown_max).sum();
    let received = fleet.received();
    let range = known + told..=known + most;
    assert!(range.contains(&received), "{received} of {range:?}");
}

/// Returns when there are some connections to that port of loopback.
fn wait_until_connected(port: u16) {
    // Remote address, and the state ESTABLISHED (proc(5)).
    let connected = format!(" 0100007F:{port:04X} 01 ");
    let are_there = || {
        let sockets = fs::read_to_string("/proc/net/tcp").unwrap();
        sockets.matches(&connected).count() >= 4
    };
    wait::until("connections", are_there);
}

/// One that stands still before it is ready is missed, and nothing is sent.
#[test]
fn nobody_starts_without_all() {
    let fleet = Fleet::new("hosts-barrier", &["here", "there"]);
    let server = fleet.responder.addresses[1].1;
    let flags = fleet
        .flags
        .replace(&fleet.responder.address().to_string(), &server.to_string());
    // Their connections take a minute.
    let slow = "--transport tcp --clients 60 --connect-rate 1 --rate 400 --timeout 100ms";
    let mut running = Running::begin(&format!("{flags} {slow} --duration 4s"));
    let agents = running.agents(2);
    wait_until_connected(server.port());
    execute(&format!("kill -s STOP {}", agents[1])).succeeded();
    let (code, stdout, stderr) = running.ended();
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(
        stderr.contains("agent 2 of 2 (there) has not reported"),
        "{stderr}"
    );
    wait_until_ended(&agents);
    assert_eq!(fleet.received(), 0);
}

/// Their runs are processes of their own, as each experiment's are, but for the agents.
#[test]
fn agents_are_started_once_for_an_experiment_and_for_a_comparison() {
    let fleet = Fleet::new("hosts-experiment", &["here", "day"]);
    let flag = |name: &str| {
        let mut words = fleet.flags.split(' ').skip_while(|word| *word != name);
        words.nth(1).unwrap().to_owned()
    };
    let names = flag("--names");
    // Each run asks what its hook has written.
    let text = format!(
        "name = \"hosts\"\nrepetitions = 2\n[run]\nserver = \"{}\"\nnames = \"{names}\"\n\
         hosts = \"{}\"\nssh = \"{}\"\nduration = \"300ms\"\ntimeout = \"20s\"\n\
         [matrix]\nrate = [100, 200]\n\
         [hooks]\nbefore = \"echo more-$THRONG_REPETITION-$$.example. A >> {names}\"\n",
        flag("--server"),
        flag("--hosts"),
        flag("--ssh"),
    );
    let file = fleet.folder.write("experiment.toml", text);
    let out = fleet.folder.path("out");
    throng(&format!("experiment run {file} --output {out}")).succeeded();
    // On a busy host a run is made once more, and the first one set aside.
    let read = |folder: &str| {
        let found = format!("find {folder} -path *records/*.json -o -name *.repeated");
        let found = execute(&found).succeeded();
        let read = |path| RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap();
        found.lines().map(read).collect::<Vec<_>>()
    };
    let mut records = read(&out);
    assert!(records.len() >= 4, "{}", records.len());
    let mut asked: Vec<u64> = (records.iter())
        .map(|it| it.scenario.questions.count)
        .collect();
    asked.sort_unstable();
    let expected: Vec<u64> = (101..).take(records.len()).collect();
    assert_eq!(asked, expected);
    assert!(records.iter().all(|it| it.generators == 2));
    let started = |fleet: &Fleet| {
        let started = fs::read_to_string(fleet.folder.path("started")).unwrap();
        let mut started: Vec<String> = started.lines().map(str::to_owned).collect();
        started.sort_unstable();
        started
    };
    assert_eq!(started(&fleet), ["day", "here"]);

    let kept = fleet.folder.path("kept-records");
    let side = format!("run {} --duration 300ms --timeout 20s --rate", fleet.flags);
    let compared = Command::new(THRONG)
        .args(["compare", "--a", &format!("{side} 100")])
        .args([
            "--b",
            &format!("{side} 100"),
            "--repeat",
            "2",
            "--records",
            &kept,
        ])
        .output();
    let compared = compared.unwrap();
    let said = String::from_utf8_lossy(&compared.stderr);
    assert!(compared.status.success(), "{said}");
    assert_eq!(started(&fleet), ["day", "day", "here", "here"]);
    let compared = read(&kept);
    assert_eq!(compared.len(), 4);
    records.extend(compared);
    let sent = records.iter().map(|it| it.total.counts.sent).sum::<u64>();
    assert_eq!(fleet.received(), sent);
}
