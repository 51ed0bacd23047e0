//! How questions are chosen and generated, over every transport: what is asked is what is matched.

use std::sync::Arc;

use load::QuestionSource;
use load::question_source::{Labels, Order, Repeats};
use measure::scenario::QuestionOrder;
use proto::Transport;
use proto::doh::{DohRequest, Method};
use responder::{ConnectionEnd, Zone};

use crate::sim::{Run, Sim, ms};

const NOERROR: usize = 0;
const NXDOMAIN: usize = 3;

/// Ten clients of two workers that ask 2,000 questions.
fn sim(source: QuestionSource) -> Sim {
    let sim = Sim::seed(5).clients(10).workers(2).outstanding(40);
    let sim = sim.one_way_delay_ms(1).queries(2_000);
    sim.plan(|plan| plan.question_source = source)
}

fn labelled(labels: Labels) -> QuestionSource {
    QuestionSource {
        labels: Some(labels),
        ..QuestionSource::default()
    }
}

fn random() -> QuestionSource {
    labelled(Labels::unique(None, 9).unwrap())
}

/// Everything asked was answered, and nothing came that was not asked for.
fn assert_all_matched(run: &Run, what: &str) {
    let counts = run.counts();
    assert_eq!((counts.offered, counts.responses), (2_000, 2_000), "{what}");
    assert_eq!(counts.rcodes.by_rcode[NOERROR], 2_000, "{what}");
    let besides = counts.unexpected.total() + counts.duplicate + counts.late;
    assert_eq!(besides, 0, "{what}: {counts:?}");
    run.assert_all_arrived();
}

#[test]
fn every_generated_question_is_matched_over_every_transport() {
    let key = "hmac-sha256:throng.test:c2VjcmV0".parse::<proto::tsig::Key>();
    let key = key.unwrap();
    for transport in Transport::ALL {
        for source in [
            random(),
            labelled(Labels::random(None, 3).unwrap()),
            labelled(Labels::counted(None).unwrap()),
            QuestionSource {
                qtypes: Some("A=60,AAAA=30,HTTPS=10".parse().unwrap()),
                ..random()
            },
        ] {
            let sim = sim(source).over(transport);
            assert_all_matched(&sim.clone().run(), &format!("{transport}"));
            let signed = sim.plan(|plan| plan.tsig = Some(key.clone())).run();
            assert_all_matched(&signed, &format!("{transport}, signed"));
        }
    }
}

#[test]
fn generated_questions_go_into_the_uri_of_get() {
    for transport in [Transport::Doh2, Transport::Doh3] {
        let sim = sim(random()).over(transport);
        let get = DohRequest::new(Method::Get, "https://localhost/dns-query", &[]);
        let sim = sim.plan(|plan| plan.doh = Some(Arc::new(get.unwrap())));
        assert_all_matched(&sim.run(), &format!("{transport}"));
    }
}

/// A zone with the first thousand labels of a walk, of which every fifth is missing.
fn walked_zone() -> Arc<Zone> {
    let mut text = "$ORIGIN walk.test.\n$TTL 60\n\
                    @ SOA ns hostmaster 1 3600 600 86400 1\n@ NS ns\nns A 192.0.2.53\n"
        .to_owned();
    for number in (0..1_000).filter(|number| number % 5 != 0) {
        text.push_str(&format!("{number:03} A 192.0.2.1\n"));
    }
    Arc::new(Zone::from_text(&text, None).unwrap())
}

#[test]
fn a_walk_asks_each_name_of_a_zone_once_each_time_around() {
    for transport in Transport::ALL {
        let labels = Labels::counted(Some((3, 3))).unwrap();
        let sim = sim(labelled(labels)).over(transport);
        let sim = sim.names_text("walk.test A");
        let run = sim.responder(|it| it.zone = walked_zone()).run();
        let rcodes = &run.counts().rcodes.by_rcode;
        assert_eq!((rcodes[NOERROR], rcodes[NXDOMAIN]), (1_600, 400));
        assert_eq!(run.counts().unexpected.total(), 0, "{transport}");
    }
}

#[test]
fn a_shuffled_list_is_asked_through_each_time_around() {
    let names: String = (0..1_000)
        .map(|it| format!("{it:03}.walk.test A\n"))
        .collect();
    let sim = sim(QuestionSource {
        order: Order::Shuffled,
        ..QuestionSource::default()
    });
    let run = sim
        .names_text(&names)
        .responder(|it| it.zone = walked_zone())
        .run();
    let rcodes = &run.counts().rcodes.by_rcode;
    assert_eq!((rcodes[NOERROR], rcodes[NXDOMAIN]), (1_600, 400));
    let order = run.record.scenario.questions.choice.order;
    assert_eq!(order, QuestionOrder::Shuffled);
}

#[test]
fn qtypes_of_a_mix_replace_those_of_the_list() {
    let qtypes = "A=1,TXT=3".parse().unwrap();
    let sim = sim(QuestionSource {
        qtypes: Some(qtypes),
        ..QuestionSource::default()
    });
    let sim = sim.names_text("x.walk.test MX");
    let text =
        "$ORIGIN walk.test.\n@ 60 SOA ns h 1 1 1 1 1\nx 60 TXT \"0123456789\"\nx 60 A 192.0.2.1\n";
    let zone = Arc::new(Zone::from_text(text, None).unwrap());
    let run = sim.responder(|it| it.zone = zone).run();
    assert_all_matched(&run, "qtypes");
    // A record of type A has 16 octets here, one of type TXT 23, and MX has none.
    let counts = run.counts();
    let of_answers = counts.received_octets - counts.sent_octets - 2_000 * 16;
    assert_eq!(of_answers % 7, 0);
    assert!((1_420..1_580).contains(&(of_answers / 7)), "{of_answers}");
    let records = &run.record.scenario.questions.choice.qtypes;
    let shares: Vec<(&str, f64)> = records.iter().map(|it| (&*it.qtype, it.share)).collect();
    assert_eq!(shares, [("A", 0.25), ("TXT", 0.75)]);
}

#[test]
fn duplicate_late_and_foreign_responses_are_told_apart_from_generated_ones() {
    let sim = sim(random()).behaviour(|it| {
        it.duplicate_share = 0.1;
        it.faults.wrong_question = 0.05;
    });
    let run = sim.plan(|plan| plan.timeout = ms(50)).run();
    let counts = run.counts();
    assert_eq!(counts.responses + counts.timeouts, 2_000);
    assert!((50..150).contains(&counts.timeouts), "{counts:?}");
    assert!((130..270).contains(&counts.duplicate), "{counts:?}");
    assert!(counts.unexpected.wrong_question >= counts.timeouts);
    assert_eq!(counts.unexpected.wrong_id, 0);

    let sim = self::sim(random()).behaviour(|it| it.delay = crate::sim::delay("60ms"));
    let run = sim.plan(|plan| plan.timeout = ms(50)).run();
    assert_eq!(
        (run.timeouts(), run.counts().unexpected.total()),
        (2_000, 0)
    );
    assert!(run.late() > 1_900, "{}", run.late());
}

#[test]
fn truncated_answers_are_asked_for_again_by_the_same_generated_name() {
    let sim = sim(random()).behaviour(|it| it.faults.truncated = 1.0);
    let run = sim.plan(|plan| plan.tcp_fallback = true).run();
    let fallback = &run.counts().tcp_fallback;
    assert_eq!((fallback.sent, fallback.responses), (2_000, 2_000));
    assert_eq!(run.counts().unexpected.total(), 0);
}

#[test]
fn queries_that_were_not_processed_are_sent_again_with_their_generated_name() {
    let end = Some((7, ConnectionEnd::GoAway));
    for transport in [Transport::Doh2, Transport::Doh3] {
        let sim = sim(random()).over(transport);
        let run = sim.behaviour(|it| it.end_after = end).run();
        let counts = run.counts();
        assert!(counts.retried_unprocessed > 100, "{transport}: {counts:?}");
        assert_eq!(counts.responses, 2_000, "{transport}: {counts:?}");
        assert_eq!(counts.unexpected.total(), 0, "{transport}");
    }
}

#[test]
fn repeats_are_counted_and_are_the_share_asked_for() {
    let source = QuestionSource {
        repeats: Some(Repeats {
            share: 0.8,
            ttl: Some(ms(500)),
            names_max: 100,
        }),
        ..random()
    };
    let sim = sim(source).warmup_ms(100).names_text("zone.test A");
    for sim in [sim.clone(), sim.rate(10_000.0)] {
        let run = sim.run();
        let repeated = run.counts().repeated;
        assert!((1_560..=1_640).contains(&repeated), "{repeated}");
        let warmup = &run.record.warmup.counts;
        let wanted = warmup.offered as f64 * 0.8;
        let deviation = (warmup.repeated as f64 - wanted).abs();
        assert!(warmup.offered > 0 && deviation < 40.0, "{warmup:?}");
        let repeats = run.record.scenario.questions.choice.repeats.unwrap();
        assert_eq!(
            (repeats.names_max, repeats.ttl_ns),
            (100, Some(500_000_000))
        );
    }
}

#[test]
fn the_same_seed_asks_for_the_same_generated_names() {
    let source = || QuestionSource {
        order: Order::Zipf { exponent: 1.0 },
        qtypes: Some("A=1,AAAA=1".parse().unwrap()),
        ..labelled(Labels::random(None, 3).unwrap())
    };
    let (first, again) = (sim(source()).run(), sim(source()).run());
    assert_eq!(first.record.to_json(), again.record.to_json());
    let other = sim(labelled(Labels::random(None, 4).unwrap())).run();
    let octets = |run: &Run| run.counts().sent_octets;
    assert_ne!(octets(&first), octets(&other));
}

#[test]
fn responses_without_data_of_the_type_asked_for_are_counted_as_nodata() {
    for transport in proto::Transport::ALL {
        let sim = Sim::seed(4).over(transport);
        let run = sim.ask(
            90,
            "www.example. A\nwww.example. MX\nwww.example. AAAA +do\n",
        );
        let counts = run.counts();
        assert_eq!(
            (counts.nodata, counts.rcodes.by_rcode[0]),
            (30, 90),
            "{transport}"
        );
        assert_eq!(run.record.goodput(), 90);
    }
}

#[test]
fn a_truncated_response_is_of_use_only_if_tcp_brings_the_whole_one() {
    for fallback in [false, true] {
        // The TC bit is drawn for TCP as well.
        let sim = Sim::seed(4).behaviour(|it| it.faults.truncated = 0.5);
        let sim = sim.plan(|plan| plan.tcp_fallback = fallback);
        let run = sim.queries(200).run();
        let counts = run.counts();
        let whole = counts.tcp_fallback.rcodes.total();
        assert!((60..140).contains(&counts.truncated), "{counts:?}");
        assert!(whole < counts.truncated);
        assert_eq!(whole > 0, fallback);
        let goodput = run.responses() - counts.truncated + whole;
        assert_eq!(run.record.goodput(), goodput, "fallback: {fallback}");
        assert_eq!(counts.nodata, 0);
    }
}

#[test]
fn generated_names_that_a_server_recurses_for_are_counted() {
    for transport in Transport::ALL {
        let recursed = |run: &Run| run.counts().generated_recursed;
        // The responder sets the RA bit where it answers for any name.
        assert_eq!(
            recursed(&sim(random()).over(transport).run()),
            2_000,
            "{transport}"
        );
        let plain = sim(QuestionSource::default()).over(transport).run();
        assert_eq!(recursed(&plain), 0, "{transport}");
        let zone = Zone::from_text(
            "$ORIGIN lab.test.\n@ 1 SOA a a 1 1 1 1 1\n* 1 A 192.0.2.1\n",
            None,
        );
        let zone = Arc::new(zone.unwrap());
        let own = sim(random()).over(transport);
        let own = own.responder(|config| config.zone = zone).run();
        assert_eq!((own.responses(), recursed(&own)), (2_000, 0), "{transport}");
    }
}
