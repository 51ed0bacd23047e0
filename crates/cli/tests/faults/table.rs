//! Runs all rows of a kind, looks at how each ended, and prints the table.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use measure::{Limit, RunRecord};
use proto::Transport;

use crate::fault::{Fault, Leaves};
use crate::left;
use crate::rows;
use crate::stage::{Ended, Stage};

/// Runs that are made at once, by all tests of this binary.
const AT_ONCE: usize = 16;
/// What a host that has no time for a run, or for its target, may make of any limit. A run that
/// met a fault is never one whose target kept up.
const STARVED: [Limit; 3] = [Limit::Generator, Limit::Unknown, Limit::Server];

/// How a row ended over one transport.
struct Cell {
    over: Transport,
    limit: Option<Limit>,
    code: i32,
    is_starved: bool,
    /// What is not as it must be.
    wrong: Vec<String>,
}

/// Checks rows; `kind` is what they are faults of. A part of the name of a row in
/// `THRONG_FAULTS` leaves out all others.
pub(crate) fn check(kind: &str, faults: &'static [Fault]) {
    let only = std::env::var("THRONG_FAULTS").unwrap_or_default();
    let chosen = faults.iter().filter(|it| it.name.contains(&only));
    let all: Vec<(&Fault, Transport)> = chosen
        .flat_map(|fault| fault.over.iter().map(move |it| (fault, *it)))
        .collect();
    let next = AtomicUsize::new(0);
    let cells = Mutex::new(BTreeMap::<usize, Cell>::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(all.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let Some((fault, over)) = all.get(number) else {
                        return;
                    };
                    let cell = cell(fault, *over);
                    let mut cells = cells.lock().unwrap_or_else(PoisonError::into_inner);
                    cells.insert(number, cell);
                }
            });
        }
    });
    let cells = cells.into_inner().unwrap();
    let mut each = all.iter().map(|(fault, _)| fault.name).zip(cells.values());
    show(kind, faults, &mut each.clone());
    let wrong: Vec<String> = each
        .by_ref()
        .flat_map(|(name, cell)| {
            let wrong = cell.wrong.iter();
            wrong.map(move |it| format!("{name}, over {}: {it}", cell.over))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Waits for a place among those that run at once.
fn in_turn<T>(run: impl FnOnce() -> T) -> T {
    static RUNNING: Mutex<usize> = Mutex::new(0);
    static ENDED: Condvar = Condvar::new();
    let running = RUNNING.lock().unwrap();
    let mut running = ENDED.wait_while(running, |it| *it >= AT_ONCE).unwrap();
    *running += 1;
    drop(running);
    let outcome = run();
    *RUNNING.lock().unwrap() -= 1;
    ENDED.notify_one();
    outcome
}

/// Runs a row over one transport. What panics on the way is as wrong as anything.
fn cell(fault: &'static Fault, over: Transport) -> Cell {
    let made = in_turn(|| catch_unwind(AssertUnwindSafe(|| made(fault, over))));
    made.unwrap_or_else(|panic| Cell {
        over,
        limit: None,
        code: -1,
        is_starved: false,
        wrong: vec![match panic.downcast::<String>() {
            Ok(words) => *words,
            Err(_) => "it panicked".to_owned(),
        }],
    })
}

fn made(fault: &'static Fault, over: Transport) -> Cell {
    let mut stage = Stage::set(fault, over);
    let before = left::files_in(&stage.outputs());
    let ended = stage.run();
    let mut wrong = words(fault, &ended);
    wrong.extend(stage.look_after().err());
    let record = files(fault, &stage, &before, &mut wrong);
    let is_starved = record.as_ref().is_some_and(is_starved);
    if let Some(record) = &record {
        wrong.extend(measured(fault, record, is_starved));
    }
    remains(stage, &mut wrong);
    if !wrong.is_empty() {
        wrong.push(ended.said);
    }
    Cell {
        over,
        limit: record.map(|it| it.verdict.limit),
        code: ended.code,
        is_starved,
        wrong,
    }
}

/// Exit code and words.
fn words(fault: &Fault, ended: &Ended) -> Vec<String> {
    let Ended { code, said, undone } = ended;
    let expected = fault.ends;
    let mut wrong = Vec::new();
    if *code != expected.code {
        wrong.push(format!("exit code {code}, not {}", expected.code));
    }
    if !said.contains(expected.says) {
        wrong.push(format!("it does not say `{}`", expected.says));
    }
    if said.contains("panicked at") {
        wrong.push("it panicked".to_owned());
    }
    if *undone > 0 {
        wrong.push(format!("{undone} deeds were not done in time"));
    }
    wrong
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

/// The verdict, and that the fault took place.
fn measured(fault: &Fault, record: &RunRecord, is_starved: bool) -> Option<String> {
    let limit = record.verdict.limit;
    let may_be = fault.ends.limits.contains(&limit) || is_starved && STARVED.contains(&limit);
    if !may_be {
        let evidence = record.verdict.evidence.join("; ");
        return Some(format!("limit {}: {evidence}", limit.name()));
    }
    ((fault.ends.seen)(record) == 0).then(|| "no sign of the fault in the record".to_owned())
}

/// The record shows that the run had too little of its CPU.
fn is_starved(record: &RunRecord) -> bool {
    let lateness = record.total.distributions.send_lateness.percentile(0.99);
    let is_late = !record.scenario.transport.has_connections() && lateness > Some(1_000_000);
    let mut workers = record.workers.iter();
    is_late || workers.any(|it| it.cpu_wait_share() >= 0.05 || it.busy_share() >= 0.9)
}

/// Processes, claims, namespaces and ports that ought to be gone.
fn remains(mut stage: Stage, wrong: &mut Vec<String>) {
    let mark = stage.mark();
    if !left::soon(|| left::marked(&mark).is_empty()) {
        wrong.push(format!("processes are left: {:?}", left::marked(&mark)));
        stage.kill_marked();
    }
    if left::is_claimed(&stage.outputs()) {
        wrong.push("the record is still claimed".to_owned());
    }
    let (server, namespaces) = stage.clear();
    let is_stream = stage.is_stream();
    if server.is_some_and(|it| !left::soon(|| left::is_free(it, is_stream))) {
        wrong.push(format!("somebody still listens at {server:?}"));
    }
    if !left::soon(|| {
        namespaces
            .iter()
            .all(|it| left::in_namespace(it).is_empty())
    }) {
        wrong.push("a network namespace is still in use".to_owned());
    }
}

/// Prints the table, and writes it to Cargo's folder for files of tests.
fn show<'a>(
    kind: &str,
    faults: &[Fault],
    cells: &mut (impl Iterator<Item = (&'a str, &'a Cell)> + Clone),
) {
    let mut text = String::new();
    for fault in faults {
        let own = cells.clone().filter(|(name, _)| *name == fault.name);
        let own: Vec<&Cell> = own.map(|(_, cell)| cell).collect();
        if own.is_empty() {
            continue;
        }
        let over: Vec<&str> = own.iter().map(|it| it.over.name()).collect();
        let limits = grouped(&own, |it| {
            let name = it.limit.map_or("-", Limit::name).to_owned();
            name + if it.is_starved { " (starved)" } else { "" }
        });
        let codes = grouped(&own, |it| it.code.to_string());
        let mut cells = vec![kind, fault.name];
        let over = over.join(" ");
        cells.extend([over.as_str(), &limits, &codes, fault.ends.says]);
        if own.iter().any(|it| !it.wrong.is_empty()) {
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
