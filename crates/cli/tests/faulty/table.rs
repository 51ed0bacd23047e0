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
/// Attempts of a row whose host was busy, or whose fault came late.
const ATTEMPTS_MAX: u32 = 3;
/// Lines of progress that a run must show after the last deed, to be one that met the fault.
const SHOWN_AFTER_MIN: usize = 3;
/// Of setpriority(2): that of timed tests.
const PRIORITY: i32 = -20;
/// The same of a verdict that was left open.
const DECIDING_ATTEMPTS_MAX: u32 = 5;
/// How long rows are repeated until their host was quiet: a little longer than all take once that
/// two CPU hogs leave open, 70 to 85 rows.
const TIME_TO_DECIDE: Duration = Duration::from_secs(120);

/// How a row ended over one transport.
struct Cell {
    over: Transport,
    limit: Option<Limit>,
    code: i32,
    found: Found,
}

/// What a run says of its row, decided when it has ended.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    /// All is as it must be.
    Right,
    /// This is not, and the host is not the reason.
    Wrong(Vec<String>),
    /// The fault came too late to show. Without a busy host that is wrong in the end.
    Late {
        wrong: Vec<String>,
        busy: Option<String>,
    },
    /// More than the verdict is not as it must be, and the host was busy.
    Doubtful { wrong: Vec<String>, busy: String },
    /// The verdict is not as it must be, and only a quiet host shows whether it is wrong.
    Open(String),
}

impl Cell {
    /// A row that there was no time for.
    fn not_run(over: Transport) -> Cell {
        Cell {
            over,
            limit: None,
            code: 0,
            found: Found::Open("not run".to_owned()),
        }
    }
}

impl Found {
    /// What is wrong once it is not repeated any more.
    pub(crate) fn wrong(&self) -> &[String] {
        match self {
            Found::Wrong(wrong) => wrong,
            Found::Late { wrong, busy: None } => wrong,
            _ => &[],
        }
    }

    fn is_decided(&self) -> bool {
        matches!(self, Found::Right | Found::Wrong(_))
    }

    /// True if nothing but a quiet host can decide.
    pub(crate) fn is_open(&self) -> bool {
        self.why_open().is_some()
    }

    /// What the host did, if nothing but a quiet one can decide, and the first thing that is not
    /// as it must be.
    fn why_open(&self) -> Option<String> {
        match self {
            Found::Open(why) => Some(why.clone()),
            Found::Doubtful { wrong, busy }
            | Found::Late {
                wrong,
                busy: Some(busy),
            } => Some(format!("{}; {busy}", wrong[0])),
            _ => None,
        }
    }
}

/// What a run has that is not as it must be.
#[derive(Default)]
pub(crate) struct Differences {
    /// Whatever the host did.
    pub(crate) wrong: Vec<String>,
    /// Unless the fault came late or the host was busy.
    pub(crate) doubtful: Vec<String>,
    /// What is wrong with the verdict, unless the host was busy. One that names the host is not
    /// taken for right: a verdict that always does would pass.
    pub(crate) verdict: Option<String>,
}

impl Differences {
    /// What they come to if the fault came late, and if the host was busy.
    pub(crate) fn found(self, is_late: bool, busy: Option<String>) -> Found {
        let Differences {
            mut wrong,
            mut doubtful,
            verdict,
        } = self;
        if !wrong.is_empty() {
            wrong.append(&mut doubtful);
            return Found::Wrong(wrong);
        }
        if !doubtful.is_empty() {
            return match busy {
                busy if is_late => Found::Late {
                    wrong: doubtful,
                    busy,
                },
                Some(busy) => Found::Doubtful {
                    wrong: doubtful,
                    busy,
                },
                None => {
                    doubtful.extend(verdict);
                    Found::Wrong(doubtful)
                }
            };
        }
        match (verdict, busy) {
            (None, _) => Found::Right,
            (Some(_), Some(why)) => Found::Open(why),
            (Some(_), None) if is_late => Found::Open("the fault came late".to_owned()),
            (Some(what), None) => Found::Wrong(vec![what]),
        }
    }
}

/// A row over one of its transports.
type Row = (&'static Fault, Transport);

/// Checks the rows of a kind, several at a time. What only a quiet host can decide is left
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
            match last.found {
                Found::Late { .. } => times *= 4,
                Found::Doubtful { .. } => {}
                _ => break,
            }
            *last = cell(fault, *over, times);
        }
    }
    show(kind, &rows, &cells);
    let mut open = String::new();
    for ((fault, over), _) in rows.iter().zip(&cells).filter(|it| it.1.found.is_open()) {
        open.push_str(&line_of_open(fault, *over));
        open.push('\n');
    }
    fs::write(open_rows(kind), open).unwrap();
    assert_right(&rows, &cells);
}

/// The rows that [`check`] left open, each in a line.
fn open_rows(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{kind}.open"))
}

fn line_of_open(fault: &Fault, over: Transport) -> String {
    format!("{}\t{over}", fault.name)
}

/// Decides on what [`check`] has left open, with nothing beside.
pub(crate) fn decide_open() {
    let mut rows = Vec::new();
    let mut kinds = 0;
    for (kind, faults) in super::ALL {
        // Some kinds need root.
        let Ok(text) = fs::read_to_string(open_rows(kind)) else {
            continue;
        };
        kinds += 1;
        let mut of_kind = rows_of(faults);
        of_kind.retain(|(fault, over)| {
            let row = line_of_open(fault, *over);
            text.lines().any(|line| line == row)
        });
        rows.append(&mut of_kind);
    }
    if kinds == 0 {
        return timed::inconclusive("the tests of target `faults` were not run before");
    }
    decide("open", &rows);
}

/// Checks rows one after the other, and repeats each until it was right or its host was quiet. What
/// is not as it must be on a host that never was is inconclusive, and so is what there was no time
/// for.
pub(crate) fn decide(kind: &str, rows: &[Row]) {
    let cells = rows.iter().map(|(_, over)| Cell::not_run(*over));
    let mut cells: Vec<Cell> = cells.collect();
    let until = Instant::now() + TIME_TO_DECIDE;
    for _ in 0..DECIDING_ATTEMPTS_MAX {
        let undecided = rows.iter().zip(&mut cells);
        for ((fault, over), last) in undecided.filter(|(_, cell)| !cell.found.is_decided()) {
            if Instant::now() < until {
                *last = cell(fault, *over, 1);
            }
        }
    }
    show(kind, rows, &cells);
    assert_right(rows, &cells);
    let open = rows.iter().zip(&cells).filter_map(|((fault, over), cell)| {
        let why = cell.found.why_open()?;
        Some(format!("{} over {over} ({why})", fault.name))
    });
    let open: Vec<String> = open.collect();
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
        let wrong = cell.found.wrong().iter();
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
        found: Found::Wrong(vec![match panic.downcast::<String>() {
            Ok(words) => *words,
            Err(_) => "it panicked".to_owned(),
        }]),
    })
}

fn made(fault: &'static Fault, over: Transport, times: u32) -> Cell {
    let mut stage = Stage::set(fault, over, times);
    let before = left::files_in(&stage.outputs());
    let ended = stage.run();
    let mut differences = Differences::default();
    let wrong = &mut differences.wrong;
    wrong.extend(stage.look_after().err());
    if ended.said.contains("panicked at") {
        wrong.push("it panicked".to_owned());
    }
    let record = files(fault, &stage, &before, wrong);
    remains(stage, wrong);
    let doubtful = &mut differences.doubtful;
    doubtful.extend(words(fault, &ended));
    if let Some(record) = &record {
        if (fault.ends.seen)(record) == 0 {
            doubtful.push("no sign of the fault in the record".to_owned());
        }
        // Longer ones have other verdicts: of a fault that is a smaller part of them.
        let verdict = wrong_verdict(fault, record, &ended.said).filter(|_| times == 1);
        differences.verdict = verdict;
    }
    for all in [&mut differences.wrong, &mut differences.doubtful] {
        if !all.is_empty() {
            all.push(ended.said.clone());
        }
    }
    let is_late = is_late(fault, record.as_ref(), &ended);
    let busy = busy(fault, record.as_ref(), &ended, is_late);
    Cell {
        over,
        limit: record.map(|it| it.verdict.limit),
        code: ended.code,
        found: differences.found(is_late, busy),
    }
}

/// Whether the run ended before the fault was there for long.
fn is_late(fault: &Fault, record: Option<&RunRecord>, ended: &Ended) -> bool {
    // Those that a deed has ended show nothing more.
    let has_lasted = record.is_some() && fault.ends.code <= 1;
    let is_late = ended.shown_after.is_some_and(|it| it < SHOWN_AFTER_MIN);
    ended.undone > 0 || is_late && has_lasted
}

/// Why the host may have kept the run from showing what the fault comes to. A run without a record
/// shows it unless the fault came late.
fn busy(fault: &Fault, record: Option<&RunRecord>, ended: &Ended, is_late: bool) -> Option<String> {
    let share = |wait: Duration| wait.as_secs_f64() / ended.took.as_secs_f64();
    let Waited { run, target, test } = ended.waited;
    let of_target = Disturbance {
        target_waited: share(target),
        ..Disturbance::default()
    };
    let by = |waited: Duration| Disturbance {
        generator_waited: share(waited),
        ..of_target
    };
    let all = match (fault.is_disturbing, record) {
        (true, _) => of_target,
        // Where there is no /proc, the record has no wait.
        (false, Some(record)) => Disturbance::of(record).or(by(run)),
        (false, None) => by(run),
    };
    if is_late {
        // Who does the deeds may have waited for longest.
        return all.or(by(test)).beyond(Quiet::VERDICT);
    }
    // A run takes a second: a wait of 20 ms would be two of its percentiles.
    record.and_then(|_| all.beyond(Quiet::LATENCY))
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
            match &it.found {
                Found::Open(why) => format!("{name} ({why})"),
                Found::Late { .. } => format!("{name} (the fault came late)"),
                Found::Doubtful { wrong, busy } => format!("{name} ({}; {busy})", wrong[0]),
                _ => name,
            }
        });
        let codes = grouped(&own, |it| it.code.to_string());
        let mut cells = vec![kind, fault.name];
        let over = over.join(" ");
        cells.extend([over.as_str(), &limits, &codes, fault.ends.says]);
        if own.iter().any(|it| !it.found.wrong().is_empty()) {
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
