//! Files that a command reads. What can be read but once, such as standard input, a named pipe or
//! the `<(...)` of a shell, is read once and kept: for every use in this process, and for the
//! processes that have a part in it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lab::agents::Inputs;
use serde_json::{Map, Value};

use crate::streams;

/// Standard input's name on a command line.
const STANDARD_INPUT: &str = "-";

/// What was read and cannot be read again.
static KEPT: Mutex<BTreeMap<PathBuf, Arc<Vec<u8>>>> = Mutex::new(BTreeMap::new());

fn kept() -> MutexGuard<'static, BTreeMap<PathBuf, Arc<Vec<u8>>>> {
    // Nothing panics while it is held, and the map is whole at any time.
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether everything is kept that is read, for processes that cannot read it themselves.
static KEEPS_ALL: AtomicBool = AtomicBool::new(false);

/// From now on keeps everything that is read, for the agents on other hosts.
pub(crate) fn keep_all() {
    KEEPS_ALL.store(true, Ordering::Relaxed);
}

/// Reads everything anew from now on, as a process that has just been started does.
pub(crate) fn forget() {
    kept().clear();
    KEEPS_ALL.store(false, Ordering::Relaxed);
}

/// Reads files anew that can be read again, as the next run of this process does.
pub(crate) fn read_anew() {
    kept().retain(|path, _| path == Path::new(STANDARD_INPUT) || !is_ordinary(path));
}

/// True for what each run may find changed.
fn is_ordinary(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file())
}

/// The octets of a file, or of standard input for `-`.
///
/// # Errors
/// It cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    content(path).map(Arc::unwrap_or_clone)
}

/// As [`read`], without a copy of what is kept.
///
/// # Errors
/// It cannot be read.
pub(crate) fn content(path: &Path) -> Result<Arc<Vec<u8>>> {
    if can_be_read_again(path) {
        return fs::read(path).map(Arc::new);
    }
    let mut kept = kept();
    if let Some(octets) = kept.get(path) {
        return Ok(Arc::clone(octets));
    }
    let octets = match path == Path::new(STANDARD_INPUT) {
        true => {
            let mut octets = Vec::new();
            streams::input().read_to_end(&mut octets)?;
            octets
        }
        false => fs::read(path)?,
    };
    let octets = Arc::new(octets);
    kept.insert(path.to_owned(), Arc::clone(&octets));
    Ok(octets)
}

/// As [`read`], for text.
///
/// # Errors
/// It cannot be read, or is not UTF-8.
pub(crate) fn text(path: &Path) -> Result<String> {
    let invalid = |_| Error::new(ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(read(path)?).map_err(invalid)
}

/// True for an ordinary file. (One that is not there can be looked for again.)
pub(crate) fn can_be_read_again(path: &Path) -> bool {
    let is_kept = path == Path::new(STANDARD_INPUT)
        || KEEPS_ALL.load(Ordering::Relaxed)
        || kept().contains_key(path);
    !is_kept && fs::metadata(path).map_or(true, |it| it.is_file() || it.is_dir())
}

/// All that cannot be read again, for the agents of a command: their hashes by their paths.
pub(crate) fn for_agents() -> (BTreeMap<String, String>, Inputs) {
    let mut inputs = Inputs::default();
    let kept = kept();
    let hash = |(path, content): (&PathBuf, &Arc<Vec<u8>>)| {
        // One whose name is no text is read by its path.
        Some((path.to_str()?.to_owned(), inputs.add(Arc::clone(content))))
    };
    let hashes = kept.iter().filter_map(hash).collect();
    (hashes, inputs)
}

/// Lets what the lead of this agent has read stand for the files of these names.
pub(crate) fn take(hashes: &BTreeMap<String, String>, inputs: &Inputs) {
    for (path, hash) in hashes {
        if let Some(content) = inputs.get(hash) {
            kept().insert(path.into(), Arc::clone(content));
        }
    }
}

/// All that cannot be read again, for [`provide`] in another process.
pub(crate) fn to_json() -> Value {
    let encode = |octets: &[u8]| data_encoding::BASE64.encode(octets).into();
    let of_one = |(path, octets): (&PathBuf, &Arc<Vec<u8>>)| {
        // One whose name is no text is read by its path.
        Some((path.to_str()?.to_owned(), encode(octets)))
    };
    let kept = kept();
    // The other process reads what is kept only for agents.
    let lasting = kept.iter().filter(|(path, _)| !is_ordinary(path));
    Value::Object(lasting.filter_map(of_one).collect::<Map<_, _>>())
}

/// Lets what another process has read stand for the files of that name.
///
/// # Errors
/// It is not what [`to_json`] makes.
pub(crate) fn provide(inputs: &Value) -> std::result::Result<(), String> {
    for (path, text) in inputs.as_object().into_iter().flatten() {
        let octets = data_encoding::BASE64.decode(text.as_str().unwrap_or_default().as_bytes());
        let octets = octets.map_err(|error| format!("{path}: {error}"))?;
        kept().insert(path.into(), Arc::new(octets));
    }
    Ok(())
}
