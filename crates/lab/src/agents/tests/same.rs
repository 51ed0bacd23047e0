//! Who measures changes nothing of what is measured.

use std::time::Duration;

use responder::Delay;
use testing::same::{assert_same, measured};

use super::fleet::{Fault, Scene, Stage, request};
use crate::run::simulate;

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
        assert_same(&divided, &alone, &format!("seed {seed}"));
    }
}
