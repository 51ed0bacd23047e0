//! The first process of a pod in which agents are started from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use crate::args::fleet::WaitArguments;
use crate::failure::Failure;
use crate::signals;

/// How often agents are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Waits for a signal, or until no agent has run for that time: the command that started them is
/// gone.
pub(super) fn wait(arguments: &WaitArguments) -> Result<ExitCode, Failure> {
    let signals = signals::receiver()?;
    let mut seen = Instant::now();
    while seen.elapsed() < arguments.idle {
        let left = arguments.idle.saturating_sub(seen.elapsed());
        match signals.recv_timeout(left.min(LOOK_EVERY)) {
            Err(RecvTimeoutError::Timeout) => {}
            // Nothing is lost: agents are led by another process.
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return Ok(ExitCode::SUCCESS),
        }
        if agent_runs() {
            seen = Instant::now();
        }
    }
    tell!("no agent has run for {} s", arguments.idle.as_secs());
    Ok(ExitCode::SUCCESS)
}

/// True if another process runs this program.
fn agent_runs() -> bool {
    let program = |process: &Path| fs::read_link(process.join("exe")).ok();
    let (own, id) = (program(Path::new("/proc/self")), std::process::id());
    let is_other = |process: &PathBuf| {
        let name = process.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.parse::<u32>().ok());
        number.is_some_and(|number| number != id) && program(process) == own
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    own.is_some() && processes.map(|entry| entry.path()).any(|it| is_other(&it))
}
