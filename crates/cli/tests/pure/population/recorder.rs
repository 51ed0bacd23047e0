//! Runs in virtual time against a target that keeps every query, and sends it back as its response.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use driver::sim::{Bounds, Link, SimDriver, Stepper, Turn, World, WorldConfig};
use driver::{Driver, Event, Outgoing, Received, SocketSpec};
use engine::{Control, RunInputs, ThreadWorkers};
use load::arrival::Arrival;
use load::{Plan, QuestionSet, QuestionSource};
use proto::{Instant, Transport};

/// Port of the first client; those of the others follow.
pub(crate) const FIRST_PORT: u16 = 10_000;

/// A query as the target saw it.
pub(crate) struct Seen {
    pub(crate) at: Instant,
    /// Whose it was, from 0.
    pub(crate) client: u32,
    pub(crate) message: Vec<u8>,
}

/// A plan over UDP; each client has a port of its own.
pub(crate) fn plan(
    (questions, question_source): (QuestionSet, QuestionSource),
    arrival: Arrival,
    (clients, workers): (u32, u32),
) -> Plan {
    Plan {
        question_source,
        arrival,
        clients,
        workers,
        interval: Duration::from_secs(3_600),
        local_port: FIRST_PORT,
        ..Plan::new(
            "192.0.2.53:53".parse().unwrap(),
            Transport::Udp,
            Arc::new(questions),
        )
    }
}

struct Recorder {
    driver: SimDriver,
    seen: Vec<Seen>,
}

impl Recorder {
    fn step(&mut self) {
        let mut received = Received::new();
        while self.driver.receive(&mut received) {
            if !matches!(received.event, Event::Datagrams) {
                continue;
            }
            let mut outgoing = Outgoing::default();
            for datagram in &received.datagrams {
                let query = received.datagram(*datagram);
                self.seen.push(Seen {
                    at: received.at,
                    client: u32::from(datagram.from.port() - FIRST_PORT),
                    message: query.to_vec(),
                });
                let start = outgoing.octets.len();
                outgoing.octets.extend_from_slice(query);
                outgoing.octets[start + 2] |= 0x80;
                outgoing.finish(start, Some(datagram.from));
            }
            self.driver.send_datagrams(received.socket, &outgoing);
        }
        self.driver.wait(Instant::FAR_FUTURE);
    }
}

/// What the target saw of a run, and how many queries were offered. All of them were answered.
pub(crate) fn run(plan: Plan) -> (Vec<Seen>, u64) {
    plan.validate().unwrap();
    let world = World::new(WorldConfig {
        link: Link::constant(Duration::from_millis(1)),
        ..WorldConfig::default()
    });
    let target: SocketAddr = plan.target;
    let mut driver = world.endpoint(target.ip());
    let spec = SocketSpec {
        local: Some(target),
        ..SocketSpec::default()
    };
    driver.open_udp(&spec).unwrap();
    let recorder = RefCell::new(Recorder {
        driver,
        seen: Vec::new(),
    });
    let inputs = [RunInputs {
        plan: Arc::new(plan),
        tls: None,
        observer: None,
    }];
    let control = Arc::new(Control::new(ThreadWorkers::workers_on(
        &inputs,
        0..u32::MAX,
    )));
    let threads: Vec<_> = (0..ThreadWorkers::threads(&inputs))
        .map(|index| {
            let mut driver = world.endpoint(IpAddr::from([192, 0, 2, 1]));
            let mut workers = ThreadWorkers::new(&inputs, index, &control);
            workers.open(&mut driver).unwrap();
            RefCell::new((workers, driver, 0, 0))
        })
        .collect();
    let mut steppers = vec![Stepper::serving(
        recorder.borrow().driver.endpoint(),
        || {
            recorder.borrow_mut().step();
            Turn::Waiting
        },
    )];
    for workers in &threads {
        let endpoint = workers.borrow().1.endpoint();
        steppers.push(Stepper::leading(endpoint, || {
            let (workers, driver, offered, responses) = &mut *workers.borrow_mut();
            let until = workers.step(driver);
            while let Some((_, interval)) = workers.poll_interval() {
                *offered += interval.counts.offered;
                *responses += interval.counts.responses;
            }
            driver.wait(until);
            match workers.is_finished() {
                true => Turn::Finished,
                false => Turn::Waiting,
            }
        }));
    }
    world.run(&mut steppers, Bounds::default()).unwrap();
    drop(steppers);
    let offered: u64 = threads.iter().map(|workers| workers.borrow().2).sum();
    let responses: u64 = threads.iter().map(|workers| workers.borrow().3).sum();
    let seen = recorder.into_inner().seen;
    assert_eq!((responses, seen.len() as u64), (offered, offered));
    (seen, offered)
}
