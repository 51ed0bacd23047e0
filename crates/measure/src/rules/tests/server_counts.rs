//! Both ends compared: what the observed server counted, and what was sent to it.

use crate::observation::SeriesKind;
use crate::observation::{NoValue, Sample, ServerFacts};
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

#[test]
fn both_ends_are_compared() {
    let same = observing(in_time(10_000.0), &[server(10_000.0, &[])]);
    assert!(!said(&same).contains("counted"), "{}", said(&same));
    let all = met(&same);
    let both = all.iter().find(|it| it.topic == "queries at both ends");
    assert!(both.is_some_and(|it| it.seen.contains("counted 100,000 of the 100,000 queries")));

    let more = observing(in_time(10_000.0), &[server(11_000.0, &[])]);
    tells(
        &more,
        &["counted 110,000 queries, 10,000 more than were sent to it"],
    );
    let fewer = observing(in_time(10_000.0), &[server(9_000.0, &[])]);
    tells(
        &fewer,
        &["counted 90,000 of the 100,000 queries that were sent, 10,000 fewer"],
    );
    // A server without counters before its first query has no count to compare.
    let mut late = server(9_000.0, &[]);
    late.series[0].samples[0] = Sample::Without(NoValue::Missing);
    let unknown = observing(in_time(10_000.0), &[late]);
    assert!(!said(&unknown).contains("counted"), "{}", said(&unknown));
    let drops = program(0.5, 0.3, &[("udp.drops", SeriesKind::Counter, 1_000.0)]);
    let dropped = observing(in_time(10_000.0), &[server(9_000.0, &[]), drops]);
    tells(
        &dropped,
        &["10,000 fewer: its sockets had no room for 10,000"],
    );
    let drops = program(0.5, 0.3, &[("udp.drops", SeriesKind::Counter, 400.0)]);
    let host = ("softnet.dropped", SeriesKind::Counter, 100.0);
    let host = observation("host", ServerFacts::default(), &[host]);
    let partly = observing(in_time(10_000.0), &[server(9_000.0, &[]), drops, host]);
    tells(
        &partly,
        &[
            "10,000 fewer: its sockets had no room for 4,000; its host dropped 1,000 packets \
           before any socket; the other 5,000 were lost on the path",
        ],
    );
}

#[test]
fn queries_that_clients_sent_again_are_among_those_that_a_server_counts() {
    let mut record = in_time(10_000.0);
    change_last(&mut record, |it| it.counts.stub.retransmitted = 500);
    let record = observing(record, &[server(10_050.0, &[])]);
    let both = told(&record, "queries at both ends");
    let seen = "counted 100,500 of the 100,500 queries that were sent to it, 500 of them sent \
                again";
    assert!(both.seen.contains(seen), "{}", both.seen);
}
