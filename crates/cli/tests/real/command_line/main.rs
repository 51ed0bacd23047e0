//! The command line of `throng`, tried as people and scripts use it: the binary itself, its exit
//! codes, what it prints where, and the files it reads and writes.
//!
//! Targets are responders of the same binary, sockets of the test, and for dnsperf BIND. Needs
//! the Debian packages that `./test` installs.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod aborting;
mod bad_input;
mod beside;
mod capacity;
mod ci;
mod claims;
mod colors;
mod coming_from;
mod compare;
mod compare_transports;
mod completions;
#[path = "../../../../measure/tests/conforms/mod.rs"]
mod conforms;
mod dashboards;
mod defaults;
mod dialling;
mod dnsperf;
mod dnsperf_scripts;
mod doctor;
mod documents;
mod drivers;
mod drop_in;
mod durable;
mod ends;
mod eval;
mod experiment;
mod experiments;
mod far;
mod fit;
mod flags;
mod fleet;
mod forwarder;
mod grafana;
mod hosts;
mod interrupt;
mod killed;
mod kubectl;
mod lab;
mod laid;
mod lifecycle;
mod line;
mod losses;
mod manual;
#[path = "../../pure/in_process/matrix.rs"]
mod matrix;
mod metrics;
mod names;
mod observing;
mod operations;
mod ping;
mod planted;
mod populations;
mod process;
mod processes;
mod profile;
mod progress;
#[path = "../../pure/in_process/query_logs.rs"]
mod query_logs;
mod question_choice;
mod questions;
mod records;
mod replay;
mod resolvers;
mod resperf;
mod responder;
mod run;
mod running;
mod scenarios;
mod scripts;
mod serve;
mod server_cells;
mod stopped;
mod stub_resolvers;
mod timestamps;
mod tls;
mod topologies;
mod trace;
mod tui;
mod web;
mod xdp;
mod zones;
