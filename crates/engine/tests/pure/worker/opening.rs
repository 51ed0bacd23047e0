//! How long connections are opened before the run, and which clients have one then.

use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use driver::Driver;
use driver::sim::{Bounds, Link, Stepper, Turn, World, WorldConfig};
use engine::{Control, RunInputs, ThreadWorkers, TlsSettings};
use load::Plan;
use load::arrival::{Arrival, Process};
use measure::Interval;
use proto::tls::rustls::pki_types::ServerName;
use proto::{Instant, Transport};

use crate::echo::{self, Echo, tls};

/// Clients of the servers that are full.
const CLIENTS: u32 = 1_730;
/// Those whom such a server serves at a time.
const SLOTS: usize = 10;

fn plan(transport: Transport, clients: u32) -> Plan {
    let arrival = Arrival::Open {
        rate_qps: 2_000.0,
        process: Process::Constant,
        burst: 1,
    };
    Plan {
        interval: Duration::from_secs(1),
        ..echo::plan(transport, clients, arrival)
    }
}

fn outstanding(outstanding: u32) -> Arrival {
    Arrival::Closed {
        outstanding,
        rate_qps_max: None,
    }
}

/// A run, and what came before it.
struct Opened {
    /// How long connections were opened before the run.
    took: Duration,
    /// Connections that the server had accepted by then.
    accepted: u64,
    /// Everything before the run and in it.
    total: Interval,
    /// Usable connections at the end of the run.
    open_at_end: u64,
}

/// Runs `plan` with a server `delay` away, which `serve` lets serve and may end connections.
fn run(plan: Plan, delay: Duration, mut serve: impl FnMut(&mut Echo, bool)) -> Opened {
    let world = World::new(WorldConfig {
        link: Link::constant(delay),
        ..WorldConfig::default()
    });
    let (server, config) = (plan.transport.has_tls())
        .then(|| tls(plan.transport, false))
        .unzip();
    let echo = RefCell::new(Echo::open(&world, &plan, server));
    let inputs = [RunInputs {
        plan: Arc::new(plan),
        tls: config.map(|config| TlsSettings {
            config,
            name: ServerName::try_from("localhost").unwrap(),
            resume: load::Resume::NEVER,
        }),
        observer: None,
    }];
    let control = Arc::new(Control::new(1));
    let mut driver = world.endpoint(IpAddr::from([192, 0, 2, 1]));
    let mut workers = ThreadWorkers::new(&inputs, 0, &control);
    workers.open(&mut driver).unwrap();
    let mut accepted = None;
    let mut intervals = Vec::new();
    let echo_endpoint = echo.borrow().driver.endpoint();
    let mut steppers = [
        Stepper::serving(echo_endpoint, || {
            let mut echo = echo.borrow_mut();
            serve(&mut echo, control.start().is_some());
            echo.step();
            let next = echo.driver.now() + Duration::from_millis(10);
            echo.driver.wait(next);
            Turn::Waiting
        }),
        Stepper::leading(driver.endpoint(), || {
            let until = workers.step(&mut driver);
            intervals.extend(std::iter::from_fn(|| workers.poll_interval()).map(|(_, it)| it));
            if control.start().is_some() {
                accepted.get_or_insert(echo.borrow().accepted);
            }
            driver.wait(until);
            match workers.is_finished() {
                true => Turn::Finished,
                false => Turn::Waiting,
            }
        }),
    ];
    world.run(&mut steppers, Bounds::default()).unwrap();
    drop(steppers);
    let (_, summary) = workers.summaries(&mut driver).remove(0);
    let mut total = Interval::total(&intervals);
    total.counts.check_identity().unwrap();
    total.merge(&summary.warmup);
    Opened {
        took: summary.timeline.started_at - summary.timeline.opened_at,
        accepted: accepted.unwrap(),
        open_at_end: intervals
            .iter()
            .rev()
            .map(|it| it.connections_open)
            .max()
            .unwrap(),
        total,
    }
}

const NEAR: Duration = Duration::from_micros(500);

fn serve_slots(echo: &mut Echo, _: bool) {
    echo.slots = SLOTS;
}

#[track_caller]
fn assert_took(opened: &Opened, least: Duration) {
    let most = least + Duration::from_millis(200);
    assert!((least..most).contains(&opened.took), "{:?}", opened.took);
}

#[test]
fn server_that_is_full_delays_the_run_by_one_timeout() {
    for arrival in [plan(Transport::Dot, 1).arrival, outstanding(100)] {
        let is_closed = matches!(arrival, Arrival::Closed { .. });
        let plan = Plan {
            arrival,
            ..plan(Transport::Dot, CLIENTS)
        };
        let opened = run(plan, NEAR, serve_slots);
        assert_took(&opened, Duration::from_secs(5));
        // Ten have their slots, and four times a second ten others had their attempt.
        assert!(
            (200..=220).contains(&opened.accepted),
            "{}",
            opened.accepted
        );
        let counts = &opened.total.counts;
        assert_eq!(counts.connections.became_usable, SLOTS as u64);
        match is_closed {
            true => assert!(counts.responses > 1_000, "{counts:?}"),
            // Of each client's queries.
            false => assert!((20..=30).contains(&counts.responses), "{counts:?}"),
        }
    }
}

#[test]
fn every_client_has_its_attempt_though_others_wait() {
    let plan = Plan {
        timeout: Duration::from_secs(60),
        ..plan(Transport::Dot, CLIENTS)
    };
    let opened = run(plan, NEAR, serve_slots);
    assert_took(&opened, Duration::from_secs(60));
    assert_eq!(opened.accepted, u64::from(CLIENTS));
}

#[test]
fn connections_that_take_the_place_of_others_do_not_prolong_the_opening() {
    let mut next = Instant::ZERO;
    let opened = run(plan(Transport::Dot, CLIENTS), NEAR, |echo, _| {
        echo.slots = SLOTS;
        let now = echo.driver.now();
        if now >= next {
            next = now + Duration::from_millis(100);
            echo.end_streams();
            echo.fill_slots();
        }
    });
    assert_took(&opened, Duration::from_secs(5));
    let usable = opened.total.counts.connections.became_usable;
    assert!(usable > 500, "{usable}");
}

#[test]
fn clients_without_an_attempt_before_the_run_have_it_in_the_run() {
    let plan = Plan {
        arrival: outstanding(100),
        duration: Some(Duration::from_secs(3)),
        ..plan(Transport::Dot, CLIENTS)
    };
    let opened = run(plan, NEAR, |echo, has_started| {
        echo.slots = if has_started { usize::MAX } else { SLOTS };
    });
    assert_took(&opened, Duration::from_secs(5));
    assert!(opened.accepted < 250, "{}", opened.accepted);
    assert_eq!(opened.open_at_end, u64::from(CLIENTS));
    assert_eq!(
        opened.total.counts.connections.became_usable,
        u64::from(CLIENTS)
    );
}

#[test]
fn all_clients_of_a_server_that_takes_them_are_connected_before_the_run() {
    // Ten at a time, each after 200 ms (TCP) or 400 ms (DoT): the second ten of DoT after 250 ms,
    // since what a set-up takes is not known yet.
    for (transport, took_ms) in [(Transport::Tcp, 20_000), (Transport::Dot, 39_850)] {
        let far = Duration::from_millis(100);
        let clients = 1_000;
        let opened = run(plan(transport, clients), far, |_, _| {});
        assert_took(&opened, Duration::from_millis(took_ms));
        let connections = &opened.total.counts.connections;
        assert_eq!(opened.accepted, u64::from(clients));
        assert_eq!(connections.attempted, u64::from(clients));
        assert_eq!(connections.became_usable, u64::from(clients));
    }
}

#[test]
fn pace_of_the_connections_is_kept_before_the_run_unless_it_leads_nowhere() {
    let paced = |clients, rate| {
        let mut plan = plan(Transport::Dot, clients);
        plan.connections.rate_max = Some(rate);
        plan
    };
    // Slower than the timeout.
    let opened = run(paced(3, 0.1), NEAR, |_, _| {});
    assert_took(&opened, Duration::from_secs(20));
    assert_eq!(opened.accepted, 3);
    // The last one that becomes usable is the tenth.
    let opened = run(paced(CLIENTS, 10.0), NEAR, serve_slots);
    assert_took(&opened, Duration::from_millis(900 + 100 + 5_000));
    assert_eq!(opened.total.counts.connections.became_usable, SLOTS as u64);
}

#[test]
fn connections_that_a_full_server_takes_one_by_one_do_not_prolong_the_opening() {
    let mut next = Instant::ZERO;
    let opened = run(plan(Transport::Tcp, CLIENTS), NEAR, |echo, _| {
        let now = echo.driver.now();
        if now >= next {
            let room = if next == Instant::ZERO { 256 } else { 3 };
            echo.driver.set_backlog_room(room);
            next = now + Duration::from_millis(100);
        }
    });
    // The first clients wait after 250 ms, and ten of them soon after.
    assert_took(&opened, Duration::from_millis(5_250));
    assert!((350..500).contains(&opened.accepted), "{}", opened.accepted);
}
