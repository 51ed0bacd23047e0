//! What the generator allocates for a query, over each transport, is within the budget of
//! `bench/budgets.toml`. Counted in the engine's turns on the null driver, once the load is steady.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use lab::ceiling::{CeilingRequest, Rig, Until};
use proto::Transport;

/// The load of `bench/run instructions`.
const CLIENTS: u32 = 20;
const OUTSTANDING: u32 = 100;
/// Queries before those that count, and queries that count.
const WARM_UP: u64 = 5_000;
const COUNTED: u64 = 5_000;

/// The budget of a transport, read without a crate: `[name]`, then lines `key = number`.
fn budget(transport: Transport) -> f64 {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/budgets.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let table = format!("[{}]", transport.name());
    let of_transport = text.lines().skip_while(|line| *line != table).skip(1);
    of_transport
        .take_while(|line| !line.starts_with('['))
        .find_map(|line| line.strip_prefix("allocations = "))
        .unwrap_or_else(|| panic!("{path} has no allocations of {transport}"))
        .parse()
        .unwrap()
}

/// Allocations of the generator for each of its queries.
fn allocations_per_query(transport: Transport) -> f64 {
    let request = CeilingRequest {
        transport,
        clients: CLIENTS,
        outstanding: OUTSTANDING,
        until: Until::Answered(COUNTED),
    };
    let mut rig = Rig::open(&request).unwrap();
    let (mut allocations, mut start) = (0, 0);
    while rig.answered() < WARM_UP + COUNTED {
        let mut until = proto::Instant::ZERO;
        let counted = allocation_counter::measure(|| until = rig.counted_turn());
        match rig.answered() < WARM_UP {
            true => start = rig.answered(),
            false => allocations += counted.count_total,
        }
        rig.turn_of_responder(until).unwrap();
    }
    allocations as f64 / (rig.answered() - start) as f64
}

#[test]
fn allocations_per_query_are_within_the_budget_of_each_transport() {
    let mut over = Vec::new();
    for transport in Transport::ALL {
        let (found, budget) = (allocations_per_query(transport), budget(transport));
        println!("{transport}: {found:.3} allocations a query, budget {budget}");
        if found > budget {
            over.push(format!("{transport}: {found:.3}, budget {budget}"));
        }
    }
    assert!(over.is_empty(), "allocations a query: {over:?}");
}
