//! What was asked and how it was chosen, as the record keeps it.

use load::question_source::{LabelForm, Labels, Order, QtypeMix};
use load::{Arrival, Plan};
use measure::scenario::{
    self, GeneratedLabels, QtypeShare, QuestionChoice, QuestionOrder, Questions, RepeatedQuestions,
};

/// The questions of one group.
pub(super) fn questions(plan: &Plan, source: &str) -> Questions {
    let chosen = &plan.question_source;
    let templates = plan.questions.len() as u64;
    let seen = chosen.ranked.as_ref().map(|names| names.distinct());
    // With a list to repeat, the last template is the zone of all other names.
    let count = match chosen.repeats {
        Some(_) if templates > 1 => templates - 1,
        _ => seen.unwrap_or(templates),
    };
    Questions {
        source: source.to_owned(),
        count,
        choice: QuestionChoice {
            order: order(plan),
            qtypes: chosen.qtypes.as_ref().map_or(Vec::new(), qtypes),
            labels: chosen.labels.as_ref().map(labels),
            repeats: chosen.repeats.as_ref().map(|it| RepeatedQuestions {
                share: it.share,
                ttl_ns: it.ttl.map(super::nanos),
                names_max: match templates {
                    0 | 1 => it.names_max.into(),
                    _ => count,
                },
            }),
        },
    }
}

fn order(plan: &Plan) -> QuestionOrder {
    let chosen = &plan.question_source;
    match chosen.order {
        _ if matches!(plan.arrival, Arrival::Replay(_)) => QuestionOrder::Capture,
        _ if chosen.ranked.is_some() => QuestionOrder::Profile,
        Order::InOrder => QuestionOrder::InOrder,
        Order::Uniform => QuestionOrder::Uniform,
        Order::Shuffled => QuestionOrder::Shuffled,
        Order::Zipf { exponent } => QuestionOrder::Zipf { exponent },
    }
}

fn qtypes(mix: &QtypeMix) -> Vec<QtypeShare> {
    let shares = mix.shares().iter();
    let named = |(qtype, share): &(u16, f64)| QtypeShare {
        qtype: proto::rr::type_to_text(*qtype),
        share: *share,
    };
    shares.map(named).collect()
}

fn labels(labels: &Labels) -> GeneratedLabels {
    let (octets_min, octets_max) = labels.octets();
    GeneratedLabels {
        form: match labels.form() {
            LabelForm::Random => scenario::LabelForm::Random,
            LabelForm::Counted => scenario::LabelForm::Counted,
        },
        octets_min: octets_min.into(),
        octets_max: octets_max.into(),
        seed: labels.seed(),
    }
}
