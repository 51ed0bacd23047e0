//! `throng fleet`: runs in Kubernetes, keys, and agents that dial their lead.

mod causes;
mod collected;
mod experiment;
mod interrupts;
mod kubernetes;
mod lead;
mod neighbours;
mod said;
mod waiting;
mod watch;

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use lab::agents::{
    Abandoned, Connection, End, FromAgent, Join, KeyFiles, Refusal, Side, describe, make_keys,
    own_hello, read_keys,
};
use lab::files::{self, Access};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::agent::AgentIndex;
use crate::agent_process;
use crate::args::fleet::{FleetAgentArguments, FleetArguments, FleetCommand, KeysArguments};
use crate::failure::Failure;
use crate::signals::{BY_SIGNAL, exit_at_once};
use crate::{run, streams};

/// Kubernetes' number of a pod of an indexed Job.
const INDEX: &str = "JOB_COMPLETION_INDEX";
/// Pauses between attempts to reach the lead: each is twice as long as the one before.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The signal that asked this agent to end; 0 for none.
static LEAVES_FOR: AtomicI32 = AtomicI32::new(0);

/// Does what is asked.
pub(crate) fn execute(arguments: &FleetArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        FleetCommand::Run(arguments) => kubernetes::run(arguments),
        FleetCommand::Manifest(arguments) => kubernetes::manifest(arguments),
        FleetCommand::Attach(arguments) => kubernetes::attach(arguments),
        FleetCommand::Status(arguments) => kubernetes::status(arguments),
        FleetCommand::Fetch(arguments) => kubernetes::fetch(arguments),
        FleetCommand::Stop(arguments) => kubernetes::stop(arguments),
        FleetCommand::Keys(arguments) => keys(arguments),
        FleetCommand::Agent(arguments) => agent(arguments),
        FleetCommand::Lead(arguments) => lead::lead(arguments),
        FleetCommand::Wait(arguments) => waiting::wait(arguments),
        FleetCommand::Result => lead::show(),
        FleetCommand::Take(arguments) => lead::take(arguments),
        FleetCommand::Part(arguments) => lead::part(arguments),
        FleetCommand::Confirm => lead::confirm(),
        FleetCommand::Interrupt => lead::interrupt(),
    }
}

fn keys(arguments: &KeysArguments) -> Result<ExitCode, Failure> {
    let folder = &arguments.folder;
    let made = make_keys()?;
    let cannot = |path: &Path, error: std::io::Error| {
        Failure::unwritable(
            format!("cannot make {}: {error}", path.display()),
            &error,
            "name a folder that does not exist, in one that can be written",
        )
    };
    let made_folder = files::make_private_folder(folder);
    made_folder.map_err(|error| cannot(folder, error))?;
    for (name, text) in &made {
        let path = folder.join(name);
        let written = files::write_new(&path, Access::Owner, text);
        written.map_err(|error| cannot(&path, error))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn agent(arguments: &FleetAgentArguments) -> Result<ExitCode, Failure> {
    let keys = read_keys(&arguments.keys, Side::Agent)?;
    let join = Join {
        index: index(arguments)?,
        name: arguments.name.clone().unwrap_or_else(own_name),
        hello: own_hello(run::identity::program()?),
    };
    // What it does is decided where its lead is.
    streams::ignore_variables();
    let signals = signals()?;
    let mut connection = reach(arguments, &keys, &join, &signals)?;
    let voice = connection.voice();
    thread::spawn(move || signals.iter().for_each(|_| voice.leave()));
    let seat = connection.seat().map_err(|refusal| refused(&refusal))?;
    let Some((index, count)) = seat else {
        return Ok(left());
    };
    tell!("agent {} of {count} waits for its task", index + 1);
    let done = agent_process::execute(&mut connection, AgentIndex { index, count });
    if LEAVES_FOR.load(Ordering::SeqCst) != 0 && done.is_err() {
        return Ok(left());
    }
    if let Err(failure) = &done {
        connection
            .voice()
            .say(FromAgent::Failed(failure.agent_error()));
    }
    connection.finish();
    done?;
    match LEAVES_FOR.load(Ordering::SeqCst) {
        0 => Ok(ExitCode::SUCCESS),
        _ => Ok(left()),
    }
}

fn index(arguments: &FleetAgentArguments) -> Result<u32, Failure> {
    let given = arguments.index.or_else(|| {
        let variable = streams::variable(INDEX)?;
        variable.to_str()?.parse().ok()
    });
    given.ok_or_else(|| {
        Failure::usage(
            "the agent has no number",
            format!("add --index N, from 0, or set {INDEX}"),
        )
    })
}

/// The host's name.
fn own_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "?".to_owned(), |it| it.trim().to_owned())
}

/// Signals that ask this agent to end, as they come; the second one ends the process.
fn signals() -> Result<Receiver<i32>, Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(Failure::in_operation)?;
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for signal in signals.forever() {
            if LEAVES_FOR.swap(signal, Ordering::SeqCst) != 0 {
                exit_at_once(signal);
            }
            // Without a receiver the agent has ended.
            let _ = sender.send(signal);
        }
    });
    Ok(receiver)
}

/// Its exit code after a signal.
fn left() -> ExitCode {
    let code = BY_SIGNAL + LEAVES_FOR.load(Ordering::SeqCst);
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Dials until the lead is there.
fn reach(
    arguments: &FleetAgentArguments,
    keys: &KeyFiles,
    join: &Join,
    signals: &Receiver<i32>,
) -> Result<Connection, Failure> {
    let lead = arguments.lead.as_str();
    let until = Instant::now() + arguments.patience;
    let mut pause = PAUSE_MIN;
    loop {
        let error = match Connection::dial((lead, keys), join.clone(), on_end) {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };
        let refused = |what| Failure::coded(what, KEYS_HINT, Refusal::EXIT_CODE);
        match error.kind() {
            ErrorKind::InvalidData => {
                let what = format!("{lead} is not the lead of this agent: {error}");
                return Err(refused(what));
            }
            ErrorKind::PermissionDenied => {
                let what = format!("the lead does not accept this agent: {error}");
                return Err(refused(what));
            }
            _ => {}
        }
        if Instant::now() + pause > until {
            let within = arguments.patience.as_secs();
            return Err(Failure::usage(
                format!("cannot reach the lead at {lead} within {within} s: {error}"),
                "`throng run --listen ADDRESS:PORT` has to run there; --patience tries longer",
            ));
        }
        if !matches!(signals.recv_timeout(pause), Err(RecvTimeoutError::Timeout)) {
            exit_at_once(LEAVES_FOR.load(Ordering::SeqCst));
        }
        pause = (2 * pause).min(PAUSE_MAX);
    }
}

const KEYS_HINT: &str = "lead and agents need the keys of one `throng fleet keys`";

fn refused(refusal: &Refusal) -> Failure {
    let hint = match refusal {
        Refusal::OtherProgram(_) => "lead and agents have to be the same file",
        Refusal::NoSuchAgent(_) | Refusal::Taken(_) => {
            "each agent has a number of its own, from 0 (--index)"
        }
        Refusal::Late => "start it before the run, or give the run a longer --barrier-timeout",
    };
    let what = format!("the lead refused this agent: {}", describe(refusal));
    Failure::coded(what, hint, refusal.exit_code())
}

/// Says why this agent ends in the middle of its work; its exit code.
fn on_end(end: &End) -> i32 {
    let signal = LEAVES_FOR.load(Ordering::SeqCst);
    if signal != 0 {
        return BY_SIGNAL + signal;
    }
    let lost = Abandoned::Unheard.exit_code();
    let (what, hint, code) = match end {
        End::NoLead(why) => (
            format!("the lead does not accept this agent: {why}"),
            Some(KEYS_HINT),
            i32::from(Refusal::EXIT_CODE),
        ),
        End::Gone(None) => ("the lead has ended the connection".to_owned(), None, lost),
        End::Gone(Some(why)) | End::Damaged(why) => (
            format!("the connection with the lead has ended: {why}"),
            None,
            lost,
        ),
        End::Abandoned(why) => {
            let what = match why {
                Abandoned::Unheard => "the lead was silent for too long",
                Abandoned::Late => "the agent heard of the start too late",
            };
            (what.to_owned(), None, why.exit_code())
        }
    };
    tell!("error: {what}");
    if let Some(hint) = hint {
        tell!("hint: {hint}");
    }
    code
}
