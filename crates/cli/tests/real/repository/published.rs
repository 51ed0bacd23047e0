//! Files that are published are those that the code makes.

use std::fs;
use std::path::Path;
use std::process::Command;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

fn published(name: &str) -> String {
    fs::read_to_string(Path::new(DOCS).join(name)).unwrap()
}

fn made(of: &str) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.args(["schema", of]).output().unwrap().stdout
}

#[test]
fn published_schemas_are_those_that_the_code_makes() {
    let mut number = 0;
    for file in fs::read_dir(DOCS).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        let Some(name) = file.strip_suffix(".schema.json") else {
            continue;
        };
        let of = name.trim_start_matches("run-");
        assert!(
            published(&file).into_bytes() == made(of),
            "write it anew: cargo run -- schema {of} > docs/{file}"
        );
        number += 1;
    }
    assert_eq!(number, 7);
}

#[test]
fn published_tables_are_those_that_the_code_makes() {
    for name in ["commands", "metrics", "observations", "verdict"] {
        assert!(
            published(&format!("{name}.md")).into_bytes() == made(name),
            "write it anew: cargo run -- schema {name} > docs/{name}.md"
        );
    }
}
