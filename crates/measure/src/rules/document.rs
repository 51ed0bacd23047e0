//! The table of rules as a document, `docs/verdict.md`.

use std::fmt::Write as _;

use super::{Rule, Said, table};
use crate::symptoms::Symptom;

const INTRODUCTION: &str = "\
# The verdict

Made by `throng schema verdict`, from the rules in force.

Every run ends with a *limit*, its evidence and advice. Throng first computes *symptoms*: what
counters, histograms and observations of the record show, each with its numbers. Rules read
symptoms and nothing else. The first rule below that decides names the limit; earlier rules say why
later ones could not be trusted. A rule

* speaks where all its symptoms show, and none of those after \"silent if\" is much;
* decides where all its symptoms are much, and none of those after \"unless\" is much;
* is reported only where it decides, by `throng doctor` and in reports, or in every verdict.

Limits: `server`, the target; `policy`, a rule or a limit on the rate, of the target or of a device
before it; `generator`, Throng or its host; `network`, drops on the path; `outstanding`, the number
of queries or clients allowed at a time; `rate`, the load asked for; `unknown`, the record does not
show it.

";

/// The table of rules and all symptoms, as Markdown.
pub fn verdict_document() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str("## Rules\n");
    for section in table::SECTIONS {
        let _ = write!(text, "\n### {}\n\n", section.title);
        text.push_str("rule | symptoms | limit | reported | does not know\n---|---|---|---|---\n");
        for rule in section.rules {
            text.push_str(&row(rule));
        }
    }
    text.push_str("\n## Symptoms\n\nsymptom | shows where\n---|---\n");
    for symptom in Symptom::ALL {
        let _ = writeln!(text, "{} | {}", words(*symptom), symptom.meaning());
    }
    text
}

fn row(rule: &Rule) -> String {
    let mut symptoms = names(rule.shows);
    if rule.is_only_of_much {
        symptoms.push_str(", much");
    }
    if !rule.silent.is_empty() {
        let _ = write!(symptoms, "; silent if {}", names(rule.silent));
    }
    if !rule.unless.is_empty() {
        let _ = write!(symptoms, "; unless {}", names(rule.unless));
    }
    let reported = match rule.said {
        Said::WhereItDecides => "where it decides",
        Said::ByDoctor => "by doctor",
        Said::InEveryVerdict => "always",
    };
    let limit = rule.limit.map_or("-", |it| it.name());
    let (name, unknown) = (rule.name, rule.unknown);
    let row = format!("{name} | {symptoms} | {limit} | {reported} | {unknown}");
    format!("{}\n", row.trim_end())
}

fn names(symptoms: &[Symptom]) -> String {
    let names: Vec<String> = symptoms.iter().map(|it| words(*it)).collect();
    match names.is_empty() {
        true => "any".to_owned(),
        false => names.join(", "),
    }
}

/// The name of a symptom in words: `out of cpu`.
fn words(symptom: Symptom) -> String {
    let mut words = String::new();
    for letter in symptom.name().chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}
