//! Whole runs: turns, time, repeatability.

use super::*;
use crate::sim::{Bounds, RunError, RunStats, Stepper, Turn};

/// A server that sends every datagram and every octet of a stream back.
fn echo(mut driver: SimDriver) -> Stepper<'static> {
    driver.open_udp(&serving(53)).unwrap();
    driver.listen_tcp(&serving(53)).unwrap();
    Stepper::serving(driver.endpoint(), move || {
        for delivery in deliveries(&mut driver) {
            if !delivery.bytes.is_empty() {
                driver.send_bytes(delivery.socket, &delivery.bytes).unwrap();
            }
            for (from, octets) in delivery.datagrams {
                let mut response = outgoing([&octets[..]]);
                response.datagrams[0].to = Some(from);
                driver.send_datagrams(delivery.socket, &response);
            }
        }
        driver.wait(Instant::FAR_FUTURE);
        Turn::Waiting
    })
}

/// Events of a client that sent 200 datagrams and 200 octets on a stream, 1 ms apart.
fn trace(seed: u64) -> (Vec<Delivery>, RunStats) {
    let Pair {
        world,
        mut client,
        server,
    } = Pair::new(rough(seed));
    let udp = client.open_udp(&towards(53)).unwrap();
    let tcp = client.connect_tcp(&towards(53)).unwrap();
    let mut seen = Vec::new();
    let mut next = 0;
    let id = client.endpoint();
    let load = Stepper::leading(id, || {
        seen.extend(deliveries(&mut client));
        if client.now() >= at_ms(next) && next < 200 {
            send(&mut client, udp, &[next as u8]);
            client.send_bytes(tcp, &[next as u8]).unwrap();
            next += 1;
        }
        client.wait(if next < 200 {
            at_ms(next)
        } else {
            at_ms(30_000)
        });
        if client.now() < at_ms(30_000) {
            Turn::Waiting
        } else {
            Turn::Finished
        }
    });
    let stats = world.run(&mut [load, echo(server)], Bounds::default());
    (seen, stats.unwrap())
}

#[test]
fn same_seed_gives_the_same_events_and_another_seed_gives_others() {
    let first = trace(11);
    assert!(first.0.len() > 100, "{} events", first.0.len());
    assert_eq!(first, trace(11));
    assert_ne!(first.0, trace(12).0);
}

#[test]
fn hundred_queries_one_after_the_other_take_exactly_a_hundred_round_trips() {
    let Pair {
        world,
        mut client,
        server,
    } = Pair::new(five_ms());
    let udp = client.open_udp(&towards(53)).unwrap();
    let mut answered = 0;
    let load = Stepper::leading(client.endpoint(), || {
        let before = answered;
        answered += payloads(&mut client).len();
        if answered < 100 && (answered > before || answered == 0) {
            send(&mut client, udp, b"q");
        }
        client.wait(Instant::FAR_FUTURE);
        if answered < 100 {
            Turn::Waiting
        } else {
            Turn::Finished
        }
    });
    let stats = world
        .run(&mut [load, echo(server)], Bounds::default())
        .unwrap();
    assert_eq!(stats.ended_at, at_ms(1_000));
    // One turn of each to begin with, and one for each datagram.
    assert_eq!(stats.turns, 202);
}

#[test]
fn worker_is_woken_exactly_when_it_asked() {
    let world = World::new(five_ms());
    let mut driver = world.endpoint(CLIENT);
    let mut turns = Vec::new();
    let stepper = Stepper::leading(driver.endpoint(), || {
        let now = driver.now();
        turns.push(now);
        driver.wait(now + Duration::from_nanos(333));
        if turns.len() < 4 {
            Turn::Waiting
        } else {
            Turn::Finished
        }
    });
    world.run(&mut [stepper], Bounds::default()).unwrap();
    assert!(
        turns
            .into_iter()
            .eq([0, 333, 666, 999].map(Instant::from_nanos))
    );
    assert_eq!(driver.stats().waits, 4);
}

#[test]
fn run_in_which_nothing_can_happen_any_more_is_an_error() {
    let world = World::new(five_ms());
    let mut driver = world.endpoint(CLIENT);
    let stepper = Stepper::leading(driver.endpoint(), || {
        driver.wait(Instant::FAR_FUTURE);
        Turn::Waiting
    });
    let result = world.run(&mut [stepper], Bounds::default());
    assert_eq!(result, Err(RunError::Idle { at: Instant::ZERO }));
}

#[test]
fn run_that_exceeds_its_time_is_an_error() {
    let world = World::new(five_ms());
    let mut driver = world.endpoint(CLIENT);
    let stepper = Stepper::leading(driver.endpoint(), || {
        let next = driver.now() + ms(400);
        driver.wait(next);
        Turn::Waiting
    });
    let bounds = Bounds {
        until: at_ms(1_000),
        ..Bounds::default()
    };
    let error = world.run(&mut [stepper], bounds).unwrap_err();
    assert_eq!(error, RunError::OutOfTime { next: at_ms(1_200) });
    assert_eq!(
        error.to_string(),
        "simulation exceeded its bound on time: next event at 1.2 s"
    );
}

#[test]
fn worker_that_never_lets_the_time_go_on_is_an_error() {
    let world = World::new(five_ms());
    let mut driver = world.endpoint(CLIENT);
    let stepper = Stepper::leading(driver.endpoint(), || {
        let now = driver.now();
        driver.wait(now);
        Turn::Waiting
    });
    let bounds = Bounds {
        turns_at_once_max: 1_000,
        ..Bounds::default()
    };
    let result = world.run(&mut [stepper], bounds);
    assert_eq!(
        result,
        Err(RunError::OutOfTurns {
            at: Instant::ZERO,
            turns: 1_000
        })
    );
}

#[test]
fn calendar_time_goes_with_the_virtual_time() {
    let world = World::new(five_ms());
    let driver = world.endpoint(CLIENT);
    world.advance_to(at_ms(1_500));
    assert_eq!(driver.unix_time(), Duration::from_millis(1_767_225_601_500));
}
