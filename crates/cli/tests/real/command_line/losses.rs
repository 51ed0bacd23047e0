//! Runs that lose one of their agents: the result is the last checkpoint of all of them.

use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

use measure::RunRecord;
use measure::record::EndedBy;
use testing::folder::Folder;
use testing::program::{execute, wait_until_ended};
use testing::wait;

use crate::process::{Responder, throng};
use crate::running::{Running, children_of, signal_and_wait};

const INTERVAL_NS: u64 = 100_000_000;
const SECOND_NS: u64 = 1_000_000_000;
const RUN: &str = "--agents 3 --interval 100ms";
const OPEN: &str = "--clients 30 --rate 600 --arrival constant";

/// A run whose second process is lost long before its end.
struct Run<'a> {
    name: &'a str,
    flags: &'a str,
    responder: &'a str,
    /// The length of the run.
    seconds: u64,
}

impl Run<'_> {
    /// Intervals between two checkpoints: a tenth of the run.
    fn between(&self) -> u64 {
        self.seconds
    }

    fn begin(&self) -> Begun {
        let folder = Folder::new(self.name);
        let names = folder.write("names", "www.example. A\n");
        let responder = Responder::start("udp:127.0.0.1:0", self.responder);
        self.begin_at(folder, names, responder)
    }

    fn begin_at(&self, folder: Folder, names: String, responder: Responder) -> Begun {
        let path = folder.path("record.json");
        let (server, seconds) = (responder.address(), self.seconds);
        let running = Running::begin(&format!(
            "{RUN} --duration {seconds}s --server {server} --names {names} --record {path} {}",
            self.flags
        ));
        Begun {
            between: self.between(),
            running,
            responder,
            path,
            agents: Vec::new(),
            _folder: folder,
        }
    }
}

struct Begun {
    running: Running,
    responder: Responder,
    path: String,
    agents: Vec<u32>,
    between: u64,
    _folder: Folder,
}

impl Begun {
    /// Waits until the parent has the checkpoint that ends with this interval from all processes:
    /// they report it before the interval that follows.
    fn wait_for_checkpoint(&mut self, intervals: u64) {
        self.running.wait_for_intervals(intervals as usize + 1);
        self.agents = children_of(self.running.child.id());
        assert_eq!(self.agents.len(), 3);
    }

    fn lose_second(&self) {
        signal_and_wait(self.agents[1], "KILL");
    }

    fn ended(mut self) -> Lost {
        let (code, stdout, stderr) = self.running.ended();
        wait_until_ended(&self.agents);
        let record = fs::read_to_string(self.path).ok();
        let record = record.map(|it| RunRecord::from_json(&it).unwrap_or_else(|it| panic!("{it}")));
        Lost {
            code,
            stdout,
            stderr,
            record,
            received: self.responder.counters().get("queries received"),
            between: self.between,
        }
    }
}

/// A run to whose second process something was done.
struct Lost {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    record: Option<RunRecord>,
    /// What the target received.
    received: u64,
    /// Intervals between two checkpoints.
    between: u64,
}

/// Checks the result of a run that lost its second process after this number of intervals.
fn check<'a>(lost: &'a Lost, code: i32, intervals: u64, how: &str) -> &'a RunRecord {
    assert_eq!(lost.code, Some(code), "{}", lost.stderr);
    let told = format!("agent 2 was lost ({how}");
    assert!(lost.stderr.contains(&told), "{}", lost.stderr);
    assert!(lost.stdout.contains("Agent lost. "), "{}", lost.stdout);
    let record = lost.record.as_ref().unwrap();
    assert_eq!(record.ended_by, EndedBy::AgentLost);
    assert_eq!(record.agent_count, 3);
    assert!(record.timeline.is_some());
    // No checkpoint is lost that all had reported.
    let between_ns = lost.between * INTERVAL_NS;
    assert_eq!(record.measured_ns % between_ns, 0);
    assert!(record.measured_ns >= intervals * INTERVAL_NS / between_ns * between_ns);
    let degraded = record.degraded.as_ref().unwrap();
    let [process] = degraded.lost.as_slice() else {
        panic!("{degraded:?}");
    };
    assert_eq!(process.agent, 2);
    assert!(process.how.starts_with(how), "{process:?}");
    assert_eq!(degraded.survivors, 2);
    assert!(process.noticed_ns >= record.measured_ns);
    // Nothing that was sent is missing, and nothing that was not is there.
    let known = record.warmup.counts.sent + record.total.counts.sent + degraded.total.counts.sent;
    let range = known + process.sent..=known + process.fate_unknown_max;
    assert!(
        range.contains(&lost.received),
        "{} of {range:?}",
        lost.received
    );
    record
}

#[test]
fn a_run_that_loses_a_process_ends_with_the_last_checkpoint_of_all() {
    let run = Run {
        name: "losses-end",
        flags: OPEN,
        responder: "",
        seconds: 20,
    };
    let mut begun = run.begin();
    begun.wait_for_checkpoint(20);
    begun.lose_second();
    let lost = begun.ended();
    let record = check(&lost, 1, 20, "signal 9");
    let degraded = record.degraded.as_ref().unwrap();
    // The others end too, and not only when the run would.
    assert!(degraded.total.end_ns < 20 * SECOND_NS, "{degraded:?}");
    // What a process that was not scheduled is late with is behind the checkpoint.
    let due = 600 * record.measured_ns / SECOND_NS;
    let offered = record.total.counts.offered;
    assert!(offered > 0 && offered <= due, "{offered} of {due}");
    assert_eq!(record.groups[0].clients, 30);
    assert_eq!(record.workers.len(), 3);
    // The schedule bounds what is unknown.
    let most = degraded.lost[0].fate_unknown_max;
    assert!(
        most <= 200 * degraded.lost[0].noticed_ns.div_ceil(SECOND_NS),
        "{most}"
    );
}

#[test]
fn the_others_go_on_if_asked_and_what_they_do_is_told_apart() {
    let run = Run {
        name: "losses-continue",
        flags: "--clients 30 --outstanding 9 --warmup 500ms --on-agent-loss continue",
        responder: "--delay 50ms",
        seconds: 20,
    };
    let mut begun = run.begin();
    begun.wait_for_checkpoint(20);
    begun.lose_second();
    begun.running.wait_for_interval_from_now();
    let goes_on_ns = begun.running.interval_end_ns();
    begun.running.signal("INT");
    let lost = begun.ended();
    let record = check(&lost, 130, 20, "signal 9");
    let degraded = record.degraded.as_ref().unwrap();
    assert!(degraded.total.end_ns >= goes_on_ns, "{degraded:?}");
    assert!(degraded.total.counts.responses > 0);
    let counts = &record.total.counts;
    assert!(
        counts.interrupted > 0 && counts.interrupted <= 9,
        "{counts:?}"
    );
    // Where the target was not scheduled for the timeout, that is counted as what it is.
    assert_eq!(counts.lost(), counts.timeouts);
}

#[test]
fn there_is_no_result_if_that_was_asked_for() {
    let run = Run {
        name: "losses-fail",
        flags: &format!("{OPEN} --on-agent-loss fail"),
        responder: "",
        seconds: 10,
    };
    let mut begun = run.begin();
    begun.wait_for_checkpoint(10);
    begun.lose_second();
    check_no_result(&begun.ended());
}

fn check_no_result(lost: &Lost) {
    let Lost { code, stderr, .. } = lost;
    assert_eq!((*code, lost.stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("agent 2 of 3"), "{stderr}");
    assert!(stderr.contains("there is no result"), "{stderr}");
    assert!(lost.record.is_none());
}

#[test]
fn there_is_no_result_before_the_first_checkpoint() {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = target.local_addr().unwrap();
    let folder = Folder::new("losses-early");
    let (names, path) = (
        folder.write("names", "www.example. A\n"),
        folder.path("record.json"),
    );
    // An interval that does not end while the test runs has no checkpoint.
    let mut running = Running::begin(&format!(
        "--agents 3 --interval 10m --duration 20m {OPEN} --server {server} --names {names} \
         --record {path}"
    ));
    // The look before the run is an empty datagram.
    target
        .set_read_timeout(Some(Duration::from_secs(120)))
        .unwrap();
    while target.recv(&mut [0; 512]).unwrap() == 0 {}
    let agents = children_of(running.child.id());
    assert_eq!(agents.len(), 3);
    signal_and_wait(agents[1], "KILL");
    let (code, stdout, stderr) = running.ended();
    wait_until_ended(&agents);
    check_no_result(&Lost {
        code,
        stdout,
        stderr,
        record: fs::read_to_string(path).ok().map(|_| panic!("a record")),
        received: 0,
        between: 0,
    });
}

#[test]
fn a_process_that_is_lost_while_the_last_responses_are_waited_for_costs_nothing_of_the_run() {
    let run = Run {
        name: "losses-drain",
        flags: "--clients 30 --rate 60 --arrival constant --timeout 120s --on-agent-loss continue",
        responder: "",
        seconds: 2,
    };
    let folder = Folder::new(run.name);
    let names = folder.write("names", "www.example. A\n");
    let responder = Responder::start("udp:127.0.0.1:0", run.responder);
    // No response comes until the process is lost.
    responder.signal("STOP");
    let mut begun = run.begin_at(folder, names, responder);
    begun.wait_for_checkpoint(19);
    // It reports the last checkpoint after the last interval, and then waits for responses.
    wait::until("agent 2 to wait for responses", || {
        is_waiting(begun.agents[1])
    });
    begun.lose_second();
    begun.responder.signal("CONT");
    let lost = begun.ended();
    let record = check(&lost, 1, 20, "signal 9");
    let counts = &record.total.counts;
    assert_eq!(record.measured_ns, 2 * SECOND_NS);
    assert!(counts.offered <= 120, "{counts:?}");
    assert!(counts.interrupted > 0, "{counts:?}");
    assert_eq!(counts.responses, 0);
}

/// True if the first thread of a process sleeps: it is not at work, nor ready to be.
fn is_waiting(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // Its state is behind its name, which is in parentheses (proc_pid_stat).
    stat.rsplit(')').next().unwrap().starts_with(" S ")
}

#[test]
fn a_process_that_is_stopped_for_good_is_lost() {
    let run = Run {
        name: "losses-stopped",
        flags: &format!("{OPEN} --timeout 1s"),
        responder: "",
        seconds: 20,
    };
    let mut begun = run.begin();
    begun.wait_for_checkpoint(20);
    execute(&format!("kill -s STOP {}", begun.agents[1])).succeeded();
    let lost = begun.ended();
    let record = check(&lost, 1, 20, "said nothing for 1");
    assert!(record.measured_ns < 20 * SECOND_NS);
}

#[test]
fn a_process_that_is_stopped_and_goes_on_is_not_lost() {
    let run = Run {
        name: "losses-late",
        flags: &format!("{OPEN} --timeout 20s"),
        responder: "",
        seconds: 3,
    };
    let mut begun = run.begin();
    begun.wait_for_checkpoint(3);
    begun
        .running
        .stop_for_a_second(begun.agents[1], begun.responder.address());
    let late = begun.ended();
    assert_eq!(late.code, Some(0), "{}", late.stderr);
    let record = late.record.unwrap();
    assert_eq!(record.total.counts.offered, 1_800);
    assert!(record.degraded.is_none());
}

/// Clients that have asked all that they had to ask are at the checkpoints of the others too.
#[test]
fn groups_that_have_ended_are_in_the_result() {
    let scenario = Folder::new("losses-groups-scenario");
    let scenario = scenario.write(
        "scenario.toml",
        "[[clients]]\nname = 'soon'\ncount = 3\nper-client = 'constant:20'\nqueries = 30\n\
         [[clients]]\nname = 'late'\ncount = 6\nper-client = 'constant:50'\n",
    );
    let run = Run {
        name: "losses-groups",
        flags: &scenario,
        responder: "",
        seconds: 20,
    };
    let mut begun = run.begin();
    begun.wait_for_checkpoint(20);
    begun.lose_second();
    let lost = begun.ended();
    let record = check(&lost, 1, 20, "signal 9");
    let groups = record.groups.iter();
    let clients = groups.map(|group| (group.name.as_str(), group.clients));
    assert_eq!(clients.collect::<Vec<_>>(), [("soon", 3), ("late", 6)]);
    let offered = |group: usize| record.groups[group].total.counts.offered;
    assert!((1..=30).contains(&offered(0)), "{}", offered(0));
    let due = 300 * record.measured_ns / SECOND_NS;
    assert!((1..=due).contains(&offered(1)), "{}", offered(1));
}

#[test]
fn a_process_that_is_lost_before_the_load_ends_the_run() {
    let warmup = "--clients 30 --rate 600 --duration 6s --warmup 60s";
    let folder = Folder::new("losses-warm-up");
    let names = folder.write("names", "www.example. A\n");
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let server = responder.address();
    let mut running = Running::begin(&format!("{RUN} --server {server} --names {names} {warmup}"));
    let agents = running.agents(3);
    signal_and_wait(agents[2], "KILL");
    let (code, stdout, stderr) = running.ended();
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("there is no result"), "{stderr}");
    wait_until_ended(&agents);
}

#[test]
fn a_long_run_in_processes_has_to_say_what_it_does_when_one_is_lost() {
    throng("run --agents 2 --rate 10 --clients 4 --duration 31m")
        .refused_with("more than 30 minutes by 2 agents", "--on-agent-loss");
}
