//! What others have published, held against an experiment: which statements hold here, which do
//! not, and which cannot be judged.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use measure::condition::{Condition, ConditionRecord, Criterion, Holding, Holds, Outcome};
use measure::statistics::Nested;
use schemars::JsonSchema;
use serde::Serialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ceilings::Ceilings;
use super::cells::{Turn, is_of_twin, words};
use super::results::{LEVEL, Results, Runs};
use crate::args::experiment::{ClaimsArguments, ClaimsFormat, FailingClaim};
use crate::conditions::{Gate, exit_code};
use crate::failure::{Failure, print};
use crate::inputs;
use crate::records::Links;
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

impl Judged {
    fn result(&self) -> ConditionRecord {
        ConditionRecord {
            condition: self.says.clone(),
            outcome: match self.holds {
                Holds::Yes => Outcome::Passed,
                Holds::No => Outcome::Failed,
                Holds::CannotTell => Outcome::Undecided,
            },
            found: self.found.clone(),
        }
    }
}

/// What `throng experiment claims --format json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Claims<'a> {
    /// Who has published them, and where.
    source: &'a str,
    /// The claims, in the order of their file.
    claims: Vec<JudgedClaim<'a>>,
}

/// A claim.
#[derive(Serialize, JsonSchema)]
struct JudgedClaim<'a> {
    /// What was published.
    says: &'a str,
    /// Whether it holds in this experiment.
    finding: Finding,
    /// What was measured in which cells, or why it is inconclusive.
    found: &'a str,
}

/// Whether a claim holds in an experiment.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Finding {
    /// All of its conditions are met in the whole interval.
    Supported,
    /// One of them is met in no part of it.
    NotSupported,
    /// Neither, or there is nothing to judge it by.
    Inconclusive,
}

/// Prints the claims in a file, judged by the records in a folder, and decides the exit code.
pub(super) fn execute(arguments: &ClaimsArguments) -> Result<ExitCode, Failure> {
    let is_gated = arguments.undecided.is_some() || arguments.junit.is_some();
    if arguments.fail_if.is_none() && is_gated {
        return Err(Failure::usage(
            "without --fail-if no claim fails, and --undecided and --junit do nothing",
            "add --fail-if not-supported",
        ));
    }
    let links = Links::with_force(arguments.force);
    let undecided = arguments.undecided.unwrap_or_default();
    let gate = Gate::new(arguments.junit.as_deref(), undecided, links)?;
    let (source, judged) = judge(&arguments.folder, &arguments.file)?;
    let text = match arguments.format {
        ClaimsFormat::Text => as_text(&source, &judged),
        ClaimsFormat::Markdown => as_markdown(&source, &judged),
        ClaimsFormat::Json => as_json(&source, &judged),
    };
    print(&text)?;
    let has_failed = match arguments.fail_if {
        None => false,
        Some(FailingClaim::NotSupported) => {
            let results: Vec<_> = judged.iter().map(Judged::result).collect();
            gate.conclude("throng experiment claims", &results, "")?
        }
    };
    Ok(exit_code(false, has_failed))
}

/// Where the claims in a file are from, and the claims, judged by the records in a folder.
fn judge(folder: &Path, file: &Path) -> Result<(String, Vec<Judged>), Failure> {
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
    let judged = claims.into_iter().map(|claim| judge.claim(claim));
    Ok((source, judged.collect::<Result<_, _>>()?))
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

fn as_json(source: &str, judged: &[Judged]) -> String {
    let claims = judged.iter().map(|claim| JudgedClaim {
        says: &claim.says,
        finding: match claim.holds {
            Holds::Yes => Finding::Supported,
            Holds::No => Finding::NotSupported,
            Holds::CannotTell => Finding::Inconclusive,
        },
        found: &claim.found,
    });
    let document = Claims {
        source,
        claims: claims.collect(),
    };
    report::json::pretty(&serde_json::to_value(document).unwrap_or_default())
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
