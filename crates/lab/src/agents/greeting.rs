//! Until all agents of other hosts have said who they are.

use std::time::Duration;

use agents::{Event, Hello, Lead, Place, Why};
use driver::clock::Clock;

use super::carrier::{AgentCommand, AgentsError, Carried, Carrier, TURN, shown};
use super::fleet::Fleet;

/// Agents on one host that may be starting at a time: sshd drops further connections that are not
/// authenticated yet from 10 on (MaxStartups).
const AT_A_TIME: usize = 8;

/// Why agents could not be started; those that were are ended.
#[derive(Debug)]
pub enum GreetingError {
    /// It was interrupted.
    Interrupted,
    /// An agent ended before it said who it is.
    Unreachable {
        /// Its number, from 0.
        agent: usize,
        /// What it is for people.
        name: String,
        /// How it ended.
        how: String,
    },
    /// Not enough of the agents that were to dial were there in time.
    Absent {
        /// The numbers of those that were not, from 0.
        missing: Vec<u32>,
        /// How long was waited for them.
        patience: Duration,
    },
    /// Its host said something else.
    Foreign {
        /// What it is for people.
        name: String,
        /// The beginning of it.
        said: String,
    },
    /// Anything else.
    Other(AgentsError),
}

impl From<AgentsError> for GreetingError {
    fn from(error: AgentsError) -> Self {
        GreetingError::Other(error)
    }
}

/// Starts an agent by each command, and waits until those of other hosts have said who they are;
/// `own` is who the lead is.
///
/// # Errors
/// [`GreetingError`].
pub fn greet(
    commands: &[AgentCommand],
    own: Option<Hello>,
    clock: Clock,
    is_interrupted: impl Fn() -> bool,
) -> Result<Fleet, GreetingError> {
    let places: Vec<Place> = commands.iter().map(|it| it.place.clone()).collect();
    let mut lead = Lead::new(&places, own, clock.now());
    let mut carrier = Carrier::new(commands.len() as u32, clock);
    let mut has_greeted = false;
    loop {
        while let Some(command) = commands.get(carrier.started())
            && starting_at(&places, &lead, carrier.started()) < AT_A_TIME
        {
            carrier.start(command)?;
        }
        while let Some(event) = lead.poll_event() {
            has_greeted |= matches!(event, Event::Greeted);
        }
        if has_greeted && carrier.started() == commands.len() {
            return Ok(Fleet {
                carrier,
                lead,
                clock,
                _gate: None,
                lost: std::collections::BTreeSet::new(),
                absent: Vec::new(),
            });
        }
        if is_interrupted() {
            return Err(GreetingError::Interrupted);
        }
        match carrier.next(TURN) {
            None | Some((_, Carried::Piece)) => {}
            Some((agent, Carried::Message(message, at))) => lead.hear(agent, message, at),
            Some((agent, Carried::Closed(why))) => {
                let (name, how) = (carrier.name(agent), carrier.end_of(agent, why));
                return Err(GreetingError::Unreachable { agent, name, how });
            }
            Some((agent, Carried::Unreadable(error))) => {
                let agents::FrameError::Foreign(octets) = error else {
                    return Err(carrier.unexpected(agent, Carried::Unreadable(error)).into());
                };
                return Err(GreetingError::Foreign {
                    name: carrier.name(agent),
                    said: shown(&octets),
                });
            }
        }
        lead.pass(clock.now());
        if let Some(failure) = lead.failure() {
            let mut failure = failure.clone();
            // One that is still to be started is not to blame.
            if let Why::NoGreeting(_) = failure.why {
                failure.agent = failure.agent.min(carrier.started() - 1);
            }
            return Err(carrier.error(&failure).into());
        }
    }
}

/// Agents on the host of the next one that were started before it and have not said yet who they
/// are.
fn starting_at(places: &[Place], lead: &Lead, next: usize) -> usize {
    let before = (0..next).filter(|agent| places[*agent] == places[next]);
    before.filter(|agent| lead.is_greeting(*agent)).count()
}
