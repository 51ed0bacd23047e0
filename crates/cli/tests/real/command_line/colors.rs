//! Colours of a result on a pseudo-terminal.

use std::process::{Command, Stdio};

use testing::folder::Folder;

use crate::process::THRONG;

const RUN: &str = "run --driver sim --rate 100 --sim-loss 0.5 --duration 2s --quiet";

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
