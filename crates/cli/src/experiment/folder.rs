//! The folder of an experiment: its file, a record and a log of each run, the index.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use history::{History, MANIFESTS, Update};
use lab::experiment;
use lab::files::{self, Access, Opening};
use measure::internet::Internet;
use measure::line::Line;
use serde::Serialize;

use super::cells::{Levels, Run, Turn};
use crate::failure::Failure;

/// The experiment that the folder belongs to.
pub(super) const EXPERIMENT: &str = "experiment.toml";
const LOCK: &str = "lock";
const RECORDS: &str = "records";
const LOGS: &str = "logs";
const LINES: &str = "lines";
const INTERNET: &str = "internet";
const REPEATED: &str = "repeated";
const CEILINGS: &str = "ceilings";
const HOOKS_LOG: &str = "hooks.log";
/// The record of a long run with several groups, and its log.
const FREE_OCTETS_MIN: u64 = 1 << 20;

/// The name of the experiment whose records are in this folder: that of its file, or of the folder.
pub(crate) fn name_of(folder: &Path) -> Option<String> {
    let folders = [Some(folder), folder.parent()];
    folders.into_iter().flatten().find_map(|folder| {
        let own = folder.join(EXPERIMENT);
        let text = fs::read_to_string(&own).ok()?;
        let name = super::file::parse(&own, &text).ok()?.name;
        let is_given = own
            .file_stem()
            .is_none_or(|stem| stem.to_string_lossy() != name);
        let of_folder = || Some(folder.file_name()?.to_string_lossy().into_owned());
        if is_given { Some(name) } else { of_folder() }
    })
}

/// The folder of one experiment, locked against other processes.
pub(super) struct Folder {
    path: PathBuf,
    /// Held until it is dropped.
    _lock: File,
}

impl Folder {
    /// Makes the folder for the experiment with this text, or opens the one that it has.
    pub(super) fn open(path: &Path, text: &str) -> Result<Folder, Failure> {
        let cannot = |error: std::io::Error| {
            Failure::unwritable(
                format!("cannot create the folder {}: {error}", path.display()),
                &error,
                "give --output a folder that can be created or written",
            )
        };
        for folder in [RECORDS, LOGS] {
            files::make_folders(&path.join(folder)).map_err(cannot)?;
        }
        let lock = files::open(&path.join(LOCK), Opening::Lock, Access::Umask);
        let mut lock = lock.map_err(cannot)?;
        match lock.try_lock() {
            // The owner's PID is for people; the lock itself is the kernel's.
            Ok(()) => lock
                .set_len(0)
                .and_then(|()| writeln!(lock, "{}", std::process::id()))
                .map_err(cannot)?,
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                // An owner that is just about to write its PID is not named.
                let _ = lock.read_to_string(&mut owner);
                return Err(Failure::usage(
                    format!(
                        "an experiment is running in {}, by process {}",
                        path.display(),
                        owner.trim()
                    ),
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
            Err(_) => write_copy(&own, text).map_err(cannot)?,
        }
        Ok(Folder {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is kept how something was before it was changed; the folder is made.
    pub(super) fn manifest(&self, turn: &Turn) -> PathBuf {
        let folder = self.path.join(MANIFESTS);
        // The first who writes there says what is wrong.
        let _ = files::make_folders(&folder);
        folder.join(format!("{}.json", turn.name()))
    }

    /// Where the record of a run goes when it is complete.
    pub(super) fn record(&self, run: &Run<'_>) -> PathBuf {
        record_in(&self.path, run)
    }

    /// Where it is written; what is left there belongs to a run that did not succeed.
    pub(super) fn unfinished(&self, run: &Run<'_>) -> PathBuf {
        let name = format!("{}.unfinished", run.name());
        self.path.join(RECORDS).join(name)
    }

    /// Sets the records of a start aside, which is then made once more.
    pub(super) fn set_aside(&self, turn: &Turn, runs: u32) -> Result<(), Failure> {
        let folder = self.repeated(turn);
        files::make_folders(&folder).map_err(|error| cannot_write(&folder, &error))?;
        for run in Run::all(turn, runs) {
            let record = self.record(&run);
            // What looks for records must not find it.
            let aside = folder.join(format!("{}.repeated", run.name()));
            if record.is_file() {
                fs::rename(&record, &aside).map_err(|error| cannot_write(&aside, &error))?;
            }
        }
        Ok(())
    }

    /// True if a start was made once more already.
    pub(super) fn has_repeated(&self, turn: &Turn) -> bool {
        self.repeated(turn).is_dir()
    }

    fn repeated(&self, turn: &Turn) -> PathBuf {
        self.path.join(REPEATED).join(turn.name())
    }

    /// True if all of its runs were made.
    pub(super) fn has(&self, turn: &Turn, runs: u32) -> bool {
        Run::all(turn, runs).all(|run| self.record(&run).is_file())
    }

    /// Where a run prints; the file is emptied.
    pub(super) fn log(&self, run: &Run<'_>) -> Result<PathBuf, Failure> {
        emptied(self.path.join(LOGS).join(format!("{}.txt", run.name())))
    }

    /// Refuses to go on where there is no place for another record.
    pub(super) fn check_space(&self) -> Result<(), Failure> {
        let Ok(all) = rustix::fs::statvfs(&self.path) else {
            return Ok(());
        };
        let free = all.f_bavail.saturating_mul(all.f_frsize);
        if free >= FREE_OCTETS_MIN {
            return Ok(());
        }
        let (path, free) = (self.path.display(), free >> 10);
        let what = format!("{path} has {free} KiB left on its disk, too little for a record");
        let hint = "free some space there; the same command goes on from here";
        Err(Failure::in_operation(what).or_hint(hint))
    }

    /// Keeps what the line did in a run.
    pub(super) fn write_line(&self, run: &Run<'_>, line: &Line) -> Result<(), Failure> {
        write_json(&line_in(&self.path, run), line)
    }

    /// Keeps what the servers of its closed Internet did in a run.
    pub(super) fn write_internet(&self, run: &Run<'_>, did: &Internet) -> Result<(), Failure> {
        write_json(&internet_in(&self.path, run), did)
    }

    /// Where the record of a ceiling goes; the folder is made.
    pub(super) fn ceiling(&self, turn: &Turn) -> Result<PathBuf, Failure> {
        let path = ceiling_in(&self.path, &turn.levels);
        let folder = path.parent().unwrap_or(&path);
        files::make_folders(folder).map_err(|error| cannot_write(folder, &error))?;
        Ok(path)
    }

    /// Where the run of a ceiling prints; the file is emptied.
    pub(super) fn log_of_ceiling(&self, turn: &Turn) -> Result<PathBuf, Failure> {
        emptied(self.ceiling(turn)?.with_extension("txt"))
    }

    /// What hooks printed, of all runs.
    pub(super) fn hooks_log(&self) -> Result<File, Failure> {
        let path = self.path.join(HOOKS_LOG);
        // They may print secrets.
        let opened = files::open(&path, Opening::Append, Access::Owner);
        opened.map_err(|error| cannot_write(&path, &error))
    }

    /// Brings the index up to date.
    pub(super) fn index(&self) -> Result<Update, Failure> {
        Ok(History::open(&self.path)?.update()?)
    }
}

/// Where the record of a run is in an experiment's folder.
pub(super) fn record_in(folder: &Path, run: &Run<'_>) -> PathBuf {
    let ending = if run.is_used() { "json" } else { "unused" };
    folder
        .join(RECORDS)
        .join(format!("{}.{ending}", run.name()))
}

/// Where an experiment's folder has what the line did in a run. What looks for records must find
/// neither this nor any of the following.
pub(super) fn line_in(folder: &Path, run: &Run<'_>) -> PathBuf {
    folder.join(LINES).join(format!("{}.line", run.name()))
}

/// Where it has what the servers of the closed Internet did in a run.
pub(super) fn internet_in(folder: &Path, run: &Run<'_>) -> PathBuf {
    folder
        .join(INTERNET)
        .join(format!("{}.internet", run.name()))
}

/// Where it has the record of the generator's ceiling for a load.
pub(super) fn ceiling_in(folder: &Path, load: &Levels) -> PathBuf {
    let name = experiment::file_name(load, 1);
    folder.join(CEILINGS).join(format!("{name}.ceiling"))
}

/// Writes a file and the folder that it is in.
fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(value).map_err(Failure::in_operation)?;
    let folder = path.parent().unwrap_or(path);
    files::make_folders(folder)
        .and_then(|()| files::write(path, Access::Umask, json + "\n"))
        .map_err(|error| cannot_write(path, &error))
}

/// Writes the experiment's file; one that may have a key in it is for its owner alone.
fn write_copy(path: &Path, text: &str) -> std::io::Result<()> {
    let has_keys = ["tsig", "doh-header", "@"]
        .iter()
        .any(|flag| text.contains(flag));
    let access = match has_keys {
        true => Access::Owner,
        false => Access::Umask,
    };
    files::write(path, access, text)
}

/// A file, emptied or made.
fn emptied(path: PathBuf) -> Result<PathBuf, Failure> {
    match files::open(&path, Opening::Emptied, Access::Umask) {
        Ok(_) => Ok(path),
        Err(error) => Err(cannot_write(&path, &error)),
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::in_operation(format!("cannot write {}: {error}", path.display()));
    match files::cure(error) {
        Some(cure) => failure.or_hint(cure),
        None => failure,
    }
}
