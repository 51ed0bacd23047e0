//! Where a record or another document goes: checked before the run, written whole or not at all.

use std::fs::{self, File};
use std::io::{BufWriter, Error, ErrorKind, Result, Write};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};

use lab::files::{self, Access, Content};
use measure::RunRecord;
use rustix::fs::{Mode, OFlags};

use crate::args::Output;
use crate::failure::Failure;

/// Characters of a file's name that it keeps in the folder for temporary files: at most 200 octets
/// of the 255 that most file systems allow.
const KEPT_NAME_MAX: usize = 50;

/// What to do with a symbolic link in place of a file: where a record goes ought to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// Refuse it, and name `--force`.
    Refused,
    /// Write to what it leads to.
    Followed,
}

impl Links {
    /// As `--force` of the command says.
    pub(crate) fn with_force(force: bool) -> Self {
        match force {
            true => Links::Followed,
            false => Links::Refused,
        }
    }
}

/// A place where a record can be written, checked before the run.
#[derive(Debug)]
pub(crate) struct Destination {
    path: PathBuf,
    /// Held until it is dropped: no other process writes there meanwhile.
    _claim: Option<Claim>,
}

/// A file is this process's own to write to, until this is dropped.
#[derive(Debug)]
struct Claim {
    _name: UnixDatagram,
    /// Open, so that no other folder gets its number, by which the name is made, if it is removed.
    _folder: OwnedFd,
}

impl Destination {
    /// Makes sure that the file that `flag` names can be written, and that no other process is
    /// about to.
    ///
    /// Until the record is written an existing file stays as it is, and no new one is left behind.
    pub(crate) fn check(
        flag: &str,
        path: &Path,
        links: Links,
    ) -> std::result::Result<Self, Failure> {
        let what = |reason: &str| format!("cannot write to {}: {reason}", path.display());
        let hint = format!("give {flag} a file in a folder that exists and may be written");
        let refused = |error: Error| Failure::unwritable(what(&error.to_string()), &error, &hint);
        if let (Some(target), Links::Refused) = (link_to_file(path), links) {
            let target = target.display();
            return Err(Failure::usage(
                format!("cannot write to {}: it is a symbolic link", path.display()),
                format!("give {flag} the file that it leads to, {target}, or add --force"),
            ));
        }
        let is_pipe = |it: fs::Metadata| it.file_type().is_fifo();
        if path.metadata().is_ok_and(is_pipe) {
            let what = what("it is a named pipe, which may have no reader");
            return Err(Failure::usage(what, hint));
        }
        // What a link leads to is replaced, not the link.
        let path = files::resolve(path).map_err(refused)?;
        files::check(&path).map_err(refused)?;
        match claim(&path) {
            Ok(claim) => Ok(Destination {
                path,
                _claim: claim,
            }),
            Err(()) => Err(Failure::usage(
                format!("{}: another run is about to write to it", path.display()),
                format!("give {flag} another file, or wait for the end of that run"),
            )),
        }
    }

    /// As [`Destination::check`] for `--record`, if it is given.
    pub(crate) fn of_record(output: &Output) -> std::result::Result<Option<Self>, Failure> {
        let path = output.record.as_deref();
        let links = Links::with_force(output.force);
        path.map(|path| Destination::check("--record", path, links))
            .transpose()
    }

    /// The file's name as text.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Where checkpoints of the run are meanwhile; none beside what is no file, such as a pipe.
    pub(super) fn checkpoint(&self) -> Option<PathBuf> {
        let is_file = self.path.metadata().map_or(true, |it| it.is_file());
        let mut path = self.path.clone().into_os_string();
        path.push(".checkpoint");
        is_file.then(|| path.into())
    }

    /// Writes the record: all of it or, if the process dies meanwhile, none.
    pub(crate) fn write(&self, record: &RunRecord) -> std::result::Result<(), Failure> {
        self.write_content(&|file| put(record, file))
    }

    /// Writes a text, as [`Destination::write`] does. Where that has become impossible, it is
    /// written to the folder for temporary files.
    pub(crate) fn write_text(&self, text: &str) -> std::result::Result<(), Failure> {
        self.write_content(&|file| file.write_all(text.as_bytes()))
    }

    fn write_content(&self, content: Content<'_>) -> std::result::Result<(), Failure> {
        let Err(error) = files::replace(&self.path, Access::Umask, content) else {
            return Ok(());
        };
        let path = self.path.display();
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        // With what comes before it, a name as long as can be would be too long.
        let name: String = name.chars().take(KEPT_NAME_MAX).collect();
        let failed = Failure::in_operation(format!("cannot write to {path}: {error}"));
        Err(match files::keep_in_temporary(&name, content) {
            Ok(kept) => failed.or_hint(&format!("it is in {} instead", kept.display())),
            Err((kept, error)) => {
                let kept = kept.display();
                failed.or_hint(&format!("writing it to {kept} instead failed too: {error}"))
            }
        })
    }
}

/// What a path leads to that is a link to a file or to nothing. Links such as /dev/stdout are names
/// of what is open already.
fn link_to_file(path: &Path) -> Option<PathBuf> {
    let target = fs::read_link(path).ok()?;
    let leads_to_file = path.metadata().map_or(true, |it| it.is_file());
    (leads_to_file && !path.starts_with("/dev")).then_some(target)
}

/// Claims a file for this process until it ends, however it does; none where the kernel has no such
/// means.
///
/// A file beside it would be left behind by a process that is killed. A name among the abstract
/// sockets is not, but processes in other network namespaces do not see it.
fn claim(path: &Path) -> std::result::Result<Option<Claim>, ()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(folder, flags, Mode::empty());
    let opened = opened.and_then(|opened| Ok((rustix::fs::fstat(&opened)?, opened)));
    let Ok((folder, opened)) = opened else {
        return Ok(None);
    };
    let is_file = path.metadata().map_or(true, |it| it.is_file());
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let text = format!("throng-writes-{:x}-{:x}-", folder.st_dev, folder.st_ino);
    let mut whole = text.into_bytes();
    whole.extend_from_slice(name);
    match SocketAddr::from_abstract_name(whole).and_then(|name| UnixDatagram::bind_addr(&name)) {
        // Any number of processes may write to /dev/null and the like.
        Ok(socket) => Ok(is_file.then_some(Claim {
            _name: socket,
            _folder: opened,
        })),
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_file => Err(()),
        Err(_) => Ok(None),
    }
}

/// Writes a record to a file.
pub(super) fn put(record: &RunRecord, file: &mut File) -> Result<()> {
    let mut buffered = BufWriter::new(file);
    report::json::write(record, &mut buffered)?;
    buffered.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_on_a_folder_that_was_removed_is_on_no_other() {
        let all = std::env::temp_dir().join(format!("throng-claims-{}", std::process::id()));
        let made = |number: u32| {
            let folder = all.join(number.to_string());
            fs::create_dir_all(&folder).unwrap();
            folder
        };
        // File systems give the number of a removed folder to one of the next.
        let mut claims = Vec::new();
        for number in 0..64 {
            let folder = made(number);
            claims.push(claim(&folder.join("record.json")).unwrap().unwrap());
            assert!(claim(&folder.join("record.json")).is_err());
            fs::remove_dir(folder).unwrap();
        }
        fs::remove_dir(all).unwrap();
    }
}
