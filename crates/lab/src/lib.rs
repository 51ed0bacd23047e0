//! Runs and what they need: the host, the servers under test, the way from request to record.
//!
//! [`run`] takes a decided run and returns its record, on the kernel's sockets or in the
//! simulator, [`capacity`] many in turn; [`ceiling`] measures the generator alone. [`target`]
//! starts real DNS servers on free loopback ports and always cleans up after them; [`agents`]
//! spreads a run over several processes; [`key_log`] writes TLS secrets to a file; [`trace`] finds
//! the way to a server; [`host`] reads what a run record has to say about the machine. Linux only.
//!
//! # Where to look
//!
//! * `run`: one run from request to record: look before, start, run, judge. `run::preflight`
//!   finds out before the run what would spoil it; `run::self_test` runs the responder on
//!   threads; `run::simulation` runs everything in virtual time, `run::simulation::account` says
//!   in the record what was assumed; `run::record` puts the record together.
//! * `run::division`: how many processes a run needs, and which of its threads each has;
//!   `run::addresses`: source addresses, where one has too few ports.
//! * `capacity`: trials, one after the other, until a search has ended or its time is over; the
//!   trials themselves are the caller's.
//! * `experiment`: which runs there are of what is varied, and their order, also of comparisons;
//!   `ramp`: a rate that grows; `groups`: what several groups of clients share.
//! * `trace`: the way to a server, by queries that go one hop further each time.
//! * `ceiling`: what the generator could do if nothing else took time: engine and responder on
//!   the two ends of the null driver, only the engine's turns counted.
//! * `agents`: a run or a responder in several processes, here or on other hosts: starting them,
//!   their streams, and how what they measured becomes one record.
//! * `host`: facts about a host, this one or one that a folder stands for, and the kernel's
//!   counters, from `/proc` and `/sys`; `host::reading` adds what only `throng doctor` asks,
//!   `host::usage` whose the CPU time is: ours, the target's, or something else's.
//! * `live`: what runs show while they go on, for any number of readers: the newest snapshots, each
//!   with its number.
//! * `files`: the one way to write files, also where other users may write.
//! * `key_log`: TLS secrets as a file, for those who decrypt captures.
//! * `observing`: what servers tell of themselves beside a run, into its record.
//! * `line`: a delay line between two network namespaces.
//! * `target`: real servers under test, on free loopback ports, gone when dropped, unless they are
//!   left running for a person.
//!   `target::products` has a file for each: what it needs, what of it can be set, and its
//!   configuration; `target::cell` is one with its factors set, `target::start` how each starts,
//!   `target::network` what is between it and its generator, `target::resources` what it may use,
//!   `target::internet` the root and domains of resolvers, `target::gate` whether a server answers
//!   as its zone says, and `target::running_list` what runs or was left over.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a test that panics has failed")
)]

pub mod agents;
pub mod capacity;
pub mod ceiling;
pub mod experiment;
pub mod files;
pub mod groups;
pub mod host;
pub mod key_log;
pub mod kubernetes;
pub mod line;
pub mod live;
pub mod observing;
pub mod ramp;
pub mod run;
pub mod target;
pub mod trace;
