//! The plan: one run as decided, before anything is started. Immutable, shared by all workers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use proto::Transport;

use crate::arrival::Arrival;
use crate::questions::QuestionSet;

/// One run as decided.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The target's address and port.
    pub target: SocketAddr,
    /// How to reach it.
    pub transport: Transport,
    /// What to ask, in order; each worker takes every `workers`-th question.
    pub questions: Arc<QuestionSet>,
    /// When to ask.
    pub arrival: Arrival,
    /// Simulated clients over all workers; each has its own socket or connection. At least 1.
    pub clients: u32,
    /// Worker threads, at least 1 and at most `clients`.
    pub workers: u32,
    /// How long queries are offered in the measured run; `None` if only `queries_max` ends it.
    pub duration: Option<Duration>,
    /// Load offered before the measured run and kept out of its figures.
    pub warmup: Duration,
    /// End the run after that many queries (`--queries`, or `--loops` times the questions).
    pub queries_max: Option<u64>,
    /// A query without response for that long has timed out; counted from when it was sent, or
    /// from when it was scheduled while it waits for its connection.
    pub timeout: Duration,
    /// Length of one interval of the record.
    pub interval: Duration,
    /// Seeds everything random.
    pub seed: u64,
    /// Local addresses, used in turn by the clients; empty lets the kernel choose.
    pub local_addresses: Vec<IpAddr>,
    /// First local port, 0 to let the kernel choose; client `n` gets this port plus `n`.
    pub local_port: u16,
    /// Close a connection after that many queries and open a new one.
    pub queries_per_connection: Option<u32>,
    /// Repeat a query over TCP when its UDP response is truncated.
    pub tcp_fallback: bool,
    /// Socket send and receive buffers in octets; `None` for 4 MiB.
    pub socket_buffer_octets: Option<u32>,
    /// Use UDP GSO and GRO where the kernel has them.
    pub offload: bool,
    /// Signs every query.
    pub tsig: Option<proto::tsig::Key>,
}

/// Which share of `total` falls to `worker` of `workers`; the shares add up to `total`.
pub fn share(total: u64, worker: u32, workers: u32) -> u64 {
    let (worker, workers) = (u64::from(worker), u64::from(workers));
    total / workers + u64::from(worker < total % workers)
}
