//! One call of `kubectl`.

use std::io::{Read, Result, Write};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

/// Runs the command to its end, with this on its standard input.
///
/// # Errors
/// It cannot be started.
pub(crate) fn output(command: &mut Command, stdin: Option<&[u8]>) -> Result<Output> {
    let child = start(command, stdin)?;
    finish(child, stdin, || {})
}

/// Starts the command, which [`finish`] gives this on its standard input.
///
/// # Errors
/// It cannot be started.
pub(super) fn start(command: &mut Command, stdin: Option<&[u8]>) -> Result<Child> {
    command.stdin(match stdin {
        Some(_) => Stdio::piped(),
        None => Stdio::null(),
    });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn()
}

/// Reads what the command prints, and waits for its end; `on_printed` is called in between.
///
/// # Errors
/// It cannot be read from or waited for.
pub(super) fn finish(
    mut child: Child,
    stdin: Option<&[u8]>,
    on_printed: impl FnOnce(),
) -> Result<Output> {
    let input = child.stdin.take().zip(stdin);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let printed = thread::scope(|scope| {
        // It may print before it has read all.
        scope.spawn(|| {
            if let Some((mut to, stdin)) = input {
                // One that fails before it has read all says why itself.
                let _ = to.write_all(stdin);
            }
        });
        let stderr = scope.spawn(|| read_all(stderr));
        let stdout = read_all(stdout);
        let stderr = stderr.join().expect("a reader does not panic");
        stdout.and_then(|stdout| Ok((stdout, stderr?)))
    });
    on_printed();
    let status = child.wait()?;
    let (stdout, stderr) = printed?;
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

fn read_all(stream: Option<impl Read>) -> Result<Vec<u8>> {
    let mut octets = Vec::new();
    if let Some(mut stream) = stream {
        stream.read_to_end(&mut octets)?;
    }
    Ok(octets)
}
