//! Connections that ended before they should, and the queries lost with them.

use crate::experience::{ClientExperience, ClientFigures};
use crate::rules::situations::*;

#[test]
fn target_that_closes_connections_after_some_queries_is_reported() {
    let mut record = saturated();
    record.scenario.transport = Transport::Tcp.into();
    change_last(&mut record, |interval| {
        interval.connections_open = 10;
        interval.counts.connections.closed_by_target = 781;
    });
    let line = "the target ended 781 connections (781 closed in order), after 128 queries \
                each on average";
    assert!(
        judge(&record)
            .evidence
            .iter()
            .any(|evidence| evidence == line)
    );
}

#[test]
fn connections_that_the_target_ends_are_a_habit_or_a_loss() {
    let mut record = saturated();
    record.scenario.transport = Transport::Tcp.into();
    change_last(&mut record, |interval| {
        interval.connections_open = 10;
        interval.counts.connections.closed_by_target = 781;
    });
    let seen = "ended 781 connections (781 closed in order), after 128 queries each";
    let topic = "closed connections";
    told(&record, topic).warning(seen, "--queries-per-connection 102");
    told(&record, topic).warning(seen, "miekg/dns");
    change_last(&mut record, |interval| {
        interval.counts.offered += 5_000;
        interval.counts.sent += 5_000;
        interval.counts.connection_losses += 5_000;
    });
    told(&record, topic).problem("5,000 queries (4.76 %", "tcp-idle-timeout");
    // More are sent than the target answers on a connection.
    change_last(&mut record, |interval| {
        interval.counts.sent += 100_000;
        interval.counts.connection_losses += 100_000;
    });
    told(&record, topic).problem("after 262 queries each", "--queries-per-connection 102");
}

#[test]
fn silence_until_quic_gives_up_is_no_end_by_the_target() {
    let mut record = saturated();
    record.scenario.transport = Transport::Doq.into();
    change_last(&mut record, |interval| {
        interval.counts.offered += 5_000;
        interval.counts.sent += 5_000;
        interval.counts.connection_losses += 5_000;
        interval.counts.connections.became_usable = 16;
        interval.counts.connections.quic_idle_timeouts = 6;
    });
    let seen = "nothing came back on 6 connections until QUIC gave up; 5,000 queries (4.76 %";
    let verdict = judged(&record, Limit::Unknown, seen, "run the same over UDP");
    let said = format!("{:#?}", (met(&record), verdict));
    for wrong in ["the target ended", "tcp-idle-timeout"] {
        assert!(!said.contains(wrong), "{wrong}: {said}");
    }
    // Few queries lost with them decide nothing.
    let mut few = record.clone();
    change_last(&mut few, |interval| {
        interval.counts.connection_losses = 90;
    });
    assert!(found_on(&few, "silent connections").is_some());
    assert_eq!(judge(&few).limit, Limit::Server);
    // What it ends, it ends.
    change_last(&mut record, |interval| {
        interval.counts.connections.closed_by_target = 12;
        interval.counts.connections.quic_idle_timeouts = 0;
    });
    let seen = "the target ended 12 connections (12 closed in order)";
    judged(&record, Limit::Server, seen, "tcp-idle-timeout");
}

/// Ten clients with 10,000 queries each, whose connections the target closes this many times; each
/// time a query is lost.
fn closed(times: impl Fn(u64) -> u64) -> RunRecord {
    let mut record = in_time(10_000.0);
    record.scenario.transport = Transport::Tcp.into();
    let mut experience = ClientExperience::default();
    for client in 0..10 {
        let mut figures = ClientFigures {
            queries: 10_000,
            connections: 1 + times(client) as u32,
            ..ClientFigures::default()
        };
        figures.respond_many(MS, 0, 10_000 - times(client));
        experience.record(&figures, SECOND);
    }
    record.groups[0].experience = Some(experience);
    let number = (0..10).map(times).sum();
    change_last(&mut record, |interval| {
        interval.counts.offered += number;
        interval.counts.sent += number;
        interval.counts.connection_losses += number;
        interval.counts.connections.closed_by_target = number;
    });
    record
}

#[test]
fn a_number_of_queries_for_each_connection_is_advised_where_it_would_be_met() {
    let topic = "closed connections";
    let even = closed(|_| 1_000);
    told(&even, topic).problem("ended 10,000 connections", "--queries-per-connection 8");
    // By chance, some end sooner than others.
    let uneven = closed(|client| 600 + 80 * client);
    let seen = "clients had 601 to 1,321 connections each, so they do not end after a number";
    let found = told(&uneven, topic);
    found.problem(seen, "as DropAction of dnsdist");
    let found = told(&uneven, topic);
    assert!(
        !format!("{found:?}").contains("--queries-per-connection"),
        "{found:?}"
    );
}

/// Of a closed loop, in which clients ask as often as their connections last.
#[test]
fn ends_by_chance_are_known_by_the_queries_of_each_connection() {
    let after = |each: &dyn Fn(u64) -> u64| {
        let found = told(&reset(0, each), "closed connections");
        format!("{found:?}")
    };
    let by_chance = after(&by_chance);
    let seen = "after 99 queries on average with a standard deviation of 99";
    assert!(by_chance.contains(seen), "{by_chance}");
    assert!(
        by_chance.contains("as DropAction of dnsdist"),
        "{by_chance}"
    );
    assert!(
        !by_chance.contains("--queries-per-connection"),
        "{by_chance}"
    );
    // A limit of 200, whose responses some resets lose, and one of 100.
    for each in [|number| number % 200, |_| 100] {
        let limited = after(&each);
        assert!(limited.contains("--queries-per-connection"), "{limited}");
    }
}

/// As many of them were reset as `reset`; each carried as many queries as `each` says.
fn reset(reset: u64, each: impl Fn(u64) -> u64) -> RunRecord {
    let mut record = closed(|_| 100);
    change_last(&mut record, |interval| {
        let connections = &mut interval.counts.connections;
        connections.reset_by_target = reset;
        connections.closed_by_target -= reset;
        (0..1_000).for_each(|number| connections.ended_after.record(each(number) as u32));
    });
    record
}

/// Each query ends its connection with a probability of one hundredth: as the logarithm of evenly
/// distributed numbers.
fn by_chance(number: u64) -> u64 {
    (-100.0 * ((number as f64 + 0.5) / 1_000.0).ln()) as u64
}

#[test]
fn resets_by_chance_may_be_those_of_a_device_on_the_path() {
    let seen = "the target or a device before it ended 1,000 connections (900 reset, 100 closed";
    judged(
        &reset(900, by_chance),
        Limit::Unknown,
        seen,
        "as DropAction of dnsdist",
    );
    // A device does not close in order, and does not count queries.
    let of_target = "the target ended 1,000 connections";
    let in_order = reset(400, by_chance);
    judged(&in_order, Limit::Server, of_target, "DropAction");
    let limited = reset(1_000, |_| 100);
    judged(
        &limited,
        Limit::Server,
        of_target,
        "--queries-per-connection",
    );
    // It cannot reset QUIC.
    let mut over_quic = reset(1_000, by_chance);
    over_quic.scenario.transport = Transport::Doq.into();
    judged(&over_quic, Limit::Server, of_target, "DropAction");
}

#[test]
fn a_few_resets_after_different_numbers_of_queries_are_not_laid_to_the_target() {
    let few = |each: fn(u64) -> u64| {
        let mut record = closed(|_| 1);
        change_last(&mut record, |interval| {
            interval.counts.connection_losses += 500;
            interval.counts.offered += 500;
            interval.counts.sent += 500;
            let connections = &mut interval.counts.connections;
            connections.closed_by_target = 0;
            connections.reset_by_target = 10;
            (0..10).for_each(|number| connections.ended_after.record(each(number) as u32));
        });
        judge(&record).limit
    };
    assert_eq!(few(|number| 100 * number * number), Limit::Unknown);
    assert_eq!(few(|number| 5_000 + number), Limit::Server);
}

#[test]
fn a_number_of_queries_that_is_in_force_is_not_advised() {
    let advised = |in_force| {
        let mut record = closed(|_| 1_000);
        record.scenario.connections.queries_max = Some(in_force);
        let found = told(&record, "closed connections");
        format!("{found:?}").contains("--queries-per-connection")
    };
    let expected = [(1, false), (7, false), (8, false), (9, true), (100, true)];
    for (in_force, is_advised) in expected {
        assert_eq!(advised(in_force), is_advised, "{in_force}");
    }
}

#[test]
fn a_mean_near_128_is_no_limit_of_128() {
    for (number, is_named) in [(781, true), (790, false), (850, false)] {
        let mut record = saturated();
        record.scenario.transport = Transport::Tcp.into();
        change_last(&mut record, |interval| {
            interval.counts.connections.closed_by_target = number;
        });
        let found = told(&record, "closed connections");
        assert_eq!(
            format!("{found:?}").contains("miekg/dns"),
            is_named,
            "{number}"
        );
    }
}
