//! One end of a line: a network namespace with a TUN device in it, or with another one.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::net::IpAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use driver::namespace;
use driver::tun::{self, Tun};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::run::RunError;

/// Where `ip netns` has the names of network namespaces.
const NAMES: &str = "/run/netns";
/// The calling thread's own.
const OWN: &str = "/proc/thread-self/ns/net";
/// On what a line made, so that it is known if the line is killed.
const MARK: &str = "throng line";
/// The same of what is to stay when its maker has ended.
const LASTING_MARK: &str = "throng lab";
/// A socket of this name is there in what a line made, for as long as the line is.
const CLAIM: &str = "throng-line";

/// Packets that a device keeps until they are read. Its default, 500, is what a busy client sends
/// while the line's thread waits 5 ms for its CPU.
const DEVICE_PACKETS: u32 = 20_000;

/// How long processes may take to end at each signal.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// One end; what was made for it goes with it.
#[derive(Debug)]
pub(super) struct End {
    name: String,
    namespace: File,
    /// Held as long as what was made is used; none where nothing was made.
    claim: Option<UnixDatagram>,
}

/// Whether the namespace is to be made, or there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Made,
    Joined,
}

/// A line that was killed had left this behind, and it is gone now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Name of the network namespace.
    pub name: String,
    /// Processes that were still in it.
    pub processes: usize,
}

impl End {
    /// Makes or joins a namespace, with a TUN device that is up and has these addresses.
    pub(super) fn lay(
        name: &str,
        origin: Origin,
        addresses: &[IpAddr],
    ) -> Result<(End, Tun), RunError> {
        End::open(name, origin, || {
            let tun = Tun::make().map_err(|error| no_device(&error))?;
            let mut lines = addresses_of(tun.name(), addresses);
            let device = tun.name();
            lines.push(format!("link set {device} txqueuelen {DEVICE_PACKETS} up"));
            Ok((lines, tun))
        })
    }

    /// Makes or joins a namespace. What `devise` does, it does in there, and so does `ip` what it
    /// returns.
    pub(super) fn open<T: Send>(
        name: &str,
        origin: Origin,
        devise: impl FnOnce() -> Result<(Vec<String>, T), RunError> + Send,
    ) -> Result<(End, T), RunError> {
        let joined = match origin {
            Origin::Made if path(name).exists() => return Err(taken(name)),
            Origin::Made => None,
            Origin::Joined => Some(File::open(path(name)).map_err(|error| missing(name, &error))?),
        };
        // A thread of its own: whatever it does from here on, it does in there.
        on_a_thread(|| {
            let claim = match &joined {
                Some(namespace) => namespace::enter(namespace).map(|()| None),
                None => namespace::enter_new().and_then(|()| claim()).map(Some),
            };
            let claim = claim.map_err(|error| not_allowed(&error))?;
            let (lines, devised) = devise()?;
            let namespace = File::open(OWN).map_err(|error| not_allowed(&error))?;
            ip(&set_up(name, origin, lines)?)?;
            let name = name.to_owned();
            let end = End {
                name,
                namespace,
                claim,
            };
            Ok((end, devised))
        })
    }

    /// Has `ip` do something in there.
    pub(super) fn ip(&self, lines: &[String]) -> Result<(), RunError> {
        on_a_thread(|| {
            namespace::enter(&self.namespace).map_err(|error| not_allowed(&error))?;
            ip(&(lines.join("\n") + "\n"))
        })
    }

    /// Leaves it there when this process has ended.
    pub(super) fn keep(&mut self) -> Result<(), RunError> {
        self.ip(&[format!("link set lo alias \"{LASTING_MARK}\"")])?;
        self.claim = None;
        Ok(())
    }

    /// Ends the processes in what was made, and takes its name away; how many they were.
    pub(super) fn clear(mut self) -> usize {
        self.take_away()
    }

    fn take_away(&mut self) -> usize {
        match self.claim.take() {
            None => 0,
            Some(_claim) => remove(&self.name, &self.namespace),
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.take_away();
    }
}

/// Runs something on a thread in the network namespace of that name, with all that it starts.
///
/// # Errors
/// There is none of that name, or the thread may not enter it.
pub fn within<T: Send>(name: &str, act: impl FnOnce() -> T + Send) -> Result<T, RunError> {
    let namespace = File::open(path(name)).map_err(|error| missing(name, &error))?;
    on_a_thread(|| {
        namespace::enter(&namespace).map_err(|error| not_allowed(&error))?;
        Ok(act())
    })
}

/// Words that begin the command line of a program that is to run in the namespace of that name. As
/// `ip netns exec` they need rights; unlike it they leave what is mounted as it is, control groups
/// included.
pub fn words(name: &str) -> [String; 2] {
    ["nsenter".to_owned(), format!("--net={NAMES}/{name}")]
}

/// True if there is a network namespace of that name.
pub fn exists(name: &str) -> bool {
    path(name).exists()
}

/// Ends the processes in a network namespace that a line or a pair made, and removes it.
pub fn remove_made(name: &str) {
    let Ok(namespace) = File::open(path(name)) else {
        return;
    };
    let mark = within(name, namespace::mark);
    if let Ok(Ok(mark)) = mark
        && [MARK, LASTING_MARK].contains(&mark.as_str())
    {
        remove(name, &namespace);
    }
}

/// Says whether this user may make network namespaces.
///
/// # Errors
/// Not; with the cure.
pub fn check_rights() -> Result<(), RunError> {
    on_a_thread(|| namespace::enter_new().map_err(|error| not_allowed(&error)))
}

/// Removes what killed lines have left behind: namespaces with the mark of a line whose claim no
/// process holds.
pub fn clear_leftovers() -> Vec<Leftover> {
    let names = fs::read_dir(NAMES).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let clear = |name: String| {
        let namespace = File::open(path(&name)).ok()?;
        let is_left = on_a_thread(|| is_left(&namespace).unwrap_or(false));
        is_left.then(|| Leftover {
            processes: remove(&name, &namespace),
            name,
        })
    };
    names.filter_map(clear).collect()
}

/// Moves the calling thread to a namespace, and says whether a line made it and is gone.
fn is_left(of: &File) -> io::Result<bool> {
    namespace::enter(of)?;
    Ok(namespace::mark()? == MARK && claim().is_ok())
}

fn remove(name: &str, namespace: &File) -> usize {
    let ended = end_processes(namespace);
    // It fails only if another process has removed the name.
    let mut remove = Command::new("ip");
    remove.args(["netns", "del", name]);
    let _ = remove.stdin(Stdio::null()).stderr(Stdio::null()).status();
    ended
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(NAMES).join(name)
}

fn claim() -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(CLAIM)?)
}

fn on_a_thread<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let joined = thread::scope(|scope| scope.spawn(act).join());
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What `ip` does in a namespace. Its name comes last: what has a name has a mark.
fn set_up(name: &str, origin: Origin, further: Vec<String>) -> Result<String, RunError> {
    let mut lines = Vec::new();
    if origin == Origin::Made {
        lines.push(format!("link set lo alias \"{MARK}\""));
        lines.push("link set lo up".to_owned());
    }
    lines.extend(further);
    if origin == Origin::Made {
        // The number of this thread, which the kernel takes for that of a process here.
        let own = fs::read_link("/proc/thread-self").map_err(|error| not_allowed(&error))?;
        let number = own.file_name().unwrap_or_default().to_string_lossy();
        lines.push(format!("netns attach {name} {number}"));
    }
    Ok(lines.join("\n") + "\n")
}

/// What gives a device these addresses.
pub(super) fn addresses_of(device: &str, addresses: &[IpAddr]) -> Vec<String> {
    let line = |address: &IpAddr| match address {
        IpAddr::V4(v4) => format!("address add {v4}/24 dev {device}"),
        IpAddr::V6(v6) => format!("address add {v6}/64 dev {device} nodad"),
    };
    addresses.iter().map(line).collect()
}

/// Has `ip` do these lines, one after the other.
fn ip(lines: &str) -> Result<(), RunError> {
    let mut command = Command::new("ip");
    command.args(["-batch", "-"]);
    command.stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            RunError::new("`ip` is not installed", "install the package iproute2")
        }
        _ => RunError::new(format!("cannot start `ip`: {error}"), "try it by hand"),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it has ended already, what it said tells why.
        let _ = stdin.write_all(lines.as_bytes());
    }
    let output = child.wait_with_output();
    let output = output.map_err(|error| RunError::plain(format!("`ip`: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let number = said
        .rsplit(':')
        .next()
        .and_then(|it| it.trim().parse().ok());
    let line = number.and_then(|number: usize| lines.lines().nth(number.saturating_sub(1)));
    let first = said.lines().next().unwrap_or_default();
    Err(RunError::new(
        format!("`ip {}`: {first}", line.unwrap_or_default()),
        "give addresses that this host can have; where there is no IPv6, \
         `--near-addresses 10.98.0.1 --far-addresses 10.98.0.2`",
    ))
}

fn taken(name: &str) -> RunError {
    RunError::new(
        format!("there is a network namespace `{name}` already"),
        format!(
            "`ip netns del {name}` removes it; or give other names with --between, or --join to \
             lay the line between namespaces that there are"
        ),
    )
}

fn missing(name: &str, error: &io::Error) -> RunError {
    match error.kind() {
        ErrorKind::NotFound => RunError::new(
            format!("there is no network namespace `{name}`"),
            format!("`ip netns add {name}` makes it, or leave out --join"),
        ),
        _ => not_allowed(error),
    }
}

fn not_allowed(error: &io::Error) -> RunError {
    RunError::new(
        format!("no network namespace can be made or entered: {error}"),
        "run it as root, with CAP_SYS_ADMIN and CAP_NET_ADMIN (a container has neither unless it \
         is given them)",
    )
}

fn no_device(error: &io::Error) -> RunError {
    let device = tun::DEVICE;
    match (error.kind(), error.raw_os_error()) {
        (ErrorKind::NotFound, _) => RunError::new(
            format!("there is no {device}"),
            format!(
                "load the kernel's module (`modprobe tun`); give a container the device \
                 (`--device {device}`)"
            ),
        ),
        _ => RunError::new(
            format!("no TUN device can be made of {device}: {error}"),
            "run it as root, with CAP_NET_ADMIN, where the control group allows the device \
             (`--device /dev/net/tun` of a container), with the kernel's module tun",
        ),
    }
}

/// Ends all processes in a namespace: asks, and after a while kills. How many there were.
fn end_processes(namespace: &File) -> usize {
    let Ok(own) = namespace.metadata() else {
        return 0;
    };
    let there = processes(&own);
    for signal in [Signal::TERM, Signal::KILL] {
        for process in processes(&own) {
            send(process, &own, signal);
        }
        let until = Instant::now() + PATIENCE;
        while !processes(&own).is_empty() && Instant::now() < until {
            thread::park_timeout(LOOK_EVERY);
        }
    }
    there.len()
}

fn processes(namespace: &fs::Metadata) -> Vec<i32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|number| is_in(*number, namespace)).collect()
}

fn is_in(process: i32, namespace: &fs::Metadata) -> bool {
    let found = fs::metadata(format!("/proc/{process}/ns/net"));
    found.is_ok_and(|it| (it.dev(), it.ino()) == (namespace.dev(), namespace.ino()))
}

/// Signals a process that is still in the namespace: its number may be another's by now, but not
/// once it is held.
fn send(process: i32, namespace: &fs::Metadata, signal: Signal) {
    let process = Pid::from_raw(process);
    let Some((process, held)) =
        process.and_then(|it| Some((it, pidfd_open(it, PidfdFlags::empty()).ok()?)))
    else {
        return;
    };
    if is_in(process.as_raw_nonzero().get(), namespace) {
        // Fails if it has ended meanwhile.
        let _ = pidfd_send_signal(&held, signal);
    }
}
