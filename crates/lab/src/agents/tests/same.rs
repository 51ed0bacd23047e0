//! Who measures changes nothing of what is measured.

use std::time::Duration;

use measure::RunRecord;
use responder::Delay;
use serde_json::Value;

use super::fleet::{Fault, Scene, Stage, request};
use crate::run::simulate;

/// What tells who measured, where, when and with what.
const OTHERS: [&str; 13] = [
    "/agent_count",
    "/agents",
    "/driver",
    "/generators",
    "/host_use",
    "/hosts",
    // An agent looks for messages meanwhile, and waits for the other agents.
    "/network/waits",
    "/phases/connect_ns",
    "/simulation",
    "/started_at",
    // They say that it was a simulation.
    "/summary/evidence",
    "/verdict",
    "/workers",
];

/// A record without that.
fn measured(record: &RunRecord) -> Value {
    let mut record = serde_json::to_value(record).unwrap();
    for path in OTHERS {
        if let Some(value) = record.pointer_mut(path) {
            value.take();
        }
    }
    record
}

#[test]
fn same_seed_gives_the_same_record_by_one_process_and_by_agents() {
    for seed in 1..=5 {
        let scene = Scene {
            duration: Duration::from_secs(10),
            delay: Delay::Exponential {
                mean: Duration::from_millis(40),
            },
            seed,
            ..Scene::new(Fault::Nothing, Stage::Drain)
        };
        let divided = scene.play().result.unwrap().unwrap();
        let (alone, _) = simulate(&request(&scene), &scene.simulation()).unwrap();
        let (divided, alone) = (measured(&divided), measured(&alone));
        let alone = alone.as_object().unwrap();
        let differ = alone
            .iter()
            .filter(|(name, value)| divided[name.as_str()] != **value);
        let differ: Vec<_> = differ
            .map(|(name, value)| (name, value, &divided[name]))
            .collect();
        assert!(differ.is_empty(), "seed {seed}: {differ:#?}");
    }
}
