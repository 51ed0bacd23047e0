//! What the generator allocates on the drivers for the kernel's sockets, beside what the tests with
//! the null driver and in virtual time find (`crates/lab/tests/pure/allocations.rs`,
//! `crates/engine/tests/pure/worker/idle_memory.rs`): the driver's own part comes on top here.
//!
//! Not in it are the 2 MiB of buffers that an io_uring receives into, which all streams of a
//! worker share, and what the kernel holds.

use std::sync::Arc;
use std::time::Duration;

use driver::clock::Clock;
use driver::kernel::{self, DriverChoice, KernelDriver};
use driver::{Driver, SocketOptions};
use engine::{Control, RunInputs, ThreadWorkers};
use lab::run::RunRequest;
use measure::Interval;
use measure::client_latency::ClientLatency;
use proto::Transport;

use super::bed::kernel_drivers;
use crate::bench::{Load, Responder};

const STREAMS: [Transport; 3] = [Transport::Tcp, Transport::Dot, Transport::Doh2];

/// What a run allocated, turn by turn: how often, and the bytes held after it.
struct Allocated {
    turns: Vec<(u64, i64)>,
    total: Interval,
}

impl Allocated {
    /// Allocations between two points of the run.
    fn within(&self, from: f64, to: f64) -> u64 {
        let turn = |share| (self.turns.len() as f64 * share) as usize;
        let turns = &self.turns[turn(from)..turn(to)];
        turns.iter().map(|(count, _)| count).sum()
    }

    /// Least bytes held between two points of the run: those without a burst of queries, which a
    /// host that is busy for a while has at its end.
    fn held_least(&self, from: f64, to: f64) -> i64 {
        let turn = |share| (self.turns.len() as f64 * share) as usize;
        let turns = self.turns[turn(from)..turn(to)].iter();
        turns.map(|(_, held)| *held).min().unwrap()
    }
}

/// Runs a load on this thread against a responder on another one, and counts in its turns.
fn count(choice: DriverChoice, load: Load) -> Allocated {
    let target = Responder::start(|_| {});
    let address = target.address(load.plan.transport);
    let load = load.ca_pem(&target.certificate_pem);
    let load = load.plan(|plan| plan.interval = Duration::from_secs(3_600));
    let RunRequest { plan, tls, .. } = load.request(address);
    let streams = plan.clients;
    let inputs = RunInputs {
        plan: Arc::new(plan),
        tls: tls.map(|it| it.settings),
        observer: None,
    };
    let load = kernel::Load {
        streams,
        ..kernel::Load::default()
    };
    let opened = KernelDriver::open(choice, load, Clock::start(), SocketOptions::default());
    let (mut driver, _) = opened.unwrap();
    let control = Arc::new(Control::new(1));
    let (mut workers, mut held) = (None, 0);
    let mut turns = Vec::with_capacity(1 << 20);
    let counted = allocation_counter::measure(|| {
        let workers = workers.insert(ThreadWorkers::new(&[inputs], 0, &control));
        workers.open(&mut driver).unwrap();
    });
    held += counted.bytes_current;
    let mut workers = workers.unwrap();
    while !workers.is_finished() {
        let counted = allocation_counter::measure(|| {
            let until = workers.step(&mut driver);
            if !workers.is_finished() {
                driver.wait(until);
            }
        });
        held += counted.bytes_current;
        turns.push((counted.count_total, held));
    }
    let intervals: Vec<Interval> = std::iter::from_fn(|| workers.poll_interval())
        .map(|it| it.1)
        .collect();
    let total = Interval::total(&intervals);
    total.counts.check_identity().unwrap();
    Allocated { turns, total }
}

#[test]
fn queries_over_streams_allocate_nothing_on_any_driver_for_sockets() {
    const QUERIES: u64 = 20_000;
    for choice in kernel_drivers() {
        for transport in STREAMS {
            let load = Load::over(transport).clients(20).outstanding(100);
            let allocated = count(choice, load.queries(QUERIES));
            let responses = allocated.total.counts.responses;
            assert_eq!(responses, QUERIES, "{transport} on {choice}");
            // What else the machine does decides on the largest burst and the longest latency so
            // far: buffers may grow once more, and what is kept of each client's latencies.
            let allocations = allocated.within(0.5, 0.9);
            println!("{transport} on {choice}: {allocations} allocations");
            assert!(
                allocations <= 64 + 20 * ClientLatency::ALLOCATIONS_MAX,
                "{transport} on {choice}: {allocations} allocations"
            );
        }
    }
}

/// Most bytes of a client, those of `crates/engine/tests/pure/worker/idle_memory.rs`.
const BYTES_MAX: [i64; 3] = [1_000, 1_600, 2_300];

/// Bytes that a client holds while it is idle, most of the time of a few queries a second.
fn bytes_a_client(choice: DriverChoice, transport: Transport) -> i64 {
    let held = |clients: u32| {
        let load = Load::over(transport).clients(clients);
        let load = load.rate(f64::from(clients) * 4.0);
        let load = load.queries(u64::from(clients) * 3);
        let allocated = count(choice, load);
        let counts = &allocated.total.counts;
        assert_eq!(
            counts.responses, counts.offered,
            "{transport} on {choice}: {counts:?}"
        );
        allocated.held_least(0.85, 0.95)
    };
    (held(256) - held(64)) / 192
}

#[test]
fn idle_clients_hold_no_more_memory_on_any_driver_for_sockets_than_in_the_simulator() {
    for choice in kernel_drivers() {
        for (transport, bytes_max) in STREAMS.into_iter().zip(BYTES_MAX) {
            let bytes = bytes_a_client(choice, transport);
            println!("{transport} on {choice}: {bytes} bytes a client");
            assert!(bytes <= bytes_max, "{transport} on {choice}: {bytes} bytes");
        }
    }
}
