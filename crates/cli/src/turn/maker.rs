//! The command's side: processes that make its runs, one run at a time.

use std::fmt::{self, Display, Formatter};
use std::io::{BufRead, BufReader, Result, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lab::live::Live;
use rustix::process::Signal;

use super::{NAME, Said, Setup};
use crate::args::Views;
use crate::child::{self, LOOK_EVERY};
use crate::inputs;
use crate::run::group::Group;
use crate::signals::Interrupt;

/// What a process may have said without being heard: a reader of snapshots is not hurried.
const SAID_MAX: usize = 64;
/// How long a process may take to end that has no more to do, with its agents.
const END_MAX: Duration = Duration::from_secs(5);

/// Makes the runs of a command. Runs of which other hosts have the agents share a process, and the
/// agents with it, which start once; every other run has a process of its own.
pub(crate) struct Maker<'a> {
    pub(crate) interrupt: &'a Interrupt,
    /// Where the runs publish what they show.
    pub(crate) live: Live,
    /// The process that leads the agents of other hosts.
    lasting: Mutex<Option<Process>>,
}

/// Where what a run leaves goes.
pub(crate) struct Places<'a> {
    /// Its record.
    pub(crate) record: &'a Path,
    /// The end of the file to which it prints; without one, only errors are shown.
    pub(crate) log: Option<PathBuf>,
    /// True from when its load begins.
    pub(crate) begun: Option<&'a AtomicBool>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum Made {
    /// As it was to.
    Well,
    /// It says why it failed.
    Failed(String),
    /// Its process ended in its midst.
    Died(ExitStatus),
}

impl Made {
    pub(crate) fn is_well(&self) -> bool {
        matches!(self, Made::Well)
    }
}

impl Display for Made {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Made::Well => f.write_str("it ended in order"),
            Made::Failed(why) => f.write_str(why),
            Made::Died(status) => write!(f, "{status}"),
        }
    }
}

impl<'a> Maker<'a> {
    pub(crate) fn new(interrupt: &'a Interrupt) -> Self {
        Maker {
            interrupt,
            live: Live::default(),
            lasting: Mutex::default(),
        }
    }

    /// Makes a run and waits for its end.
    ///
    /// # Errors
    /// No process can be started.
    pub(crate) fn make(&self, groups: &[Group], places: &Places<'_>) -> Result<Made> {
        let generator = &groups[0].run.generator;
        let lasts = generator.hosts.is_some() || generator.listen.is_some();
        let mut groups = groups.to_vec();
        // The first group says it for all.
        let output = &mut groups[0].output;
        (output.record, output.quiet) = (Some(places.record.to_owned()), true);
        // The command has the terminal and the page, and writes the annotations.
        let metrics = output.views.metrics;
        output.views = Views {
            metrics,
            ..Views::default()
        };
        let setup = Setup {
            groups,
            inputs: inputs::to_json(),
            log: places.log.clone(),
            wants_verdicts: self.live.wants_verdicts(),
            wants_groups: self.live.wants_groups(),
            is_last: !lasts,
        };
        let kept = match lasts {
            true => self.lasting().take(),
            false => None,
        };
        // One that stays beside the agents must be where they are reached from.
        let mut process = match kept.filter(Process::is_near) {
            Some(process) => process,
            None => Process::start()?,
        };
        process.give(&setup)?;
        let made = self.follow(&mut process, places.begun)?;
        if lasts && !matches!(made, Made::Died(_)) {
            *self.lasting() = Some(process);
        }
        Ok(made)
    }

    /// Hears what a process says of its run until that is over. The first signal is passed on.
    fn follow(&self, process: &mut Process, begun: Option<&AtomicBool>) -> Result<Made> {
        let mut is_told = false;
        loop {
            match process.said.recv_timeout(LOOK_EVERY) {
                Ok(Said::Note(line)) => tell!("{line}"),
                Ok(Said::Begun) => {
                    if let Some(begun) = begun {
                        begun.store(true, Ordering::Release);
                    }
                }
                Ok(Said::Shows(shown)) => drop(self.live.publish(*shown)),
                Ok(Said::Over(None)) => return Ok(Made::Well),
                Ok(Said::Over(Some(why))) => return Ok(Made::Failed(why)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return process.child.wait().map(Made::Died);
                }
            }
            if self.interrupt.has_come() && !is_told {
                is_told = true;
                child::signal(&process.child, Signal::INT);
            }
        }
    }

    fn lasting(&self) -> std::sync::MutexGuard<'_, Option<Process>> {
        // Nothing panics while it is held.
        self.lasting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Maker<'_> {
    fn drop(&mut self) {
        self.live.close();
    }
}

/// A process that makes runs. When its connection ends, it ends: between two runs at once, in the
/// midst of one as if SIGTERM had come.
struct Process {
    child: Child,
    connection: UnixStream,
    said: Receiver<Said>,
    /// The network namespace that it was started in.
    network: Option<PathBuf>,
    /// Dropped after it has ended.
    _errors: child::Errors,
}

impl Process {
    fn start() -> Result<Process> {
        let (connection, other) = UnixStream::pair()?;
        let reading = BufReader::new(connection.try_clone()?);
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(NAME).stdin(OwnedFd::from(other));
        // Ctrl-C is passed on once: two would abort it.
        command.stdout(Stdio::null()).process_group(0);
        let (child, errors) = child::spawn(&mut command)?;
        let (sender, said) = sync_channel(SAID_MAX);
        let process = Process {
            child,
            connection,
            said,
            network: network(),
            _errors: errors,
        };
        thread::Builder::new().spawn(move || {
            for line in reading.lines().map_while(Result::ok) {
                let Ok(said) = serde_json::from_str(&line) else {
                    break;
                };
                if sender.send(said).is_err() {
                    break;
                }
            }
        })?;
        Ok(process)
    }

    /// True if it is in the network namespace of this thread.
    fn is_near(&self) -> bool {
        self.network == network()
    }

    fn give(&mut self, setup: &Setup) -> Result<()> {
        let mut line = serde_json::to_vec(setup)?;
        line.push(b'\n');
        // One that has gone does not hear it, and its end is waited for.
        let _ = self.connection.write_all(&line);
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has gone already if this fails.
        let _ = self.connection.shutdown(Shutdown::Both);
        let until = Instant::now() + END_MAX;
        while Instant::now() < until {
            match self.child.try_wait() {
                Ok(None) => thread::park_timeout(LOOK_EVERY),
                _ => return,
            }
        }
        child::signal(&self.child, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The network namespace of this thread; none where the system does not say.
fn network() -> Option<PathBuf> {
    std::fs::read_link("/proc/thread-self/ns/net").ok()
}
