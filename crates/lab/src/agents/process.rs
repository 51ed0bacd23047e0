//! The agent's side: standard input and output of this process, which its lead has started.

use std::io::{Read, Write};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel,
};
use std::thread::JoinHandle;
use std::time::Duration;

use agents::{AgentLink, Decoder, FromAgent, Hello, Inputs, Order, STOP_MAX, ToAgent};
use driver::clock::Clock;
use proto::Instant;
use serde_json::Value;

/// Octets that are read at a time.
const PIECE: usize = 1 << 20;
/// What waits for the link; a sender of more waits.
const TOLD_MAX: usize = 64;
/// Messages that wait to be written: those of ten seconds of 10 ms, and more.
const WRITES_MAX: usize = 2_048;
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

/// An agent's connection with its lead. When the lead has gone, however that came, this process
/// exits at once.
#[derive(Debug)]
pub struct Connection {
    to_link: SyncSender<ToLink>,
    orders: Option<Receiver<Order>>,
    link: JoinHandle<()>,
    clock: Clock,
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

/// Who this process is, whose program's file has that hash (SHA-256).
pub fn own_hello(binary: String) -> Hello {
    let cpus = u32::try_from(driver::cpu::allowed().len()).unwrap_or(1);
    let limits = (cpus, driver::cpu::open_files_max());
    Hello::new(binary, limits, network())
}

/// The network namespace of this process, on this host since its start.
fn network() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/net").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

impl Connection {
    /// Over standard input and output, which nothing else uses from now on. An agent of another
    /// host says who it is. `by_hand` gets the reason why a
    /// process ends that no lead has started.
    pub fn open(hello: Option<Hello>, by_hand: fn(&str)) -> Connection {
        let clock = Clock::of_host();
        let (to_link, told) = sync_channel(TOLD_MAX);
        let (give, orders) = channel();
        let (writes, written) = sync_channel(WRITES_MAX);
        let reads = to_link.clone();
        std::thread::spawn(move || read(clock, &reads, by_hand));
        let writer = std::thread::spawn(move || write(&written));
        let link = std::thread::spawn(move || {
            Link {
                link: AgentLink::new(clock.now()),
                clock,
                writes: Some(writes),
                writer: Some(writer),
                orders: give,
                exits: None,
            }
            .run(&told);
        });
        let connection = Connection {
            to_link,
            orders: Some(orders),
            link,
            clock,
        };
        if let Some(hello) = hello {
            connection.voice().say(FromAgent::Hello(hello));
        }
        connection
    }

    /// The clock that lead and agents of this host share.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// What says something to the lead.
    pub fn voice(&self) -> Voice {
        Voice(self.to_link.clone())
    }

    /// Waits for what this process is to do, and what there is to read; none if something else
    /// comes first.
    pub fn setup(&mut self) -> Option<(Value, Inputs)> {
        match self.orders.as_ref()?.recv() {
            Ok(Order::Setup(setup, inputs)) => Some((setup, inputs)),
            _ => None,
        }
    }

    /// The orders that follow; taken once.
    pub(super) fn orders(&mut self) -> Option<Receiver<Order>> {
        self.orders.take()
    }

    /// Waits until all that was said is written. One that was abandoned ends here.
    pub fn finish(self) {
        let _ = self.to_link.send(ToLink::Finish);
        // A panic has ended the process.
        let _ = self.link.join();
    }
}

/// The link on its thread.
struct Link {
    link: AgentLink,
    clock: Clock,
    writes: Option<SyncSender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
    orders: Sender<Order>,
    /// When this process exits, and with which code.
    exits: Option<(Instant, i32)>,
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
            if let Some((at, code)) = self.exits
                && self.clock.now() >= at
            {
                std::process::exit(code);
            }
        }
    }

    /// Hands on what is to be said and done.
    fn settle(&mut self) {
        while let Some(message) = self.link.poll_message() {
            let frames = agents::encode(&message).or_else(|error| {
                agents::encode(&FromAgent::Failed(agents::Told {
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
                self.exits = Some((self.clock.now() + STOP_MAX, why.exit_code()));
            }
            // Who does not take orders any more is about to end.
            let _ = self.orders.send(order);
        }
    }
}

/// Writes what is said; without a lead this process exits.
fn write(written: &Receiver<Vec<u8>>) {
    let mut stdout = std::io::stdout().lock();
    for frames in written {
        let said = stdout.write_all(&frames).and_then(|()| stdout.flush());
        if said.is_err() {
            std::process::exit(1);
        }
    }
}

/// Reads what the lead says, until it has gone: then this process exits.
fn read(clock: Clock, to_link: &SyncSender<ToLink>, by_hand: fn(&str)) {
    let mut decoder = Decoder::new();
    let mut has_lead = false;
    let mut stdin = std::io::stdin().lock();
    let mut piece = vec![0; PIECE];
    loop {
        let read = match stdin.read(&mut piece) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => {
                if !has_lead {
                    by_hand("there is no setup on standard input");
                }
                std::process::exit(1)
            }
            Ok(read) => read,
        };
        has_lead = true;
        let now = clock.now();
        decoder.push(&piece[..read]);
        let _ = to_link.send(ToLink::Piece(now));
        loop {
            match decoder.poll() {
                Ok(None) => break,
                Ok(Some(message)) => {
                    // The link ends only with this process.
                    let _ = to_link.send(ToLink::Heard(message, now));
                }
                Err(error) => {
                    by_hand(&error.to_string());
                    std::process::exit(1);
                }
            }
        }
    }
}
