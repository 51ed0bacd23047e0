//! The verdict on what a run has measured so far.
//!
//! It is judged as at the end, from a record of the newest checkpoint: on a thread of its own,
//! since the thread that publishes has workers to listen to. While it judges, further checkpoints
//! are left out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use measure::{EndedBy, RunRecord, Verdict};

/// What limits a run, as far as it was measured.
#[derive(Clone, Debug)]
pub struct Judged {
    /// What was measured, with the verdict on it.
    pub record: RunRecord,
    /// It is on what was measured until here, in nanoseconds since the start of the measured run.
    pub until_ns: u64,
    /// The run goes on, and the verdict may become another one.
    pub is_provisional: bool,
}

/// Makes a record, concluded, of what was measured so far; none if that cannot be.
pub(super) type Making = Box<dyn FnOnce() -> Option<RunRecord> + Send>;

/// What judges the checkpoints of one run.
#[derive(Debug, Default)]
pub(super) struct Judge {
    found: Arc<Mutex<Option<Arc<Judged>>>>,
    is_busy: Arc<AtomicBool>,
    /// To its thread, which ends when this is dropped; none before the first checkpoint, and in
    /// virtual time.
    asks: Option<Sender<(u64, Making)>>,
    /// Judges at once: in virtual time that takes none, and snapshots are the same each time.
    is_at_once: bool,
}

impl Judge {
    pub(super) fn in_virtual_time() -> Judge {
        Judge {
            is_at_once: true,
            ..Judge::default()
        }
    }

    /// The newest verdict.
    pub(super) fn found(&self) -> Option<Arc<Judged>> {
        lock(&self.found).clone()
    }

    /// Judges a checkpoint, unless it is still at work on the one before.
    pub(super) fn ask(&mut self, until_ns: u64, making: Making) {
        if self.is_at_once {
            return note(&self.found, until_ns, making());
        }
        if self.is_busy.swap(true, Ordering::AcqRel) {
            return;
        }
        let asks = self.asks.take().or_else(|| self.start());
        self.asks = asks.filter(|asks| asks.send((until_ns, making)).is_ok());
    }

    /// None where the system allows no further thread: then there is no verdict before the end.
    fn start(&self) -> Option<Sender<(u64, Making)>> {
        let (asks, asked) = channel::<(u64, Making)>();
        let (found, is_busy) = (Arc::clone(&self.found), Arc::clone(&self.is_busy));
        let judging = move || {
            for (until_ns, making) in asked {
                note(&found, until_ns, making());
                is_busy.store(false, Ordering::Release);
            }
        };
        thread::Builder::new().spawn(judging).ok().map(|_| asks)
    }
}

fn note(found: &Mutex<Option<Arc<Judged>>>, until_ns: u64, record: Option<RunRecord>) {
    if let Some(mut record) = record {
        // Who reads this after the run has the result instead.
        record.ended_by = EndedBy::Killed;
        debug_assert_eq!(record.check(), Ok(()), "a checkpoint is a record");
        *lock(found) = Some(Arc::new(Judged {
            record,
            until_ns,
            is_provisional: true,
        }));
    }
}

/// Nothing panics while it is held.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Judged {
    /// The verdict.
    pub fn verdict(&self) -> &Verdict {
        &self.record.verdict
    }

    /// At the end.
    pub(super) fn of(record: &RunRecord) -> Judged {
        Judged {
            until_ns: record.total.end_ns,
            record: record.clone(),
            is_provisional: false,
        }
    }
}
