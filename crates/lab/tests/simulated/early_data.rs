//! 0-RTT: a query that travels with the first octets of its connection.

use proto::Transport;

use crate::sim::{Sim, ms};

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
                assert_eq!(early.accepted, early.queries, "{name}");
                // All but the first of each client. Tickets come behind the response to early
                // data: a connection that ends with that one leaves no ticket for the next.
                let most = run.offered() - 4;
                let least = if idle { most } else { most / 2 };
                assert!(early.queries >= least, "{name}: {early:?}");
            }
        }
    }
}
