//! The process of an agent: it does what its lead says.

use std::ffi::OsString;
use std::process::ExitCode;
use std::thread;

use lab::agents::{Connection, End, FromAgent, Inputs, own_hello};
use responder::certificate::from_pem;
use serde_json::Value;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

use crate::agent::{AgentIndex, Setup, Shared, Work};
use crate::failure::Failure;
use crate::{agent, inputs, responder as responder_command, run, signals, streams};

/// Does an agent's work; `arguments` are those after the subcommand's name.
pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    signals::leave_to_lead();
    let place = arguments.first().and_then(place);
    let Some(place) = place else {
        let failure = agent::by_hand("it does not say which process it is");
        return failure.report();
    };
    let is_elsewhere = arguments.get(1).is_some_and(|it| it == agent::HELLO);
    let mut connection = match open(is_elsewhere) {
        Ok(connection) => connection,
        Err(failure) => return failure.report(),
    };
    let done = execute(&mut connection, place);
    let code = match &done {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    };
    if let Err(failure) = done {
        connection
            .voice()
            .say(FromAgent::Failed(failure.agent_error()));
    }
    connection.finish();
    code
}

/// The connection with the lead.
fn open(is_elsewhere: bool) -> Result<Connection, Failure> {
    if !is_elsewhere {
        return Ok(Connection::open(None, on_end));
    }
    streams::ignore_variables();
    let connection = Connection::open(Some(own_hello(run::identity::program()?)), on_end);
    // What ends a service or a pod of another host ends this agent and not its lead.
    let (voice, signals) = (connection.voice(), Signals::new([SIGTERM]));
    let mut signals = signals.map_err(Failure::in_operation)?;
    thread::spawn(move || signals.forever().for_each(|_| voice.leave()));
    Ok(connection)
}

/// Says why this process ends in the middle of its work, unless its lead knows; its exit code.
fn on_end(end: &End) -> i32 {
    match end {
        End::NoLead(why) => {
            agent::by_hand(why).report();
            1
        }
        End::Damaged(why) => {
            tell!("error: the connection with the lead has ended: {why}");
            1
        }
        End::Gone(_) => 1,
        End::Abandoned(why) => why.exit_code(),
    }
}

/// Does what the lead says, one task after the other.
pub(crate) fn execute(connection: &mut Connection, place: AgentIndex) -> Result<(), Failure> {
    while let Some(task) = connection.next_task() {
        let seat = connection.final_seat();
        let place = seat.map_or(place, |(index, count)| AgentIndex { index, count });
        perform(connection, task, place)?;
    }
    Ok(())
}

fn perform(
    connection: &mut Connection,
    (setup, contents): (Value, Inputs),
    place: AgentIndex,
) -> Result<(), Failure> {
    let setup: Setup =
        serde_json::from_value(setup).map_err(|error| agent::by_hand(&error.to_string()))?;
    inputs::take(&setup.inputs, &contents);
    drop(contents);
    let identity = match &setup.certificate {
        Some(pem) => Some(from_pem(&pem.chain, &pem.key).map_err(Failure::in_operation)?),
        None => None,
    };
    let shared = Shared {
        identity,
        addresses: setup.addresses,
        decided: setup.decided,
    };
    match setup.work {
        Work::Responder(arguments) => {
            responder_command::serve_share(connection, &arguments, shared, place)
        }
        Work::Run { groups, role } => run::execute_share(connection, &groups, role, shared, place),
    }
}

/// `0/3`.
fn place(text: &OsString) -> Option<AgentIndex> {
    let (index, count) = text.to_str()?.split_once('/')?;
    Some(AgentIndex {
        index: index.parse().ok()?,
        count: count.parse().ok()?,
    })
}
