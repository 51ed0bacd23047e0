//! A program that is asked for its output: for no longer, and for no more of it, than allowed.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::gap::Gap;
use crate::stream::Allowance;

/// Interval between two checks of a program that has closed its output but has not ended.
const PAUSE: Duration = Duration::from_millis(1);

/// Runs a program in that folder and returns its standard output. Outside the folder the paths of
/// sockets among its arguments may be too long. A program that takes too long is killed.
pub(crate) fn output(
    program: &str,
    (arguments, folder): (&[&str], Option<&Path>),
    allowance: &Allowance,
) -> Result<Vec<u8>, Gap> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    if let Some(folder) = folder.filter(|it| it.is_dir()) {
        command.current_dir(folder);
    }
    let started = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child =
        started.map_err(|error| Gap::Gone(format!("`{program}` cannot be run: {error}")))?;
    let mut running = Running(child);
    let said = reader(running.0.stdout.take(), *allowance);
    let complained = reader(running.0.stderr.take(), *allowance);
    let octets = said.recv_timeout(allowance.left()?).unwrap_or_else(|_| {
        allowance
            .left()
            .and(Err(Gap::Gone(format!("`{program}` ended without output"))))
    })?;
    // Its output has ended, or was more than allowed: it has nothing left to do.
    let (_nobody, never) = mpsc::channel::<()>();
    let status = loop {
        match running.0.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {
                let _ = never.recv_timeout(PAUSE.min(allowance.left()?));
            }
            Err(error) => return Err(Gap::Gone(format!("`{program}`: {error}"))),
        }
    };
    if status.success() {
        return Ok(octets);
    }
    let complaint = complained
        .recv_timeout(allowance.left()?)
        .ok()
        .and_then(Result::ok);
    let complaint = complaint.unwrap_or_default();
    let complaint = String::from_utf8_lossy(&complaint);
    let complaint = complaint.lines().next().unwrap_or("without output").trim();
    Err(Gap::Refused(format!("`{program}` failed: {complaint}")))
}

/// Killed and reaped when dropped, if it still runs.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if it has ended and was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads a pipe on a thread of its own, which ends with the program.
fn reader(
    pipe: Option<impl Read + Send + 'static>,
    allowance: Allowance,
) -> mpsc::Receiver<Result<Vec<u8>, Gap>> {
    let (to, from) = mpsc::channel();
    if let Some(pipe) = pipe {
        thread::spawn(move || {
            // The receiver is gone if the program took too long.
            let _ = to.send(allowance.read_all(pipe));
        });
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Limits;

    fn run(script: &str, time: Duration) -> Result<Vec<u8>, Gap> {
        let limits = Limits {
            time,
            octets: 1_000,
        };
        output(
            "sh",
            (&["-c", script], None),
            &Allowance::starting_now(limits),
        )
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_program_says_something_fails_says_too_much_or_never_ends() {
        assert_eq!(run("echo yes", PATIENCE), Ok(b"yes\n".to_vec()));
        let failed = run("echo wrong >&2; exit 3", PATIENCE).unwrap_err();
        assert_eq!(failed, Gap::Refused("`sh` failed: wrong".to_owned()));
        assert_eq!(run("yes", PATIENCE), Err(Gap::Large(1_000)));
        let short = Duration::from_millis(100);
        assert_eq!(
            run("exec cat /dev/zero > /dev/null", short),
            Err(Gap::Slow(short))
        );
        let limits = Allowance::starting_now(Limits::default());
        let gone = output("no-such-program", (&[], None), &limits).unwrap_err();
        assert!(gone.to_string().contains("cannot be run"), "{gone}");
    }
}
