//! One server as a child process with its own folder and log.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::Context;
use rustix::process::Signal;

use super::folder::TempFolder;
use super::prepared;
use super::process_id::{self, ProcessId};
use super::resources::{ControlGroup, GroupMemory, Resources};
use super::threads;
use super::version::version_in;
use crate::files::{self, Access, Opening};

/// Name of the log in a server's folder.
pub(super) const LOG: &str = "server.log";

/// Lines of the server's log that an error message shows.
const TAIL_LINES: usize = 20;

/// Where servers are installed that are not on an ordinary user's PATH.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"];

/// With it programs of [`Program::Debian13`] print their version.
const VERSION_FLAG: &str = "--version";

/// Variables of the caller that every server gets; those of its language and of its region begin
/// with [`OF_LOCALE`]. Any other may hold a secret, or change the server's behaviour.
const PASSED_ON: [&str; 4] = ["PATH", "LANG", "TZ", "TMPDIR"];
const OF_LOCALE: &str = "LC_";

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
    /// A release that Debian 12 does not have: installed, or unpacked from Debian 13.
    Debian13 {
        /// The program's name.
        name: &'static str,
        /// Where it is below the root.
        path: &'static str,
        /// The release to have at least, major and minor number.
        since: (u32, u32),
        /// Features missing in earlier releases, and alternatives.
        without: Without,
    },
    /// On the PATH, or built from its Go module.
    CoreDns,
    /// A shell, for a command line in its configuration.
    Shell,
    /// This program.
    Own,
}

/// Missing features if only an earlier release of a program is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Without {
    /// `DoT and DoQ`.
    pub(crate) features: &'static str,
    /// What to do instead of installing a later release.
    pub(crate) instead: &'static str,
}

impl Program {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Program::Debian { name, .. } | Program::Debian13 { name, .. } => name,
            Program::CoreDns => "coredns",
            Program::Shell => "sh",
            Program::Own => "throng",
        }
    }

    /// The first arguments of its command line.
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
            // The folder that the caller names comes first; the cache is the last to be tried.
            Program::Debian13 { path, without, .. } if prepared::is_named() => {
                prepared::debian13_words(path, without.instead)
            }
            Program::Debian13 { name, .. } => {
                let installed = find_program(name).map(Installed::read);
                self.words_of_newer(installed)
            }
            Program::CoreDns => match find_program("coredns") {
                Some(path) => Ok(vec![path.into()]),
                None => Ok(vec![prepared::coredns()?.into()]),
            },
            Program::Shell => Ok(vec!["sh".into()]),
            Program::Own => {
                let own = std::env::current_exe().context("this program is not found")?;
                Ok(vec![own.into()])
            }
        }
    }

    /// The command line of a [`Program::Debian13`]: the installed program if its release is new
    /// enough, else the prepared one in the cache.
    fn words_of_newer(self, installed: Option<Installed>) -> anyhow::Result<Vec<OsString>> {
        let Program::Debian13 {
            name,
            path,
            since,
            without: Without { features, instead },
        } = self
        else {
            return self.words();
        };
        let reason = match installed {
            None => format!("`{name}` is not installed"),
            Some(it) if release_of(&it.version).is_some_and(|release| release >= since) => {
                return Ok(vec![it.path.into()]);
            }
            Some(it) => format!("`{name}` {} of this system has no {features}", it.version),
        };
        prepared::debian13_words(path, instead).context(reason)
    }
}

/// A program of this system.
struct Installed {
    path: PathBuf,
    version: String,
}

impl Installed {
    /// Runs the program to read its version.
    fn read(path: PathBuf) -> Installed {
        let mut command = Command::new(&path);
        let output = command.arg(VERSION_FLAG).stdin(Stdio::null()).output();
        let printed = output.map_or_else(|_| Vec::new(), |output| output.stdout);
        let version = version_in(&String::from_utf8_lossy(&printed)).map(str::to_owned);
        Installed {
            path,
            version: version.unwrap_or_else(|| "(unknown version)".to_owned()),
        }
    }
}

/// The first two numbers of a version.
fn release_of(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

/// The variables that a process sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Environment {
    /// A server's: what [`PASSED_ON`] names, and its folder as HOME.
    Clean,
    /// The caller's: the process acts for the caller.
    OfCaller,
}

/// How to start one server.
pub(crate) struct Launch<'a> {
    /// The program.
    pub(crate) program: Program,
    /// Where it is, if not where it is installed.
    pub(crate) path: Option<&'a Path>,
    /// Its arguments; it must stay in the foreground and log to stdout or stderr.
    pub(crate) arguments: Vec<OsString>,
    /// Its limits.
    pub(crate) resources: &'a Resources,
    /// The control group with those limits, if they need one.
    pub(crate) group: Option<ControlGroup>,
    /// Command-line prefix that runs it in a network namespace.
    pub(crate) within: Option<[String; 2]>,
    /// It keeps running after the thread that started it.
    pub(crate) lasts: bool,
    /// One of its ports is below 1024.
    pub(crate) has_low_port: bool,
    /// The variables that it sees.
    pub(crate) environment: Environment,
}

/// A running server. Dropping it kills and reaps the process and those that it started, then
/// removes the folder.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    program: &'static str,
    child: Child,
    log: PathBuf,
    /// Offset in the log at which this process begins, after earlier ones.
    log_from: usize,
    /// Its command line.
    words: Vec<OsString>,
    environment: Environment,
    /// The kernel's memory counters of its group at its start.
    memory_at_start: GroupMemory,
    // Fields are dropped in this order.
    group: Option<ControlGroup>,
    folder: TempFolder,
    is_kept: bool,
}

impl ServerProcess {
    /// Starts the server in `folder`, which it then owns.
    ///
    /// Unless it is to last, `setpriv` has the kernel kill the server when the thread that called
    /// this ends, however it ends. Start targets on a thread that outlives their use. Servers that
    /// survive even that are in the list of running servers.
    pub(crate) fn spawn(launch: Launch<'_>, folder: TempFolder) -> anyhow::Result<ServerProcess> {
        let Launch {
            program,
            path,
            arguments,
            resources,
            group,
            within,
            lasts,
            has_low_port,
            environment,
        } = launch;
        let words = match path {
            Some(path) => {
                // A missing program would only be reported, less clearly, in the log of its
                // wrapper.
                let is_missing = path.is_absolute() && !path.exists();
                anyhow::ensure!(
                    !is_missing,
                    "cannot start `{}`: there is no such file\nhint: name the file of a program",
                    path.display()
                );
                vec![path.as_os_str().to_owned()]
            }
            None => program.words()?,
        };
        let log = folder.path().join(LOG);
        let mut all: Vec<OsString> = Vec::new();
        if !lasts {
            all.extend(["setpriv", "--pdeathsig", "KILL", "--"].map(OsString::from));
        }
        let limited = resources.words(group.as_ref());
        all.extend(within.into_iter().flatten().map(OsString::from));
        all.extend(limited.into_iter().map(OsString::from));
        // Last, because entering networks and groups needs root.
        let user = folder.user().map(|it| it.words(lasts, has_low_port));
        all.extend(user.into_iter().flatten().map(OsString::from));
        all.extend(words.into_iter().chain(arguments));

        Ok(ServerProcess {
            memory_at_start: memory_of(group.as_ref()),
            program: program.name(),
            child: spawned(&all, environment, &folder, &log)?,
            log,
            log_from: 0,
            words: all,
            environment,
            group,
            folder,
            is_kept: false,
        })
    }

    /// Stops it with SIGTERM first; its folder and limits stay for another start.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        process_id::end_politely(self.child.id());
        let waited = self.child.wait();
        waited.with_context(|| format!("cannot wait for `{}`", self.program))?;
        Ok(())
    }

    /// Starts it again as it was started, after its end.
    pub(crate) fn start_again(&mut self) -> anyhow::Result<()> {
        self.log_from = self.log().len();
        self.memory_at_start = memory_of(self.group.as_ref());
        self.child = spawned(&self.words, self.environment, &self.folder, &self.log)?;
        Ok(())
    }

    /// Moves all its threads to the CPUs that it may use, if some are elsewhere: some servers bind
    /// them by themselves.
    pub(crate) fn keep_on_cpus(&self, resources: &Resources) -> anyhow::Result<()> {
        let Some(cpus) = &resources.cpus else {
            return Ok(());
        };
        let (id, program) = (self.id(), self.program);
        threads::keep_on_cpus(id, cpus)
            .with_context(|| format!("cannot keep `{program}` on CPUs {cpus}"))
    }

    /// Keeps it running, with its folder and group.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
        self.folder.keep();
        if let Some(group) = self.group.take() {
            group.keep();
        }
    }

    /// The process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The process, distinguishable from later ones of the same number.
    pub(crate) fn identity(&self) -> Option<ProcessId> {
        ProcessId::of(self.id())
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

    /// What it has logged since it was last started.
    pub(crate) fn log_of_start(&self) -> String {
        self.log()
            .get(self.log_from..)
            .unwrap_or_default()
            .to_owned()
    }

    /// How the process ended, if it has.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .with_context(|| format!("cannot wait for `{}`", self.program))
    }

    /// Describes how it ended: its status, and lack of memory if the kernel killed it for that.
    pub(crate) fn describe_end(&self, status: ExitStatus) -> String {
        let is_killed = status.signal() == Some(Signal::KILL.as_raw());
        let memory = memory_of(self.group.as_ref());
        let cause = memory.kill_cause(self.memory_at_start);
        match cause.filter(|_| is_killed) {
            Some(cause) => format!("{status}, {cause}"),
            None => status.to_string(),
        }
    }

    /// An error that says what happened, followed by the end of the server's log.
    pub(crate) fn error(&self, what: &str) -> anyhow::Error {
        let log = self.log();
        let user = self.folder.user();
        let cure = user.and_then(|it| it.cure(&log));
        let cure = cure.map_or_else(String::new, |cure| format!("\nhint: {cure}"));
        anyhow::anyhow!(
            "`{}` {what}; it logged:\n{}{cure}",
            self.program,
            tail(&log, TAIL_LINES)
        )
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        process_id::kill_group(self.child.id());
        // It fails only if the process was reaped already.
        let _ = self.child.wait();
        process_id::wait_for_group(self.child.id());
    }
}

/// The kernel's memory counters of a group; zero without a limit.
fn memory_of(group: Option<&ControlGroup>) -> GroupMemory {
    group.and_then(ControlGroup::memory).unwrap_or_default()
}

/// Starts a command line whose output goes to the end of the log.
fn spawned(
    words: &[OsString],
    environment: Environment,
    folder: &TempFolder,
    log: &Path,
) -> anyhow::Result<Child> {
    let stdout = files::open(log, Opening::Append, Access::Umask);
    let stdout = stdout.and_then(|it| folder.let_server_write(log).map(|()| it));
    let stdout = stdout.with_context(|| format!("cannot create the log `{}`", log.display()))?;
    let stderr = stdout
        .try_clone()
        .context("cannot duplicate the log's descriptor")?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(folder.path());
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    if environment == Environment::Clean {
        command.env_clear().envs(passed_on(std::env::vars_os()));
        command.env("HOME", folder.path());
    }
    // A separate process group: some servers answer from child processes.
    command.process_group(0).spawn().with_context(|| {
        format!(
            "cannot start `{}`\nhint: is it a program? setpriv and taskset are in the Debian \
             package util-linux",
            words[0].display()
        )
    })
}

/// Those of the caller's variables that every server gets.
fn passed_on(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.filter(|(name, _)| {
        let is_named = PASSED_ON.iter().any(|it| name == it);
        is_named || name.as_encoded_bytes().starts_with(OF_LOCALE.as_bytes())
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
            path: None,
            arguments: Vec::new(),
            resources: &Resources::default(),
            group: None,
            within: None,
            lasts: false,
            has_low_port: false,
            environment: Environment::Clean,
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
    fn installed_program_is_run_if_its_release_is_late_enough() {
        let program = Program::Debian13 {
            name: "knotd",
            path: "usr/sbin/no-such-program",
            since: (3, 4),
            without: Without {
                features: "DoQ",
                instead: "leave out DoQ",
            },
        };
        for (version, is_late_enough) in [
            ("3.2.6", false),
            ("3.4.0", true),
            ("3.10.1", true),
            ("4.0.0", true),
            ("(unknown version)", false),
        ] {
            let path = PathBuf::from("/system/knotd");
            let installed = Installed {
                path: path.clone(),
                version: version.to_owned(),
            };
            match program.words_of_newer(Some(installed)) {
                Ok(words) => {
                    assert!(is_late_enough, "{version}");
                    assert_eq!(words, [path]);
                }
                Err(error) => {
                    assert!(!is_late_enough, "{version}");
                    let error = format!("{error:#}");
                    for part in [
                        version,
                        "has no DoQ",
                        "hint: leave out DoQ",
                        "servers/prepare",
                    ] {
                        assert!(error.contains(part), "{error}");
                    }
                }
            }
        }
        let error = format!("{:#}", program.words_of_newer(None).unwrap_err());
        assert!(error.starts_with("`knotd` is not installed: "), "{error}");
    }

    /// Needs the right to create control groups.
    #[test]
    fn server_above_its_memory_limit_is_reported_as_killed_once() {
        let resources = Resources {
            memory_bytes: Some(16 << 20),
            ..Resources::default()
        };
        let folder = TempFolder::new("process-test").unwrap();
        let group = match ControlGroup::new(&folder.name(), &resources) {
            Ok(group) => group,
            Err(error) => {
                assert!(!rustix::process::geteuid().is_root(), "{error:#}");
                eprintln!("left out: {error:#}");
                return;
            }
        };
        // The first shell keeps a line of 64 MiB in its memory, the second kills itself.
        let script = "test -e again && kill -KILL $$; echo > again; \
                      x=$(head -c 67108864 /dev/zero | tr '\\0' x); echo ${#x}";
        let launch = Launch {
            program: Program::Shell,
            path: None,
            arguments: ["-c", script].map(OsString::from).to_vec(),
            resources: &resources,
            group,
            within: None,
            lasts: false,
            has_low_port: false,
            environment: Environment::Clean,
        };
        let mut process = ServerProcess::spawn(launch, folder).unwrap();
        let status = process.child.wait().unwrap();
        let ended = process.describe_end(status);
        let cause = "killed by the kernel: out of memory (limit 16 MiB)";
        assert!(ended.contains(cause), "{ended}: {}", process.log());
        process.start_again().unwrap();
        let status = process.child.wait().unwrap();
        assert_eq!(process.describe_end(status), "signal: 9 (SIGKILL)");
    }

    #[test]
    fn path_and_locale_are_all_that_a_server_has_of_the_caller() {
        let names = ["PATH", "LANG", "LC_ALL", "TZ", "TMPDIR"];
        let others = ["HOME", "PATHS", "LD_PRELOAD", "SECRET", "XLC_ALL", ""];
        let all = names.into_iter().chain(others);
        let passed: Vec<OsString> = passed_on(all.map(|it| (it.into(), "value".into())))
            .map(|(name, _)| name)
            .collect();
        assert_eq!(passed, names);
    }

    #[test]
    fn tail_keeps_the_last_lines_and_short_text_whole() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
    }
}
