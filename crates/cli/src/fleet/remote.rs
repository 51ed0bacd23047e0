//! A command that asks a lead: for a run and its result, or how far it is.
//!
//! The lead is reached by a command whose standard input and output it is at the other end of. That
//! may break, and is started again then: what was told goes on where it ended, and so does the
//! transfer of the record, which counts only if it is whole (SHA-256).

use std::io::{BufReader, Error};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use engine::{Control, Progress};
use lab::parts::wire::{self, Message};
use lab::parts::{Files, Hello, hash};
use measure::{Interval, RunRecord};
use serde_json::{Value, json};

use super::cluster;
use super::relay;
use super::status::{Phase, Status, setup_of};
use crate::failure::Failure;
use crate::part::binary;
use crate::run::group::Group;

/// How long a lead may be out of reach.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two ways to it.
const PAUSE: Duration = Duration::from_millis(500);

/// A lead, by the command that reaches it.
pub(crate) struct Remote {
    command: String,
    words: Vec<String>,
}

/// A way to the lead, while it lasts.
struct Relay {
    child: Child,
    from: BufReader<ChildStdout>,
    to: ChildStdin,
}

/// Why the lead has not said what it was asked for.
enum Trouble {
    /// The way broke: another may hold.
    Broken(String),
    /// The way holds, and there is no lead at its end.
    Gone,
    /// The lead says so.
    Failed(Failure),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Broken(error.to_string())
    }
}

impl From<serde_json::Error> for Trouble {
    fn from(error: serde_json::Error) -> Self {
        Trouble::Failed(Failure::in_operation(format!(
            "the lead is no throng: {error}"
        )))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and needs it not.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Relay {
    fn say(&mut self, word: &str, about: &[u8]) -> Result<(), Trouble> {
        Ok(wire::write_far(&mut self.to, word, about)?)
    }

    /// The next message that is no failure.
    fn hear(&mut self) -> Result<Message, Trouble> {
        match wire::read(&mut self.from)? {
            None => Err(Trouble::Broken("it says nothing more".to_owned())),
            Some(message) if message.word == "failed" => {
                let told: Value = serde_json::from_slice(&message.about)?;
                Err(Trouble::Failed(Failure::from_json(&told)))
            }
            Some(message) => Ok(message),
        }
    }

    /// Why it said nothing at all. Whatever runs the relay elsewhere ends as that does, and has
    /// codes of its own for a way that broke: ssh 255, kubectl 1.
    fn silent(&mut self, why: String) -> Trouble {
        let asked_at = Instant::now();
        while asked_at.elapsed() < PAUSE {
            match self.child.try_wait() {
                Ok(None) => thread::park_timeout(PAUSE / 50),
                Ok(Some(status)) if status.code() == Some(relay::NO_LEAD) => return Trouble::Gone,
                _ => break,
            }
        }
        Trouble::Broken(why)
    }

    fn ask(&mut self, word: &str, about: &[u8]) -> Result<Message, Trouble> {
        self.say(word, about)?;
        self.hear()
    }
}

impl Remote {
    /// The lead that a command reaches.
    ///
    /// # Errors
    /// It is no command.
    pub(crate) fn by(command: &str) -> Result<Remote, Failure> {
        let words = shlex::split(command).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| {
            Failure::usage(
                "--lead: it is no command",
                "write it as for a shell, such as 'ssh gateway throng fleet relay'",
            )
        })?;
        Ok(Remote {
            command: command.to_owned(),
            words,
        })
    }

    /// A way to the lead, which has to be of the same version as this program.
    fn open(&self) -> Result<Relay, Trouble> {
        let program = &self.words[0];
        let mut child = Command::new(program)
            .args(&self.words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| {
                let what = format!("cannot run `{program}`: {error}");
                Trouble::Failed(Failure::usage(
                    what,
                    "--lead is a command that reaches the lead",
                ))
            })?;
        let (Some(from), Some(to)) = (child.stdout.take(), child.stdin.take()) else {
            return Err(Trouble::Broken("it has no standard streams".to_owned()));
        };
        let from = BufReader::new(from);
        let mut relay = Relay { child, from, to };
        let hello = match relay.hear() {
            Err(Trouble::Broken(why)) => return Err(relay.silent(why)),
            other => other?,
        };
        let hello: Hello = serde_json::from_slice(&hello.about)?;
        let own = Hello::of_this(binary().map_err(Trouble::Failed)?);
        hello.check_words(&own).map_err(|why| {
            let cure = "use the same version here and for the lead";
            Trouble::Failed(Failure::usage(format!("the lead: {why}"), cure))
        })?;
        Ok(relay)
    }

    /// Asks until the way holds for as long as the question takes.
    fn persist<T>(
        &self,
        mut ask: impl FnMut(&mut Relay) -> Result<T, Trouble>,
    ) -> Result<T, Failure> {
        let mut broken_since: Option<Instant> = None;
        loop {
            let asked_at = Instant::now();
            let why = match self.open().and_then(|mut relay| ask(&mut relay)) {
                Ok(answer) => return Ok(answer),
                Err(Trouble::Failed(failure)) => return Err(failure),
                // One that is started again knows nothing of the run.
                Err(Trouble::Gone) => {
                    return Err(Failure::in_operation(format!(
                        "the lead has ended, and the run with it: `{}` finds none",
                        self.command
                    )));
                }
                Err(Trouble::Broken(why)) => why,
            };
            if let Some(lost) = cluster::why_lost(&self.command) {
                return Err(Failure::in_operation(format!(
                    "the lead was lost, and what it had measured with it: {lost}"
                )));
            }
            // A way that held for long is not one that never did.
            if asked_at.elapsed() > PATIENCE {
                broken_since = None;
            }
            let since = *broken_since.get_or_insert_with(Instant::now);
            if since.elapsed() > PATIENCE {
                return Err(Failure::in_operation(format!(
                    "the lead cannot be reached any more: `{}`: {why}",
                    self.command
                )));
            }
            thread::park_timeout(PAUSE);
        }
    }

    /// Once, for a question that must not be asked twice.
    fn once<T>(&self, ask: impl FnOnce(&mut Relay) -> Result<T, Trouble>) -> Result<T, Failure> {
        let asked = self.open().and_then(|mut relay| ask(&mut relay));
        asked.map_err(|trouble| match trouble {
            Trouble::Failed(failure) => failure,
            trouble => {
                let why = match trouble {
                    Trouble::Broken(why) => why,
                    _ => "it finds none".to_owned(),
                };
                let command = &self.command;
                Failure::usage(
                    format!("the lead cannot be reached by `{command}`: {why}"),
                    "`throng fleet lead` starts one; --lead is a command that runs `throng fleet \
                     relay` on its host",
                )
            }
        })
    }

    /// Has the lead begin a run; its number.
    pub(crate) fn begin(&self, groups: Vec<Group>) -> Result<u64, Failure> {
        let (setup, files) = setup_of(groups);
        self.once(|relay| {
            let setup = setup.to_json().to_string();
            let mut answer = relay.ask("setup", setup.as_bytes())?;
            if answer.word == "want" {
                give(relay, &files, &answer.about)?;
                answer = relay.hear()?;
            }
            Ok(serde_json::from_slice(&answer.about)?)
        })
    }

    /// Follows a run to its end: what its record is to be.
    pub(crate) fn follow(
        &self,
        run: u64,
        control: &Control,
        mut show: impl FnMut(Told<'_>) -> Result<(), Failure>,
    ) -> Result<(usize, String), Failure> {
        let mut next = 0_u64;
        let mut asked = Asked::default();
        self.persist(|relay| {
            relay.say("follow", json!([run, next]).to_string().as_bytes())?;
            loop {
                let message = relay.hear()?;
                match message.word.as_str() {
                    "interval" => {
                        let progress = Progress {
                            index: usize::try_from(next).unwrap_or(usize::MAX),
                            interval: serde_json::from_slice::<Interval>(&message.about)?,
                            checkpoint: None,
                        };
                        next += 1;
                        show(Told::Progress(&progress)).map_err(Trouble::Failed)?;
                    }
                    "skipped" => next += serde_json::from_slice::<u64>(&message.about)?,
                    "status" => {
                        let status = serde_json::from_slice(&message.about)?;
                        show(Told::Status(&status)).map_err(Trouble::Failed)?;
                    }
                    "result" => return Ok(serde_json::from_slice(&message.about)?),
                    _ => {}
                }
                asked.pass_on(self, control);
            }
        })
    }

    /// The whole record, from where an earlier transfer broke.
    pub(crate) fn fetch(&self, (octets, sha256): (usize, String)) -> Result<RunRecord, Failure> {
        let mut record: Vec<u8> = Vec::with_capacity(octets.min(wire::OCTETS_MAX));
        self.persist(|relay| {
            relay.say("fetch", record.len().to_string().as_bytes())?;
            loop {
                let message = relay.hear()?;
                match message.word.as_str() {
                    "piece" => record.extend_from_slice(&message.about),
                    _ => return Ok(()),
                }
            }
        })?;
        if hash(&record) != sha256 {
            return Err(Failure::in_operation(
                "the record that came is not the one that was sent (SHA-256)",
            ));
        }
        let text = String::from_utf8(record).map_err(Failure::in_operation)?;
        RunRecord::from_json(&text).map_err(Failure::in_operation)
    }

    pub(super) fn status(&self) -> Result<Status, Failure> {
        self.once(|relay| Ok(serde_json::from_slice(&relay.ask("status", b"")?.about)?))
    }

    /// Tells the lead something that it does at once.
    pub(super) fn tell(&self, word: &str) -> Result<(), Failure> {
        self.once(|relay| relay.ask(word, b"").map(drop))
    }
}

/// What a lead tells of a run.
pub(crate) enum Told<'a> {
    /// An interval is over.
    Progress(&'a Progress),
    /// Nothing has happened for a moment.
    Status(&'a Status),
}

/// What was passed on of the wishes of whoever follows.
#[derive(Default)]
struct Asked {
    stop: bool,
    interrupt: bool,
}

impl Asked {
    fn pass_on(&mut self, remote: &Remote, control: &Control) {
        if control.is_stopped() && !self.stop {
            self.stop = remote.tell("stop").is_ok();
        }
        if control.is_interrupted() && !self.interrupt {
            self.interrupt = remote.tell("interrupt").is_ok();
        }
    }
}

/// Sends the lead files that it wants.
fn give(relay: &mut Relay, files: &Files, wanted: &[u8]) -> Result<(), Trouble> {
    let wanted: Vec<String> = serde_json::from_slice(wanted)?;
    for sha256 in &wanted {
        for piece in files.pieces(sha256) {
            relay.say("piece", &piece)?;
        }
    }
    Ok(())
}

/// A status as a line.
pub(super) fn status_line(status: &Status) -> String {
    let here = status.agents.iter().flatten().count();
    let count = status.agents.len();
    match status.phase {
        Phase::Idle => format!("no run yet; {here} of {count} agents are there"),
        Phase::Gathering => format!("waiting for agents: {here} of {count} are there"),
        Phase::Running => format!(
            "run {} is going on, on {here} agents; {} intervals are over",
            status.runs, status.intervals
        ),
        Phase::Over => format!("run {} is over", status.runs),
    }
}

/// Makes a run by a lead, with the progress display.
pub(crate) fn measure(
    command: &str,
    groups: &[Group],
    (control, show): (&Control, &mut dyn FnMut(&Progress)),
) -> Result<RunRecord, Failure> {
    let remote = Remote::by(command)?;
    let is_quiet = groups[0].output.quiet;
    let mut groups = groups.to_vec();
    for group in &mut groups {
        group.run.generator.lead = None;
    }
    let run = remote.begin(groups)?;
    let mut last = String::new();
    let result = remote.follow(run, control, |told| {
        match told {
            Told::Progress(progress) => show(progress),
            Told::Status(status) if status.phase == Phase::Gathering => {
                if let Some(why) = cluster::is_hopeless(command) {
                    return Err(anyhow::anyhow!("too few agents: {why}").into());
                }
                if cluster::is_settled(command) {
                    remote.tell("enough")?;
                }
                let why = cluster::why_waiting(command);
                let why = why.as_deref().and_then(|why| why.lines().next());
                let why = why.map_or_else(String::new, |why| format!(": {why}"));
                let line = status_line(status) + &why;
                if line != last && !is_quiet {
                    tell!("{line}");
                    last = line;
                }
            }
            Told::Status(_) => {}
        }
        Ok(())
    })?;
    let mut record = remote.fetch(result)?;
    cluster::note_neighbours(command, &mut record);
    Ok(record)
}
