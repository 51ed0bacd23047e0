//! `throng line`: a responder at its far end, a run at its near end, in namespaces that the line
//! made, each test with names of its own. Needs root.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use measure::RunRecord;
use measure::line::{Direction, Line};

use crate::process::{Finished, Folder, Responder, THRONG, execute, signal, throng};

const NAMESPACES: &str = "/run/netns";

pub(crate) fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    if !is_root {
        eprintln!("not tried: network namespaces need root");
    }
    is_root
}

/// Names for the two ends that no other test has.
fn names(test: &str) -> [String; 2] {
    ["near", "far"].map(|end| format!("throng-{}-{test}-{end}", std::process::id()))
}

fn is_there(name: &str) -> bool {
    Path::new(NAMESPACES).join(name).exists()
}

/// A line that was laid, killed when dropped.
struct Laid {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    between: [String; 2],
    /// What it said until it was laid.
    said: Vec<String>,
}

impl Laid {
    fn lay(test: &str, flags: &str) -> Laid {
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
        let mut child = command.spawn().unwrap();
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
    fn command(&self, end: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.between[end], program]);
        command
    }

    /// Ends it; what it did, and what it said at its end.
    fn ended(mut self) -> (Line, String) {
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
    fn measured(&self, responder: &Responder, flags: &str) -> RunRecord {
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
        let _ = self.child.kill();
        let _ = self.child.wait();
        for name in self.between.iter().filter(|name| is_there(name)) {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

#[test]
fn latency_is_twice_the_delay_at_least_and_losses_are_the_lines_own_exactly() {
    if !is_root() {
        return;
    }
    let laid = Laid::lay("loss", "--delay 10ms,7ms --jitter 1ms --loss 0.05,0.03");
    for address in ["10.98.0.2", "[fd98::2]"] {
        let listen = format!("udp:{address}:0");
        let responder = Responder::start_by(laid.command(1, THRONG), &listen, "");
        let record = laid.measured(&responder, "--rate 2000 --queries 1000 --timeout 5s");
        let counts = &record.total.counts;
        assert_eq!(counts.sent, 1_000, "{address}");
        assert!(counts.responses > 800, "{address}: {}", counts.responses);
        assert!(
            record.total.distributions.service.min_ns() >= Some(17_000_000),
            "{address}"
        );
    }
    // Both runs have ended before the line.
    let (line, said) = laid.ended();
    assert_eq!(said, "");
    let [there, back] = [&line.to_far, &line.to_near];
    let lost = |it: &Direction| it.lost.total() + it.not_read;
    assert_eq!(there.packets + there.not_read, 2_000);
    assert_eq!(back.packets + back.not_read, there.delivered);
    assert!(there.lost.asked_for > 0 && back.lost.asked_for > 0);
    assert_eq!(there.delivered + lost(there), 2_000);
    assert_eq!(
        (there.asked.delay_ns, back.asked.delay_ns),
        (10_000_000, 7_000_000)
    );
    assert_eq!(there.late.count(), there.delivered);
}

#[test]
fn a_run_loses_what_the_line_lost_and_the_same_seed_loses_the_same() {
    if !is_root() {
        return;
    }
    let one = |test: &str, seed: u64| {
        let laid = Laid::lay(test, &format!("--loss 0.1 --seed {seed}"));
        let responder = Responder::start_by(laid.command(1, THRONG), "udp:10.98.0.2:0", "");
        let flags = "--rate 1000 --queries 500 --timeout 3s";
        let record = laid.measured(&responder, flags);
        drop(responder);
        let (line, _) = laid.ended();
        let counts = &record.total.counts;
        let [there, back] = [&line.to_far, &line.to_near];
        let lost = |it: &Direction| it.lost.total() + it.not_read;
        assert_eq!(counts.sent, 500);
        assert_eq!(500 - counts.responses, lost(there) + lost(back));
        [there.lost.asked_for, back.lost.asked_for]
    };
    let first = one("seed-a", 1);
    assert_eq!(first, one("seed-b", 1));
    assert!(first[0] > 0 && first[1] > 0, "{first:?}");
}

#[test]
fn a_command_at_the_near_end_decides_the_exit_code_and_leaves_nothing() {
    if !is_root() {
        return;
    }
    let folder = Folder::new("line-command");
    let file = folder.path("line.json");
    let between = names("command");
    // What goes on in the background is ended with the line.
    let script = folder.write(
        "script",
        "ip netns exec $THRONG_FAR tail -f /dev/null < /dev/null > /dev/null 2>&1 &\n\
         ip netns exec $THRONG_FAR tail -f /dev/null < /dev/null > /dev/null 2>&1 &\n\
         ip -brief address show dev throng0; exit 7\n",
    );
    let finished = throng(&format!(
        "line --between {} --output {file} --delay 1ms -- sh {script}",
        between.join(",")
    ));
    let said = finished.stderr.clone();
    let stdout = finished.ended_with(7);
    assert!(stdout.contains("10.98.0.1/24"), "{stdout}");
    assert!(stdout.contains("fd98::1/64"), "{stdout}");
    assert!(
        said.contains("that still ran in the line's namespaces"),
        "{said}"
    );
    assert!(!between.iter().any(|name| is_there(name)));
    let line: Line = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(line.between, between);
    let flags = format!("line --between {} -- false", between.join(","));
    let finished = throng(&flags);
    assert!(
        finished.stderr.contains("late by p99"),
        "{}",
        finished.stderr
    );
    assert_eq!(finished.ended_with(1), "");
}

#[test]
fn what_a_killed_line_left_is_found_named_and_cleared_by_the_next() {
    if !is_root() {
        return;
    }
    let mut killed = Laid::lay("killed", "");
    let left = killed.between.clone();
    let mut command = killed.command(1, "tail");
    command.args(["-f", "/dev/null"]);
    let mut process = command.stdin(Stdio::null()).spawn().unwrap();
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert!(left.iter().all(|name| is_there(name)));
    // A line that lives is left alone: this test's own, and those of others beside it.
    let next = Laid::lay("next", "");
    let after = Laid::lay("after", "");
    process.wait().unwrap();
    assert!(!left.iter().any(|name| is_there(name)));
    // Another test's line may have been the next one.
    let said = next.said.concat();
    if !said.is_empty() {
        assert!(left.iter().any(|name| said.contains(name)), "{said}");
    }
    assert!(next.between.iter().all(|name| is_there(name)));
    next.ended();
    after.ended();
}

#[test]
fn joined_namespaces_stay_and_names_that_are_taken_are_refused() {
    if !is_root() {
        return;
    }
    let between = names("joined");
    let ends = between.join(",");
    throng(&format!("line --join --between {ends}")).refused_with(
        &format!("there is no network namespace `{}`", between[0]),
        "leave out --join",
    );
    for name in &between {
        execute(&format!("ip netns add {name}")).succeeded();
    }
    throng(&format!("line --between {ends}")).refused_with(
        &format!("there is a network namespace `{}` already", between[0]),
        "--join",
    );
    let flags = format!("line --join --between {ends} -- ip link show dev throng0");
    throng(&flags).succeeded();
    for name in &between {
        assert!(is_there(name));
        // The device has gone with the line.
        assert_ne!(
            execute(&format!("ip -n {name} link show dev throng0")).code,
            Some(0)
        );
        execute(&format!("ip netns del {name}")).succeeded();
    }
}

#[test]
fn what_no_line_can_be_is_refused_with_its_cure() {
    for (flags, what, cure) in [
        ("--delay 11s", "--delay: 11s is too long", "at most 10s"),
        ("--jitter 1h", "--jitter", "at most 10s"),
        ("--loss 1.5", "1.5", ""),
        ("--loss 0,0,0", "two directions", "--help"),
        ("--rate 0", "0 bits", "such as 10M"),
        ("--rate fast", "not a rate", "--help"),
        ("--queue 5", "--rate", "--help"),
        ("--rate 1M --queue 9000000", "--queue", "at most"),
        ("--between one", "two names", "--help"),
        ("--between same,same", "both ends are `same`", "different"),
        ("--between a/b,c", "`a/b` is not a name", "letters"),
        (
            "--near-addresses 10.98.0.2",
            "10.98.0.2 is not an address",
            "each end",
        ),
        (
            "--duration 1s -- true",
            "cannot be used with",
            "leave out one",
        ),
    ] {
        let (said, hint) = throng(&format!("line {flags}")).refused();
        assert!(said.contains(what), "{flags}: {said}");
        assert!(hint.contains(cure), "{flags}: {hint}");
    }
}

#[test]
fn without_rights_device_or_ip_it_says_what_is_missing() {
    if !is_root() {
        return;
    }
    let ends = names("rights").join(",");
    let line = format!("{THRONG} line --between {ends} --duration 1s");
    execute(&format!("setpriv --bounding-set -all {line}"))
        .refused_with("Operation not permitted", "as root");
    let within = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]);
        Finished::new(script, command.stdin(Stdio::null()).output().unwrap())
    };
    within(&format!("mount -t tmpfs tmpfs /dev; exec {line}"))
        .refused_with("there is no /dev/net/tun", "modprobe tun");
    within(&format!("PATH=/nowhere exec {line}")).refused_with("`ip` is not installed", "iproute2");
    assert!(!names("rights").iter().any(|name| is_there(name)));
}
