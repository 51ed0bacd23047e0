//! What an experiment says: each cell with its interval, and how far the cells can be told apart.
//!
//! The start of a server is what is repeated (of runs without one, the run): runs after the same
//! start are alike, and do not count as repetitions.

use std::fmt::Write as _;
use std::path::Path;

use measure::RunRecord;
use measure::internet::Internet;
use measure::left_out::rate_at_least;
use measure::line::{Direction, Line};
use measure::metric::Metric;
use measure::notation::{count, counted, latency};
use measure::statistics::{Events, Nested, welch};
use serde::de::DeserializeOwned;

use super::ceilings::Ceilings;
use super::cells::{self, Levels, Run, Turn, is_of_twin, words};
use super::file::{self, Experiment};
use super::folder::{self, EXPERIMENT};
use super::operation;
use crate::failure::Failure;
use crate::inputs;

pub(crate) mod document;

/// Of intervals; differences beyond one minus it are alarms.
pub(super) const LEVEL: f64 = 0.95;

/// Runs that are left out, named at most.
const LEFT_OUT_TOLD_MAX: usize = 20;

/// A cell with what was measured in it.
struct Measured {
    levels: Levels,
    /// None without a record that counts and has the metric.
    values: Option<Nested>,
    /// Runs that say nothing about the server.
    left_out: LeftOut,
    /// What its delay line did in all runs that are used, to the server and back.
    line: Option<[Direction; 2]>,
    /// How its operations went, in all runs that are used.
    operations: Option<String>,
    /// What the servers of its closed Internet did in them; empty without one.
    internet: Internet,
}

/// Runs of a cell that say nothing about its server, and what they leave to be said.
pub(super) struct LeftOut {
    /// Runs of the cell.
    all: usize,
    /// Each with its name, and why.
    runs: Vec<(String, String)>,
    /// What the server can do at least, queries a second, where none of the runs counts.
    pub(super) at_least: Option<f64>,
}

impl LeftOut {
    /// All runs are left out, so that nothing is known of the server; in words.
    pub(super) fn all(&self) -> Option<String> {
        let qps = Metric::Qps.show(self.at_least?);
        let runs = counted(self.all as u64, "run");
        Some(format!(
            "all of {runs} measured the generator or its host (at least {qps})"
        ))
    }

    /// Some are; in words.
    pub(super) fn some(&self) -> Option<String> {
        let number = self.runs.len();
        let is_some = number > 0 && number < self.all;
        is_some.then(|| format!("{number} of {} left out", counted(self.all as u64, "run")))
    }
}

/// An experiment with the folder of its records.
pub(super) struct Results<'a> {
    folder: &'a Path,
    experiment: Experiment,
}

impl<'a> Results<'a> {
    /// Those in a folder.
    pub(super) fn read(folder: &'a Path) -> Result<Self, Failure> {
        let path = folder.join(EXPERIMENT);
        let text = inputs::text(&path).map_err(|error| {
            Failure::usage(
                format!("cannot read {}: {error}", path.display()),
                "give the folder that `throng experiment run` has filled",
            )
        })?;
        let experiment = file::parse(&path, &text)?;
        Ok(Results { folder, experiment })
    }

    /// Each cell with its interval.
    pub(super) fn found(&self, metric: Metric) -> Result<ResultsOf<'a>, Failure> {
        let cells = self.cells()?;
        let (mut measured, mut rates) = (Vec::new(), Vec::new());
        for turns in &cells {
            let runs = self.runs(turns)?;
            rates.push((&turns[0], runs.rate()));
            let has_operation = turns[0].operation.is_some();
            measured.push(Measured {
                values: runs.values(metric),
                left_out: runs.left_out(),
                line: line(self.folder, turns, &self.experiment)?,
                internet: internet(self.folder, turns, &self.experiment)?,
                operations: has_operation
                    .then(|| operation::summary(runs.records()))
                    .flatten(),
                levels: turns[0].levels.clone(),
            });
        }
        Ok(ResultsOf {
            folder: self.folder,
            metric,
            ceilings: Ceilings::read(self.folder, &cells)?.text(&rates),
            measured,
        })
    }

    /// All turns of each cell.
    pub(super) fn cells(&self) -> Result<Vec<Vec<Turn>>, Failure> {
        cells::by_cell(&self.experiment)
    }

    /// The runs of all turns of a cell.
    pub(super) fn runs(&self, turns: &[Turn]) -> Result<Runs, Failure> {
        let starts = turns.iter().map(|turn| {
            let records = records(self.folder, turn, &self.experiment)?;
            Ok(records.into_iter().map(MeasuredRun::new).collect())
        });
        Ok(Runs {
            starts: starts.collect::<Result<_, Failure>>()?,
        })
    }
}

/// The cells of an experiment by one metric.
pub(super) struct ResultsOf<'a> {
    folder: &'a Path,
    metric: Metric,
    measured: Vec<Measured>,
    /// Which cells are near the generator's ceiling; a line each.
    ceilings: String,
}

impl ResultsOf<'_> {
    /// For people.
    pub(super) fn text(&self) -> String {
        let measured = &self.measured;
        table(self.folder, measured, self.metric) + &left_out(measured) + &self.remarks()
    }

    /// What belongs to no figure of a cell; a line each.
    fn remarks(&self) -> String {
        let measured = &self.measured;
        let networks = lines(measured) + &internets(measured);
        operations(measured) + &networks + &self.ceilings + &twins(measured)
    }
}

/// A run that was measured.
struct MeasuredRun {
    name: String,
    record: RunRecord,
    /// Why it says nothing about its server, if so.
    left_out: Option<String>,
}

impl MeasuredRun {
    fn new((name, record): (String, RunRecord)) -> Self {
        MeasuredRun {
            name,
            left_out: record.why_left_out(),
            record,
        }
    }
}

/// The measured runs of a cell.
pub(super) struct Runs {
    /// Those after each start.
    starts: Vec<Vec<MeasuredRun>>,
}

impl Runs {
    fn all(&self) -> impl Iterator<Item = &MeasuredRun> {
        self.starts.iter().flatten()
    }

    fn records(&self) -> impl Iterator<Item = &RunRecord> {
        self.all().map(|run| &run.record)
    }

    /// The metric at each start; none without a record that counts and has it.
    pub(super) fn values(&self, metric: Metric) -> Option<Nested> {
        let mut starts: Vec<Vec<f64>> = Vec::new();
        let mut events: Option<Events> = None;
        for start in &self.starts {
            let counts = |run: &&MeasuredRun| !metric.is_of_target() || run.left_out.is_none();
            let records = start.iter().filter(counts).map(|run| &run.record);
            starts.push(records.clone().filter_map(|it| metric.of(it)).collect());
            for of_run in records.filter_map(|it| metric.events(it)) {
                let sum = events.get_or_insert_default();
                sum.some += of_run.some;
                sum.all += of_run.all;
            }
        }
        let nested = Nested::new(&starts, metric.unit().range(), LEVEL)?;
        let step = metric.step(nested.mean) * nested.mean;
        let nested = nested.with_step(step);
        Some(match events {
            Some(events) => nested.with_events(events),
            None => nested,
        })
    }

    /// Which of them say nothing about the server.
    pub(super) fn left_out(&self) -> LeftOut {
        let out = |run: &MeasuredRun| Some((run.name.clone(), run.left_out.clone()?));
        LeftOut {
            all: self.all().count(),
            runs: self.all().filter_map(out).collect(),
            at_least: rate_at_least(self.all().map(|run| (&run.record, run.left_out.as_ref()))),
        }
    }

    /// What the server answered, queries a second: the mean, or at least that; none without a
    /// record.
    pub(super) fn rate(&self) -> Option<f64> {
        let mean = self.values(Metric::Qps).map(|it| it.mean);
        mean.or_else(|| self.left_out().at_least)
    }
}

/// The record of each run of a start that is used and was made, with the run's name.
pub(super) fn records(
    folder: &Path,
    turn: &Turn,
    experiment: &Experiment,
) -> Result<Vec<(String, RunRecord)>, Failure> {
    let mut records = Vec::new();
    for run in Run::all(turn, experiment.runs_per_start).filter(Run::is_used) {
        let path = folder::record_in(folder, &run);
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let record = RunRecord::from_json(&text)
            .map_err(|why| Failure::in_operation(format!("{}: {why}", path.display())))?;
        records.push((run.name(), record));
    }
    Ok(records)
}

/// What the line of a cell did in all runs that are used.
fn line(
    folder: &Path,
    turns: &[Turn],
    experiment: &Experiment,
) -> Result<Option<[Direction; 2]>, Failure> {
    let mut sum: Option<[Direction; 2]> = None;
    let runs = turns
        .iter()
        .flat_map(|turn| Run::all(turn, experiment.runs_per_start));
    for run in runs.filter(Run::is_used) {
        let path = folder::line_in(folder, &run);
        let Some(line) = json::<Line>(&path)? else {
            continue;
        };
        match &mut sum {
            None => sum = Some([line.to_far, line.to_near]),
            Some([to_far, to_near]) => {
                to_far.add(&line.to_far);
                to_near.add(&line.to_near);
            }
        }
    }
    Ok(sum)
}

/// What was done to the servers of each cell, and how the load fared.
fn operations(measured: &[Measured]) -> String {
    let told = measured.iter().filter_map(|cell| {
        let text = cell.operations.as_ref()?;
        Some(format!("mid-run: {}: {text}\n", words(&cell.levels)))
    });
    told.collect()
}

/// What the servers of a closed Internet did in all runs of a cell that are used.
fn internet(folder: &Path, turns: &[Turn], experiment: &Experiment) -> Result<Internet, Failure> {
    let mut sum = Internet::default();
    let runs = turns
        .iter()
        .flat_map(|turn| Run::all(turn, experiment.runs_per_start));
    for run in runs.filter(Run::is_used) {
        let path = folder::internet_in(folder, &run);
        if let Some(internet) = json::<Internet>(&path)? {
            sum.add(&internet);
        }
    }
    Ok(sum)
}

/// A file that may be missing.
fn json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Failure> {
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(None);
    };
    let read = serde_json::from_str(&text).map(Some);
    read.map_err(|why| Failure::in_operation(format!("{}: {why}", path.display())))
}

/// What the closed Internet of each cell was asked.
fn internets(measured: &[Measured]) -> String {
    let is_there = |cell: &&Measured| !cell.internet.servers.is_empty();
    let each = measured.iter().filter(is_there).map(|cell| {
        let did = report::internet::text(&cell.internet);
        format!("internet: {}: {did}\n", words(&cell.levels))
    });
    each.collect()
}

/// What the delay lines did: what of latency and losses is theirs.
fn lines(measured: &[Measured]) -> String {
    let mut text = String::new();
    for cell in measured {
        let Some([to_far, to_near]) = &cell.line else {
            continue;
        };
        let floor_ns = to_far.asked.delay_ns + to_near.asked.delay_ns;
        let lost = |way: &Direction| {
            let all = way.packets + way.not_read;
            format!("{} of {}", count(way.lost_total()), count(all))
        };
        let mut late = to_far.late.clone();
        late.merge(&to_near.late);
        let late = |at: f64| {
            late.percentile(at)
                .map_or("-".to_owned(), |ns| latency(ns as f64))
        };
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "line: {}: {}, no latency below {}; lost {} packets there and {} back; late by {} \
             (p50), {} (p99)",
            words(&cell.levels),
            report::line::asked([&to_far.asked, &to_near.asked]),
            latency(floor_ns as f64),
            lost(to_far),
            lost(to_near),
            late(0.5),
            late(0.99)
        );
    }
    text
}

fn table(folder: &Path, measured: &[Measured], metric: Metric) -> String {
    let mut text = format!(
        "{}: {} in {}\n\n",
        folder.display(),
        metric.name(),
        counted(measured.len() as u64, "cell")
    );
    // Writing to a String does not fail.
    let _ = writeln!(
        text,
        "{:>12} {:>25} {:>12} {:>12} {:>12}  cell",
        "mean", "95 % interval", "between", "within", "detectable"
    );
    for cell in measured {
        let name = words(&cell.levels);
        let Some(values) = &cell.values else {
            let why = match cell.left_out.at_least {
                Some(_) => "left out",
                None => "no record",
            };
            let _ = writeln!(text, "{why:>12} {:>65} {name}", "");
            continue;
        };
        let show = |value: Option<f64>| value.map_or("-".to_owned(), |value| metric.show(value));
        let interval = values.interval.as_ref();
        let interval = interval.map_or("-".to_owned(), |it| {
            format!("{} to {}", metric.show(it.low), metric.show(it.high))
        });
        let _ = writeln!(
            text,
            "{:>12} {interval:>25} {:>12} {:>12} {:>12}  {name}",
            metric.show(values.mean),
            metric.show(values.between_starts),
            show(values.within_starts),
            show(values.detectable(LEVEL)),
        );
    }
    text + "\nbetween, within: standard deviations of starts and of runs after one start\n\
            detectable: smallest difference detectable with 80 % power\n"
}

/// The runs that say nothing about their server, by name, and what remains of their cells.
fn left_out(measured: &[Measured]) -> String {
    let mut text = String::new();
    let runs = measured.iter().flat_map(|cell| &cell.left_out.runs);
    let number = runs.clone().count();
    // Writing to a String does not fail.
    for (name, why) in runs.take(LEFT_OUT_TOLD_MAX) {
        let _ = writeln!(text, "left out: {name}: {why}");
    }
    if number > LEFT_OUT_TOLD_MAX {
        let more = counted((number - LEFT_OUT_TOLD_MAX) as u64, "more run");
        let _ = writeln!(text, "left out: {more}");
    }
    for cell in measured {
        if let Some(all) = cell.left_out.all() {
            let _ = writeln!(text, "inconclusive: {}: {all}", words(&cell.levels));
        }
    }
    text
}

/// Cells that are the same and must not differ.
fn twins(measured: &[Measured]) -> String {
    let mut text = String::new();
    for twin in measured.iter().filter(|cell| is_of_twin(&cell.levels)) {
        let own = &twin.levels[..twin.levels.len() - 1];
        let first = measured.iter().find(|cell| cell.levels == own);
        let pair = first.and_then(|first| Some((first.values.as_ref()?, twin.values.as_ref()?)));
        let test = pair.and_then(|(a, b)| welch(&a.means, &b.means, LEVEL));
        let name = words(own);
        // Writing to a String does not fail.
        let _ = match test {
            None => writeln!(text, "A/A: {name}: too few starts to decide"),
            Some(test) if test.p_value < 1.0 - LEVEL => writeln!(
                text,
                "A/A: {name} differs from itself (p {:.3}): this host, or the order, makes \
                 differences by itself, and the cells cannot be ranked",
                test.p_value
            ),
            Some(test) => writeln!(
                text,
                "A/A: {name} does not differ from itself (p {:.3})",
                test.p_value
            ),
        };
    }
    text
}
