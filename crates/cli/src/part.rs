//! `throng part I/N`: one process of a command that needs several. Nobody but its parent starts it.
//!
//! It reads the same files as its parent, which tells it the rest through standard input
//! (`lab::parts`): the flags, which of the command's runs it is, and what only one process can
//! make, such as the responder's ports and certificate. Everybody on the host may read the command
//! line of a process, and flags may have keys: so they are not on it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;

use data_encoding::BASE64;
use lab::parts::{PartCommand, child};
use responder::certificate::{Identity, from_pem};
use serde_json::{Value, json};

use crate::args::Command;
use crate::failure::Failure;
use crate::scenario::Group;
use crate::{
    capacity, compare_transports, inputs, ramp, replay, responder as responder_command, run,
    scenario, signals,
};

/// The subcommand, which has no help of its own.
pub(crate) const NAME: &str = "part";

/// What a part is told at its start.
#[derive(Clone, Debug)]
pub(crate) struct Setup(Value);

impl Setup {
    /// What all parts of a command are told; `fields` are those of one kind of part.
    pub(crate) fn new(identity: Option<&Identity>, fields: Value) -> Self {
        let mut setup = fields;
        if let Some(identity) = identity {
            setup["certificate_pem"] = json!(identity.certificate_pem);
            setup["key_pem"] = json!(identity.key_pem);
        }
        setup["inputs"] = inputs::to_json();
        let flags = std::env::args_os().skip(1);
        setup["flags"] = flags.map(|flag| BASE64.encode(flag.as_bytes())).collect();
        Setup(setup)
    }

    /// The command line of its parent.
    fn flags(&self) -> Option<Vec<OsString>> {
        let decode = |flag: &Value| BASE64.decode(flag.as_str()?.as_bytes()).ok();
        let flags = self.0["flags"].as_array()?.iter();
        flags
            .map(|flag| decode(flag).map(OsString::from_vec))
            .collect()
    }

    /// As the parent sends it.
    pub(crate) fn json(&self) -> &Value {
        &self.0
    }

    /// One of its fields.
    pub(crate) fn field(&self, name: &str) -> &Value {
        &self.0[name]
    }

    /// A number among its fields; 0 if there is none.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap_or(0)
    }

    /// The certificate that its parent has made.
    pub(crate) fn identity(&self) -> Result<Option<Identity>, Failure> {
        let text = |name: &str| self.0[name].as_str();
        let (Some(certificate), Some(key)) = (text("certificate_pem"), text("key_pem")) else {
            return Ok(None);
        };
        let identity = from_pem(certificate, key).map_err(Failure::in_operation)?;
        Ok(Some(identity))
    }
}

/// A part's place among those of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// From 0.
    pub(crate) index: u32,
    /// How many there are.
    pub(crate) count: u32,
}

/// How this command starts its parts.
pub(crate) fn command() -> Result<PartCommand, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::in_operation(format!("cannot start further processes: {error}"))
    })?;
    Ok(PartCommand {
        program,
        before: vec![NAME.into()],
    })
}

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
    let by_hand = |reason: String| {
        Failure::usage(
            format!("this command is for `throng` itself: {reason}"),
            "use `throng run --processes N`",
        )
    };
    let place = arguments.first().and_then(place);
    let place = place.ok_or_else(|| by_hand("it has no place".to_owned()))?;
    let setup = Setup(child::receive_setup().map_err(by_hand)?);
    inputs::provide(setup.field("inputs")).map_err(Failure::in_operation)?;
    let flags = setup.flags();
    let flags = flags.ok_or_else(|| by_hand("it has no flags".to_owned()))?;
    let line = [OsString::from("throng")].into_iter().chain(flags);
    let parsed = crate::parse(line.collect()).map_err(|error| Failure::of_flags(&error, "run"))?;
    let number = setup.number("run") as usize;
    let groups: Vec<Group> = match parsed.command {
        Command::Run(command) => match (&command.scenario, command.run.profile.profile_mix) {
            (None, false) => vec![Group::plain(&command.run)],
            (path, _) => scenario::groups_of(path.as_deref(), &command.run, number)?,
        },
        Command::Replay(arguments) => {
            // Its parent has told what is in the capture.
            vec![Group::plain(&replay::run_of(&arguments, |_| ())?)]
        }
        Command::CompareTransports(arguments) => {
            vec![Group::plain(&compare_transports::run_of(
                &arguments, number,
            )?)]
        }
        Command::Capacity(arguments) => {
            vec![Group::plain(&capacity::run_of(&arguments, number)?)]
        }
        Command::Ramp(arguments) => vec![Group::plain(&ramp::run_of(&arguments)?)],
        Command::Responder(arguments) => {
            return responder_command::serve_part(&arguments, &setup, place);
        }
        _ => return Err(by_hand("there are no parts of that command".to_owned())),
    };
    run::execute_part(&groups, &setup, place)
}

/// `0/3`.
fn place(text: &OsString) -> Option<Place> {
    let (index, count) = text.to_str()?.split_once('/')?;
    Some(Place {
        index: index.parse().ok()?,
        count: count.parse().ok()?,
    })
}
