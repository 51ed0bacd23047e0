//! What a simulated client holds while it is idle: all of its memory, TLS and driver included.
//!
//! A worker runs in virtual time against a target that echoes. What its turns have allocated and
//! not freed is counted at an instant at which all connections are open and nothing is in flight,
//! for two numbers of clients: the difference is the clients'.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod echo;

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use driver::Driver;
use driver::sim::{Bounds, Link, Stepper, Turn, World, WorldConfig};
use engine::{Control, Crew, RunInputs, TlsSettings};
use load::arrival::{Arrival, Process};
use measure::client_latency::ClientLatency;
use proto::pending::Pending;
use proto::tls::rustls::pki_types::ServerName;
use proto::tls::{ClientTlsOptions, Roots, client_config, server_config};
use proto::{Instant, Transport};

use echo::{Echo, plan};

/// Each client has asked once, and nobody asks for a second.
const COUNTED_AT: Instant = Instant::from_nanos(1_900_000_000);

/// Bytes that each client holds, found from two numbers of clients.
fn bytes_a_client(held_by: impl Fn(u32) -> i64) -> i64 {
    (held_by(256) - held_by(64)) / 192
}

fn once_a_second(clients: u32) -> Arrival {
    Arrival::Open {
        rate_qps: f64::from(clients),
        process: Process::Constant,
    }
}

/// Bytes that so many clients and their worker hold.
fn bytes_held(transport: Transport, clients: u32, client_statistics: bool) -> i64 {
    let world = World::new(WorldConfig {
        link: Link::constant(Duration::from_millis(1)),
        ..WorldConfig::default()
    });
    let mut plan = plan(transport, clients, once_a_second(clients));
    plan.client_statistics = client_statistics;
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let pem = made.cert.pem().into_bytes();
    let key = made.signing_key.serialize_pem().into_bytes();
    let options = ClientTlsOptions {
        roots: Roots::Pem(pem.clone()),
        ..ClientTlsOptions::default()
    };
    let is_dot = transport == Transport::Dot;
    let server = is_dot.then(|| server_config(&pem, &key).unwrap());
    let echo = RefCell::new(Echo::open(&world, plan.target, server));
    let inputs = RunInputs {
        plan: Arc::new(plan),
        tls: is_dot.then(|| TlsSettings {
            config: client_config(&options).unwrap(),
            name: ServerName::try_from("localhost").unwrap(),
            resume: load::Resume::NEVER,
        }),
    };
    let mut driver = world.endpoint(IpAddr::from([192, 0, 2, 1]));
    let held = Cell::new(0);
    let mut worker = None;
    let counted = allocation_counter::measure(|| {
        let new = worker.insert(Crew::new(
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

#[test]
fn idle_client_holds_at_most_what_its_transport_may_cost() {
    // A ticket and the certificates that rustls keeps with it come to 850 bytes more, which makes
    // 10 KB for a client of DoT that resumes.
    for (transport, bytes_max) in [(Transport::Tcp, 1_024), (Transport::Dot, 9_216)] {
        let bytes = bytes_a_client(|clients| bytes_held(transport, clients, true));
        assert!(bytes <= bytes_max, "{transport}: {bytes} bytes a client");
    }
}

#[test]
fn what_is_kept_of_a_single_client_takes_at_most_128_bytes() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let held = |kept| bytes_a_client(|clients| bytes_held(transport, clients, kept));
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
        };
        bytes_of(|| {
            let control = Arc::new(Control::new(1));
            Crew::new(std::slice::from_ref(&inputs), 0, &control)
        })
    });
    // What it allocates when it asks and gets responses: up to two open queries, and latencies
    // from 1 to 30 ms.
    let of_queries = bytes_of(|| {
        let mut pending = Pending::new(0);
        assert!((0..2).all(|question| pending.submit(Instant::ZERO, proto::pending::Question::plain(question))));
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
