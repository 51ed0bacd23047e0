//! Colours of a result, and where a search shows its trials, on a pseudo-terminal.

use std::process::{Command, Stdio};

use testing::folder::Folder;

use crate::process::THRONG;

const RUN: &str = "run --driver sim --rate 100 --sim-loss 0.5 --duration 2s --quiet";
const SEARCH: &str = "capacity --driver sim --ceiling 2000 --repeat 1 --trial-duration 1s";

/// What a terminal gets from `throng` with these variables, flags and redirections.
fn shown(folder: &Folder, variables: &str, flags: &str) -> String {
    let script = folder.write("run.sh", format!("env {variables} {THRONG} {flags}\n"));
    let mut command = Command::new("script");
    command.args(["--quiet", "--command", &format!("sh {script}"), "/dev/null"]);
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    command.stdin(Stdio::null());
    let bytes = command.output().unwrap().stdout;
    String::from_utf8(bytes).unwrap().replace('\r', "")
}

#[test]
fn results_have_colors_on_a_terminal_that_takes_them_alone() {
    let folder = Folder::new("colors");
    let text = shown(&folder, "", RUN);
    assert!(
        text.contains("SIMULATION. \x1b[33mLimit: network\x1b[0m. "),
        "{text:?}"
    );
    assert!(text.contains("\n  lost       \x1b[33m"), "{text:?}");
    let file = folder.path("result");
    let stored = format!("{RUN} --record {}", folder.path("run.json"));
    for (variables, flags) in [
        ("NO_COLOR=1", RUN.to_owned()),
        ("TERM=dumb", RUN.to_owned()),
        ("-u TERM", RUN.to_owned()),
        ("", format!("{RUN} --format json")),
        ("", format!("{RUN} --format csv")),
        ("", format!("{RUN} --details")),
        ("", format!("{stored} | cat")),
        ("", format!("{RUN} >{file}; cat {file}")),
    ] {
        let flags = flags.replace("; cat", "\ncat");
        let text = shown(&folder, variables, &flags);
        assert!(!text.contains('\x1b'), "{variables} {flags}: {text:?}");
    }
    let record = folder.path("run.json");
    for command in [
        format!("report {record}"),
        format!("history show run.json --records {}", folder.path("")),
    ] {
        let text = shown(&folder, "", &command);
        assert!(text.contains("\x1b[33mLimit: network\x1b[0m"), "{text:?}");
    }
}

#[test]
fn trials_of_a_search_are_shown_once() {
    let folder = Folder::new("trials-once");
    let trials = |text: &str| {
        let lines = text.lines().filter(|line| {
            line.contains("1,000 qps  passed") || line.contains("1,000 qps  search")
        });
        lines.count()
    };
    let table = |text: &str| text.matches("\nTrials\n").count();
    let terminal = shown(&folder, "", SEARCH);
    assert!(terminal.contains("trial  1 "), "{terminal}");
    assert_eq!(table(&terminal), 0, "{terminal}");
    assert!(trials(&terminal) >= 1, "{terminal}");
    let quiet = shown(&folder, "", &format!("{SEARCH} --quiet"));
    assert!(!quiet.contains("trial  1 "), "{quiet}");
    assert_eq!(table(&quiet), 1, "{quiet}");
    let piped = shown(&folder, "", &format!("{SEARCH} 2>&1 | cat"));
    assert!(!piped.contains("trial  1 "), "{piped}");
    assert_eq!(table(&piped), 1, "{piped}");
}
