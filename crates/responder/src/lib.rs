//! The synthetic DNS responder: answers from a zone or for any name, over UDP, TCP, DoT, DoH and
//! DoQ, with delays, losses and faults as programmed.
//!
//! It is the target of self-tests and of this project's own tests, and runs by itself as
//! `throng responder`. A [`ResponderWorker`] runs on any [`driver::Driver`], never blocks, reads
//! no clock of its own and starts no thread:
//!
//! ```
//! # use std::sync::Arc;
//! use responder::{ResponderConfig, ResponderWorker, WorkerPlace};
//!
//! fn respond(driver: &mut impl driver::Driver) -> Result<(), Box<dyn std::error::Error>> {
//!     let config = Arc::new(ResponderConfig::default());
//!     let mut worker = ResponderWorker::new(config, WorkerPlace::ONLY)?;
//!     worker.open(driver)?;
//!     loop {
//!         let until = worker.step(driver);
//!         driver.wait(until);
//!     }
//! }
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`zone`] | what is answered: a zone file's records, rendered, or synthesised answers |
//! | [`answer`](mod@answer) | from a query's octets to a response's |
//! | [`behaviour`] | delays, shares of faults, stalls, limits, and their text forms |
//! | [`certificate`] | the certificate for DoT |
//! | [`config`] | all settings together |
//! | [`counters`] | what was counted |
//! | [`service`] | a model of the time that a server needs, for simulations |
//! | [`worker`] | the state machine on a driver |

#![forbid(unsafe_code)]

pub mod answer;
pub mod behaviour;
pub mod certificate;
pub mod config;
pub mod counters;
mod delayed;
mod draw;
mod freshness;
mod listen;
mod octets;
mod place;
mod quic;
mod respond;
pub mod service;
mod sockets;
mod source_limit;
mod stream;
pub mod worker;
pub mod zone;

pub use behaviour::{Behaviour, ConnectionEnd, Delay, FaultShares, QuicShares, Stall};
pub use config::{ConfigError, Limits, QUIC_STREAMS_MAX, ResponderConfig};
pub use counters::Counters;
pub use place::WorkerPlace;
pub use service::{CacheModel, ServiceCounts, ServiceModel};
pub use worker::ResponderWorker;
pub use zone::Zone;
