//! How questions are chosen, and what their messages are.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use proto::Instant;
use proto::query::QueryOptions;

use super::*;
use crate::names_file;

mod distributions;
mod messages;
mod repeats;

/// A plan that asks `names` as `source` says, with two workers.
fn plan(names: &str, source: QuestionSource) -> Plan {
    let questions = names_file::parse_text(names.as_bytes(), &QueryOptions::default());
    Plan {
        questions: Arc::new(questions.unwrap()),
        question_source: source,
        ..crate::plan::tests::plan()
    }
}

/// `n0.test A` and so on.
fn names(count: u32) -> String {
    (0..count).map(|name| format!("n{name}.test A\n")).collect()
}

fn unique_labels() -> Option<Labels> {
    Some(Labels::unique(None, 7).unwrap())
}

/// A worker's choices, all due at the start.
fn choices(plan: &Plan, worker: u32) -> impl Iterator<Item = Choice> {
    let mut chooser = QuestionChooser::new(plan, worker);
    std::iter::repeat_with(move || chooser.next(Instant::ZERO))
}

fn templates(plan: &Plan, worker: u32, count: usize) -> Vec<u32> {
    let choices = choices(plan, worker).take(count);
    choices.map(|choice| choice.question.template).collect()
}

#[test]
fn by_default_each_worker_takes_its_questions_in_order() {
    let plan = plan(&names(5), QuestionSource::default());
    assert_eq!(templates(&plan, 0, 6), [0, 2, 4, 1, 3, 0]);
    assert_eq!(templates(&plan, 1, 6), [1, 3, 0, 2, 4, 1]);
    assert!(
        choices(&plan, 0)
            .take(9)
            .all(|choice| choice.question.is_plain())
    );
    assert!(!plan.question_source.generates());
}

#[test]
fn shuffled_questions_are_asked_once_each_time_around_whoever_asks_them() {
    for count in [2, 3, 5, 64, 1_000] {
        let order = Order::Shuffled;
        let source = QuestionSource {
            order,
            ..QuestionSource::default()
        };
        let plan = plan(&names(count), source);
        let rounds = 4 * count as usize;
        let (even, odd) = (templates(&plan, 0, rounds), templates(&plan, 1, rounds));
        let all: Vec<u32> = even
            .into_iter()
            .zip(odd)
            .flat_map(|(a, b)| [a, b])
            .collect();
        let mut orders = HashSet::new();
        for round in all.chunks_exact(count as usize) {
            let distinct: HashSet<&u32> = round.iter().collect();
            assert_eq!(distinct.len(), count as usize);
            orders.insert(round);
        }
        assert!(count < 5 || orders.len() == 8, "each time another order");
    }
}

#[test]
fn the_same_seed_gives_the_same_questions_and_another_seed_others() {
    for order in [
        Order::Uniform,
        Order::Shuffled,
        Order::Zipf { exponent: 1.0 },
    ] {
        let source = QuestionSource {
            order,
            ..QuestionSource::default()
        };
        let mut plan = plan(&names(100), source);
        let first = templates(&plan, 0, 200);
        assert_eq!(templates(&plan, 0, 200), first);
        assert_ne!(templates(&plan, 1, 200), first);
        plan.seed += 1;
        assert_ne!(templates(&plan, 0, 200), first);
    }
}

#[test]
fn a_permutation_has_each_number_once() {
    for count in (1..200).chain([1_000, 65_535, 65_536, 65_537, 1 << 20]) {
        let permutation = permutation::Permutation::new(count, count ^ 0x55);
        let mut seen = vec![false; count as usize];
        for position in 0..count {
            let number = permutation.at(position) as usize;
            assert!(!std::mem::replace(&mut seen[number], true), "{count}");
        }
    }
}

/// [`a_permutation_has_each_number_once`] tests the permutation at all widths small enough to
/// enumerate; this is the same at the width of labels, with the code around it.
#[test]
fn random_labels_of_all_workers_differ() {
    let source = QuestionSource {
        labels: unique_labels(),
        ..QuestionSource::default()
    };
    let plan = plan("zone.test A", source);
    let labels = plan.question_source.labels.as_ref().unwrap();
    assert!(labels.are_unique());
    let mut seen = HashSet::new();
    let mut wire = Vec::new();
    for worker in 0..2 {
        for choice in choices(&plan, worker).take(300_000) {
            wire.clear();
            assert_eq!(labels.write(choice.question.label() - 1, &mut wire), 11);
            let label: [u8; 11] = wire[..].try_into().unwrap();
            assert!(label[1..].iter().all(u8::is_ascii_alphanumeric));
            assert!(seen.insert(label));
        }
    }
}

#[test]
fn labels_have_the_lengths_asked_for_and_the_long_ones_differ() {
    let mut seen = HashMap::<Vec<u8>, u32>::new();
    let mut lengths = [0; 64];
    let labels = Labels::random(Some((1, 63)), 3).unwrap();
    for number in 0..63_000 {
        let mut wire = Vec::new();
        let octets = labels.write(number, &mut wire);
        assert_eq!((octets, usize::from(wire[0])), (wire.len(), wire.len() - 1));
        lengths[wire.len() - 1] += 1;
        *seen.entry(wire).or_default() += 1;
    }
    assert_eq!(lengths[0], 0);
    assert!(
        lengths[1..]
            .iter()
            .all(|count| (800..1_200).contains(count))
    );
    let is_single = |(label, count): (&Vec<u8>, &u32)| label.len() < 11 || *count == 1;
    assert!(seen.iter().all(is_single));
    let other = Labels::random(Some((1, 63)), 4).unwrap();
    let (mut one, mut two) = (Vec::new(), Vec::new());
    labels.write(5, &mut one);
    other.write(5, &mut two);
    assert_ne!(one, two);
}

#[test]
fn counted_labels_go_up_in_order_over_all_workers_and_begin_again() {
    let source = QuestionSource {
        labels: Some(Labels::counted(Some((2, 2))).unwrap()),
        ..QuestionSource::default()
    };
    let plan = plan("zone.test A", source);
    let labels = plan.question_source.labels.as_ref().unwrap();
    let of_worker = |worker| choices(&plan, worker).take(51);
    let both = of_worker(0).zip(of_worker(1));
    let numbers = both.flat_map(|(a, b)| [a.question.label(), b.question.label()]);
    let texts: Vec<String> = numbers
        .map(|number| {
            let mut wire = Vec::new();
            labels.write(number - 1, &mut wire);
            assert_eq!(wire[0], 2);
            String::from_utf8(wire.split_off(1)).unwrap()
        })
        .collect();
    let expected: Vec<String> = (0..102)
        .map(|number| format!("{:02}", number % 100))
        .collect();
    assert_eq!(texts, expected);
}

#[test]
fn lengths_of_labels_are_read_and_checked() {
    assert_eq!(parse_label_octets("12"), Ok((12, 12)));
    assert_eq!(parse_label_octets("4..16"), Ok((4, 16)));
    for text in ["", "x", "4..", "..4", "9..4", "4...9", "256", "-1"] {
        assert!(parse_label_octets(text).is_err(), "{text}");
    }
    for refused in [
        Labels::unique(Some((9, 12)), 1),
        Labels::unique(Some((12, 64)), 1),
        Labels::random(Some((0, 4)), 1),
        Labels::counted(Some((3, 4))),
        Labels::counted(Some((16, 16))),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.setting, "label-octets");
        assert!(!error.hint.is_empty());
    }
}

/// What validation says about a source with these names.
fn fault(names: &str, source: QuestionSource) -> String {
    match plan(names, source).validate() {
        Ok(()) => String::new(),
        Err(error) => {
            assert!(!error.hint.is_empty());
            error.to_string()
        }
    }
}

#[test]
fn parts_of_a_list_ask_each_question_as_often_as_all_others() {
    for order in [Order::InOrder, Order::Shuffled] {
        for (count, rounds, shares) in [(5, 1, [1, 4]), (7, 3, [10, 11]), (2, 9, [17, 1])] {
            let mut asked = vec![0; count as usize];
            let mut first = 0;
            for (share, seed) in shares.into_iter().zip(100..) {
                let source = QuestionSource {
                    order,
                    part: Some(ListPart { first, seed: 42 }),
                    ..QuestionSource::default()
                };
                let plan = Plan {
                    seed,
                    ..plan(&names(count), source)
                };
                for worker in 0..plan.workers {
                    let own = crate::plan::share(share, worker, plan.workers);
                    let templates = templates(&plan, worker, own as usize);
                    templates.iter().for_each(|it| asked[*it as usize] += 1);
                }
                first += share;
            }
            assert_eq!(asked, vec![rounds; count as usize], "{order:?}");
        }
    }
}

#[test]
fn orders_that_choose_nothing_or_contradict_are_refused() {
    let of = |order| QuestionSource {
        order,
        ..QuestionSource::default()
    };
    let zipf = |exponent| of(Order::Zipf { exponent });
    let cases = [
        ("a A\nb A", zipf(0.0), ""),
        ("a A\nb A", zipf(-0.1), "zipf: -0.1 is not an exponent"),
        ("a A\nb A", zipf(f64::NAN), "zipf: NaN is not an exponent"),
        ("a A", zipf(1.0), "zipf: there is only one name to choose"),
        (
            "a A",
            of(Order::Uniform),
            "question-order: there is only one name to choose",
        ),
        ("a A\nb A", of(Order::Shuffled), ""),
    ];
    for (names, source, expected) in cases {
        assert_eq!(fault(names, source), expected);
    }
}

#[test]
fn labels_that_do_not_fit_are_refused() {
    let name = [
        "x".repeat(63),
        "y".repeat(63),
        "z".repeat(63),
        "w".repeat(50),
    ]
    .join(".");
    let source = |labels| QuestionSource {
        labels: Some(labels),
        ..QuestionSource::default()
    };
    let line = format!("{name} A");
    assert_eq!(fault(&line, source(Labels::unique(None, 1).unwrap())), "");
    let said = fault(&line, source(Labels::unique(Some((11, 11)), 1).unwrap()));
    assert!(said.ends_with(". is longer than a name can be"), "{said}");
    let padded = "a.test A +padding";
    assert_eq!(fault(padded, source(Labels::unique(None, 1).unwrap())), "");
    let said = fault(padded, source(Labels::random(None, 1).unwrap()));
    assert!(said.contains("not padded to one multiple"), "{said}");
}
