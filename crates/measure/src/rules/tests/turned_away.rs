//! Connection attempts that were turned away at their SYN, by a limit on new connections or not.

use crate::facts::TcpFacts;
use crate::rules::situations::*;
use crate::timeline::OutageKind;
use crate::timeline::outages::Outside;

use super::outage::{judged_in, outage};

/// Attempts of a second, and how they ended.
#[derive(Clone, Copy, Default)]
struct Second {
    refused: u64,
    /// Admitted after their SYN had been sent again.
    slow: u64,
    /// Admitted at once.
    admitted: u64,
}

/// Thirty seconds of an open loop over TCP, with one query for each connection. The query of each
/// connection that was not admitted timed out while it waited for one.
fn attempts(of: impl Fn(u64) -> Second) -> RunRecord {
    let seconds: Vec<Second> = (0..30).map(of).collect();
    let each = (0..30).zip(&seconds);
    let intervals = each.map(|(index, it)| {
        let admitted = it.admitted + it.slow;
        let mut interval = interval(index, &[(MS, admitted)]);
        interval.counts.offered += 200 - admitted;
        interval.counts.not_sent.timed_out_waiting += 200 - admitted;
        let connections = &mut interval.counts.connections;
        connections.attempted = admitted + it.refused;
        connections.established = admitted;
        connections.became_usable = admitted;
        connections.closed_by_client = admitted;
        connections.failed.refused = it.refused;
        let times = &mut interval.distributions.connections;
        times.tcp_connect.record_many(MS / 10, it.admitted);
        times.tcp_connect.record_many(1_030 * MS, it.slow);
        times.first_query.record_many(MS, admitted);
        interval
    });
    let mut record = crate::example::record(intervals.collect());
    record.scenario.arrival = open_loop(&[(MS, 1)], 200.0).scenario.arrival;
    record.scenario.transport = Transport::Tcp.into();
    record.scenario.clients = 20;
    record.scenario.connections.queries_max = Some(1);
    record
}

/// More attempts in some seconds than in others.
fn varied(second: u64) -> u64 {
    10 + 3 * scattered(second)
}

fn is_said(record: &RunRecord) -> bool {
    found_on(record, "connection attempts").is_some()
}

#[test]
fn fixed_rate_of_admitted_connections_is_a_limit_on_them() {
    let refusing = attempts(|second| Second {
        refused: varied(second),
        admitted: 10,
        ..Second::default()
    });
    let evidence = "10.0 new connections were admitted a second, however many were attempted";
    let verdict = judged(&refusing, Limit::Policy, evidence, "nft list ruleset");
    let more = "--queries-per-connection 100";
    let is_advised = verdict.advice.iter().any(|it| it.contains(more));
    assert!(is_advised, "{verdict:#?}");
    // The first second had a full bucket.
    let dropping = attempts(|second| Second {
        slow: [2, 8][usize::from(second > 0)],
        admitted: [98, 2][usize::from(second > 0)],
        refused: varied(second),
    });
    let verdict = judged(&dropping, Limit::Policy, evidence, "nft list ruleset");
    let how = "got no answer to their SYN and";
    assert!(verdict.evidence[0].contains(how), "{verdict:#?}");
}

#[test]
fn a_share_of_attempts_that_is_turned_away_leaves_the_cause_open() {
    let share = attempts(|second| Second {
        refused: varied(second),
        admitted: varied(second),
        ..Second::default()
    });
    let evidence = "a limit on new connections or one of several servers behind the address";
    judged(&share, Limit::Unknown, evidence, "nstat");
    let random = attempts(|second| Second {
        slow: scattered(second),
        admitted: 10 + scattered(second + 40),
        ..Second::default()
    });
    let evidence = "a limit on new connections or a full listen queue turned attempts away";
    judged(&random, Limit::Unknown, evidence, "nstat");
}

#[test]
fn a_generator_that_stands_still_for_a_while_refuses_no_attempts() {
    let judged = |record: &RunRecord| {
        let stands_still = outage(OutageKind::OwnFreeze, 200, 230);
        judged_in(record, &[stands_still], Outside::default())
    };
    let refusing = attempts(|second| Second {
        refused: varied(second),
        admitted: 10,
        ..Second::default()
    });
    assert_eq!(judged(&refusing).limit, Limit::Policy);
    // It may be itself that is late for the answers to its SYNs.
    let late = attempts(|second| Second {
        slow: scattered(second),
        admitted: 10 + scattered(second + 40),
        ..Second::default()
    });
    assert_eq!(judged(&late).limit, Limit::Generator);
}

#[test]
fn an_outage_turns_all_attempts_away_and_is_no_limit_on_them() {
    let outage = attempts(|second| match (10..14).contains(&second) {
        true => Second {
            refused: varied(second),
            ..Second::default()
        },
        false => Second {
            admitted: 200,
            ..Second::default()
        },
    });
    assert!(!is_said(&outage));
}

#[test]
fn a_burst_at_the_start_that_is_turned_away_is_soon_over() {
    let burst = attempts(|second| Second {
        refused: [500, 0][usize::from(second > 0)],
        admitted: 150,
        ..Second::default()
    });
    assert!(!is_said(&burst));
}

#[test]
fn connections_that_wait_for_the_server_are_in_a_full_listen_queue() {
    let dropping = || {
        attempts(|second| Second {
            slow: scattered(second),
            admitted: 150,
            ..Second::default()
        })
    };
    assert!(is_said(&dropping()));
    // Its kernel counts each SYN that found the queue full, and those of other programs.
    let slow: u64 = (0..30).map(scattered).sum();
    for (overflows, is_of_others) in [(slow / 4, true), (slow, false)] {
        let mut counted = dropping();
        counted.scenario.target = "127.0.0.1:53".into();
        let counter = ("TcpExt.ListenOverflows".to_owned(), overflows);
        counted.network.kernel.extend([counter]);
        assert_eq!(is_said(&counted), is_of_others, "{overflows} of {slow}");
    }
    let mut queued = dropping();
    change_last(&mut queued, |it| {
        let times = &mut it.distributions.connections;
        times.first_query.record_many(100 * MS, 30 * 150);
    });
    assert!(!is_said(&queued));
    let topic = "listen queue";
    assert!(found_on(&queued, topic).is_some() && found_on(&dropping(), topic).is_none());
    // What was sent on connections was lost too.
    let mut lossy = dropping();
    lossy.network.tcp = Some(TcpFacts {
        closed: 4_700,
        read: 4_700,
        segments_sent: 40_000,
        segments_repeated: 1_200,
        ..TcpFacts::default()
    });
    assert!(!is_said(&lossy));
    judged(
        &lossy,
        Limit::Network,
        "the path loses them",
        "drops on the path",
    );
}
