//! A thousand agents on one lead: what they cost it.

use std::collections::BTreeMap;
use std::time::Duration;

use agents::{AgentLink, Decoder, Event, FromAgent, Lead, Order, Place, RunShape, ToAgent};
use driver::clock::Clock;
use load::Plan;
use measure::RunRecord;
use proto::Instant;
use responder::Delay;
use serde_json::Value;

use super::super::merged::merged;
use super::fleet::{Fault, Scene, Stage, hello, request};

const AGENTS: usize = 1_000;
/// How often the lead looks at what has come.
const STEP: Duration = Duration::from_millis(100);
/// How long a frame is on its way.
const DELAY: Duration = Duration::from_millis(1);
/// No run goes on for longer.
const END: Duration = Duration::from_secs(120);

/// What the lead has used.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    cpu: Duration,
    /// Bytes that it holds, and most that it has held.
    held: i64,
    held_max: i64,
}

impl Used {
    fn by<T>(&mut self, act: impl FnOnce() -> T) -> T {
        let (began, mut result) = (Clock::thread_cpu_time(), None);
        let counted = allocation_counter::measure(|| result = Some(act()));
        self.cpu += Clock::thread_cpu_time().saturating_sub(began);
        let most = i64::try_from(counted.bytes_max).unwrap_or(i64::MAX);
        self.held_max = self.held_max.max(self.held.saturating_add(most));
        self.held += counted.bytes_current;
        result.unwrap()
    }
}

/// An agent that says what another one has told of the same run.
struct Echo {
    link: AgentLink,
    /// By the lead's clock, as the frames of that run are.
    starts_at: Option<Instant>,
    told: usize,
    decoder: Decoder,
    to_lead: Vec<Vec<u8>>,
}

impl Echo {
    fn new() -> Echo {
        let mut link = AgentLink::new(Instant::ZERO, agents::DeadMan::FAR);
        link.say(FromAgent::Hello(hello()));
        Echo {
            link,
            starts_at: None,
            told: 0,
            decoder: Decoder::new(),
            to_lead: Vec::new(),
        }
    }

    fn hear(&mut self, message: &ToAgent, now: Instant) {
        let octets = agents::encode(message).unwrap();
        let mut decoder = Decoder::new();
        decoder.push(&octets);
        self.link.hear(decoder.poll().unwrap().unwrap(), now);
        while let Some(order) = self.link.poll_order() {
            match order {
                Order::Setup(..) => self.link.say(FromAgent::Ready),
                Order::StartAt(at) => self.starts_at = Some(at),
                _ => {}
            }
        }
    }

    fn step(&mut self, told: &[(Duration, Vec<u8>)], now: Instant) {
        self.link.pass(now);
        while let Some(message) = self.link.poll_message() {
            self.to_lead.push(agents::encode(&message).unwrap());
        }
        let Some(start) = self.starts_at else {
            return;
        };
        while let Some((at, frame)) = told.get(self.told)
            && start + *at <= now
        {
            self.to_lead.push(frame.clone());
            self.told += 1;
        }
    }
}

/// One agent of the run alone; what it tells is what each of them does.
fn told_by_one() -> (Scene, Vec<(Duration, Vec<u8>)>) {
    let scene = Scene {
        agents: 1,
        faults: vec![(0, Stage::Drain, END, Fault::Nothing)],
        duration: Duration::from_secs(20),
        rate_qps: 300.0,
        delay: Delay::Exponential {
            mean: Duration::from_millis(5),
        },
        ..Scene::new(Fault::Nothing, Stage::Drain)
    };
    let mut told = scene.play().told;
    // Before the start its link says this by itself.
    told.retain(|(at, _)| *at > Duration::ZERO);
    (scene, told)
}

fn run(scene: &Scene, told: &[(Duration, Vec<u8>)]) -> (Used, Duration, RunRecord, Used) {
    let places: Vec<Place> = (0..AGENTS)
        .map(|agent| Place::Host(format!("host-{agent}")))
        .collect();
    let groups = [request(scene)];
    let shape = |plan: Plan| RunShape {
        plans: vec![plan],
        on_loss: scene.on_loss,
        gives_up: true,
        shows_groups: false,
    };
    let mut lead = Lead::new(&places, Some(hello()), Instant::ZERO);
    let mut agents: Vec<Echo> = (0..AGENTS).map(|_| Echo::new()).collect();
    let (mut used, mut now, mut start) = (Used::default(), Instant::ZERO, None);
    while !lead.is_over() {
        now = now + STEP;
        assert!(now < Instant::ZERO + END, "it does not end");
        for agent in &mut agents {
            agent.step(told, now);
        }
        let (mut orders, mut is_greeted) = (Vec::new(), false);
        used.by(|| {
            for (number, agent) in agents.iter_mut().enumerate() {
                for frame in agent.to_lead.drain(..) {
                    agent.decoder.push(&frame);
                    while let Some(message) = agent.decoder.poll().unwrap() {
                        lead.hear(number, message, now);
                    }
                }
            }
            lead.pass(now);
            while let Some(event) = lead.poll_event() {
                match event {
                    Event::Greeted => is_greeted = true,
                    Event::Starts(at) => start = Some(at),
                    Event::Lost(agent) => panic!("agent {agent} is lost"),
                    Event::Progress(_) | Event::Checkpoint => {}
                }
            }
            while let Some(order) = lead.poll_message() {
                orders.push(order);
            }
        });
        if is_greeted {
            orders.extend((0..AGENTS).map(|agent| (agent, ToAgent::Setup(Value::Null))));
            lead.prepare(shape(groups[0].plan.clone()));
        }
        for (agent, message) in orders {
            agents[agent].hear(&message, now + DELAY);
        }
    }
    let lasted = now.duration_since(start.unwrap());
    let mut end = Used {
        held: used.held,
        ..Used::default()
    };
    let record = end.by(|| {
        let outcome = lead.finish(now).unwrap();
        let of_host = (Duration::ZERO, BTreeMap::new());
        let mut record = merged(&groups, &places, outcome, of_host).unwrap();
        record.conclude();
        record
    });
    (used, lasted, record, end)
}

#[test]
fn a_lead_of_a_thousand_agents_uses_less_than_a_core_and_a_gibibyte() {
    let (scene, told) = told_by_one();
    let alone: u64 = told.iter().map(|(_, frame)| frame.len() as u64).sum();
    let (used, lasted, record, end) = run(&scene, &told);
    println!(
        "{alone} bytes an agent; {:.3} of a core; most held {} MiB, at the end {} MiB; \
         record after {:?}",
        used.cpu.as_secs_f64() / lasted.as_secs_f64(),
        used.held_max >> 20,
        end.held_max >> 20,
        end.cpu
    );
    record.check().unwrap();
    assert_eq!(record.generators, AGENTS as u64);
    assert!(used.cpu < lasted, "{used:?} in {lasted:?}");
    assert!(
        used.held_max.max(end.held_max) < 1 << 30,
        "{used:?}, {end:?}"
    );
    // A quarter of what the run has cost it, on a fast machine and on a slow one.
    assert!(end.cpu < used.cpu, "{end:?}, {used:?}");
}
