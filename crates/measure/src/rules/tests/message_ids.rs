//! Clients that have used up their message IDs: 16 bits distinguish the queries of one client.

use crate::rules::situations::*;

#[test]
fn exhausted_message_ids_are_the_generators_limit() {
    let mut record = saturated();
    change_last(&mut record, |interval| {
        interval.counts.offered += 1_000;
        interval.counts.not_sent.no_free_id += 1_000;
    });
    judged(
        &record,
        Limit::Generator,
        "1,000 queries (0.99 % of those offered) were not sent: some of the 10 clients had \
         used up",
        "--clients 20",
    );
}

#[test]
fn clients_that_used_up_their_message_ids_are_too_few() {
    let mut record = saturated();
    change_last(&mut record, |interval| {
        interval.counts.offered += 1_000;
        interval.counts.not_sent.no_free_id += 1_000;
    });
    told(&record, "message IDs").problem("had used up their message IDs", "--clients 20");
}
