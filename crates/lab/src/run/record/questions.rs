//! What was asked and how it was chosen, as the record keeps it.

use load::Plan;
use load::question_source::{LabelForm, Labels, Order, QtypeMix, Repeats};
use measure::scenario::{
    self, GeneratedLabels, QtypeShare, QuestionChoice, QuestionOrder, Questions, RepeatedQuestions,
};

/// The questions of one group.
pub(super) fn questions(plan: &Plan, source: &str) -> Questions {
    let chosen = &plan.question_source;
    let count = plan.questions.len() as u64;
    Questions {
        source: source.to_owned(),
        count,
        choice: QuestionChoice {
            order: order(chosen.order),
            qtypes: chosen.qtypes.as_ref().map_or(Vec::new(), qtypes),
            labels: chosen.labels.as_ref().map(labels),
            repeats: chosen.repeats.as_ref().map(|it| repeats(it, count)),
        },
    }
}

fn order(order: Order) -> QuestionOrder {
    match order {
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

fn repeats(repeats: &Repeats, count: u64) -> RepeatedQuestions {
    RepeatedQuestions {
        share: repeats.share,
        ttl_ns: repeats.ttl.map(super::nanos),
        names_max: match count {
            0 | 1 => repeats.names_max.into(),
            // The last one is the zone of the others.
            templates => templates - 1,
        },
    }
}
