//! What may be lost of a fleet, and when: each a row, and what must come of it.
//!
//! | lost | what is done |
//! |---|---|
//! | agent killed | SIGKILL to the third agent |
//! | agent stopped | SIGSTOP to it, and SIGCONT after 8 s |
//! | link down | it is beyond a wire, of which one end is taken down |
//! | lead killed | SIGKILL |
//! | command killed | SIGKILL; another command attaches |
//! | octets changed | of a file on the way; later of what the second agent says |

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use measure::RunRecord;
use measure::record::EndedBy;

use super::pieces::{Fleet, Heard, Made, until};
use crate::process::{THRONG, execute};

/// Cells that are made at once.
const AT_ONCE: usize = 8;
const STOPPED: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Lost {
    AgentKilled,
    AgentStopped,
    LinkDown,
    LeadKilled,
    CommandKilled,
    OctetsChanged,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    BeforeReady,
    Armed,
    WarmUp,
    Middle,
    Drain,
}

/// What must come of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Comes {
    /// Exit code 1, no record, and no query was sent.
    Nothing,
    /// Exit code 1 and no record: there was no checkpoint yet.
    NoRecord,
    /// Exit code 1, and the record until the last checkpoint of all agents.
    Checkpoint,
    /// The same, and that is at the end of the run.
    LastCheckpoint,
    /// Exit code 1, and the command says that lead and run are gone.
    LeadGone,
    /// Exit code 0 and the whole record.
    Whole,
}

use Comes::{Checkpoint, LastCheckpoint, LeadGone, NoRecord, Nothing, Whole};
use Lost::{AgentKilled, AgentStopped, CommandKilled, LeadKilled, LinkDown, OctetsChanged};
use When::{Armed, BeforeReady, Drain, Middle, WarmUp};

const WHEN: [When; 5] = [BeforeReady, Armed, WarmUp, Middle, Drain];
const LOST: [Comes; 5] = [Nothing, Nothing, NoRecord, Checkpoint, LastCheckpoint];
/// The longest first.
const ROWS: [(Lost, [Comes; 5]); 6] = [
    (LinkDown, LOST),
    (AgentStopped, [Whole; 5]),
    (AgentKilled, LOST),
    (LeadKilled, [LeadGone; 5]),
    (CommandKilled, [Whole; 5]),
    (OctetsChanged, LOST),
];

/// A cell as it came.
struct Cell {
    lost: Lost,
    when: When,
    comes: Comes,
    code: Option<i32>,
    took: Duration,
    record: String,
    wrong: Option<String>,
}

const RATE: u64 = 300;

impl When {
    fn flags(self, lost: Lost) -> String {
        let timeout = if lost == AgentStopped { 12 } else { 3 };
        let seconds = self.seconds();
        let common = format!(
            "--clients 30 --workers 3 --rate {RATE} --arrival constant --duration {seconds}s \
             --interval 100ms --timeout {timeout}s"
        );
        match self {
            BeforeReady | Armed => format!("--transport tcp --connect-rate 5 {common}"),
            WarmUp => format!("--warmup 3s {common}"),
            Middle | Drain => common,
        }
    }

    fn seconds(self) -> u64 {
        match self {
            BeforeReady | Armed | WarmUp => 1,
            Middle => 4,
            Drain => 2,
        }
    }

    /// Returns when it is then.
    fn wait(self, fleet: &Fleet, run: &Heard) {
        match self {
            BeforeReady => until("first connections", || fleet.connections() >= 4),
            Armed => fleet.hold_before_the_start(),
            WarmUp => until("warm-up", || fleet.received() >= 30),
            Middle => run.wait_for_intervals(15),
            Drain => run.wait_for_intervals(20),
        }
    }
}

fn go_on_later(agent: &Heard) {
    let until = Instant::now() + STOPPED;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        thread::park_timeout(left);
    }
    agent.signal("CONT");
}

/// Makes a cell: exit code, record, and what is wrong with it.
fn made(lost: Lost, when: When, comes: Comes) -> (Option<i32>, String) {
    if (lost, when) == (OctetsChanged, BeforeReady) {
        return changed_file();
    }
    let made = Made {
        responder: if when == Drain { "--delay 2s" } else { "" },
        has_wire: lost == LinkDown,
        has_paths: when == Armed || lost == OctetsChanged,
        agents: 3,
        ..Made::default()
    };
    let mut fleet = Fleet::with(&format!("matrix-{lost:?}-{when:?}"), &made);
    let path = fleet.folder.path("record.json");
    let flags = when.flags(lost);
    let mut run = fleet.run(&format!("{flags} --record {path}"));
    when.wait(&fleet, &run);
    match lost {
        AgentKilled => fleet.agents[2].signal("KILL"),
        LinkDown => fleet.wire.as_ref().unwrap().cut(),
        LeadKilled => fleet.lead.signal("KILL"),
        CommandKilled => run.signal("KILL"),
        OctetsChanged => fleet.paths[0].flip(),
        AgentStopped => fleet.agents[2].signal("STOP"),
    }
    if when == Armed {
        fleet.paths[0].release();
    }
    if lost == AgentStopped {
        go_on_later(&fleet.agents[2]);
    }
    let (mut code, _, mut stderr) = run.ended();
    if lost == CommandKilled {
        assert_eq!(code, None);
        let attach = format!("fleet attach --record {path}");
        (code, _, stderr) = fleet.ask(&attach).ended();
    }
    let text = fs::read_to_string(&path).ok();
    let record = text.map(|text| RunRecord::from_json(&text).unwrap());
    check(
        &fleet,
        (lost, when, comes),
        (code, record.as_ref(), &stderr),
    );
    let told = record.map_or_else(|| "none".to_owned(), |it| told(&it));
    gone(&mut fleet, lost);
    (code, told)
}

fn told(record: &RunRecord) -> String {
    let seconds = record.measured_ns as f64 / 1e9;
    let lost = record.degraded.iter().flat_map(|it| &it.lost);
    let lost = lost.map(|it| format!(", process {}: {}", it.process, it.how));
    let ended = format!("{:?} after {seconds:.1} s", record.ended_by);
    ended + &lost.collect::<String>()
}

fn check(
    fleet: &Fleet,
    (lost, when, comes): (Lost, When, Comes),
    (code, record, stderr): (Option<i32>, Option<&RunRecord>, &str),
) {
    let expected = i32::from(comes != Whole);
    assert_eq!(code, Some(expected), "{stderr}\n{}", fleet.lead.stderr());
    let is_there = matches!(comes, Whole | Checkpoint | LastCheckpoint);
    assert_eq!(record.is_some(), is_there, "{stderr}");
    let received = fleet.received();
    let process = if lost == OctetsChanged { 2 } else { 3 };
    let Some(record) = record else {
        let words = match comes {
            LeadGone => "the lead has ended, and the run with it".to_owned(),
            _ => format!("agent {process} of 3 ("),
        };
        assert!(stderr.contains(&words), "no `{words}`: {stderr}");
        assert!(comes != Nothing || received == 0, "{received} were sent");
        return;
    };
    assert_eq!(record.check(), Ok(()));
    let known = record.warmup.counts.sent + record.total.counts.sent;
    let full_ns = when.seconds() * 1_000_000_000;
    if comes == Whole {
        assert_eq!(record.ended_by, EndedBy::Duration);
        assert!(record.degraded.is_none());
        assert_eq!(record.total.counts.offered, RATE * when.seconds());
        assert_eq!(received, known);
        return;
    }
    assert_eq!(record.ended_by, EndedBy::AgentLost);
    let degraded = record.degraded.as_ref().unwrap();
    let [part] = degraded.lost.as_slice() else {
        panic!("{degraded:?}");
    };
    assert_eq!((part.process, degraded.survivors), (process, 2));
    let known = known + degraded.total.counts.sent;
    let range = known + part.sent..=known + part.fate_unknown_max;
    assert!(range.contains(&received), "{received} of {range:?}");
    // What is due at the very end is on one side of it, and on a busy host what was due before may
    // be on the later one.
    let due = RATE * record.measured_ns / 1_000_000_000;
    let offered = record.total.counts.offered;
    assert!(offered > 0 && offered <= due + 1, "{offered} of {due}");
    // Of a checkpoint every agent tells before its next interval; the last one may have been on
    // its way when all of the intervals were shown that end with it.
    let told = match comes {
        LastCheckpoint => full_ns - 200_000_000..=full_ns,
        _ => 1_200_000_000..=full_ns - 1,
    };
    assert!(told.contains(&record.measured_ns), "{}", record.measured_ns);
}

/// All end, and those that have lost nothing as they should.
fn gone(fleet: &mut Fleet, lost: Lost) {
    if lost != LeadKilled {
        let (code, _, stderr) = fleet.ask("fleet end").ended();
        assert_eq!(code, Some(0), "{stderr}");
        assert_eq!(fleet.lead.ended().0, Some(0));
    }
    for agent in &mut fleet.agents {
        let (code, _, stderr) = agent.ended();
        assert_eq!(stderr, "");
        let is_whole = matches!(lost, AgentStopped | CommandKilled);
        assert!(!is_whole || code == Some(0), "{code:?}");
    }
}

/// Over the pipe of a command that takes the place of ssh, an octet far inside a file is changed.
fn changed_file() -> (Option<i32>, String) {
    let fleet = Fleet::new("matrix-file");
    // What goes there is looked through for a name of the file.
    let ssh = "#!/bin/sh\nshift\n\
               perl -e '$| = 1; while (sysread(STDIN, $_, 65536)) { s/www-90000/www-90001/; \
               syswrite(STDOUT, $_) }' | sh -c \"exec $*\"\n";
    let ssh = fleet.folder.write("ssh", ssh);
    execute(&format!("chmod +x {ssh}")).succeeded();
    let names = (0..100_000).map(|it| format!("www-{it}.example. A\n"));
    let names = fleet.folder.write("many", names.collect::<String>());
    let hosts = fleet
        .folder
        .write("hosts", format!("a {THRONG}\nb {THRONG}\n"));
    let server = fleet.servers[0];
    let run = execute(&format!(
        "{THRONG} run --quiet --server {server} --names {names} --hosts {hosts} --ssh {ssh} \
         --clients 6 --rate 300 --duration 1s"
    ));
    let (code, stderr) = (run.code, run.stderr.clone());
    assert_eq!((code, run.stdout.as_str()), (Some(1), ""), "{stderr}");
    let words = "what came is not what was sent (SHA-256), so nothing was begun";
    assert!(stderr.contains(words), "{stderr}");
    assert_eq!(fleet.received(), 0);
    fleet.end();
    (code, "none".to_owned())
}

fn cell((lost, when, comes): (Lost, When, Comes)) -> Cell {
    let began = Instant::now();
    let ended = catch_unwind(AssertUnwindSafe(|| made(lost, when, comes)));
    let ((code, record), wrong) = match ended {
        Ok(ended) => (ended, None),
        Err(panic) => {
            let words = panic.downcast::<String>();
            let words = words.map_or_else(|_| "it panicked".to_owned(), |it| *it);
            ((None, String::new()), Some(words))
        }
    };
    Cell {
        lost,
        when,
        comes,
        code,
        took: began.elapsed(),
        record,
        wrong,
    }
}

#[test]
fn whatever_is_lost_of_a_fleet_is_told_and_costs_no_more_than_it_must() {
    if !crate::line::is_root() {
        eprintln!("not tried: network namespaces need root");
        return;
    }
    // A part of a cell's name leaves out all others.
    let only = std::env::var("THRONG_FAULTS").unwrap_or_default();
    let each = |(lost, comes): &(Lost, [Comes; 5])| {
        let (lost, cells) = (*lost, WHEN.into_iter().zip(*comes));
        cells.map(move |(when, comes)| (lost, when, comes))
    };
    let all: Vec<(Lost, When, Comes)> = ROWS.iter().flat_map(each).collect();
    let chosen = all.iter().filter(|it| format!("{it:?}").contains(&only));
    let chosen: Vec<_> = chosen.copied().collect();
    let (next, cells) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(one) = chosen.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let cell = cell(*one);
                    cells.lock().unwrap().push(cell);
                }
            });
        }
    });
    let cells = cells.into_inner().unwrap();
    show(&cells);
    let wrong = cells.iter().filter_map(|it| {
        let wrong = it.wrong.as_ref()?;
        Some(format!("{:?}, {:?}: {wrong}", it.lost, it.when))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Prints the table, and writes it to Cargo's folder for files of tests.
fn show(cells: &[Cell]) {
    let mut lines: Vec<String> = cells.iter().map(line).collect();
    lines.sort();
    let text = lines.concat();
    print!("{text}");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults-fleet.txt");
    fs::write(path, text).unwrap();
}

fn line(cell: &Cell) -> String {
    let code = cell.code.map_or("-".to_owned(), |it| it.to_string());
    let wrong = if cell.wrong.is_some() { " WRONG |" } else { "" };
    format!(
        "| {:?} | {:?} | {code} | {:?} | {} | {:.1} s |{wrong}\n",
        cell.lost,
        cell.when,
        cell.comes,
        cell.record,
        cell.took.as_secs_f64()
    )
}
