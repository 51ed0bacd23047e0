//! Clients that got no response at all.

use crate::experience::{ClientExperience, ClientFigures};
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

#[test]
fn cap_on_tcp_clients_is_named_with_its_number() {
    let mut record = saturated();
    cap_tcp_clients(&mut record, 150);
    let evidence = "the target serves no more than 150 TCP clients at once: 50 of 200 got no \
                    response at all (refused or reset)";
    let verdict = judged(
        &record,
        Limit::Server,
        evidence,
        "TCP clients to 1,000: BIND tcp-clients",
    );
    let said = verdict.evidence.iter().filter(|line| *line == evidence);
    assert_eq!(said.count(), 1);
}

#[test]
fn a_number_of_served_clients_that_grows_is_no_fixed_limit() {
    let grown = |at_first: &[u64]| {
        let mut record = saturated();
        cap_tcp_clients(&mut record, 150);
        let served = at_first.iter().copied().chain(std::iter::repeat(150));
        for (interval, served) in record.intervals.iter_mut().zip(served) {
            interval.connections_served = Some(served);
        }
        record
    };
    let evidence = "50 of 200 TCP clients got no response at all (refused or reset); 100 were \
                    served at once at first and 150 later, which no fixed limit explains";
    let verdict = judged(
        &grown(&[100; 6]),
        Limit::Server,
        evidence,
        "each server behind the address",
    );
    assert!(
        !verdict.advice.join(" ").contains("tcp-clients"),
        "{verdict:#?}"
    );
    // While clients connect, the number grows whatever the limit is.
    let named = "the target serves no more than 150 TCP clients at once";
    for at_first in [vec![], vec![40, 90], vec![20, 40, 60, 80, 100]] {
        judged(
            &grown(&at_first),
            Limit::Server,
            named,
            "TCP clients to 1,000",
        );
    }
}

#[test]
fn advice_for_more_clients_is_the_statement_of_the_server_that_was_observed() {
    for (product, advice) in [
        (
            "Unbound",
            "Unbound, unbound.conf, server: incoming-num-tcp: 1000",
        ),
        ("BIND", "BIND, named.conf, options: tcp-clients 1000;"),
        ("NSD", "NSD tcp-count"),
    ] {
        let mut record = saturated();
        cap_tcp_clients(&mut record, 150);
        let mut process = program(0.1, 0.1, &[]);
        process.facts.product = Some(product.to_owned());
        let record = observing(record, &[process]);
        let verdict = judge(&record);
        let said = verdict.advice.iter().any(|it| it.contains(advice));
        assert!(said, "{verdict:#?}");
    }
}

#[test]
fn clients_without_any_answer_are_told_before_a_generator_that_waits_for_its_cpu() {
    let mut record = saturated();
    record.scenario.target = "127.0.0.1:53".into();
    record.scenario.transport = Transport::Tcp.into();
    record.scenario.clients = 200;
    serve(&mut record, 150, 50);
    lose(&mut record, 1_000);
    record.workers[0].cpu_wait_ns = Some(30 * record.measured_ns / 100);
    let unserved = "50 of 200 got no response at all (left waiting)";
    judged(&record, Limit::Server, unserved, "NSD tcp-count");
    let waited = "worker 0 waited for its CPU";
    // Late responses were read late, and an overloaded worker may not have read some at all.
    let mut late = record.clone();
    change_last(&mut late, |interval| interval.counts.late += 900);
    judged(&late, Limit::Generator, waited, "--cpus");
    record.workers[0].cpu_wait_ns = Some(70 * record.measured_ns / 100);
    judged(&record, Limit::Generator, waited, "--cpus");
    // It is no reason for others to refuse connections.
    change_last(&mut record, |interval| {
        interval.counts.connections.failed.refused += 60;
    });
    let refused = "50 of 200 got no response at all (refused or reset)";
    judged(&record, Limit::Server, refused, "NSD tcp-count");
}

/// A run over TCP at this rate, and the queries and responses of each of its clients.
fn over_tcp(rate_qps: f64, clients: u64, of: impl Fn(u64) -> (u64, u64)) -> RunRecord {
    let mut record = in_time(rate_qps);
    record.scenario.transport = Transport::Tcp.into();
    let mut experience = ClientExperience::default();
    for (queries, responses) in (0..clients).map(of) {
        let mut figures = ClientFigures {
            queries,
            ..ClientFigures::default()
        };
        (0..responses).for_each(|_| figures.respond(MS, 0));
        experience.record(&figures, SECOND);
    }
    record.groups[0].experience = Some(experience);
    record
}

#[test]
fn clients_that_lost_their_few_queries_by_chance_are_no_cap() {
    let of = |client| (1, u64::from(client % 20 != 0));
    let mut record = over_tcp(10_000.0, 10_000, of);
    lose(&mut record, 5_300);
    assert!(!judge(&record).evidence[0].contains("serves no more"));
}

/// Ten of 1,700 clients are served all the time, which makes few of the queries.
#[test]
fn cap_far_below_the_number_of_clients_is_no_chance() {
    let of = |client| match client {
        0..800 => (6, 0),
        800..1_690 => (5, 0),
        _ => (5, 5),
    };
    let mut record = over_tcp(1_000.0, 1_700, of);
    change_last(&mut record, |it| {
        it.counts.offered = 9_300;
        it.counts.sent = 50;
        it.counts.responses = 50;
        it.counts.not_sent.timed_out_waiting = 9_250;
    });
    let said = judge(&record).evidence.join("\n");
    assert!(said.contains("serves no more than"), "{said}");
}

/// The given number of 200 TCP clients is served, and the others are refused or reset.
fn capped(served: u64) -> RunRecord {
    let mut record = saturated();
    cap_tcp_clients(&mut record, served);
    record
}

#[test]
fn binds_cap_on_tcp_clients_has_binds_statements() {
    let record = capped(150);
    let seen = "no more than 150 TCP clients at once: 50 of 200";
    for cure in [
        "tcp-clients 1000;",
        "tcp-listen-queue 4096;",
        "incoming-num-tcp: 1000",
    ] {
        let found = told(&record, "TCP clients").problem(seen, cure);
        assert!(
            found.matters.contains("150 is what BIND allows"),
            "{found:?}"
        );
    }
    assert_eq!(met(&record)[0].topic, "TCP clients");
    // Another number is not BIND's.
    let seen = "no more than 90 TCP clients";
    let cure = "tcp-clients 1000;";
    let found = told(&capped(90), "TCP clients").problem(seen, cure);
    assert!(!found.matters.contains("BIND"), "{found:?}");
}

#[test]
fn cap_on_quic_clients_is_named_with_its_number() {
    let mut record = saturated();
    record.scenario.transport = Transport::Doq.into();
    record.scenario.clients = 200;
    serve(&mut record, 150, 50);
    change_last(&mut record, |interval| {
        interval.counts.connections.attempted = 200;
        interval.counts.connections.failed.refused = 50;
    });
    let evidence =
        "no more than 150 QUIC clients at once: 50 of 200 got no response at all (refused";
    judged(&record, Limit::Server, evidence, "--clients 100");
}

/// A run of 20 TCP clients in which the target serves five at a time; the first responses of the
/// others took `first_ns`.
fn stragglers(first_ns: u64) -> RunRecord {
    let mut record = in_time(10_000.0);
    record.scenario.transport = Transport::Tcp.into();
    record.groups[0].scenario.transport = Transport::Tcp.into();
    record.scenario.clients = 20;
    serve(&mut record, 20, 0);
    for interval in &mut record.intervals {
        interval.connections_served = Some(5);
    }
    change_last(&mut record, |interval| {
        interval.counts.connections.attempted = 20;
        interval.counts.connections.established = 20;
        let times = &mut interval.distributions.connections;
        times.first_query.record_many(MS, 5);
        times.first_query.record_many(first_ns, 15);
    });
    record
}

#[test]
fn clients_that_were_served_only_after_the_load_were_not_served_at_once() {
    let seen = "serves no more than 5 TCP clients at once: 15 of 20 waited while the load lasted";
    judged(&stragglers(8 * SECOND), Limit::Server, seen, "tcp-clients");
}

#[test]
fn connections_that_answered_at_once_did_not_wait() {
    let verdict = judge(&stragglers(MS));
    assert!(
        !verdict.evidence[0].contains("serves no more"),
        "{verdict:#?}"
    );
}

/// `stragglers` whose connections end after a response or two each.
fn short_lived(served: impl Fn(u64) -> u64) -> RunRecord {
    let mut record = stragglers(8 * SECOND);
    for (interval, nth) in record.intervals.iter_mut().zip(0..) {
        interval.connections_served = Some(served(nth));
    }
    let responses = record.intervals.iter().map(|it| it.counts.responses);
    let usable = responses.sum::<u64>() * 2 / 3;
    change_last(&mut record, |interval| {
        interval.counts.connections.attempted = usable;
        interval.counts.connections.established = usable;
    });
    record
}

#[test]
fn a_number_of_connections_that_is_held_exactly_is_a_cap_also_where_they_soon_end() {
    let seen = "serves no more than 5 TCP clients at once: 15 of 20 waited";
    judged(&short_lived(|_| 5), Limit::Server, seen, "tcp-clients");
    // What happens to live at an instant is another number each time.
    let verdict = judge(&short_lived(|nth| 4 + nth % 2));
    assert!(
        !verdict.evidence[0].contains("serves no more"),
        "{verdict:#?}"
    );
}

#[test]
fn connections_that_become_more_all_the_time_are_no_cap() {
    let mut record = stragglers(8 * SECOND);
    for (interval, served) in record.intervals.iter_mut().zip(1..) {
        interval.connections_served = Some(served);
    }
    let verdict = judge(&record);
    assert!(
        !verdict.evidence[0].contains("serves no more"),
        "{verdict:#?}"
    );
}

#[test]
fn clients_that_get_nothing_are_no_fixed_rate_of_responses() {
    let mut record = limited(|bin| if bin % 4 == 3 { 0 } else { 10 });
    record.scenario.clients = 8;
    serve(&mut record, 6, 2);
    let verdict = judged(
        &record,
        Limit::Unknown,
        "2 of 8 clients, each with its source port, got no response",
        "source ports are divided",
    );
    let said = verdict.evidence.join("; ");
    assert!(!said.contains("fixed rate"), "{said}");
}

#[test]
fn clients_of_a_closed_loop_that_lost_a_few_bursts_are_no_limit_of_clients() {
    let mut record = limited(|bin| if bin % 2 == 0 { 10 } else { 0 });
    record.scenario.clients = 8;
    record.scenario.arrival = Arrival::Closed {
        outstanding: 80,
        rate_qps_max: None,
    };
    serve(&mut record, 4, 4);
    let verdict = judge(&record);
    assert!(
        !verdict.evidence[0].contains("no response at all"),
        "{verdict:#?}"
    );
}
