//! Clients that ask again and have several servers: the arithmetic of their schedules.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use load::StubPolicy;
use load::stub::{ServerOrder, parse_retry};
use measure::counts::StubCounts;
use proptest::prelude::*;
use proto::Transport;

use crate::sim::{Run, Sim, TARGET, ms, ns};

/// The second server, and the third.
const SECOND: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 54));
const THIRD: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 55));

/// Clients of the first `servers` servers, with these times of attempts; a round trip takes 10 ms.
fn asking_again(sim: Sim, servers: usize, waits: Vec<Duration>) -> Sim {
    let sim = sim.one_way_delay_ms(5);
    sim.plan(|plan| {
        let all = [TARGET, SECOND, THIRD];
        let port = plan.target.port();
        let address = |ip: &IpAddr| SocketAddr::new(*ip, port);
        plan.timeout = waits.iter().sum();
        plan.stub = Some(Arc::new(StubPolicy {
            servers: all[..servers].iter().map(address).collect(),
            order: ServerOrder::First,
            waits,
            failover_rcodes: Vec::new(),
            dead_for: Duration::ZERO,
            race_delay: None,
        }));
    })
}

fn policy(sim: Sim, change: impl FnOnce(&mut StubPolicy)) -> Sim {
    sim.plan(|plan| change(Arc::make_mut(plan.stub.as_mut().unwrap())))
}

/// What is sent to a server is lost.
fn deaf(sim: Sim, server: IpAddr) -> Sim {
    sim.link_towards(server, |link| link.loss_share = 1.0)
}

fn stub(run: &Run) -> &StubCounts {
    &run.counts().stub
}

/// Queries that each server received.
fn received(run: &Run) -> Vec<u64> {
    run.servers
        .iter()
        .map(|server| server.queries.total())
        .collect()
}

/// Least and greatest latency.
fn latency(run: &Run) -> (u64, u64) {
    let latency = run.latency();
    (latency.min_ns().unwrap(), latency.max_ns().unwrap())
}

/// What is on the wire is what the record tells, at both ends, where nothing is lost.
fn assert_all_arrived(run: &Run) {
    let sent = run.sent() + stub(run).retransmitted;
    assert_eq!(run.responder.queries.total(), sent);
    assert_eq!(received(run), stub(run).sent_by_server);
}

#[test]
fn responses_come_from_the_second_server_after_exactly_the_schedule_if_the_first_is_deaf() {
    let sim = asking_again(Sim::seed(1).rate(10.0), 2, vec![ms(1_000), ms(3_000)]);
    let run = deaf(sim, TARGET).run();
    assert_eq!((run.offered(), run.sent(), run.responses()), (10, 10, 10));
    assert_eq!(latency(&run), (ns(1_010), ns(1_010)));
    let stub = stub(&run);
    assert_eq!((stub.retransmitted, stub.retransmitted_octets), (10, 370));
    assert_eq!(stub.responses_by_attempt, [0, 10]);
    assert_eq!(stub.responses_by_server, [0, 10]);
    assert_eq!(stub.sent_by_server, [10, 10]);
    assert_eq!((stub.failovers.timed_out, stub.failovers.total()), (10, 10));
    assert_eq!(received(&run), [0, 10]);
}

#[test]
fn query_that_nobody_answers_times_out_when_the_time_of_its_last_attempt_is_over() {
    let waits = vec![ms(200), ms(100), ms(50)];
    let sim = Sim::seed(2).rate(10.0).duration_ms(100);
    let sim = asking_again(sim, 1, waits);
    let run = sim.behaviour(|it| it.faults.loss = 1.0).run();
    assert_eq!((run.sent(), run.responses(), run.timeouts()), (1, 0, 1));
    assert_eq!(stub(&run).retransmitted, 2);
    assert_eq!(stub(&run).failovers.total(), 0);
    // The query was asked at the start.
    assert_eq!(run.record.phases.drain_ns, ns(350 - 100));
    assert_all_arrived(&run);
}

#[test]
fn schedule_of_glibc_with_three_servers_is_kept_to_the_nanosecond() {
    let retry = parse_retry("glibc").unwrap();
    let sim = asking_again(Sim::seed(3).rate(1.0), 3, retry.waits(3));
    let run = deaf(deaf(sim.clone(), TARGET), SECOND).run();
    // 5 s for the first, 3 s for the second.
    assert_eq!(latency(&run), (ns(8_010), ns(8_010)));
    assert_eq!(stub(&run).responses_by_attempt, [0, 0, 1]);
    let run = deaf(deaf(deaf(sim, TARGET), SECOND), THIRD).run();
    assert_eq!((run.timeouts(), stub(&run).retransmitted), (1, 5));
    assert_eq!(stub(&run).sent_by_server, [2, 2, 2]);
    assert_eq!(run.record.phases.drain_ns, ns(28_000 - 1_000));
}

#[test]
fn server_that_comes_back_answers_the_next_attempt() {
    let sim = asking_again(Sim::seed(4).rate(1.0), 1, vec![ms(3_000), ms(3_000)]);
    let run = sim.target_dead(0, 2_000).run();
    // With one server there is no other to try when it does not listen.
    assert_eq!(run.counts().port_unreachable, 1);
    assert_eq!(latency(&run), (ns(3_010), ns(3_010)));
    assert_eq!(stub(&run).responses_by_attempt, [0, 1]);
}

#[test]
fn response_to_the_first_attempt_that_comes_after_the_second_is_the_response() {
    let sim = Sim::seed(5).rate(1.0).duration_ms(4_000);
    let sim = asking_again(sim, 1, vec![ms(1_000), ms(1_000)]).one_way_delay_ms(600);
    let run = sim.run();
    assert_eq!((run.sent(), run.responses(), run.late()), (4, 4, 0));
    assert_eq!(latency(&run), (ns(1_200), ns(1_200)));
    assert_eq!(stub(&run).responses_by_attempt, [0, 4]);
    assert_eq!(stub(&run).retransmitted, 4);
    // The second attempts are answered too, those of the last queries after the end.
    assert!(run.counts().duplicate >= 2, "{}", run.counts().duplicate);
    assert_eq!(run.counts().unexpected.total(), 0);
}

#[test]
fn server_where_nobody_listens_is_left_at_once() {
    let sim = asking_again(Sim::seed(6).rate(10.0), 2, vec![ms(1_000); 2]);
    let run = sim.target_dead(0, 60_000).run();
    assert_eq!(latency(&run), (ns(20), ns(20)));
    assert_eq!(
        (stub(&run).failovers.refused, stub(&run).failovers.total()),
        (10, 10)
    );
    assert_eq!(run.counts().port_unreachable, 10);
    assert_eq!(stub(&run).responses_by_server, [0, 10]);
}

#[test]
fn rcode_that_sends_clients_on_is_taken_only_from_the_last_server() {
    let refusing = |failover_rcodes: Vec<u16>| {
        let sim = asking_again(Sim::seed(7).rate(10.0), 2, vec![ms(1_000); 2]);
        let sim = sim.behaviour(|it| it.faults.rcodes = vec![(5, 1.0)]);
        policy(sim, |policy| policy.failover_rcodes = failover_rcodes).run()
    };
    let run = refusing(vec![2, 5]);
    assert_eq!(run.counts().rcodes.by_rcode[5], 10);
    assert_eq!(latency(&run), (ns(20), ns(20)));
    assert_eq!(stub(&run).responses_not_taken, 10);
    assert_eq!(stub(&run).failovers.rcode, 10);
    assert_eq!(stub(&run).responses_by_server, [0, 10]);
    assert_all_arrived(&run);
    let run = refusing(vec![2]);
    assert_eq!(latency(&run), (ns(10), ns(10)));
    assert_eq!(stub(&run).responses_not_taken, 0);
}

#[test]
fn clients_choose_the_first_server_or_each_in_turn_or_stay() {
    let sent_by_server = |order: ServerOrder, is_deaf: bool| {
        let sim = Sim::seed(8).rate(1.0).duration_ms(10_000);
        let sim = asking_again(sim, 2, vec![ms(500); 2]);
        let sim = policy(sim, |policy| policy.order = order);
        let run = if is_deaf { deaf(sim, TARGET) } else { sim }.run();
        assert_eq!((run.responses(), run.sent()), (10, 10));
        stub(&run).sent_by_server.clone()
    };
    assert_eq!(sent_by_server(ServerOrder::First, false), [10]);
    assert_eq!(sent_by_server(ServerOrder::Rotate, false), [5, 5]);
    assert_eq!(sent_by_server(ServerOrder::Stay, false), [10]);
    assert_eq!(sent_by_server(ServerOrder::First, true), [10, 10]);
    assert_eq!(sent_by_server(ServerOrder::Rotate, true), [5, 10]);
    assert_eq!(sent_by_server(ServerOrder::Stay, true), [1, 10]);
}

#[test]
fn server_that_did_not_answer_is_left_out_for_its_time() {
    let sim = Sim::seed(9).rate(1.0).duration_ms(10_000);
    let sim = asking_again(sim, 2, vec![ms(500); 2]);
    let sim = policy(sim, |policy| policy.dead_for = ms(2_500));
    let run = deaf(sim, TARGET).run();
    // Left at 0.5 s, 3.5 s, 6.5 s and 9.5 s, and asked again 2.5 s after each.
    assert_eq!(stub(&run).sent_by_server, [4, 10]);
    assert_eq!(stub(&run).failovers.timed_out, 4);
}

#[test]
fn servers_that_are_asked_at_once_give_the_fastest_response() {
    let sim = asking_again(Sim::seed(10).rate(10.0), 2, vec![ms(1_000); 2]);
    let sim = policy(sim, |policy| policy.order = ServerOrder::All);
    let sim = sim.link_towards(TARGET, |link| link.delay = ms(105));
    let run = sim.run();
    assert_eq!((run.sent(), run.responses()), (10, 10));
    assert_eq!(latency(&run), (ns(10), ns(10)));
    assert_eq!(stub(&run).responses_by_server, [0, 10]);
    assert_eq!(stub(&run).responses_by_attempt, [10]);
    assert_eq!(stub(&run).retransmitted, 10);
    assert!(run.counts().duplicate >= 8, "{}", run.counts().duplicate);
}

#[test]
fn connection_that_is_refused_is_opened_at_the_next_server() {
    for transport in [
        Transport::Tcp,
        Transport::Dot,
        Transport::Doh2,
        Transport::Doq,
    ] {
        let sim = Sim::seed(11).over(transport).rate(10.0);
        let sim = asking_again(sim, 2, vec![ms(1_000); 2]).target_dead(0, 60_000);
        let run = sim.run();
        assert_eq!((run.offered(), run.responses()), (10, 10), "{transport}");
        assert_eq!(stub(&run).responses_by_server, [0, 10], "{transport}");
        assert_eq!(run.record.connections().failed.refused, 1, "{transport}");
        let failovers =
            run.record.warmup.counts.stub.failovers.connection + stub(&run).failovers.connection;
        assert_eq!(failovers, 1, "{transport}");
    }
}

#[test]
fn queries_on_a_connection_that_dies_are_asked_at_the_next_server() {
    for transport in [
        Transport::Tcp,
        Transport::Dot,
        Transport::Doh2,
        Transport::Doq,
    ] {
        let sim = Sim::seed(12).over(transport).rate(100.0).duration_ms(2_000);
        let sim = asking_again(sim, 2, vec![ms(300); 3]).clients(2);
        let run = sim.target_dead(1_000, 60_000).run();
        assert_eq!((run.offered(), run.responses()), (200, 200), "{transport}");
        assert_eq!(run.counts().lost(), 0, "{transport}");
        let by_server = &stub(&run).responses_by_server;
        let (first, second) = (by_server[0], by_server[1]);
        // Connections are set up for a little before the run starts.
        assert!((85..=115).contains(&first), "{transport}: {by_server:?}");
        assert_eq!(first + second, 200, "{transport}");
    }
}

#[test]
fn silent_connection_is_given_up_when_the_time_of_an_attempt_is_over() {
    // From 1 s on the first server takes queries and says nothing.
    let sim = Sim::seed(13).tcp().rate(10.0).duration_ms(2_000);
    let sim = asking_again(sim, 2, vec![ms(400); 3]);
    let run = sim.held_at(TARGET, crate::sim::at_ms(1_000), 60_000).run();
    assert_eq!((run.offered(), run.responses()), (20, 20));
    assert_eq!(stub(&run).connections_given_up, 1);
    assert_eq!(stub(&run).failovers.timed_out, 1);
    assert_eq!(stub(&run).responses_by_server.len(), 2);
    assert_eq!(run.counts().connection_losses, 0);
}

#[test]
fn race_is_won_by_the_server_that_is_established_first() {
    let racing = |delay_ms: u64| {
        let sim = asking_again(Sim::seed(14).tcp().rate(10.0), 2, vec![ms(2_000); 2]);
        let sim = sim.link_towards(TARGET, |link| link.delay = ms(delay_ms));
        policy(sim, |policy| policy.race_delay = Some(ms(250))).run()
    };
    let set_up = |run: &Run| run.record.groups[0].experience.clone().unwrap().set_up_mean;
    let both = |run: &Run| {
        let mut counts = run.record.warmup.counts.stub.clone();
        counts.add(stub(run));
        counts
    };
    // 5 ms back.
    let fast = racing(200);
    assert_eq!((both(&fast).raced, both(&fast).races_lost), (0, 0));
    assert_eq!(set_up(&fast).max_ns(), Some(ns(205)));
    let slow = racing(400);
    assert_eq!((both(&slow).raced, both(&slow).races_lost), (1, 1));
    assert_eq!(set_up(&slow).max_ns(), Some(ns(260)));
    assert_eq!(stub(&slow).responses_by_server, [0, 10]);
}

#[test]
fn race_goes_on_at_once_when_an_attempt_is_refused() {
    let sim = asking_again(Sim::seed(15).tcp().rate(10.0), 2, vec![ms(2_000); 2]);
    let sim = policy(sim, |policy| policy.race_delay = Some(ms(250)));
    let run = sim.target_dead(0, 60_000).run();
    let set_up = &run.record.groups[0]
        .experience
        .as_ref()
        .unwrap()
        .set_up_mean;
    assert_eq!(set_up.max_ns(), Some(ns(10)));
    assert_eq!(stub(&run).responses_by_server, [0, 10]);
}

fn any_order() -> impl Strategy<Value = ServerOrder> {
    prop_oneof![
        Just(ServerOrder::First),
        Just(ServerOrder::Rotate),
        Just(ServerOrder::Stay),
        Just(ServerOrder::All),
    ]
}

fn any_transport() -> impl Strategy<Value = Transport> {
    prop_oneof![
        3 => Just(Transport::Udp),
        2 => Just(Transport::Tcp),
        1 => Just(Transport::Dot),
        1 => Just(Transport::Doh2),
        1 => Just(Transport::Doq),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// [`Sim::try_run`] checks the accounting identity, and that each connection has one end.
    #[test]
    fn every_query_has_one_end_whatever_becomes_of_the_servers(
        (transport, order, servers) in (any_transport(), any_order(), 1_usize..=3),
        waits in prop::collection::vec(20_u64..400, 1..6),
        (loss, away_ms, length_ms) in (0.0_f64..0.5, 0_u64..900, 1_u64..900),
        (dead_ms, races, seed) in (0_u64..1_000, any::<bool>(), any::<u64>()),
        rcodes in prop_oneof![Just(vec![]), Just(vec![5_u16])],
    ) {
        let sim = Sim::seed(seed).over(transport).clients(3).rate(150.0);
        let sim = asking_again(sim, servers, waits.into_iter().map(ms).collect());
        let several = servers > 1;
        let is_datagram = transport == Transport::Udp;
        let sim = policy(sim, |policy| {
            if several && (is_datagram || order != ServerOrder::All) {
                policy.order = order;
            }
            if several {
                policy.dead_for = ms(dead_ms);
                policy.failover_rcodes = rcodes;
                policy.race_delay = (races && transport.is_stream()).then(|| ms(20));
            }
        });
        let sim = sim.target_dead(away_ms, length_ms);
        let sim = sim.behaviour(|it| it.faults.rcodes = vec![(5, 0.25)]);
        let sim = sim.link(|link| link.loss_share = if is_datagram { loss } else { 0.0 });
        let (record, servers) = sim.try_run_servers().map_err(TestCaseError::fail)?;
        let counts = &record.total.counts;
        let received: u64 = servers.iter().map(|server| server.queries.total()).sum();
        let sent = counts.sent + counts.stub.retransmitted + counts.retried_unprocessed;
        prop_assert!(received <= sent, "{received} received of {sent}");
        prop_assert_eq!(counts.stub.responses(), counts.responses);
    }
}
