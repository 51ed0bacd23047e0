//! What the lead says to commands that ask it, each by way of a relay on its host. A command that
//! goes changes nothing: what it asked for goes on, and the next one may follow it.
//!
//! | from | message | |
//! |---|---|---|
//! | lead | `hello {...}` | who it is |
//! | command | `status` | how are things? |
//! | lead | `status {...}` | |
//! | command | `setup {...}` | make this run; files are asked for as by an agent |
//! | lead | `begun N` | it is run N |
//! | command | `follow [N, I]` | tell run N from interval I on, and its end |
//! | lead | `interval {...}` | |
//! | lead | `skipped N` | so many intervals are not kept any more |
//! | lead | `status {...}` | nothing has happened for a moment |
//! | lead | `result [OCTETS, SHA-256]` | it has a record |
//! | command | `fetch N` | tell the record from octet N on |
//! | lead | `piece ...` | |
//! | command | `enough` | begin with the agents that are there, if they are not too few |
//! | command | `stop`, `interrupt`, `end` | end the run, at once, or the lead |
//! | lead | `done` | |
//! | lead | `failed {...}` | why not |

use std::io::{BufReader, Result};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lab::parts::{Files, Hello, hash, wire};
use serde_json::json;

use super::lead::Lead;
use super::relay;
use crate::failure::Failure;
use crate::part::Setup;
use crate::part::binary;

/// A client hears of the lead this often.
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// Octets of a piece of a record.
const PIECE_OCTETS: usize = 256 << 10;

/// Listens for commands of this host's user.
pub(super) fn listen(name: &str) -> std::result::Result<UnixListener, Failure> {
    let bound = relay::address(name).and_then(|address| UnixListener::bind_addr(&address));
    bound.map_err(|error| {
        Failure::usage(
            format!("a lead of the name `{name}` cannot be here: {error}"),
            "give it another --name",
        )
    })
}

/// Serves commands, each on a thread of its own, until the process ends.
pub(super) fn serve(listener: UnixListener, lead: &Arc<Lead>) {
    let lead = Arc::clone(lead);
    thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(client) = client else {
                thread::park_timeout(Duration::from_millis(10));
                continue;
            };
            let lead = Arc::clone(&lead);
            thread::spawn(move || {
                // One that goes has had what it wanted, or comes again.
                let _ = Client { lead, client }.serve();
            });
        }
    });
}

/// A command that asks.
struct Client {
    lead: Arc<Lead>,
    client: UnixStream,
}

impl Client {
    fn say(&self, word: &str, about: &[u8]) -> Result<()> {
        wire::write_far(&mut &self.client, word, about)
    }

    fn serve(&self) -> Result<()> {
        if !self.is_of_the_same_user() {
            return Ok(());
        }
        let hello = binary().map(Hello::of_this);
        let hello = hello.map_err(|failure| std::io::Error::other(failure.what().to_owned()))?;
        self.say("hello", serde_json::to_string(&hello)?.as_bytes())?;
        let mut from = BufReader::new(&self.client);
        while let Some(message) = wire::read(&mut from)? {
            self.lead.state().asked_at = Instant::now();
            let about = message.about.as_slice();
            match message.word.as_str() {
                "status" => {
                    let status = serde_json::to_string(&self.lead.status())?;
                    self.say("status", status.as_bytes())?;
                }
                "setup" => self.begin(about, &mut from)?,
                "follow" => {
                    let (run, interval) = serde_json::from_slice(about)?;
                    self.tell(run, interval)?;
                }
                "fetch" => self.tell_record(serde_json::from_slice(about)?)?,
                "enough" => {
                    self.lead.state().is_enough = true;
                    self.lead.changed.notify_all();
                    self.say("done", b"")?;
                }
                "stop" => {
                    self.lead.interrupt.end_run();
                    self.say("done", b"")?;
                }
                "interrupt" => {
                    self.lead.interrupt.interrupt_run();
                    self.say("done", b"")?;
                }
                "end" => {
                    self.say("done", b"")?;
                    self.lead.interrupt.interrupt_run();
                    self.lead.state().is_to_end = true;
                    self.lead.changed.notify_all();
                }
                _ => {
                    let what = format!("the lead knows no `{}`", message.word);
                    self.fail(&Failure::in_operation(what))?;
                }
            }
        }
        Ok(())
    }

    /// Abstract names have no rights of their own: others on this host could reach it.
    fn is_of_the_same_user(&self) -> bool {
        let peer = rustix::net::sockopt::socket_peercred(&self.client);
        peer.is_ok_and(|peer| peer.uid == rustix::process::getuid())
    }

    fn fail(&self, failure: &Failure) -> Result<()> {
        self.say("failed", failure.to_json().to_string().as_bytes())
    }

    /// Takes a run with its files.
    fn begin(&self, setup: &[u8], from: &mut BufReader<&UnixStream>) -> Result<()> {
        let setup: Setup = serde_json::from_slice(setup)?;
        let mut files = Files::default();
        let say = |word: &str, text: &str| {
            // If it has gone, nothing comes either.
            let _ = self.say(word, text.as_bytes());
        };
        let receive = |_| wire::read(from).ok().flatten();
        let begun = match files.complete(&setup.inputs, say, receive) {
            Ok(()) => self.lead.want(setup, files),
            Err(error) => Err(Failure::in_operation(error)),
        };
        match begun {
            Ok(number) => self.say("begun", number.to_string().as_bytes()),
            Err(failure) => self.fail(&failure),
        }
    }

    /// Tells a run from an interval on until its end.
    fn tell(&self, run: u64, mut next: u64) -> Result<()> {
        loop {
            let mut state = self.lead.state();
            if state.runs != run {
                drop(state);
                let what = format!("the lead does not know run {run} any more");
                return self.fail(&Failure::in_operation(what));
            }
            let skipped = state.first_interval.saturating_sub(next);
            next += skipped;
            let position = usize::try_from(next - state.first_interval).unwrap_or(usize::MAX);
            if let Some(interval) = state.intervals.get(position).cloned() {
                drop(state);
                if skipped > 0 {
                    self.say("skipped", skipped.to_string().as_bytes())?;
                }
                self.say("interval", interval.as_bytes())?;
                next += 1;
                continue;
            }
            match state.outcome.clone() {
                Some(Ok(record)) => {
                    drop(state);
                    let result = json!([record.len(), hash(&record)]).to_string();
                    return self.say("result", result.as_bytes());
                }
                Some(Err(failed)) => {
                    drop(state);
                    return self.say("failed", failed.to_string().as_bytes());
                }
                None => {
                    let waited = self.lead.changed.wait_timeout(state, BEAT_EVERY);
                    let (waited, time) = waited.unwrap_or_else(PoisonError::into_inner);
                    state = waited;
                    state.asked_at = Instant::now();
                    drop(state);
                    if time.timed_out() {
                        let status = serde_json::to_string(&self.lead.status())?;
                        self.say("status", status.as_bytes())?;
                    }
                }
            }
        }
    }

    /// Tells the record from an octet on.
    fn tell_record(&self, from: usize) -> Result<()> {
        let outcome = self.lead.state().outcome.clone();
        let record = match outcome {
            Some(Ok(record)) => record,
            Some(Err(failed)) => return self.say("failed", failed.to_string().as_bytes()),
            None => {
                let cure = "follow it with `throng fleet attach`";
                return self.fail(&Failure::usage("there is no result yet", cure));
            }
        };
        let rest = record.get(from..).unwrap_or_default();
        rest.chunks(PIECE_OCTETS)
            .try_for_each(|piece| self.say("piece", piece))?;
        self.say("done", b"")
    }
}
