//! Gives every worker its turns and moves the time between them.

use std::fmt;
use std::time::Duration;

use proto::Instant;

use super::{EndpointId, World};

/// When a worker needs its next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// When something arrives, or at the instant of its last [`Driver::wait`](crate::Driver::wait).
    Waiting,
    /// It is stopped, as a process is by SIGSTOP: no turn before this instant, whatever arrives.
    Stopped(Instant),
    /// It has finished and needs no more turns.
    Finished,
}

/// A worker of a simulated run: its endpoint, and the function for one turn. A turn receives all
/// that is ready, sends what it wants and calls [`Driver::wait`](crate::Driver::wait) last.
pub struct Stepper<'a> {
    endpoint: EndpointId,
    leads: bool,
    finished: bool,
    stopped_until: Instant,
    turn: Box<dyn FnMut() -> Turn + 'a>,
}

impl<'a> Stepper<'a> {
    /// A worker whose end the run awaits.
    pub fn leading(endpoint: EndpointId, turn: impl FnMut() -> Turn + 'a) -> Self {
        Stepper {
            endpoint,
            leads: true,
            finished: false,
            stopped_until: Instant::ZERO,
            turn: Box::new(turn),
        }
    }

    /// A worker that runs until the leading ones end, such as a responder's.
    pub fn serving(endpoint: EndpointId, turn: impl FnMut() -> Turn + 'a) -> Self {
        Stepper {
            endpoint,
            leads: false,
            finished: false,
            stopped_until: Instant::ZERO,
            turn: Box::new(turn),
        }
    }
}

impl fmt::Debug for Stepper<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stepper")
            .field("endpoint", &self.endpoint)
            .field("leads", &self.leads)
            .field("finished", &self.finished)
            .finish_non_exhaustive()
    }
}

/// Limits at which a run is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// No turn is given later than this.
    pub until: Instant,
    /// Most turns of all workers together at one instant; checked when each that was due has had
    /// its turn.
    pub turns_at_once_max: u64,
}

impl Default for Bounds {
    /// One day, and 10 million turns at one instant.
    fn default() -> Self {
        Bounds {
            until: Instant::ZERO + Duration::from_secs(24 * 60 * 60),
            turns_at_once_max: 10_000_000,
        }
    }
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunStats {
    /// When the last leading worker finished.
    pub ended_at: Instant,
    /// Turns of all workers together.
    pub turns: u64,
}

/// Why a run was given up with leading workers unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunError {
    /// Nothing is under way and no timer is set: nothing will ever happen again.
    Idle {
        /// When everything came to rest.
        at: Instant,
    },
    /// The next thing to happen lies beyond [`Bounds::until`].
    OutOfTime {
        /// When it would have happened.
        next: Instant,
    },
    /// [`Bounds::turns_at_once_max`] is used up: a worker never lets the time advance.
    OutOfTurns {
        /// The virtual time.
        at: Instant,
        /// Turns given at that time.
        turns: u64,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |at: Instant| at.as_nanos() as f64 / 1e9;
        match *self {
            RunError::Idle { at } => {
                write!(f, "simulation came to rest unfinished at {} s", seconds(at))
            }
            RunError::OutOfTime { next } => {
                write!(
                    f,
                    "simulation exceeded its bound on time: next event at {} s",
                    seconds(next)
                )
            }
            RunError::OutOfTurns { at, turns } => {
                write!(
                    f,
                    "virtual time does not advance: {turns} turns at {} s",
                    seconds(at)
                )
            }
        }
    }
}

impl std::error::Error for RunError {}

impl World {
    /// Gives the workers their turns until every leading one has finished.
    ///
    /// At each instant, all that arrives is delivered first; then each worker that has something
    /// to receive or wanted to be woken has its turn, in the order of `steppers`, and so on until
    /// nothing is due; then the time moves to the next arrival or wake-up. Each endpoint's first
    /// turn is due when it is made. Without a leading worker the run ends at once.
    ///
    /// # Errors
    /// [`RunError`] when `bounds` are exceeded or nothing can happen any more; the world and the
    /// workers are then as the last turn left them.
    pub fn run(&self, steppers: &mut [Stepper<'_>], bounds: Bounds) -> Result<RunStats, RunError> {
        let mut turns = 0;
        let mut turns_before = 0;
        loop {
            let at = self.now();
            self.advance_to(at);
            let mut given = 0;
            for stepper in steppers.iter_mut() {
                given += u64::from(self.step_if_due(stepper));
            }
            turns += given;
            if steppers
                .iter()
                .all(|stepper| stepper.finished || !stepper.leads)
            {
                return Ok(RunStats {
                    ended_at: at,
                    turns,
                });
            }
            let at_once = turns - turns_before;
            if at_once >= bounds.turns_at_once_max {
                return Err(RunError::OutOfTurns { at, turns: at_once });
            }
            if given == 0 {
                match self.next_due(steppers) {
                    None => return Err(RunError::Idle { at }),
                    Some(next) if next > bounds.until => return Err(RunError::OutOfTime { next }),
                    Some(next) => {
                        self.advance_to(next);
                        turns_before = turns;
                    }
                }
            }
        }
    }

    /// Gives one worker its turn if it is due; true if it was.
    fn step_if_due(&self, stepper: &mut Stepper<'_>) -> bool {
        if stepper.finished {
            return false;
        }
        {
            let mut state = self.state.borrow_mut();
            let now = state.now;
            let endpoint = &mut state.endpoints[stepper.endpoint.0];
            let is_due = endpoint.has_ready() || endpoint.wake_up <= now;
            if !is_due || stepper.stopped_until > now {
                return false;
            }
            // A turn that does not wait for an instant is woken by arrivals only.
            endpoint.wake_up = Instant::FAR_FUTURE;
        }
        match (stepper.turn)() {
            Turn::Waiting => {}
            Turn::Finished => stepper.finished = true,
            Turn::Stopped(until) => {
                stepper.stopped_until = until;
                let mut state = self.state.borrow_mut();
                state.endpoints[stepper.endpoint.0].wake_up = until;
            }
        }
        true
    }

    /// When the next arrival or wake-up is due.
    fn next_due(&self, steppers: &[Stepper<'_>]) -> Option<Instant> {
        let state = self.state.borrow();
        let running = steppers.iter().filter(|stepper| !stepper.finished);
        running
            .map(|stepper| state.endpoints[stepper.endpoint.0].wake_up)
            .chain(state.next_arrival())
            .min()
            .filter(|next| *next != Instant::FAR_FUTURE)
    }
}
