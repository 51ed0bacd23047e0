//! The experiments of this repository in their short form, and the claims that are held against
//! them.

use std::fs;
use std::path::{Path, PathBuf};

use testing::folder::Folder;
use testing::program::execute;

use crate::process::THRONG;

const TRIES: usize = 3;

/// The experiments of this repository on one host.
fn experiments() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let entries = fs::read_dir(folder).unwrap();
    let folders = entries.map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
    // Tests of Kubernetes run these.
    folders.retain(|path| !path.to_string_lossy().contains("/cluster-"));
    folders.sort();
    assert!(folders.len() > 5, "{folders:?}");
    folders
}

/// On a busy host a run of a second may get no response: the same command tries it again.
fn run_until_complete(command: &str, out: &str) {
    let mut ended = execute(command);
    for _ in 1..TRIES {
        if ended.code == Some(0) || !ended.stderr.contains("the same command tries them again") {
            break;
        }
        ended = execute(command);
    }
    let logs = || execute(&format!("grep -r . {out}/logs")).stdout;
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stderr, logs());
}

#[test]
fn experiments_of_this_repository_run_in_their_short_form_and_their_claims_are_judged() {
    for path in experiments() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let folder = Folder::new(&format!("short-{name}"));
        let (file, out) = (path.join("experiment.toml"), folder.path("out"));
        // One of them has throng itself under test.
        let own = Path::new(THRONG).parent().unwrap().display();
        let others = std::env::var("PATH").unwrap();
        let command = format!(
            "env PATH={own}:{others} {THRONG} experiment run {} --short --output {out}",
            file.display()
        );
        run_until_complete(&command, &out);
        let records = fs::read_dir(folder.path("out/records")).unwrap();
        assert_eq!(records.count(), 4, "{name}");
        let file = path.join("claims.toml");
        if file.exists() {
            let command = format!("{THRONG} experiment claims {out} {}", file.display());
            let text = execute(&command).succeeded();
            assert!(text.contains("inconclusive here"), "{name}: {text}");
        }
    }
}
