//! What was asked and how it was chosen, in words.

use measure::notation::{count, counted, decimal, percent, seconds};
use measure::scenario::{GeneratedLabels, LabelForm, RepeatedQuestions};
use measure::{Counts, QuestionChoice, QuestionOrder, ScenarioRecord};

/// Source and number of the questions, and what is not the default about their choice.
pub(crate) fn questions(scenario: &ScenarioRecord) -> String {
    let questions = &scenario.questions;
    let choice = &questions.choice;
    let number = match (&choice.labels, questions.count) {
        // The source says it all.
        (Some(_), 1) => String::new(),
        _ => format!(", {}", counted(questions.count, "question")),
    };
    let mut words = vec![format!("{}{number}", questions.source)];
    words.extend(order(choice.order));
    words.extend(qtypes(choice));
    words.extend(choice.labels.as_ref().map(labels));
    words.extend(choice.repeats.as_ref().map(repeats));
    words.join("; ")
}

fn order(order: QuestionOrder) -> Option<String> {
    match order {
        QuestionOrder::InOrder => None,
        QuestionOrder::Uniform => Some("in random order".into()),
        QuestionOrder::Shuffled => Some("shuffled".into()),
        QuestionOrder::Profile => Some("by the popularity that the profile has".into()),
        QuestionOrder::Capture => None,
        QuestionOrder::Zipf { exponent } => Some(format!("Zipf, exponent {exponent}")),
    }
}

fn qtypes(choice: &QuestionChoice) -> Option<String> {
    let qtypes = choice.qtypes.iter();
    let shares = qtypes.map(|it| format!("{} {}", it.qtype, percent(it.share)));
    let words: Vec<String> = shares.collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn labels(labels: &GeneratedLabels) -> String {
    let octets = match (labels.octets_min, labels.octets_max) {
        (min, max) if min == max => counted(max, "byte"),
        (min, max) => format!("{min} to {}", counted(max, "byte")),
    };
    match labels.form {
        LabelForm::Random => format!("random labels of {octets}"),
        LabelForm::Counted => format!("labels of {octets} counted up"),
    }
}

fn repeats(repeats: &RepeatedQuestions) -> String {
    let ttl = match repeats.ttl_ns {
        Some(ns) => format!(" within {}", seconds(ns)),
        None => String::new(),
    };
    let share = percent(repeats.share);
    let names = count(repeats.names_max);
    format!("{share} repeat one of {names} asked before{ttl}")
}

/// How many of the queries offered repeated a question, if that was what chose them.
pub(super) fn repeated(scenario: &ScenarioRecord, counts: &Counts) -> Option<String> {
    let repeats = scenario.questions.choice.repeats?;
    let share = 100.0 * counts.repeated as f64 / counts.offered.max(1) as f64;
    let wanted = percent(repeats.share);
    Some(format!(
        "{} of them asked before ({} %, {wanted} wanted)",
        count(counts.repeated),
        decimal(share, 2),
    ))
}
