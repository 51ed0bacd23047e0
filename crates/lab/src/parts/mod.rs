//! Parts of one command in processes of their own, because one may not open enough files.
//!
//! The process that the user started is the parent: it starts its own binary once for each part,
//! tells each what to do, and puts together what they report. It sends no load itself. Both ways
//! are messages of a word and what it is about (`wire`), through the parts' standard input and
//! output, those of ssh, or a connection that an agent has dialled (`gate`, `connection`, `keys`):
//!
//! | from | message | |
//! |---|---|---|
//! | part | `join {...}` | who it is, if it has dialled: first of all |
//! | part | `hello {...}` | who it is, if it was started on another host: first of all |
//! | parent | `seated` | it has its place, if it has dialled |
//! | parent | `refused {...}` | it is not let in |
//! | parent | `place I/N` | which of the parts it is, if its command line does not say it |
//! | parent | `setup {...}` | what to do: settings as types, with their secrets |
//! | part | `want [...]` | files of the run that it does not have, by their SHA-256 |
//! | parent | `piece ...` | a piece of such a file |
//! | part | `ready` | its clients are set up |
//! | parent | `clock N` | what its clock shows |
//! | part | `clock N M` | the same, and what its own clock shows |
//! | parent | `start N` | start at that instant of the part's clock |
//! | parent | `slew N` | its clock has gone ahead by so much since the start |
//! | part | `interval {...}` | an interval is over on all its threads |
//! | part | `checkpoint {...}` | its record until the end of that interval |
//! | part | `vain` | the first queries of all its threads have failed |
//! | part | `record {...}` | its run is over; another setup may come |
//! | part | `listening [...]` | a responder's addresses |
//! | part | `counters [...]` | what a responder counted: last of all |
//! | part | `failed {...}` | why it could not |
//! | parent | `stop` | end early, and report |
//! | parent | `interrupt` | the same, and wait for open queries only a second |
//! | parent | `give-up` | the same, because nothing was answered |
//! | parent | `end` | nothing more is to be done |
//!
//! Nothing is left behind: a part whose parent has gone exits at once, whatever ended its
//! parent, and parts end with the value that owns them ([`Parts`]). A part that says nothing for
//! long, such as one that was stopped (SIGSTOP), is ended.
//!
//! A part of a run that ends before its time does not take the result with it: that is the last
//! checkpoint of all parts (`checkpoints`).

mod agents;
mod checkpoints;
pub mod child;
mod clocks;
mod connection;
mod fate;
mod files;
mod gate;
mod hello;
mod keys;
mod parent;
mod run;
mod serve;
pub mod wire;

pub use connection::Ways;
pub use files::{FileName, Files, hash};
pub use gate::{Gate, Join, Joined, Refusal, join};
pub use hello::Hello;
pub use keys::{KeyFiles, Side, make_keys, read_keys};
pub use parent::{Event, PartCommand, Parts, PartsError};
pub use run::{run_part, run_parts};
pub use serve::{serve_part, serve_parts, start_responders};
