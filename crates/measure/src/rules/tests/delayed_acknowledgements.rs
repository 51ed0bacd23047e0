//! Responses that wait for an acknowledgement: an end that holds small segments back while earlier
//! ones are not acknowledged (Nagle's algorithm, RFC 9293, section 3.7.4) meets one that delays its
//! acknowledgements (section 3.8.6.3). Neither end is busy, and some responses take 40 ms.

use crate::rules::situations::*;

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
}

/// Over DoT, all responses took 44 ms, and half of the connections and handshakes these times.
fn all_delayed(connect_ns: u64, handshake_ns: u64) -> RunRecord {
    let mut record = run(&[(44, 10_000)]);
    record.scenario.transport = Transport::Dot.into();
    change_last(&mut record, |interval| {
        let times = &mut interval.distributions.connections;
        times.tcp_connect.record(connect_ns);
        times.tls_handshake.record(handshake_ns);
    });
    record
}

/// A query on each connection of DoT: it waits behind the session tickets.
#[test]
fn where_all_responses_wait_connections_that_open_fast_show_it() {
    let told = "; connections opened in 3.000 ms, so neither the path nor the work of the server";
    let delayed = all_delayed(MS, 2 * MS);
    let verdict = judged(&delayed, Limit::Unknown, told, "--tcp-quickack");
    let said = format!("{verdict:?}");
    assert!(said.contains("TCP_NODELAY"), "{said}");
    assert!(!said.contains("was set by --outstanding"), "{said}");
    // The path, or the work of the server, takes as long.
    for (connect_ns, handshake_ns) in [(42 * MS, 43 * MS), (MS, 41 * MS)] {
        assert_eq!(seen(&all_delayed(connect_ns, handshake_ns)), None);
    }
    // What is acknowledged at once waits for something else.
    let mut quick = all_delayed(MS, 2 * MS);
    let mut asked = crate::record::AskedGroup {
        name: "all".into(),
        run: settings::Run::default(),
    };
    asked.run.transport = Transport::Dot;
    asked.run.generator.sockets.tcp_quickack = true;
    quick.asked = vec![asked];
    assert_eq!(seen(&quick), None);
}
