//! The binary `throng` as a process of this suite.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{ChildStdout, Command, Stdio};

use measure::RunRecord;
use testing::ports::Listener;
use testing::program::{Finished, Running, execute, execute_with, signal};

/// The binary under test.
pub(crate) const THRONG: &str = env!("CARGO_BIN_EXE_throng");

/// Writes a program that differs from it in nothing but its build ID.
pub(crate) fn write_other_build(path: &str) {
    let mut program = std::fs::read(THRONG).unwrap();
    // The kind of the note, and who defines that.
    let note = b"\x03\0\0\0GNU\0";
    let at = program.windows(note.len()).position(|it| it == note);
    program[at.unwrap() + note.len()] ^= 1;
    std::fs::write(path, program).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(path, mode).unwrap();
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

/// The queries that `throng run` sends to a listener that never answers, each with its source.
pub(crate) fn queries_of(listener: &Listener, flags: &str) -> Vec<(SocketAddr, Vec<u8>)> {
    let address = listener.address();
    let line = format!("run --quiet --server {address} --timeout 20ms {flags}");
    throng(&line).ended_with(1);
    listener.received()
}

/// A `throng responder`, killed when dropped.
pub(crate) struct Responder {
    pub(crate) child: Running,
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
        let mut child = Running(command.spawn().unwrap());
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
