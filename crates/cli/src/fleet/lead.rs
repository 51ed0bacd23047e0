//! `throng fleet lead`: the lead of a fleet in its pod. It runs a command in a folder of its own,
//! and keeps what that wrote until somebody has fetched it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use lab::agents::{Inputs, content_hash};
use lab::files::{self, Access, Opening};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::said;
use crate::args::fleet::{LeadArguments, PartArguments, TakeArguments};
use crate::failure::{Failure, print};
use crate::{call, inputs, streams, terminal};

/// What the command printed on standard output.
pub(super) const OUTPUT: &str = "output.txt";
/// The index of its inputs, in their folder.
const INDEX: &str = "index.json";
/// Folder of inputs that came through `throng fleet take`, and files of the lead's own: what begins
/// with a point is not fetched.
const TAKEN: &str = ".inputs";
const ENDED: &str = ".ended";
const FETCHED: &str = ".fetched";
/// Begins the last line of the log of a lead whose command has ended.
pub(super) const WAITS: &str = "the result waits";
/// How often it is looked whether it was fetched.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Octets that are read at a time.
const PIECE: u64 = 1 << 20;

/// What there is to fetch.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Offered {
    /// The exit code of the command; none while it runs.
    pub(super) code: Option<u8>,
    /// What it wrote, by name below its folder.
    pub(super) files: BTreeMap<String, Written>,
}

/// A file that the command wrote.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Written {
    pub(super) length: u64,
    /// SHA-256, hexadecimal.
    pub(super) hash: String,
}

/// Runs the command and waits until its result is fetched.
pub(super) fn lead(arguments: &LeadArguments) -> Result<ExitCode, Failure> {
    tell!("{}", said::first_line());
    if let Some(folder) = &arguments.inputs {
        provide(folder, arguments.keep)?;
    }
    let output = files::open(Path::new(OUTPUT), Opening::Emptied, Access::Umask);
    let output = output.map_err(|error| {
        Failure::unwritable(
            format!("cannot write {OUTPUT}: {error}"),
            &error,
            "start the lead in a folder that can be written",
        )
    })?;
    rustix::stdio::dup2_stdout(&output).map_err(Failure::in_operation)?;
    let line = ["throng".to_owned()].into_iter();
    let line = line.chain(arguments.command.iter().cloned());
    let code = call::whole_command(line.map(Into::into).collect());
    let number = call::number_of(code);
    let ended = files::write(Path::new(ENDED), Access::Umask, number.to_string());
    ended.map_err(|error| no_room(&error))?;
    tell!(
        "{WAITS} for `throng fleet fetch` for {} s at most",
        arguments.keep.as_secs()
    );
    let until = Instant::now() + arguments.keep;
    while Instant::now() < until && !Path::new(FETCHED).exists() {
        std::thread::park_timeout(LOOK_EVERY);
    }
    Ok(code)
}

/// That the result cannot be kept: what the command wrote is lost.
fn no_room(error: &io::Error) -> Failure {
    let hint = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "the volume of the lead is full: have the command write fewer or shorter files, or \
             free ephemeral storage of the lead's node"
        }
        _ => "the lead has to run in a folder that can be written",
    };
    let folder = std::env::current_dir().unwrap_or_default();
    let folder = folder.display();
    let what = format!("cannot keep the result in {folder}: {error}");
    Failure::in_operation(what).or_hint(hint)
}

/// Has the inputs stand for the files of their names. Those that are too long for a Secret are
/// waited for: they come through [`take`].
fn provide(folder: &Path, patience: Duration) -> Result<(), Failure> {
    let cannot = |path: &Path, error: &dyn std::fmt::Display| {
        let what = format!("cannot read the input {}: {error}", path.display());
        Failure::usage(what, "make the manifest again with `throng fleet manifest`")
    };
    let index = folder.join(INDEX);
    let text = fs::read(&index).map_err(|error| cannot(&index, &error))?;
    let paths: BTreeMap<String, String> =
        serde_json::from_slice(&text).map_err(|error| cannot(&index, &error))?;
    let mut contents = Inputs::default();
    let until = Instant::now() + patience;
    for (name, hash) in &paths {
        let places = [folder.join(hash), Path::new(TAKEN).join(hash)];
        let there = || places.iter().find(|path| path.exists());
        while there().is_none() && Instant::now() < until {
            std::thread::park_timeout(LOOK_EVERY);
        }
        let path = there().unwrap_or(&places[0]);
        let content = fs::read(path).map_err(|error| cannot(Path::new(name), &error))?;
        if contents.add(Arc::new(content)) != *hash {
            return Err(cannot(Path::new(name), &"its hash is another one"));
        }
    }
    inputs::keep_all();
    inputs::take(&paths, &contents);
    Ok(())
}

/// Takes an input from standard input.
pub(super) fn take(arguments: &TakeArguments) -> Result<ExitCode, Failure> {
    let mut content = Vec::new();
    let read = streams::input().read_to_end(&mut content);
    read.map_err(Failure::in_operation)?;
    let hash = content_hash(&content);
    if hash != arguments.hash {
        return Err(Failure::in_operation("the input came damaged"));
    }
    let path = Path::new(TAKEN).join(&hash);
    let written = files::make_folders(Path::new(TAKEN))
        .and_then(|()| files::write(&path, Access::Owner, content));
    written.map_err(|error| {
        let what = format!("cannot write {}: {error}", path.display());
        Failure::unwritable(what, &error, "give the lead's node more room")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what there is to fetch, as JSON.
pub(super) fn show() -> Result<ExitCode, Failure> {
    let code = fs::read_to_string(ENDED).ok();
    let code = code.and_then(|code| code.trim().parse().ok());
    let files = match code {
        None => BTreeMap::new(),
        Some(_) => written(Path::new("."))?,
    };
    let result = Offered { code, files };
    let text = serde_json::to_string(&result).map_err(Failure::in_operation)?;
    print(&(text + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The files below a folder, but for the lead's own.
fn written(folder: &Path) -> Result<BTreeMap<String, Written>, Failure> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(Failure::in_operation)? {
            let entry = entry.map_err(Failure::in_operation)?;
            let (path, kind) = (entry.path(), entry.file_type());
            let kind = kind.map_err(Failure::in_operation)?;
            let name = path.strip_prefix(".").unwrap_or(&path).to_owned();
            if kind.is_dir() {
                folders.push(path);
            } else if let Some(name) = name.to_str()
                && kind.is_file()
                && !name.starts_with('.')
            {
                found.insert(name.to_owned(), Written::of(&path)?);
            }
        }
    }
    Ok(found)
}

impl Written {
    pub(super) fn of(path: &Path) -> Result<Written, Failure> {
        let mut file = fs::File::open(path).map_err(Failure::in_operation)?;
        let mut hash = Sha256::new();
        let (mut length, mut piece) = (0, vec![0; PIECE as usize]);
        loop {
            let read = file.read(&mut piece).map_err(Failure::in_operation)?;
            if read == 0 {
                break;
            }
            hash.update(&piece[..read]);
            length += read as u64;
        }
        Ok(Written {
            length,
            hash: HEXLOWER.encode(&hash.finalize()),
        })
    }
}

/// Writes a part of a file to standard output.
pub(super) fn part(arguments: &PartArguments) -> Result<ExitCode, Failure> {
    let path = Path::new(&arguments.name);
    if !files::is_below(path) {
        return Err(Failure::plain(format!(
            "{}: no file of a result",
            arguments.name
        )));
    }
    let mut file = fs::File::open(path).map_err(Failure::in_operation)?;
    let from = SeekFrom::Start(arguments.from);
    file.seek(from).map_err(Failure::in_operation)?;
    loop {
        let mut piece = Vec::new();
        let read = file.by_ref().take(PIECE).read_to_end(&mut piece);
        if read.map_err(Failure::in_operation)? == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        terminal::output(&piece).map_err(Failure::in_operation)?;
    }
}

/// The result has been fetched: the lead may end.
pub(super) fn confirm() -> Result<ExitCode, Failure> {
    let written = files::write(Path::new(FETCHED), Access::Umask, "");
    written.map_err(Failure::in_operation)?;
    Ok(ExitCode::SUCCESS)
}

/// Asks the lead, the first process of this pod, to end its command early.
pub(super) fn interrupt() -> Result<ExitCode, Failure> {
    let lead = rustix::process::Pid::INIT;
    let told = rustix::process::kill_process(lead, rustix::process::Signal::INT);
    told.map_err(Failure::in_operation)?;
    Ok(ExitCode::SUCCESS)
}
