//! `throng fleet agent`: dials the lead until it is there, and does what it says.

use std::io::ErrorKind;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use lab::parts::{Hello, Join, Joined, Side, Ways, child, join, read_keys};

use crate::args::fleet::AgentArguments;
use crate::failure::Failure;
use crate::part::PartIndex;
use crate::part_process::{self, REFUSED};
use crate::{part, signals};

/// Time between two calls.
const PAUSE: Duration = Duration::from_millis(250);

/// Dials, and is an agent for as long as the lead wants it.
pub(crate) fn execute(arguments: &AgentArguments) -> Result<ExitCode, Failure> {
    let keys = read_keys(&arguments.keys, Side::Agent)?;
    let own = Join {
        index: arguments.index,
        name: format!("{}@{}", u64::from(arguments.index) + 1, lab::host::node()),
        hello: Hello::of_this(part::binary()?),
    };
    let began = Instant::now();
    loop {
        match join(&arguments.connect, &keys, &own) {
            Ok(Joined::Seated(ways)) => return Ok(serve(ways, arguments.index)),
            Ok(Joined::Refused(refusal)) => return Ok(part_process::refused(&refusal)),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                tell!(
                    "error: {} is not this agent's lead: {error}",
                    arguments.connect
                );
                return Ok(ExitCode::from(REFUSED));
            }
            Err(error) if began.elapsed() > arguments.patience => {
                return Err(Failure::in_operation(format!(
                    "the lead at {} cannot be reached: {error}",
                    arguments.connect
                )));
            }
            Err(_) => thread::park_timeout(PAUSE),
        }
    }
}

fn serve(ways: Ways, index: u32) -> ExitCode {
    signals::leave_to_parent();
    let Ways { from, to, .. } = ways;
    child::talk(from, to, true);
    part_process::serve(PartIndex {
        index,
        count: index + 1,
    })
}
