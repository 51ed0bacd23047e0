//! A reader on a thread of its own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::{Live, Next};

/// How long it waits for a snapshot before it looks again; each one wakes it.
const WAIT: Duration = Duration::from_secs(3600);

/// A thread that reads snapshots as they come.
#[derive(Debug)]
pub struct Follower {
    live: Live,
    /// The number of the last snapshot that it is to read.
    until: Arc<AtomicU64>,
    /// Closed when it has ended.
    ended: Receiver<()>,
}

impl Live {
    /// Calls `read` on a thread of its own with everything that is published from now on, the last
    /// time with [`Next::is_over`].
    ///
    /// # Errors
    /// The system allows no further thread.
    pub fn follow(&self, mut read: impl FnMut(&Next) + Send + 'static) -> io::Result<Follower> {
        let until = Arc::new(AtomicU64::new(u64::MAX));
        let (ends, ended) = channel::<()>();
        let (live, last, mut number) = (self.clone(), Arc::clone(&until), self.newest());
        thread::Builder::new().spawn(move || {
            loop {
                let is_enough = || last.load(Ordering::Acquire) <= number;
                let mut next = live.after_unless(number, WAIT, is_enough);
                number = next.snapshots.last().map_or(number, |it| it.number);
                let until = last.load(Ordering::Acquire);
                next.snapshots.retain(|it| it.number <= until);
                next.is_over |= number >= until;
                read(&next);
                if next.is_over {
                    break;
                }
            }
            drop(ends);
        })?;
        let live = self.clone();
        Ok(Follower { live, until, ended })
    }
}

impl Follower {
    /// Ends it when it has read what is published by now, for which this waits at most for
    /// `patience`; false if it goes on because it is slower.
    pub fn end(self, patience: Duration) -> bool {
        let newest = self.live.newest();
        self.until.store(newest, Ordering::Release);
        self.live.wake();
        self.ended.recv_timeout(patience) == Err(RecvTimeoutError::Disconnected)
    }
}
