//! The agent's side: standard input and output of this process, which its lead has started, or the
//! connection that it has dialled.

use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel,
};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use agents::{
    Abandoned, AgentLink, DeadMan, Decoder, FromAgent, Hello, Inputs, Join, Order, ProcessName,
    Refusal, STOP_MAX, ToAgent,
};
use driver::clock::Clock;
use proto::Instant;
use serde_json::Value;

use super::gate;
use super::keys::KeyFiles;

/// Octets that are read at a time.
const PIECE: usize = 1 << 20;
/// What waits for the link; a sender of more waits.
const TOLD_MAX: usize = 64;
/// Messages that wait to be written: those of ten seconds of 10 ms, and more.
const WRITES_MAX: usize = 2_048;
/// How long a lead may take to end the connection.
const END_MAX: Duration = Duration::from_secs(10);
/// The longest wait for what comes next.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// What the link of this process gets.
enum ToLink {
    /// The lead has said this, which was read then.
    Heard(ToAgent, Instant),
    /// A part of a long message was read then.
    Piece(Instant),
    /// This is to be said.
    Say(FromAgent),
    /// The host asks this process to end (SIGTERM).
    Leave,
    /// All has been said.
    Finish,
}

/// Why this process ends in the middle of its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It has heard nothing that a lead says; why.
    NoLead(String),
    /// Its connection with the lead has ended; why, if that is known.
    Gone(Option<String>),
    /// What its lead says has come damaged; how that showed.
    Damaged(String),
    /// Its lead is silent, or has said too late when to start.
    Abandoned(Abandoned),
}

/// Says why this process ends, and returns its exit code.
pub type OnEnd = fn(&End) -> i32;

/// Ends this process, for the first reason that one of its threads has.
fn end(why: &End, on_end: OnEnd) -> ! {
    static ENDS: Mutex<()> = Mutex::new(());
    let _first = ENDS.lock();
    std::process::exit(on_end(why))
}

/// An agent's connection with its lead. When the lead has gone, however that came, this process
/// exits at once.
#[derive(Debug)]
pub struct Connection {
    to_link: SyncSender<ToLink>,
    orders: Option<Receiver<Order>>,
    /// Its number since the run began, and how many agents there are.
    seat: Option<(u32, u32)>,
    link: JoinHandle<()>,
    clock: Clock,
    /// All has been said: that the lead ends the connection is in order.
    is_finishing: Arc<AtomicBool>,
    /// Ends when the lead has ended the connection; none where it need not be waited for.
    closed: Option<Receiver<()>>,
}

/// Says something to the lead, from anywhere.
#[derive(Clone, Debug)]
pub struct Voice(SyncSender<ToLink>);

impl Voice {
    /// Says something.
    pub fn say(&self, message: FromAgent) {
        // The link ends only with this process.
        let _ = self.0.send(ToLink::Say(message));
    }

    /// The host asks this process to end: the run ends early, and the lead learns why.
    pub fn leave(&self) {
        let _ = self.0.send(ToLink::Leave);
    }
}

/// Who this process is, whose program that is.
pub fn own_hello(binary: String) -> Hello {
    let cpus = u32::try_from(driver::cpu::allowed().len()).unwrap_or(1);
    let limits = (cpus, driver::cpu::open_files_max());
    let process = processes().map(|namespace| ProcessName {
        namespace,
        pid: std::process::id(),
    });
    Hello::new(binary, limits, namespace("net"), process)
}

/// The PID namespace of this process.
pub(super) fn processes() -> Option<String> {
    namespace("pid")
}

/// A namespace of this process, on this host since its start.
fn namespace(kind: &str) -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

impl Connection {
    /// Over standard input and output, which nothing else uses from now on. An agent of another
    /// host says who it is.
    pub fn open(hello: Option<Hello>, on_end: OnEnd) -> Connection {
        let dead_man = match hello {
            Some(_) => DeadMan::FAR,
            None => DeadMan::HERE,
        };
        let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
        let connection = Connection::over(stdin, stdout, (on_end, dead_man), true);
        if let Some(hello) = hello {
            connection.voice().say(FromAgent::Hello(hello));
        }
        Connection {
            closed: None,
            ..connection
        }
    }

    /// Dials the lead at `HOST:PORT`, once, says which agent this is, and waits for the beginning
    /// of the answer: a lead on a busy host ends connections that took too long until here.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] if the server there is not this agent's lead,
    /// [`ErrorKind::PermissionDenied`] if it does not accept this agent; others may be over in a
    /// moment.
    pub fn dial(
        (lead, keys): (&str, &KeyFiles),
        join: Join,
        on_end: OnEnd,
    ) -> std::io::Result<Connection> {
        let mut dialled = gate::dial(lead, keys)?;
        let answer = gate::join(&mut dialled, join)?;
        let from = std::io::Cursor::new(answer).chain(dialled.reading);
        let ends = (on_end, DeadMan::FAR);
        Ok(Connection::over(from, dialled.writing, ends, false))
    }

    fn over(
        from: impl Read + Send + 'static,
        to: impl Write + Send + 'static,
        (on_end, dead_man): (OnEnd, DeadMan),
        are_pipes: bool,
    ) -> Connection {
        let clock = Clock::of_host();
        let (to_link, told) = sync_channel(TOLD_MAX);
        let (give, orders) = channel();
        let (writes, written) = sync_channel(WRITES_MAX);
        let (ends, closed) = channel();
        let is_finishing = Arc::new(AtomicBool::new(false));
        let reads = to_link.clone();
        let finishes = Arc::clone(&is_finishing);
        std::thread::spawn(move || {
            let why = read((clock, from), &reads, &finishes);
            if !finishes.load(Ordering::SeqCst) {
                end(&why, on_end);
            }
            drop(ends);
        });
        let writer = std::thread::spawn(move || {
            // What ends a connection is read too, and says why.
            if let (Err(error), true) = (write(to, &written), are_pipes) {
                end(&End::Gone(Some(error.to_string())), on_end);
            }
        });
        let link = std::thread::spawn(move || {
            Link {
                link: AgentLink::new(clock.now(), dead_man),
                clock,
                writes: Some(writes),
                writer: Some(writer),
                orders: give,
                exits: None,
                on_end,
            }
            .run(&told);
        });
        Connection {
            to_link,
            orders: Some(orders),
            seat: None,
            link,
            clock,
            is_finishing,
            closed: Some(closed),
        }
    }

    /// The clock that lead and agents of this host share.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// What says something to the lead.
    pub fn voice(&self) -> Voice {
        Voice(self.to_link.clone())
    }

    /// Waits for what this process is to do next, and what there is to read; none if there is
    /// nothing more to do.
    pub fn next_task(&mut self) -> Option<(Value, Inputs)> {
        loop {
            match self.orders.as_ref()?.recv() {
                Ok(Order::Setup(setup, inputs)) => return Some((setup, inputs)),
                Ok(Order::Seated { index, count }) => self.seat = Some((index, count)),
                _ => return None,
            }
        }
    }

    /// Which agent of how many this is since the run began; none of one that has not dialled.
    pub fn final_seat(&self) -> Option<(u32, u32)> {
        self.seat
    }

    /// Waits until the lead that was dialled has said which agent of how many this is; none if
    /// something else comes first.
    ///
    /// # Errors
    /// It has no part in the run.
    pub fn seat(&mut self) -> Result<Option<(u32, u32)>, Refusal> {
        match self.orders.as_ref().map(Receiver::recv) {
            Some(Ok(Order::Seated { index, count })) => Ok(Some((index, count))),
            Some(Ok(Order::Refused(refusal))) => Err(refusal),
            _ => Ok(None),
        }
    }

    /// The orders that follow; taken once, unless they are given back.
    pub(super) fn orders(&mut self) -> Option<Receiver<Order>> {
        self.orders.take()
    }

    /// The orders of the next run follow.
    pub(super) fn give_back(&mut self, orders: Receiver<Order>) {
        self.orders = Some(orders);
    }

    /// Waits until all that was said is written, and where it was dialled, read. One that was
    /// abandoned ends here.
    pub fn finish(self) {
        self.is_finishing.store(true, Ordering::SeqCst);
        let _ = self.to_link.send(ToLink::Finish);
        // A panic has ended the process.
        let _ = self.link.join();
        if let Some(closed) = self.closed {
            // A process that ends with unread messages resets its connection, and what is on its
            // way to the lead is lost.
            let _ = closed.recv_timeout(END_MAX);
        }
    }
}

/// The link on its thread.
struct Link {
    link: AgentLink,
    clock: Clock,
    writes: Option<SyncSender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
    orders: Sender<Order>,
    /// When this process exits, and why.
    exits: Option<(Instant, Abandoned)>,
    on_end: OnEnd,
}

impl Link {
    fn run(mut self, told: &Receiver<ToLink>) {
        loop {
            let now = self.clock.now();
            let due = self.exits.map_or(self.link.next_due(), |(at, _)| at);
            let wait = Duration::from_nanos(due.nanos_since(now)).min(WAIT_MAX);
            match told.recv_timeout(wait) {
                Ok(ToLink::Heard(message, at)) => self.link.hear(message, at),
                Ok(ToLink::Piece(at)) => self.link.moves(at),
                Ok(ToLink::Say(message)) => self.link.say(message),
                Ok(ToLink::Leave) => self.link.leave(),
                Ok(ToLink::Finish) if self.exits.is_none() => {
                    self.settle();
                    self.writes = None;
                    if let Some(writer) = self.writer.take() {
                        let _ = writer.join();
                    }
                    return;
                }
                Ok(ToLink::Finish) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.link.pass(self.clock.now());
            self.settle();
            if let Some((at, why)) = self.exits
                && self.clock.now() >= at
            {
                end(&End::Abandoned(why), self.on_end);
            }
        }
    }

    /// Hands on what is to be said and done.
    fn settle(&mut self) {
        while let Some(message) = self.link.poll_message() {
            let frames = agents::encode(&message).or_else(|error| {
                agents::encode(&FromAgent::Failed(agents::AgentError {
                    what: format!("what it has to say cannot be sent: {error}"),
                    hint: None,
                    code: 1,
                }))
            });
            let Ok(frames) = frames else { continue };
            let Some(writes) = &self.writes else { continue };
            if let Err(TrySendError::Full(_)) = writes.try_send(frames) {
                self.link.overflow();
            }
        }
        while let Some(order) = self.link.poll_order() {
            if let Order::Abandon(why) = order {
                self.exits = Some((self.clock.now() + STOP_MAX, why));
            }
            // Who does not take orders any more is about to end.
            let _ = self.orders.send(order);
        }
    }
}

/// Writes what is said, as long as there is a lead.
fn write(mut to: impl Write, written: &Receiver<Vec<u8>>) -> std::io::Result<()> {
    for frames in written {
        to.write_all(&frames)?;
        to.flush()?;
    }
    Ok(())
}

/// Reads what the lead says, until it says nothing more.
fn read(
    (clock, mut from): (Clock, impl Read),
    to_link: &SyncSender<ToLink>,
    is_finishing: &AtomicBool,
) -> End {
    let mut decoder = Decoder::new();
    // The first message says that a lead is there.
    let (mut has_read, mut has_lead) = (false, false);
    let mut piece = vec![0; PIECE];
    loop {
        let read = match from.read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Ok(0) if !has_read => {
                return End::NoLead("there is no setup on standard input".to_owned());
            }
            Ok(0) => return End::Gone(None),
            Err(error) if !has_read => return End::NoLead(error.to_string()),
            Err(error) => return End::Gone(Some(error.to_string())),
            Ok(read) => read,
        };
        has_read = true;
        let now = clock.now();
        decoder.push(&piece[..read]);
        let _ = to_link.send(ToLink::Piece(now));
        loop {
            match decoder.poll() {
                Ok(None) => break,
                Ok(Some(message)) => {
                    has_lead = true;
                    if matches!(message, ToAgent::Refused(_) | ToAgent::End) {
                        is_finishing.store(true, Ordering::SeqCst);
                    }
                    // The link ends only with this process.
                    let _ = to_link.send(ToLink::Heard(message, now));
                }
                Err(error) if has_lead => return End::Damaged(error.to_string()),
                Err(error) => return End::NoLead(error.to_string()),
            }
        }
    }
}
