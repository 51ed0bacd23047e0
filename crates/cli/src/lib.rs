//! The command `throng`: measures what a DNS service can take, and says what limited the result.
//!
//! Flags, exit codes and printing; what is behind them is in the other crates.
//!
//! Exit codes: 0 the command did what it was asked to; 1 it ran but failed (no response at all, a
//! file could not be written); 2 it could not be started: wrong usage, bad input, or a target that
//! cannot be reached. Nothing was sent then. 3 it did, and a condition of `--fail-if` or
//! `--require` was not as it must be, or undecided with `--undecided fail`, or `throng doctor`
//! found a problem. 4 a condition of `--abort-if` ended the run early. 129, 130 or 143 SIGHUP,
//! SIGINT or SIGTERM interrupted it: what it had measured until then is printed and recorded.
//!
//! # Where to look
//!
//! * `args`: all flags; help, man page and completions are made from these definitions.
//!   `args::flags` says in one table where each flag of a run means something; `run::unused`
//!   refuses those that are given where they do not.
//! * `call`: which command a command line asks for; the same as a function, for tests. `streams`:
//!   what a command reads and prints, of the process or of its caller.
//! * `command_line`: words to arguments, and what is said of those that are wrong; `habits`: what
//!   other programs call it, and what to type here; `help`: the first screen of each command,
//!   examples and topics.
//! * `defaults`: what files and environment variables say where the command line is silent.
//! * `run_command`: `throng run`, once or for each point of a sweep, and what is printed of it.
//! * `scenario`: scenario files; a group is parsed as a command line of its own,
//!   `scenario::events` splits groups into parts.
//! * `run`: from what is asked for to a request, progress, Ctrl-C, the result; `run::asked` reads
//!   flags into it, and what comes after that knows no flag; `run::group` is the request of
//!   a group of clients, `run::prepared` a run that is decided.
//! * `run::processes`: a run of several agents, for lead and agent; `agent` is what these are to
//!   do, `agent_process` where one begins. `turn` is a run in a process of its own.
//! * `run::elsewhere`: agents on other hosts, `run::hosts` those that ssh starts; `fleet`: one that
//!   dials its lead.
//! * `compare_transports`: runs over several transports in turn, everything checked before the
//!   first.
//! * `compare`: two sides from files, `compare::turns`: from runs in turn (`turn`); `conditions`:
//!   `--fail-if` and `--require`, `junit`: `--junit` without a result.
//! * `capacity`: what a search needs: each trial is a run with its own rate; `ramp`: a run whose
//!   rate grows, with an eye on it.
//! * `probe`: a query now and then: `ping` and `eval` are runs of one client a server with an
//!   observer, `trace` is not a run.
//! * `fit`: captures and logs as files, and what a profile says in a few lines; `replay` is a run
//!   of their queries (`run::captured`), `run::profile` one of clients drawn from a profile.
//! * `records`: run records as files, `records::destination` where they go; `inputs`: files that
//!   are read, pipes but once; `reports`: `throng report`; `schemas`: `throng schema`.
//! * `views`: `--metrics`, `--grafana`, `--tui` and `--web`, and `throng serve`, the pages of the
//!   crate `web` over the records of a folder.
//! * `servers`: `throng lab`: real servers, started, listed and ended.
//! * `line`: `throng line`, until a signal, its time or its command ends it.
//! * `doctor`: `throng doctor`, a file for each of its modes.
//! * `experiment`: the runs of a matrix (`turn`), each of which can be repeated by hand;
//!   `experiment::cells` is what is run and in which order, `experiment::folder` what is done,
//!   `experiment::hooks` the shell; `experiment::servers` starts servers and `experiment::gate`
//!   has them checked, `experiment::matrix` shows cells in views, `experiment::results` compares
//!   them; `history` asks the records of a folder.
//! * `dnsperf`: dnsperf's flags and output, translated to and from our own; `dnsperf/resperf` and
//!   `dnsperf/queryperf` are what these have beside them. Messages are dnsperf's, for scripts
//!   look for them; `tests/real/command_line/drop_in.rs` runs both side by side.
//! * `init`: `throng init`, which writes the scenarios and experiments that are beside it.
//! * `ceiling`: the generator's ceiling for each transport, as a table or JSON.
//! * `failure`: errors for people, and exit codes; `signals`: what ends a command early; `child`:
//!   runs that end with their parent; `terminal`: lines for terminals alone; `secrets`:
//!   command lines without what may be a secret.
//! * `notices`, beside `src`: the licences of what is in the binary, and how they are collected.
//! * `fuzzing`: what fuzz targets call, and why this is a library; `src/bin/throng.rs` calls it.
//! * `tests/pure/tidy`: the tidy test.

#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)]
#![cfg_attr(
    not(feature = "views"),
    allow(dead_code, reason = "views alone use it")
)]

#[macro_use]
mod terminal;

#[cfg(all(test, feature = "views"))]
#[allow(dead_code, reason = "its tests use a part of it")]
#[path = "views/absent.rs"]
mod absent_views;
mod agent;
mod agent_process;
mod args;
mod cache;
mod call;
mod capacity;
mod ceiling;
mod child;
mod command_line;
mod compare;
mod compare_transports;
mod completions;
mod conditions;
mod defaults;
mod dnsperf;
mod doctor;
mod experiment;
mod failure;
mod fit;
mod fleet;
#[doc(hidden)]
pub mod fuzzing;
mod habits;
mod help;
mod history;
mod init;
mod inputs;
mod junit;
mod line;
mod manual;
mod names;
mod probe;
mod ramp;
mod records;
mod replay;
mod reports;
mod responder;
mod run;
mod run_command;
mod scenario;
mod schemas;
mod script;
mod secrets;
mod servers;
mod shell;
mod signals;
mod streams;
mod turn;
#[cfg(feature = "views")]
mod views;
#[cfg(not(feature = "views"))]
#[path = "views/absent.rs"]
mod views;

use std::ffi::OsString;
use std::process::ExitCode;

pub use call::{Call, Outcome};
use failure::Failure;

/// Does what the arguments of this process ask for; returns its exit code.
pub fn main() -> ExitCode {
    abort_on_panic();
    child::end_with_parent();
    signals::outlive_file_limit();
    driver::memory::end_aborts_without_memory();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let code = match arguments.get(1).and_then(|it| it.to_str()) {
        Some(agent::NAME) => agent_process::main(arguments.into_iter().skip(2).collect()),
        Some(turn::NAME) => call::exit_code(turn::execute()),
        _ => call::command(arguments),
    };
    // A display that waits for a slow terminal may go on.
    terminal::restore();
    code
}

/// A bug in one worker must not leave the others running towards a wrong result.
fn abort_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if ::responder::zone::survives_panics() {
            return;
        }
        // The standard library panics where the system allows no further thread, or no stack.
        let what = panic.payload_as_str();
        if what.is_some_and(|what| what.contains("failed to allocate")) {
            terminal::restore_here();
            driver::memory::exhausted();
        }
        if let Some(what) = what.filter(|what| what.contains("spawn thread")) {
            terminal::restore_here();
            let error = format!("the system allows no further thread: {what}");
            let hint = "raise its limits on processes and memory (`ulimit -u`, `ulimit -v`, the \
                        pids and memory of its control group), or use fewer --workers";
            let code = Failure::in_operation(error).or_hint(hint).report();
            std::process::exit(i32::from(code != ExitCode::SUCCESS));
        }
        terminal::restore();
        report(panic);
        std::process::abort();
    }));
}
