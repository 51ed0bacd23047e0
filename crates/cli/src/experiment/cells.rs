//! The runs of an experiment: every combination of what is varied, in the order of the runs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use lab::experiment::{self, Order};
use lab::target::{Change, Operation, Service, Topology};
use settings::Transport;

use super::file::{Axis, Experiment, Level};
use super::hooks::Hooks;
use super::operation::{self, Timing};
use super::servers::{NOT_STARTED, ServerCell};
use crate::args::{Given, RunArguments, flags};
use crate::failure::Failure;
use crate::run::group::Group;
use crate::shell::quoted;
use crate::{scenario, secrets};

/// Most runs of an experiment.
const RUNS_MAX: usize = 100_000;

/// What a cell's twin has beside it.
pub(super) const TWIN: &str = "aa";

/// Longest name of a run: that of a file (255 octets) without its ending and the repetition's
/// further digits.
const NAME_OCTETS_MAX: usize = 235;

/// What is varied, and its value.
pub(super) type Levels = Vec<(String, String)>;

/// One run.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// What is varied and its value in this run.
    pub(super) levels: Levels,
    /// Which run of its cell, from 1.
    pub(super) repetition: u32,
    labels: Vec<(String, String)>,
    flags: Vec<Given>,
    /// The server that is started for it.
    pub(super) server: Option<ServerCell>,
    /// What of a cluster is changed for it.
    pub(super) change: Option<Change>,
    /// What is between it and that.
    pub(super) topology: Topology,
    /// What is done to it in mid-run.
    pub(super) operation: Option<Operation>,
    scenario: Option<PathBuf>,
    /// Those of its servers and variants, in their order.
    pub(super) hooks: Vec<Hooks>,
}

impl Turn {
    /// A name for its files: what is varied, and the repetition. Two turns that differ in either
    /// have different names.
    pub(super) fn name(&self) -> String {
        experiment::file_name(&self.levels, self.repetition)
    }

    /// True if this has that value in it: what is varied, or a factor or resource of its server.
    pub(super) fn has(&self, name: &str, value: &str) -> bool {
        let mut all = self.levels.iter().chain(&self.labels);
        all.any(|it| (it.0.as_str(), it.1.as_str()) == (name, value))
    }

    /// True if a cluster makes namespaces for it.
    pub(super) fn is_in_kubernetes(&self) -> bool {
        self.topology == Topology::Kubernetes
    }

    /// The same once more under another name: the two must not differ.
    fn twin(&self) -> Turn {
        let mut twin = self.clone();
        let word = (TWIN.to_owned(), "twin".to_owned());
        twin.levels.push(word.clone());
        twin.labels.push(word);
        twin
    }

    /// Its load for a moment, against that server, under a name of its own.
    pub(super) fn against(&self, server: ServerCell, levels: Levels, is_short: bool) -> Turn {
        let (duration, warmup) = match is_short {
            true => ("500ms", "0s"),
            false => ("2s", "500ms"),
        };
        let mut turn = Turn {
            levels,
            repetition: 1,
            labels: vec![("ceiling".to_owned(), "generator".to_owned())],
            server: Some(server),
            operation: None,
            hooks: Vec::new(),
            ..self.clone()
        };
        turn.last(&[("duration", duration), ("warmup", warmup)]);
        turn
    }

    /// Lets it last for as long as these flags say.
    fn last(&mut self, times: &[(&str, &str)]) {
        let of_time = ["duration", "warmup", "queries"];
        (self.flags).retain(|given| !of_time.contains(&given.name.as_str()));
        let flags = times.iter().map(|(name, time)| Given {
            name: (*name).to_owned(),
            values: vec![(*time).to_owned()],
        });
        self.flags.extend(flags);
    }

    /// What it asks for. A server that is started for it has no address yet.
    pub(super) fn groups(&self) -> Result<Vec<Group>, Failure> {
        let mut flags = self.flags.clone();
        if self.server.is_some() {
            flags.push(Given {
                name: "server".to_owned(),
                values: vec![NOT_STARTED.to_owned()],
            });
        }
        let arguments = RunArguments::of_flags(&flags)?;
        let source = (self.scenario.as_deref()).map(scenario::Source::of_experiment);
        let mut groups = scenario::only_run(source, &arguments)?;
        for group in &mut groups {
            group.run.labels.extend(self.labels.iter().cloned());
        }
        Ok(groups)
    }

    /// The arguments of `throng` for it, without the place of its record.
    fn arguments(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["run".into()];
        words.extend(self.scenario.iter().map(|path| path.as_os_str().to_owned()));
        words.extend(self.flags.iter().flat_map(Given::arguments));
        for (name, value) in &self.labels {
            words.push(format!("--label={name}={value}").into());
        }
        words
    }

    /// As it would be typed, without what may be a secret.
    pub(super) fn command_line(&self) -> String {
        let words = self.arguments();
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let shown = secrets::shown(words.iter().map(|word| &**word));
        let quoted = shown.iter().map(|word| quoted(word));
        format!("throng {}", quoted.collect::<Vec<_>>().join(" "))
    }
}

/// True if a cell with these levels is there to be compared with the same cell.
pub(super) fn is_of_twin(levels: &[(String, String)]) -> bool {
    levels.last().is_some_and(|(name, _)| name == TWIN)
}

/// One run of a turn: there are several where a server is started for them.
pub(super) struct Run<'a> {
    pub(super) turn: &'a Turn,
    /// From 1, and how many there are.
    number: u32,
    of: u32,
}

impl<'a> Run<'a> {
    /// Those of a turn.
    pub(super) fn all(turn: &'a Turn, of: u32) -> impl Iterator<Item = Run<'a>> {
        (1..=of).map(move |number| Run { turn, number, of })
    }

    /// A name for its files.
    pub(super) fn name(&self) -> String {
        match self.of {
            1 => self.turn.name(),
            _ => format!("{},run{}", self.turn.name(), self.number),
        }
    }

    /// False for the first of several: what is only so after a start is in none of the others.
    pub(super) fn is_used(&self) -> bool {
        self.of == 1 || self.number > 1
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.levels {
            write!(f, "{name} {value}, ")?;
        }
        write!(f, "repetition {}", self.repetition)
    }
}

/// Refuses cells whose records would be one file, or none.
fn check_names(cells: &[Turn]) -> Result<(), Failure> {
    let mut names = BTreeSet::new();
    for cell in cells {
        let name = cell.name();
        if name.len() > NAME_OCTETS_MAX {
            return Err(Failure::usage(
                format!("{cell}: its record would be called {name}, which is too long for a file"),
                "give the levels shorter names",
            ));
        }
        if !names.insert(name) {
            return Err(Failure::usage(
                format!("{cell}: it occurs twice"),
                "give the levels different names, or use `repeat`",
            ));
        }
    }
    Ok(())
}

/// All runs in their order. Their flags are checked: nothing is started if one is wrong.
pub(super) fn turns(experiment: &Experiment) -> Result<Vec<Turn>, Failure> {
    let mut cells = cells(experiment)?;
    for cell in &cells {
        check(cell, experiment.timing)?;
    }
    if experiment.is_short {
        cells = shortened(cells);
    }
    let order = match experiment.is_listed {
        true => Order::Listed,
        false => Order::Random {
            seed: experiment.seed,
        },
    };
    let turns = experiment::turns(cells.len(), experiment.repetitions, order);
    let turns = turns.into_iter().map(|turn| Turn {
        repetition: turn.repetition,
        ..cells[turn.cell].clone()
    });
    Ok(turns.collect())
}

/// The first and the last of the cells, with runs of a second.
fn shortened(mut cells: Vec<Turn>) -> Vec<Turn> {
    if cells.len() > 2 {
        cells.drain(1..cells.len() - 1);
    }
    for cell in &mut cells {
        cell.last(&[("duration", "1s")]);
    }
    cells
}

/// The runs of each cell, whatever their order.
pub(super) fn by_cell(experiment: &Experiment) -> Result<Vec<Vec<Turn>>, Failure> {
    let turns = |cell: &Turn| {
        let each = (1..=experiment.repetitions).map(|repetition| Turn {
            repetition,
            ..cell.clone()
        });
        each.collect()
    };
    Ok(cells(experiment)?.iter().map(turns).collect())
}

fn cells(experiment: &Experiment) -> Result<Vec<Turn>, Failure> {
    let levels: Vec<usize> = experiment.axes.iter().map(|it| it.levels.len()).collect();
    let repetitions = experiment.repetitions.max(1) as usize;
    let all = experiment::combinations(&levels, RUNS_MAX / repetitions).map_err(|many| {
        let runs = many.number.saturating_mul(repetitions);
        Failure::usage(
            format!("{runs} runs: an experiment has at most {RUNS_MAX}"),
            "vary less at a time",
        )
    })?;
    let nothing_varied = Turn {
        levels: Vec::new(),
        repetition: 1,
        labels: Vec::new(),
        flags: experiment.flags.clone(),
        server: None,
        change: None,
        topology: Topology::Loopback,
        operation: None,
        scenario: experiment.scenario.clone(),
        hooks: Vec::new(),
    };
    let cell = |positions: Vec<usize>| {
        let axes = experiment.axes.iter().zip(positions);
        axes.fold(nothing_varied.clone(), |cell, (axis, level)| {
            extended(cell, axis, &axis.levels[level])
        })
    };
    let mut cells: Vec<Turn> = all.into_iter().map(cell).collect();
    fit_transports(&mut cells, &experiment.flags);
    if experiment.twins > cells.len() {
        return Err(Failure::usage(
            format!("`aa` is {}, of {} cells", experiment.twins, cells.len()),
            "write how many of the cells are to be there twice",
        ));
    }
    let twins: Vec<Turn> = cells[..experiment.twins].iter().map(Turn::twin).collect();
    cells.extend(twins);
    check_names(&cells)?;
    Ok(cells)
}

/// Leaves out of each cell the keys of `[run]` that only the transports of other cells have. A key
/// that no cell's transport has stays, and is refused.
fn fit_transports(cells: &mut [Turn], of_all: &[Given]) {
    let all: Vec<Transport> = cells.iter().map(transport).collect();
    for (cell, own) in cells.iter_mut().zip(&all) {
        let is_for_others = |given: &Given| {
            of_all.contains(given)
                && flags::find(&given.name)
                    .is_some_and(|flag| !flag.suits(*own) && flag.suits_another(*own, &all))
        };
        cell.flags.retain(|given| !is_for_others(given));
    }
}

/// The transport of a cell; what is no transport is refused later.
fn transport(cell: &Turn) -> Transport {
    let given = cell.flags.iter().find(|given| given.name == "transport");
    let word = given.and_then(|given| given.values.first());
    word.and_then(|word| word.parse().ok())
        .unwrap_or(Transport::Udp)
}

/// The cell with one more thing decided; later flags go before earlier ones.
fn extended(mut cell: Turn, axis: &Axis, level: &Level) -> Turn {
    cell.levels.push((axis.name.clone(), level.label.clone()));
    if axis.is_label {
        cell.labels.push((axis.name.clone(), level.label.clone()));
    }
    cell.flags
        .retain(|given| level.flags.iter().all(|other| other.name != given.name));
    cell.flags.extend(level.flags.iter().cloned());
    cell.labels.extend(level.labels.iter().cloned());
    if level.server.is_some() {
        cell.server.clone_from(&level.server);
    }
    if level.change.is_some() {
        cell.change.clone_from(&level.change);
    }
    if let Some(topology) = &level.topology {
        cell.topology.clone_from(topology);
    }
    cell.operation = level.operation.or(cell.operation);
    if level.scenario.is_some() {
        cell.scenario.clone_from(&level.scenario);
    }
    if !level.hooks.is_empty() {
        cell.hooks.push(level.hooks.clone());
    }
    cell
}

/// Refuses what is wrong with a cell before anything runs.
fn check(cell: &Turn, timing: Timing) -> Result<(), Failure> {
    if cell.server.is_some() && cell.flags.iter().any(|given| given.name == "server") {
        return Err(Failure::usage(
            "`server` is the address of the server that the experiment starts",
            "leave it out where there is a [[server]]",
        ));
    }
    if let Some(path) = cell.scenario.as_deref().filter(|path| !path.is_file()) {
        return Err(Failure::usage(
            format!("there is no scenario {}", path.display()),
            "paths are relative to the experiment's file",
        ));
    }
    let groups = cell.groups();
    let groups = groups.map_err(|failure| failure.of(&words(&cell.levels)))?;
    operation::check(cell, cell.server.as_ref(), (&groups[0].run, timing))
        .map_err(|failure| failure.of(&words(&cell.levels)))?;
    match &cell.server {
        Some(server) => check_server(cell, server, &groups),
        None if cell.topology.needs_network() => Err(Failure::usage(
            format!("topology {}: there is no server for it", cell.topology),
            "write [[server]]: an experiment has networks to servers that it starts itself",
        )),
        None => Ok(()),
    }
}

/// Refuses runs that ask a server for what it does not have.
fn check_server(cell: &Turn, server: &ServerCell, groups: &[Group]) -> Result<(), Failure> {
    let product = server.product();
    let checked = server.check(&cell.topology);
    checked.map_err(|failure| failure.of(&words(&cell.levels)))?;
    let is_missing = |transport: &Transport| {
        Service::of(*transport).is_some_and(|service| !product.services().contains(&service))
    };
    let mut transports = groups.iter().map(|group| group.run.transport);
    match transports.find(is_missing) {
        None => Ok(()),
        Some(transport) => Err(Failure::usage(
            format!(
                "{}: {} has no {transport}",
                words(&cell.levels),
                product.title
            ),
            "leave the transport out, or give the servers that have it an experiment of their own",
        )),
    }
}

/// A cell by what is varied.
pub(super) fn words(levels: &[(String, String)]) -> String {
    let each = levels.iter().map(|(name, value)| format!("{name} {value}"));
    let words: Vec<String> = each.collect();
    match words.is_empty() {
        true => "all runs".to_owned(),
        false => words.join(", "),
    }
}
