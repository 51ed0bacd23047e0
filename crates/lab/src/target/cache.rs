//! What is in the cache of a resolver before a run.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use super::RunningServer;
use super::cell::Cell;
use super::process::Program;

/// Name of the factor.
pub(super) const FACTOR: &str = "cache";
/// What it can be, beside nothing.
pub(super) const STATES: [&str; 2] = ["cold", "warm"];
/// How long a server may take to answer on its control socket.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Empties the cache of a server.
pub(super) type Flush = fn(&RunningServer) -> anyhow::Result<()>;

/// What has to be in the cache before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Whatever is.
    AsItIs,
    /// Nothing.
    Cold,
    /// Every name of the data.
    Warm,
}

impl Cell {
    /// What has to be in its cache before each run.
    pub fn cache(&self) -> Cache {
        match self.text(FACTOR) {
            "cold" => Cache::Cold,
            "warm" => Cache::Warm,
            _ => Cache::AsItIs,
        }
    }

    /// Refuses a state of the cache that it does not have.
    pub(super) fn check_cache(&self) -> anyhow::Result<()> {
        let resolves = !self.text("internet").is_empty() || self.product.behind().is_some();
        anyhow::ensure!(
            resolves || self.cache() == Cache::AsItIs,
            "{}, cache: it serves the zone itself, and has nothing of it in a cache\nhint: set \
             internet too, as in internet=0ms/50ms/10ms",
            self.product.title
        );
        Ok(())
    }

    /// Empties the cache of what was started from it.
    ///
    /// # Errors
    /// It has none, or it does not say that it is empty.
    pub fn flush(&self, server: &RunningServer) -> anyhow::Result<()> {
        let title = self.product.title;
        let flush = self.product.flush();
        let flush = flush.with_context(|| format!("{title} has no cache that can be emptied"))?;
        flush(server).with_context(|| format!("cannot empty the cache of {title}"))
    }
}

/// Runs a program that controls a server, where the server is.
pub(super) fn control(
    server: &RunningServer,
    program: Program,
    arguments: &[String],
) -> anyhow::Result<()> {
    let there = server.network.as_ref().map(|it| it.far_words());
    let mut words: Vec<OsString> = (there.into_iter().flatten())
        .map(OsString::from)
        .chain(program.words()?)
        .collect();
    words.extend(arguments.iter().map(OsString::from));
    let name = program.name();
    let output = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{name}`"))?;
    let said = [output.stdout, output.stderr].concat();
    anyhow::ensure!(
        output.status.success(),
        "`{name} {}` failed ({}): {}",
        arguments.join(" "),
        output.status,
        String::from_utf8_lossy(&said).trim()
    );
    Ok(())
}

/// What a server answers to a line on a socket in its folder: it begins and ends with a prompt.
pub(super) fn answer_on_socket(
    server: &RunningServer,
    socket: &str,
    line: &str,
) -> anyhow::Result<String> {
    const PROMPT: &str = "> ";
    let path = server.folder().join(socket);
    let mut stream = UnixStream::connect(&path)
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
