//! A line between two namespaces that it made, for tests; each has names of its own. Needs root.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use measure::RunRecord;
use measure::line::Line;
use testing::program::{Finished, Running, signal};

use crate::process::{Responder, THRONG};

const NAMESPACES: &str = "/run/netns";

/// Names for the two ends that no other test has.
pub(crate) fn names(test: &str) -> [String; 2] {
    ["near", "far"].map(|end| format!("throng-{}-{test}-{end}", std::process::id()))
}

pub(crate) fn is_there(name: &str) -> bool {
    Path::new(NAMESPACES).join(name).exists()
}

/// A line that was laid, killed when dropped.
pub(crate) struct Laid {
    pub(crate) child: Running,
    stderr: BufReader<std::process::ChildStderr>,
    pub(crate) between: [String; 2],
    /// What it printed until it was laid.
    pub(crate) said: Vec<String>,
}

impl Laid {
    pub(crate) fn lay(test: &str, flags: &str) -> Laid {
        Laid::between(names(test), flags)
    }

    fn between(between: [String; 2], flags: &str) -> Laid {
        let mut command = Command::new(THRONG);
        command.args(["line", "--between", &between.join(",")]);
        command.args(["--duration", "300s", "--format", "json"]);
        command.args(flags.split_whitespace());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = Running(command.spawn().unwrap());
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = Vec::new();
        loop {
            let mut line = String::new();
            let octets = stderr.read_line(&mut line).unwrap();
            assert!(octets > 0, "{flags}: {said:?}");
            if line.contains(" are joined: ") {
                break;
            }
            said.push(line);
        }
        Laid {
            child,
            stderr,
            between,
            said,
        }
    }

    /// A command that runs at an end, 0 or 1.
    pub(crate) fn command(&self, end: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.between[end], program]);
        command
    }

    /// Ends it; what it did, and what it said at its end.
    pub(crate) fn ended(mut self) -> (Line, String) {
        signal(&self.child, "INT");
        let mut stdout = self.child.stdout.take().unwrap();
        let json = std::io::read_to_string(&mut stdout).unwrap();
        let said = std::io::read_to_string(&mut self.stderr).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{said}");
        for name in &self.between {
            assert!(!is_there(name), "{name} is left");
        }
        let line: Line = serde_json::from_str(&json).unwrap_or_else(|it| panic!("{it}: {json}"));
        for direction in [&line.to_far, &line.to_near] {
            assert!(direction.adds_up(), "{direction:?}");
        }
        (line, said)
    }

    /// What a run at the near end measures, of a responder at the far end.
    pub(crate) fn measured(&self, responder: &Responder, flags: &str) -> RunRecord {
        let server = responder.address().to_string();
        let mut command = self.command(0, THRONG);
        command.args(["run", "--quiet", "--format", "json", "--server", &server]);
        command.args(["--no-preflight", "--random-labels", "example"]);
        command.args(flags.split_whitespace());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let stdout = Finished::new(flags, output).succeeded();
        RunRecord::from_json(&stdout).unwrap_or_else(|reason| panic!("{flags}: {reason}"))
    }
}

impl Drop for Laid {
    fn drop(&mut self) {
        // Before its namespaces are deleted.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for name in self.between.iter().filter(|name| is_there(name)) {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}
