//! Whose folders, links and files are written to: those of the caller and of root. In a folder
//! with the sticky bit, such as /tmp, others may have files, which are left alone.

use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

/// Why something is not written, although the system permits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The folder belongs to another user.
    ForeignFolder(PathBuf, u32),
    /// All users may rename and remove what is in the folder.
    OpenFolder(PathBuf),
    /// A symbolic link of another user.
    ForeignLink(PathBuf, u32),
    /// A file or pipe of another user.
    ForeignFile(PathBuf, u32),
    /// A file with further names, in a folder where others may have made them.
    HardLink(PathBuf),
    /// A pipe, or another thing that is no file, where a file has to be.
    NoFile(PathBuf),
    /// A pipe without a reader.
    NoReader(PathBuf),
    /// A program, or a folder above it, that is not the caller's.
    ForeignProgram(PathBuf, u32),
    /// A program, or a folder above it, that other users can write.
    OpenProgram(PathBuf),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::ForeignFolder(path, user) => {
                write!(f, "the folder {} belongs to user {user}", path.display())
            }
            Refused::OpenFolder(path) => write!(
                f,
                "the folder {} can be written by all users and has no sticky bit",
                path.display()
            ),
            Refused::ForeignLink(path, user) => {
                write!(f, "{} is a symbolic link of user {user}", path.display())
            }
            Refused::ForeignFile(path, user) | Refused::ForeignProgram(path, user) => {
                write!(f, "{} belongs to user {user}", path.display())
            }
            Refused::HardLink(path) => {
                write!(f, "{} has several names (hard links)", path.display())
            }
            Refused::NoFile(path) => write!(f, "{} is not a regular file", path.display()),
            Refused::NoReader(path) => {
                write!(f, "{} is a pipe without a reader", path.display())
            }
            Refused::OpenProgram(path) => {
                write!(f, "other users can write {}", path.display())
            }
        }
    }
}

impl std::error::Error for Refused {}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> Self {
        io::Error::new(io::ErrorKind::PermissionDenied, refused)
    }
}

/// What to do about a refusal; none for other errors.
pub fn cure(error: &io::Error) -> Option<&'static str> {
    let refused = error.get_ref()?.downcast_ref::<Refused>()?;
    Some(match refused {
        Refused::ForeignFolder(..) => {
            "name a file in a folder that belongs to you, or change its owner with chown: another \
             user could replace what is written there"
        }
        Refused::OpenFolder(_) => {
            "name a file in another folder, or set the sticky bit with chmod +t: any user could \
             replace the folders below it"
        }
        Refused::ForeignLink(..) | Refused::ForeignFile(..) | Refused::HardLink(_) => {
            "remove it, or name another file: another user may have placed it there"
        }
        Refused::NoFile(_) => "remove it, or name another file",
        Refused::NoReader(_) => "start the pipe's reader first, or name a file",
        Refused::ForeignProgram(..) => {
            "programs are run where root or the caller owns them and all folders above: change the \
             owner with chown"
        }
        Refused::OpenProgram(_) => {
            "take the permission away with chmod go-w: another user could replace what is run"
        }
    })
}

/// The users whose folders and links are accepted.
pub(super) struct Trusted {
    is_root: bool,
    users: Vec<u32>,
}

impl Trusted {
    pub(super) fn now() -> Trusted {
        let mut trusted = Trusted::owners();
        if trusted.is_root {
            // Who may call this program through sudo could do without its files.
            let sudo = std::env::var("SUDO_UID").ok();
            let sudo = sudo.and_then(|it| it.parse::<u32>().ok());
            trusted.users.extend(sudo);
        }
        trusted
    }

    /// Root and the caller.
    fn owners() -> Trusted {
        let own = rustix::process::geteuid().as_raw();
        let mut users = vec![0, own];
        // In a user namespace, root of the host has another number there.
        users.extend(fs::metadata("/").ok().map(|root| root.uid()));
        Trusted {
            is_root: own == 0,
            users,
        }
    }

    fn has(&self, user: u32) -> bool {
        self.users.contains(&user)
    }

    pub(super) fn check_link(&self, path: &Path, link: &Metadata) -> Result<(), Refused> {
        match self.has(link.uid()) {
            true => Ok(()),
            false => Err(Refused::ForeignLink(path.to_owned(), link.uid())),
        }
    }

    pub(super) fn check_file(&self, path: &Path, file: &Metadata) -> Result<(), Refused> {
        match self.has(file.uid()) {
            true => Ok(()),
            false => Err(Refused::ForeignFile(path.to_owned(), file.uid())),
        }
    }
}

/// Refuses a folder of another user, or that another user can replace by a link: all folders above
/// it count, too. Root does not write below a folder that all users may write to; into it root
/// does: volumes of containers are such, and what has a random name there harms no other file.
/// Folders that do not exist yet are passed over.
///
/// # Errors
/// [`Refused`].
pub fn check_folder(folder: &Path) -> io::Result<()> {
    let trusted = Trusted::now();
    let named = std::path::absolute(folder)?;
    let real = fs::canonicalize(folder).ok();
    let is_itself = |each: &Path| each == named || Some(each) == real.as_deref();
    let above = real.iter().flat_map(|it| it.ancestors());
    for each in named.ancestors().chain(above) {
        if let Ok(link) = fs::symlink_metadata(each)
            && link.is_symlink()
        {
            trusted.check_link(each, &link)?;
        }
        let Ok(data) = fs::metadata(each) else {
            continue;
        };
        if !trusted.has(data.uid()) {
            return Err(Refused::ForeignFolder(each.to_owned(), data.uid()).into());
        }
        if trusted.is_root && data.mode() & 0o1002 == 0o002 && !is_itself(each) {
            return Err(Refused::OpenFolder(each.to_owned()).into());
        }
    }
    Ok(())
}

/// Refuses a program that is of another user than root and the caller, or that another user could
/// replace. `path` has no links.
///
/// # Errors
/// [`Refused`], or those of the system.
pub fn check_program(path: &Path) -> io::Result<()> {
    let trusted = Trusted::owners();
    let group = rustix::process::getegid().as_raw();
    for each in path.ancestors() {
        let data = fs::metadata(each)?;
        if !trusted.has(data.uid()) {
            return Err(Refused::ForeignProgram(each.to_owned(), data.uid()).into());
        }
        // Of a user's own group, as some systems have it, no other user is a member.
        let of_group = match [0, group].contains(&data.gid()) {
            true => 0,
            false => 0o020,
        };
        let is_sticky = data.is_dir() && data.mode() & 0o1000 != 0;
        if data.mode() & (0o002 | of_group) != 0 && !is_sticky {
            return Err(Refused::OpenProgram(each.to_owned()).into());
        }
    }
    Ok(())
}

/// True for a folder in which users other than its owner may make files.
pub(super) fn is_shared(folder: &Stat) -> bool {
    folder.st_mode & 0o022 != 0
}

/// Refuses to write to what another user may have made, or given a name in this folder.
pub(super) fn check_existing(path: &Path, file: &Stat, is_shared: bool) -> Result<(), Refused> {
    if FileType::from_raw_mode(file.st_mode) != FileType::RegularFile {
        return Err(Refused::NoFile(path.to_owned()));
    }
    if is_shared && !Trusted::now().has(file.st_uid) {
        return Err(Refused::ForeignFile(path.to_owned(), file.st_uid));
    }
    match is_shared && file.st_nlink > 1 {
        true => Err(Refused::HardLink(path.to_owned())),
        false => Ok(()),
    }
}
