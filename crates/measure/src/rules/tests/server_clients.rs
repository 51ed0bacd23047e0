//! TCP clients of an observed server, by its own count: as many as it takes, where others waited.

use crate::observation::SeriesKind;
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

fn told_of(most: f64) -> String {
    let most = [("clients.tcp_most", SeriesKind::Gauge, most)];
    let mut record = saturated();
    cap_tcp_clients(&mut record, 150);
    said(&observing(record, &[server(100.0, &most)]))
}

#[test]
fn a_server_that_had_as_many_clients_as_it_takes_says_so() {
    let seen = "BIND had no more than 150 TCP clients at once by its own count, of 200";
    let told = told_of(150.0);
    assert!(told.contains(seen), "{told}");
    // It once had more than now, so this is not its limit.
    let told = told_of(300.0);
    assert!(!told.contains("by its own count"), "{told}");
}

#[test]
fn clients_that_all_got_answers_met_no_limit() {
    let most = [("clients.tcp_most", SeriesKind::Gauge, 5.0)];
    let mut record = in_time(1_000.0);
    record.scenario.transport = Transport::Tcp.into();
    let record = observing(record, &[server(1_000.0, &most)]);
    assert!(!said(&record).contains("by its own count"));
}
