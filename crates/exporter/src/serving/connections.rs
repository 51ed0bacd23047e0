//! How many connections a server has, and whether it is to end.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::thread::Limits;

/// Connections that were not served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Above the limits: their requests got 503, or they were closed at once.
    pub refused: u64,
    /// Closed because they took too long.
    pub timed_out: u64,
}

/// What becomes of a connection that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Answered,
    Refused,
    Closed,
}

/// The connections of a server; shared by them and the thread that waits for its end.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    open: usize,
    /// Those of them whose response has no end before that of the server.
    streams: usize,
    counts: Counts,
    is_ending: bool,
    /// Of the server's task.
    waker: Option<Waker>,
}

impl Connections {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held, and the state is whole at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection has come. One that is to be closed is not open.
    pub(crate) fn enter(&self, limits: &Limits) -> Entry {
        let mut state = self.state();
        let entry = match state.open {
            open if open < limits.answered_max => Entry::Answered,
            open if open < limits.connections_max => Entry::Refused,
            _ => Entry::Closed,
        };
        state.counts.refused += u64::from(entry != Entry::Answered);
        state.open += usize::from(entry != Entry::Closed);
        entry
    }

    /// A response without an end has begun on a connection.
    pub(crate) fn enter_stream(&self) {
        self.state().streams += 1;
    }

    /// A connection took too long.
    pub(crate) fn note_timeout(&self) {
        self.state().counts.timed_out += 1;
    }

    /// A connection has gone.
    pub(crate) fn leave(&self, was_stream: bool) {
        let mut state = self.state();
        state.open -= 1;
        state.streams -= usize::from(was_stream);
        state.wake();
    }

    pub(crate) fn counts(&self) -> Counts {
        self.state().counts
    }

    pub(crate) fn streams(&self) -> usize {
        self.state().streams
    }

    /// The server is to end.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_ending = true;
        state.wake();
    }

    /// Ready once the server is to end.
    pub(crate) fn poll_end(&self, context: &Context<'_>) -> Poll<()> {
        self.poll(context, |state| state.is_ending)
    }

    /// Ready once no response without an end goes on.
    pub(crate) fn poll_idle(&self, context: &Context<'_>) -> Poll<()> {
        self.poll(context, |state| state.streams == 0)
    }

    fn poll(&self, context: &Context<'_>, is_done: fn(&State) -> bool) -> Poll<()> {
        let mut state = self.state();
        match is_done(&state) {
            true => Poll::Ready(()),
            false => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn connections_above_each_limit_are_refused_and_counted() {
        let limits = Limits {
            answered_max: 2,
            connections_max: 3,
            patience: Duration::from_secs(1),
        };
        let connections = Connections::default();
        let entries = [(); 4].map(|()| connections.enter(&limits));
        let expected = [
            Entry::Answered,
            Entry::Answered,
            Entry::Refused,
            Entry::Closed,
        ];
        assert_eq!(entries, expected);
        assert_eq!(connections.counts().refused, 2);
        connections.leave(false);
        connections.leave(false);
        assert_eq!(connections.enter(&limits), Entry::Answered);
    }
}
