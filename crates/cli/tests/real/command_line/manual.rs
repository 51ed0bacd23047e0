//! The manual page and completions, as groff and bash read them.

use std::collections::BTreeSet;
use std::fs;

use testing::folder::Folder;
use testing::program::{execute, execute_with};

use crate::process::throng;

#[test]
fn the_manual_page_is_typeset_without_complaint() {
    let page = throng("man").succeeded();
    if execute("groff --version").code == Some(0) {
        let typeset = execute_with("groff -man -Tascii -ww", page.as_bytes());
        assert_eq!(typeset.stderr, "");
        let text = typeset.succeeded();
        assert!(text.contains("throng-run(1)"), "{text}");
    }
}

#[test]
fn each_command_has_a_page_in_the_folder_named() {
    let folder = Folder::new("man");
    let pages = folder.path("pages/man1");
    assert_eq!(throng(&format!("man --output {pages}")).succeeded(), "");
    let mut all = String::new();
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(&pages).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let page = fs::read_to_string(entry.path()).unwrap();
        let command = name.strip_suffix(".1").unwrap();
        assert!(page.contains(&format!("\n.TH {command} 1 ")), "{name}");
        assert_eq!(page.matches(".TH ").count(), 1, "{name}");
        all.push_str(&page);
        names.insert(name);
    }
    // The pages that a page refers to are there.
    let references = all.lines().filter_map(|line| line.strip_suffix("(1)"));
    let references: BTreeSet<String> = references
        .map(|name| format!("{}.1", name.replace("\\-", "-")))
        .collect();
    assert!(references.len() > 30, "{references:?}");
    assert!(references.is_subset(&names), "{references:?} {names:?}");
    for name in ["throng.1", "throng-run.1", "throng-names-records.1"] {
        assert!(names.contains(name), "{name}");
    }
    // What is printed is the same pages.
    let printed = throng("man").succeeded();
    assert_eq!(printed.matches(".TH ").count(), names.len());
}

#[test]
fn folder_for_pages_that_cannot_be_written_is_refused() {
    let folder = Folder::new("man-refused");
    let file = folder.write("file", "");
    let refused = throng(&format!("man --output {file}"));
    refused.refused_with(&format!("cannot write {file}/throng.1"), "--output");
}

#[test]
fn bash_accepts_its_completions_and_completes_a_flag() {
    let script = throng("completions bash").succeeded();
    execute_with("bash -n", script.as_bytes()).succeeded();
    let ask = "COMP_WORDS=(throng run --names-f); COMP_CWORD=2; _throng throng --names-f run\n\
               echo \"${COMPREPLY[@]}\"\n";
    let answer = execute_with("bash", format!("{script}\n{ask}").as_bytes()).succeeded();
    assert_eq!(answer, "--names-format\n");
}
