//! The table itself.

use std::collections::BTreeSet;

use crate::rules::table::rules;
use crate::symptoms::Symptom;

#[test]
fn each_symptom_is_read_by_a_rule() {
    let read = rules().flat_map(|it| it.shows.iter().chain(it.silent).chain(it.unless));
    let read: Vec<&Symptom> = read.collect();
    for symptom in Symptom::ALL {
        assert!(read.contains(&symptom), "no rule reads {symptom:?}");
    }
}

#[test]
fn each_rule_has_a_name_within_its_symptoms() {
    let mut known = BTreeSet::new();
    for rule in rules() {
        let shows = format!("{:?}{}", rule.shows, rule.is_only_of_much);
        assert!(
            known.insert((rule.name, shows)),
            "{} is there twice",
            rule.name
        );
    }
}

#[test]
fn a_rule_decides_whatever_the_others_do() {
    let last = rules().last().expect("has rules");
    assert!(
        last.shows.is_empty() && last.limit.is_some(),
        "{}",
        last.name
    );
}

#[test]
fn each_rule_that_decides_says_what_it_does_not_know() {
    for rule in rules().filter(|it| it.limit.is_some()) {
        assert!(!rule.unknown.is_empty(), "{}", rule.name);
    }
}
