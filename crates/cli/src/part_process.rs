//! The process of a part: what it is told, it does.

use std::ffi::OsString;
use std::process::ExitCode;

use lab::parts::{Hello, child};
use responder::certificate::from_pem;

use crate::failure::Failure;
use crate::part::{PartIndex, Setup, Work};
use crate::{inputs, part, responder as responder_command, run, signals};

/// Does the part; `arguments` are those after the subcommand's name.
pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    signals::leave_to_parent();
    match execute(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            child::say("failed", &failure.to_json().to_string());
            ExitCode::FAILURE
        }
    }
}

fn execute(arguments: Vec<OsString>) -> Result<(), Failure> {
    let place = arguments.first().and_then(place);
    let place =
        place.ok_or_else(|| part::by_hand("it does not say which process it is".to_owned()))?;
    if arguments.get(1).is_some_and(|it| it == part::HELLO) {
        let hello = Hello::of_this(run::binary()?);
        let hello = serde_json::to_string(&hello).map_err(Failure::in_operation)?;
        child::say("hello", &hello);
    }
    let setup: Setup = part::told()?;
    inputs::provide(&setup.inputs).map_err(Failure::in_operation)?;
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
fn place(text: &OsString) -> Option<PartIndex> {
    let (index, count) = text.to_str()?.split_once('/')?;
    Some(PartIndex {
        index: index.parse().ok()?,
        count: count.parse().ok()?,
    })
}
