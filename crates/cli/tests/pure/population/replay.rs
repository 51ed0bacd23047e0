//! A replayed capture keeps each client's order and timing.

use std::collections::BTreeMap;
use std::sync::Arc;

use capture::fit::ClientIdentity;
use capture::{Observed, ReplayBuilder, ReplayFilter, ReplayList};
use load::arrival::Arrival;
use load::{QuestionSource, Replay};
use proto::query::{Edns, QueryOptions};

use crate::recorder::{Seen, plan, run};
use crate::sample::{capture, observed_again};

fn list(queries: &[Observed], filter: ReplayFilter) -> ReplayList {
    let mut builder = ReplayBuilder::new(filter).unwrap();
    queries.iter().for_each(|query| {
        builder.add(query);
    });
    builder.finish().unwrap()
}

/// What the target sees when `list` is replayed, times counted from the first query.
fn replayed(list: ReplayList, rounds: u64, workers: u32) -> Vec<Seen> {
    let clients = list.clients;
    let queries = list.queries.len() as u64 * rounds;
    let replay = Replay::new(list.queries, clients, rounds).unwrap();
    let asked = (list.questions, QuestionSource::default());
    let queries_max = Some(replay.queries_total());
    let arrival = Arrival::Replay(Arc::new(replay));
    let mut plan = plan(asked, arrival, (clients, workers));
    plan.queries_max = queries_max;
    let (mut seen, offered) = run(plan);
    assert_eq!(offered, queries, "all queries of the capture are offered");
    let first = seen.iter().map(|seen| seen.at).min().unwrap();
    for one in &mut seen {
        one.at = proto::Instant::from_nanos(one.at.nanos_since(first));
    }
    seen
}

/// Time, QNAME and QTYPE of the queries of each client, in order.
type Told<K> = BTreeMap<K, Vec<(u64, Box<[u8]>, u16)>>;

fn told<K: Ord>(queries: &[Observed], who: impl Fn(&Observed) -> K) -> Told<K> {
    let mut told = Told::new();
    for query in queries {
        let question = &query.question;
        let entry = (query.at_ns, question.name.clone(), question.qtype);
        told.entry(who(query)).or_default().push(entry);
    }
    told
}

/// When, what and with which flags one client asked.
type OfClient = Vec<(u64, Box<[u8]>, u16)>;

/// The same clients, whatever they are called.
fn sorted<K>(told: Told<K>) -> Vec<OfClient> {
    let mut clients: Vec<_> = told.into_values().collect();
    clients.sort();
    clients
}

#[test]
fn each_client_asks_its_queries_in_their_order_at_their_times_to_the_nanosecond() {
    let mut queries = capture(3);
    queries.truncate(20_000);
    let first_ns = queries[0].at_ns;
    for (workers, speed) in [(1, 1.0), (3, 1.0), (2, 2.0)] {
        let filter = ReplayFilter {
            speed,
            ..ReplayFilter::default()
        };
        let seen = replayed(list(&queries, filter), 1, workers);
        let mut expected = queries.clone();
        for query in &mut expected {
            query.at_ns = ((query.at_ns - first_ns) as f64 / speed).round() as u64;
        }
        let again = observed_again(&seen);
        assert_eq!(
            sorted(told(&again, |query| query.client)),
            sorted(told(&expected, |query| query.client)),
            "{workers} workers, speed {speed}"
        );
        let flags = |queries: &[Observed]| {
            let mut flags = BTreeMap::new();
            for query in queries {
                *flags.entry(query.flags).or_insert(0) += 1;
            }
            flags
        };
        assert_eq!(flags(&again), flags(&expected));
    }
}

#[test]
fn rounds_follow_one_another_and_each_is_like_the_first() {
    let mut queries = capture(4);
    queries.truncate(2_000);
    let filter = ReplayFilter {
        identity: ClientIdentity::AddressAndPort,
        ..ReplayFilter::default()
    };
    let seen = observed_again(&replayed(list(&queries, filter.clone()), 3, 2));
    let mut times: Vec<u64> = seen.iter().map(|query| query.at_ns).collect();
    times.sort_unstable();
    let length_ns = times[2_000];
    for round in 0..3 {
        let own = &times[round * 2_000..][..2_000];
        let shifted = own.iter().map(|at| at - round as u64 * length_ns);
        assert!(shifted.eq(times[..2_000].iter().copied()), "round {round}");
    }
    let last_ns = times[1_999];
    assert_eq!(
        length_ns - last_ns,
        last_ns / 1_999,
        "a mean gap between rounds"
    );
}

#[test]
fn what_every_query_is_to_have_is_added_to_what_the_capture_has() {
    let mut queries = capture(5);
    queries.truncate(200);
    let filter = ReplayFilter {
        options: QueryOptions {
            recursion_desired: false,
            edns: Some(Edns {
                udp_payload_octets: 4_000,
                ..Edns::default()
            }),
            ..QueryOptions::default()
        },
        ..ReplayFilter::default()
    };
    let seen = observed_again(&replayed(list(&queries, filter), 1, 1));
    for (one, was) in seen.iter().zip(&queries) {
        assert!(one.flags.edns && !one.flags.recursion_desired);
        assert_eq!(one.flags.dnssec_ok, was.flags.dnssec_ok);
    }
}
