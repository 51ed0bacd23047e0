//! What others have published, held against an experiment: which statements hold here, which do
//! not, and which cannot be judged.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use measure::condition::{Condition, Criterion, Holding, Holds};
use measure::statistics::Nested;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ceilings::Ceilings;
use super::cells::{Turn, is_of_twin, words};
use super::results::{LEVEL, Results, Runs};
use crate::args::experiment::ClaimsFormat;
use crate::failure::Failure;
use crate::inputs;
use crate::scenario::{Reader, Trust, kind, scalar};

/// Keys of a claim.
const OF_CLAIM: [&str; 5] = ["says", "cell", "against", "holds-if", "cannot"];

type Levels = BTreeMap<String, String>;

/// What somebody has published.
struct Claim {
    says: String,
    test: Test,
    /// Where it is in its file.
    at: usize,
}

/// How it is judged.
enum Test {
    /// By conditions on a cell, or on its change from another one.
    Conditions {
        cell: Levels,
        against: Option<Levels>,
        conditions: Vec<Condition>,
    },
    /// Not at all, for this reason.
    Cannot(String),
}

/// A claim that has been judged.
struct Judged {
    says: String,
    holds: Holds,
    /// What was found in which cells, or why it is inconclusive.
    found: String,
}

/// The claims in a file, judged by the records in a folder.
pub(super) fn text(folder: &Path, file: &Path, format: ClaimsFormat) -> Result<String, Failure> {
    let text = inputs::text(file).map_err(|error| {
        Failure::usage(
            format!("cannot read {}: {error}", file.display()),
            "give the file of claims, such as experiments/northflank-vcpu/claims.toml",
        )
    })?;
    let results = Results::read(folder)?;
    let cells = results.cells()?;
    let reader = Reader::new(file, &text, Trust::Load);
    let document = reader.parse()?;
    let (source, claims) = Parser { reader: &reader }.document(document.get_ref())?;
    let judge = Judge {
        reader: &reader,
        results: &results,
        cells: &cells,
        ceilings: Ceilings::read(folder, &cells)?,
    };
    let judged: Vec<Judged> = claims
        .into_iter()
        .map(|claim| judge.claim(claim))
        .collect::<Result<_, _>>()?;
    Ok(match format {
        ClaimsFormat::Text => as_text(&source, &judged),
        ClaimsFormat::Markdown => as_markdown(&source, &judged),
    })
}

struct Parser<'a> {
    reader: &'a Reader<'a>,
}

impl Parser<'_> {
    /// Where the claims are from, and the claims.
    fn document(&self, document: &DeTable<'_>) -> Result<(String, Vec<Claim>), Failure> {
        let mut source = String::new();
        let mut claims = Vec::new();
        for (key, value) in document {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("source", DeValue::String(text)) => text.as_ref().clone_into(&mut source),
                ("claim", DeValue::Array(tables)) => {
                    let each = tables.iter().map(|table| self.claim(table));
                    claims = each.collect::<Result<_, _>>()?;
                }
                (name, _) => {
                    let hint = "a file of claims has `source`, a text, and [[claim]] tables";
                    let what = format!("`{name}` does not belong here");
                    return Err(self.reader.fault(key.span().start, &what, hint));
                }
            }
        }
        match source.is_empty() || claims.is_empty() {
            true => Err(self.reader.fault(
                0,
                "no claims of a source",
                "write source = \"author, title, date\", and a [[claim]] for each statement",
            )),
            false => Ok((source, claims)),
        }
    }

    fn claim(&self, table: &Spanned<DeValue<'_>>) -> Result<Claim, Failure> {
        let at = table.span().start;
        let fault = |what: &str, hint: &str| self.reader.fault(at, what, hint);
        let DeValue::Table(table) = table.get_ref() else {
            return Err(fault("it is not a table", "write [[claim]], once for each"));
        };
        for key in table.keys() {
            if !OF_CLAIM.contains(&key.get_ref().as_ref()) {
                let what = format!("unknown key `{}`", key.get_ref());
                let hint = format!("a claim has {}", OF_CLAIM.join(", "));
                return Err(self.reader.fault(key.span().start, &what, &hint));
            }
        }
        let text = |name: &str| table.get(name).and_then(|value| scalar(value.get_ref()));
        let says = text("says");
        let says = says.ok_or_else(|| fault("a claim without words", "write says = \"...\""))?;
        let levels = |name: &str| table.get(name).map(|value| self.levels(value)).transpose();
        let test = match (text("cannot"), table.get("holds-if")) {
            (Some(reason), None) => Test::Cannot(reason),
            (None, Some(conditions)) => Test::Conditions {
                cell: levels("cell")?.unwrap_or_default(),
                against: levels("against")?,
                conditions: self.conditions(conditions)?,
            },
            _ => {
                return Err(fault(
                    "a claim is judged in one way",
                    "write holds-if = [\"qps > +10%\"], or cannot = \"why it is inconclusive\"",
                ));
            }
        };
        Ok(Claim { says, test, at })
    }

    /// A cell by what is varied, or by some of it.
    fn levels(&self, value: &Spanned<DeValue<'_>>) -> Result<Levels, Failure> {
        let hint = "write what is varied with its value, as in { transport = \"tcp\" }";
        let fault = |value: &Spanned<DeValue<'_>>| {
            let what = format!("this is {}", kind(value.get_ref()));
            self.reader.fault(value.span().start, &what, hint)
        };
        let DeValue::Table(table) = value.get_ref() else {
            return Err(fault(value));
        };
        let level = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let text = scalar(value.get_ref()).ok_or_else(|| fault(value))?;
            Ok((String::from(AsRef::<str>::as_ref(name.get_ref())), text))
        };
        table.iter().map(level).collect()
    }

    fn conditions(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<Condition>, Failure> {
        let one = std::slice::from_ref(value);
        let all = match value.get_ref() {
            DeValue::Array(all) => all.iter().as_slice(),
            _ => one,
        };
        let condition = |value: &Spanned<DeValue<'_>>| {
            let at = value.span().start;
            let text = scalar(value.get_ref()).unwrap_or_default();
            let condition = Condition::require(&text)
                .map_err(|error| self.reader.fault(at, &error.what, &error.hint))?;
            match &condition.part {
                Some(part) => {
                    let what = format!("`{text}`: claims are about whole runs");
                    let hint = format!("leave out [{part}]");
                    Err(self.reader.fault(at, &what, &hint))
                }
                None => Ok(condition),
            }
        };
        all.iter().map(condition).collect()
    }
}

/// A cell that a claim is about.
struct Cell<'a> {
    /// Its first turn.
    turn: &'a Turn,
    runs: Runs,
}

impl Cell<'_> {
    fn name(&self) -> String {
        words(&self.turn.levels)
    }

    /// What a condition is about, at each start.
    fn nested(&self, condition: &Condition) -> Option<Nested> {
        match condition.criterion {
            Criterion::Bounded { metric, .. } => self.runs.values(metric),
            Criterion::Slower(_) => None,
        }
    }

    /// Where it has nothing that a condition is about.
    fn not_measured(&self, condition: &Condition) -> Holding {
        let why = self.runs.left_out().all();
        let why = why.unwrap_or_else(|| "not measured".to_owned());
        Holding {
            holds: Holds::CannotTell,
            found: format!("{}: {why}", condition.text),
            starts_needed: None,
        }
    }
}

fn of_condition(condition: &Condition, cell: &Cell<'_>, against: Option<&Cell<'_>>) -> Holding {
    let Some(values) = cell.nested(condition) else {
        return cell.not_measured(condition);
    };
    match (against, against.and_then(|it| it.nested(condition))) {
        (Some(against), None) => against.not_measured(condition),
        (_, base) => (condition.criterion).of_starts(&values, base.as_ref(), LEVEL),
    }
}

struct Judge<'a> {
    reader: &'a Reader<'a>,
    results: &'a Results<'a>,
    cells: &'a [Vec<Turn>],
    ceilings: Ceilings,
}

impl Judge<'_> {
    fn claim(&self, claim: Claim) -> Result<Judged, Failure> {
        let (holds, found) = match &claim.test {
            Test::Cannot(reason) => (Holds::CannotTell, reason.clone()),
            Test::Conditions {
                cell,
                against,
                conditions,
            } => {
                let cell = self.cell(claim.at, cell)?;
                let against = against.as_ref().map(|it| self.cell(claim.at, it));
                self.conditions(conditions, &cell, against.transpose()?.as_ref())
            }
        };
        Ok(Judged {
            says: claim.says,
            holds,
            found,
        })
    }

    /// A claim holds if all of its conditions do, and does not if one of them does not.
    fn conditions(
        &self,
        conditions: &[Condition],
        cell: &Cell<'_>,
        against: Option<&Cell<'_>>,
    ) -> (Holds, String) {
        let mut all = Holds::Yes;
        let mut found: Vec<String> = Vec::new();
        let mut starts_needed = None;
        for condition in conditions {
            let holding = of_condition(condition, cell, against);
            all = match (all, holding.holds) {
                (Holds::No, _) | (_, Holds::No) => Holds::No,
                (Holds::Yes, Holds::Yes) => Holds::Yes,
                _ => Holds::CannotTell,
            };
            starts_needed = starts_needed.max(holding.starts_needed);
            if !found.contains(&holding.found) {
                found.push(holding.found);
            }
        }
        let mut found = format!("{} in {}", found.join("; "), cell.name());
        if let Some(against) = against {
            let _ = write!(found, ", against {}", against.name());
        }
        if let (Holds::CannotTell, Some(starts)) = (all, starts_needed) {
            let _ = write!(found, "; about {starts} starts would decide");
        }
        for cell in [Some(cell), against].into_iter().flatten() {
            let name = cell.name();
            if let Some(some) = cell.runs.left_out().some() {
                let _ = write!(found, "; {name}: {some}");
            }
            let rate = cell.runs.rate();
            if let Some(near) = rate.and_then(|rate| self.ceilings.near(cell.turn, rate)) {
                let _ = write!(found, "; {name} is near the generator's ceiling: {near}");
            }
        }
        (all, found)
    }

    /// The one cell that has these levels.
    fn cell(&self, at: usize, levels: &Levels) -> Result<Cell<'_>, Failure> {
        let has = |turns: &&Vec<Turn>| {
            let has = |(name, value): (&String, &String)| turns[0].has(name, value);
            !is_of_twin(&turns[0].levels) && levels.iter().all(has)
        };
        let found: Vec<&Vec<Turn>> = self.cells.iter().filter(has).collect();
        match found[..] {
            [only] => Ok(Cell {
                turn: &only[0],
                runs: self.results.runs(only)?,
            }),
            _ => {
                let names = self.cells.iter().map(|turns| words(&turns[0].levels));
                let words = levels.iter().map(|(name, value)| format!("{name} {value}"));
                let words = words.collect::<Vec<_>>().join(", ");
                let what = format!("{} cells have \"{words}\"", found.len());
                let hint = format!(
                    "the cells of this experiment are {}",
                    names.collect::<Vec<_>>().join("; ")
                );
                Err(self.reader.fault(at, &what, &hint))
            }
        }
    }
}

fn word(holds: Holds) -> &'static str {
    match holds {
        Holds::Yes => "supported",
        Holds::No => "not supported",
        Holds::CannotTell => "inconclusive",
    }
}

fn as_text(source: &str, judged: &[Judged]) -> String {
    let mut text = format!("{source}\n\n");
    for claim in judged {
        let (word, says, found) = (word(claim.holds), &claim.says, &claim.found);
        // Writing to a String does not fail.
        let _ = writeln!(text, "{word:<14} {says}\n{:14} {found}", "");
    }
    let number = |holds| judged.iter().filter(|it| it.holds == holds).count();
    let _ = writeln!(
        text,
        "\n{} of {} supported, {} not supported, {} inconclusive here",
        number(Holds::Yes),
        judged.len(),
        number(Holds::No),
        number(Holds::CannotTell)
    );
    text
}

fn as_markdown(source: &str, judged: &[Judged]) -> String {
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let mut text =
        format!("{source}\n\n| claim | here | measured, 95 % interval |\n|---|---|---|\n");
    for claim in judged {
        let (says, found) = (cell(&claim.says), cell(&claim.found));
        // Writing to a String does not fail.
        let _ = writeln!(text, "| {says} | {} | {found} |", word(claim.holds));
    }
    text
}
