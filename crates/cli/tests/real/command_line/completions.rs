//! What bash offers.

use std::process::Command;

use testing::folder::Folder;

use crate::process::throng;

/// What bash offers for the last of these words.
fn offered(script: &str, words: &str) -> Vec<String> {
    let folder = Folder::new("completions");
    let file = folder.write("throng.bash", script);
    let lines = format!(
        "source {file}\nCOMP_WORDS=({words})\nCOMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
         _throng throng \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    );
    let lines = folder.write("ask.bash", lines);
    let asked = Command::new("bash").args(["--norc", &lines]).output();
    let found = asked.unwrap().stdout;
    let found = String::from_utf8(found).unwrap();
    found.lines().map(str::to_owned).collect()
}

#[test]
fn bash_offers_values() {
    if Command::new("bash").arg("--version").output().is_err() {
        return;
    }
    let script = throng("completions bash").succeeded();
    for (words, expected) in [
        ("throng run --transport ''", "udp tcp dot doh2 doh3 doq"),
        ("throng run -t do", "dot doh2 doh3 doq"),
        (
            "throng compare-transports --transports d",
            "dot doh2 doh3 doq",
        ),
        ("throng run --driver u", "uring"),
        ("throng run --format ''", "text json csv markdown"),
        ("throng report --format h", "html"),
        ("throng ping a.example --type AA", "AAAA"),
        ("throng fit --capture-format p", "pcap pcapng"),
        ("throng help u", "units"),
        ("throng help exit", "exit-codes"),
        ("throng help capa", "capacity"),
        ("throng lab up unb", "unbound"),
    ] {
        let offered = offered(&script, words);
        assert_eq!(offered.join(" "), expected, "{words}");
    }
}
