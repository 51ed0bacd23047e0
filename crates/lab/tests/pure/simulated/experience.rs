//! What single clients experience, where the total of a run does not show it.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use driver::sim::Link;
use load::{Arrival, ClientArrival, Presence};
use measure::client_latency::ERROR_MAX;
use measure::{ClientExperience, GroupRecord, Histogram};
use proto::Transport;

use crate::sim::{Run, Sim, assert_near, at_ms, ms, ns};

/// The one group of a plain run.
fn group(run: &Run) -> &GroupRecord {
    match run.record.groups.as_slice() {
        [group] => group,
        groups => panic!("{} groups", groups.len()),
    }
}

fn experience(run: &Run) -> &ClientExperience {
    group(run).experience.as_ref().unwrap()
}

/// Asserts that quantile `p` over clients is `wanted_ns`, but for what a client's latencies are
/// rounded by.
#[track_caller]
fn assert_over_clients(histogram: &Histogram, p: f64, wanted_ns: u64) {
    let found = histogram.percentile(p).unwrap();
    let error = found.abs_diff(wanted_ns) as f64 / wanted_ns as f64;
    assert!(error <= ERROR_MAX + 0.004, "{found} ns for {wanted_ns} ns");
}

/// Twenty clients on as many addresses, the first of which is 250 ms further away.
fn one_of_twenty_far_away() -> Sim {
    let address = |number: u8| IpAddr::from(Ipv4Addr::new(192, 0, 2, 100 + number));
    let mut sim = Sim::seed(1).clients(20).one_way_delay_ms(1);
    sim.plan.local_addresses = (0..20).map(address).collect();
    let link = Link::constant(ms(251));
    sim.simulation.world.links_towards.push((address(0), link));
    sim
}

#[test]
fn client_far_away_shows_over_clients_and_not_in_the_total() {
    // In a closed loop it gets few responses, in 10 s some 40 of some 95,000.
    let run = one_of_twenty_far_away()
        .outstanding(20)
        .duration_ms(10_000)
        .run();
    let total = run.latency();
    assert_near(total.percentile(0.999), ns(2), 0);
    let experience = experience(&run);
    assert_over_clients(&experience.latency.p99, 0.95, ns(2));
    assert_over_clients(&experience.latency.p50, 1.0, ns(252));
    assert_eq!(experience.worst_percent_p99_ns(), Some(ns(252)));
    let worst = &experience.worst[0];
    assert_eq!((worst.client, worst.max_ns), (0, Some(ns(252))));
    assert!(worst.responses < 50 && experience.worst[1].p99_ns < Some(ns(3)));
    let fairness = experience.fairness().unwrap();
    assert!((0.94..0.96).contains(&fairness), "{fairness}");
}

#[test]
fn workers_number_the_clients_of_a_run_through() {
    // The third of four workers has clients 10 to 14.
    let mut sim = one_of_twenty_far_away().workers(4).rate(200.0);
    sim.plan.local_addresses.rotate_right(12);
    let run = sim.duration_ms(2_000).run();
    assert_eq!(experience(&run).worst[0].client, 12);
    let alone = {
        let mut sim = one_of_twenty_far_away().workers(1).rate(200.0);
        sim.plan.local_addresses.rotate_right(12);
        sim.duration_ms(2_000).run()
    };
    let (four, one) = (experience(&run), experience(&alone));
    assert_eq!(four.latency, one.latency);
    assert_eq!(four.responses, one.responses);
}

#[test]
fn clients_served_alike_are_served_fairly() {
    for transport in [Transport::Udp, Transport::Tcp, Transport::Doq] {
        let sim = Sim::seed(2).over(transport).clients(10).workers(2);
        let run = sim.rate(100.0).duration_ms(3_000).one_way_delay_ms(5).run();
        let experience = experience(&run);
        assert_eq!(experience.fairness(), Some(1.0), "{transport}");
        assert_eq!(experience.asked(), 10, "{transport}");
        assert_eq!(experience.rate_qps(0.5, 3.0), Some(10.0), "{transport}");
        assert_eq!(experience.unanswered_ppm.max_ns(), Some(0), "{transport}");
        let connections = u64::from(transport.has_connections());
        assert_eq!(experience.connections.max_ns(), Some(connections));
    }
}

#[test]
fn clients_that_come_late_and_leave_early_have_the_rate_of_their_presence() {
    let mut sim = Sim::seed(4).clients(10).rate(100.0).warmup_ms(1_000);
    // Of the measured run from 1 s to 5 s they are there for 2.5 s.
    sim.plan.presence = Presence {
        joins_after: Duration::from_millis(2_000),
        leaves_after: Some(Duration::from_millis(4_500)),
        ..Presence::default()
    };
    let run = sim.duration_ms(4_000).run();
    let experience = experience(&run);
    assert_eq!(experience.queries.sum_ns(), 250);
    assert_eq!(experience.rate_qps(0.5, 4.0), Some(10.0));
}

#[test]
fn queries_of_the_warm_up_are_no_experience_but_its_connections_are() {
    let sim = Sim::seed(3).tcp().clients(4).rate(40.0).warmup_ms(2_000);
    let run = sim.duration_ms(1_000).one_way_delay_ms(5).run();
    let experience = experience(&run);
    assert_eq!(experience.queries.sum_ns(), 40);
    assert_eq!(experience.connections.sum_ns(), 4);
    // Each had asked 100 ms before.
    assert_eq!(experience.first_after_idle.count(), 0);
    assert_near(experience.set_up_mean.percentile(0.5), ns(10), 0);
}

#[test]
fn loss_at_single_clients_is_a_share_of_each() {
    // The network drops all that is sent in the third of four seconds, and each client asks
    // once a second, the first five in the first half of it.
    let sim = Sim::seed(4).clients(10).rate(10.0).duration_ms(4_000);
    let mut sim = sim.timeout_ms(500);
    sim.simulation.world.outages.push(driver::sim::Outage {
        start: at_ms(2_000),
        length: ms(500),
    });
    let run = sim.run();
    let lost = run.timeouts();
    assert!((4..=6).contains(&lost), "{lost}");
    let experience = experience(&run);
    assert_eq!(experience.unanswered_ppm.max_ns(), Some(250_000));
    assert_eq!(
        experience.unanswered_ppm.sum_ns(),
        250_000 * u128::from(lost)
    );
    assert_eq!(experience.unsuccessful_ppm, experience.unanswered_ppm);
    let refused = Sim::seed(4).clients(10).rate(10.0).duration_ms(4_000);
    let refused = refused
        .behaviour(|it| it.faults.rcodes = vec![(5, 1.0)])
        .run();
    let experience = self::experience(&refused);
    assert_eq!(experience.unanswered_ppm.max_ns(), Some(0));
    assert_eq!(experience.unsuccessful_ppm.min_ns(), Some(1_000_000));
}

#[test]
fn truncated_responses_are_of_no_use_to_a_client_that_does_not_ask_again() {
    for fallback in [false, true] {
        let sim = Sim::seed(4).clients(10).rate(10.0).duration_ms(2_000);
        let sim = sim.behaviour(|it| it.faults.truncated = 1.0);
        let run = sim.plan(|plan| plan.tcp_fallback = fallback).run();
        let useless = &experience(&run).unsuccessful_ppm;
        let expected = if fallback { 0 } else { 1_000_000 };
        assert_eq!(useless.min_ns(), Some(expected), "fallback: {fallback}");
    }
}

#[test]
fn first_query_after_idleness_pays_for_the_connection_and_warm_ones_do_not() {
    let sim = Sim::seed(5).tcp().clients(5).one_way_delay_ms(10);
    let sim = sim.duration_ms(40_000);
    let run = sim
        .plan(|plan| {
            plan.arrival = Arrival::Clients(ClientArrival::Constant { rate_qps: 0.25 });
            plan.connections.idle_timeout = Some(ms(2_000));
        })
        .run();
    // One query every 4 s: each is after idleness, and all but the first need a connection.
    let experience = experience(&run);
    assert_eq!(experience.first_after_idle.count(), run.responses());
    assert_near(experience.first_after_idle.min_ns(), ns(20), 0);
    assert_near(experience.first_after_idle.percentile(0.5), ns(40), 0);
    assert!(group(&run).warm_latency().unwrap().is_empty());
    assert_eq!(experience.connections.min_ns(), Some(10));
    assert_eq!(experience.set_up_mean.max_ns(), Some(ns(20)));

    // A query every 500 ms finds its connection; the first one of each client is after idleness.
    let run = Sim::seed(5).tcp().clients(5).rate(10.0).duration_ms(4_000);
    let run = run.one_way_delay_ms(10).run();
    let warm = group(&run).warm_latency().unwrap();
    assert_eq!(self::experience(&run).first_after_idle.count(), 5);
    assert_eq!((warm.count(), warm.max_ns()), (35, Some(ns(20))));
}

#[test]
fn intervals_tell_how_many_connections_carried_queries() {
    // Ten connections; one query a second for two seconds, then one to each.
    let sim = Sim::seed(6).tcp().clients(10).rate(2.0).duration_ms(5_000);
    let run = sim.one_way_delay_ms(1).run();
    let active = run.record.intervals.iter();
    let active: Vec<u64> = active.map(|it| it.connections_active).collect();
    assert_eq!(active[..5], [2, 2, 2, 2, 2]);
    let open = run.record.intervals.iter().map(|it| it.connections_open);
    assert!(open.take(5).all(|open| open == 10));
    assert_eq!(run.record.total.connections_active, 2);

    // A connection that waits for its response at the end of an interval is active in the next.
    let sim = Sim::seed(6).tcp().clients(1).rate(0.5).duration_ms(4_000);
    let run = sim.one_way_delay_ms(600).run();
    let active = run.record.intervals.iter();
    let active: Vec<u64> = active.map(|it| it.connections_active).collect();
    assert_eq!(active[..4], [1, 1, 1, 1]);
}

#[test]
fn run_without_statistics_of_single_clients_says_so() {
    let sim = Sim::seed(7).clients(3).one_way_delay_ms(1);
    let run = sim.plan(|plan| plan.client_statistics = false).run();
    assert_eq!(group(&run).experience, None);
    assert!(group(&run).warm_latency().is_none());
}
