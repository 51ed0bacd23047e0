//! 0-RTT: a query that travels with the first octets of its connection.

use proto::Transport;

use crate::sim::{Sim, ms};

#[test]
fn closed_loop_sends_its_queries_early_once_it_has_tickets() {
    use Transport::{Doh2, Doh3, Doq, Dot};
    for transport in [Dot, Doh2, Doq, Doh3] {
        let run = Sim::seed(4)
            .over(transport)
            .resuming_early(1.0, 16_384)
            .clients(4)
            .one_way_delay_ms(5)
            .outstanding(4)
            .duration_ms(2_000)
            .plan(|plan| plan.connections.queries_max = Some(1))
            .run();
        let early = run.record.connections().early_data;
        assert_eq!(run.responses(), run.offered(), "{transport}");
        assert_eq!(early.queries, run.offered() - 4, "{transport}: {early:?}");
    }
}

#[test]
fn a_ticket_is_waited_for_over_a_long_path_too() {
    for transport in [Transport::Dot, Transport::Doq] {
        let run = Sim::seed(2)
            .over(transport)
            .resuming_early(1.0, 16_384)
            .clients(4)
            .one_way_delay_ms(150)
            .rate(2.0)
            .duration_ms(30_000)
            .plan(|plan| plan.connections.queries_max = Some(1))
            .run();
        let connections = run.record.connections();
        assert_eq!(run.responses(), run.offered(), "{transport}");
        assert_eq!(connections.tickets_missed, 0, "{transport}");
        assert_eq!(
            connections.early_data.queries,
            run.offered() - 4,
            "{transport}"
        );
    }
}

#[test]
fn a_target_that_takes_no_early_data_is_not_waited_for() {
    for transport in [Transport::Dot, Transport::Doq] {
        let run = Sim::seed(3)
            .over(transport)
            .resuming_early(1.0, 0)
            .clients(4)
            .one_way_delay_ms(5)
            .rate(20.0)
            .duration_ms(5_000)
            .plan(|plan| plan.connections.queries_max = Some(1))
            .run();
        let connections = run.record.connections();
        assert_eq!(connections.early_data.tried, 0, "{transport}");
        assert_eq!(connections.tickets_missed, 0, "{transport}");
        assert_eq!(connections.handshakes.full, 4, "{transport}");
    }
}

#[test]
fn open_loop_sends_its_queries_early_once_it_has_tickets() {
    use Transport::{Doh2, Doh3, Doq, Dot};
    for transport in [Dot, Doh2, Doq, Doh3] {
        for poisson in [false, true] {
            for idle in [false, true] {
                let sim = Sim::seed(1)
                    .over(transport)
                    .resuming_early(1.0, 16_384)
                    .clients(4)
                    .one_way_delay_ms(5)
                    .duration_ms(5_000)
                    .plan(|plan| match idle {
                        true => plan.connections.idle_timeout = Some(ms(40)),
                        false => plan.connections.queries_max = Some(1),
                    });
                let run = match poisson {
                    true => sim.poisson(20.0).run(),
                    false => sim.rate(20.0).run(),
                };
                let name = format!("{transport}, poisson: {poisson}, idle: {idle}");
                let early = run.record.connections().early_data;
                assert_eq!(run.responses(), run.offered(), "{name}");
                assert_eq!(early.rejected, 0, "{name}");
                assert_eq!(early.accepted, early.tried, "{name}");
                // Two queries of a client may come together by chance.
                assert!(early.queries >= early.accepted, "{name}: {early:?}");
                if !poisson {
                    assert_eq!(early.queries, early.accepted, "{name}: {early:?}");
                    assert!(early.queries >= run.offered() - 4, "{name}: {early:?}");
                }
                // All connections but the first of each client, and a few that opened before a
                // ticket was there: tickets come behind the response to early data.
                let connections = run.record.connections();
                assert!(connections.attempted > 40, "{name}: {connections:?}");
                assert!(
                    early.tried >= connections.attempted - 8,
                    "{name}: {early:?}"
                );
                assert_eq!(connections.tickets_missed, 0, "{name}");
            }
        }
    }
}
