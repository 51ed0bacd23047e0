//! Progress on standard error: plain lines, nothing, or a bar on a terminal.

use testing::folder::Folder;
use testing::program::execute;

use crate::process::{THRONG, throng};

const RUN: &str = "run --rate 1000 --duration 500ms --interval 100ms";

#[test]
fn each_interval_is_one_plain_line_where_there_is_no_terminal() {
    let finished = throng(RUN);
    // A host that is stalled at the end of the run has one more line: what the run waits for.
    let lines = finished.stderr.lines();
    let lines: Vec<&str> = lines.filter(|it| !it.starts_with("waiting for")).collect();
    assert_eq!(lines.len(), 5, "{}", finished.stderr);
    for (index, line) in lines.iter().enumerate() {
        assert!(
            line.trim_start()
                .starts_with(&format!("0.{} s  sent ", index + 1)),
            "{line}"
        );
        assert!(line.contains(" qps ") && line.contains(" p99 "), "{line}");
        assert!(!line.contains('\x1b') && !line.contains('\r'), "{line:?}");
    }
    assert!(finished.succeeded().contains("Everything else: "));
}

#[test]
fn a_run_that_waits_for_time_outs_at_its_end_says_for_how_many_and_how_long() {
    for length in ["--duration 200ms", "--queries 20 --interval 100ms"] {
        let finished = throng(&format!(
            "run --rate 100 --loss 1 --no-preflight --timeout 3s {length}"
        ));
        let waits = (finished.stderr.lines()).filter(|line| line.starts_with("waiting for "));
        let waits: Vec<&str> = waits.collect();
        let [line] = waits[..] else {
            panic!("{}", finished.stderr)
        };
        assert!(
            line.ends_with(" responses, at most 3.0 s (--timeout)"),
            "{line}"
        );
        finished.ended_with(1);
    }
}

#[test]
fn quiet_prints_the_result_alone() {
    for flags in ["--quiet", "-q --format json", "-q --transport tcp"] {
        let finished = throng(&format!("{RUN} {flags}"));
        assert_eq!(finished.stderr, "", "{flags}");
        assert!(!finished.succeeded().is_empty());
    }
}

#[test]
fn a_terminal_shows_a_bar_with_the_rate_and_the_99th_percentile() {
    let folder = Folder::new("terminal");
    let result = folder.path("result.txt");
    let script = folder.write("run.sh", format!("TERM=xterm {THRONG} {RUN} >{result}\n"));
    // The command of `script` is one argument, and this one has no blanks.
    let command = folder.write("run", format!("#!/bin/sh\n. {script}\n"));
    let mark = execute(&format!("chmod +x {command}"));
    mark.succeeded();
    let screen = execute(&format!(
        "script --quiet --return --command {command} /dev/null"
    ));
    let screen = screen.succeeded();
    for part in ["░", "█", " %  ", " qps  p99 ", "  lost 0", "\r"] {
        assert!(screen.contains(part), "no {part:?} in {screen:?}");
    }
    let printed = std::fs::read_to_string(result).unwrap();
    assert!(printed.contains("Everything else: "), "{printed}");
    assert!(!printed.contains('\x1b'), "{printed:?}");
}
