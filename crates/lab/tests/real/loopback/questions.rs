//! Generated names and cache-hit ratios against real servers: a wildcard of BIND answers all, and
//! Unbound's cache answers as many as it should.

use std::sync::Arc;
use std::time::Duration;

use lab::target::{BindOptions, BindTarget, UnboundOptions, UnboundTarget, Zone};
use load::QuestionSource;
use load::question_source::{Labels, Repeats};
use load::{QuestionSet, names_file};
use proto::Transport;
use proto::query::QueryOptions;

use crate::bench::{Load, Responder};
use crate::target::zone;

fn questions(text: &str) -> Arc<QuestionSet> {
    let questions = names_file::parse_text(text.as_bytes(), &QueryOptions::default());
    Arc::new(questions.unwrap())
}

/// The zone of the other tests, with a wildcard for A and AAAA.
fn wildcard_zone() -> Zone {
    let mut zone = zone();
    zone.text
        .push_str("*.wild IN A 192.0.2.1\n*.wild IN AAAA 2001:db8::1\n");
    zone
}

#[test]
fn wildcard_of_bind_answers_every_generated_name() {
    let target = BindTarget::start(&BindOptions::new(wildcard_zone())).unwrap();
    let address = target.endpoints().do53();
    for transport in [Transport::Udp, Transport::Tcp] {
        for labels in [
            Labels::unique(None, 1).unwrap(),
            Labels::random(Some((1, 63)), 2).unwrap(),
            Labels::counted(None).unwrap(),
        ] {
            let load = Load::over(transport).outstanding(50).queries(10_000);
            let load = load.plan(|plan| {
                plan.questions = questions("wild.lab.test A");
                plan.question_source = QuestionSource {
                    labels: Some(labels),
                    qtypes: Some("A=60,AAAA=30,HTTPS=10".parse().unwrap()),
                    ..QuestionSource::default()
                };
            });
            let before = target.statistics().unwrap();
            load.run_at(address).assert_all_answered(10_000);
            let counted = target.statistics().unwrap().since(&before);
            let counted = match transport {
                Transport::Udp => counted.queries_udp,
                _ => counted.queries_tcp,
            };
            assert_eq!(counted, 10_000);
        }
    }
}

#[test]
fn cache_of_unbound_answers_the_repeats_and_asks_for_the_rest() {
    let authority = Responder::start_at([127, 0, 0, 1].into(), |_| {});
    let port = authority.address(Transport::Udp).port();
    let target = UnboundTarget::start(&UnboundOptions {
        // The server clause ends where the next one begins.
        extra_options: format!(
            "  do-not-query-localhost: no\n  local-zone: \"cached.test\" transparent\n  \
             infra-cache-min-rtt: 10000\n  msg-cache-size: 64m\n  rrset-cache-size: 64m\n\
             forward-zone:\n  name: \"cached.test\"\n  forward-addr: 127.0.0.1@{port}\n"
        ),
        ..UnboundOptions::new(zone())
    });
    let target = target.unwrap();
    let address = target.endpoints().do53();
    let mut fresh = 0;
    for (names, seed) in [
        ("cached.test A", 1),
        ("cached.test A", 2),
        ("one.cached.test A\ntwo.cached.test A\ncached.test A", 3),
    ] {
        let load = Load::over(Transport::Udp).outstanding(20).queries(10_000);
        let ran = load
            .plan(|plan| {
                plan.questions = questions(names);
                plan.question_source = QuestionSource {
                    labels: Some(Labels::unique(None, seed).unwrap()),
                    repeats: Some(Repeats {
                        share: 0.8,
                        // The responder's TTL is 60 s.
                        ttl: Some(Duration::from_secs(59)),
                        names_max: 500,
                    }),
                    ..QuestionSource::default()
                };
            })
            .run_at(address);
        ran.assert_all_answered(10_000);
        let repeated = ran.counts().repeated;
        assert!((7_980..=8_020).contains(&repeated), "{repeated}");
        fresh += 10_000 - repeated;
    }
    // What Unbound had to ask for is what no cache could know. It asks again after ten seconds.
    let asked = authority.serving.stop().queries.total();
    assert!(asked.abs_diff(fresh) <= 3, "{asked} asked for {fresh}");
}
