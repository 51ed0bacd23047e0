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
use serde::{Deserialize, Serialize};

/// What limits a run, as far as it was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// It is on what was measured until here, in nanoseconds since the start of the measured run.
    pub until_ns: u64,
    /// The run goes on, and the verdict may become another one.
    pub is_provisional: bool,
}

/// The newest checkpoint.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) judged: Arc<Judged>,
    /// What was measured until then.
    pub(super) record: Arc<RunRecord>,
}

/// Makes a record, concluded, of what was measured so far; none if that cannot be.
pub(super) type Making = Box<dyn FnOnce() -> Option<RunRecord> + Send>;

/// What judges the checkpoints of one run.
#[derive(Debug, Default)]
pub(super) struct Judge {
    found: Arc<Mutex<Option<Found>>>,
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

    /// The newest checkpoint that was judged.
    pub(super) fn found(&self) -> Option<Found> {
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

fn note(found: &Mutex<Option<Found>>, until_ns: u64, record: Option<RunRecord>) {
    if let Some(mut record) = record {
        // Who reads this after the run has the result instead.
        record.ended_by = EndedBy::Killed;
        debug_assert_eq!(record.check(), Ok(()), "a checkpoint is a record");
        let judged = Judged {
            verdict: record.verdict.clone(),
            until_ns,
            is_provisional: true,
        };
        *lock(found) = Some(Found {
            judged: Arc::new(judged),
            record: Arc::new(record),
        });
    }
}

/// Nothing panics while it is held.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Judged {
    /// At the end.
    pub(super) fn of(record: &RunRecord) -> Judged {
        Judged {
            until_ns: record.total.end_ns,
            verdict: record.verdict.clone(),
            is_provisional: false,
        }
    }
}
