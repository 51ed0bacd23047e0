//! Parts of one command in processes of their own, because one may not open enough files.
//!
//! The process that the user started is the parent: it starts its own binary once for each part,
//! tells each what to do, and puts together what they report. It sends no load itself. Both ways
//! are lines of a word, a blank and JSON, through the parts' standard input and output:
//!
//! | from | line | |
//! |---|---|---|
//! | parent | `setup {...}` | first; what to do: settings as types, with their secrets |
//! | part | `hello {...}` | who it is, if it is on another host: before the setup |
//! | part | `ready` | its clients are set up |
//! | parent | `clock N` | what its clock shows |
//! | part | `clock N M` | the same, and what its own clock shows |
//! | parent | `beat` | it is there: to parts that are not asked for their clocks |
//! | parent | `start N` | start at that instant of the part's clock |
//! | part | `interval {...}` | an interval is over on all its threads |
//! | part | `checkpoint {...}` | its record until the end of that interval |
//! | part | `vain` | the first queries of all its threads have failed |
//! | part | `record {...}` | its run is over: last line |
//! | part | `listening [...]` | a responder's addresses |
//! | part | `counters [...]` | what a responder counted: last line |
//! | part | `failed {...}` | why it could not: last line |
//! | parent | `stop` | end early, and report |
//! | parent | `interrupt` | the same, and wait for open queries only a second |
//! | parent | `give-up` | the same, because nothing was answered |
//!
//! Nothing is left behind: a part whose standard input ends exits at once, whatever ended its
//! parent, and parts end with the value that owns them ([`Parts`]). A part that says nothing for
//! long, such as one that was stopped (SIGSTOP), is ended. A part that sends load and hears nothing
//! for ten seconds, since its parent was stopped or the way to it was cut, stops and ends.
//!
//! A part of a run that ends before its time does not take the result with it: that is the last
//! checkpoint of all parts (`checkpoints`).

mod agents;
mod checkpoints;
pub mod child;
mod clocks;
mod fate;
mod hello;
mod parent;
mod run;
mod serve;

pub use hello::Hello;
pub use parent::{Event, PartCommand, Parts, PartsError, setup_line};
pub use run::{run_part, run_parts};
pub use serve::{serve_part, serve_parts, start_responders};
