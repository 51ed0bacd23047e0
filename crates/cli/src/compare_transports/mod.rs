//! `throng compare-transports`: the same load over each transport in turn.
//!
//! Everything is checked for every transport before the first run starts. The runs alternate, every
//! other time in reverse order, so that what drifts on the machine hits all transports alike.

mod arguments;

use std::path::PathBuf;
use std::process::ExitCode;

use lab::experiment::{self, Order};
use lab::files;
use lab::live::{Live, Place};
use measure::RunRecord;
use measure::comparison::{Cell, Comparison};
use measure::record::EndedBy;
use report::Answer;
use settings::Run;

use crate::args::CompareTransportsArguments;
use crate::conditions::{Gate, exit_code};
use crate::failure::{Failure, print};
use crate::records::{Destination, Links, keep_one};
use crate::reports::page_of_answer;
use crate::run::group::Group;
use crate::run::{self, Runner};
use crate::signals::{self, Interrupt};
use crate::views::Views;

/// One run to be made.
struct Turn<'a> {
    group: &'a Group,
    /// Which run of its transport, from 1.
    round: u32,
    /// How many runs its transport has.
    rounds: u32,
    /// Where its record goes.
    destination: Option<Destination>,
}

/// One run that was made.
struct Made {
    record: RunRecord,
    file: Option<String>,
}

/// Compares and prints.
pub(crate) fn execute(arguments: &CompareTransportsArguments) -> Result<ExitCode, Failure> {
    let each = arguments::of_each(arguments)?;
    for group in &each {
        let transport = group.run.transport;
        run::check(group).map_err(|failure| failure.of(&transport.to_string()))?;
    }
    let links = Links::with_force(arguments.run.force);
    let gate = Gate::of(&arguments.run.conditions, links)?;
    let turns = turns(&each, arguments)?;
    let interrupt = signals::watch(|| {
        tell!("ending the comparison; waiting for open queries (interrupt again to abort)");
    });
    let live = Live::default();
    let views = Views::begin(&live, &arguments.run.views(), "compare-transports")?;
    let (made, all_kept) = make(&turns, &interrupt, &live)?;
    let cells: Vec<Cell<'_>> = made.iter().map(Made::cell).collect();
    let Some(comparison) = Comparison::new(&cells) else {
        return Err(Failure::interrupted(
            "interrupted within the first run: nothing to compare",
        ));
    };
    let format = arguments.run.format;
    let answer = Answer::Transports(Box::new(comparison));
    let text = format.of(&answer);
    print(&text)?;
    let in_vain = made.iter().filter(|made| run::is_failure(&made.record));
    let in_vain = in_vain.count() > 0;
    let has_failed = gate.conclude_answer(&answer, (format, &text))?;
    views.finish(|| page_of_answer(answer));
    Ok(exit_code(in_vain || !all_kept, has_failed))
}

/// All runs in the order in which they are made: there and back again.
fn turns<'a>(
    each: &'a [Group],
    arguments: &CompareTransportsArguments,
) -> Result<Vec<Turn<'a>>, Failure> {
    if let Some(folder) = &arguments.records {
        files::make_folders(folder).map_err(|error| {
            Failure::unwritable(
                format!("cannot create the folder {}: {error}", folder.display()),
                &error,
                "give --records a folder that exists or can be created",
            )
        })?;
    }
    let turns = experiment::turns(each.len(), arguments.repeat, Order::ThereAndBack);
    let turns = turns.into_iter().map(|turn| {
        let (group, round) = (&each[turn.cell], turn.repetition);
        Ok(Turn {
            group,
            round,
            rounds: arguments.repeat,
            destination: destination(&group.run, round, arguments)?,
        })
    });
    turns.collect()
}

fn destination(
    run: &Run,
    round: u32,
    arguments: &CompareTransportsArguments,
) -> Result<Option<Destination>, Failure> {
    let Some(folder) = &arguments.records else {
        return Ok(None);
    };
    let path: PathBuf = folder.join(format!("{}-{round}.json", run.transport));
    let links = Links::with_force(arguments.run.force);
    Destination::check("--records", &path, links).map(Some)
}

/// Makes all runs, up to an interrupt; the run that it cut short is kept and not compared. False if
/// a record could not be written.
fn make(
    turns: &[Turn<'_>],
    interrupt: &Interrupt,
    live: &Live,
) -> Result<(Vec<Made>, bool), Failure> {
    let (mut made, mut all_kept) = (Vec::new(), true);
    let is_quiet = turns.iter().any(|turn| turn.group.output.quiet);
    let runner = Runner::new(interrupt, live, is_quiet);
    for (index, turn) in turns.iter().enumerate() {
        if interrupt.has_come() {
            break;
        }
        let (position, all) = (index + 1, turns.len());
        if !turn.group.output.quiet {
            tell!(
                "run {position} of {all}: {} ({} of {})",
                turn.group.run.transport,
                turn.round,
                turn.rounds
            );
        }
        let transport = turn.group.run.transport.to_string();
        live.begin(Place::new(transport, position as u64, Some(all as u64)));
        let record = run::measure(turn.group, &runner)?;
        all_kept &= keep_one(&record, turn.destination.as_ref());
        if record.ended_by != EndedBy::Interrupted {
            let file = turn.destination.as_ref().map(Destination::name);
            made.push(Made { record, file });
        }
    }
    if interrupt.has_come() {
        let (complete, all) = (made.len(), turns.len());
        tell!("interrupted: {complete} of {all} runs are compared");
    }
    Ok((made, all_kept))
}

impl Made {
    fn cell(&self) -> Cell<'_> {
        Cell {
            record: &self.record,
            file: self.file.as_deref(),
        }
    }
}
