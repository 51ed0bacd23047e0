//! The folder of an experiment: its file, a record and a log of each run, the index.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use history::{History, Update};

use super::cells::Turn;
use crate::failure::Failure;

/// The experiment that the folder belongs to.
const EXPERIMENT: &str = "experiment.toml";
const LOCK: &str = "lock";
const RECORDS: &str = "records";
const LOGS: &str = "logs";
const HOOKS_LOG: &str = "hooks.log";

/// The folder of one experiment, as long as nobody else works in it.
pub(super) struct Folder {
    path: PathBuf,
    /// Held until it is dropped.
    _lock: File,
}

impl Folder {
    /// Makes the folder for the experiment with this text, or opens the one that it has.
    pub(super) fn open(path: &Path, text: &str) -> Result<Folder, Failure> {
        let cannot = |error: std::io::Error| {
            Failure::usage(
                format!("cannot make the folder {}: {error}", path.display()),
                "give --output a folder that can be made or written",
            )
        };
        for folder in [RECORDS, LOGS] {
            fs::create_dir_all(path.join(folder)).map_err(cannot)?;
        }
        let lock = File::create(path.join(LOCK)).map_err(cannot)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::usage(
                    format!("an experiment is running in {}", path.display()),
                    "wait for its end, or give --output another folder",
                ));
            }
            Err(TryLockError::Error(error)) => return Err(cannot(error)),
        }
        let own = path.join(EXPERIMENT);
        match fs::read_to_string(&own) {
            Ok(before) if before != text => {
                return Err(Failure::usage(
                    format!("{} has the records of another experiment", path.display()),
                    format!(
                        "give --output another folder; {} says which it was",
                        own.display()
                    ),
                ));
            }
            Ok(_) => {}
            Err(_) => fs::write(&own, text).map_err(cannot)?,
        }
        Ok(Folder {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the record of a run goes when it is complete.
    pub(super) fn record(&self, turn: &Turn) -> PathBuf {
        self.path
            .join(RECORDS)
            .join(format!("{}.json", turn.name()))
    }

    /// Where it is written; what is left there belongs to a run that did not succeed.
    pub(super) fn unfinished(&self, turn: &Turn) -> PathBuf {
        self.path
            .join(RECORDS)
            .join(format!("{}.unfinished", turn.name()))
    }

    /// True if the run was made.
    pub(super) fn has(&self, turn: &Turn) -> bool {
        self.record(turn).is_file()
    }

    /// What a run printed.
    pub(super) fn log(&self, turn: &Turn) -> Result<File, Failure> {
        let path = self.path.join(LOGS).join(format!("{}.txt", turn.name()));
        File::create(&path).map_err(|error| cannot_write(&path, &error))
    }

    /// What hooks printed, of all runs.
    pub(super) fn hooks_log(&self) -> Result<File, Failure> {
        let path = self.path.join(HOOKS_LOG);
        let opened = File::options().create(true).append(true).open(&path);
        opened.map_err(|error| cannot_write(&path, &error))
    }

    /// Brings the index up to date.
    pub(super) fn index(&self) -> Result<Update, Failure> {
        Ok(History::open(&self.path)?.update()?)
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::in_operation(format!("cannot write {}: {error}", path.display()))
}
