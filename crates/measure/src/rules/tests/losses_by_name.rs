//! Names whose queries get no response, while the others do.

use crate::losses_by_question::{LossesByQuestion, QuestionLosses};
use crate::rules::situations::*;
use crate::scenario::QuestionOrder;

/// A run with these names, each with queries sent and lost, in varying order.
fn by_name(record: &RunRecord, each: &[(u64, u64)]) -> RunRecord {
    let each = each
        .iter()
        .zip(0..)
        .map(|(&(sent, lost), number)| QuestionLosses {
            name: format!("n{number}.example."),
            qtype: "A".to_owned(),
            sent: Some(sent),
            lost,
        });
    let mut losses = LossesByQuestion::of(each.collect(), (0, 0));
    losses.shorten();
    let mut record = record.clone();
    record.losses_by_question = Some(losses);
    record.scenario.questions.choice.order = QuestionOrder::Shuffled;
    record
}

/// Half of the queries were answered, at a fixed rate.
fn half() -> RunRecord {
    limited(|_| 5)
}

#[test]
fn names_that_are_dropped_are_named_and_no_rate_is() {
    let record = by_name(&half(), &[(5_000, 5_000), (5_000, 0)]);
    let evidence = "all queries for 1 of 2 names got no response, the others did: n0.example. A";
    let verdict = judged(&record, Limit::Server, evidence, "n0.example. A");
    assert!(
        !verdict.evidence[0].contains("would look the same"),
        "{verdict:#?}"
    );
    let said = format!("{:#?}{verdict:#?}", met(&record));
    for wrong in ["fixed rate", "--rate", "nothing shows that the load"] {
        assert!(!said.contains(wrong), "{wrong}: {said}");
    }
}

#[test]
fn many_names_are_named_in_part() {
    let each: Vec<(u64, u64)> = (0..40)
        .map(|it| (250, if it < 20 { 250 } else { 0 }))
        .collect();
    let verdict = judge(&by_name(&half(), &each));
    let evidence = &verdict.evidence[0];
    assert!(evidence.contains("for 20 of 40 names"), "{evidence}");
    assert!(evidence.ends_with("n12.example. A, ..."), "{evidence}");
}

#[test]
fn names_in_turn_may_meet_what_takes_turns() {
    let mut record = by_name(&half(), &[(5_000, 5_000), (5_000, 0)]);
    record.scenario.questions.choice.order = QuestionOrder::InOrder;
    let alike = "; names were asked in turn, so 1 of 2 back-ends in turn without responses or a \
                 limit of 500 qps would look the same";
    judged(&record, Limit::Unknown, alike, "--question-order shuffled");
    // A limit is a whole number, and evenly spaced queries alone meet it in turn.
    record.scenario.arrival = Arrival::Open {
        rate_qps: 1_001.0,
        process: Process::Constant,
        burst: 1,
    };
    assert!(!judge(&record).evidence[0].contains("a limit of"));
}

#[test]
fn names_with_answers_that_may_be_too_large_for_the_path_do_not_name_the_server() {
    let with = |edns: Option<&str>| {
        let mut record = by_name(&half(), &[(5_000, 5_000), (5_000, 0)]);
        record.scenario.edns = edns.map(str::to_owned);
        record
    };
    let evidence = "all queries for 1 of 2 names got no response, the others did: n0.example. A; \
                    answers that are too large for the path would look the same: EDNS allows \
                    4,096 bytes";
    let large = with(Some("4096 octets, DO"));
    let verdict = judged(&large, Limit::Unknown, evidence, "--transport tcp");
    let said = format!("{verdict:?}");
    assert!(said.contains("--edns-size 1232"), "{verdict:#?}");
    // Smaller answers pass, and streams carry any.
    let mut over_tcp = large;
    over_tcp.scenario.transport = Transport::Tcp.into();
    for record in [with(Some("1232 octets, DO")), with(None), over_tcp] {
        let verdict = judged(&record, Limit::Server, "for 1 of 2 names", "n0.example. A");
        let said = format!("{verdict:?}");
        assert!(!said.contains("too large"), "{verdict:#?}");
        assert!(!said.contains("--edns-size"), "{verdict:#?}");
    }
}

#[test]
fn losses_that_do_not_keep_to_names_are_not_by_name() {
    let cases: [(&str, &[(u64, u64)]); 6] = [
        ("at random", &[(5_000, 2_520), (5_000, 2_480)]),
        ("of all names", &[(2_500, 2_500), (2_500, 2_500)]),
        (
            "a quarter of the queries for one name got responses",
            &[(5_000, 3_750), (5_000, 0)],
        ),
        (
            "the other name lost some too",
            &[(5_000, 4_900), (5_000, 300)],
        ),
        ("asked too rarely", &[(4, 4), (4, 0), (4, 0)]),
        ("most are lost otherwise", &[(100, 100), (4_900, 240)]),
    ];
    for (name, each) in cases {
        let verdict = judge(&by_name(&half(), each));
        assert!(
            !verdict.evidence[0].contains("all queries for"),
            "{name}: {verdict:#?}"
        );
    }
    let mut thousand = vec![(10, 0); 1_000];
    thousand[7] = (10, 3);
    let verdict = judge(&by_name(&half(), &thousand));
    assert!(
        !verdict.evidence[0].contains("all queries for"),
        "{verdict:#?}"
    );
}

#[test]
fn names_that_are_too_few_to_matter_are_told_beside_the_limit() {
    let mut record = in_time(10_000.0);
    lose(&mut record, 10);
    let record = by_name(&record, &[(10, 10), (100_000, 0)]);
    let verdict = judge(&record);
    assert_eq!(verdict.limit, Limit::Rate, "{verdict:#?}");
    let mut lines = verdict.evidence.iter();
    assert!(
        lines.any(|it| it.contains("for 1 of 2 names")),
        "{verdict:#?}"
    );
}

#[test]
fn names_whose_connections_ended_are_not_named() {
    let mut record = by_name(&half(), &[(5_000, 5_000), (5_000, 0)]);
    record.scenario.transport = Transport::Tcp.into();
    change_last(&mut record, |interval| {
        interval.counts.connection_losses = interval.counts.timeouts;
        interval.counts.timeouts = 0;
    });
    let said = judge(&record).evidence.join("; ");
    assert!(!said.contains("names"), "{said}");
}
