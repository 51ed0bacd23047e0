//! Losses with and without a sign that the load made them.

use crate::rules::situations::*;

#[test]
fn losses_while_queries_wait_are_the_servers_limit() {
    let mut record = open_loop(&[(200_000, 50), (10 * MS, 950)], 10_000.0);
    lose(&mut record, 5_000);
    let evidence = "4.76 % of the offered queries got no response, while 93 queries waited at the \
                    target on average: p50 9.994 ms against the shortest 200.0 us";
    let verdict = judged(&record, Limit::Server, evidence, "--rate 8000");
    let said = "5,000 of 105,000 queries got no response (4.76 %): 5,000 timed out";
    assert!(verdict.evidence.iter().any(|it| it == said), "{verdict:#?}");
}

#[test]
fn losses_without_a_sign_of_load_are_not_blamed_on_the_server() {
    let mut record = in_time(10_000.0);
    lose(&mut record, 5_000);
    let evidence = "4.76 % of the offered queries got no response, and nothing shows that the load";
    judged(
        &record,
        Limit::Unknown,
        evidence,
        "a tenth of the rate to find out: --rate 1000;",
    );
}

#[test]
fn losses_without_a_queue_are_not_called_overload() {
    let mut record = in_time(10_000.0);
    lose(&mut record, 1_000);
    let topic = "losses without a queue";
    told(&record, topic).warning(
        "got no response, and nothing shows that the load is the cause",
        "a tenth of the rate to find out: --rate 1000",
    );
    // Where queries waited first, the server could not keep up.
    let mut record = saturated();
    lose(&mut record, 1_000);
    assert!(met(&record).iter().all(|it| it.topic != topic));
}

#[test]
fn losses_of_large_answers_are_a_cause_where_edns_allows_them() {
    let with = |edns: &str| {
        let mut record = in_time(10_000.0);
        lose(&mut record, 5_000);
        record.scenario.edns = Some(edns.to_owned());
        format!("{:#?}", told(&record, "losses without a queue"))
    };
    let large = with("4096 octets, DO");
    for words in ["one that drops large answers", "--edns-size 1232"] {
        assert!(large.contains(words), "{words}: {large}");
    }
    let small = with("1232 octets, DO");
    for words in ["large answers", "--edns-size"] {
        assert!(!small.contains(words), "{words}: {small}");
    }
}
