//! Clients whose SYNs were dropped or rejected: no limit of a server on its clients does that.

use crate::counts::ConnectionFailures;
use crate::experience::{ClientExperience, ClientFigures};
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

/// Twenty of 50 TCP clients are served, `silent` more have a connection and get nothing, and the
/// others have none; as many attempts as clients are without service ended in each of these ways.
fn limited_at_20(silent: u64, failed: impl Fn(&mut ConnectionFailures, u64)) -> RunRecord {
    let mut record = saturated();
    record.scenario.transport = Transport::Tcp.into();
    record.scenario.clients = 50;
    let mut experience = ClientExperience::default();
    for client in 0..50 {
        let mut figures = ClientFigures {
            queries: 20,
            connections: u32::from(client < 20 + silent),
            ..ClientFigures::default()
        };
        if client < 20 {
            figures.respond_many(MS, 0, 20);
        }
        experience.record(&figures, SECOND);
    }
    record.groups[0].experience = Some(experience);
    change_last(&mut record, |interval| {
        let connections = &mut interval.counts.connections;
        connections.established = 20 + silent;
        connections.became_usable = 20 + silent;
        failed(&mut connections.failed, 4 * (30 - silent));
        connections.attempted = 20 + silent + connections.failed.total();
        interval.counts.offered += 600;
        interval.counts.sent += 20 * silent;
        interval.counts.timeouts += 20 * silent;
        interval.counts.not_sent.timed_out_waiting += 20 * (30 - silent);
    });
    record
}

const NEVER: &str = "30 of 50 TCP clients never had a connection: their SYNs were";
const CAP: &str = "the target serves no more than 20 TCP clients at once: 30 of 50";

#[test]
fn clients_that_never_had_a_connection_met_no_limit_of_the_server() {
    let dropped = limited_at_20(0, |failed, number| failed.timed_out = number);
    let rejected = limited_at_20(0, |failed, number| failed.refused = number);
    let both = limited_at_20(0, |failed, number| {
        failed.refused = number;
        failed.timed_out = 9;
    });
    for (record, how) in [
        (&dropped, "dropped"),
        (&rejected, "rejected"),
        (&both, "dropped or rejected"),
    ] {
        let seen = format!("{NEVER} {how}: a firewall's limit, a full listen queue");
        let verdict = judged(record, Limit::Unknown, &seen, "nft list ruleset");
        let said = format!("{:#?}", (met(record), verdict));
        for wrong in ["tcp-clients", "serves no more", "tcp-listen-queue"] {
            assert!(!said.contains(wrong), "{wrong}: {said}");
        }
    }
}

#[test]
fn clients_that_are_silent_after_they_connected_met_the_limit_of_the_server() {
    let queued = limited_at_20(11, |failed, number| failed.timed_out = number);
    judged(&queued, Limit::Server, CAP, "BIND tcp-clients");
    let closed = limited_at_20(30, |_, _| ());
    judged(&closed, Limit::Server, CAP, "BIND tcp-clients");
    // The kernel of the target counts its listen queue, and those of other programs.
    let overflowed = |times| {
        let mut record = limited_at_20(0, |failed, number| failed.timed_out = number);
        record.scenario.target = "127.0.0.1:53".into();
        let counter = ("TcpExt.ListenOverflows".to_owned(), times);
        record.network.kernel.extend([counter]);
        record
    };
    judged(&overflowed(60), Limit::Server, CAP, "BIND tcp-clients");
    let of_others = judge(&overflowed(59));
    assert_eq!(of_others.limit, Limit::Unknown, "{of_others:#?}");
    assert!(of_others.evidence[0].starts_with(NEVER), "{of_others:#?}");
}

#[test]
fn a_server_that_counts_those_who_reached_it_met_no_limit() {
    use crate::observation::SeriesKind::Gauge;
    let most = [("clients.tcp_most", Gauge, 20.0)];
    let of = |record| said(&observing(record, &[server(100.0, &most)]));
    let count = "BIND had no more than 20 TCP clients at once by its own count, of 50 that asked: ";
    let told = of(limited_at_20(0, |failed, number| failed.refused = number));
    assert!(
        told.contains(&format!("{count}the others did not reach it")),
        "{told}"
    );
    assert!(!told.contains("limit on TCP clients is met"), "{told}");
    let told = of(limited_at_20(11, |failed, number| {
        failed.timed_out = number
    }));
    assert!(
        told.contains(&format!("{count}its limit on TCP clients is met")),
        "{told}"
    );
}
