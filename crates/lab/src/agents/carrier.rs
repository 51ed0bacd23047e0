//! The lead's side: starting agents or admitting them, their streams, ending them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use agents::{
    Abandoned, BEAT_EVERY, DeadMan, Decoder, Failure, FrameError, FromAgent, Inputs, Place,
    ToAgent, Why,
};
use driver::clock::Clock;
use proto::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

use super::secured::Secured;
use crate::run::RunError;

/// How long an agent may take to end that has closed its output.
const END_MAX: Duration = Duration::from_secs(2);
/// How long one look at what has come from agents takes.
pub(super) const TURN: Duration = Duration::from_millis(20);
/// Octets that are read or written at a time.
const PIECE: usize = 1 << 20;
/// What waits to be written to an agent: beats of a minute, and what is said once.
const WRITES_MAX: usize = 128;
/// What was read and waits for the lead; who says more waits.
const EVENTS_MAX: usize = 1_024;
/// Characters that are shown of what is no agent's.
const OUTPUT_SHOWN: usize = 80;

/// How an agent is started. Everybody on the host may see it: what it is to do beyond this goes
/// through its pipe.
#[derive(Clone, Debug)]
pub struct AgentCommand {
    /// The program.
    pub program: OsString,
    /// What comes before the agent's number, such as `agent`.
    pub before: Vec<OsString>,
    /// What comes after it.
    pub after: Vec<OsString>,
    /// Where it is.
    pub place: Place,
}

/// What agents are to do, and what there is to read.
#[derive(Clone, Debug)]
pub struct Task {
    /// As the agent's program takes it.
    pub setup: Value,
    /// Files that it refers to.
    pub inputs: Inputs,
    /// No run follows that may need them again.
    pub is_last: bool,
}

/// Why the agents did not do what they were to do; all of them have been ended.
#[derive(Debug)]
pub enum AgentsError {
    /// Nothing was sent.
    Refused(RunError),
    /// An agent ended, or said nonsense, while it was at work.
    Broken(RunError),
}

impl AgentsError {
    pub(super) fn refused(what: impl fmt::Display) -> Self {
        AgentsError::Refused(RunError::plain(what))
    }
}

impl From<RunError> for AgentsError {
    fn from(error: RunError) -> Self {
        AgentsError::Refused(error)
    }
}

/// What has come from an agent.
#[derive(Debug)]
pub(super) enum Carried {
    /// A message, which was read at that instant.
    Message(FromAgent, Instant),
    /// A part of a long message was read or written.
    Piece,
    /// What are no messages; nothing more is read.
    Unreadable(FrameError),
    /// It says nothing more; why, where the connection knows that.
    Closed(Option<String>),
}

/// Agents at work; dropping them ends their processes, and waits until they are gone.
#[derive(Debug)]
pub struct Carrier {
    members: Vec<Member>,
    carried: Receiver<(usize, Carried)>,
    sender: SyncSender<(usize, Carried)>,
    /// How many there will be.
    count: u32,
    clock: Clock,
    /// The contents that all of them have been given.
    given: BTreeSet<String>,
    /// They have no run: they hear by themselves that their lead is there.
    is_waiting: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Member {
    peer: Peer,
    /// What a separate thread writes to the agent, so that a stalled agent does not delay the
    /// others. Once this is none, the agent's standard input ends.
    writes: Option<SyncSender<Written>>,
    place: Place,
    /// Its queue of writes was full: it did not read its messages.
    is_full: bool,
}

/// What is at the other end of an agent's streams.
#[derive(Debug)]
enum Peer {
    /// A process of this host: the agent, or what carries its messages.
    Process(Child),
    /// An agent that has dialled.
    Dialled(TcpStream),
}

impl Peer {
    /// Ends it, or the connection with it. One that has ended already cannot be ended, and needs
    /// it not.
    fn end(&mut self) {
        match self {
            Peer::Process(child) => drop(child.kill()),
            Peer::Dialled(socket) => drop(socket.shutdown(Shutdown::Both)),
        }
    }

    fn wait(&mut self) {
        if let Peer::Process(child) = self {
            let _ = child.wait();
        }
    }

    fn pid(&self) -> Option<u32> {
        match self {
            Peer::Process(child) => Some(child.id()),
            Peer::Dialled(_) => None,
        }
    }
}

/// What is to be written.
enum Written {
    Frames(Arc<[u8]>),
    /// What there is to read, encoded once for all agents.
    Inputs(Arc<[Vec<u8>]>),
    /// A question for its clock, with the time of the writing; what the lead has heard of it.
    Clock(Option<u64>),
}

impl Carrier {
    /// For `count` agents, none of which is started yet. Messages are stamped by this clock.
    pub fn new(count: u32, clock: Clock) -> Self {
        let (sender, carried) = sync_channel(EVENTS_MAX);
        Carrier {
            members: Vec::new(),
            carried,
            sender,
            count,
            clock,
            given: BTreeSet::new(),
            is_waiting: Arc::default(),
        }
    }

    /// How many there are or will be.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// How many were started.
    pub(super) fn started(&self) -> usize {
        self.members.len()
    }

    /// Starts the next agent, in a process group of its own so that Ctrl-C reaches the lead alone.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(&mut self, command: &AgentCommand) -> Result<(), AgentsError> {
        let index = self.members.len();
        let cannot = |error: std::io::Error| {
            let program = command.program.display();
            AgentsError::refused(format!(
                "cannot start {} ({program}): {error}",
                who(&command.place, (index, self.count), None)
            ))
        };
        let mut child = Command::new(&command.program)
            .args(&command.before)
            .arg(format!("{}/{}", index, self.count))
            .args(&command.after)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let decoder = match command.place {
            Place::Here => Decoder::new(),
            Place::Host(_) => Decoder::of_stranger(),
        };
        if let (Some(stdin), Some(stdout)) = (stdin, stdout) {
            self.join(Peer::Process(child), command.place.clone());
            self.carry(stdin, (stdout, decoder));
        }
        Ok(())
    }

    /// Admits the next agent, which has dialled and said who it is.
    pub(super) fn admit(&mut self, connection: Secured, place: Place) {
        self.join(Peer::Dialled(connection.socket), place);
        self.carry(connection.writing, (connection.reading, Decoder::new()));
    }

    fn join(&mut self, peer: Peer, place: Place) {
        self.members.push(Member {
            peer,
            writes: None,
            place,
            is_full: false,
        });
    }

    /// Carries what the last member says, and what is said to it, on threads of their own.
    fn carry(
        &mut self,
        to: impl Write + Send + 'static,
        (from, decoder): (impl Read + Send + 'static, Decoder),
    ) {
        let Some(index) = self.members.len().checked_sub(1) else {
            return;
        };
        let (writes, written) = sync_channel(WRITES_MAX);
        self.members[index].writes = Some(writes);
        let (sender, clock) = (self.sender.clone(), self.clock);
        let is_waiting = Arc::clone(&self.is_waiting);
        std::thread::spawn(move || write((index, clock), to, (&written, &is_waiting), &sender));
        let (sender, clock) = (self.sender.clone(), self.clock);
        std::thread::spawn(move || read((index, clock), decoder, from, &sender));
    }

    /// Where an agent is.
    pub(super) fn place(&self, index: usize) -> &Place {
        &self.members[index].place
    }

    /// An agent, for people.
    pub fn name(&self, index: usize) -> String {
        let member = &self.members[index];
        who(&member.place, (index, self.count), member.peer.pid())
    }

    /// Says something to an agent. One that has gone does not hear it, and its end is an event.
    ///
    /// # Errors
    /// It is too long.
    pub fn say(&mut self, index: usize, message: &ToAgent) -> Result<(), AgentsError> {
        let written = match message {
            ToAgent::Clock { heard_ns, .. } => Written::Clock(*heard_ns),
            message => Written::Frames(encoded(message)?),
        };
        self.write(index, written);
        Ok(())
    }

    /// Says something to all agents that were started.
    ///
    /// # Errors
    /// It is too long.
    pub fn say_to_all(&mut self, message: &ToAgent) -> Result<(), AgentsError> {
        let frames = encoded(message)?;
        for index in 0..self.members.len() {
            self.write(index, Written::Frames(Arc::clone(&frames)));
        }
        Ok(())
    }

    /// Gives all agents, which have been started, what there is to read and they do not have.
    ///
    /// # Errors
    /// It is too long.
    pub(super) fn give(&mut self, inputs: &Inputs) -> Result<(), AgentsError> {
        let frames = encoded_inputs(inputs, &self.given)?;
        self.given.extend(inputs.hashes().cloned());
        for index in 0..self.members.len() {
            self.write(index, Written::Inputs(Arc::clone(&frames)));
        }
        Ok(())
    }

    /// Whether all wait for their next run.
    pub(super) fn note_waiting(&self, is_waiting: bool) {
        self.is_waiting.store(is_waiting, Ordering::Relaxed);
    }

    /// Nothing follows what was said.
    pub(super) fn say_no_more(&mut self) {
        for member in &mut self.members {
            member.writes = None;
        }
    }

    /// The same for one.
    pub(super) fn give_one(&mut self, index: usize, inputs: &Inputs) -> Result<(), AgentsError> {
        let frames = encoded_inputs(inputs, &BTreeSet::new())?;
        self.write(index, Written::Inputs(frames));
        Ok(())
    }

    fn write(&mut self, index: usize, written: Written) {
        let member = &mut self.members[index];
        let Some(writes) = &member.writes else { return };
        if let Err(std::sync::mpsc::TrySendError::Full(_)) = writes.try_send(written) {
            member.is_full = true;
            self.end(index);
        }
    }

    /// What comes next from any agent, within `wait`.
    pub(super) fn next(&self, wait: Duration) -> Option<(usize, Carried)> {
        // The carrier's own sender is there as long as it is: nothing but the time can be over.
        self.carried.recv_timeout(wait).ok()
    }

    /// Looks whether all agents are at work, when they have nothing to say.
    ///
    /// # Errors
    /// One has ended.
    pub(super) fn check(&mut self) -> Result<(), AgentsError> {
        while let Some((index, carried)) = self.next(Duration::ZERO) {
            match carried {
                Carried::Message(FromAgent::Beat, _) | Carried::Piece => {}
                other => return Err(self.unexpected(index, other)),
            }
        }
        Ok(())
    }

    /// The error of an agent that does what it is not expected to do.
    pub(super) fn unexpected(&mut self, index: usize, carried: Carried) -> AgentsError {
        let why = match carried {
            Carried::Closed(why) => Why::Ended(self.end_of(index, why)),
            Carried::Message(FromAgent::Failed(error), _) => Why::Reported(error),
            Carried::Unreadable(error) => Why::Invalid(error.to_string()),
            Carried::Message(message, _) => Why::Invalid(format!("{message:.60?}")),
            Carried::Piece => Why::Invalid("a part of a message".to_owned()),
        };
        self.error(&Failure { agent: index, why })
    }

    /// Ends an agent that says nothing any more.
    pub(super) fn end(&mut self, index: usize) {
        self.members[index].peer.end();
    }

    /// How an agent has ended that says nothing more, and `why` as far as its connection knows.
    /// One that goes on without saying anything, such as `ssh` to a host that is gone, is ended.
    pub fn end_of(&mut self, index: usize, why: Option<String>) -> String {
        let member = &mut self.members[index];
        if member.is_full {
            member.peer.end();
            return "it did not read its messages".to_owned();
        }
        let child = match &mut member.peer {
            Peer::Process(child) => child,
            Peer::Dialled(_) => {
                // It waits for this, to end itself.
                member.peer.end();
                let why = why.unwrap_or_else(|| "it has closed it".to_owned());
                return format!("its connection has ended: {why}");
            }
        };
        let has_ended = ends_within(child, END_MAX);
        if !has_ended {
            // One that has ended in between cannot be killed, and needs it not.
            let _ = child.kill();
        }
        match child.wait() {
            Ok(status) if has_ended => describe(status, &member.place),
            Ok(_) => "it closed its output and did not end".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// Why there is no result, for people.
    pub(super) fn error(&self, failure: &Failure) -> AgentsError {
        let name = self.name(failure.agent);
        let broken = |what: String, hint: &str| AgentsError::Broken(RunError::new(what, hint));
        match &failure.why {
            Why::Reported(reported) => {
                let error = RunError {
                    what: reported.what.clone(),
                    hint: reported.hint.clone(),
                };
                let error = match self.place(failure.agent) {
                    Place::Host(_) => RunError {
                        what: format!("{name}: {}", elsewhere(&error.what)),
                        hint: error.hint.as_deref().map(elsewhere),
                    },
                    Place::Here => error,
                };
                match reported.code {
                    2 => AgentsError::Refused(error),
                    _ => AgentsError::Broken(error),
                }
            }
            Why::Refused(why) => AgentsError::Refused(RunError::new(
                format!("{name}: {why}"),
                "copy this program there; all agents have to be the same one",
            )),
            Why::NoGreeting(time) => AgentsError::Refused(RunError::new(
                format!("{name}: no answer within {} s", time.as_secs()),
                "`ssh HOST true` has to work without a question",
            )),
            Why::Invalid(reason) => AgentsError::Broken(RunError::plain(format!(
                "{name} sent an invalid report, please report this bug: {reason}"
            ))),
            Why::Silent(time) => broken(
                format!("{name} has not reported for {:.0} s", time.as_secs_f64()),
                "it may have been stopped (SIGSTOP); all processes were ended, and there is no \
                 result",
            ),
            Why::Stalled(time) => broken(
                format!(
                    "the workers of {name} have ended no interval for {:.0} s",
                    time.as_secs_f64()
                ),
                "all processes were ended, and there is no result; `top` on that host shows what \
                 they do",
            ),
            Why::Stopped => AgentsError::refused("it was ended before the run began"),
            Why::NotAwake => broken(
                format!("{name} did not answer in time before the start: nothing was sent"),
                "its host, or the way to it, may be overloaded",
            ),
            Why::Late(by) => broken(
                format!(
                    "{name} heard of the start {:.3} s too late, and did not begin",
                    by.as_secs_f64()
                ),
                "all processes were ended, and there is no result; its host, or the way to it, \
                 may have been stopped",
            ),
            Why::Ended(how) => broken(
                format!("{name} died in the run: {how}"),
                "the others were ended, and there is no result; if the kernel ended it for lack \
                 of memory (`dmesg` shows it), use fewer clients",
            ),
            Why::Left => broken(
                format!("{name} was asked to end (SIGTERM) before the first checkpoint of all"),
                "the others were ended, and there is no result",
            ),
        }
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        for member in &mut self.members {
            // Before its standard input ends: an agent without a task would say that a person had
            // started it.
            member.peer.end();
            member.writes = None;
        }
        for member in &mut self.members {
            member.peer.wait();
        }
    }
}

fn encoded(message: &ToAgent) -> Result<Arc<[u8]>, AgentsError> {
    let frames = agents::encode(message).map_err(|error| {
        AgentsError::refused(format!("what the agents are to do cannot be sent: {error}"))
    })?;
    Ok(frames.into())
}

/// Those that are not known.
fn encoded_inputs(
    inputs: &Inputs,
    known: &BTreeSet<String>,
) -> Result<Arc<[Vec<u8>]>, AgentsError> {
    let encode = |message| {
        agents::encode(&message)
            .map_err(|error| AgentsError::refused(format!("an input cannot be sent: {error}")))
    };
    inputs.messages(known).map(encode).collect()
}

/// What an agent's host printed before it, for people.
pub(super) fn shown(octets: &[u8]) -> String {
    let line = octets.split(|it| *it == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let shown: String = line.chars().filter(|it| !it.is_control()).collect();
    shown.trim().chars().take(OUTPUT_SHOWN).collect()
}

/// The words of an agent on another host, for people on this one.
fn elsewhere(words: &str) -> String {
    let words = words.replace("this host", "its host");
    words.replace("this machine", "its host")
}

/// An agent, for people.
fn who(place: &Place, (index, count): (usize, u32), pid: Option<u32>) -> String {
    match (place, pid) {
        (Place::Host(host), _) => format!("agent {} of {count} ({host})", index + 1),
        (Place::Here, Some(pid)) => format!("agent {} of {count} (PID {pid})", index + 1),
        (Place::Here, None) => format!("agent {} of {count}", index + 1),
    }
}

/// Writes messages to an agent, until it takes no more or there are no more. While it has no run,
/// the lead may be at something else: this says for it that it is there.
fn write(
    (index, clock): (usize, Clock),
    mut stdin: impl Write,
    (written, is_waiting): (&Receiver<Written>, &AtomicBool),
    sender: &SyncSender<(usize, Carried)>,
) {
    let mut put = |octets: &[u8], is_part: bool| {
        for piece in octets.chunks(PIECE) {
            stdin.write_all(piece)?;
            if is_part || octets.len() > PIECE {
                // A lead that is busy learns of the next one.
                let _ = sender.try_send((index, Carried::Piece));
            }
        }
        stdin.flush()
    };
    loop {
        let next = match written.recv_timeout(BEAT_EVERY) {
            Ok(next) => next,
            Err(RecvTimeoutError::Timeout) if !is_waiting.load(Ordering::Relaxed) => continue,
            Err(RecvTimeoutError::Timeout) => match encoded(&ToAgent::Beat) {
                Ok(frames) => Written::Frames(frames),
                Err(_) => return,
            },
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let put = match next {
            Written::Frames(frames) => put(&frames, false),
            Written::Inputs(parts) => parts.iter().try_for_each(|part| put(part, true)),
            Written::Clock(heard_ns) => {
                let asked_ns = clock.now().as_nanos();
                match encoded(&ToAgent::Clock { asked_ns, heard_ns }) {
                    Ok(frames) => put(&frames, false),
                    Err(_) => return,
                }
            }
        };
        if put.is_err() {
            return;
        }
    }
}

/// Hands on what an agent says, until it says nothing more.
fn read(
    (index, clock): (usize, Clock),
    mut decoder: Decoder,
    mut stdout: impl Read,
    sender: &SyncSender<(usize, Carried)>,
) {
    let mut piece = vec![0; PIECE];
    let hand_on = |carried| sender.send((index, carried)).is_ok();
    let why = loop {
        let read = match stdout.read(&mut piece) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Ok(0) => break None,
            Err(error) => break Some(error.to_string()),
            Ok(read) => read,
        };
        let now = clock.now();
        decoder.push(&piece[..read]);
        let mut has_some = false;
        loop {
            let carried = match decoder.poll() {
                Ok(None) => break,
                Ok(Some(message)) => Carried::Message(message, now),
                Err(error) => {
                    hand_on(Carried::Unreadable(error));
                    return;
                }
            };
            if matches!(carried, Carried::Message(FromAgent::Hello(_), _)) {
                decoder.let_in();
            }
            has_some = true;
            if !hand_on(carried) {
                // The lead has ended.
                return;
            }
        }
        if !has_some && !hand_on(Carried::Piece) {
            return;
        }
    };
    hand_on(Carried::Closed(why));
}

/// Waits for the end of a process, at most for that long; false if it goes on.
fn ends_within(child: &mut Child, time: Duration) -> bool {
    let Ok(process) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else {
        // Some kernels open no descriptor of a process that has ended.
        return child.try_wait().is_ok_and(|status| status.is_some());
    };
    let mut ends = [PollFd::new(&process, PollFlags::IN)];
    let time = Timespec::try_from(time).ok();
    poll(&mut ends, time.as_ref()).is_ok_and(|ready| ready > 0)
}

fn describe(status: ExitStatus, place: &Place) -> String {
    let abandoned = status.code().and_then(Abandoned::of_exit_code);
    match (status.signal(), abandoned, status.code()) {
        (Some(signal), _, _) => format!("signal {signal}"),
        (None, Some(Abandoned::Unheard), _) => {
            let silence = match place {
                Place::Here => DeadMan::HERE,
                Place::Host(_) => DeadMan::FAR,
            };
            format!("it had heard nothing for {} s", silence.ends.as_secs())
        }
        (None, Some(Abandoned::Late), _) => "it had heard of the start too late".to_owned(),
        (None, None, Some(code)) => format!("exit code {code}"),
        (None, None, None) => status.to_string(),
    }
}
