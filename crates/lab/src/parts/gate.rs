//! Where agents come in that dial the lead: each has a place, by its number, and waits there until
//! the run begins. Everybody else is told why not.

use std::io::{Error, ErrorKind, Result};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::connection::{Ways, accept, dial};
use super::hello::Hello;
use super::keys::{self, KeyFiles};
use super::parent::Parts;
use super::wire;

/// How long an agent may take to say who it is.
const JOIN_MAX: Duration = Duration::from_secs(10);
/// Connections of which it is not known yet whose they are; others are closed at once.
const UNKNOWN_MAX: usize = 512;
/// What an agent is told that has its place.
const SEATED: &str = "seated";
/// How long one address may take to answer.
const DIAL_MAX: Duration = Duration::from_secs(5);

/// What an agent says first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// From 0.
    pub index: u32,
    /// For people.
    pub name: String,
    /// What program it is.
    pub hello: Hello,
}

/// Why an agent was not let in, as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// For people.
    pub why: String,
    /// The run has begun without it.
    pub is_late: bool,
}

/// What came of dialling the lead.
#[derive(Debug)]
pub enum Joined {
    /// The lead says what is to be done.
    Seated(Ways),
    /// The lead is the right one, and does not want this agent.
    Refused(Refusal),
}

/// An agent that is there.
#[derive(Debug)]
struct Waiting {
    join: Join,
    ways: Ways,
}

/// Who is there.
#[derive(Debug)]
struct Places {
    each: Vec<Option<Waiting>>,
    /// The run has begun.
    is_closed: bool,
}

/// The gate while it is open; those who come after it was closed are refused until it is dropped
/// with the process.
#[derive(Debug)]
pub struct Gate {
    address: SocketAddr,
    places: Arc<Mutex<Places>>,
}

/// What every connection is looked at with.
struct Keeper {
    config: Arc<rustls::ServerConfig>,
    own: Hello,
    places: Arc<Mutex<Places>>,
    unknown: AtomicUsize,
    /// Hears of everybody who was let in or refused.
    note: Box<dyn Fn(String) + Send + Sync>,
}

fn lock(places: &Mutex<Places>) -> MutexGuard<'_, Places> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gate {
    /// Listens for so many agents, which have to be the same program as this one.
    ///
    /// # Errors
    /// The address is not to be had, or the keys cannot be read.
    pub fn open(
        listen: SocketAddr,
        files: &KeyFiles,
        (own, agents): (Hello, u32),
        note: impl Fn(String) + Send + Sync + 'static,
    ) -> anyhow::Result<Gate> {
        let config = keys::of_lead(files)?;
        let listener =
            TcpListener::bind(listen).with_context(|| format!("cannot listen at {listen}"))?;
        let address = listener.local_addr()?;
        let places = Arc::new(Mutex::new(Places {
            each: (0..agents).map(|_| None).collect(),
            is_closed: false,
        }));
        let keeper = Arc::new(Keeper {
            config,
            own,
            places: Arc::clone(&places),
            unknown: AtomicUsize::new(0),
            note: Box::new(note),
        });
        std::thread::spawn(move || keep(&listener, &keeper));
        Ok(Gate { address, places })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The names of those who are there, by their numbers.
    pub fn present(&self) -> Vec<Option<String>> {
        let mut places = lock(&self.places);
        // One that has gone while it waited is not there, and may come back.
        for place in &mut places.each {
            if place
                .as_ref()
                .is_some_and(|it| !it.ways.connection.is_open())
            {
                *place = None;
            }
        }
        let name = |it: &Waiting| it.join.name.clone();
        let each = places.each.iter();
        each.map(|place| place.as_ref().map(name)).collect()
    }

    /// Closes it: those who are there are the parts of the run, and all others are late.
    pub fn close(&self, clock: driver::clock::Clock) -> (Parts, Vec<Hello>) {
        let mut places = lock(&self.places);
        places.is_closed = true;
        let there: Vec<Waiting> = places.each.iter_mut().filter_map(Option::take).collect();
        let count = u32::try_from(there.len()).unwrap_or(u32::MAX);
        let mut parts = Parts::new(count, clock);
        let mut hellos = Vec::new();
        for (index, Waiting { join, ways }) in there.into_iter().enumerate() {
            parts.admit((ways.from, ways.to), ways.connection, join.name);
            // Some numbers may be missing.
            parts.say(index, "place", &format!("{index}/{count}"));
            hellos.push(join.hello);
        }
        (parts, hellos)
    }
}

fn keep(listener: &TcpListener, keeper: &Arc<Keeper>) {
    for socket in listener.incoming() {
        let Ok(socket) = socket else {
            // Out of descriptors, for a moment.
            std::thread::park_timeout(Duration::from_millis(10));
            continue;
        };
        if keeper.unknown.fetch_add(1, Ordering::SeqCst) >= UNKNOWN_MAX {
            keeper.unknown.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let keeper = Arc::clone(keeper);
        std::thread::spawn(move || {
            let from = socket
                .peer_addr()
                .map_or_else(|_| "?".to_owned(), |it| it.to_string());
            let ended = keeper.take_in(socket, &from);
            keeper.unknown.fetch_sub(1, Ordering::SeqCst);
            match ended {
                Ok(note) => (keeper.note)(note),
                Err(error) => (keeper.note)(format!("refused {from}: {error}")),
            }
        });
    }
}

impl Keeper {
    fn take_in(&self, socket: TcpStream, from: &str) -> Result<String> {
        let mut ways = accept(socket, &self.config)?;
        ways.connection.wait_at_most(Some(JOIN_MAX))?;
        let first = wire::read(&mut ways.from)?.ok_or(ErrorKind::UnexpectedEof)?;
        ways.connection.wait_at_most(None)?;
        let invalid = |why: &dyn std::fmt::Display| {
            Error::new(ErrorKind::InvalidData, format!("it is no agent: {why}"))
        };
        if first.word != "join" {
            return Err(invalid(&"it does not say who it is"));
        }
        let join: Join = serde_json::from_slice(&first.about).map_err(|error| invalid(&error))?;
        let name = join.name.clone();
        match self.seat(join, ways) {
            Ok(index) => Ok(format!("agent {} is here: {name} ({from})", index + 1)),
            Err((refusal, ways)) => {
                let mut ways = *ways;
                let text = serde_json::to_string(&refusal).unwrap_or_default();
                wire::write(&mut ways.to, "refused", text.as_bytes())?;
                Err(Error::other(format!("{name}: {}", refusal.why)))
            }
        }
    }

    /// Gives an agent its place.
    fn seat(&self, join: Join, mut ways: Ways) -> std::result::Result<u32, (Refusal, Box<Ways>)> {
        let index = join.index;
        let mut places = lock(&self.places);
        let count = places.each.len();
        let why = if let Err(why) = join.hello.check(&self.own) {
            why
        } else if places.is_closed {
            "the run has begun without it".to_owned()
        } else {
            match places.each.get_mut(index as usize) {
                None => format!(
                    "it is agent {}, and there are {count}",
                    u64::from(index) + 1
                ),
                Some(Some(other)) if other.ways.connection.is_open() => {
                    let other = &other.join.name;
                    format!("agent {} is there already: {other}", u64::from(index) + 1)
                }
                // It waits for this: only now does it know that its certificate is good.
                Some(place) => match wire::write(&mut ways.to, SEATED, b"") {
                    Ok(()) => {
                        *place = Some(Waiting { join, ways });
                        return Ok(index);
                    }
                    Err(error) => format!("it has gone: {error}"),
                },
            }
        };
        let is_late = places.is_closed;
        Err((Refusal { why, is_late }, Box::new(ways)))
    }
}

/// Dials the lead once, says who this agent is, and waits until it has its place.
///
/// # Errors
/// [`ErrorKind::InvalidData`] if whoever answers is not this fleet's lead, or does not know this
/// agent's certificate; others may be over in a moment.
pub fn join(lead: &str, files: &KeyFiles, join: &Join) -> Result<Joined> {
    let mut last = Error::new(ErrorKind::NotFound, "it has no address");
    for address in lead.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, DIAL_MAX) {
            Ok(socket) => {
                let mut ways = dial(socket, files)?;
                let join = serde_json::to_string(join).map_err(Error::other)?;
                wire::write(&mut ways.to, "join", join.as_bytes())?;
                // A lead that does not accept a certificate says so after the handshake (RFC 8446,
                // section 4.4.2.4), in place of an answer.
                ways.connection.wait_at_most(Some(JOIN_MAX))?;
                let answer = wire::read(&mut ways.from).map_err(|error| match error.kind() {
                    ErrorKind::ConnectionAborted => Error::new(ErrorKind::InvalidData, error),
                    _ => error,
                });
                let answer = answer?.ok_or(ErrorKind::UnexpectedEof)?;
                ways.connection.wait_at_most(None)?;
                return match answer.word.as_str() {
                    SEATED => Ok(Joined::Seated(ways)),
                    _ => refusal(&answer).map(Joined::Refused),
                };
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn refusal(answer: &wire::Message) -> Result<Refusal> {
    let refusal = serde_json::from_slice(&answer.about);
    refusal.map_err(|error| Error::new(ErrorKind::InvalidData, error))
}
