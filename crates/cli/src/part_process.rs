//! The process of a part: what it is told, it does; then the next.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use lab::parts::{Files, Hello, Refusal, child};
use responder::certificate::from_pem;

use crate::failure::Failure;
use crate::part::{PartIndex, Setup, Work};
use crate::{inputs, part, responder as responder_command, run, signals};

/// Exit code of an agent that came when the run had begun.
pub(crate) const LATE: u8 = 4;
/// Exit code of an agent that is not one of the fleet.
pub(crate) const REFUSED: u8 = 5;
/// How long one look for something to do takes.
const LOOK: Duration = Duration::from_secs(60);

/// Does the part; `arguments` are those after the subcommand's name.
pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    signals::leave_to_parent();
    match begin(&arguments) {
        Ok(place) => serve(place),
        Err(failure) => failure.report(),
    }
}

/// Says who it is, if its parent is on another host.
fn begin(arguments: &[OsString]) -> Result<PartIndex, Failure> {
    let place = arguments.first().and_then(|it| place(it.to_str()?));
    let place =
        place.ok_or_else(|| part::by_hand("it does not say which process it is".to_owned()))?;
    let is_elsewhere = arguments.get(1).is_some_and(|it| it == part::HELLO);
    child::talk_through_pipes(is_elsewhere);
    if is_elsewhere {
        let hello = Hello::of_this(part::binary()?);
        let hello = serde_json::to_string(&hello).map_err(Failure::in_operation)?;
        child::say("hello", &hello);
    }
    Ok(place)
}

/// Does one thing after the other that the parent says, until it has gone or says that it was the
/// last. Files of the last one are kept for the next.
pub(crate) fn serve(mut own: PartIndex) -> ExitCode {
    let mut files = Files::default();
    loop {
        let Some(message) = child::receive(LOOK) else {
            continue;
        };
        match message.word.as_str() {
            "place" => {
                let told = std::str::from_utf8(&message.about).ok().and_then(place);
                own = told.unwrap_or(own);
            }
            "setup" => {
                if let Err(failure) = execute(&message.about, own, &mut files) {
                    child::say("failed", &failure.to_json().to_string());
                }
            }
            child::GONE => {
                return part::by_hand("nobody tells it what to do".to_owned()).report();
            }
            // Said to the last run when that was over already.
            _ => {}
        }
    }
}

fn execute(setup: &[u8], place: PartIndex, files: &mut Files) -> Result<(), Failure> {
    let setup: Setup = serde_json::from_slice(setup).map_err(Failure::in_operation)?;
    (files.complete(&setup.inputs, child::say, child::receive)).map_err(Failure::in_operation)?;
    inputs::provide_files(&setup.inputs, files);
    let identity = match &setup.certificate {
        Some(pem) => Some(from_pem(&pem.chain, &pem.key).map_err(Failure::in_operation)?),
        None => None,
    };
    let shared = (identity, setup.addresses);
    match setup.work {
        Work::Responder(arguments) => responder_command::serve_part(&arguments, shared, place),
        Work::Run { groups, role } => run::execute_part(&groups, role, shared, place),
    }
}

/// `0/3`.
fn place(text: &str) -> Option<PartIndex> {
    let (index, count) = text.split_once('/')?;
    Some(PartIndex {
        index: index.parse().ok()?,
        count: count.parse().ok()?,
    })
}

/// An agent that the lead has not let in: exit codes of their own, so that whatever starts agents
/// does not try again.
pub(crate) fn refused(refusal: &Refusal) -> ExitCode {
    tell!("error: the lead has refused this agent: {}", refusal.why);
    ExitCode::from(if refusal.is_late { LATE } else { REFUSED })
}
