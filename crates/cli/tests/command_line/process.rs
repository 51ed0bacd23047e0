//! Processes and folders of this suite; none outlives its test.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use measure::RunRecord;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The binary under test.
pub(crate) const THRONG: &str = env!("CARGO_BIN_EXE_throng");

/// A process that is still there after that many seconds is killed, and its test fails.
const SECONDS_MAX: &str = "300";
/// How long what a test has started may take to end after it, on a busy machine.
const END_MAX: Duration = Duration::from_secs(120);

/// A folder of its own, removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("throng-{}-{test}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it, whether or not there is one.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Again, because a process that ends may have started another one.
        let until = Instant::now() + END_MAX;
        let mut left = pids_in(&self.0);
        while !left.is_empty() && have_ended(&left, until) {
            left = pids_in(&self.0);
        }
        let left: Vec<String> = left.into_iter().map(command_line).collect();
        let _ = fs::remove_dir_all(&self.0);
        assert!(
            left.is_empty() || std::thread::panicking(),
            "still running: {left:?}"
        );
    }
}

/// Waits until these processes have ended; false if one of them has not until then. One that its
/// parent has not waited for yet has ended too.
pub(crate) fn have_ended(pids: &[u32], until: Instant) -> bool {
    pids.iter().all(|pid| has_ended(*pid, until))
}

fn has_ended(pid: u32, until: Instant) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).unwrap();
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return true,
        opened => opened.unwrap(),
    };
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).unwrap();
    let mut ends = [PollFd::new(&process, PollFlags::IN)];
    poll(&mut ends, Some(&left)).unwrap() > 0
}

/// Returns when these processes have ended.
#[track_caller]
pub(crate) fn wait_until_ended(pids: &[u32]) {
    let have_ended = have_ended(pids, Instant::now() + END_MAX);
    assert!(have_ended, "one of {pids:?} has not ended");
}

/// Processes that work in a folder, or whose folder for temporary files is in it.
pub(crate) fn processes_in(folder: &Path) -> Vec<String> {
    pids_in(folder).into_iter().map(command_line).collect()
}

fn pids_in(folder: &Path) -> Vec<u32> {
    let is_in = |process: &Path| {
        let works_in = fs::read_link(process.join("cwd")).unwrap_or_default();
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        let mut variables = environment.split(|octet| *octet == 0);
        let temporary = variables.find_map(|it| it.strip_prefix(b"TMPDIR="));
        let temporary = temporary.map(|it| Path::new(std::ffi::OsStr::from_bytes(it)));
        works_in.starts_with(folder) || temporary.is_some_and(|it| it.starts_with(folder))
    };
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let there = all.filter(|entry| is_in(&entry.path()));
    let pid = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    there.filter_map(pid).collect()
}

fn command_line(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    format!("/proc/{pid}: {line}")
}

/// Killed if it has not ended.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A command that has ended.
pub(crate) struct Finished {
    pub(crate) line: String,
    /// None if it was killed.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    pub(crate) fn new(line: &str, output: Output) -> Finished {
        let text = |octets| String::from_utf8(octets).unwrap();
        Finished {
            line: line.to_owned(),
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Standard output, after exit code 0.
    pub(crate) fn succeeded(self) -> String {
        self.ended_with(0)
    }

    /// Standard output, after the exit code given.
    pub(crate) fn ended_with(self, code: i32) -> String {
        let Finished { line, stderr, .. } = &self;
        assert_eq!(self.code, Some(code), "{line}\n{}\n{stderr}", self.stdout);
        self.stdout
    }

    /// The error, and its hint or nothing, of a command that refused to start: exit code 2, one
    /// error, nothing on standard output.
    pub(crate) fn refused(self) -> (String, String) {
        let Finished { line, stderr, .. } = &self;
        assert_eq!(self.code, Some(2), "{line}\n{}\n{stderr}", self.stdout);
        assert_eq!(self.stdout, "", "{line}");
        let mut lines = stderr.lines();
        let error = lines.next().and_then(|line| line.strip_prefix("error: "));
        let error = error.unwrap_or_else(|| panic!("{line}: no error in {stderr}"));
        let hint = lines.next().map_or("", |hint| {
            let hint = hint.strip_prefix("hint: ");
            hint.unwrap_or_else(|| panic!("{line}: no hint in {stderr}"))
        });
        assert_eq!(lines.next(), None, "{line}: more than a hint in {stderr}");
        let full_stop = error.ends_with('.') && !error.ends_with("...");
        assert!(!full_stop, "{line}: {error}");
        (error.to_owned(), hint.to_owned())
    }

    /// Checks that a command refused to start with these parts in its error and in its hint;
    /// without a part of it there must be no hint.
    pub(crate) fn refused_with(self, error_part: &str, hint_part: &str) {
        let line = self.line.clone();
        let (error, hint) = self.refused();
        let of_line = format!("{line}\n{error}\n{hint}");
        assert!(error.contains(error_part), "no `{error_part}`: {of_line}");
        assert!(hint.contains(hint_part), "no `{hint_part}`: {of_line}");
        assert_eq!(hint.is_empty(), hint_part.is_empty(), "{of_line}");
    }
}

/// Runs a command whose arguments are separated by blanks.
pub(crate) fn execute(line: &str) -> Finished {
    execute_with(line, b"")
}

/// As [`execute`], with standard input.
pub(crate) fn execute_with(line: &str, stdin: &[u8]) -> Finished {
    let mut command = Command::new("timeout");
    command.args(["--foreground", "--signal=KILL", SECONDS_MAX]);
    command.args(line.split_whitespace());
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // Apart, because a command may write much before it has read all. One that fails early does
        // not read its input.
        scope.spawn(move || drop(input.write_all(stdin)));
        Finished::new(line, child.wait_with_output().unwrap())
    })
}

/// Runs `throng`.
pub(crate) fn throng(flags: &str) -> Finished {
    execute(&format!("{THRONG} {flags}"))
}

/// Runs `throng` with standard input.
pub(crate) fn throng_with(flags: &str, stdin: &[u8]) -> Finished {
    execute_with(&format!("{THRONG} {flags}"), stdin)
}

/// The record of a `throng run` that ends with exit code 0. Reading it checks its identity.
pub(crate) fn measured(flags: &str) -> RunRecord {
    let stdout = throng(&format!("run --quiet --format json {flags}")).succeeded();
    RunRecord::from_json(&stdout).unwrap_or_else(|reason| panic!("{flags}: {reason}"))
}

/// Sends a signal to a process.
pub(crate) fn signal(child: &Child, name: &str) {
    let kill = Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
}

/// A `throng responder`, killed when dropped.
pub(crate) struct Responder {
    pub(crate) child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) addresses: Vec<(String, SocketAddr)>,
}

impl Responder {
    /// Starts one that listens as `listen` says, such as `udp:127.0.0.1:0`.
    pub(crate) fn start(listen: &str, flags: &str) -> Responder {
        Responder::start_by(Command::new(THRONG), listen, flags)
    }

    /// As [`Responder::start`], by a command that ends in the binary.
    pub(crate) fn start_by(mut command: Command, listen: &str, flags: &str) -> Responder {
        command.args(["responder", "--duration", "300s", "--listen", listen]);
        command.args(flags.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut addresses = Vec::new();
        for _ in listen.split(',') {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            let place = line.trim_end().strip_prefix("listening on ");
            let place = place.unwrap_or_else(|| panic!("{listen} {flags}: {line}"));
            let (transport, address) = place.split_once(':').unwrap();
            addresses.push((transport.to_owned(), address.parse().unwrap()));
        }
        Responder {
            child,
            stdout,
            addresses,
        }
    }

    /// The address of its first listener.
    pub(crate) fn address(&self) -> SocketAddr {
        self.addresses[0].1
    }

    /// Sends it a signal, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Ends it and returns what it counted.
    pub(crate) fn counters(mut self) -> Counters {
        signal(&self.child, "INT");
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{text}");
        Counters(text)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a responder printed at its end.
pub(crate) struct Counters(pub(crate) String);

impl Counters {
    /// The count of that label over all transports; 0 if it is not shown.
    pub(crate) fn get(&self, label: &str) -> u64 {
        let mut values = self.0.lines().filter_map(|line| line.strip_prefix(label));
        values.next().map_or(0, |value| {
            let count = value.split_whitespace().next().unwrap();
            count.parse().unwrap()
        })
    }
}

/// A UDP socket of the test that keeps what is sent to it and never answers.
pub(crate) struct Listener(UdpSocket);

impl Listener {
    pub(crate) fn new() -> Listener {
        Listener(UdpSocket::bind("127.0.0.1:0").unwrap())
    }

    /// Where it listens, for `--server`.
    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// The queries of a run, each with its source.
    pub(crate) fn queries_of(&self, flags: &str) -> Vec<(SocketAddr, Vec<u8>)> {
        let address = self.address();
        let line = format!("run --quiet --server {address} --timeout 20ms {flags}");
        // Nobody answers.
        throng(&line).ended_with(1);
        self.received()
    }

    /// The queries that wait in the socket. What looks whether anybody listens is empty.
    pub(crate) fn received(&self) -> Vec<(SocketAddr, Vec<u8>)> {
        self.0.set_nonblocking(true).unwrap();
        let mut queries = Vec::new();
        let mut octets = [0; 4096];
        while let Ok((count, source)) = self.0.recv_from(&mut octets) {
            if count > 0 {
                queries.push((source, octets[..count].to_vec()));
            }
        }
        queries
    }
}

/// A UDP port at which nobody listens, held so that no other process gets it: the kernel refuses
/// what does not come from the peer of a connected socket, and this one's is itself.
pub(crate) struct ClosedUdpPort(UdpSocket);

impl ClosedUdpPort {
    pub(crate) fn new() -> ClosedUdpPort {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        ClosedUdpPort(socket)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }
}

/// A TCP port at which no process listens, held so that no other process gets it: bound, and never
/// listened at, so that the kernel refuses connections.
pub(crate) struct ClosedTcpPort {
    _socket: OwnedFd,
    address: SocketAddr,
}

impl ClosedTcpPort {
    pub(crate) fn new() -> ClosedTcpPort {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &any).unwrap();
        let address = rustix::net::getsockname(&socket).unwrap();
        ClosedTcpPort {
            address: address.try_into().unwrap(),
            _socket: socket,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}
