//! Verdict and doctor, of the same judgement.

use crate::doctor::{Cure, worst};
use crate::facts::WorkerFacts;
use crate::rules::situations::*;

#[test]
fn self_test_says_that_it_measures_this_tool() {
    let mut record = saturated();
    record.self_test = true;
    let verdict = judged(
        &record,
        Limit::Server,
        "queries were in flight",
        "--server HOST",
    );
    let last = verdict.evidence.last().expect("has evidence");
    assert!(
        last.contains("the result measures this tool, not a server"),
        "{last}"
    );
}

#[test]
fn judging_leaves_out_of_account_what_the_record_said_before() {
    let mut record = saturated();
    record.verdict = Verdict {
        limit: Limit::Rate,
        ..Verdict::default()
    };
    record.workers.push(WorkerFacts::default());
    assert_eq!(judge(&record).limit, Limit::Server);
    assert_eq!(
        serde_json::to_string(&Limit::Server).expect("serializes"),
        "\"server\""
    );
}

#[test]
fn the_limit_comes_first_with_the_advice_of_the_verdict() {
    let found = met(&saturated());
    assert_eq!((found.len(), found[0].topic.as_str()), (1, "limit: server"));
    let cures: Vec<String> = found[0].cures.iter().map(Cure::sentence).collect();
    assert!(cures[0].contains("--rate 7000"), "{cures:?}");
    assert!(
        cures.iter().any(|it| it.contains("rndc status")),
        "{cures:?}"
    );
    assert_eq!(worst(&found), State::Ok);

    let found = met(&in_time(10_000.0));
    assert_eq!((found.len(), found[0].topic.as_str()), (1, "limit: rate"));
    assert!(found[0].cures[0].how.contains("raise --rate"), "{found:?}");
}
