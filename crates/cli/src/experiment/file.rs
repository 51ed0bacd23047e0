//! An experiment as it is written.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::target::{Change, Operation, Topology};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::hooks::Hooks;
use super::operation::{At, NONE, Timing};
use super::servers::{self, ServerCell};
use crate::args::Given;
use crate::failure::Failure;
use crate::scenario::{Reader, Trust, beside, kind, nearest, scalar};

/// Keys at the top.
pub(super) const OF_TOP: [&str; 14] = [
    "name",
    "about",
    REPEAT,
    "short",
    "order",
    "seed",
    "cool-down",
    "run",
    "matrix",
    "lab",
    "server",
    "servers",
    "variants",
    "hooks",
];
/// Keys of `[lab]`.
pub(super) const OF_LAB: [&str; 8] = [
    "starts",
    "runs-per-start",
    "aa",
    "ceilings",
    "topology",
    "operation",
    "at",
    "outage",
];
/// Keys of hooks, at `[hooks]` and of one server or variant.
pub(super) const OF_HOOKS: [&str; 4] = ["before", "ready", "after", "hook-timeout"];
/// Keys that the experiment sets itself for every run.
pub(super) const OF_EXPERIMENT: [&str; 9] = [
    "record", "force", "format", "metrics", "grafana", "tui", "web", "quiet", "label",
];

/// Keys that say where the agents are.
const OF_AGENTS: [&str; 6] = ["agents", "processes", "hosts", "ssh", "listen", "keys"];

/// How often each cell is run.
const REPEAT: &str = "repeat";
/// What files of earlier versions call it.
pub(super) const REPETITIONS: &str = "repetitions";
const REPEAT_DEFAULT: u32 = 5;
/// Longest outage in a run of a second.
const OUTAGE_OF_SHORT: Duration = Duration::from_millis(200);

/// An experiment.
#[derive(Clone, Debug)]
pub(super) struct Experiment {
    pub(super) name: String,
    /// Runs of each cell, or starts of its server.
    pub(super) repetitions: u32,
    /// Runs after each start of a server; of several the first is kept and not used.
    pub(super) runs_per_start: u32,
    /// Cells that are there twice, and must not differ.
    pub(super) twins: usize,
    /// The generator's ceilings are measured first.
    pub(super) has_ceilings: bool,
    /// Only tries the file: see [`Experiment::shorten`].
    pub(super) is_short: bool,
    /// Every repetition has the cells as the file lists them, rather than at random.
    pub(super) is_listed: bool,
    /// Of the random order.
    pub(super) seed: u64,
    pub(super) cool_down: Duration,
    /// Flags of every run.
    pub(super) flags: Vec<Given>,
    /// The scenario of every run.
    pub(super) scenario: Option<PathBuf>,
    /// What is varied.
    pub(super) axes: Vec<Axis>,
    /// Of what is done to servers in mid-run.
    pub(super) timing: Timing,
    /// Around every run.
    pub(super) hooks: Hooks,
}

/// Something that is varied.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) levels: Vec<Level>,
    /// Its levels mean something to the user alone: runs carry them as labels.
    pub(super) is_label: bool,
}

/// One value of what is varied.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    pub(super) label: String,
    /// Further labels of its runs.
    pub(super) labels: Vec<(String, String)>,
    pub(super) flags: Vec<Given>,
    /// The server that is started for it.
    pub(super) server: Option<ServerCell>,
    /// What of a cluster is changed for it.
    pub(super) change: Option<Change>,
    /// What is between it and that.
    pub(super) topology: Option<Topology>,
    /// What is done to it in mid-run.
    pub(super) operation: Option<Operation>,
    pub(super) scenario: Option<PathBuf>,
    pub(super) hooks: Hooks,
}

impl Experiment {
    /// Leaves of it what tries the file before hours are spent on it: two starts or repetitions of
    /// the first and the last cell, with runs of a second.
    fn shorten(&mut self) {
        (self.repetitions, self.runs_per_start, self.twins) = (2, 1, 0);
        self.cool_down = Duration::ZERO;
        self.timing = Timing {
            at: Timing::default().at,
            outage: self.timing.outage.min(OUTAGE_OF_SHORT),
        };
    }

    /// How long one run takes at least, or all after a start, if its flags tell.
    pub(super) fn least_duration(&self) -> Option<Duration> {
        if self.is_short {
            return Some(Duration::from_secs(1));
        }
        let of = |name: &str| {
            let given = self.flags.iter().find(|given| given.name == name)?;
            let value = given.values.first()?;
            proto::time::parse_duration_or_seconds(value)
        };
        let warmup = of("warmup").unwrap_or_default();
        of("duration").map(|each| (each + warmup) * self.runs_per_start + self.cool_down)
    }
}

impl Experiment {
    /// Has all runs led with these flags.
    ///
    /// # Errors
    /// The file says itself where its agents are.
    pub(super) fn lead(&mut self, flags: Vec<Given>) -> Result<(), Failure> {
        let levels = self.axes.iter().flat_map(|axis| &axis.levels);
        let mut all = levels.flat_map(|level| &level.flags).chain(&self.flags);
        if let Some(given) = all.find(|given| OF_AGENTS.contains(&given.name.as_str())) {
            return Err(Failure::usage(
                format!("`{}` is decided by the fleet", given.name),
                "leave it out of the file; --agents N of `throng fleet run` says how many",
            ));
        }
        self.flags.extend(flags);
        Ok(())
    }
}

/// Reads the text of an experiment; `path` is where it came from.
pub(super) fn parse(path: &Path, text: &str) -> Result<Experiment, Failure> {
    let reader = Reader::new(path, text, Trust::Everything);
    let document = reader.parse()?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut parser = Parser {
        reader: &reader,
        path,
        experiment: Experiment {
            name: stem.into_owned(),
            repetitions: REPEAT_DEFAULT,
            runs_per_start: 1,
            twins: 0,
            has_ceilings: true,
            is_short: false,
            is_listed: false,
            seed: 1,
            cool_down: Duration::ZERO,
            flags: Vec::new(),
            scenario: None,
            axes: Vec::new(),
            timing: Timing::default(),
            hooks: Hooks::default(),
        },
    };
    parser.document(document.get_ref())?;
    if parser.experiment.is_short {
        parser.experiment.shorten();
    }
    Ok(parser.experiment)
}

type Key<'a> = Spanned<std::borrow::Cow<'a, str>>;
type Value<'a> = Spanned<DeValue<'a>>;

struct Parser<'a> {
    reader: &'a Reader<'a>,
    path: &'a Path,
    experiment: Experiment,
}

impl Parser<'_> {
    fn document(&mut self, document: &DeTable<'_>) -> Result<(), Failure> {
        for (key, value) in document {
            let at = value.span().start;
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("name", _) => self.experiment.name = self.one(key, value)?,
                // For readers of the file.
                ("about", _) => drop(self.one(key, value)?),
                (REPEAT | REPETITIONS, _) => {
                    if document.contains_key(REPEAT) && document.contains_key(REPETITIONS) {
                        let what = "`repetitions` is the former name of `repeat`";
                        return Err(self.reader.fault(at, what, "leave out `repetitions`"));
                    }
                    self.experiment.repetitions = self.repeat(key, value)?;
                }
                ("short", DeValue::Boolean(is_short)) => self.experiment.is_short = *is_short,
                ("seed", _) => self.experiment.seed = self.number(key, value)?,
                ("order", _) => self.experiment.is_listed = self.is_listed(key, value)?,
                ("cool-down", _) => self.experiment.cool_down = self.time(key, value)?,
                ("run", DeValue::Table(table)) => {
                    let level = self.level(table, &[])?;
                    self.experiment.flags = level.flags;
                    self.experiment.scenario = level.scenario;
                }
                ("matrix", DeValue::Table(table)) => self.matrix(table)?,
                ("lab", DeValue::Table(table)) => self.lab(table)?,
                ("server", DeValue::Array(tables)) => {
                    let mut levels = Vec::new();
                    for table in tables {
                        levels.extend(servers::levels(self.reader, table)?);
                    }
                    self.push_axis("server".to_owned(), levels, true, at)?;
                }
                (name @ ("servers" | "variants"), DeValue::Array(tables)) => {
                    self.labelled(name.trim_end_matches('s'), (at, tables))?;
                }
                ("hooks", DeValue::Table(table)) => {
                    let level = self.level(table, &OF_HOOKS)?;
                    if !level.flags.is_empty() {
                        let what = format!("`{}` is not a hook", level.flags[0].name);
                        let hint = format!("hooks are {}", OF_HOOKS.join(", "));
                        return Err(self.reader.fault(at, &what, &hint));
                    }
                    self.experiment.hooks = level.hooks;
                }
                (name @ ("run" | "matrix" | "hooks" | "lab"), other) => {
                    let what = format!("`{name}` is {}", kind(other));
                    return Err(self.reader.fault(at, &what, &format!("write [{name}]")));
                }
                (name @ ("server" | "servers" | "variants"), other) => {
                    let what = format!("`{name}` is {}", kind(other));
                    let hint = format!("write [[{name}]], once for each");
                    return Err(self.reader.fault(at, &what, &hint));
                }
                (name, _) => return Err(self.unknown(name, key.span().start)),
            }
        }
        Ok(())
    }

    fn repeat(&self, key: &Key<'_>, value: &Value<'_>) -> Result<u32, Failure> {
        match self.number(key, value)? {
            0 => {
                let what = format!("`{}` is 0", key.get_ref());
                Err(self
                    .reader
                    .fault(value.span().start, &what, "write 1 or more"))
            }
            given => Ok(given),
        }
    }

    /// `[lab]`: how often servers are started, and what is run then.
    fn lab(&mut self, table: &DeTable<'_>) -> Result<(), Failure> {
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "topology" => self.varied(key, value, topology)?,
                "operation" => self.varied(key, value, operation)?,
                "at" => self.experiment.timing.at = self.at(key, value)?,
                "outage" => self.experiment.timing.outage = self.time(key, value)?,
                "ceilings" => self.experiment.has_ceilings = self.is_true(key, value)?,
                _ => self.number_of_lab(key, value)?,
            }
        }
        Ok(())
    }

    fn number_of_lab(&mut self, key: &Key<'_>, value: &Value<'_>) -> Result<(), Failure> {
        let name = key.get_ref().as_ref();
        if !OF_LAB.contains(&name) {
            let what = format!("unknown key `{name}`");
            let hint = format!("keys of [lab] are {}", OF_LAB.join(", "));
            return Err(self.reader.fault(key.span().start, &what, &hint));
        }
        let number: u32 = self.number(key, value)?;
        match name {
            "aa" => self.experiment.twins = number as usize,
            _ if number == 0 => {
                let what = format!("`{name}` is 0");
                let at = value.span().start;
                return Err(self.reader.fault(at, &what, "write 1 or more"));
            }
            "starts" => self.experiment.repetitions = number,
            _ => self.experiment.runs_per_start = number,
        }
        Ok(())
    }

    /// One value, or a list of those to vary.
    fn varied(
        &mut self,
        key: &Key<'_>,
        value: &Value<'_>,
        level: fn(&str) -> Result<Level, Failure>,
    ) -> Result<(), Failure> {
        let (name, at) = (key.get_ref().as_ref(), value.span().start);
        let words: Option<Vec<String>> = match value.get_ref() {
            DeValue::Array(all) => all.iter().map(|one| scalar(one.get_ref())).collect(),
            one => scalar(one).map(|one| vec![one]),
        };
        let words = words.filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| {
            let what = format!("`{name}` has no values");
            self.reader
                .fault(at, &what, "write a value, or a list of values")
        })?;
        let level = |label: String| {
            let level = level(&label).map_err(|failure| self.reader.of(at, failure))?;
            Ok(Level { label, ..level })
        };
        let levels = words.into_iter().map(level);
        let levels = levels.collect::<Result<_, Failure>>()?;
        self.push_axis(name.to_owned(), levels, true, at)
    }

    fn is_true(&self, key: &Key<'_>, value: &Value<'_>) -> Result<bool, Failure> {
        match value.get_ref() {
            DeValue::Boolean(is_true) => Ok(*is_true),
            other => {
                let what = format!("`{}` is {}", key.get_ref(), kind(other));
                let at = value.span().start;
                Err(self.reader.fault(at, &what, "write true or false"))
            }
        }
    }

    fn at(&self, key: &Key<'_>, value: &Value<'_>) -> Result<At, Failure> {
        let text = self.one(key, value)?;
        At::parse(&text).ok_or_else(|| {
            let what = format!("`at`: `{text}` is not a time of a run");
            let hint = "write a share below 100%, as in \"40%\", or a time, as in \"4s\"";
            self.reader.fault(value.span().start, &what, hint)
        })
    }

    fn unknown(&self, name: &str, at: usize) -> Failure {
        let hint = match nearest(name, OF_TOP.into_iter()) {
            Some(nearest) => format!("do you mean `{nearest}`?"),
            None => {
                "flags of `throng run` belong under [run], what is varied under [matrix]".into()
            }
        };
        self.reader
            .fault(at, &format!("unknown key `{name}`"), &hint)
    }

    fn one(&self, key: &Key<'_>, value: &Value<'_>) -> Result<String, Failure> {
        scalar(value.get_ref()).ok_or_else(|| {
            let what = format!("`{}` is {}", key.get_ref(), kind(value.get_ref()));
            self.reader
                .fault(value.span().start, &what, "write one value")
        })
    }

    fn number<T: std::str::FromStr>(&self, key: &Key<'_>, value: &Value<'_>) -> Result<T, Failure> {
        let text = self.one(key, value)?;
        text.parse().map_err(|_| {
            let what = format!("`{}` is not a number: {text}", key.get_ref());
            self.reader
                .fault(value.span().start, &what, "write a whole number, 0 or more")
        })
    }

    fn time(&self, key: &Key<'_>, value: &Value<'_>) -> Result<Duration, Failure> {
        let text = self.one(key, value)?;
        ::responder::behaviour::parse_duration(&text).map_err(|error| {
            let what = format!("`{}`: {error}", key.get_ref());
            self.reader
                .fault(value.span().start, &what, "write a time such as \"10s\"")
        })
    }

    fn is_listed(&self, key: &Key<'_>, value: &Value<'_>) -> Result<bool, Failure> {
        match self.one(key, value)?.as_str() {
            "random" => Ok(false),
            "listed" => Ok(true),
            other => {
                let what = format!("no order: `{other}`");
                let hint = "write \"random\" or \"listed\"";
                Err(self.reader.fault(value.span().start, &what, hint))
            }
        }
    }

    /// The flags, scenario and hooks of a table; `own` are keys beside them that it may have.
    fn level(&self, table: &DeTable<'_>, own: &[&str]) -> Result<Level, Failure> {
        let mut level = Level::default();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            match name {
                _ if !own.contains(&name) && OF_HOOKS.contains(&name) => {
                    let what = format!("`{name}` is a hook");
                    let hint = "write it under [hooks], or in one of [[servers]] or [[variants]]";
                    return Err(self.reader.fault(key.span().start, &what, hint));
                }
                "label" if own.contains(&name) => level.label = self.one(key, value)?,
                "before" => level.hooks.before = self.commands(key, value)?,
                "after" => level.hooks.after = self.commands(key, value)?,
                "ready" => level.hooks.ready = self.commands(key, value)?,
                "hook-timeout" => level.hooks.timeout = Some(self.time(key, value)?),
                "scenario" => {
                    let named = self.one(key, value)?;
                    level.scenario = Some(beside(self.path, &named).into());
                }
                _ if OF_EXPERIMENT.contains(&name) => return Err(self.is_own(key)),
                _ => {
                    let further = ["scenario"].iter().chain(own).copied();
                    let further: Vec<&str> = further.collect();
                    level.flags.push(self.reader.flag(key, value, &further)?);
                }
            }
        }
        Ok(level)
    }

    fn is_own(&self, key: &Key<'_>) -> Failure {
        let what = format!("`{}` is set by the experiment itself", key.get_ref());
        let hint = "leave it out; labels come from [[servers]] and [[variants]]";
        self.reader.fault(key.span().start, &what, hint)
    }

    /// Shell commands: one, or a list.
    fn commands(&self, key: &Key<'_>, value: &Value<'_>) -> Result<Vec<String>, Failure> {
        let each: Option<Vec<String>> = match value.get_ref() {
            DeValue::Array(all) => all.iter().map(|one| scalar(one.get_ref())).collect(),
            one => scalar(one).map(|one| vec![one]),
        };
        each.ok_or_else(|| {
            let what = format!("`{}` is {}", key.get_ref(), kind(value.get_ref()));
            let hint = "write a command of the shell, or a list of them";
            self.reader.fault(value.span().start, &what, hint)
        })
    }

    /// Each key is varied: every combination of their values is a cell.
    fn matrix(&mut self, table: &DeTable<'_>) -> Result<(), Failure> {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let at = value.span().start;
            let hint = "write a list, such as [\"udp\", \"tcp\"]";
            let DeValue::Array(values) = value.get_ref() else {
                let what = format!("`{name}` is {}", kind(value.get_ref()));
                return Err(self.reader.fault(at, &what, hint));
            };
            if values.is_empty() {
                let what = format!("`{name}` has no values");
                return Err(self.reader.fault(at, &what, hint));
            }
            if OF_EXPERIMENT.contains(&name) {
                return Err(self.is_own(key));
            }
            let mut levels = Vec::new();
            for value in values {
                levels.push(self.level_of_matrix(key, value)?);
            }
            self.push_axis(name.to_owned(), levels, name == "scenario", at)?;
        }
        Ok(())
    }

    fn level_of_matrix(&self, key: &Key<'_>, value: &Value<'_>) -> Result<Level, Failure> {
        if key.get_ref() == "scenario" {
            let named = self.one(key, value)?;
            let stem = Path::new(&named).file_stem().unwrap_or_default();
            return Ok(Level {
                label: stem.to_string_lossy().into_owned(),
                scenario: Some(beside(self.path, &named).into()),
                ..Level::default()
            });
        }
        let flag = self.reader.flag(key, value, &["scenario"])?;
        Ok(Level {
            label: match flag.values.as_slice() {
                [] => "on".to_owned(),
                values => values.join(","),
            },
            flags: vec![flag],
            ..Level::default()
        })
    }

    /// `[[servers]]` or `[[variants]]`: values with a label, flags and hooks of their own.
    fn labelled(&mut self, name: &str, (at, tables): (usize, &[Value<'_>])) -> Result<(), Failure> {
        let Some(first) = tables.first() else {
            let what = format!("there is no {name}");
            let hint = format!("write [[{name}s]], once for each, or leave it out");
            return Err(self.reader.fault(at, &what, &hint));
        };
        let mut levels = Vec::new();
        let keys: Vec<&str> = OF_HOOKS.iter().copied().chain(["label"]).collect();
        for value in tables {
            let at = value.span().start;
            let DeValue::Table(table) = value.get_ref() else {
                let hint = format!("write [[{name}s]], once for each");
                return Err(self.reader.fault(at, "it is not a table", &hint));
            };
            let level = self.level(table, &keys)?;
            if level.label.is_empty() {
                let what = format!("this {name} has no label");
                let hint = "write label = \"...\": it names the rows of the report";
                return Err(self.reader.fault(at, &what, hint));
            }
            levels.push(level);
        }
        self.push_axis(name.to_owned(), levels, true, first.span().start)
    }

    fn push_axis(
        &mut self,
        name: String,
        levels: Vec<Level>,
        is_label: bool,
        at: usize,
    ) -> Result<(), Failure> {
        for (number, level) in levels.iter().enumerate() {
            if levels[..number]
                .iter()
                .any(|other| other.label == level.label)
            {
                let what = format!("`{}` occurs twice", level.label);
                let hint = "each value once; `repeat` says how often it is run";
                return Err(self.reader.fault(at, &what, hint));
            }
        }
        let axis = Axis {
            name,
            levels,
            is_label,
        };
        self.experiment.axes.push(axis);
        Ok(())
    }
}

/// What is between generator and server.
fn topology(word: &str) -> Result<Level, Failure> {
    Ok(Level {
        topology: Some(Topology::parse(word)?),
        ..Level::default()
    })
}

/// What is done in mid-run.
fn operation(word: &str) -> Result<Level, Failure> {
    let operation = Operation::parse(word);
    if operation.is_none() && word != NONE {
        let known = Operation::ALL.map(Operation::name).join(", ");
        let hint = format!("write {NONE}, or one of {known}");
        return Err(Failure::usage(
            format!("there is no operation `{word}`"),
            hint,
        ));
    }
    Ok(Level {
        operation,
        ..Level::default()
    })
}
