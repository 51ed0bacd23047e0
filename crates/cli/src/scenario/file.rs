//! A scenario file as it is written: tables of keys, each with its line.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{self, Keys};
use crate::args::Given;
use crate::failure::Failure;

/// Keys of `[[clients]]` beside the flags.
pub(crate) const OF_CLIENTS: [&str; 3] = ["name", "count", "weight"];
/// Keys of `[[events]]` beside the flags.
pub(crate) const OF_EVENTS: [&str; 6] = ["at", "name", "clients", "share", "reset", "leave"];
/// Keys of `[[targets]]`.
pub(crate) const OF_TARGETS: [&str; 2] = ["server", "weight"];
/// Tables at the top beside the flags.
pub(crate) const TABLES: [&str; 5] = ["clients", "targets", "events", "sweep", POPULATION];
/// The key for the number of clients over all groups: TOML has no room for a second `clients`.
pub(crate) const POPULATION: &str = "population";

/// One table: its flags, its own keys, and where it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// The flags in it.
    pub(crate) flags: Vec<Given>,
    own: Vec<(String, String)>,
    /// Line and table, such as `line 12, [[clients]]`.
    pub(crate) place: String,
}

impl Table {
    /// The text of one of its own keys.
    pub(crate) fn own(&self, key: &str) -> Option<&str> {
        let found = self.own.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }

    /// A fault of this table.
    pub(crate) fn fault(&self, what: impl std::fmt::Display, hint: &str) -> Failure {
        Failure::usage(format!("{}: {what}", self.place), hint)
    }
}

/// A scenario file.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScenarioFile {
    /// What holds for all groups, unless they say otherwise.
    pub(crate) top: Table,
    pub(crate) clients: Vec<Table>,
    pub(crate) targets: Vec<Table>,
    pub(crate) events: Vec<Table>,
    /// What is varied from run to run.
    pub(crate) sweep: Option<Table>,
}

impl ScenarioFile {
    /// The scenario that flags make by themselves.
    pub(crate) fn of_flags(flags: &[Given]) -> Self {
        ScenarioFile {
            top: Table {
                flags: flags.to_vec(),
                place: "the flags".to_owned(),
                ..Table::default()
            },
            ..ScenarioFile::default()
        }
    }
}

/// Reads the text of a scenario; `path` is where it came from.
pub(crate) fn parse(path: &Path, text: &str, trust: Trust) -> Result<ScenarioFile, Failure> {
    let reader = Reader::new(path, text, trust);
    reader.document(reader.parse()?.get_ref())
}

/// Whether a file may start programs, write files and consent to public targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// A scenario describes a load, and is often somebody else's.
    Load,
    /// An experiment, which has commands of the shell in it; or the user says so.
    Everything,
}

/// Reads a file whose keys are flags of `throng run`, and says where in it a fault is.
pub(crate) struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    keys: Keys,
    trust: Trust,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(path: &'a Path, text: &'a str, trust: Trust) -> Self {
        Reader {
            path,
            text,
            trust,
            keys: Keys::new(),
        }
    }

    /// The text as TOML.
    pub(crate) fn parse(&self) -> Result<Spanned<DeTable<'a>>, Failure> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.fault(at, error.message(), "see https://toml.io for the syntax")
        })
    }

    fn document(&self, document: &DeTable<'_>) -> Result<ScenarioFile, Failure> {
        let mut file = ScenarioFile {
            top: Table {
                place: self.path.display().to_string(),
                ..Table::default()
            },
            ..ScenarioFile::default()
        };
        for (key, value) in document {
            let name = key.get_ref().as_ref();
            match (name, value.get_ref()) {
                // `clients = 1000` is a flag, `[[clients]]` a group.
                ("clients", DeValue::Array(groups)) => {
                    file.clients = self.tables("clients", groups, &OF_CLIENTS)?;
                }
                ("targets", DeValue::Array(targets)) => {
                    file.targets = self.tables("targets", targets, &OF_TARGETS)?;
                }
                ("events", DeValue::Array(events)) => {
                    file.events = self.tables("events", events, &OF_EVENTS)?;
                }
                ("sweep", DeValue::Table(sweep)) => {
                    let place = self.place(key.span().start, "[sweep]");
                    file.sweep = Some(self.sweep(sweep, place)?);
                }
                (POPULATION, number) => {
                    let count = scalar(number).ok_or_else(|| {
                        let what = format!("`{POPULATION}` is {}", kind(number));
                        self.fault(value.span().start, &what, "write a number of clients")
                    })?;
                    file.top.flags.push(Given {
                        name: "clients".to_owned(),
                        values: vec![count],
                    });
                }
                ("targets" | "events", _) => {
                    let hint = format!("write [[{name}]], once for each");
                    return Err(self.fault(key.span().start, "it is not a list of tables", &hint));
                }
                _ => file.top.flags.push(self.flag(key, value, &TABLES)?),
            }
        }
        Ok(file)
    }

    fn tables(
        &self,
        name: &str,
        tables: &[Spanned<DeValue<'_>>],
        own: &[&str],
    ) -> Result<Vec<Table>, Failure> {
        let table = |value: &Spanned<DeValue<'_>>| {
            let at = value.span().start;
            let DeValue::Table(table) = value.get_ref() else {
                let hint = format!("write [[{name}]], once for each");
                return Err(self.fault(at, "it is not a table", &hint));
            };
            self.table(table, self.place(at, &format!("[[{name}]]")), own)
        };
        tables.iter().map(table).collect()
    }

    fn table(&self, from: &DeTable<'_>, place: String, own: &[&str]) -> Result<Table, Failure> {
        let mut table = Table {
            place,
            ..Table::default()
        };
        let is_target = own == OF_TARGETS;
        for (key, value) in from {
            let name = key.get_ref().as_ref();
            if own.contains(&name) {
                let text = scalar(value.get_ref()).ok_or_else(|| {
                    let what = format!("`{name}` is not a text, number or true");
                    self.fault(value.span().start, &what, "write one value")
                })?;
                table.own.push((name.to_owned(), text));
                continue;
            }
            let flag = self.flag(key, value, own)?;
            let known = self.keys.flag(name);
            if is_target || known.is_some_and(keys::is_of_run) {
                let what = format!("`{name}` is not of {}", last_word(&table.place));
                let hint = "it belongs to the whole run: move it to the top of the file";
                return Err(self.fault(key.span().start, &what, hint));
            }
            table.flags.push(flag);
        }
        Ok(table)
    }

    fn sweep(&self, from: &DeTable<'_>, place: String) -> Result<Table, Failure> {
        let mut table = Table {
            place,
            ..Table::default()
        };
        for (key, value) in from {
            table.flags.push(self.flag(key, value, &[])?);
        }
        Ok(table)
    }

    /// A flag of `throng run`; `further` are keys that are known here too, for suggestions.
    pub(crate) fn flag(
        &self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        further: &[&str],
    ) -> Result<Given, Failure> {
        let name = key.get_ref().as_ref();
        if name == keys::TRUST {
            let hint = "give --trust on the command line: no file can trust itself";
            return Err(self.fault(key.span().start, "`trust` is not a key", hint));
        }
        let Some(flag) = self.keys.flag(name) else {
            let hint = match self.keys.nearest(name, further) {
                Some(nearest) => format!("do you mean `{nearest}`?"),
                None => "keys are the flags of `throng run` without their dashes".to_owned(),
            };
            let what = format!("unknown key `{name}`");
            return Err(self.fault(key.span().start, &what, &hint));
        };
        self.check_trust(key, flag)?;
        let at = value.span().start;
        let values = match value.get_ref() {
            DeValue::Boolean(true) if keys::is_switch(flag) || keys::has_optional_value(flag) => {
                Vec::new()
            }
            _ if keys::is_switch(flag) => {
                let what = format!("`{name}` is {}", kind(value.get_ref()));
                return Err(self.fault(at, &what, "write true, or leave it out"));
            }
            DeValue::Array(all) => {
                let each = all.iter().map(|value| scalar(value.get_ref()));
                each.collect::<Option<Vec<String>>>().ok_or_else(|| {
                    let what = format!("`{name}` is a list of something else than values");
                    self.fault(at, &what, "write texts and numbers")
                })?
            }
            one => vec![scalar(one).ok_or_else(|| {
                let what = format!("`{name}` is {}", kind(one));
                self.fault(at, &what, "write a text or a number")
            })?],
        };
        let in_place = |text: &String| match keys::is_path(flag) {
            true => keys::beside(self.path, text),
            false => text.clone(),
        };
        Ok(Given {
            name: name.to_owned(),
            values: values.iter().map(in_place).collect(),
        })
    }

    /// Refuses a key that a scenario may not have.
    fn check_trust(
        &self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        flag: &clap::Arg,
    ) -> Result<(), Failure> {
        match (self.trust, keys::reserved_for_user(flag)) {
            (Trust::Load, Some(does)) => {
                let name = key.get_ref();
                let what = format!("`{name}` {does}, which a scenario may not decide");
                let hint = format!(
                    "give --{name} on the command line, or `--trust {}` to let this file decide \
                     (in an experiment: write `{name}` in its own file)",
                    self.path.display()
                );
                Err(self.fault(key.span().start, &what, &hint))
            }
            _ => Ok(()),
        }
    }

    fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().iter().take(at);
        1 + before.filter(|octet| **octet == b'\n').count()
    }

    /// The line of octet `at`, with the table there.
    pub(crate) fn place(&self, at: usize, table: &str) -> String {
        format!("{}, line {}, {table}", self.path.display(), self.line(at))
    }

    /// File and line of octet `at`.
    pub(crate) fn line_of(&self, at: usize) -> String {
        format!("{}, line {}", self.path.display(), self.line(at))
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        self.path
    }

    /// The failure, and where in the file its cause is.
    pub(crate) fn of(&self, at: usize, failure: Failure) -> Failure {
        failure.of(&self.line_of(at))
    }

    /// A fault at octet `at`.
    pub(crate) fn fault(&self, at: usize, what: &str, hint: &str) -> Failure {
        Failure::usage(format!("{}: {what}", self.line_of(at)), hint)
    }
}

fn last_word(place: &str) -> &str {
    place.rsplit(' ').next().unwrap_or(place)
}

/// One value as it would be written on the command line.
pub(crate) fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.as_ref().to_owned()),
        DeValue::Integer(number) => Some(number.as_str().replace('_', "")),
        DeValue::Float(number) => Some(number.as_str().replace('_', "")),
        DeValue::Boolean(value) => Some(value.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// What it is, in words for a fault.
pub(crate) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(true) => "true",
        DeValue::Boolean(false) => "false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
