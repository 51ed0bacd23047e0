//! The command line of `throng` as a function (`cli::Call`): arguments, files and standard input
//! in; exit code, text and records out. Runs are on the simulator, in virtual time, so that
//! nothing here depends on the host. What needs sockets, signals or further processes is in
//! `tests/real/command_line`.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod aborting;
mod bad_input;
mod call;
mod capacity;
mod ci;
mod claims;
mod coming_from;
mod compare;
mod compare_transports;
#[path = "../../../../measure/tests/conforms/mod.rs"]
mod conforms;
mod defaults;
mod dnsperf;
mod doctor;
mod drop_in;
mod ends;
mod eval;
mod experiment;
mod fit;
mod flags;
mod hosts;
mod init;
mod kubernetes;
mod lifecycle;
mod line;
mod manual;
mod matrix;
mod mistakes;
mod names;
mod observing;
mod ping;
mod pitfalls;
mod processes;
mod profile;
mod query_logs;
mod question_choice;
mod questions;
mod ramp;
mod records;
mod replay;
mod reports;
mod responder;
mod run;
mod scenarios;
mod scripts;
mod simulation;
mod streams;
mod stub_resolvers;
mod timestamps;
mod tls;
mod tls_refused;
mod trace;
mod xdp;
mod zones;
