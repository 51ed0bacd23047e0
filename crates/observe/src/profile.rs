//! Profiles: for each product a closed list of series with meaning, unit and kind, and how the
//! source names them. A product is one file in `profiles`.

use std::collections::BTreeMap;

use measure::observation::{Observed, SeriesKind, ServerFacts};

use crate::members::MemberSum;
use crate::reading::{RawSample, Reading};

/// One product, or one kind of source.
#[derive(Debug)]
pub struct Profile {
    /// The name as it is typed.
    pub name: &'static str,
    /// The product as it is written; empty where the source is none.
    pub product: &'static str,
    /// How it is asked.
    pub access: Access,
    /// What to give behind `=`, for help and errors.
    pub place: &'static str,
    /// Its series; none if they are named by who asks.
    pub rows: &'static [Row],
    /// Where its version is.
    pub version: Origin,
    /// Where it says when it began.
    pub started: Origin,
    /// Names of its programs, as the kernel has them: at most 15 octets.
    pub programs: &'static [&'static str],
    /// What switches it on in the product's configuration, for the hint when nothing answers.
    pub set_up: &'static str,
}

/// How a source is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Files of /proc and /sys, of one program.
    Process,
    /// The same of a control group.
    Group,
    /// The same of the whole host.
    Host,
    /// Exposition over HTTP; the path where none is given.
    Exposition(&'static str),
    /// That of a kubelet, about one pod.
    Pod(&'static str),
    /// BIND's statistics channel.
    BindChannel,
    /// Unbound's remote control.
    UnboundControl,
    /// Knot DNS's control utility.
    KnotControl,
    /// The query API of a Prometheus, after the run.
    QueryApi,
}

/// Where a fact is in a reading.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// Nowhere.
    None,
    /// A text of that name.
    Text(&'static str),
    /// A label of a metric: name and label.
    Label(&'static str, &'static str),
    /// A value of that name.
    Value(&'static str),
}

/// One series of a profile.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name here: the same thing has the same name in all profiles.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Whether it only grows.
    pub kind: SeriesKind,
    /// What of the source is added up: `name`, `name{label="value"}`, or `prefix*`.
    pub from: &'static [&'static str],
    /// The label for whose every value there is a series of its own.
    pub each: Option<&'static str>,
    /// What one of the source is in `unit`.
    pub scale: f64,
    /// The source leaves it out until it is more than 0: absent, it is 0 if the source has anything
    /// whose name begins so. Empty: absent, it is missing.
    pub zero_beside: &'static str,
    /// What it means, one sentence without a full stop.
    pub meaning: &'static str,
}

impl Row {
    /// Something that is counted.
    pub const fn counter(
        name: &'static str,
        unit: &'static str,
        from: &'static [&'static str],
        meaning: &'static str,
    ) -> Row {
        Row {
            name,
            unit,
            kind: SeriesKind::Counter,
            from,
            each: None,
            scale: 1.0,
            zero_beside: "",
            meaning,
        }
    }

    /// Something that is what it is at an instant.
    pub const fn gauge(
        name: &'static str,
        unit: &'static str,
        from: &'static [&'static str],
        meaning: &'static str,
    ) -> Row {
        Row {
            kind: SeriesKind::Gauge,
            ..Row::counter(name, unit, from, meaning)
        }
    }

    /// One series for each value of a label.
    pub const fn each(self, label: &'static str) -> Row {
        Row {
            each: Some(label),
            ..self
        }
    }

    /// The source counts in other units.
    pub const fn times(self, scale: f64) -> Row {
        Row { scale, ..self }
    }

    /// Absent is 0 where the source has anything whose name begins with `prefix`.
    pub const fn or_zero(self, prefix: &'static str) -> Row {
        Row {
            zero_beside: prefix,
            ..self
        }
    }
}

/// Which samples: a name, or its beginning, and labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    name: String,
    is_prefix: bool,
    labels: Vec<(String, Wanted)>,
}

/// What a label has to be. One that a sample lacks is empty, as Prometheus has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// This.
    Equal(String),
    /// Anything else.
    NotEqual(String),
    /// Something that begins so.
    Beginning(String),
}

impl Wanted {
    fn is(&self, value: &str) -> bool {
        match self {
            Wanted::Equal(wanted) => value == wanted,
            Wanted::NotEqual(unwanted) => value != unwanted,
            Wanted::Beginning(wanted) => value.starts_with(wanted),
        }
    }
}

impl Selector {
    /// Reads `name{label="value",other!="value"}`.
    pub(crate) fn parse(text: &str) -> Result<Selector, String> {
        let wrong = || {
            format!(
                "`{text}` is not a series: expected a name, `name{{label=\"value\"}}` or `name*`"
            )
        };
        let (name, labels) = match text.split_once('{') {
            Some((name, rest)) => (name, rest.strip_suffix('}').ok_or_else(wrong)?),
            None => (text, ""),
        };
        let (name, is_prefix) = match name.strip_suffix('*') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_:.-".contains(c);
        if !name.chars().all(is_of_name) || (name.is_empty() && !is_prefix) {
            return Err(wrong());
        }
        let labels = labels.split(',').filter(|label| !label.is_empty());
        let labels = labels.map(|label| {
            let (name, value) = label.split_once('=').ok_or_else(wrong)?;
            let value = value.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
            let value = value.ok_or_else(wrong)?.to_owned();
            Ok(match name.strip_suffix('!') {
                Some(name) => (name.trim().to_owned(), Wanted::NotEqual(value)),
                None => (name.trim().to_owned(), Wanted::Equal(value)),
            })
        });
        Ok(Selector {
            name: name.to_owned(),
            is_prefix,
            labels: labels.collect::<Result<_, String>>()?,
        })
    }

    /// The same with something wanted of more labels.
    fn with(mut self, labels: &[(String, Wanted)]) -> Selector {
        self.labels.extend(labels.iter().cloned());
        self
    }

    /// True if samples of that name may be meant.
    pub(crate) fn names(&self, name: &str) -> bool {
        match self.is_prefix {
            true => name.starts_with(&self.name),
            false => name == self.name,
        }
    }

    /// True if that sample is meant.
    pub(crate) fn selects(&self, sample: &RawSample) -> bool {
        let has =
            |(name, wanted): &(String, Wanted)| wanted.is(sample.label(name).unwrap_or_default());
        self.names(&sample.name) && self.labels.iter().all(has)
    }
}

/// What is picked from a reading: the rows of a profile, or whatever fits an allow-list.
#[derive(Clone, Debug)]
pub(crate) struct Picker {
    rows: Vec<(&'static Row, Vec<Selector>)>,
    allowed: Vec<Selector>,
    /// Names that facts are taken from.
    others: Vec<&'static str>,
    /// Instants of the source's clock at the reading before, for those series that have one.
    taken_s: BTreeMap<String, f64>,
    /// The samples of each counter that is a sum.
    counters: BTreeMap<String, MemberSum<String>>,
}

impl Picker {
    /// What that profile wants of samples with these labels, and what is allowed beside it.
    pub(crate) fn new(
        profile: &Profile,
        labels: &[(String, Wanted)],
        allowed: Vec<Selector>,
    ) -> Picker {
        let compile = |row: &'static Row| {
            let selectors = row.from.iter().map(|text| {
                let selector = Selector::parse(text);
                let selector = selector.expect("profiles name series; a test reads them all");
                selector.with(labels)
            });
            (row, selectors.collect())
        };
        let mut others = Vec::new();
        for origin in [profile.version, profile.started] {
            if let Origin::Label(name, _) | Origin::Value(name) = origin {
                others.push(name);
            }
        }
        let beside = profile.rows.iter().map(|row| row.zero_beside);
        others.extend(beside.filter(|prefix| !prefix.is_empty()));
        Picker {
            rows: profile.rows.iter().map(compile).collect(),
            allowed,
            others,
            taken_s: BTreeMap::new(),
            counters: BTreeMap::new(),
        }
    }

    /// True if samples of that name are looked at.
    pub(crate) fn wants(&self, name: &str) -> bool {
        let mut of_rows = self.rows.iter().flat_map(|(_, selectors)| selectors);
        of_rows.any(|selector| selector.names(name))
            || self.allowed.iter().any(|selector| selector.names(name))
            || self.others.iter().any(|prefix| name.starts_with(prefix))
    }

    /// The values of one reading.
    pub(crate) fn pick(&mut self, reading: &Reading) -> Vec<Observed> {
        let mut values = Vec::new();
        let rows = std::mem::take(&mut self.rows);
        for (row, selectors) in &rows {
            self.pick_row(row, selectors, reading, &mut values);
        }
        self.rows = rows;
        for sample in &reading.samples {
            if self.allowed.iter().any(|selector| selector.selects(sample)) {
                let name = sample.full_name();
                let known = reading.kinds.get(&sample.name).copied();
                values.push(Observed {
                    is_stale: self.is_stale(&name, sample.taken_s),
                    unit: unit_of(&sample.name).to_owned(),
                    kind: known.unwrap_or_else(|| kind_of(&sample.name)),
                    value: sample.value,
                    name,
                });
            }
        }
        values
    }

    fn pick_row(
        &mut self,
        row: &Row,
        selectors: &[Selector],
        reading: &Reading,
        values: &mut Vec<Observed>,
    ) {
        let mut series: BTreeMap<String, (BTreeMap<String, f64>, Option<f64>)> = BTreeMap::new();
        let is_meant = |sample: &&RawSample| selectors.iter().any(|it| it.selects(sample));
        for sample in reading.samples.iter().filter(is_meant) {
            let name = match row.each {
                None => row.name.to_owned(),
                Some(label) => {
                    let value = sample.label(label).unwrap_or_default();
                    format!("{}{{{label}=\"{value}\"}}", row.name)
                }
            };
            let (members, taken_s) = series.entry(name).or_default();
            *members.entry(sample.full_name()).or_default() += sample.value * row.scale;
            // The latest of them is when the sum was taken.
            *taken_s = match (*taken_s, sample.taken_s) {
                (Some(earlier), Some(later)) => Some(earlier.max(later)),
                (known, other) => known.or(other),
            };
        }
        let beside = row.zero_beside;
        let is_beside = |sample: &RawSample| sample.name.starts_with(beside);
        let is_zero = !beside.is_empty() && row.each.is_none();
        if series.is_empty() && is_zero && reading.samples.iter().any(is_beside) {
            let none = BTreeMap::from([(String::new(), 0.0)]);
            series.insert(row.name.to_owned(), (none, None));
        }
        for (name, (members, taken_s)) in series {
            let value = self.sum(row, &name, members);
            values.push(Observed {
                is_stale: self.is_stale(&name, taken_s),
                unit: row.unit.to_owned(),
                kind: row.kind,
                value,
                name,
            });
        }
    }

    /// A series of one or several samples.
    fn sum(&mut self, row: &Row, name: &str, members: BTreeMap<String, f64>) -> f64 {
        let is_sum = row.kind == SeriesKind::Counter && members.values().all(|it| it.is_finite());
        match is_sum {
            true => self
                .counters
                .entry(name.to_owned())
                .or_default()
                .add(members),
            false => members.values().sum(),
        }
    }

    /// True if the source says when it took the value, and that is not after the one before.
    fn is_stale(&mut self, name: &str, taken_s: Option<f64>) -> bool {
        let Some(taken_s) = taken_s else {
            return false;
        };
        let before = self.taken_s.insert(name.to_owned(), taken_s);
        before.is_some_and(|before| taken_s <= before)
    }
}

/// The unit of a metric by the suffix of its name, as Prometheus wants it; none is `1`.
fn unit_of(name: &str) -> &'static str {
    const UNITS: [&str; 6] = ["seconds", "bytes", "ratio", "celsius", "volts", "info"];
    let name = name.trim_end_matches("_total").trim_end_matches("_sum");
    let mut units = UNITS.into_iter();
    units.find(|unit| name.ends_with(unit)).unwrap_or("1")
}

/// The kind of a metric without a type, from its name.
fn kind_of(name: &str) -> SeriesKind {
    let counts = ["_total", "_count", "_sum", "_bucket"];
    match counts.iter().any(|suffix| name.ends_with(suffix)) {
        true => SeriesKind::Counter,
        false => SeriesKind::Gauge,
    }
}

impl Profile {
    /// What the product says of itself in a reading.
    pub(crate) fn facts(&self, reading: &Reading) -> ServerFacts {
        ServerFacts {
            product: (!self.product.is_empty()).then(|| self.product.to_owned()),
            version: self.version.in_reading(reading),
            started: self.started.in_reading(reading),
            ..ServerFacts::default()
        }
    }
}

impl Origin {
    fn in_reading(self, reading: &Reading) -> Option<String> {
        match self {
            Origin::None => None,
            Origin::Text(name) => reading.texts.get(name).cloned(),
            Origin::Label(name, label) => {
                let mut of_name = reading.samples.iter().filter(|it| it.name == name);
                of_name.find_map(|sample| Some(sample.label(label)?.to_owned()))
            }
            Origin::Value(name) => reading.value(name).map(|value| value.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
