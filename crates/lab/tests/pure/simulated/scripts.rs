//! Clients that follow a script, against the responder.

use measure::ScriptRecord;
use measure::record::EndedBy;
use proto::Transport;
use responder::FaultShares;

use crate::sim::{Run, Sim, ms};

const ALL: [Transport; 6] = [
    Transport::Udp,
    Transport::Tcp,
    Transport::Dot,
    Transport::Doh2,
    Transport::Doh3,
    Transport::Doq,
];

fn script(run: &Run) -> &ScriptRecord {
    run.record.groups[0].script.as_ref().unwrap()
}

fn counter(run: &Run, name: &str) -> f64 {
    let counters = &script(run).metrics.counters;
    counters.get(name).copied().unwrap_or(0.0)
}

fn clients(mut sim: Sim, clients: u32) -> Sim {
    sim.plan.clients = clients;
    sim
}

#[test]
fn asking_and_sleeping_take_the_time_they_take_over_every_transport() {
    for transport in ALL {
        let sim = Sim::seed(1).over(transport).one_way_delay_ms(5);
        let sim = clients(sim, 3).script(
            "function client(c)
               while true do
                 local r = c:query('test-record-1.throng.test', 'A')
                 observe('ms', r.latency_ms)
                 c:sleep(0.1)
               end
             end",
        );
        let run = sim.run();
        // One every 110 ms of a second, the first at once.
        assert_eq!((run.offered(), run.responses()), (30, 30), "{transport}");
        let observed = &script(&run).metrics.observed["ms"];
        // The last responses come when the run has ended, and with it the scripts.
        assert_eq!(observed.count(), 27, "{transport}");
        assert_eq!(observed.min_ns(), Some(10_000), "{transport}");
        assert_eq!(
            run.record.total.distributions.latency.max_ns(),
            Some(10_000_000)
        );
        assert_eq!(
            run.record.total.distributions.send_lateness.max_ns(),
            Some(0)
        );
        assert_eq!(script(&run).failures.total, 0);
    }
}

#[test]
fn a_run_ends_when_all_clients_have_returned() {
    let sim = clients(Sim::seed(1).one_way_delay_ms(5), 4).script(
        "function client(c)
           for i = 1, c.index do c:query('test-record-' .. i .. '.throng.test') end
           count(c.group, c.index)
         end",
    );
    let run = sim.run();
    assert_eq!((run.offered(), run.responses()), (10, 10));
    assert_eq!(script(&run).finished, 4);
    assert_eq!(counter(&run, "clients"), 10.0);
    assert_eq!(run.record.ended_by, EndedBy::Queries);
    assert_eq!(run.record.measured_ns, 40_000_000);
}

#[test]
fn a_number_of_queries_ends_a_run_of_scripts_too() {
    let sim = clients(Sim::seed(1).one_way_delay_ms(5), 3).queries(100);
    let run = sim
        .script("function client(c) while true do c:query('a.test') end end")
        .run();
    assert_eq!((run.offered(), run.responses()), (100, 100));
}

#[test]
fn scripts_see_rcodes_and_time_outs_and_lost_connections() {
    let ask = "function client(c)
        while true do
          local r = c:query('test-record-1.throng.test', 'A')
          count(r.rcode or r.lost)
          c:sleep(0.01)
        end
      end";
    let sim = Sim::seed(1).one_way_delay_ms(5).timeout_ms(100);
    let servfail = sim.clone().script(ask).behaviour(|behaviour| {
        behaviour.faults.rcodes = vec![(2, 1.0)];
    });
    let run = servfail.run();
    assert_eq!(counter(&run, "SERVFAIL"), 50.0);
    let silent = sim.clone().script(ask).behaviour(|behaviour| {
        behaviour.faults.loss = 1.0;
    });
    let run = silent.run();
    // The last is still open when the run ends.
    assert_eq!(counter(&run, "timeout"), 9.0);
    assert_eq!((run.counts().timeouts, run.offered()), (10, 10));
    let broken = sim.tcp().script(ask).behaviour(|behaviour| {
        behaviour.faults.reset = 1.0;
        behaviour.end_after = Some((3, responder::ConnectionEnd::Reset));
    });
    let run = broken.run();
    assert!(counter(&run, "connection") + counter(&run, "NOERROR") > 5.0);
    assert_eq!(
        counter(&run, "connection"),
        run.counts().connection_losses as f64
    );
}

#[test]
fn a_script_that_fails_or_runs_away_ends_its_client_and_no_other() {
    let sim = clients(Sim::seed(1).one_way_delay_ms(5), 3).script(
        "function client(c)
           c:query('a.test')
           if c.index == 1 then error('no more') end
           if c.index == 2 then while true do end end
           while true do c:sleep(0.1) c:query('a.test') end
         end",
    );
    let run = sim.run();
    // Two once, and the third one 10 times: at 0 ms and then every 110.
    assert_eq!(run.offered(), 2 + 10);
    let failures = &script(&run).failures;
    assert_eq!(failures.total, 2);
    let messages: Vec<&str> = failures.messages.iter().map(|it| &*it.message).collect();
    assert_eq!(messages[0], "test.lua:3: no more");
    assert!(
        messages[1].starts_with("test.lua:4: stopped after"),
        "{messages:?}"
    );
    assert_eq!(run.record.ended_by, EndedBy::Duration);
    let warnings = run.record.warnings.join(" ");
    assert!(
        warnings.contains("clients ended because their script failed"),
        "{warnings}"
    );
}

#[test]
fn a_connection_that_a_script_closes_is_opened_again_by_its_next_query() {
    for transport in ALL {
        let sim = Sim::seed(1).over(transport).one_way_delay_ms(1).script(
            "function client(c)
               for i = 1, 5 do
                 c:query('test-record-1.throng.test')
                 c:send('test-record-2.throng.test')
                 c:close()
                 c:sleep(0.1)
               end
               c:wait()
             end",
        );
        let run = sim.run();
        assert_eq!((run.offered(), run.responses()), (10, 10), "{transport}");
        let connections = run.record.connections();
        let opened = if transport == Transport::Udp { 0 } else { 5 };
        assert_eq!(connections.attempted, opened, "{transport}");
        assert_eq!(connections.closed_by_client, opened, "{transport}");
    }
}

#[test]
fn truncated_responses_are_asked_again_over_tcp_and_the_script_sees_the_first() {
    let mut sim = Sim::seed(1).one_way_delay_ms(5).script(
        "function client(c)
           for i = 1, 20 do
             local r = c:query('n' .. i .. '.throng.test')
             if r.truncated then count('truncated') end
             c:sleep(0.02)
           end
         end",
    );
    sim.plan.tcp_fallback = true;
    let run = sim
        .behaviour(|behaviour| behaviour.faults.truncated = 1.0)
        .run();
    assert_eq!(counter(&run, "truncated"), 20.0);
    assert_eq!(run.counts().tcp_fallback.responses, 20);
}

#[test]
fn a_late_response_to_a_name_of_a_script_is_known_as_late() {
    let sim = Sim::seed(1).one_way_delay_ms(100).timeout_ms(150);
    let run = sim
        .script(
            "function client(c)
               for i = 1, 3 do c:query('n' .. i .. '.throng.test') end
               c:sleep(0.2)
             end",
        )
        .run();
    assert_eq!((run.counts().timeouts, run.counts().late), (3, 3));
}

const SHIPPED: [&str; 3] = [
    include_str!("../../../../../scenarios/scripts/browser.lua"),
    include_str!("../../../../../scenarios/scripts/stub.lua"),
    include_str!("../../../../../scenarios/scripts/water-torture.lua"),
];

#[test]
fn scripts_that_ship_run_over_every_transport_whatever_goes_wrong_and_the_same_again() {
    for (transport, seed) in ALL.into_iter().zip(1..) {
        for text in SHIPPED {
            let mut sim = clients(Sim::seed(seed).over(transport), 20)
                .script(text)
                .duration_ms(30_000)
                .timeout_ms(2_000)
                .one_way_delay_ms(10)
                .link(|link| link.loss_share = 0.02)
                .behaviour(|behaviour| {
                    behaviour.faults = FaultShares {
                        loss: 0.05,
                        rcodes: vec![(2, 0.1)],
                        truncated: 0.05,
                        ..FaultShares::default()
                    };
                    behaviour.idle_timeout = Some(ms(3_000));
                });
            sim.plan.workers = 2;
            let run = sim.clone().run();
            assert!(run.responses() > 100, "{transport}: {}", run.responses());
            assert_eq!(
                script(&run).failures.total,
                0,
                "{:?}",
                script(&run).failures
            );
            let again = sim.run();
            assert!(run.record == again.record, "{transport}");
        }
    }
}

#[test]
fn a_script_that_cannot_be_used_is_an_error_before_anything_is_sent() {
    let what = Sim::seed(1)
        .script("function client(c")
        .try_run()
        .map(drop)
        .unwrap_err();
    assert!(what.starts_with("test.lua:1: "), "{what}");
}

#[test]
fn a_time_that_passes_only_by_the_script_passes() {
    let sim = clients(Sim::seed(1), 5).duration_ms(10);
    let run = sim
        .script("function client(c) while true do c:sleep(0) end end")
        .run();
    assert_eq!(run.offered(), 0);
    assert_eq!(run.record.ended_by, EndedBy::Duration);
}
