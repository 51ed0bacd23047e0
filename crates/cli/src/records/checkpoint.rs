//! What a run had measured until its last checkpoint, as a file beside its record: a command that
//! is killed leaves it behind.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lab::files::{self, Access};
use lab::live::{Follower, Live};
use measure::RunRecord;

use super::Destination;
use super::destination::put;

/// How long the end of a run waits for a checkpoint that is being written.
const PATIENCE: Duration = Duration::from_secs(10);

/// Writes each checkpoint of the run that is published next, and removes the file when it is
/// dropped: by then the record itself is there.
pub(crate) struct CheckpointFile {
    path: PathBuf,
    follower: Option<Follower>,
}

impl CheckpointFile {
    /// Beside a record that is a file.
    pub(crate) fn begin(live: &Live, destination: &Destination) -> Option<Self> {
        let path = destination.checkpoint()?;
        if path.exists() {
            tell!(
                "note: {} is what an earlier run had measured before it was killed; the first \
                 checkpoint of this run replaces it",
                path.display()
            );
        }
        live.want_verdicts();
        let mut checkpoints = Checkpoints {
            path: path.clone(),
            written: None,
            has_failed: false,
        };
        let published = live.clone();
        let follower = live.follow(move |_| {
            if let Some(record) = published.checkpoint() {
                checkpoints.write(record);
            }
        });
        // Without a further thread there are no checkpoints.
        let follower = follower.ok();
        Some(CheckpointFile { path, follower })
    }

    /// The run is over: no checkpoint is written any more.
    pub(crate) fn stop(&mut self) {
        if let Some(follower) = self.follower.take() {
            follower.end(PATIENCE);
        }
    }
}

impl Drop for CheckpointFile {
    fn drop(&mut self) {
        self.stop();
        // There is none before the first checkpoint.
        let _ = fs::remove_file(&self.path);
    }
}

/// The thread that writes.
struct Checkpoints {
    path: PathBuf,
    /// The one that was written last.
    written: Option<Arc<RunRecord>>,
    has_failed: bool,
}

impl Checkpoints {
    fn write(&mut self, record: Arc<RunRecord>) {
        let is_written = |it: &Arc<RunRecord>| Arc::ptr_eq(it, &record);
        if self.has_failed || self.written.as_ref().is_some_and(is_written) {
            return;
        }
        if let Err(error) = files::replace(&self.path, Access::Umask, &|file| put(&record, file)) {
            self.has_failed = true;
            let path = self.path.display();
            tell!("warning: no checkpoint of this run is kept: cannot write to {path}: {error}");
        }
        self.written = Some(record);
    }
}
