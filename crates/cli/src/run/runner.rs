//! The runs of one command: agents stay for the next one.

use std::cell::{Cell, RefCell};

use lab::agents::{Fleet, Task};
use lab::live::Live;

use super::elsewhere::Elsewhere;
use crate::failure::Failure;
use crate::signals::Interrupt;

/// Where the agents of a run are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Processes of this host.
    Here(u32),
    /// On other hosts.
    Elsewhere(Elsewhere),
}

/// Shows a line.
pub(crate) type Note<'a> = Box<dyn Fn(&str) + 'a>;

/// What the runs of a command have in common. Its end ends the agents and what is published.
pub(crate) struct Runner<'a> {
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) live: &'a Live,
    /// Shows a line about what goes on between the runs, such as agents that come.
    pub(super) note: Note<'a>,
    /// No run follows the next one.
    is_last: Cell<bool>,
    fleet: RefCell<Option<(Source, Fleet)>>,
}

impl<'a> Runner<'a> {
    /// For any number of runs; says nothing between them if `is_quiet`.
    pub(crate) fn new(interrupt: &'a Interrupt, live: &'a Live, is_quiet: bool) -> Self {
        let note = move |line: &str| {
            if !is_quiet {
                tell!("{line}");
            }
        };
        Runner::with_notes(interrupt, live, Box::new(note))
    }

    /// The same, where notes are shown otherwise.
    pub(crate) fn with_notes(interrupt: &'a Interrupt, live: &'a Live, note: Note<'a>) -> Self {
        Runner {
            interrupt,
            live,
            note,
            is_last: Cell::new(false),
            fleet: RefCell::default(),
        }
    }

    /// No run follows the next one: agents end with it, and not when its result is printed.
    pub(crate) fn note_last(&self) {
        self.is_last.set(true);
    }

    /// No run follows: ends the agents, which wait for the next one, and readers learn that nothing
    /// more is published.
    pub(crate) fn end(&self) {
        self.live.close();
        if let Some((_, fleet)) = self.fleet.take() {
            fleet.end();
        }
    }

    /// The agents of the run before if that had the same, or those that `start` starts.
    pub(super) fn fleet(
        &self,
        source: &Source,
        start: impl FnOnce() -> Result<Fleet, Failure>,
    ) -> Result<Fleet, Failure> {
        match self.fleet.take() {
            Some((before, fleet)) if before == *source => return Ok(fleet),
            // An address to listen on has to be free for the next one.
            Some((_, fleet)) => fleet.end(),
            None => {}
        }
        start()
    }

    /// What the agents are to do, as far as the runs of this command are concerned.
    pub(super) fn task(&self, task: Task) -> Task {
        Task {
            is_last: self.is_last.get(),
            ..task
        }
    }

    /// Keeps the agents of a run for the next one, if there is one. Where one was lost, the others
    /// are to be started again with it.
    pub(super) fn keep(&self, source: Source, fleet: Fleet) {
        match self.is_last.get() {
            true => fleet.end(),
            false if fleet.is_whole() => drop(self.fleet.replace(Some((source, fleet)))),
            false => {}
        }
    }
}

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn readers_learn_that_the_last_run_of_a_command_is_over() {
        let (interrupt, live) = (Interrupt::default(), Live::default());
        let is_over = || live.after(0, Duration::ZERO).is_over;
        let runner = Runner::new(&interrupt, &live, true);
        assert!(!is_over());
        // However the command ends.
        drop(runner);
        assert!(is_over());
    }
}
