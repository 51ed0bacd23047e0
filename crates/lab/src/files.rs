//! The one way in which this project writes files: another user of the host who can write to the
//! same folder can neither redirect a write nor make it wait.
//!
//! A whole file gets a random name, is synced, and is renamed ([`replace`]); a file that grows is
//! opened without following a link ([`open`]). `files::trust` says which folders, links and
//! existing files are accepted.

mod trust;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

pub use trust::{Refused, check_folder, check_program, cure};
use trust::{Trusted, check_existing, is_shared};

/// Symbolic links that are followed from one name, as the kernel does (path_resolution(7)).
const LINKS_MAX: u32 = 40;

/// Names of descriptors that this process has open, inherited ones included.
const OPEN_ALREADY: [&str; 4] = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc/self/fd"];

/// Who may read a file that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// As the umask says.
    Umask,
    /// Its owner: it may hold a secret.
    Owner,
}

impl Access {
    fn mode(self) -> Mode {
        Mode::from_raw_mode(match self {
            Access::Umask => 0o666,
            Access::Owner => 0o600,
        })
    }
}

/// How an existing file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// At its end, to append.
    Append,
    /// Emptied.
    Emptied,
    /// To read and write, as it is: it is there to be locked.
    Lock,
}

/// Writes the content of a file.
pub type Content<'a> = &'a dyn Fn(&mut File) -> io::Result<()>;

/// Gives the file `path` this content: all of it or, if process or machine die meanwhile, none. A
/// symbolic link is replaced, not what it leads to; a pipe or a device is written to.
///
/// # Errors
/// [`Refused`], or the system's.
pub fn replace(path: &Path, access: Access, content: Content<'_>) -> io::Result<()> {
    if is_special(path) {
        return content(&mut open_special(&resolve(path)?)?);
    }
    let place = Place::of(path)?;
    let partial = format!(".throng-{}.partial", random_name()?);
    let written = place
        .create_new(&partial, access)
        .and_then(|mut file| {
            content(&mut file)?;
            file.sync_all()
        })
        .and_then(|()| {
            Ok(rustix::fs::renameat(
                &place.folder,
                &partial,
                &place.folder,
                &place.name,
            )?)
        });
    match written {
        Ok(()) => place.sync(),
        Err(_) => drop(rustix::fs::unlinkat(
            &place.folder,
            &partial,
            AtFlags::empty(),
        )),
    }
    written
}

/// As [`replace`], for a text and a name that a user gave: links are followed as [`resolve`] does.
///
/// # Errors
/// [`Refused`], or the system's.
pub fn write(path: &Path, access: Access, text: impl AsRef<[u8]>) -> io::Result<()> {
    replace(&resolve(path)?, access, &|file| {
        file.write_all(text.as_ref())
    })
}

/// Writes a file into a folder of this process alone, where an existing one keeps its inode: a
/// server or a container may have it open. It is not synced.
///
/// # Errors
/// [`Refused`], or the system's.
pub fn write_in_place(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    open(path, Opening::Emptied, Access::Umask)?.write_all(text.as_ref())
}

/// Writes a file that does not exist yet, synced.
///
/// # Errors
/// There is one, or a link of that name; [`Refused`]; or the system's.
pub fn write_new(path: &Path, access: Access, text: &str) -> io::Result<()> {
    let place = Place::of(path)?;
    let mut file = place.create_new(&place.name, access)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    place.sync();
    Ok(())
}

/// Opens a file in its place, or makes it, for what grows: a log. Links are followed as
/// [`resolve`] does; a pipe or a device is opened as it is.
///
/// # Errors
/// [`Refused`], or the system's.
pub fn open(path: &Path, opening: Opening, access: Access) -> io::Result<File> {
    let path = resolve(path)?;
    match is_special(&path) {
        true => open_special(&path),
        false => Place::of(&path)?.open(opening, OFlags::CREATE, access),
    }
}

/// Writes a setting of the kernel, such as that of a control group: its files cannot be renamed.
///
/// # Errors
/// The system's.
pub fn write_setting(path: &Path, value: &str) -> io::Result<()> {
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Access::Umask.mode())?;
    File::from(opened).write_all(value.as_bytes())
}

/// Keeps, in the system's folder for temporary files, what could not be written elsewhere; returns
/// its path, which ends with `label`. Its owner alone can read it.
///
/// # Errors
/// The path that was tried, and why it failed.
pub fn keep_in_temporary(
    label: &str,
    content: Content<'_>,
) -> Result<PathBuf, (PathBuf, io::Error)> {
    let parent = std::env::temp_dir();
    let random = random_name().map_err(|error| (parent.clone(), error))?;
    let path = parent.join(format!("throng-{random}-{label}"));
    match replace(&path, Access::Owner, content) {
        Ok(()) => Ok(path),
        Err(error) => Err((path, error)),
    }
}

/// True for a path that leads to a place below the folder from which it is taken.
pub fn is_below(path: &Path) -> bool {
    path.components()
        .all(|it| matches!(it, Component::Normal(_)))
}

/// Makes a folder and those above it, unless they are there.
///
/// # Errors
/// [`Refused`], or the system's.
pub fn make_folders(path: &Path) -> io::Result<()> {
    // Before, because what is made in a folder of another user is theirs to lead elsewhere.
    check_folder(path)?;
    fs::create_dir_all(path)?;
    check_folder(path)
}

/// Makes a folder for its owner alone.
///
/// # Errors
/// There is something of that name; [`Refused`]; or the system's.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    check_folder(parent(path))?;
    fs::DirBuilder::new().mode(0o700).create(path)
}

/// Makes sure that `path` can be replaced; a new file is not left behind.
///
/// # Errors
/// [`Refused`], or the system's.
pub fn check(path: &Path) -> io::Result<()> {
    let path = resolve(path)?;
    if is_special(&path) {
        return open_special(&path).map(drop);
    }
    let place = Place::of(&path)?;
    match place.open(Opening::Append, OFlags::empty(), Access::Umask) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            drop(place.create_new(&place.name, Access::Umask)?);
            // A folder that changes meanwhile can keep the empty file.
            let _ = rustix::fs::unlinkat(&place.folder, &place.name, AtFlags::empty());
            Ok(())
        }
        opened => opened.map(drop),
    }
}

/// The file that a name leads to: itself, unless it is a symbolic link of the caller's or root's.
/// A link to what is no file, such as /dev/stdout, stays.
///
/// # Errors
/// A link of another user, or too many links.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(link) = fs::symlink_metadata(&path) else {
            return Ok(path);
        };
        if !link.is_symlink() {
            return Ok(path);
        }
        Trusted::now().check_link(&path, &link)?;
        let target = fs::read_link(&path)?;
        // The text of a link to an open pipe, `pipe:[7]`, is no path.
        if is_special(&path) && fs::symlink_metadata(parent(&path).join(&target)).is_err() {
            return Ok(path);
        }
        path = parent(&path).join(target);
    }
    Err(Errno::LOOP.into())
}

/// True for a pipe, a device or a socket, also at the end of a link.
fn is_special(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|it| !it.is_file() && !it.is_dir())
}

/// Opens what is no file. It does not wait for the reader of a pipe.
fn open_special(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(opened) => File::from(opened),
        Err(Errno::NXIO) => return Err(Refused::NoReader(path.to_owned()).into()),
        Err(error) => return Err(error.into()),
    };
    let kind = file.metadata()?.file_type();
    let is_device = kind.is_char_device() || kind.is_block_device();
    // Only root makes devices; a pipe can be laid by anyone.
    if !is_device && !OPEN_ALREADY.iter().any(|name| path.starts_with(name)) {
        Trusted::now().check_file(path, &file.metadata()?)?;
    }
    set_blocking(&file)?;
    Ok(file)
}

fn set_blocking(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags - OFlags::NONBLOCK)?)
}

/// A name in a folder that was checked and is open.
struct Place {
    folder: OwnedFd,
    path: PathBuf,
    name: PathBuf,
    /// Others may put files there: a folder such as /tmp.
    is_shared: bool,
}

impl Place {
    fn of(path: &Path) -> io::Result<Place> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(parent(path), flags, Mode::empty())?;
        check_folder(parent(path))?;
        // `..`, `.` and `/` are folders, and so is what ends with a slash.
        let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let name = path
            .file_name()
            .filter(|_| !is_folder)
            .ok_or(Errno::ISDIR)?;
        Ok(Place {
            is_shared: is_shared(&rustix::fs::fstat(&folder)?),
            folder,
            path: path.to_owned(),
            name: name.into(),
        })
    }

    fn create_new(&self, name: impl AsRef<Path>, access: Access) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.folder, name.as_ref(), flags, access.mode())?;
        Ok(opened.into())
    }

    fn open(&self, opening: Opening, create: OFlags, access: Access) -> io::Result<File> {
        let how = match opening {
            Opening::Append => OFlags::WRONLY | OFlags::APPEND,
            Opening::Emptied => OFlags::WRONLY,
            Opening::Lock => OFlags::RDWR,
        };
        let flags = how | create | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.folder, &self.name, flags, access.mode())?;
        check_existing(&self.path, &rustix::fs::fstat(&opened)?, self.is_shared)?;
        let file = File::from(opened);
        set_blocking(&file)?;
        if opening == Opening::Emptied {
            // Not while it is opened: it is known only now what it is.
            file.set_len(0)?;
        }
        Ok(file)
    }

    /// Has the folder's new entry on the disk. Some file systems cannot, and some folders may be
    /// written and not read; the file itself is synced.
    fn sync(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(readable) = rustix::fs::openat(&self.folder, ".", flags, Mode::empty()) {
            let _ = rustix::fs::fsync(readable);
        }
    }
}

/// The folder that a file is in.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// 16 digits that no other user can foretell.
pub fn random_name() -> io::Result<String> {
    let mut octets = [0; 8];
    getrandom::fill(&mut octets).map_err(io::Error::other)?;
    Ok(format!("{:016x}", u64::from_ne_bytes(octets)))
}

#[cfg(test)]
mod tests;
