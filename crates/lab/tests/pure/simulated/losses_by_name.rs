//! Names whose queries get no response, counted by question and named by the verdict.

use load::question_source::Order;
use measure::losses_by_question::LossesByQuestion;
use measure::{Limit, RunRecord};
use proto::Transport;

use crate::sim::{Sim, ms};

const UDP: Transport = Transport::Udp;

fn sim() -> Sim {
    let sim = Sim::seed(7)
        .over(UDP)
        .one_way_delay_ms(1)
        .duration_ms(3_000);
    sim.clients(4).timeout_ms(400).names(3).rate(900.0)
}

fn losses(record: &RunRecord) -> &LossesByQuestion {
    record.losses_by_question.as_ref().unwrap()
}

#[test]
fn losses_are_counted_by_question_with_any_number_of_workers() {
    for workers in 1..=4 {
        let run = sim()
            .workers(workers)
            .warmup_ms(500)
            .silent_names([1])
            .run();
        let losses = losses(&run.record);
        assert_eq!((losses.questions, losses.counted), (3, 3));
        assert_eq!(losses.lost, run.record.total.counts.timeouts);
        assert_eq!(losses.questions_with_losses, 1);
        let first = &losses.most[0];
        assert_eq!((&*first.name, &*first.qtype), ("record-0001.example.", "A"));
        // As many as were sent, to one query a worker.
        assert!(first.sent.unwrap().abs_diff(first.lost) <= u64::from(workers));
        assert_eq!(first.lost, 900);
        assert_eq!(losses.asked.unwrap().silent, 1);
    }
}

#[test]
fn losses_of_connections_are_counted_by_question_too() {
    let sim = sim().over(Transport::Tcp).names(2);
    let sim = sim.behaviour(|it| {
        it.delay = responder::Delay::Constant(ms(5));
        it.end_after = Some((30, responder::behaviour::ConnectionEnd::Reset));
    });
    let record = sim.run().record;
    assert!(record.total.counts.connection_losses > 0);
    let ended = &record.connections().ended_after;
    assert_eq!(ended.connections, record.connections().ended_by_target());
    assert!(
        ended.queries_squared <= 30 * 30 * ended.connections,
        "{ended:?}"
    );
    assert!(ended.mean_and_deviation().unwrap().1 < 0.6, "{ended:?}");
    // That they add up is checked of every simulated run.
    assert!(losses(&record).lost > 0);
}

#[test]
fn names_beyond_the_first_1024_are_others() {
    let lossy = sim()
        .names(2_000)
        .duration_ms(4_000)
        .behaviour(|it| it.faults.loss = 1.0);
    let record = lossy.run().record;
    let losses = losses(&record);
    assert_eq!(
        (losses.questions, losses.counted, losses.most.len()),
        (2_000, 1_024, 20)
    );
    assert!(
        losses.lost > 1_024 && losses.lost_of_others > 900,
        "{losses:?}"
    );
    let one = sim().names(1).run().record;
    assert_eq!(one.losses_by_question, None);
}

#[test]
fn a_dropped_name_is_named_and_no_rate() {
    let shuffled = |sim: Sim| sim.plan(|plan| plan.question_source.order = Order::Shuffled);
    let evidence = "all queries for 1 of 3 names got no response, the others did: \
                    record-0001.example. A";
    // Back-ends in turn look the same where names are asked in their order.
    for (sim, limit) in [
        (sim(), Limit::Unknown),
        (shuffled(sim()), Limit::Server),
        (sim().clients(3), Limit::Unknown),
        (sim().outstanding(30), Limit::Unknown),
    ] {
        let verdict = sim.silent_names([1]).run().record.verdict;
        assert_eq!(verdict.limit, limit, "{verdict:#?}");
        assert!(verdict.evidence[0].contains(evidence), "{verdict:#?}");
        assert!(
            !format!("{verdict:#?}").contains("fixed rate"),
            "{verdict:#?}"
        );
    }
}

/// A limit that admits two of three evenly spaced queries drops one name of three in turn.
#[test]
fn a_limit_that_meets_one_name_in_turn_is_not_ruled_out() {
    let limited = |rate_qps: f64| {
        let sim = sim().rate(rate_qps).behaviour(|it| {
            it.rate_qps_max = Some(600.0);
            it.rate_queue_max = 0;
            it.rate_burst = Some(ms(1));
        });
        sim.run().record.verdict.evidence[0].clone()
    };
    let evidence = limited(900.0);
    let is_open = evidence.contains("a limit of 600 qps would look the same");
    assert!(
        is_open || evidence.contains("cannot tell a limit of 60"),
        "{evidence}"
    );
    let evidence = limited(1_000.0);
    assert!(evidence.contains("cannot tell a limit of 60"), "{evidence}");
}

#[test]
fn losses_at_random_are_not_by_name() {
    for loss in [0.05, 0.3, 0.6] {
        let sim = sim().behaviour(|it| it.faults.loss = loss);
        let verdict = sim.run().record.verdict;
        let evidence = &verdict.evidence[0];
        assert!(!evidence.contains("all queries for"), "{verdict:#?}");
    }
}
