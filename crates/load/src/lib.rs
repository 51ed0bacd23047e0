//! What to query, which client sends it, and when: names files, question sets, arrival schedules,
//! the plan.
//!
//! Opens no file and reads no clock: texts go in, a [`Plan`] comes out; the same plan and seed
//! always give the same queries in the same order.
//!
//! | module | contents |
//! |---|---|
//! | [`names_file`] | dnsperf's two input formats, `name type` lines and the binary stream |
//! | [`line_options`] | what may follow the type on such a line: `+do`, `+ecs=192.0.2.0/24`, ... |
//! | [`update_file`] | dnsperf's dynamic update blocks (RFC 2136) |
//! | [`questions`] | what these become: message templates in one block of memory |
//! | [`query_kind`] | the type, class and options of such a line by themselves |
//! | [`question_source`] | which of them is asked next; generated labels |
//! | [`names_error`] | why such a file cannot be used: place, fault, cure |
//! | [`arrival`] | when queries are due, and how rates are written |
//! | [`apportion`] | a total divided by weights, among groups and targets |
//! | [`plan`] | one run as decided, and what it may not contradict |
//! | [`client_arrival`] | how each client of a population asks |
//! | [`shape`] | how that changes over time |
//! | [`stub`] | when clients ask again, and which of their servers |
//! | [`random`] | random numbers of one client |
//! | [`tls`] | how TLS is asked for, and which share of connections resumes |
//! | [`LoadMax`] | the most that a plan can send |
//! | [`local_addresses`] | `127.0.0.0/24` as 254 addresses |
//! | [`profile`] | how a population of clients asks, and drawing from that |
//! | [`replay`] | queries of a capture, asked again by the same clients in the same order |
//! | [`name_sets`] | generated names with the zones that hold them; shuffling |

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")
)]

pub mod apportion;
pub mod arrival;
pub mod client_arrival;
mod client_order;
mod connection_policy;
pub mod line_options;
mod load_max;
pub mod local_addresses;
pub mod name_sets;
pub mod names_error;
pub mod names_file;
pub mod plan;
mod plan_error;
mod presence;
pub mod profile;
pub mod query_kind;
pub mod question_source;
pub mod questions;
pub mod random;
mod rdata;
pub mod replay;
mod script_text;
pub mod shape;
pub mod stub;
pub mod tls;
pub mod update_file;
mod words;

pub use arrival::{Arrival, Schedule};
pub use client_arrival::ClientArrival;
pub use client_order::ClientOrder;
pub use load_max::LoadMax;
pub use names_error::NamesError;
pub use plan::{Plan, ScriptText};
pub use plan_error::PlanError;
pub use profile::Profile;
pub use question_source::{QuestionChooser, QuestionSource};
pub use questions::QuestionSet;
pub use replay::Replay;
pub use settings::{ConnectionPolicy, Presence, SocketOptions, StampSource, StubPolicy};
pub use shape::Shape;
pub use tls::{Resume, TlsAsked};
