//! Files and sockets as an observed process sees them.
//!
//! The process is not trusted: a container can lay a link to a file of this host, a pipe or a
//! device where its configuration is expected. So a path is resolved within the root of the process
//! (`openat2`, Linux 5.6), and what it leads to is looked at before it is opened.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::{Root, Stat};

/// Octets of /proc/PID/stat, at most.
const STAT_OCTETS_MAX: u64 = 4_096;

/// Why something of a process was not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotOpened {
    /// The kernel cannot keep a path within a root.
    OldKernel,
    /// It is there, and is something else than what is wanted.
    Other {
        is: &'static str,
        wanted: &'static str,
    },
    /// There is nothing of that name within the root of the process.
    Missing,
    /// It leads through a link of /proc, or through too many links.
    Links,
    /// The kernel refuses.
    Refused(Errno),
}

impl From<Errno> for NotOpened {
    fn from(error: Errno) -> NotOpened {
        match error {
            Errno::NOSYS => NotOpened::OldKernel,
            Errno::NOENT | Errno::NOTDIR => NotOpened::Missing,
            Errno::LOOP => NotOpened::Links,
            error => NotOpened::Refused(error),
        }
    }
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotOpened::OldKernel => f.write_str(
                "this kernel has no openat2 (Linux 5.6), without which links lead out of the root \
                 of the process",
            ),
            NotOpened::Other { is, wanted } => write!(f, "it is {is} and not {wanted}"),
            NotOpened::Missing => f.write_str("it does not exist within the root of the process"),
            NotOpened::Links => f.write_str("it is behind a link of /proc, or too many links"),
            NotOpened::Refused(error) => write!(f, "{}", std::io::Error::from(*error)),
        }
    }
}

/// A process by its folder in /proc: its number may be given to another process, the descriptor
/// stays with this one.
pub(crate) struct Held {
    folder: OwnedFd,
    started: u64,
}

impl Held {
    /// That process; none if it has ended, also if another one has its number by now.
    pub(crate) fn of(root: &Root, pid: u32, known: &Stat) -> Option<Held> {
        let path = root.path(&format!("proc/{pid}"));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let held = Held {
            folder: rustix::fs::open(path, flags, Mode::empty()).ok()?,
            started: known.started,
        };
        held.is_there().then_some(held)
    }

    /// True while the process is there. Then what was read by its number until now is its own.
    pub(crate) fn is_there(&self) -> bool {
        let read = || {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&self.folder, "stat", flags, Mode::empty()).ok()?;
            let mut octets = Vec::new();
            let mut limited = File::from(file).take(STAT_OCTETS_MAX);
            limited.read_to_end(&mut octets).ok()?;
            Stat::parse(&String::from_utf8_lossy(&octets))
        };
        read().is_some_and(|now| now.started == self.started)
    }

    /// The program that it runs, also if its file was replaced.
    pub(crate) fn program(&self) -> Result<File, NotOpened> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = rustix::fs::openat(&self.folder, "exe", flags, Mode::empty())?;
        regular(&found)
    }

    /// The file system that it sees.
    pub(crate) fn inside(&self) -> Result<Inside, NotOpened> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(&self.folder, "root", flags, Mode::empty())?;
        Ok(Inside(Arc::new(root)))
    }
}

/// The file system that a process sees, from its root.
#[derive(Clone, Debug)]
pub(crate) struct Inside(Arc<OwnedFd>);

impl Inside {
    /// Opens a regular file for reading.
    pub(crate) fn file(&self, path: &Path) -> Result<File, NotOpened> {
        regular(&self.find(path)?)
    }

    /// Finds a Unix socket.
    pub(crate) fn socket(&self, path: &Path) -> Result<FoundSocket, NotOpened> {
        let found = self.find(path)?;
        match kind(&found)? {
            FileType::Socket => Ok(FoundSocket(found)),
            is => Err(NotOpened::Other {
                is: named(is),
                wanted: "a socket",
            }),
        }
    }

    /// What the path leads to, without opening it: links and `..` stay within the root.
    fn find(&self, path: &Path) -> Result<OwnedFd, NotOpened> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let opened = rustix::fs::openat2(&self.0, path, flags, Mode::empty(), within);
        Ok(opened?)
    }
}

/// A Unix socket that was found; its name may lead elsewhere by now.
#[derive(Debug)]
pub(crate) struct FoundSocket(OwnedFd);

impl FoundSocket {
    /// A path to it, for this process and for those that it starts. It ends with this value.
    pub(crate) fn path(&self) -> PathBuf {
        let own = std::process::id();
        PathBuf::from(format!("/proc/{own}/fd/{}", self.0.as_raw_fd()))
    }
}

fn kind(found: impl AsFd) -> Result<FileType, NotOpened> {
    let stat = rustix::fs::fstat(found)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Opens what was found if it is a regular file: to open a pipe can wait, and to open a device can
/// do something.
fn regular(found: &OwnedFd) -> Result<File, NotOpened> {
    match kind(found)? {
        FileType::RegularFile => {}
        is => {
            return Err(NotOpened::Other {
                is: named(is),
                wanted: "a regular file",
            });
        }
    }
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    // It is this file whatever its name leads to by now. A lease on it is not waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

fn named(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a link",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "of an unknown kind",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::time::Duration;

    use testing::folder::Folder;

    use super::*;

    /// A process whose root is a folder.
    struct Container {
        folder: Folder,
    }

    impl Container {
        fn new(label: &str) -> Container {
            let folder = Folder::new(label);
            fs::create_dir_all(folder.path("proc/7/root/etc")).unwrap();
            let container = Container { folder };
            container.start(50);
            container
        }

        /// Its number is that of a process which started then.
        fn start(&self, at: u64) {
            let stat = format!("7 (named) S 1 7 7 0 -1 0 1 2 0 4 100 0 0 0 20 0 1 0 {at} 1 2");
            fs::write(self.folder.path("proc/7/stat"), stat).unwrap();
        }

        fn path(&self, path: &str) -> String {
            self.folder.path(&format!("proc/7/root/{path}"))
        }

        fn held(&self) -> Option<Held> {
            let known = Stat {
                started: 50,
                ..Stat::default()
            };
            Held::of(&Root::at(self.folder.folder()), 7, &known)
        }

        fn inside(&self) -> Inside {
            self.held().unwrap().inside().unwrap()
        }

        fn refusal(&self, path: &str) -> String {
            let file = self.inside().file(Path::new(path));
            file.unwrap_err().to_string()
        }
    }

    fn device(path: &str) -> rustix::io::Result<()> {
        let zero = rustix::fs::makedev(1, 5);
        let kind = FileType::CharacterDevice;
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path,
            kind,
            Mode::from_raw_mode(0o666),
            zero,
        )
    }

    #[test]
    fn links_of_a_container_end_within_its_root() {
        let container = Container::new("observe-inside-links");
        let secret = container.folder.write("secret", "of the host");
        symlink(&secret, container.path("etc/absolute")).unwrap();
        symlink("../../../../secret", container.path("etc/relative")).unwrap();
        symlink(container.folder.folder(), container.path("etc/folder")).unwrap();
        for path in [
            "/etc/absolute",
            "/etc/relative",
            "/etc/folder/secret",
            "/../../../secret",
            "../../secret",
            &secret,
        ] {
            let refusal = container.refusal(path);
            assert!(refusal.contains("within the root"), "{path}: {refusal}");
        }
        // The same links lead to what the process has there.
        fs::write(container.path("secret"), "its own").unwrap();
        symlink("/etc/relative", container.path("etc/again")).unwrap();
        for path in ["/etc/relative", "/etc/again", "../secret"] {
            let file = container.inside().file(Path::new(path)).unwrap();
            assert_eq!(std::io::read_to_string(file).unwrap(), "its own", "{path}");
        }
    }

    #[test]
    fn links_of_proc_are_not_followed() {
        let own = std::process::id();
        let known = super::super::find::stat(&Root::this(), own).unwrap();
        let held = Held::of(&Root::this(), own, &known).unwrap();
        let inside = held.inside().unwrap();
        let refused = inside.file(Path::new("/proc/self/root/etc/passwd"));
        assert_eq!(refused.unwrap_err(), NotOpened::Links);
        assert!(inside.file(Path::new("/etc/passwd")).is_ok());
        assert!(held.program().is_ok());
    }

    /// A pipe without a writer, and one of a device that never ends, would hold who opens them.
    #[test]
    fn pipes_devices_sockets_and_folders_are_refused_unopened() {
        let container = Container::new("observe-inside-kinds");
        let mode = Mode::from_raw_mode(0o666);
        let pipe = container.path("etc/pipe");
        rustix::fs::mknodat(rustix::fs::CWD, pipe, FileType::Fifo, mode, 0).unwrap();
        let _socket = UnixListener::bind(container.path("etc/socket")).unwrap();
        symlink("pipe", container.path("etc/to-pipe")).unwrap();
        symlink("/dev/zero", container.path("etc/to-device")).unwrap();
        for (path, what) in [
            ("/etc/pipe", "a pipe"),
            ("/etc/to-pipe", "a pipe"),
            ("/etc/socket", "a socket"),
            ("/etc", "a folder"),
            ("/etc/to-device", "does not exist within"),
        ] {
            let refusal = container.refusal(path);
            assert!(refusal.contains(what), "{path}: {refusal}");
        }
        // Only root makes devices.
        if device(&container.path("etc/device")).is_ok() {
            let refusal = container.refusal("/etc/device");
            assert_eq!(refusal, "it is a device and not a regular file");
        }
    }

    #[test]
    fn sockets_of_a_container_are_reached_and_none_of_the_host() {
        let container = Container::new("observe-inside-sockets");
        let outside = container.folder.path("host.sock");
        let _host = UnixListener::bind(&outside).unwrap();
        let own = UnixListener::bind(container.path("own.sock")).unwrap();
        symlink(&outside, container.path("link.sock")).unwrap();
        symlink("../../../host.sock", container.path("up.sock")).unwrap();
        fs::write(container.path("file"), "").unwrap();
        let inside = container.inside();
        let refusal = |path: &str| inside.socket(Path::new(path)).unwrap_err().to_string();
        for (path, why) in [
            ("/link.sock", "within the root"),
            ("/up.sock", "within the root"),
            (&outside, "within the root"),
            ("/file", "it is a regular file and not a socket"),
        ] {
            assert!(refusal(path).contains(why), "{path}: {}", refusal(path));
        }
        let found = inside.socket(Path::new("/own.sock")).unwrap();
        // What its name leads to by now does not matter.
        fs::rename(&outside, container.path("own.sock")).unwrap();
        let patience = Duration::from_secs(60);
        crate::stream::connect_unix(&found.path(), patience).unwrap();
        own.accept().unwrap();
    }

    #[test]
    fn number_that_another_process_has_by_now_is_not_the_process() {
        let container = Container::new("observe-inside-number");
        let held = container.held().unwrap();
        assert!(held.is_there());
        container.start(51);
        assert!(!held.is_there() && container.held().is_none());
        fs::rename(
            container.folder.path("proc/7"),
            container.folder.path("proc/8"),
        )
        .unwrap();
        assert!(container.held().is_none());
    }

    #[test]
    fn kernel_without_openat2_is_a_reason_and_no_way_around_it() {
        let why = NotOpened::from(Errno::NOSYS).to_string();
        assert!(why.contains("no openat2 (Linux 5.6)"), "{why}");
    }
}
