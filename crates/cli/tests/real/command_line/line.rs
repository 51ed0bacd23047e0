//! `throng line`: a responder at its far end, a run at its near end, in namespaces that the line
//! made, each test with names of its own. Needs root.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;

use measure::line::{Direction, Line};
use testing::folder::Folder;
use testing::host::is_root_for;
use testing::program::{Finished, execute};

use crate::laid::{Laid, is_there, names};
use crate::process::{Responder, THRONG, throng};

#[test]
fn latency_is_twice_the_delay_at_least_and_losses_are_the_lines_own_exactly() {
    if !is_root_for("network namespaces") {
        return;
    }
    let laid = Laid::lay("loss", "--delay 10ms,7ms --jitter 1ms --loss 0.05,0.03");
    let mut received = 0;
    for address in ["10.98.0.2", "[fd98::2]"] {
        let listen = format!("udp:{address}:0");
        let responder = Responder::start_by(laid.command(1, THRONG), &listen, "");
        let record = laid.measured(&responder, "--rate 2000 --queries 1000 --timeout 5s");
        let counts = &record.total.counts;
        assert_eq!(counts.sent, 1_000, "{address}");
        assert!(counts.responses > 0, "{address}");
        received += counts.responses + counts.late;
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
    assert!(received <= back.delivered, "{received}: {back:?}");
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
    if !is_root_for("network namespaces") {
        return;
    }
    let one = |test: &str, seed: u64| {
        let laid = Laid::lay(test, &format!("--loss 0.1 --seed {seed}"));
        let responder = Responder::start_by(laid.command(1, THRONG), "udp:10.98.0.2:0", "");
        // No more than the devices of the line hold while it is not scheduled.
        let flags = "--rate 1000 --queries 400 --timeout 5s";
        let record = laid.measured(&responder, flags);
        drop(responder);
        let (line, _) = laid.ended();
        let counts = &record.total.counts;
        let [there, back] = [&line.to_far, &line.to_near];
        let lost = |it: &Direction| it.lost.total() + it.not_read;
        assert_eq!(counts.sent, 400);
        let received = counts.responses + counts.late;
        assert_eq!(400 - received, lost(there) + lost(back));
        [there.lost.asked_for, back.lost.asked_for]
    };
    let (first, second) = thread::scope(|scope| {
        let second = scope.spawn(|| one("seed-b", 1));
        (one("seed-a", 1), second.join().unwrap())
    });
    assert_eq!(first, second);
    assert!(first[0] > 0 && first[1] > 0, "{first:?}");
}

#[test]
fn a_command_at_the_near_end_decides_the_exit_code_and_leaves_nothing() {
    if !is_root_for("network namespaces") {
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
    if !is_root_for("network namespaces") {
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
    if !is_root_for("network namespaces") {
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
fn without_rights_device_or_ip_it_says_what_is_missing() {
    if !is_root_for("network namespaces") {
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
