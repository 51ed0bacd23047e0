//! The load that is offered is the load that was asked for, to the query.

use proto::Transport;

use crate::sim::{Sim, ms, ns};

#[test]
fn twenty_thousand_a_second_for_ten_seconds_are_two_hundred_thousand() {
    let run = Sim::seed(1)
        .udp()
        .clients(20)
        .rate(20_000.0)
        .duration_ms(10_000)
        .run();
    assert_eq!((run.offered(), run.sent()), (200_000, 200_000));
    assert_eq!(run.record.offered_qps(), 20_000.0);
    assert_eq!(run.record.measured_ns, ns(10_000));
    assert_eq!(
        run.record.total.distributions.send_lateness.max_ns(),
        Some(0)
    );
    run.assert_all_arrived();
}

#[test]
fn workers_share_a_constant_rate_exactly() {
    for workers in [1, 2, 3, 5] {
        let run = Sim::seed(1)
            .clients(7)
            .workers(workers)
            .rate(997.0)
            .duration_ms(3_000)
            .run();
        assert_eq!(run.offered(), 3 * 997, "{workers} workers");
        let shares: Vec<u64> = run.record.workers.iter().map(|it| it.queries).collect();
        let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
        assert!(most - least <= 1, "{shares:?}");
        assert_eq!(shares.len(), workers as usize);
    }
}

#[test]
fn poisson_arrivals_have_the_rate_asked_for_and_gaps_that_vary() {
    let run = Sim::seed(11)
        .clients(4)
        .workers(2)
        .poisson(2_000.0)
        .duration_ms(10_000)
        .run();
    // 20,000 with a standard deviation of 141.
    assert!(run.offered().abs_diff(20_000) < 600, "{}", run.offered());
    // The counts of tenths of a second vary as those of a Poisson process: variance = mean.
    let sim = Sim::seed(11).poisson(2_000.0).duration_ms(10_000);
    let run = sim.plan(|plan| plan.interval = ms(100)).run();
    let counts: Vec<f64> = run
        .record
        .intervals_in_window()
        .map(|it| it.counts.offered as f64)
        .collect();
    assert_eq!(counts.len(), 100);
    let mean = counts.iter().sum::<f64>() / 100.0;
    let variance = counts
        .iter()
        .map(|count| (count - mean).powi(2))
        .sum::<f64>()
        / 99.0;
    assert!(
        (100.0..400.0).contains(&variance),
        "mean {mean}, variance {variance}"
    );
}

#[test]
fn number_of_queries_is_exact_whatever_the_workers_and_clients() {
    for transport in Transport::ALL {
        for (queries, clients, workers, outstanding) in [
            (1, 1, 1, 1),
            (1_000, 3, 1, 7),
            (1_001, 8, 3, 50),
            (7, 10, 4, 100),
        ] {
            let sim = Sim::seed(1)
                .over(transport)
                .one_way_delay_ms(1)
                .queries(queries);
            let sim = sim.clients(clients).workers(workers);
            let closed = sim.clone().outstanding(outstanding).run();
            let open = sim.rate(5_000.0).run();
            for run in [&closed, &open] {
                assert_eq!(
                    (run.offered(), run.responses()),
                    (queries, queries),
                    "{transport}"
                );
                assert_eq!(run.record.ended_by, measure::EndedBy::Queries);
                // A run by queries is measured until its last response, and that is counted.
                assert_eq!(run.record.responses_in_window, queries);
                run.assert_all_arrived();
            }
        }
    }
}

#[test]
fn warm_up_is_kept_out_of_the_figures_and_of_the_number_of_queries() {
    let sim = Sim::seed(1).clients(4).one_way_delay_ms(10).warmup_ms(700);
    let run = sim.clone().rate(1_000.0).duration_ms(1_000).run();
    assert_eq!(
        (run.offered(), run.record.warmup.counts.offered),
        (1_000, 700)
    );
    assert_eq!(run.record.warmup.length_ns(), ns(700));
    assert_eq!(run.record.phases.warmup_ns, ns(700));
    // As many responses to warm-up queries fall into the window as responses fall behind it.
    assert_eq!(run.record.responses_in_window, 1_000);
    run.assert_all_arrived();

    let run = sim.clone().rate(1_000.0).queries(500).run();
    assert_eq!(
        (run.offered(), run.record.warmup.counts.offered),
        (500, 700)
    );
    let run = sim.outstanding(8).queries(500).run();
    assert_eq!(run.offered(), 500);
    // Eight places of 20 ms for 0.7 s.
    assert_eq!(run.record.warmup.counts.offered, 280);
    run.assert_all_arrived();
}

#[test]
fn slow_start_is_kept_out_by_a_warm_up() {
    let sim = Sim::seed(1)
        .rate(1_000.0)
        .duration_ms(2_000)
        .warmup_ms(500)
        .one_way_delay_ms(1);
    let run = sim
        .behaviour(|behaviour| behaviour.stalls = vec![crate::sim::stall("at=100ms,for=300ms")])
        .run();
    assert_eq!(run.latency().max_ns(), Some(ns(2)));
    assert!(run.record.warmup.distributions.latency.max_ns() > Some(ns(250)));
}

#[test]
fn loops_ask_each_question_equally_often() {
    // A loop over 7 questions, three times, by two workers: the target sees 21 queries, and the
    // octets of three times the whole set.
    let text = "a. A\nbb. A\nccc. A\ndddd. A\neeeee. A\nffffff. A\nggggggg. A\n";
    for workers in [1, 2, 3] {
        let sim = Sim::seed(1)
            .names_text(text)
            .clients(3)
            .workers(workers)
            .queries(3 * 7);
        let sim = sim.outstanding(5);
        let set: u64 = sim
            .plan
            .questions
            .iter()
            .map(|it| it.message.len() as u64)
            .sum();
        let run = sim.run();
        assert_eq!(run.sent(), 21);
        assert_eq!(run.counts().sent_octets, 3 * set, "{workers} workers");
        assert_eq!(run.responder.octets_received.total(), 3 * set);
    }
}

#[test]
fn rate_cap_of_a_closed_loop_holds() {
    for transport in Transport::ALL {
        let sim = Sim::seed(1).over(transport).clients(4).one_way_delay_ms(1);
        let run = sim
            .clone()
            .outstanding_capped(100, 1_000.0)
            .duration_ms(2_000)
            .run();
        assert_eq!(run.offered(), 2_000, "{transport}");
        for interval in run.record.intervals_in_window() {
            assert!(
                interval.counts.offered <= 1_001,
                "{}",
                interval.counts.offered
            );
        }
        // A cap above what the places allow changes nothing: 4 places of 2 ms.
        let run = sim.outstanding_capped(4, 1e6).duration_ms(1_000).run();
        assert!(
            run.offered().abs_diff(2_000) <= 4,
            "{transport}: {}",
            run.offered()
        );
    }
}

#[test]
fn outstanding_is_a_limit_over_all_workers_and_clients() {
    for (clients, workers, outstanding) in [(1, 1, 64), (5, 2, 7), (10, 3, 4), (3, 3, 100)] {
        // Nothing is answered within the run, so that each place is used once.
        let sim = Sim::seed(1)
            .clients(clients)
            .workers(workers)
            .outstanding(outstanding);
        let run = sim.one_way_delay_ms(2_000).run();
        assert_eq!(run.offered(), u64::from(outstanding), "{clients} {workers}");
        assert_eq!(run.responses(), u64::from(outstanding));
    }
}

#[test]
fn more_open_queries_than_a_client_has_ids_are_counted_as_not_sent() {
    let sim = Sim::seed(1)
        .rate(100_000.0)
        .one_way_delay_ms(1_000)
        .timeout_ms(10_000);
    let run = sim.run();
    assert_eq!(run.offered(), 100_000);
    assert_eq!(run.sent(), 61_440);
    assert_eq!(run.counts().not_sent.no_free_id, 100_000 - 61_440);
}

#[test]
fn intervals_are_those_asked_for_and_add_up() {
    let sim = Sim::seed(1)
        .rate(1_000.0)
        .duration_ms(2_500)
        .one_way_delay_ms(20);
    let run = sim.plan(|plan| plan.interval = ms(1_000)).run();
    let lengths: Vec<u64> = run
        .record
        .intervals
        .iter()
        .map(|it| it.length_ns())
        .collect();
    let offered: Vec<u64> = run
        .record
        .intervals
        .iter()
        .map(|it| it.counts.offered)
        .collect();
    // Two whole intervals, a half, and the drain until the last response: it was due at 2.499 s.
    assert_eq!(lengths, [ns(1_000), ns(1_000), ns(500), ns(39)]);
    assert_eq!(offered, [1_000, 1_000, 500, 0]);
    // 40 queries are under way at any time.
    let responses: Vec<u64> = run
        .record
        .intervals
        .iter()
        .map(|it| it.counts.responses)
        .collect();
    assert_eq!(responses, [960, 1_000, 500, 40]);
    assert_eq!(run.record.responses_in_window, 960 + 1_000 + 500);
}

#[test]
fn run_over_ipv6_counts_as_one_over_ipv4() {
    for transport in Transport::ALL {
        let sim = Sim::seed(1).over(transport).rate(500.0).clients(3);
        let v4 = sim.clone().run();
        let v6 = sim
            .plan(|plan| plan.target = "[2001:db8::53]:53".parse().unwrap())
            .run();
        assert_eq!(v4.counts(), v6.counts(), "{transport}");
    }
}

#[test]
fn places_of_a_closed_loop_are_the_queries_open_at_the_end_of_every_interval() {
    // Nothing ends in the very instant in which an interval does.
    for workers in [1, 2] {
        let run = Sim::seed(3)
            .clients(3)
            .workers(workers)
            .outstanding(7)
            .one_way_delay_ms(313)
            .link(|link| link.loss_share = 0.3)
            .timeout_ms(709)
            .duration_ms(4_500)
            .run();
        assert!(run.timeouts() > 0);
        let open: Vec<Option<u64>> = run.record.intervals.iter().map(|it| it.open).collect();
        let (after, within) = open.split_last().unwrap();
        assert_eq!(within, [Some(7); 5], "{workers} workers");
        assert_eq!(*after, Some(0));
        assert_eq!(run.record.total.open, None);
    }
}
