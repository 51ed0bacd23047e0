//! One call of `kubectl`.

use std::io::{Result, Write};
use std::process::{Command, Output, Stdio};
use std::thread;

/// Runs the command to its end, with this on its standard input.
///
/// # Errors
/// It cannot be started.
pub(crate) fn output(command: &mut Command, stdin: Option<&[u8]>) -> Result<Output> {
    command.stdin(match stdin {
        Some(_) => Stdio::piped(),
        None => Stdio::null(),
    });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let input = child.stdin.take().zip(stdin);
    thread::scope(|scope| {
        // It may print before it has read all.
        scope.spawn(|| {
            if let Some((mut to, stdin)) = input {
                // One that fails before it has read all says why itself.
                let _ = to.write_all(stdin);
            }
        });
        child.wait_with_output()
    })
}
