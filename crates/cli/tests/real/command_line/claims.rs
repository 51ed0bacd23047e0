//! The experiments of this repository in their short form, and the claims that are held against
//! them.

use std::fs;
use std::path::{Path, PathBuf};

use testing::folder::Folder;
use testing::program::execute;

use crate::process::THRONG;

const TRIES: usize = 3;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
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

/// Runs one of them, and judges its claims.
fn check(name: &str) {
    let path = self::folder().join(name);
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

/// A test for each, named as its folder with underscores.
macro_rules! tests_of {
    ($($name:ident)*) => {
        mod short_form {
            $(
                #[test]
                fn $name() {
                    super::check(&stringify!($name).replace('_', "-"));
                }
            )*
        }

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

tests_of! {
    ceilings
    fosdem_ttl
    northflank_vcpu
    outstanding
    quota
    red_hat_course
    red_hat_direct
    red_hat_indirect
    red_hat_load
    sinodun_clients
    sinodun_proxy
    sinodun_queries
    transport_cost
}

#[test]
fn each_experiment_on_one_host_has_a_test() {
    let entries = fs::read_dir(folder()).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.path().is_dir());
    let names = folders.map(|entry| entry.file_name().into_string().unwrap().replace('-', "_"));
    // Tests of Kubernetes run the others.
    let mut names: Vec<String> = names.filter(|it| !it.starts_with("cluster_")).collect();
    names.sort();
    assert_eq!(names, NAMES);
}
