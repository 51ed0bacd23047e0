//! Where agents come in that dial their lead: each has a seat, by its number, and waits there until
//! all are there. Everyone else learns why not.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agents::{Decoder, FromAgent, Hello, Join, Lead, Place, Quorum, Seats, ToAgent};
use driver::clock::Clock;
use measure::notation::first_few;
use proto::tls::rustls::ServerConfig;

use super::carrier::{Carrier, TURN};
use super::fleet::Fleet;
use super::greeting::GreetingError;
use super::keys::{self, KeyFiles};
use super::secured::{self, Reading, Secured};
use crate::run::RunError;

/// How long an agent may take to say who it is.
const JOIN_MAX: Duration = Duration::from_secs(10);
/// Connections at a time that have not said who they are; further ones are closed at once.
const UNKNOWN_MAX: usize = 256;
/// How often agents that wait hear that their lead is there.
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// How long one address may take to answer.
const DIAL_MAX: Duration = Duration::from_secs(5);
/// As much of a greeting as is read at a time.
const PIECE: usize = 4 << 10;

/// An agent that is there.
#[derive(Debug)]
struct Waiting {
    join: Join,
    connection: Secured,
}

/// Who is there.
#[derive(Debug)]
struct Hall {
    seats: Seats,
    waiting: Vec<Option<Waiting>>,
}

/// The gate. It answers latecomers, with a refusal, until it is dropped.
#[derive(Debug)]
pub struct Gate {
    address: SocketAddr,
    own: Hello,
    hall: Arc<Mutex<Hall>>,
    notes: Receiver<String>,
    is_dropped: Arc<AtomicBool>,
}

/// What every connection is looked at with.
struct Keeper {
    config: Arc<ServerConfig>,
    hall: Arc<Mutex<Hall>>,
    unknown: AtomicUsize,
    notes: Sender<String>,
}

fn lock(hall: &Mutex<Hall>) -> MutexGuard<'_, Hall> {
    hall.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gate {
    /// Listens for agents, which have to be the same program as this one, `own`.
    ///
    /// # Errors
    /// The address is not free, or the keys cannot be used.
    pub fn open(
        listen: SocketAddr,
        files: &KeyFiles,
        own: Hello,
        quorum: Quorum,
    ) -> std::result::Result<Gate, RunError> {
        let config = keys::of_lead(files)?;
        let cannot = |error: Error| {
            RunError::new(
                format!("cannot listen on {listen}: {error}"),
                "give --listen an address of this host and a free port; port 0 is any",
            )
        };
        let listener = TcpListener::bind(listen).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let hall = Arc::new(Mutex::new(Hall {
            seats: Seats::new(own.clone(), quorum),
            waiting: (0..quorum.agents).map(|_| None).collect(),
        }));
        let (sender, notes) = channel();
        let keeper = Arc::new(Keeper {
            config,
            hall: Arc::clone(&hall),
            unknown: AtomicUsize::new(0),
            notes: sender,
        });
        let is_dropped = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_dropped);
        std::thread::spawn(move || keep(&listener, &keeper, &ends));
        Ok(Gate {
            address,
            own,
            hall,
            notes,
            is_dropped,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until all agents are there, or until enough are after `patience`, and answers
    /// latecomers as long as they are. `note` gets a line for each that came, left or was refused.
    ///
    /// # Errors
    /// Not enough are there after `patience`, or it was interrupted.
    pub fn wait(
        self,
        patience: Duration,
        clock: Clock,
        (is_interrupted, mut note): (impl Fn() -> bool, impl FnMut(&str)),
    ) -> std::result::Result<Fleet, GreetingError> {
        let began = Instant::now();
        let mut beaten = began;
        loop {
            if let Ok(line) = self.notes.recv_timeout(TURN) {
                note(&line);
            }
            let is_due = beaten.elapsed() > BEAT_EVERY;
            if is_due {
                beaten = Instant::now();
            }
            let mut hall = lock(&self.hall);
            for line in hall.look(is_due) {
                note(&line);
            }
            let missing = hall.seats.missing();
            let is_time = began.elapsed() > patience;
            if hall.seats.can_begin(is_time) {
                hall.seats.close();
                let there = hall.waiting.iter_mut().filter_map(Option::take);
                let there: Vec<Waiting> = there.collect();
                drop(hall);
                note_rest(&self.notes, &mut note);
                if !missing.is_empty() {
                    note(&format!(
                        "the run begins with {} of {} agents; absent after {} s, by index: {}",
                        there.len(),
                        there.len() + missing.len(),
                        patience.as_secs(),
                        first_few(&missing)
                    ));
                }
                return self.begin(there, missing, clock);
            }
            drop(hall);
            if is_interrupted() {
                return Err(GreetingError::Interrupted);
            }
            if is_time {
                return Err(GreetingError::Absent { missing, patience });
            }
        }
    }

    /// Hands over the agents, in the order of their numbers, and numbers them anew.
    fn begin(
        self,
        there: Vec<Waiting>,
        absent: Vec<u32>,
        clock: Clock,
    ) -> std::result::Result<Fleet, GreetingError> {
        let names = there.iter().map(|it| Place::Host(it.join.name.clone()));
        let places: Vec<Place> = names.collect();
        let mut lead = Lead::new(&places, Some(self.own.clone()), clock.now());
        let count = places.len() as u32;
        let mut carrier = Carrier::new(count, clock);
        for ((index, waiting), place) in (0..count).zip(there).zip(places) {
            let (agent, hello) = (index as usize, FromAgent::Hello(waiting.join.hello));
            carrier.admit(waiting.connection, place);
            carrier.say(agent, &ToAgent::Seated { index, count })?;
            lead.hear(agent, hello, clock.now());
        }
        Ok(Fleet {
            carrier,
            lead,
            clock,
            _gate: Some(self),
            lost: std::collections::BTreeSet::new(),
            absent,
        })
    }
}

/// What was said before the last agent came.
fn note_rest(notes: &Receiver<String>, mut note: impl FnMut(&str)) {
    while let Ok(line) = notes.try_recv() {
        note(&line);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::SeqCst);
        // Its thread waits for a connection, and this is one.
        let _ = TcpStream::connect_timeout(&reached(self.address), DIAL_MAX);
    }
}

/// An address by which this host reaches a listener of its own.
fn reached(listening: SocketAddr) -> SocketAddr {
    let mut address = listening;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

impl Hall {
    /// Frees the seats of agents that have gone while they waited; those that are there hear that
    /// their lead is, if that is due. Returns what there is to note.
    fn look(&mut self, is_due: bool) -> Vec<String> {
        let mut notes = Vec::new();
        for (index, place) in self.waiting.iter_mut().enumerate() {
            let is_gone = |it: &mut Waiting| {
                // One that waits has nothing to say but that it leaves.
                !it.connection.is_quiet()
                    || is_due && say(&mut it.connection, &ToAgent::Beat).is_err()
            };
            if let Some(gone) = place.take_if(is_gone) {
                self.seats.free(index);
                notes.push(format!("agent {} has gone: {}", index + 1, gone.join.name));
            }
        }
        notes
    }

    /// Gives an agent its seat, or says why not.
    fn seat(&mut self, join: Join, mut connection: Secured) -> Result<()> {
        self.look(false);
        let seated = self.seats.take(&join);
        let (index, count) = (join.index, self.seats.count());
        let answer = match &seated {
            Ok(()) => ToAgent::Seated { index, count },
            Err(refusal) => ToAgent::Refused(refusal.clone()),
        };
        let said = say(&mut connection, &answer);
        match (seated, said) {
            (Err(refusal), _) => Err(Error::other(describe(&refusal))),
            (Ok(()), Ok(())) => {
                self.waiting[index as usize] = Some(Waiting { join, connection });
                Ok(())
            }
            (Ok(()), Err(error)) => {
                self.seats.free(index as usize);
                Err(error)
            }
        }
    }
}

/// Why an agent has no part in the run, for people.
pub fn describe(refusal: &agents::Refusal) -> String {
    match refusal {
        agents::Refusal::OtherProgram(what) => what.clone(),
        agents::Refusal::NoSuchAgent(count) => {
            format!("its number is beyond the {count} agents of this run")
        }
        agents::Refusal::Taken(other) => {
            format!("another agent has its number: {other}")
        }
        agents::Refusal::Late => "the run has begun without it".to_owned(),
    }
}

fn say(connection: &mut Secured, message: &ToAgent) -> Result<()> {
    let frames = agents::encode(message).map_err(Error::other)?;
    connection.writing.write_all(&frames)
}

fn keep(listener: &TcpListener, keeper: &Arc<Keeper>, is_over: &AtomicBool) {
    for socket in listener.incoming() {
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(socket) = socket else {
            // Out of file descriptors, for a moment.
            std::thread::park_timeout(TURN);
            continue;
        };
        if keeper.unknown.fetch_add(1, Ordering::SeqCst) >= UNKNOWN_MAX {
            keeper.unknown.fetch_sub(1, Ordering::SeqCst);
            keeper.note("refused a connection: too many have not said who they are".to_owned());
            continue;
        }
        let keeper = Arc::clone(keeper);
        std::thread::spawn(move || {
            let from = socket.peer_addr();
            let from = from.map_or_else(|_| "?".to_owned(), |it| it.to_string());
            let note = match keeper.take_in(socket) {
                Ok(name) => format!("{name} is there ({from})"),
                Err(error) => format!("refused {from}: {error}"),
            };
            keeper.unknown.fetch_sub(1, Ordering::SeqCst);
            keeper.note(note);
        });
    }
}

impl Keeper {
    fn note(&self, line: String) {
        // After the start there are no more notes.
        let _ = self.notes.send(line);
    }

    /// Lets an agent in; its name for people.
    fn take_in(&self, socket: TcpStream) -> Result<String> {
        let mut connection = secured::accept(socket, &self.config)?;
        let join = first_message(&mut connection.reading, &connection.socket)?;
        let FromAgent::Join(join) = join else {
            return Err(Error::other("it does not say which agent it is"));
        };
        let name = format!("agent {} ({})", u64::from(join.index) + 1, join.name);
        let seated = lock(&self.hall).seat(join, connection);
        seated.map_err(|error| Error::other(format!("{name}: {error}")))?;
        Ok(name)
    }
}

fn first_message(reading: &mut Reading, socket: &TcpStream) -> Result<FromAgent> {
    let until = Instant::now() + JOIN_MAX;
    let mut decoder = Decoder::of_stranger();
    let mut piece = vec![0; PIECE];
    loop {
        if let Some(message) = decoder.poll().map_err(Error::other)? {
            socket.set_read_timeout(None)?;
            return Ok(message);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        match reading.read(&mut piece)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            read => decoder.push(&piece[..read]),
        }
    }
}

/// Says which agent dialled; the beginning of what the lead answers.
///
/// # Errors
/// [`ErrorKind::PermissionDenied`] if the lead does not accept it; others may be over in a moment.
pub(super) fn join(connection: &mut Secured, join: Join) -> Result<Vec<u8>> {
    let frames = agents::encode(&FromAgent::Join(join)).map_err(Error::other)?;
    let mut answer = vec![0; PIECE];
    connection.socket.set_read_timeout(Some(JOIN_MAX))?;
    let written = connection.writing.write_all(&frames);
    // What the lead had to say explains more than that it does not read.
    let read = match (connection.reading.read(&mut answer), written) {
        (Err(error), _) if error.kind() == ErrorKind::InvalidData => {
            return Err(Error::new(ErrorKind::PermissionDenied, error));
        }
        (Ok(0), _) => return Err(ErrorKind::UnexpectedEof.into()),
        (read, Ok(())) => read?,
        (_, Err(error)) => return Err(error),
    };
    connection.socket.set_read_timeout(None)?;
    answer.truncate(read);
    Ok(answer)
}

/// Connects to the lead at `HOST:PORT`, once.
///
/// # Errors
/// [`ErrorKind::InvalidData`] if the server there is not this agent's lead; others may be over in
/// a moment.
pub(super) fn dial(lead: &str, files: &KeyFiles) -> Result<Secured> {
    let config =
        keys::of_agent(files).map_err(|error| Error::new(ErrorKind::InvalidData, error.what))?;
    let mut last = Error::new(ErrorKind::NotFound, "it has no address");
    for address in lead.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, DIAL_MAX) {
            Ok(socket) => return secured::dial(socket, &config),
            Err(error) => last = error,
        }
    }
    Err(last)
}
