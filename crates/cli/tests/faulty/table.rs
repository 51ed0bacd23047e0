//! Runs all rows of a kind, looks at how each ended, and prints the table.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use measure::{Limit, RunRecord};
use proto::Transport;
use rustix::process::setpriority_process;
use testing::quiet::{Disturbance, Quiet};
use testing::{timed, wait};

use super::fault::{Fault, Leaves};
use super::left;
use super::stage::{Ended, Stage, Waited};
use crate::rows;

/// Runs that are made at once.
const AT_ONCE: usize = 4;
/// Attempts of a row whose host was busy, or whose run was over too early.
const ATTEMPTS_MAX: u32 = 3;
/// Lines of progress that a run must show after the last deed, to be one that met the fault.
const SHOWN_AFTER_MIN: usize = 3;
/// Of setpriority(2): that of timed tests.
const PRIORITY: i32 = -15;
/// The same of a verdict that was left open.
const DECIDING_ATTEMPTS_MAX: u32 = 5;
/// How long rows are repeated until their host was quiet.
const TIME_TO_DECIDE: Duration = Duration::from_secs(80);

/// How a row ended over one transport.
struct Cell {
    over: Transport,
    limit: Option<Limit>,
    code: i32,
    /// Why the run may show nothing of its fault.
    doubt: Option<Doubt>,
    /// What is not as it must be, whatever the host did.
    wrong: Vec<String>,
    /// What is not as it must be if nothing is doubtful.
    doubtful: Vec<String>,
    /// The verdict, if it is not as it must be on a quiet host.
    verdict: Option<String>,
}

enum Doubt {
    /// The run ended before the fault was there for long.
    Late,
    /// The host was busy.
    Disturbed(String),
}

impl Cell {
    /// What else is wrong may be so because the fault came late, or the host was busy.
    fn is_in_doubt(&self) -> bool {
        self.wrong.is_empty() && self.doubt.is_some() && !self.doubtful.is_empty()
    }

    /// A row that there was no time for.
    fn not_run(over: Transport) -> Cell {
        Cell {
            over,
            limit: None,
            code: 0,
            doubt: Some(Doubt::Disturbed("not run".to_owned())),
            wrong: Vec::new(),
            doubtful: Vec::new(),
            verdict: Some("not run".to_owned()),
        }
    }

    fn is_undecided(&self) -> bool {
        self.is_in_doubt() || self.is_open()
    }

    /// Only a quiet host shows whether the verdict is wrong.
    fn is_open(&self) -> bool {
        self.doubt.is_some() && self.verdict.is_some()
    }

    /// All that is wrong once it is not repeated any more.
    fn all_wrong(&self) -> impl Iterator<Item = &String> {
        let verdict = self.verdict.iter().filter(|_| self.doubt.is_none());
        self.wrong.iter().chain(&self.doubtful).chain(verdict)
    }
}

/// A row over one of its transports.
type Row = (&'static Fault, Transport);

/// Checks the rows of a kind, several at a time. A verdict that is wrong on a busy host is left
/// open for [`decide_open`]. A part of the name of a row in `THRONG_FAULTS` leaves out all others.
pub(crate) fn check(kind: &str, faults: &'static [Fault]) {
    // Ahead of other tests, if that is allowed: most rows wait most of the time, and fewer verdicts
    // are left open. What is started here has the same priority.
    let _ = setpriority_process(None, PRIORITY);
    let only = std::env::var("THRONG_FAULTS").unwrap_or_default();
    let mut rows = rows_of(faults);
    rows.retain(|(fault, _)| fault.name.contains(&only));
    let mut cells = at_once(&rows);
    // One at a time, with nothing of this test beside it.
    for ((fault, over), last) in rows.iter().zip(&mut cells) {
        let mut times = 1;
        for _ in 1..ATTEMPTS_MAX {
            if !last.is_in_doubt() {
                break;
            }
            if matches!(last.doubt, Some(Doubt::Late)) {
                times *= 4;
            }
            *last = cell(fault, *over, times);
        }
    }
    show(kind, &rows, &cells);
    let open = rows.iter().zip(&cells).filter(|(_, cell)| cell.is_open());
    let open = open.map(|((fault, over), _)| format!("{}\t{over}\n", fault.name));
    fs::write(open_rows(kind), open.collect::<String>()).unwrap();
    assert_right(&rows, &cells);
}

/// The rows whose verdict [`check`] left open, by the name of each and its transport.
fn open_rows(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{kind}.open"))
}

/// Decides on the verdicts that [`check`] has left open, with nothing beside.
pub(crate) fn decide_open() {
    let mut open = Vec::new();
    let mut kinds = 0;
    for (kind, faults) in super::ALL {
        // Some kinds need root.
        let Ok(text) = fs::read_to_string(open_rows(kind)) else {
            continue;
        };
        kinds += 1;
        let is_open = |(fault, over): &Row| {
            let line = format!("{}\t{over}", fault.name);
            text.lines().any(|it| it == line)
        };
        open.extend(rows_of(faults).into_iter().filter(is_open));
    }
    if kinds == 0 {
        return timed::inconclusive("the tests of target `faults` were not run before");
    }
    decide("open", &open);
}

/// Checks rows one after the other on a quiet host.
pub(crate) fn decide(kind: &str, rows: &[Row]) {
    let until = Instant::now() + TIME_TO_DECIDE;
    let mut cells: Vec<Cell> = rows.iter().map(|(_, over)| Cell::not_run(*over)).collect();
    for _ in 0..DECIDING_ATTEMPTS_MAX {
        let undecided = rows.iter().zip(&mut cells);
        for ((fault, over), last) in undecided.filter(|(_, cell)| cell.is_undecided()) {
            if Instant::now() < until {
                *last = cell(fault, *over, 1);
            }
        }
    }
    show(kind, rows, &cells);
    assert_right(rows, &cells);
    let open = rows
        .iter()
        .zip(&cells)
        .filter(|(_, cell)| cell.is_undecided());
    let open: Vec<String> = open
        .map(|((fault, over), _)| format!("{} over {over}", fault.name))
        .collect();
    if !open.is_empty() {
        timed::inconclusive(&format!("the host was busy: {}", open.join("; ")));
    }
}

pub(crate) fn rows_of(faults: &'static [Fault]) -> Vec<Row> {
    let each = faults.iter();
    each.flat_map(|fault| fault.over.iter().map(move |over| (fault, *over)))
        .collect()
}

#[track_caller]
fn assert_right(rows: &[Row], cells: &[Cell]) {
    let each = rows.iter().zip(cells);
    let wrong = each.flat_map(|((fault, over), cell)| {
        let wrong = cell.all_wrong();
        wrong.map(move |it| format!("{}, over {over}: {it}", fault.name))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Runs all rows, several at a time.
fn at_once(rows: &[Row]) -> Vec<Cell> {
    let next = AtomicUsize::new(0);
    let cells = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(rows.len()) {
            scope.spawn(|| {
                while let number = next.fetch_add(1, Ordering::SeqCst)
                    && let Some((fault, over)) = rows.get(number)
                {
                    let cell = cell(fault, *over, 1);
                    cells.lock().unwrap().insert(number, cell);
                }
            });
        }
    });
    cells.into_inner().unwrap().into_values().collect()
}

/// Runs a row over one transport. What panics on the way is as wrong as anything.
fn cell(fault: &'static Fault, over: Transport, times: u32) -> Cell {
    let made = catch_unwind(AssertUnwindSafe(|| made(fault, over, times)));
    made.unwrap_or_else(|panic| Cell {
        over,
        limit: None,
        code: -1,
        doubt: None,
        wrong: vec![match panic.downcast::<String>() {
            Ok(words) => *words,
            Err(_) => "it panicked".to_owned(),
        }],
        doubtful: Vec::new(),
        verdict: None,
    })
}

fn made(fault: &'static Fault, over: Transport, times: u32) -> Cell {
    let mut stage = Stage::set(fault, over, times);
    let before = left::files_in(&stage.outputs());
    let ended = stage.run();
    let mut wrong = Vec::new();
    wrong.extend(stage.look_after().err());
    if ended.said.contains("panicked at") {
        wrong.push("it panicked".to_owned());
    }
    let record = files(fault, &stage, &before, &mut wrong);
    let doubt = doubt(fault, record.as_ref(), &ended);
    let mut doubtful = words(fault, &ended);
    let mut verdict = None;
    if let Some(record) = &record {
        verdict = wrong_verdict(fault, record, &ended.said);
        // Longer ones have other verdicts: of a fault that is a smaller part of them.
        verdict = verdict.filter(|_| times == 1);
        if (fault.ends.seen)(record) == 0 {
            doubtful.push("no sign of the fault in the record".to_owned());
        }
    }
    remains(stage, &mut wrong);
    for all in [&mut wrong, &mut doubtful] {
        if !all.is_empty() {
            all.push(ended.said.clone());
        }
    }
    Cell {
        over,
        limit: record.map(|it| it.verdict.limit),
        code: ended.code,
        doubt,
        wrong,
        doubtful,
        verdict,
    }
}

/// Whether the run shows what the fault comes to: a deed was done late, or the host was busy.
fn doubt(fault: &Fault, record: Option<&RunRecord>, ended: &Ended) -> Option<Doubt> {
    // Those that a deed has ended show nothing more.
    let has_lasted = record.is_some() && fault.ends.code <= 1;
    let is_late = ended.shown_after.is_some_and(|it| it < SHOWN_AFTER_MIN);
    if ended.undone > 0 || is_late && has_lasted {
        return Some(Doubt::Late);
    }
    let record = record?;
    let Waited { run, target } = ended.waited;
    let share = |wait| {
        Disturbance::default()
            .and_target(record, wait)
            .target_waited
    };
    // Where there is no /proc, the record has no wait.
    let of_run = Disturbance {
        generator_waited: share(run),
        ..Disturbance::default()
    };
    let of_run = match fault.is_disturbing {
        true => Disturbance::default(),
        false => Disturbance::of(record).or(of_run),
    };
    let disturbance = of_run.and_target(record, target);
    // A run takes a second: a wait of 20 ms would be two of its percentiles.
    disturbance.beyond(Quiet::LATENCY).map(Doubt::Disturbed)
}

/// Exit code and words; those of a verdict are with the verdict.
fn words(fault: &Fault, ended: &Ended) -> Vec<String> {
    let Ended {
        code, said, undone, ..
    } = ended;
    let expected = fault.ends;
    let mut wrong = Vec::new();
    if *code != expected.code {
        wrong.push(format!("exit code {code}, not {}", expected.code));
    }
    if !is_of_verdict(fault) && !said.contains(expected.says) {
        wrong.push(format!("it does not say `{}`", expected.says));
    }
    if *undone > 0 {
        wrong.push(format!("{undone} deeds were not done in time"));
    }
    wrong
}

/// Runs that are measured say what their verdict is.
fn is_of_verdict(fault: &Fault) -> bool {
    fault.ends.code == 0 && fault.ends.leaves == Leaves::Record
}

/// The record, if there is one, and files that ought not to be there.
fn files(
    fault: &Fault,
    stage: &Stage,
    before: &BTreeMap<String, Option<Vec<u8>>>,
    wrong: &mut Vec<String>,
) -> Option<RunRecord> {
    let mut outputs = left::files_in(&stage.outputs());
    let mut temporary = left::files_in(&stage.temporary());
    let found = match fault.ends.leaves {
        Leaves::Nothing => None,
        Leaves::Record => {
            // What was there before stays, if only as a link.
            if !before.contains_key("record.json") {
                outputs.remove("record.json");
            }
            Some(stage.outputs().join("record.json"))
        }
        Leaves::RecordElsewhere => {
            let kept = temporary.pop_first().map(|it| it.0).unwrap_or_default();
            Some(stage.temporary().join(kept))
        }
    };
    let is_kept = fault.ends.leaves == Leaves::Nothing;
    if !before.keys().eq(outputs.keys()) || is_kept && outputs != *before {
        let names = outputs.keys().cloned().collect::<Vec<_>>().join(", ");
        wrong.push(format!(
            "left in the folder of outputs, or changed: {names}"
        ));
    }
    if let Some(name) = temporary.keys().next() {
        wrong.push(format!("left in the folder for temporary files: {name}"));
    }
    let record = read(&found?);
    record.map_err(|why| wrong.push(why)).ok()
}

/// Reading it checks that it adds up.
fn read(path: &Path) -> Result<RunRecord, String> {
    let json = fs::read_to_string(path).map_err(|error| format!("no record: {error}"))?;
    RunRecord::from_json(&json)
}

/// The verdict, if it is not one of the row's.
fn wrong_verdict(fault: &Fault, record: &RunRecord, said: &str) -> Option<String> {
    let limit = record.verdict.limit;
    let is_said = !is_of_verdict(fault) || said.contains(fault.ends.says);
    let wrong = match fault.ends.limits.contains(&limit) {
        true if is_said => return None,
        true => format!("it does not say `{}`", fault.ends.says),
        false => format!("limit {}", limit.name()),
    };
    Some(format!(
        "{wrong}: {}\n{said}",
        record.verdict.evidence.join("; ")
    ))
}

/// Processes, claims, namespaces and ports that ought to be gone.
fn remains(mut stage: Stage, wrong: &mut Vec<String>) {
    let mark = stage.mark();
    if !wait::is_soon(|| left::marked(&mark).is_empty()) {
        wrong.push(format!("processes are left: {:?}", left::marked(&mark)));
        stage.kill_marked();
    }
    if left::is_claimed(&stage.outputs()) {
        wrong.push("the record is still claimed".to_owned());
    }
    let (server, namespaces) = stage.clear();
    let is_stream = stage.is_stream();
    if server.is_some_and(|it| !wait::is_soon(|| left::is_free(it, is_stream))) {
        wrong.push(format!("somebody still listens at {server:?}"));
    }
    if !wait::is_soon(|| {
        namespaces
            .iter()
            .all(|it| left::in_namespace(it).is_empty())
    }) {
        wrong.push("a network namespace is still in use".to_owned());
    }
}

/// Prints the table, and writes it to Cargo's folder for files of tests.
fn show(kind: &str, all: &[Row], cells: &[Cell]) {
    let mut text = String::new();
    let each: Vec<(&Row, &Cell)> = all.iter().zip(cells).collect();
    for own in each.chunk_by(|(a, _), (b, _)| a.0.name == b.0.name) {
        let fault = own[0].0.0;
        let own: Vec<&Cell> = own.iter().map(|(_, cell)| *cell).collect();
        let over: Vec<&str> = own.iter().map(|it| it.over.name()).collect();
        let limits = grouped(&own, |it| {
            let name = it.limit.map_or("-", Limit::name).to_owned();
            match &it.doubt {
                Some(Doubt::Disturbed(why)) if it.verdict.is_some() => format!("{name} ({why})"),
                _ => name,
            }
        });
        let codes = grouped(&own, |it| it.code.to_string());
        let mut cells = vec![kind, fault.name];
        let over = over.join(" ");
        cells.extend([over.as_str(), &limits, &codes, fault.ends.says]);
        if own.iter().any(|it| it.all_wrong().next().is_some()) {
            cells.push("WRONG");
        }
        text.push_str(&rows::line(&cells));
        text.push('\n');
    }
    print!("{text}");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{kind}.txt"));
    fs::write(path, text).unwrap();
}

/// What cells have, once for all of them if it is the same for all.
fn grouped(cells: &[&Cell], of: impl Fn(&Cell) -> String) -> String {
    let first = of(cells[0]);
    if cells.iter().all(|it| of(it) == first) {
        return first;
    }
    let each = cells.iter().map(|it| format!("{} {}", it.over, of(it)));
    each.collect::<Vec<_>>().join(", ")
}
