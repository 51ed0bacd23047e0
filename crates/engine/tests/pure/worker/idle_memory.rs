//! What a simulated client holds while it is idle: all of its memory, TLS and driver included.
//!
//! A worker runs in virtual time against a target that echoes. What its turns have allocated and
//! not freed is counted at an instant at which all connections are open and nothing is in flight,
//! for two numbers of clients: the difference is the clients'.
//!
//! Not in it are the keys that aws-lc has ready for those who were busy last, which are a worker's:
//! up to 4,096 of some 600 bytes, two for a client (`proto/src/tls/record_layer/contexts.rs`).

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use driver::Driver;
use driver::sim::{Bounds, Link, Stepper, Turn, World, WorldConfig};
use engine::{Control, RunInputs, ThreadWorkers, TlsSettings};
use load::arrival::{Arrival, Process};
use measure::client_latency::ClientLatency;
use proto::pending::{Pending, Question};
use proto::tls::rustls::pki_types::ServerName;
use proto::{Instant, Transport};

use crate::echo::{Echo, plan, tls};

/// Each client has sent one query, and none follows for a second.
const COUNTED_AT: Instant = Instant::from_nanos(1_900_000_000);

/// What is kept of a client beside its connection.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// The session that it resumes.
    session: bool,
    /// How it fares.
    statistics: bool,
}

/// Bytes that each client holds, found from two numbers of clients.
fn bytes_a_client(held_by: impl Fn(u32) -> i64) -> i64 {
    (held_by(256) - held_by(64)) / 192
}

fn once_a_second(clients: u32) -> Arrival {
    Arrival::Open {
        rate_qps: f64::from(clients),
        process: Process::Constant,
        burst: 1,
    }
}

/// Memory of this number of clients and their worker, in bytes.
fn bytes_held(transport: Transport, kept: Kept, clients: u32) -> i64 {
    let world = World::new(WorldConfig {
        link: Link::constant(Duration::from_millis(1)),
        ..WorldConfig::default()
    });
    let mut plan = plan(transport, clients, once_a_second(clients));
    plan.client_statistics = kept.statistics;
    let has_tls = transport.has_tls();
    let (server, config) = has_tls.then(|| tls(transport, kept.session)).unzip();
    let echo = RefCell::new(Echo::open(&world, &plan, server));
    let inputs = RunInputs {
        plan: Arc::new(plan),
        tls: config.map(|config| TlsSettings {
            config,
            name: ServerName::try_from("localhost").unwrap(),
            resume: match kept.session {
                true => load::Resume::ALWAYS,
                false => load::Resume::NEVER,
            },
        }),
        observer: None,
    };
    let mut driver = world.endpoint(IpAddr::from([192, 0, 2, 1]));
    let held = Cell::new(0);
    let mut worker = None;
    let counted = allocation_counter::measure(|| {
        let new = worker.insert(ThreadWorkers::new(
            std::slice::from_ref(&inputs),
            0,
            &Arc::new(Control::new(1)),
        ));
        new.open(&mut driver).unwrap();
    });
    held.set(counted.bytes_current);
    let mut worker = worker.unwrap();
    let at_instant = Cell::new(None);
    let echo_endpoint = echo.borrow().driver.endpoint();
    let mut steppers = [
        Stepper::serving(echo_endpoint, || {
            echo.borrow_mut().step();
            Turn::Waiting
        }),
        Stepper::leading(driver.endpoint(), || {
            if driver.now() >= COUNTED_AT && at_instant.get().is_none() {
                at_instant.set(Some((held.get(), echo.borrow().queries)));
            }
            let mut until = driver.now();
            let counted = allocation_counter::measure(|| until = worker.step(&mut driver));
            held.set(held.get() + counted.bytes_current);
            driver.wait(until);
            match worker.is_finished() {
                true => Turn::Finished,
                false => Turn::Waiting,
            }
        }),
    ];
    world.run(&mut steppers, Bounds::default()).unwrap();
    let (bytes, queries) = at_instant.get().unwrap();
    assert!(
        queries >= u64::from(clients),
        "{transport}: {queries} queries"
    );
    bytes
}

fn check(transport: Transport, session: bool, bytes_max: i64) {
    let kept = Kept {
        session,
        statistics: true,
    };
    let bytes = bytes_a_client(|clients| bytes_held(transport, kept, clients));
    println!("{transport}: {bytes} bytes a client, {kept:?}");
    assert!(bytes <= bytes_max, "{transport}: {bytes} bytes a client");
}

#[test]
fn idle_tcp_client_holds_at_most_1_kb() {
    check(Transport::Tcp, false, 1_000);
}

#[test]
fn idle_dot_client_holds_at_most_1600_bytes_and_2400_with_the_session_that_it_resumes() {
    check(Transport::Dot, false, 1_600);
    check(Transport::Dot, true, 2_400);
}

#[test]
fn idle_doh2_client_holds_at_most_2300_bytes_and_3_kb_with_the_session_that_it_resumes() {
    check(Transport::Doh2, false, 2_300);
    check(Transport::Doh2, true, 3_000);
}

#[test]
fn idle_client_of_quic_holds_at_most_30_kb() {
    for transport in [Transport::Doq, Transport::Doh3] {
        check(transport, false, 30_000);
        check(transport, true, 30_000);
    }
}

#[test]
fn what_is_kept_of_a_single_client_takes_at_most_128_bytes() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let held = |statistics| {
            let kept = Kept {
                session: false,
                statistics,
            };
            bytes_a_client(|clients| bytes_held(transport, kept, clients))
        };
        let bytes = held(true) - held(false);
        assert!((88..=128).contains(&bytes), "{transport}: {bytes} bytes");
    }
}

/// Bytes that are allocated and kept by what `make` makes.
fn bytes_of<T>(make: impl FnOnce() -> T) -> i64 {
    let mut made = None;
    let counted = allocation_counter::measure(|| made = Some(make()));
    drop(made);
    counted.bytes_current
}

#[test]
fn client_without_its_transport_holds_at_most_512_bytes() {
    let of_worker = bytes_a_client(|clients| {
        let plan = plan(Transport::Udp, clients, once_a_second(clients));
        let inputs = RunInputs {
            plan: Arc::new(plan),
            tls: None,
            observer: None,
        };
        bytes_of(|| {
            let control = Arc::new(Control::new(1));
            ThreadWorkers::new(std::slice::from_ref(&inputs), 0, &control)
        })
    });
    // What it allocates when it asks and gets responses: up to two open queries, and latencies
    // from 1 to 30 ms.
    let of_queries = bytes_of(|| {
        let mut pending = Pending::default();
        assert!((0..2).all(|question| pending.submit(Instant::ZERO, Question::plain(question))));
        pending
    });
    let of_latencies = bytes_of(|| {
        let mut latency = ClientLatency::new();
        latency.record(1_000_000);
        latency.record(30_000_000);
        latency
    });
    let bytes = of_worker + of_queries + of_latencies;
    assert!(
        bytes <= 512,
        "{of_worker} + {of_queries} + {of_latencies} = {bytes} bytes"
    );
}
