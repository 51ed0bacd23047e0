//! Control programs and control sockets of servers.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use super::RunningServer;
use super::folder::TempFolder;
use super::process::Program;

/// The folder of a server, as it and the programs that control it see it. The path of a socket has
/// at most 107 octets (unix(7)), and that of the folder may have more.
pub(super) const HERE: &str = "/proc/self/cwd";
/// How long a server may take to answer on its control socket.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A control program, run in the server's network and folder.
pub(super) fn command(
    server: &RunningServer,
    program: Program,
    arguments: impl IntoIterator<Item = String>,
) -> anyhow::Result<Command> {
    let there = server.network.as_ref().map(|it| it.far_words());
    let there = there.into_iter().flatten().map(OsString::from);
    in_folder(server.folder(), there.chain(program.words()?), arguments)
}

fn in_folder(
    folder: &Path,
    words: impl IntoIterator<Item = OsString>,
    arguments: impl IntoIterator<Item = String>,
) -> anyhow::Result<Command> {
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().context("no program")?);
    command.args(words).args(arguments);
    command.current_dir(folder).stdin(Stdio::null());
    Ok(command)
}

/// Runs such a program; returns its output.
pub(super) fn run(
    server: &RunningServer,
    program: Program,
    arguments: &[&str],
) -> anyhow::Result<String> {
    let words = arguments.iter().map(|&word| word.to_owned());
    output(command(server, program, words)?, program)
}

/// Runs one in the folder of a server that has not started, as the server's user, who then owns its
/// files; returns its output.
pub(super) fn run_before(
    folder: &TempFolder,
    program: Program,
    arguments: &[&str],
) -> anyhow::Result<String> {
    let user = folder.user().map(|it| it.words(false, false));
    let user = user.into_iter().flatten().map(OsString::from);
    let words = arguments.iter().map(|&word| word.to_owned());
    let command = in_folder(folder.path(), user.chain(program.words()?), words)?;
    output(command, program)
}

fn output(mut command: Command, program: Program) -> anyhow::Result<String> {
    let name = program.name();
    let output = command
        .output()
        .with_context(|| format!("cannot run `{name}`"))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    let arguments: Vec<_> = command.get_args().map(|it| it.to_string_lossy()).collect();
    anyhow::ensure!(
        output.status.success(),
        "`{name} {}` failed ({}): {said}",
        arguments.join(" "),
        output.status,
    );
    Ok(said)
}

/// A server's answer to a line on a socket in its folder, between two prompts.
pub(super) fn answer_on_socket(
    server: &RunningServer,
    socket: &str,
    line: &str,
) -> anyhow::Result<String> {
    const PROMPT: &str = "> ";
    let path = server.folder().join(socket);
    let mut stream = observe::connect_unix(&path, ANSWER_MAX)
        .with_context(|| format!("cannot connect to `{}`", path.display()))?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    stream.write_all(format!("{line}\n").as_bytes())?;
    let (mut answer, mut octets) = (String::new(), [0; 4_096]);
    while answer.len() <= PROMPT.len() || !answer.ends_with("\n> ") {
        let read = stream.read(&mut octets).context("no whole answer")?;
        anyhow::ensure!(read > 0, "the server closed its control socket: {answer}");
        answer.push_str(&String::from_utf8_lossy(&octets[..read]));
    }
    Ok(answer)
}
