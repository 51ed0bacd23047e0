//! Where defaults come from: the user's file, the working directory's file, and variables.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, CommandFactory};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::commands::{Leaf, Tree, names};
use crate::args::Arguments;
use crate::failure::Failure;
use crate::habits;
use crate::scenario::keys::{has_optional_value, is_list, is_switch};
use crate::scenario::{Reader, Trust, kind, nearest, scalar};
use crate::streams;

/// The name of both files.
pub(super) const FILE: &str = "throng.toml";
/// Names one file in the place of both, or `none`.
const CONFIG: &str = "THRONG_CONFIG";
/// The table for all commands.
const ALL: &str = "all";
/// Present in the hooks of an experiment, whose variables say what is varied.
const IN_HOOK: &str = "THRONG_EXPERIMENT";
/// Variables that mean something else: `lab up` and Kubernetes set them, and `throng dnsperf` reads
/// the last one.
const RESERVED: [&str; 4] = [CONFIG, "THRONG_NAMES", "THRONG_ZONE", "THRONG_ALLOW_PUBLIC"];
/// How the variables of flags begin.
const VARIABLE: &str = "THRONG_";
/// The longest file that is read.
const OCTETS_MAX: u64 = 1 << 20;

/// Whose a default is; the later ones win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    User,
    /// The working directory's.
    Folder,
    Variable,
}

/// Where a default comes from, and how narrow its table is: the greater wins.
pub(super) type Rank = (Source, usize);

/// One default as it is written.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// The command; with fewer words than one has, for all of them that have the flag.
    pub(super) path: Vec<String>,
    pub(super) flag: String,
    value: Value,
    pub(super) source: Source,
    /// File and line, or variable.
    pub(super) origin: String,
}

#[derive(Clone, Debug)]
enum Value {
    Boolean(bool),
    One(String),
    Many(Vec<String>),
    /// Of a variable, which has no types.
    Untyped(String),
}

/// Files that were looked for.
#[derive(Debug)]
pub(super) struct Sources {
    pub(super) files: Vec<Found>,
    variables: Vec<(String, String)>,
}

/// A file that was looked for.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    source: Source,
    pub(super) is_there: bool,
}

impl Found {
    fn new(path: PathBuf, source: Source) -> Self {
        Found {
            is_there: path.exists(),
            path,
            source,
        }
    }
}

impl Sources {
    /// Looks for files and variables.
    pub(super) fn find() -> Self {
        Sources {
            files: files(),
            variables: variables(),
        }
    }

    pub(super) fn are_empty(&self) -> bool {
        self.variables.is_empty() && !self.files.iter().any(|file| file.is_there)
    }

    /// All settings, the later ones before the earlier.
    ///
    /// # Errors
    /// A file cannot be read or understood.
    pub(super) fn read(&self, tree: &Tree<'_>) -> Result<Vec<Setting>, Failure> {
        let mut settings = Vec::new();
        for file in self.files.iter().filter(|file| file.is_there) {
            let text = text(&file.path)?;
            settings.extend(parse(&file.path, &text, file.source, tree)?);
        }
        settings.extend(self.variables.iter().map(|(flag, text)| Setting {
            path: Vec::new(),
            flag: flag.clone(),
            value: Value::Untyped(text.clone()),
            source: Source::Variable,
            origin: variable_of(flag),
        }));
        Ok(settings)
    }
}

fn files() -> Vec<Found> {
    let variable = |name: &str| streams::variable(name).filter(|value| !value.is_empty());
    match variable(CONFIG) {
        Some(path) if path == "none" => return Vec::new(),
        // The user has named it: that it is missing is an error.
        Some(path) => {
            return vec![Found {
                is_there: true,
                ..Found::new(path.into(), Source::User)
            }];
        }
        None => {}
    }
    // The specification of XDG has relative paths ignored.
    let folder = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let folder = folder.filter(|path| path.is_absolute());
    let folder = folder.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")));
    let user = folder.map(|folder| Found::new(folder.join("throng").join(FILE), Source::User));
    let here = Found::new(FILE.into(), Source::Folder);
    let real = |found: &Found| found.path.canonicalize().ok();
    let is_users = (user.as_ref()).is_some_and(|user| user.is_there && real(user) == real(&here));
    user.into_iter()
        .chain((!is_users).then_some(here))
        .collect()
}

/// The variables that are flags, each with the flag.
fn variables() -> Vec<(String, String)> {
    let named: Vec<String> = streams::variables_like(VARIABLE).collect();
    let is_flag = |name: &&String| !RESERVED.contains(&name.as_str());
    if named.iter().any(|name| name == IN_HOOK) || !named.iter().any(|name| is_flag(&name)) {
        return Vec::new();
    }
    let all = Arguments::command();
    let tree = Tree::new(&all);
    let of_flag = |name: &String| {
        let flag = name
            .strip_prefix(VARIABLE)?
            .to_lowercase()
            .replace('_', "-");
        let value = streams::variable(name).filter(|value| !value.is_empty())?;
        let is_known = variable_of(&flag) == *name && tree.has(&flag);
        is_known.then(|| (flag, value.to_string_lossy().into_owned()))
    };
    named.iter().filter(is_flag).filter_map(of_flag).collect()
}

/// The variable of a flag.
fn variable_of(flag: &str) -> String {
    format!("{VARIABLE}{}", flag.to_uppercase().replace('-', "_"))
}

fn text(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let cure = format!("correct the file or its name, or set {CONFIG}=none to read no defaults");
    let read = || -> std::io::Result<Option<String>> {
        let about = fs::metadata(path)?;
        match about.is_file() && about.len() <= OCTETS_MAX {
            true => fs::read_to_string(path).map(Some),
            false => Ok(None),
        }
    };
    match read() {
        Ok(Some(text)) => Ok(text),
        Ok(None) => {
            let what = format!("the defaults {shown}: not a regular file of at most 1 MiB");
            Err(Failure::usage(what, cure))
        }
        Err(error) => {
            let what = format!("cannot read the defaults {shown}: {error}");
            Err(Failure::usage(what, cure))
        }
    }
}

/// The settings of a file.
pub(super) fn parse(
    path: &Path,
    text: &str,
    source: Source,
    tree: &Tree<'_>,
) -> Result<Vec<Setting>, Failure> {
    let mut file = File {
        reader: Reader::new(path, text, Trust::Everything),
        tree,
        source,
        settings: Vec::new(),
    };
    let document = file.reader.parse()?;
    for (key, value) in document.get_ref() {
        let name = key.get_ref().as_ref();
        let DeValue::Table(table) = value.get_ref() else {
            let what = format!("`{name}` is outside of a table");
            let hint = "write it below [all], or below a command such as [run]";
            return Err(file.reader.fault(key.span().start, &what, hint));
        };
        let path = match name {
            ALL => Vec::new(),
            name => file.command(key, &[name.to_owned()])?,
        };
        file.table(&path, table)?;
    }
    Ok(file.settings)
}

type Key<'a> = Spanned<std::borrow::Cow<'a, str>>;

struct File<'a> {
    reader: Reader<'a>,
    tree: &'a Tree<'a>,
    source: Source,
    settings: Vec<Setting>,
}

impl File<'_> {
    /// Checks that there is such a command.
    fn command(&self, key: &Key<'_>, path: &[String]) -> Result<Vec<String>, Failure> {
        if self.tree.below(path).next().is_some() {
            return Ok(path.to_vec());
        }
        let (last, parent) = path.split_last().expect("it ends with the key");
        let siblings = self.tree.below(parent).filter_map(|leaf| {
            let name = leaf.path.get(parent.len());
            name.copied()
        });
        let hint = match nearest(last, siblings.chain([ALL])) {
            Some(nearest) => format!("do you mean [{nearest}]?"),
            None => "tables are [all], and commands such as [run] or [experiment.run]".to_owned(),
        };
        let what = format!("[{}] is not a command with defaults", path.join("."));
        Err(self.reader.fault(key.span().start, &what, &hint))
    }

    fn table(&mut self, path: &[String], table: &DeTable<'_>) -> Result<(), Failure> {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let setting = match value.get_ref() {
                DeValue::Table(inner) if !path.is_empty() && self.flag(path, name).is_none() => {
                    let path: Vec<String> = path.iter().cloned().chain([name.to_owned()]).collect();
                    let path = self.command(key, &path)?;
                    self.table(&path, inner)?;
                    continue;
                }
                _ => self.setting(path, key, value)?,
            };
            self.settings.push(setting);
        }
        Ok(())
    }

    /// The flag in the first command that has it.
    fn flag(&self, path: &[String], name: &str) -> Option<&Arg> {
        self.tree.below(path).find_map(|leaf| leaf.flag(name))
    }

    fn setting(
        &self,
        path: &[String],
        key: &Key<'_>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Setting, Failure> {
        let flag = key.get_ref().as_ref();
        if self.flag(path, flag).is_none() {
            let what = match path {
                [] => format!("no command has a flag `{flag}`"),
                path => format!("`throng {}` has no flag `{flag}`", path.join(" ")),
            };
            return Err((self.reader).fault(key.span().start, &what, &self.hint(path, flag)));
        }
        let at = value.span().start;
        let setting = Setting {
            path: path.to_vec(),
            flag: flag.to_owned(),
            value: read_value(value.get_ref()).ok_or_else(|| {
                let what = format!("`{flag}` is {}", kind(value.get_ref()));
                let hint = "write a text, a number, true, false, or a list of texts and numbers";
                self.reader.fault(at, &what, hint)
            })?,
            source: self.source,
            origin: self.reader.line_of(key.span().start),
        };
        let flags = (self.tree.below(path)).filter_map(|leaf| leaf.flag(flag));
        let mut read = flags.map(|flag| setting.values(flag));
        match read.next() {
            Some(Err((what, hint))) if read.all(|it| it.is_err()) => {
                Err(self.reader.fault(at, &format!("`{flag}` {what}"), hint))
            }
            _ => Ok(setting),
        }
    }

    /// What is meant by a flag that there is not.
    fn hint(&self, path: &[String], flag: &str) -> String {
        let word = format!("--{flag}");
        let mut leaves = self.tree.below(path);
        if let Some(cure) = leaves.find_map(|leaf| habits::flag(leaf.command(), &word)) {
            return cure;
        }
        let flags = self.tree.below(path).flat_map(|leaf| leaf.flags());
        match nearest(flag, flags.filter_map(Arg::get_long)) {
            Some(nearest) => format!("do you mean `{nearest}`?"),
            None => "keys are flags without their dashes".to_owned(),
        }
    }
}

fn read_value(value: &DeValue<'_>) -> Option<Value> {
    match value {
        DeValue::Boolean(value) => Some(Value::Boolean(*value)),
        DeValue::Array(all) => {
            let each = all.iter().map(|value| scalar(value.get_ref()));
            each.collect::<Option<Vec<String>>>().map(Value::Many)
        }
        one => scalar(one).map(Value::One),
    }
}

impl Setting {
    /// The values that the flag is given, without any if it is a switch; none if it is not given.
    ///
    /// # Errors
    /// The value is of another kind: what it is, and the cure.
    pub(super) fn values(&self, flag: &Arg) -> Result<Option<Vec<String>>, (String, &'static str)> {
        match &self.value {
            Value::Boolean(false) => Ok(None),
            Value::Boolean(true) if is_switch(flag) || has_optional_value(flag) => {
                Ok(Some(Vec::new()))
            }
            Value::Boolean(true) => Err(("is true".to_owned(), "write its value")),
            Value::Untyped(text) if is_switch(flag) => match text.to_lowercase().as_str() {
                "1" | "true" | "yes" | "on" => Ok(Some(Vec::new())),
                "0" | "false" | "no" | "off" => Ok(None),
                _ => Err((format!("is `{text}`"), "write 1 or 0")),
            },
            _ if is_switch(flag) => Err(("has a value".to_owned(), "write true or false")),
            Value::Many(values) if is_list(flag) => {
                Ok(Some(values.clone()).filter(|values| !values.is_empty()))
            }
            Value::Many(_) => Err((
                "is a list".to_owned(),
                "write one value: the flag is not repeated",
            )),
            Value::One(text) | Value::Untyped(text) => Ok(Some(vec![text.clone()])),
        }
    }

    /// True if it is meant for several commands, which need not all understand it.
    pub(super) fn is_broad(&self, leaf: &Leaf<'_>) -> bool {
        self.path.len() < leaf.path.len()
    }

    /// True if it is for this flag of a command.
    pub(super) fn is_of(&self, tree: &Tree<'_>, leaf: &Leaf<'_>, flag: &Arg) -> bool {
        // An alias may be the name of another flag elsewhere.
        let is_alias = || {
            let is_named_elsewhere = self.is_broad(leaf) && tree.has_named(&self.flag);
            names(flag).any(|name| name == self.flag) && !is_named_elsewhere
        };
        leaf.is_below(&self.path) && (flag.get_long() == Some(&self.flag) || is_alias())
    }

    pub(super) fn rank(&self) -> Rank {
        (self.source, self.path.len())
    }
}
