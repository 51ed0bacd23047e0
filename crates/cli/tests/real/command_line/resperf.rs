//! `throng resperf` beside resperf itself, against BIND.
//!
//! Needs BIND and resperf (of the package dnsperf) installed; `./test` sees to it.

use std::fs;
use std::process::{Command, Output, Stdio};

use testing::folder::Folder;
use testing::ports::Listener;
use testing::wait;

use crate::dnsperf::{bind, names_in};
use crate::process::THRONG;

/// Runs `program`, which is a path or `resperf`, in the folder, where it leaves its plot data.
fn run(program: &str, folder: &Folder, line: &str) -> Output {
    let mut command = Command::new(program);
    if program == THRONG {
        command.arg("resperf");
    }
    command.args(line.split_whitespace()).stdin(Stdio::null());
    command.current_dir(folder.folder());
    command.output().unwrap()
}

fn succeed(program: &str, folder: &Folder, line: &str) -> String {
    let output = run(program, folder, line);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {line}\n{stdout}\n{stderr}"
    );
    stdout
}

/// The lines without their numbers, those left out that name the program.
fn labels(stdout: &str) -> Vec<String> {
    let own = |line: &&str| !line.starts_with("Version ") && !line.starts_with("[Status] Command");
    let label = |line: &str| {
        let mut label = String::new();
        for letter in line.chars() {
            let is_number = letter.is_ascii_digit() || (letter == '.' && label.ends_with('#'));
            match is_number {
                true if label.ends_with('#') => {}
                true => label.push('#'),
                false => label.push(letter),
            }
        }
        label
    };
    stdout.lines().filter(own).map(label).collect()
}

/// What 2.10 prints in the form of 2.14, which counts all attempts to connect, at the end.
fn of_2_14(theirs: Vec<String>) -> Vec<String> {
    let mut lines = Vec::new();
    for line in theirs {
        match line.trim_start() {
            line if line.starts_with("Reconnection(s):") => {}
            codes if codes.starts_with("Response codes:") => {
                lines.extend([line, String::new()]);
            }
            _ => lines.push(line),
        }
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let attempts = "  Connection attempts:  # (# successful, #%)".to_owned();
    lines.extend([String::new(), attempts, String::new()]);
    lines
}

/// Header, and the columns of each line, of a file of plot data.
fn plot(folder: &Folder, name: &str) -> (String, Vec<usize>) {
    let text = fs::read_to_string(folder.path(name)).unwrap();
    let mut lines = text.lines();
    let header = lines.next().unwrap().to_owned();
    let columns = lines.map(|line| line.split_whitespace().count());
    (header, columns.collect())
}

#[test]
fn output_and_plot_data_have_the_lines_of_resperf() {
    let target = bind(|options| options);
    let folder = Folder::new("resperf-lines");
    let port = target.endpoints().do53().port();
    let names = names_in(&folder);
    for options in [
        "-r 2",
        "-r 1 -c 1 -L 10 -C 3",
        "-r 2 -M tcp -C 2 -e -D -f inet -q 1000 -F 500",
    ] {
        let line = format!("-p {port} -d {names} -R -m 200 -i 0.25 -t 2 {options}");
        let theirs = succeed("resperf", &folder, &line);
        let their_plot = plot(&folder, "resperf.gnuplot");
        let ours = succeed(THRONG, &folder, &format!("{line} -P ours.txt"));
        let our_plot = plot(&folder, "ours.txt");
        assert_eq!(labels(&ours), of_2_14(labels(&theirs)), "{line}");
        assert_eq!(our_plot.0, their_plot.0);
        assert!(
            our_plot
                .1
                .iter()
                .chain(&their_plot.1)
                .all(|columns| *columns == 8)
        );
        assert!(our_plot.1.len() >= their_plot.1.len(), "{our_plot:?}");
    }
}

#[test]
fn ramp_into_nothing_ends_at_the_outstanding_queries_as_resperf_does() {
    // Bound and never read: whatever is sent there is lost.
    let silent = Listener::new();
    let port = silent.address().port();
    let folder = Folder::new("resperf-silent");
    let names = folder.write("names.txt", "lost.lab.test A\n");
    let line = format!("-p {port} -d {names} -R -m 400 -r 4 -t 3 -q 100");
    let theirs = succeed("resperf", &folder, &line);
    let ours = succeed(THRONG, &folder, &line);
    assert_eq!(labels(&ours), of_2_14(labels(&theirs)), "{ours}");
    assert!(
        ours.contains("[Status] Reached 100 outstanding queries\n"),
        "{ours}"
    );
    assert!(
        ours.contains("  Maximum throughput:   0.000000 qps\n"),
        "{ours}"
    );
}

#[test]
fn file_without_end_needs_the_option_for_it_and_the_equivalent_ramp_is_told() {
    let target = bind(|options| options);
    let folder = Folder::new("resperf-equivalent");
    let port = target.endpoints().do53().port();
    let names = names_in(&folder);
    let output = run(
        THRONG,
        &folder,
        &format!("-p {port} -d {names} -m 500 -r 1"),
    );
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.starts_with("Error: ran out of query data\nhint: "),
        "{stderr}"
    );
    // Under the name resperf it is resperf.
    let link = folder.path("resperf");
    std::os::unix::fs::symlink(THRONG, &link).unwrap();
    let output = run(
        &link,
        &folder,
        &format!("-p {port} -d {names} -R -m 200 -r 1 -C 2"),
    );
    assert!(output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    let command = format!(
        "equivalent: throng ramp --server 127.0.0.1:{port} --transport udp --names {names} \
         --to 200 --over 1s --max-outstanding 65536 --max-behind 1000 --interval 500ms \
         --plot resperf.gnuplot --clients 2 --workers 1 --timeout 45s"
    );
    assert!(stderr.contains(&command), "{stderr}");
}

/// Without a queue of its own, a ramp of so few queries is exact: the n-th is due when n are.
#[test]
fn so_few_queries_are_those_that_resperf_sends() {
    let target = bind(|options| options);
    let folder = Folder::new("resperf-few");
    let port = target.endpoints().do53().port();
    let names = names_in(&folder);
    for (options, sent) in [
        ("-m 2 -r 1", 1),
        ("-m 1 -r 2 -c 2", 2),
        ("-m 4 -r 2", 4),
        ("-m 5 -r 1 -C 2", 2),
        ("-m 0.5 -r 4 -C 3", 1),
    ] {
        let line = format!("-p {port} -d {names} {options}");
        let expected = format!("  Queries sent:         {sent}\n");
        let stdout = succeed(THRONG, &folder, &line);
        assert!(stdout.contains(&expected), "{line}\n{stdout}");
        // It leaves out what was due while a busy host stalled it.
        wait::until(&format!("{sent} sent by resperf {line}"), || {
            succeed("resperf", &folder, &line).contains(&expected)
        });
    }
}

#[test]
fn nothing_falls_behind_once_the_file_is_used_up() {
    let target = bind(|options| options);
    let folder = Folder::new("resperf-used-up");
    let port = target.endpoints().do53().port();
    let names = folder.write("names.txt", "a.lab.test A\n");
    // Long enough that a busy host does not stall resperf to its end.
    let line = format!("-p {port} -d {names} -m 20000 -r 20 -F 10");
    for program in ["resperf", THRONG] {
        let output = run(program, &folder, &line);
        let (stdout, stderr) = crate::dnsperf::texts(&output);
        assert_eq!(output.status.code(), Some(1), "{program}: {stdout}");
        assert!(!stdout.contains("Fell behind"), "{program}: {stdout}");
        assert!(stderr.contains("Error: ran out of query data"), "{stderr}");
    }
}
