//! One server as a child process with a folder and a log of its own.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::folder::TempFolder;
use super::prepared;

/// Lines of the server's log that an error message shows.
const TAIL_LINES: usize = 20;

/// How long a server's processes may take to end once they are killed, and how often they are
/// looked at.
const END_MAX: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Where servers are installed that are not on an ordinary user's PATH.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"];

/// A server program and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Installed, from a package of the host's Debian.
    Debian {
        /// The program's name, `named`.
        name: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// Unpacked from Debian 13.
    Debian13 {
        /// The program's name.
        name: &'static str,
        /// Where it is below the root.
        path: &'static str,
    },
    /// Built from its Go module.
    CoreDns,
}

impl Program {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Program::Debian { name, .. } | Program::Debian13 { name, .. } => name,
            Program::CoreDns => "coredns",
        }
    }

    /// The words with which its command line begins.
    pub(crate) fn words(self) -> anyhow::Result<Vec<OsString>> {
        match self {
            Program::Debian { name, package } => {
                let path = find_program(name).with_context(|| {
                    format!(
                        "`{name}` is not installed\nhint: install the Debian package `{package}`"
                    )
                })?;
                Ok(vec![path.into()])
            }
            Program::Debian13 { path, .. } => prepared::debian13_words(path),
            Program::CoreDns => Ok(vec![prepared::coredns()?.into()]),
        }
    }
}

/// How to start one server.
pub(crate) struct Launch {
    /// The program.
    pub(crate) program: Program,
    /// Its arguments; it must stay in the foreground and log to stdout or stderr.
    pub(crate) arguments: Vec<OsString>,
    /// The one core to run on.
    pub(crate) cpu: Option<usize>,
}

/// A running server. Dropping it kills and reaps the process and those that it started, then
/// removes the folder.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    program: &'static str,
    child: Child,
    log: PathBuf,
    folder: TempFolder,
}

impl ServerProcess {
    /// Starts the server in `folder`, which it then owns.
    ///
    /// `setpriv` has the kernel kill the server when the thread that called this ends, however
    /// it ends, so a crashed run leaves nothing behind. Start targets on a thread that outlives
    /// their use.
    pub(crate) fn spawn(launch: Launch, folder: TempFolder) -> anyhow::Result<ServerProcess> {
        let Launch {
            program,
            arguments,
            cpu,
        } = launch;
        let words = program.words()?;
        let log = folder.path().join("server.log");
        let stdout = File::create(&log)
            .with_context(|| format!("cannot create the log `{}`", log.display()))?;
        let stderr = stdout
            .try_clone()
            .context("cannot duplicate the log's descriptor")?;

        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]);
        if let Some(cpu) = cpu {
            command.args(["taskset", "--cpu-list", &cpu.to_string()]);
        }
        command
            .args(words)
            .args(arguments)
            .current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        // A group of its own: some servers answer from processes that they start.
        let child = command
            .process_group(0)
            .spawn()
            .context("cannot start `setpriv`\nhint: install the Debian package `util-linux`")?;
        Ok(ServerProcess {
            program: program.name(),
            child,
            log,
            folder,
        })
    }

    /// The process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The folder with its configuration, zone, keys and log.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Everything it has logged so far.
    pub(crate) fn log(&self) -> String {
        fs::read(&self.log).map_or_else(
            |error| format!("(its log cannot be read: {error})"),
            |octets| String::from_utf8_lossy(&octets).into_owned(),
        )
    }

    /// How the process ended, if it has.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .with_context(|| format!("cannot wait for `{}`", self.program))
    }

    /// An error that says what happened, followed by the end of the server's log.
    pub(crate) fn error(&self, what: &str) -> anyhow::Error {
        let log = self.log();
        anyhow::anyhow!(
            "`{}` {what}; it logged:\n{}",
            self.program,
            tail(&log, TAIL_LINES)
        )
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.child);
        // Both fail only if the process was reaped already, which is what they are for.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
        let until = Instant::now() + END_MAX;
        while is_alive(group) && Instant::now() < until {
            thread::park_timeout(LOOK_EVERY);
        }
    }
}

/// True if a process of the group has not ended; those that nobody has reaped yet have.
fn is_alive(group: Pid) -> bool {
    if test_kill_process_group(group).is_err() {
        return false;
    }
    let Ok(processes) = fs::read_dir("/proc") else {
        return false;
    };
    let mut stats =
        processes.filter_map(|it| fs::read_to_string(it.ok()?.path().join("stat")).ok());
    stats.any(|stat| {
        // After the name, which may have any characters: state, parent, group.
        let mut words = stat
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split_ascii_whitespace();
        let is_ended = matches!(words.next(), None | Some("Z" | "X"));
        let id = words.nth(1).and_then(|word| word.parse().ok());
        !is_ended && id == Some(group.as_raw_pid())
    })
}

/// The last `lines` lines of `text`.
fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

fn find_program(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).map(PathBuf::into_os_string);
    let system = SYSTEM_FOLDERS.iter().map(OsString::from);
    let candidates = folders
        .chain(system)
        .map(|folder| Path::new(&folder).join(program));
    candidates.into_iter().find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_program_names_the_package_to_install() {
        let launch = Launch {
            program: Program::Debian {
                name: "no-such-server",
                package: "no-such-package",
            },
            arguments: Vec::new(),
            cpu: None,
        };
        let folder = TempFolder::new("process-test").unwrap();
        let error = format!("{:#}", ServerProcess::spawn(launch, folder).unwrap_err());
        assert!(
            error.contains("`no-such-server` is not installed"),
            "{error}"
        );
        assert!(error.contains("`no-such-package`"), "{error}");
    }

    #[test]
    fn tail_keeps_the_last_lines_and_short_text_whole() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
    }
}
