//! The manual page and completions, as groff and bash read them.

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
fn bash_accepts_its_completions_and_completes_a_flag() {
    let script = throng("completions bash").succeeded();
    execute_with("bash -n", script.as_bytes()).succeeded();
    let ask = "COMP_WORDS=(throng run --names-f); COMP_CWORD=2; _throng throng --names-f run\n\
               echo \"${COMPREPLY[@]}\"\n";
    let answer = execute_with("bash", format!("{script}\n{ask}").as_bytes()).succeeded();
    assert_eq!(answer, "--names-format\n");
}
