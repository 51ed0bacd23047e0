//! Runs by several agents, for tests: what is waited for in mid-run, and their ends.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{ChildStderr, Command, Stdio};
use std::time::Instant;

use testing::wait;

use testing::program::{self, execute, signal, wait_until_ended};

use crate::process::{THRONG, throng};

/// PIDs of the processes that the parent with this PID has started.
pub(crate) fn children_of(parent: u32) -> Vec<u32> {
    let children = Command::new("pgrep")
        .args(["-P", &parent.to_string()])
        .output()
        .unwrap();
    let text = String::from_utf8(children.stdout).unwrap();
    text.lines().map(|pid| pid.parse().unwrap()).collect()
}

/// A run by agents; killed when dropped.
pub(crate) struct Running {
    pub(crate) child: program::Running,
    pub(crate) stderr: BufReader<ChildStderr>,
    began: Instant,
    interval_end_s: f64,
}

impl Running {
    /// One that would take a minute; returns when its first interval is over.
    pub(crate) fn start(flags: &str) -> Running {
        let mut running = Running::begin(&format!("--duration 60s --interval 50ms {flags}"));
        running.wait_for_intervals(1);
        running
    }

    pub(crate) fn begin(flags: &str) -> Running {
        let line = format!("run {flags}");
        let mut command = Command::new(THRONG);
        command.args(line.split_whitespace()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::from_command(command)
    }

    /// A command whose standard output and standard error are piped.
    pub(crate) fn from_command(mut command: Command) -> Running {
        let began = Instant::now();
        let mut child = program::Running(command.spawn().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Running {
            child,
            stderr,
            began,
            interval_end_s: 0.0,
        }
    }

    /// Returns when that number of further intervals is over.
    pub(crate) fn wait_for_intervals(&mut self, number: usize) {
        (0..number).for_each(|_| self.next_interval());
    }

    /// The end of the last interval that was waited for, since the start of the measured run.
    pub(crate) fn interval_end_ns(&self) -> u64 {
        (self.interval_end_s * 1e9) as u64
    }

    fn next_interval(&mut self) {
        let line = self.wait_for(" s  sent ");
        let (end, _) = line.split_once(" s  sent ").unwrap();
        self.interval_end_s = end.trim().parse().unwrap();
    }

    /// Reads standard error until a line has `part`, and returns that line.
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        let mut read = String::new();
        loop {
            let before = read.len();
            self.stderr.read_line(&mut read).unwrap();
            assert!(read.len() > before, "it ended without `{part}`: {read}");
            if read[before..].contains(part) {
                return read.split_off(before);
            }
        }
    }

    /// Returns when an interval is over that ended after this call, though the lines of others may
    /// not have been read yet: a run is younger than its process.
    pub(crate) fn wait_for_interval_from_now(&mut self) {
        let now = self.began.elapsed().as_secs_f64();
        while self.interval_end_s <= now {
            self.next_interval();
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Stops one of its agents for a second; queries of another process are the clock.
    pub(crate) fn stop_for_a_second(&self, agent: u32, server: SocketAddr) {
        execute(&format!("kill -s STOP {agent}")).succeeded();
        let clock = format!("ping a.example --server {server} --count 6 --interval 200ms");
        throng(&clock).succeeded();
        execute(&format!("kill -s CONT {agent}")).succeeded();
    }

    /// Its agents, once there are that many.
    pub(crate) fn agents(&self, number: usize) -> Vec<u32> {
        wait::for_some("the agents of the run", || {
            let agents = children_of(self.child.id());
            (agents.len() == number).then_some(agents)
        })
    }

    /// Exit code, standard output, and the rest of standard error.
    pub(crate) fn ended(&mut self) -> (Option<i32>, String, String) {
        let mut pipe = self.child.stdout.take().unwrap();
        let mut stderr = String::new();
        // Both at once: a process that waits for room in one pipe does not close the other one.
        let stdout = std::thread::scope(|scope| {
            let stdout = scope.spawn(|| std::io::read_to_string(&mut pipe).unwrap());
            self.stderr.read_to_string(&mut stderr).unwrap();
            stdout.join().unwrap()
        });
        (self.child.wait().unwrap().code(), stdout, stderr)
    }
}

/// Ends a process by a signal, and returns when it has ended.
pub(crate) fn signal_and_wait(pid: u32, name: &str) {
    execute(&format!("kill -s {name} {pid}")).succeeded();
    wait_until_ended(&[pid]);
}
