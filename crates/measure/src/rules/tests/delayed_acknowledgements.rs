//! Responses that wait for an acknowledgement: an end that holds small segments back while earlier
//! ones are not acknowledged (Nagle's algorithm, RFC 9293, section 3.7.4) meets one that delays its
//! acknowledgements (section 3.8.6.3). Neither end is busy, and some responses take 40 ms.

use crate::example::{interval, record};
use crate::record::RunRecord;
use crate::rules::judge;
use crate::rules::situations::{MS, found_on};
use crate::scenario::Transport;

/// Ten seconds over TCP, a connection for 1,000 queries; `latencies` in ms, and how many of
/// 10,000.
fn run(latencies: &[(u64, u64)]) -> RunRecord {
    let latencies: Vec<_> = latencies.iter().map(|&(ms, of)| (ms * MS, of)).collect();
    let mut record = record((0..10).map(|index| interval(index, &latencies)).collect());
    record.scenario.transport = Transport::Tcp.into();
    record.total.counts.connections.attempted = 100;
    record.total.counts.connections.established = 100;
    record
}

fn seen(record: &RunRecord) -> Option<String> {
    found_on(record, "delayed acknowledgements").map(|it| it.seen)
}

#[test]
fn a_peak_at_40_ms_over_streams_is_told_beside_the_verdict() {
    let record = run(&[(1, 9_700), (2, 80), (30, 10), (44, 200), (60, 10)]);
    let seen = seen(&record).expect("is found");
    assert!(
        seen.starts_with("2.00 % of the responses took 38 to 56 ms"),
        "{seen}"
    );
    assert!(seen.contains("1,000 queries a connection"), "{seen}");
    assert!(judge(&record).evidence.contains(&seen));
}

#[test]
fn acknowledging_at_once_is_a_cure_that_is_not_offered_twice() {
    let mut record = run(&[(1, 9_800), (44, 200)]);
    let offers = |record: &RunRecord| {
        let finding = found_on(record, "delayed acknowledgements");
        format!("{finding:?}").contains("--tcp-quickack")
    };
    assert!(offers(&record));
    let mut asked = crate::record::AskedGroup {
        name: "all".into(),
        run: settings::Run::default(),
    };
    asked.run.transport = Transport::Tcp;
    let without = asked.clone();
    asked.run.generator.sockets.tcp_quickack = true;
    record.asked = vec![asked.clone()];
    assert!(!offers(&record));
    // Of two groups, one does not.
    record.asked = vec![asked, without];
    assert!(offers(&record));
}

#[test]
fn other_reasons_for_40_ms_are_not_taken_for_it() {
    // A path of 40 ms; a wide distribution; a server that is slow now and then.
    for latencies in [
        &[(42, 10_000)][..],
        &[(1, 9_000), (25, 300), (44, 400), (60, 300)],
        &[(1, 9_800), (44, 100), (65, 100)],
        &[(1, 9_999), (44, 1)],
    ] {
        assert_eq!(seen(&run(latencies)), None, "{latencies:?}");
    }
    let peak = [(1, 9_800), (44, 200)];
    let mut record = run(&peak);
    record.scenario.transport = Transport::Udp.into();
    assert_eq!(seen(&record), None);
    record.scenario.transport = Transport::Doq.into();
    assert_eq!(seen(&record), None);
    // A query for each connection.
    record.scenario.transport = Transport::Dot.into();
    record.total.counts.connections.attempted = 100_000;
    record.total.counts.connections.established = 100_000;
    record.total.counts.connections.handshakes.full = 100_000;
    assert_eq!(seen(&record), None);
}
