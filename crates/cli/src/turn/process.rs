//! The side of the process that makes the runs.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use lab::files::{self, Access, Opening};
use lab::live::Live;
use rustix::process::{Signal, getpid, kill_process};

use super::{Said, Setup};
use crate::failure::Failure;
use crate::run::Runner;
use crate::scenario::Point;
use crate::signals::Interrupt;
use crate::{agent, inputs, run_command, streams};

/// How often it is looked whether the load has begun.
const BEGUN_EVERY: Duration = Duration::from_millis(1);
/// How long the end of a run waits until its last snapshot is on its way.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes the runs that the command asks of this process, one after the other.
pub(crate) fn execute() -> Result<ExitCode, Failure> {
    let cannot = |error: io::Error| agent::by_hand(&error.to_string());
    let socket = streams::connection().map_err(cannot)?;
    let is_at_work = Arc::new(AtomicBool::new(true));
    let setups = setups(socket.try_clone().map_err(cannot)?, Arc::clone(&is_at_work))?;
    let voice = Voice(Arc::new(Mutex::new(socket)));
    let (interrupt, live) = (run_command::watch(), Live::default());
    let note = |line: &str| voice.say(&Said::Note(line.to_owned()));
    let runner = Runner::with_notes(&interrupt, &live, Box::new(note));
    for setup in setups {
        let setup = setup.map_err(|error| agent::by_hand(&error.to_string()))?;
        is_at_work.store(true, Ordering::Release);
        let made = make(setup, &runner, &voice);
        if let Err(failure) = &made {
            failure.report();
        }
        let failure = match made {
            Ok(concluded) => concluded.failure().map(str::to_owned),
            Err(failure) => Some(failure.what().to_owned()),
        };
        is_at_work.store(false, Ordering::Release);
        voice.say(&Said::Over(failure));
    }
    Ok(ExitCode::SUCCESS)
}

/// What is to be made.
type Setups = Receiver<serde_json::Result<Setup>>;

/// The runs to make, read on a thread of its own. Where the command ends in the midst of one, that
/// run ends as if SIGTERM had come.
fn setups(from: UnixStream, is_at_work: Arc<AtomicBool>) -> Result<Setups, Failure> {
    let (sender, setups) = sync_channel(0);
    let mut lines = BufReader::new(from).lines().map_while(io::Result::ok);
    let first = lines.next();
    let first = first.ok_or_else(|| agent::by_hand("no run was asked for"))?;
    let first = serde_json::from_str(&first).map_err(|it| agent::by_hand(&it.to_string()))?;
    let read = move || {
        let rest = lines.map(|line| serde_json::from_str(&line));
        // None is taken before the run before it is over.
        for setup in std::iter::once(Ok(first)).chain(rest) {
            if sender.send(setup).is_err() {
                return;
            }
        }
        if is_at_work.load(Ordering::Acquire) {
            let _ = kill_process(getpid(), Signal::TERM);
        }
    };
    let started = thread::Builder::new().spawn(read);
    started.map_err(Failure::in_operation)?;
    Ok(setups)
}

/// Makes a run, and says what it shows meanwhile.
fn make(
    setup: Setup,
    runner: &Runner<'_>,
    voice: &Voice,
) -> Result<run_command::Concluded, Failure> {
    if let Some(path) = &setup.log {
        let log =
            files::open(path, Opening::Append, Access::Umask).map_err(Failure::in_operation)?;
        let turned =
            rustix::stdio::dup2_stdout(&log).and_then(|()| rustix::stdio::dup2_stderr(&log));
        turned.map_err(Failure::in_operation)?;
    }
    inputs::read_anew();
    inputs::provide(&setup.inputs).map_err(Failure::in_operation)?;
    if setup.wants_verdicts {
        runner.live.want_verdicts();
    }
    if setup.wants_groups {
        runner.live.want_groups();
    }
    say_when_it_has_begun(runner.interrupt, voice);
    let shows = voice.clone();
    let follower = runner.live.follow(move |next| {
        for snapshot in &next.snapshots {
            shows.say(&Said::Shows(Box::new(snapshot.shown.clone())));
        }
    });
    let runs = [(Point::default(), setup.groups)];
    let made = run_command::make_points(&runs, runner, setup.is_last, |_, _| {});
    if let Ok(follower) = follower {
        follower.end(PATIENCE);
    }
    made
}

/// Says it once the run that is made next has begun.
fn say_when_it_has_begun(interrupt: &Interrupt, voice: &Voice) {
    interrupt.forget_run();
    let (interrupt, voice) = (interrupt.clone(), voice.clone());
    // It ends with the process, or with a run after it, if the run never begins.
    thread::spawn(move || {
        while !interrupt.run_has_begun() {
            thread::park_timeout(BEGUN_EVERY);
        }
        voice.say(&Said::Begun);
    });
}

/// Says something to the command, from any thread.
#[derive(Clone)]
struct Voice(Arc<Mutex<UnixStream>>);

impl Voice {
    fn say(&self, said: &Said) {
        let mut line = serde_json::to_vec(said).expect("snapshots are data");
        line.push(b'\n');
        let mut socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // That the command has gone is seen where it is read.
        let _ = socket.write_all(&line);
    }
}
