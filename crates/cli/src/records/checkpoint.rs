//! What a run had measured until its last checkpoint, as a file beside its record: a command that
//! is killed leaves it behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::live::{Follower, Judged, Live};

use super::Destination;
use super::destination::{put, replace_by};

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
            written_until: None,
            has_failed: false,
        };
        let follower = live.follow(move |next| {
            let all = next.snapshots.iter().rev();
            if let Some(newest) = all.filter_map(|it| it.shown.judged.as_deref()).next() {
                checkpoints.write(newest);
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
    written_until: Option<u64>,
    has_failed: bool,
}

impl Checkpoints {
    fn write(&mut self, judged: &Judged) {
        let is_new = judged.is_provisional && self.written_until != Some(judged.until_ns);
        if self.has_failed || !is_new {
            return;
        }
        self.written_until = Some(judged.until_ns);
        if let Err(error) = write(&self.path, judged) {
            self.has_failed = true;
            let path = self.path.display();
            tell!("warning: no checkpoint of this run is kept: cannot write to {path}: {error}");
        }
    }
}

fn write(path: &Path, judged: &Judged) -> io::Result<()> {
    replace_by(path, &|file| put(&judged.record, file))
}
